"""Extraction of one file from an archive, and archives that are refused."""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from rnnsmt.cli import main

FILES = {
    "training/a.en": b"one\ntwo\n" * 1000,
    "./training/a.fr": b"un\ndeux\n" * 1000,
    "b.fr.gz": gzip.compress(b"x\n"),
}


def archive(path: Path, mode: str) -> Path:
    if mode == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
            out.writestr("training/", b"")
            out.writestr("__MACOSX/training/._a.eng", b"\0\5\x16\7")
            for name, content in FILES.items():
                out.writestr(name, content)
        return path
    with tarfile.open(path, mode) as out:
        directory = tarfile.TarInfo("training")
        directory.type = tarfile.DIRTYPE
        out.addfile(directory)
        for name, content in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            out.addfile(member, io.BytesIO(content))
    return path


def unpack(path: Path, member: str) -> tuple[int, Path]:
    output = path.parent / "out" / Path(member).name
    return main(["corpus", "unpack", "--archive", str(path), "--member", member, "--output", str(output)]), output


@pytest.mark.parametrize(
    ("name", "mode"), [("a.tar", "w"), ("a.tgz", "w:gz"), ("a.tar.xz", "w:xz"), ("a.tbz", "w:bz2"), ("a.any", "zip")]
)
@pytest.mark.parametrize("member", ["training/a.en", "training/a.fr", "b.fr.gz"])
def test_every_file_of_every_kind(tmp_path, name, mode, member):
    code, output = unpack(archive(tmp_path / name, mode), member)
    assert code == 0
    assert output.read_bytes() == FILES.get(member, FILES.get(f"./{member}"))


def test_refusals(tmp_path, capsys):
    path = archive(tmp_path / "a.tgz", "w:gz")
    (tmp_path / "cut.tgz").write_bytes(path.read_bytes()[:-60])
    (tmp_path / "cut.zip").write_bytes(archive(tmp_path / "a.zip", "zip").read_bytes()[:-60])
    (tmp_path / "text.tar").write_text("no archive\n" * 200)
    (tmp_path / "empty.tar").touch()
    for name, member, sentence in (
        ("a.tgz", "training/a.eng", "the archive contains no file training/a.eng; did you mean training/a.en?"),
        ("a.tgz", "training", "training is a directory, not a file"),
        ("a.tgz", "../a.en", "--member ../a.en: must be a path inside the archive"),
        ("a.tgz", "/training/a.en", "--member /training/a.en: must be a path inside the archive"),
        ("a.tgz", "zzz", "it has training, "),
        ("a.zip", "training/a.eng", "the archive contains no file training/a.eng; did you mean training/a.en?"),
        ("a.zip", "training/", "training/ is a directory, not a file"),
        ("a.zip", "../a.en", "--member ../a.en: must be a path inside the archive"),
        ("cut.zip", "b.fr.gz", "cut.zip: damaged (File is not a zip file)"),
        ("cut.tgz", "b.fr.gz", "cut.tgz: damaged (Compressed file ended before"),
        ("text.tar", "x", "text.tar: not a tar or zip archive, or damaged ("),
        ("empty.tar", "x", "empty.tar: not a tar or zip archive"),
        ("none.tar", "x", "none.tar: no such file"),
    ):
        code, output = unpack(tmp_path / name, member)
        assert code == 2
        assert sentence in capsys.readouterr().err.replace("\n", " ")
        assert not output.parent.exists() or not list(output.parent.iterdir())


def test_a_malicious_archive(tmp_path, capsys):
    """Links, devices and paths outside the archive are not extracted; an ordinary file of the same archive is."""
    path = tmp_path / "in" / "a.tar"
    path.parent.mkdir()
    (tmp_path / "secret").write_text("secret")
    kinds = {
        "link": (tarfile.SYMTYPE, "../secret"), "hard": (tarfile.LNKTYPE, "../secret"), "null": (tarfile.CHRTYPE, ""),
        "fifo": (tarfile.FIFOTYPE, ""), "../outside": (tarfile.REGTYPE, ""), "/tmp/absolute": (tarfile.REGTYPE, ""),
    }  # fmt: skip
    with tarfile.open(path, "w") as out:
        for name, (kind, target) in kinds.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            out.addfile(member, io.BytesIO())
        member = tarfile.TarInfo("a.en")
        member.size = 4
        out.addfile(member, io.BytesIO(b"one\n"))
    for name, sentence in (
        ("link", "link is a link to ../secret, not a file"),
        ("hard", "hard is a link to ../secret, not a file"),
        ("null", "null is a device or a pipe, not a file"),
        ("fifo", "fifo is a device or a pipe, not a file"),
        ("../outside", "must be a path inside the archive"),
    ):
        code, output = unpack(path, name)
        assert code == 2
        assert sentence in capsys.readouterr().err
        assert not output.exists()
    code, output = unpack(path, "a.en")
    assert code == 0
    assert output.read_bytes() == b"one\n"
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")} == {
        "in", "in/a.tar", "in/out", "in/out/a.en", "secret",
    }  # fmt: skip


def test_an_archive_that_unpacks_to_too_much(tmp_path, monkeypatch, capsys):
    """An archive that expands to more than 100 times its size is refused, whether in a file or in a header."""
    monkeypatch.setattr("rnnsmt.base.opening.ALWAYS_UNPACKED", 1 << 20)
    for name, zeros, said in (
        ("file", {}, "expands to more than 100 times its size"),
        ("header", {"comment": "0" * (1 << 23)}, "the attributes of a member are too long"),
    ):
        path = tmp_path / f"{name}.tgz"
        with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as out:
            member = tarfile.TarInfo("a")
            member.size, member.pax_headers = 1 << 23, zeros
            out.addfile(member, io.BytesIO(bytes(1 << 23)))
        code, output = unpack(path, "a")
        assert code == 2
        error = capsys.readouterr().err
        assert f"{name}.tgz: " in error and said in error
        assert not output.exists()


@pytest.mark.parametrize("old", [True, False])
def test_lists_of_holes_are_not_read(tmp_path, capsys, old):
    """The list of holes of a sparse file has no limit, and ``tarfile`` would read it into memory."""
    member, path = tarfile.TarInfo("x"), tmp_path / "a.tar"
    if old:
        member.type = tarfile.GNUTYPE_SPARSE
        header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
        header[482] = 1  # blocks with further holes follow, each of which says whether another one does
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        path.write_bytes(bytes(header) + (b"00000000777\0" * 42 + b"\1" + bytes(7)) * 1000)
    else:
        holes = b"100000\n" + b"1\n" * 200_000
        member.size, member.pax_headers = len(holes), {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as out:
            out.addfile(member, io.BytesIO(holes))
    code, output = unpack(path, "a")
    assert code == 2
    assert "a sparse file with a list of holes" in capsys.readouterr().err
    assert not output.exists()
