"""One file out of an archive, and what is refused."""

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from rnnsmt.cli import main

FILES = {
    "training/a.en": b"one\ntwo\n" * 1000,
    "./training/a.fr": b"un\ndeux\n" * 1000,
    "b.fr.gz": gzip.compress(b"x\n"),
}


def archive(path: Path, mode: str) -> Path:
    with tarfile.open(path, mode) as out:
        folder = tarfile.TarInfo("training")
        folder.type = tarfile.DIRTYPE
        out.addfile(folder)
        for name, content in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            out.addfile(member, io.BytesIO(content))
    return path


def unpack(path: Path, member: str) -> tuple[int, Path]:
    output = path.parent / "out" / Path(member).name
    return main(["corpus", "unpack", "--archive", str(path), "--member", member, "--output", str(output)]), output


@pytest.mark.parametrize(
    ("name", "mode"), [("a.tar", "w"), ("a.tgz", "w:gz"), ("a.tar.xz", "w:xz"), ("a.tbz", "w:bz2")]
)
@pytest.mark.parametrize("member", ["training/a.en", "training/a.fr", "b.fr.gz"])
def test_every_file_of_every_kind(tmp_path, name, mode, member):
    code, output = unpack(archive(tmp_path / name, mode), member)
    assert code == 0
    assert output.read_bytes() == FILES.get(member, FILES.get(f"./{member}"))


def test_refusals(tmp_path, capsys):
    path = archive(tmp_path / "a.tgz", "w:gz")
    (tmp_path / "cut.tgz").write_bytes(path.read_bytes()[:-60])
    (tmp_path / "text.tar").write_text("no archive\n" * 200)
    (tmp_path / "empty.tar").touch()
    for name, member, sentence in (
        ("a.tgz", "training/a.eng", "no file training/a.eng in it; did you mean training/a.en?"),
        ("a.tgz", "training", "no file training in it"),
        ("a.tgz", "zzz", "it has training, "),
        ("cut.tgz", "b.fr.gz", "cut.tgz: not a tar archive, or damaged after"),
        ("text.tar", "x", "text.tar: not a tar archive, or damaged after 0 file(s)"),
        ("empty.tar", "x", "empty.tar: not a tar archive"),
        ("none.tar", "x", "none.tar: no such file"),
    ):
        code, output = unpack(tmp_path / name, member)
        assert code == 2
        assert sentence in capsys.readouterr().err.replace("\n", " ")
        assert not output.parent.exists() or not list(output.parent.iterdir())
