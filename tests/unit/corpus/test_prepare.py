"""``rnnsmt corpus prepare``: lines that are kept, repaired and rejected, and files that are refused."""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from rnnsmt.base.parallel import map_chunks
from rnnsmt.cli import main
from rnnsmt.config.sections import Preprocessing
from rnnsmt.corpus.preparation import MAX_SEGMENT
from rnnsmt.corpus.raw_text import Cleaner
from rnnsmt.corpus.tokenizer import tokenizer_version
from rnnsmt.search.source_text import MAX_WORDS

from ..overriding import overridden


class Workplace:
    """Directory with input files, and methods that run the stage in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def file(self, name: str, content: bytes | str) -> Path:
        path = self.directory / name
        raw = content.encode() if isinstance(content, str) else content
        if path.suffix == ".gz":
            raw = gzip.compress(raw)
        elif path.suffix == ".bz2":
            raw = bz2.compress(raw)
        elif path.suffix == ".xz":
            raw = lzma.compress(raw)
        path.write_bytes(raw)
        return path

    def pair(self, source: bytes | str, target: bytes | str, *options: str) -> int:
        return self.run(self.file("s.en", source), self.file("t.fr", target), *options)

    def run(self, source: Path, target: Path | None, *options: str) -> int:
        words = ["corpus", "prepare", "--source", str(source), "--output-source", str(self.directory / "o.en")]
        if target:
            words += ["--target", str(target), "--output-target", str(self.directory / "o.fr")]
        words += ["--source-lang", "en", "--target-lang", "fr", "--report", str(self.directory / "r.json")]
        return main(overridden([*words], options))

    @property
    def source(self) -> list[str]:
        return (self.directory / "o.en").read_bytes().decode().split("\n")[:-1]

    @property
    def target(self) -> list[str]:
        return (self.directory / "o.fr").read_bytes().decode().split("\n")[:-1]

    @property
    def report(self) -> dict:
        return json.loads((self.directory / "r.json").read_text(encoding="utf-8"))

    def rejected(self) -> dict[str, tuple[int, list[int]]]:
        return {reason: (count["lines"], count["first"]) for reason, count in self.report["rejected"].items()}

    def repaired(self) -> dict[str, list[int]]:
        return {reason: count["first"] for reason, count in self.report["repaired"].items()}

    def nothing_written(self, *inputs: str) -> bool:
        return sorted(path.name for path in self.directory.iterdir()) == sorted(inputs)


def described(path: Path) -> dict:
    """Return the description of a raw file in the report."""
    raw = path.read_bytes()
    return {"path": str(path), "bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}


@pytest.fixture
def work(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def test_tokenises_and_counts(work: Workplace) -> None:
    assert work.pair("It's the boat's mast.\n", "C'est le mât du bateau : « l'ancre »\u00a0!\n") == 0
    assert work.source == ["It &apos;s the boat &apos;s mast ."]
    assert work.target == ["C&apos; est le mât du bateau : &quot; l&apos; ancre &quot; !"]
    assert work.report == {
        "inputs": [described(work.directory / "s.en"), described(work.directory / "t.fr")],
        "tokenizer": {"en": tokenizer_version("en"), "fr": tokenizer_version("fr")},
        "lines": 1,
        "kept": 1,
        "tokens": [7, 12],
        "rejected": {},
        "repaired": {},
        "suspicious": {},
    }


def test_switches(work: Workplace) -> None:
    text = "It's «a»,  B\u00a0!\n"
    assert work.pair(text, text, "--no-normalize", "--no-tokenize") == 0
    assert work.source == ["It's «a», B !"]
    assert work.pair(text, text, "--no-escape", "--lowercase") == 0
    assert work.source == ['it \'s " a , " b !']
    assert work.pair(text, text, "--no-normalize") == 0
    assert work.source == ["It &apos;s « a » , B !"]


@pytest.mark.parametrize(
    "pack", [gzip.compress, bz2.compress, lzma.compress, partial(lzma.compress, format=lzma.FORMAT_ALONE)]
)
def test_compression_and_markup_without_a_suffix(work: Workplace, pack: Callable[[bytes], bytes]) -> None:
    (work.directory / "a.en").write_bytes(pack(b"<refset><doc><seg>One.</seg><seg>Two.</seg></doc></refset>"))
    (work.directory / "a.fr").write_bytes(pack(b"Un.\nDeux.\n"))
    assert work.run(work.directory / "a.en", work.directory / "a.fr") == 0
    assert work.source == ["One .", "Two ."]
    assert work.target == ["Un .", "Deux ."]


@pytest.mark.parametrize("text", ["<doc>\na\n", "<?xml version='1.0'?>\na\n", "a <seg>b</seg>\nc\n", "<p>\n<seg>\n"])
def test_text_with_some_markup_stays_lines(work: Workplace, text: str) -> None:
    assert work.pair(text, "a\nb\n", "--no-tokenize", "--no-normalize") == 0
    assert work.source == text.splitlines()


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz"])
def test_compressed_inputs_and_no_last_newline(work: Workplace, suffix: str) -> None:
    source = work.file(f"a.en{suffix}", "One.\nTwo.")
    target = work.file(f"a.fr{suffix}", "Un.\nDeux.\n")
    assert work.run(source, target) == 0
    assert work.source == ["One .", "Two ."]


def test_output_compressed_is_the_same_every_time(work: Workplace) -> None:
    work.file("a", "One.\n")
    outputs = []
    for _ in range(2):
        out = work.directory / "o.gz"
        words = [
            "--source",
            str(work.directory / "a"),
            "--output-source",
            str(out),
            "--source-lang",
            "en",
            "--report",
            str(work.directory / "r"),
        ]
        assert main(["corpus", "prepare", *words]) == 0
        outputs.append(out.read_bytes())
        out.unlink()
    assert outputs[0] == outputs[1]
    assert gzip.decompress(outputs[0]) == b"One .\n"


def test_tokenised_text_stays_as_it_is(work: Workplace, multi30k_tok: Path) -> None:
    assert (
        work.run(
            multi30k_tok / "val.en.xz", multi30k_tok / "val.fr.xz", "--no-normalize", "--no-tokenize", "--keep-all"
        )
        == 0
    )
    for side in ("en", "fr"):
        raw = lzma.decompress((multi30k_tok / f"val.{side}.xz").read_bytes())
        assert (work.directory / f"o.{side}").read_bytes() == b"\n".join(b" ".join(x.split()) for x in raw.split(b"\n"))
    assert work.report["repaired"] == {}


@pytest.mark.parametrize("lang", ["en", "fr"])
def test_agrees_with_moses_own_tools(work: Workplace, shared_dir: Path, lang: str) -> None:
    """Tokens agree with those of Multi30k's authors in 99.8 % of the lines; they lower-cased before tokenisation."""
    raw = shared_dir / "data" / "multi30k" / f"test_2016_flickr.{lang}.gz"
    theirs = lzma.decompress((shared_dir / "data" / "multi30k-tok" / f"test_2016_flickr.{lang}.xz").read_bytes())
    assert work.run(raw, None, "--source-lang", lang, "--keep-all", "--lowercase") == 0
    lines = theirs.decode().split("\n")[:-1]
    different = sum(ours != line for ours, line in zip(work.source, lines, strict=True))
    assert different <= 0.002 * len(lines)


REJECTED: list[tuple[str, bytes, bytes, str]] = [
    ("empty source", b"", b"Deux .", "empty"),
    ("spaces only", b" \t ", b"Deux .", "empty"),
    ("no-break spaces only", "\u00a0\u3000".encode(), b"Deux .", "empty"),
    ("control characters only", b"\x00\x07", b"Deux .", "empty"),
    ("empty target", b"Two .", b"", "empty"),
    ("latin-1", b"Two .", "Été .".encode("latin-1"), "not UTF-8"),
    ("cut sequence", b"Two \xe2\x82", b"Deux .", "not UTF-8"),
    ("overlong coding", b"Two \xc0\xaf", b"Deux .", "not UTF-8"),
    ("surrogate", b"Two \xed\xa0\x80", b"Deux .", "not UTF-8"),
    ("utf-16", "Two".encode("utf-16"), b"Deux .", "not UTF-8"),
    ("too many tokens", b"x " * 81, b"y " * 40, "too long"),
    ("very many tokens", b"x " * 3000, b"y " * 3000, "too long"),
    ("tokens only after tokenising", b"x," * 50, b"y " * 40, "too long"),
    ("ratio", b"x " * 10, b"y", "length ratio"),
    ("other ratio", b"x", b"y " * 19, "length ratio"),
    ("endless", b"x" * 70_000, b"y", "endless line"),
    ("endless target", b"x", b"y" * 300_000, "endless line"),
]


@pytest.mark.parametrize(("source", "target", "reason"), [row[1:] for row in REJECTED], ids=[r[0] for r in REJECTED])
def test_rejected_and_counted(work: Workplace, source: bytes, target: bytes, reason: str) -> None:
    assert work.pair(b"One .\n" + source + b"\nThree .\n", b"Un .\n" + target + b"\nTrois .\n") == 0
    assert work.source == ["One .", "Three ."]
    assert work.target == ["Un .", "Trois ."]
    assert work.rejected() == {reason: (1, [2])}
    assert (work.report["lines"], work.report["kept"]) == (3, 2)


REPAIRED: list[tuple[str, bytes, str, str]] = [
    ("tab", b"a\tb", "a b", "control character"),
    ("NUL", b"a\x00b", "ab", "control character"),
    ("bell", b"a\x07 b", "a b", "control character"),
    ("carriage return inside", b"a\rb", "a b", "control character"),
    ("form feed", b"a\x0cb", "a b", "control character"),
    ("vertical tab", b"a\x0bb", "a b", "control character"),
    ("unit separator", b"a\x1fb", "a b", "control character"),
    ("delete", b"a\x7fb", "ab", "control character"),
    ("accent of its own", "un cafe\u0301 A\u030angstro\u0308m".encode(), "un café Ångström", "decomposed character"),
    ("next line", "a\u0085b".encode(), "a b", "control character"),
    ("C1", "a\u009db".encode(), "ab", "control character"),
    ("line separator", "a\u2028b".encode(), "a b", "control character"),
    ("paragraph separator", "a\u2029b".encode(), "a b", "control character"),
    ("field separator", b"a ||| b", "a &#124; &#124; &#124; b", "|||"),
    ("field separator inside", b"a|||b", "a &#124; &#124; &#124; b", "|||"),
]


@pytest.mark.parametrize(("raw", "text", "reason"), [row[1:] for row in REPAIRED], ids=[row[0] for row in REPAIRED])
def test_repaired_and_counted(work: Workplace, raw: bytes, text: str, reason: str) -> None:
    assert work.pair(b"One\n" + raw + b"\n", b"Un\nb c\n") == 0
    assert work.source == ["One", text]
    assert work.repaired() == {reason: [2]}
    assert work.rejected() == {}


@pytest.mark.parametrize("raw", [b"a\r", b"\xef\xbb\xbfa", b"  a ", "\u00a0a\u2009".encode()])
def test_line_ends_marks_and_spaces_are_no_repairs(work: Workplace, raw: bytes) -> None:
    assert work.pair(raw + b"\n", b"b\n") == 0
    assert work.source == ["a"]
    assert work.repaired() == {}


def test_a_separator_in_tokenised_text_is_rejected(work: Workplace) -> None:
    assert work.pair("a ||| b\nc | d\n", "a\nc\n", "--no-tokenize", "--no-normalize") == 0
    assert work.source == ["c | d"]
    assert work.rejected() == {"|||": (1, [1])}


def test_keep_all_drops_nothing(work: Workplace) -> None:
    source = b"\n" + b"x " * 200 + b"\n\xe9t\xe9 \x00\na ||| b\n"
    target = b"a\n\nb\nc\n"
    assert work.pair(source, target, "--keep-all", "--no-tokenize", "--no-normalize") == 0
    assert work.source == ["", " ".join("x" * 200), "\ufffdt\ufffd", "a | | | b"]
    assert work.target == ["a", "", "b", "c"]
    assert work.repaired() == {"control character": [3], "not UTF-8": [3], "|||": [4]}
    assert work.report["kept"] == 4


def test_no_line_of_any_output_holds_what_would_break_it(work: Workplace) -> None:
    odd = "".join(chr(c) for c in range(1, 0x2100) if chr(c) != "\n") + "\u3000\ufeff||| |||"
    assert work.pair(f"{odd}\nb\n", f"{odd}\nb\n", "--keep-all", "--no-normalize", "--no-tokenize") == 0
    assert len(work.source) == 2
    assert work.source[0].split() == work.source[0].split(" ")
    assert "|||" not in work.source[0]


@pytest.mark.parametrize("keep_all", [(), ("--keep-all",)])
def test_layout_of_pages_makes_no_other_words(work: Workplace, keep_all: tuple[str, ...]) -> None:
    odd = "\u200fThe\ufeff of\u00ad\ufb01ce \u202aof\u202c the\u200b \ufb04\u2060y."
    assert work.pair(f"{odd}\nThe office of the ffly.\n", "\ufb05a\n\u0645\u06cc\u200c\u062e\n", *keep_all) == 0
    assert work.source == ["The office of the ffly ."] * 2
    assert work.target == ["sta", "\u0645\u06cc\u200c\u062e"]
    assert work.repaired() == {"invisible character or ligature": [1]}


def test_zero_width_spaces_between_words_stay() -> None:
    assert Cleaner("km", Preprocessing(), True)("ភាសា\u200bខ្មែរ\u00ad".encode(), set()) == "ភាសា \u200b ខ្មែរ"


def test_length_options(work: Workplace) -> None:
    assert work.pair("a\na b\na b c\na b\n", "a b\na b\na b\na b c\n", "--max-length", "2") == 0
    assert work.source == ["a", "a b"]
    assert work.rejected() == {"too long": (2, [3, 4])}
    assert work.pair("a\na b\na b c\n", "a\na\na\n", "--max-ratio", "2") == 0
    assert work.rejected() == {"length ratio": (1, [3])}


def test_one_side_alone(work: Workplace) -> None:
    target = work.file("m.fr", "L'eau.\n\n")
    out = work.directory / "o.fr"
    words = ["--target", str(target), "--output-target", str(out), "--report", str(work.directory / "r.json")]
    assert main(["corpus", "prepare", *words]) == 0
    assert work.target == ["L&apos; eau ."]
    assert work.report["tokens"] == [3]


def test_at_most_twenty_line_numbers_per_reason(work: Workplace) -> None:
    assert work.pair("\n" * 30 + "a\n", "b\n" * 31) == 0
    assert work.rejected() == {"empty": (30, list(range(1, 21)))}


def test_processes_change_nothing(work: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "".join(f"It's line {i}.\n" if i % 7 else "\n" for i in range(500))
    assert work.pair(source, source) == 0
    one = [(work.directory / name).read_bytes() for name in ("o.en", "o.fr", "r.json")]
    small = lambda make, items, threads: map_chunks(make, items, threads, 13)  # noqa: E731
    monkeypatch.setattr("rnnsmt.corpus.preparation.map_chunks", small)
    assert work.pair(source, source, "--threads", "3") == 0
    assert [(work.directory / name).read_bytes() for name in ("o.en", "o.fr", "r.json")] == one


SGM = """<?xml version="1.0" encoding="UTF-8"?>
<srcset setid="x" srclang="any">
<doc docid="1"><p>
<seg id="1"> Fish &amp; chips &lt;b&gt; &quot;x&quot; </seg>
<SEG id="2">two
lines</SEG></p></doc>
<doc docid="2"><seg id="1">caf\u00e9</seg></doc>
</srcset>
"""


def tar() -> bytes:
    """Return a tar archive that contains an empty file."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("train.en"), io.BytesIO())
    return stream.getvalue()


ZSTD = b"\x28\xb5\x2f\xfd\x04\x58\x11\0\0a\n"
"""A frame of zstd."""

SIDES = b"""<?xml version='1.0' encoding='utf-8'?>
<dataset id="newstest2021"><doc id="1"><src lang="en"><p><seg id="1">One.</seg></p></src>
<ref lang="fr"><p><seg id="1">Un.</seg></p></ref></doc></dataset>
"""


@pytest.mark.parametrize(
    "name", ["a.sgm", "a.en.sgm.gz", "a.SGM", "a.sgml.xz", "a.en.xml", "a.txt", "a", "a.en.gz", "a.xml.bz2"]
)
def test_sgm(work: Workplace, name: str) -> None:
    reference = work.file("b.sgm", '<refset><doc><seg id="1">un</seg>\n<seg id="2">d</seg><seg>c</seg></doc></refset>')
    assert work.run(work.file(name, SGM), reference, "--no-tokenize", "--no-normalize") == 0
    assert work.source == ['Fish & chips <b> "x"', "two lines", "café"]
    assert work.target == ["un", "d", "c"]


REFUSED: list[tuple[str, dict[str, bytes], list[str], str]] = [
    ("source shorter", {"s": b"a\n", "t": b"a\nb\nc\n"}, [], "s has 1 lines, but"),
    ("target shorter", {"s": b"a\nb\n", "t": b"a\n"}, [], "same number of lines"),
    ("target empty", {"s": b"a\nb\n", "t": b""}, [], "t has 0 lines"),
    ("both empty", {"s": b"", "t": b""}, [], "empty"),
    ("nothing left", {"s": b"\n\xff\n", "t": b"a\nb\n"}, [], "none of 2 lines remains after cleaning (empty: 1, not"),
    ("missing", {"s": b"a\n"}, [], "t: no such file"),
    ("truncated gz", {"s.gz": gzip.compress(b"abc\n" * 5000)[:40], "t": b"b\n"}, [], "damaged"),
    ("no gz", {"s.gz": b"abc\n", "t": b"b\n"}, [], "damaged"),
    ("no bz2", {"s.bz2": b"abc\n", "t": b"b\n"}, [], "damaged"),
    ("no xz", {"s.xz": b"abc\n", "t": b"b\n"}, [], "damaged"),
    ("damaged gz", {"s.gz": gzip.compress(b"abc\n")[:-6] + b"123456", "t": b"b\n"}, [], "damaged"),
    ("sgm without seg", {"s.sgm": b"just text\n", "t": b"b\n"}, [], "no <seg>"),
    ("sgm not closed", {"s.sgm": b"<seg>a</seg>\n<seg>b\n<seg>c</seg>", "t": b"b\n"}, [], "line 2"),
    ("sgm end missing", {"s.sgm": b"<seg>a</seg>\n<seg>b\n", "t": b"b\n"}, [], "line 2"),
    ("sgm truncated gz", {"s.sgm.gz": gzip.compress(SGM.encode())[:60], "t": b"b\n"}, [], "damaged"),
    (
        "UTF-16 without a byte order mark",
        {"s": "some text\n".encode("utf-16-le") * 99, "t": b"a\n"},
        [],
        "s: contains many NUL bytes",
    ),
    ("a tar archive", {"s": tar(), "t": b"a\n"}, [], "s: is a tar archive"),
    ("a packed tar archive", {"s.gz": gzip.compress(tar()), "t": b"a\n"}, [], "s.gz: is a tar archive"),
    ("a zip archive", {"s": b"PK\x03\x04" + bytes(50), "t": b"a\n"}, [], "s: is a zip archive; extract the text file"),
    ("zstd", {"s": ZSTD, "t": b"a\n"}, [], "s: is zstd-compressed; decompress it first"),
    ("zstd in gzip", {"s.gz": gzip.compress(ZSTD), "t": b"a\n"}, [], "s.gz: is zstd-compressed; decompress it first"),
    ("named as gzip", {"s.gz": ZSTD, "t": b"a\n"}, [], "s.gz: is zstd-compressed; decompress it first"),
    ("7z", {"s": b"7z\xbc\xaf\x27\x1c\0\4", "t": b"a\n"}, [], "s: is a 7z archive; extract the file first"),
    ("PDF", {"s": b"%PDF-1.4\na\n", "t": b"a\n"}, [], "s: is a PDF document; save its text in a text file"),
    (
        "RTF",
        {"s": b"{\\rtf1 a\n", "t": b"a\n"},
        [],
        "s: is a document in Rich Text Format; save its text in a text file",
    ),
    ("twice", {"s.gz": gzip.compress(bz2.compress(b"a\n")), "t": b"a\n"}, [], "s.gz: its content is compressed"),
    ("several sides", {"s.xml": SIDES, "t": b"a\n"}, [], "s.xml: contains source and references in one file"),
]


@pytest.mark.parametrize(("files", "options", "message"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_refused_with_one_error_line(
    work: Workplace, capsys: pytest.CaptureFixture[str], files: dict[str, bytes], options: list[str], message: str
) -> None:
    for name, content in files.items():
        (work.directory / name).write_bytes(content)
    names = [*files, "t"][:2]
    assert work.run(work.directory / names[0], work.directory / names[1], *options) == 2
    lines = capsys.readouterr().err.strip().split("\n")
    assert len(lines) == 1, lines
    assert lines[0].startswith("rnnsmt corpus prepare: error: ")
    assert message in lines[0]
    assert work.nothing_written(*files)


def test_a_pipe_is_refused(work: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    """Preparation reads a text three times, so that lines of a pipe would be lost."""
    os.mkfifo(work.directory / "pipe")
    assert work.run(work.directory / "pipe", None) == 2
    assert "pipe: is a pipe, but" in capsys.readouterr().err


LATIN = "Été à la mer\n".encode("latin-1")


@pytest.mark.parametrize("options", [[], ["--keep-all"]])
@pytest.mark.parametrize("bad", [4, 20, 40])
def test_another_encoding_is_refused(
    work: Workplace, capsys: pytest.CaptureFixture[str], options: list[str], bad: int
) -> None:
    """A file in another encoding is refused as a whole, on either side; the error names the share of invalid lines."""
    assert work.pair("The sea in summer\n" * 40, b"La mer\n" * (40 - bad) + LATIN * bad, *options) == 2
    (line,) = capsys.readouterr().err.strip().split("\n")
    share = f"t.fr: {bad} of 40 lines ({100 * bad // 40} %) are not valid UTF-8 (first: line {41 - bad}); "
    assert share in line
    assert "iconv -f ISO-8859-1 -t UTF-8" in line
    assert work.nothing_written("s.en", "t.fr")


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_few_bad_lines_are_counted_and_reported(
    work: Workplace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    small = lambda make, items, threads: map_chunks(make, items, threads, 13)  # noqa: E731
    monkeypatch.setattr("rnnsmt.corpus.preparation.map_chunks", small)
    text = b"La mer\n" * 150 + LATIN * 3 + b"La mer\n" * 50
    assert work.pair(text, text, "--threads", threads) == 0
    assert work.rejected() == {"not UTF-8": (3, [151, 152, 153])}
    lines = capsys.readouterr().err.strip().split("\n")
    assert lines[-1].startswith(
        "rnnsmt corpus prepare: done: s.en and t.fr: kept 200 of 203 lines, rejected 3 (not UTF-8: 3), repaired none, "
        "en tokens 400, fr tokens 400, "
    )
    assert lines[-2].endswith("t.fr: 3 of 203 lines are not UTF-8, the first is line 151; they were rejected")
    assert lines[-2].startswith("warning: ")


def test_what_the_decoder_cannot_take_is_refused(work: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    assert MAX_SEGMENT == MAX_WORDS
    assert work.pair("a\n" + "x " * 4001 + "\n", "a\nb\n", "--keep-all") == 2
    assert "s.en, line 2: more than 4000 words" in capsys.readouterr().err
    assert work.nothing_written("s.en", "t.fr")


def test_suspicious_test_sets_are_reported(work: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    assert work.pair("a\n" + "x " * 201 + "\n\n" + "a\n" * 200, "b\n" * 203, "--keep-all") == 0
    assert work.report["suspicious"] == {
        "more than 200 words": {"lines": 1, "first": [2]},
        "no words": {"lines": 1, "first": [3]},
    }
    warnings = [line for line in capsys.readouterr().err.split("\n") if line.startswith("warning: ")]
    assert [line.split("t.fr: ")[1] for line in warnings] == [
        "lines with more than 200 words: 1, the first is line 2",
        "lines with no words: 1, the first is line 3",
    ]


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("\n" * 30, [], "0 of 30 lines contain words, but at least 1 are required"),
        ("a\n" + "\n" * 29, ["--min-lines", "2"], "1 of 30 lines contain words, but at least 2 are required"),
    ],
)
def test_blank_sets_are_refused(
    work: Workplace, capsys: pytest.CaptureFixture[str], source: str, options: list[str], message: str
) -> None:
    assert work.pair(source, "b\n" * 30, "--keep-all", *options) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "s.en and" in error
    assert work.nothing_written("s.en", "t.fr")


def test_a_small_set_is_reported(work: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    assert work.pair("a\n" * 99, "b\n" * 99, "--keep-all") == 0
    assert "99 lines are a small dev or test set" in capsys.readouterr().err
    assert work.pair("a\n" * 99, "b\n" * 99) == 0
    assert "warning" not in capsys.readouterr().err


def test_languages_without_rules_are_reported(work: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    assert work.pair("a\n", "b\n", "--target-lang", "zz") == 0
    assert "warning: the tokeniser has no rules for the language zz" in capsys.readouterr().err
    assert work.pair("a\n", "b\n", "--target-lang", "zz", "--no-tokenize") == 0
    assert "warning" not in capsys.readouterr().err


def test_an_endless_test_line_is_refused(
    work: Workplace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rnnsmt.base.reading.MAX_LINE_BYTES", 1000)
    assert work.pair(b"x" * 2000, b"y\n", "--keep-all") == 2
    assert "s.en, line 1: longer than 1000 bytes" in capsys.readouterr().err
    assert work.nothing_written("s.en", "t.fr")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no input"),
        (["--source", "a"], "--source and --output-source must be used together"),
        (["--output-target", "a"], "--target and --output-target must be used together"),
        (["--source", "a", "--output-source", "a"], "every output must have a different name"),
        (["--source", "a", "--output-source", "r.json"], "every output must have a different name"),
        (["--source", "a", "--output-source", "b", "--target", "c", "--output-target", "b"], "a different name"),
    ],
)
def test_wrong_options(
    work: Workplace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(work.directory)
    for name in "ac":
        work.file(name, "x\n")
    assert main(["corpus", "prepare", *words, "--report", "r.json"]) == 2
    assert message in capsys.readouterr().err
    assert work.nothing_written("a", "c")


@pytest.mark.parametrize(
    ("names", "langs", "lacking"),
    [
        (["a.de", "a.cs.gz"], ["de", "cs"], ""),
        (["a", "b.txt"], [], "--source-lang and --target-lang"),
        (["a.de", "b.txt"], ["de"], "--target-lang"),
        (["a.cs"], ["cs"], ""),
        (["a"], [], "--source-lang"),
        (["p.tsv"], [], "--source-lang and --target-lang"),
    ],
)
def test_languages_are_those_of_the_files(
    work: Workplace, capsys: pytest.CaptureFixture[str], names: list[str], langs: list[str], lacking: str
) -> None:
    """Languages without an option are taken from the file names; an option is required for those without a name."""
    text = "eins\tjedna\n" if names == ["p.tsv"] else "eins zwei\n"
    paths = [str(work.file(name, text)) for name in names]
    inputs = ["--bitext", *paths] if names == ["p.tsv"] else ["--source", paths[0]]
    words = ["corpus", "prepare", *inputs, "--output-source", str(work.directory / "o.en")]
    words += ["--target", paths[1]] if len(paths) == 2 else []
    words += ["--output-target", str(work.directory / "o.fr")] if names not in (["a"], ["a.cs"]) else []
    assert main([*words, "--report", str(work.directory / "r.json")]) == (2 if lacking else 0)
    output = capsys.readouterr().err
    if lacking:
        assert f"{' and '.join(paths)}: cannot determine the languages; specify {lacking}\n" in output
    else:
        assert re.findall(r"\w\w(?= tokens)", output) == langs
