"""Files with both sides (zip archives, TMX, TSV), and the files that are refused."""

import bz2
import gzip
import io
import json
import lzma
import random
import time
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from rnnsmt.base.errors import InputError
from rnnsmt.cli import main
from rnnsmt.corpus.bitext_files import RawCorpus
from rnnsmt.registries import CORPUS_FORMATS

PAIRS = [(f"The {n} boats are red.", f"Les {n} bateaux « sont » rouges.") for n in range(300)]
ROWS = [(source.encode(), target.encode()) for source, target in PAIRS]


def tmx(pairs=PAIRS, head='<!DOCTYPE tmx SYSTEM "tmx14.dtd">', langs=("en", "fr"), attribute="xml:lang") -> str:
    units = "".join(
        "<tu><prop type='x'>p</prop>"
        + "".join(f"<tuv {attribute}='{lang}'><seg>{text}</seg></tuv>" for lang, text in zip(langs, pair, strict=True))
        + "</tu>\n"
        for pair in pairs
    )
    return f"<?xml version='1.0'?>\n{head}\n<tmx version='1.4'><header/><body>\n{units}</body></tmx>\n"


def tsv(pairs=PAIRS) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def side(number: int) -> str:
    return "".join(f"{pair[number]}\n" for pair in PAIRS)


def zipped(members: dict[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.writestr("all/", b"")
    return out.getvalue()


OPUS = {
    "README": "read",
    "LICENSE": "free",
    "Books.en-fr.en": side(0),
    "Books.en-fr.fr": side(1),
    "Books.en-fr.xml": "",
}

JUNK = {
    "__MACOSX/._Books.en-fr.en": b"\0\5\x16\7",
    "__MACOSX/._Books.en-fr.fr": b"\0\5\x16\7",
    ".DS_Store": b"Bud1",
    "a/._en-fr.tmx": b"\0\5\x16\7",
    "a/Thumbs.db": b"\xd0\xcf\x11\xe0",
}
"""Files that macOS and Windows add to archives."""


def rows(path: Path, content: bytes | str, limit: int | None = None, **settings) -> list:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(RawCorpus((str(path),), ("en", "fr"), **settings).rows(limit))


@pytest.mark.parametrize(
    ("content", "settings"),
    [
        (zipped(OPUS), {}),
        (zipped(OPUS, zipfile.ZIP_STORED), {}),
        (zipped(OPUS, zipfile.ZIP_BZIP2), {}),
        (zipped({"a/train.eng.txt": side(0), "a/train.fra.txt": side(1)}), {}),
        (zipped({"a.1": side(0), "b.2": side(1), "c.en": "", "c.fr": ""}), {"members": ("a.1", "b.2")}),
        (zipped({"README": "r", "en-fr.tmx": tmx()}), {}),
        (zipped({"pairs.tsv": tsv()}), {}),
        (zipped(JUNK | OPUS), {}),
        (zipped(JUNK | {"a/en-fr.tmx": tmx()}), {}),
        (tmx(), {}),
        (tmx(head=""), {}),
        (tmx(langs=("en-GB", "FR_ca")), {}),
        (tmx(langs=("eng", "FRA"), attribute="lang"), {}),
        (tmx(langs=("fr", "en"), pairs=[pair[::-1] for pair in PAIRS]), {}),
        ("\ufeff" + tmx(), {}),
        ("<!-- <a> --> <!---->\n" + tmx().partition("\n")[2], {}),
        (tmx().replace("version='1.0'", "version='1.0' encoding='UTF-16'").encode("utf-16"), {}),
        (gzip.compress(tmx().encode()), {}),
        (tsv(), {}),
        ("\ufeff" + tsv(), {}),
        (tsv().replace("\n", "\r\n"), {}),
        (tsv().removesuffix("\n"), {}),
        *(
            (f"{header}\n{tsv()}", {})
            for header in (
                "en\tfr",
                "\ufeffEN\tfr-FR",
                "English\tFrench",
                '"src"\t"tgt"',
                "sentence1\tsentence2",
                "text_a\ttext_b",
                "Original\tTranslation",
            )
        ),
        ("".join(f"x\t{fr}\t{en}\n" for en, fr in [("source", "target"), *PAIRS]), {"columns": (3, 2)}),
        (gzip.compress(tsv().encode()), {}),
        (bz2.compress(tsv().encode()), {}),
        (lzma.compress(tsv().encode()), {}),
        ("".join(f"http://x\t{target}\t0.9\t{source}\n" for source, target in PAIRS), {"columns": (4, 2)}),
    ],
)
def test_formats(tmp_path: Path, content: bytes | str, settings: dict) -> None:
    """The format is detected from the content and not from the file name."""
    assert rows(tmp_path / "corpus", content, **settings) == ROWS


def test_segments_of_a_tmx(tmp_path: Path) -> None:
    """Inline codes and further variants in TMX are removed; highlighted text is kept; a segment is one line."""
    body = (
        "<tu><tuv xml:lang='en'><seg>a <bpt i='1'>&lt;b></bpt><hi>b\n\t c</hi><ept i='1'>&lt;/b></ept> &amp;"
        "<![CDATA[<d>]]> <ph>x<sub>s</sub></ph>e &eacute;</seg></tuv><tuv xml:lang='fr'><seg> z </seg></tuv>"
        "<tuv xml:lang='fr-CA'><seg>second</seg></tuv><tuv xml:lang='de'><seg>w</seg></tuv></tu>"
        "<tu><tuv xml:lang='en'><seg>without the other</seg></tuv></tu>"
    )
    content = f"<!DOCTYPE tmx SYSTEM 'tmx14.dtd'><tmx><body>{body}</body></tmx>"
    assert rows(tmp_path / "t", content) == [("a b  c &<d> e é".encode(), b"z")]


def test_long_segments(tmp_path: Path) -> None:
    """A segment above the limit is returned as None, so that the other side keeps its line number."""
    pairs = [("a", "b"), ("x" * 50, "b"), ("a", "y" * 50), ("c", "d")]
    expected = [(b"a", b"b"), (None, b"b"), (b"a", None), (b"c", b"d")]
    sides = {"t.en": "".join(f"{pair[0]}\n" for pair in pairs), "t.fr": "".join(f"{pair[1]}\n" for pair in pairs)}
    for content in (tmx(pairs), tsv(pairs), zipped(sides)):
        assert rows(tmp_path / "t", content, limit=20) == expected


def test_lines_that_lack_a_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A few lines without a tab have an empty target side; a file of such lines is refused."""
    assert rows(tmp_path / "t", "a\tb\nlone\nc\td\n") == [(b"a", b"b"), (b"lone", b""), (b"c", b"d")]
    assert "t: 1 lines have fewer than 2 columns; the first such line is 2" in capsys.readouterr().err
    for content in ("one\n" * 500, "one\n"):
        with pytest.raises(InputError, match="have fewer than 2 columns separated by tabs; specify a TSV file"):
            rows(tmp_path / "t", content)


ENTITIES = "".join(f"<!ENTITY {b} '{f'&{a};' * 10}'>" for a, b in ["ab", "bc", "cd", "de", "ef", "fi"])
LAUGHS = (
    f"<!DOCTYPE tmx [<!ENTITY a 'ha'>{ENTITIES}]>"
    "<tmx><body><tu><tuv xml:lang='en'><seg>&i;</seg></tuv></tu></body></tmx>"
)
EXTERNAL = "<!DOCTYPE tmx [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><tmx><body><tu><seg>&e;</seg></tu></body></tmx>"
DEFAULTS = "<!DOCTYPE tmx [<!ATTLIST tuv x CDATA 'xxxxx'>]><tmx><body></body></tmx>"


@pytest.mark.parametrize(
    ("content", "settings", "message"),
    [
        (LAUGHS, {}, "line 1: the document type declares entities"),
        (EXTERNAL, {}, "line 1: the document type declares entities"),
        (DEFAULTS, {}, "line 1: the document type declares entities"),
        (tmx([("&e;", "b")]), {}, "line 4: undefined entity e"),
        (tmx([("&e;", "b")], head=""), {}, "line 4: not well-formed XML (undefined entity)"),
        (tmx()[:-20], {}, "not well-formed XML (no element found)"),
        (tmx().replace("</seg>", "</sag>", 1), {}, "line 4: not well-formed XML (mismatched tag)"),
        (tmx([("\x00", "b")]), {}, "line 4: not well-formed XML (not well-formed (invalid token))"),
        (tmx([("é", "b")]).encode("latin-1"), {}, "line 4: not well-formed XML"),
        (tmx().replace("'1.0'", "'1.0' encoding='x-none'"), {}, "unknown encoding"),
        (tmx().replace("'1.0'", "'1.0' encoding='shift_jis'"), {}, "unsupported encoding"),
        (tmx(langs=("de", "es")), {}, "none of 300 translation units has en and fr; available: de, es"),
        (tmx([]), {}, "none of 0 translation units has en and fr; available: none"),
        (
            tmx().replace("seg>", "segment>"),
            {},
            "none of 300 translation units has a <seg> in en and one in fr; repair",
        ),
        (tmx([("&#x1F;", "b")]), {}, "invalid character number); repair this line, or convert the file"),
        ("<tmx>" + "<a>" * 200, {}, "nested too deeply"),
        ("<tmx>" + "".join(f"<a{n}/>" for n in range(2000)), {}, "nested too deeply"),
        ("<?xml version='1.0'?><html><body/></html>", {}, "is XML, but not TMX"),
        (gzip.compress(tmx().encode())[:-40], {}, "damaged"),
        (tsv(), {"members": ("a", "b")}, "is not a zip archive; remove members"),
        ("a\tb\n" + "x" * (1 << 24) + "x\n", {}, "line 2: longer than 16777216 bytes"),
        ("".join(f"{line}\n" for line in side(0)).encode("utf-16"), {}, "is UTF-16 or UTF-32, not UTF-8"),
        (zipped({"a.en": "1\n2\n3\n", "a.fr": "1\n"}), {}, "a.fr has 1 lines, but"),
        (
            zipped({"a.en": "1\n", "b.fr": "1\n"}),
            {},
            "contains no pair of text files NAME.en and NAME.fr",
        ),
        (zipped({f"{n}.{c}": "1\n" for n in "ab" for c in ("en", "fr")}), {}, "2 pairs of text files NAME.en and"),
        (zipped({"a.tmx": "", "b.tmx": ""}), {}, "files: a.tmx, b.tmx; extract them"),
        (zipped({}), {}, "no pair of text files NAME.en and NAME.fr"),
        (zipped({"[Content_Types].xml": "", "xl/workbook.xml": ""}), {}, "is a spreadsheet; save it as tab-separated"),
        (zipped({"mimetype": "", "content.xml": "", "META-INF/manifest.xml": ""}), {}, "is an OpenDocument file; save"),
        (zipped({"word/document.xml": ""}), {}, "is a document of an office program; save its text"),
        ("# id\ten_text\tsentence_fra\n" + tsv(), {}, "the header names columns 2 3; select them with --columns 2 3"),
        ("fr\ten\n" + tsv(), {}, "the header names the columns in the other order; exchange the languages"),
        ("Target\tSource\n" + tsv(), {}, "or select the columns with --columns 2 1"),
        (zipped(OPUS), {"members": ("a", "b")}, "the archive contains no file a; available: "),
        (zipped(OPUS, zipfile.ZIP_LZMA), {}, "Books.en-fr.en uses an unsupported compression method"),
        (zipped({"a.en": gzip.compress(b"1\n"), "a.fr": "1\n"}), {}, "a.en: is compressed inside the archive"),
        (zipped(OPUS)[:-10], {}, "damaged"),
        (b"PK\x03\x04" + bytes(60), {}, "damaged"),
        (b"", {}, None),
    ],
)
def test_refusals(tmp_path: Path, content: bytes | str, settings: dict, message: str | None) -> None:
    if message is None:
        assert rows(tmp_path / "t", content, **settings) == []
        return
    with pytest.raises(InputError) as error:
        rows(tmp_path / "t", content, **settings)
    assert message in str(error.value)
    assert str(tmp_path / "t") in str(error.value)


def test_encrypted_and_damaged_members(tmp_path: Path) -> None:
    content = bytearray(zipped(OPUS, zipfile.ZIP_STORED))
    place = content.index(b"The 7 boats")
    content[place] ^= 1
    with pytest.raises(InputError, match=r"damaged after line .*Bad CRC-32"):
        rows(tmp_path / "t", bytes(content))
    content = bytearray(zipped({"a.en": "1\n", "a.fr": "1\n"}))
    content[content.index(b"PK\x01\x02") + 8] |= 1  # general purpose flag in the central directory
    content[content.index(b"PK\x03\x04") + 6] |= 1
    with pytest.raises(InputError, match=r"a\.en is encrypted; extract it"):
        rows(tmp_path / "t", bytes(content))


def test_small_files_that_unpack_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rnnsmt.base.opening.ALWAYS_UNPACKED", 1 << 20)
    line = "x" * 1000 + "\n"
    for content in (
        zipped({"a.en": line * 9000, "a.fr": line * 9000}),
        gzip.compress((line[:-1] + "\t" + line).encode() * 5000),
        gzip.compress(tmx([("x" * 1000, "y" * 1000)] * 5000).encode()),
    ):
        with pytest.raises(InputError, match="expands to more than 100 times its size"):
            rows(tmp_path / "t", content)


@pytest.mark.parametrize("start", ["<tmx><!--", "<tmx x='", "<tmx><body><tu><tuv xml:lang='en'><seg>", "<tmx><?"])
def test_an_endless_item_takes_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str) -> None:
    monkeypatch.setattr("rnnsmt.corpus.tmx.MAX_LINE_BYTES", 1 << 20)
    path = tmp_path / "t"
    path.write_bytes(start.encode() + b"x" * (1 << 25))
    tracemalloc.start()
    with pytest.raises(InputError, match="than 1048576"):
        list(RawCorpus((str(path),), ("en", "fr")).rows())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20


def test_a_long_file_is_a_stream(tmp_path: Path) -> None:
    """A long compressed file is read as a stream, in less than 2 MiB of memory."""
    path = tmp_path / "t.gz"
    with gzip.open(path, "wt", 1) as out:
        head, body, tail = tmx([("a", "b")]).partition("<tu>")
        out.write(head)
        for number in range(12_000):
            out.write(
                f"<tu><tuv xml:lang='en'><seg>boat {number}</seg></tuv><tuv xml:lang='fr'><seg>b</seg></tuv></tu>"
            )
        out.write("</body></tmx>")
    assert body and tail
    tracemalloc.start()
    count = sum(1 for _ in RawCorpus((str(path),), ("en", "fr")).rows())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 12_000
    assert peak < 2 << 20


@pytest.mark.parametrize("content", [tmx(PAIRS[:20]).encode(), tsv(PAIRS[:20]).encode(), zipped(OPUS)])
def test_random_damage(tmp_path: Path, content: bytes) -> None:
    """A file with random bytes changed, cut or repeated gives rows or an error of one line, in limited time."""
    source = random.Random(3)
    begin = time.process_time()
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(source.randint(1, 8)):
            place = source.randrange(len(damaged))
            match source.randrange(3):
                case 0:
                    damaged[place] = source.randrange(256)
                case 1:
                    del damaged[place : place + source.randrange(1, 40)]
                case _:
                    damaged[place:place] = damaged[place : place + 40] * source.randrange(1, 5)
        try:
            rows(tmp_path / "t", bytes(damaged))
        except InputError as error:
            assert "\n" not in str(error)
    assert time.process_time() - begin < 30


LANGUAGES = ["--source-lang", "en", "--target-lang", "fr"]


def test_prepare_and_separate(tmp_path: Path) -> None:
    """`prepare --bitext` writes the same files as `separate` followed by `prepare`."""
    path = tmp_path / "en-fr.txt.zip"
    path.write_bytes(zipped(OPUS))

    def outputs(name: str) -> list[str]:
        return ["--output-source", str(tmp_path / f"{name}.en"), "--output-target", str(tmp_path / f"{name}.fr")]

    assert main(["corpus", "separate", "--bitext", str(path), *LANGUAGES, *outputs("raw")]) == 0
    assert (tmp_path / "raw.en").read_text() == side(0)
    report = ["--report", str(tmp_path / "r.json")]
    sides = ["--source", str(tmp_path / "raw.en"), "--target", str(tmp_path / "raw.fr")]
    assert main(["corpus", "prepare", *sides, *LANGUAGES, *outputs("two"), *report]) == 0
    assert main(["corpus", "prepare", "--bitext", str(path), *LANGUAGES, *outputs("one"), *report]) == 0
    for code in ("en", "fr"):
        assert (tmp_path / f"one.{code}").read_bytes() == (tmp_path / f"two.{code}").read_bytes()
    about = json.loads((tmp_path / "r.json").read_text())
    assert [entry["path"] for entry in about["inputs"]] == [str(path)]
    assert (about["lines"], about["kept"]) == (300, 300)


def test_held_out_lines_and_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every line is in one of two parts, in its order; a line that the corpus does not have is an error."""
    (tmp_path / "a.en").write_text("".join(f"line {n}\n" for n in range(1, 8)))
    (tmp_path / "a.fr").write_text("".join(f"ligne {n}\n" for n in range(1, 8)))

    def separated(files: list[str], *selection: str) -> list[str]:
        outputs = [f"--output-{name}={tmp_path}/out.{name}" for name in ("source", "target")]
        paths = [str(tmp_path / name) for name in files]
        if main(["corpus", "separate", "--bitext", *paths, *LANGUAGES, *outputs, *selection]):
            return []
        return [(tmp_path / f"out.{name}").read_text() for name in ("source", "target")]

    assert separated(["a.en", "a.fr"], "--lines", "5", "2") == ["line 2\nline 5\n", "ligne 2\nligne 5\n"]
    others = ["".join(f"{word} {n}\n" for n in (1, 3, 4, 6, 7)) for word in ("line", "ligne")]
    assert separated(["a.en", "a.fr"], "--without-lines", "5", "2") == others
    assert separated(["a"], "--without-lines", "2", "5") == others
    for option in ("--lines", "--without-lines"):
        assert separated(["a.en", "a.fr"], option, "2", "8") == []
        said = capsys.readouterr().err
        assert "a.fr: has 7 lines, but line 8 is selected" in said
        assert not (tmp_path / "out.part").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bitext", "t", "--source", "s"], "--bitext cannot be combined with --source or --target"),
        (["--bitext", "t", *LANGUAGES, "--columns", "2", "2"], "source and target have the same column, 2"),
        (["--bitext", "t", *LANGUAGES, "--members", "a", "a"], "source and target have the same member, a"),
        (
            ["--bitext", "t", "--source-lang", "en", "--target-lang", "en"],
            "source and target have the same language, en",
        ),
        (["--bitext", "t", "--target-lang", "en"], "t: cannot determine the languages; specify --source-lang"),
    ],
)
def test_refused_options(tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str) -> None:
    outputs = [
        "--output-source",
        f"{tmp_path}/o.en",
        "--output-target",
        f"{tmp_path}/o.fr",
        "--report",
        f"{tmp_path}/r",
    ]
    assert main(["corpus", "prepare", *options, *outputs]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


FILES = {"tmx": tmx, "tsv": tsv}
"""A function for every format of this package that returns the text of a file with pairs."""


@pytest.mark.parametrize("name", CORPUS_FORMATS)
@pytest.mark.parametrize("format", [None, "named"])
def test_of_all_corpus_formats(tmp_path, name, format):
    """Pairs come back from a file, a compressed file and a zip archive; one pair; no pair is empty or refused."""
    settings = {"format": name if format else None}
    path, text = tmp_path / f"c.{name}", FILES[name]()
    contents = [text, gzip.compress(text.encode()), bz2.compress(text.encode()), lzma.compress(text.encode())]
    contents.append(zipped({f"x/c.{name}": text, "README": "read", **JUNK}))
    for content in contents:
        if content is contents[-1]:
            path = tmp_path / "c.zip"
        assert rows(path, content, **settings) == ROWS
    assert rows(tmp_path / f"one.{name}", FILES[name](PAIRS[:1]), **settings) == ROWS[:1]
    try:
        assert rows(tmp_path / f"none.{name}", FILES[name]([]), **settings) == []
    except InputError as error:
        assert f"none.{name}" in str(error)
    with pytest.raises(InputError, match=r"cut.*damaged"):
        rows(tmp_path / f"cut.{name}", gzip.compress(text.encode())[:-12], **settings)


def test_the_documented_table_has_all_formats():
    page = (Path(__file__).resolve().parents[3] / "docs/corpus.md").read_text(encoding="utf-8")
    for name in CORPUS_FORMATS:
        assert f"\n| {name.upper()}" in page


def test_a_format_that_is_named_is_not_recognised(tmp_path):
    """TMX that is named is no table, and an archive must contain one file of the format."""
    with pytest.raises(InputError, match=r"line 1: not well-formed XML"):
        rows(tmp_path / "a", tsv(), format="tmx")
    archive = zipped({"a.tsv": tsv(), "b.tmx": tmx()})
    assert rows(tmp_path / "a.zip", archive, format="tmx") == rows(tmp_path / "a.zip", archive, format="tsv") == ROWS
    with pytest.raises(InputError, match=r"contains 0 files of the format tmx; available: a\.tsv"):
        rows(tmp_path / "a.zip", zipped({"a.tsv": tsv()}), format="tmx")


def separate(directory: Path, bitext: Path, *options: str) -> int:
    words = ["corpus", "separate", "--bitext", str(bitext), *options]
    return main([*words, "--output-source", str(directory / "o.en"), "--output-target", str(directory / "o.fr")])


def test_the_documented_format_of_another_package(tmp_path, capsys, other_package, documented):
    lines = [json.dumps({"en": source, "fr": target.replace(" ", "\n", 1)}) for source, target in PAIRS]
    text = "\n".join([*lines, ""])
    plain, archive = tmp_path / "a.ljson", tmp_path / "a.zip"
    plain.write_bytes(gzip.compress(text.encode()))
    archive.write_bytes(zipped({"x.ljson": text, "README": "read"}))
    with pytest.raises(SystemExit):
        separate(tmp_path, plain, "--format", "ljson")
    assert f"--format: ljson: must be {', '.join(CORPUS_FORMATS)}, or the name of a corpus" in capsys.readouterr().err
    other_package(CORPUS_FORMATS, "ljson", "LanguageJson", documented("A corpus format"))
    for path in (plain, archive):  # the languages are those of the file
        assert separate(tmp_path, path, "--format", "ljson") == 0
        assert (tmp_path / "o.en").read_text() == side(0)
        assert (tmp_path / "o.fr").read_text() == side(1), "a line break in a segment is a space"
    assert separate(tmp_path, plain, "--source-lang", "fr", "--target-lang", "en", "--format", "ljson") == 0
    assert (tmp_path / "o.en").read_text() == side(1), "the source"
    (tmp_path / "o.en").unlink()
    capsys.readouterr()
    languages = ["--source-lang", "en", "--target-lang", "fr"]
    assert separate(tmp_path, plain, *languages) == 2, "it is used only if it is named"
    assert separate(tmp_path, plain, *languages, "--format", "ljson", "--members", "a", "b") == 2
    assert "--format is that of one file" in capsys.readouterr().err
    for content, says in (
        (text[:-20], "damaged after line 299"),
        (text + '{"en": "x"}\n', "damaged after line 300 (no 'fr')"),
        (gzip.compress(text.encode())[:-12], "damaged after line"),
        (text.encode() + b'{"en": "x", "fr": 3}\n', "ljson of other-ljson 1.2 yields ('x', 3) as row 301"),
    ):
        plain.write_bytes(content.encode() if isinstance(content, str) else content)
        assert separate(tmp_path, plain, *languages, "--format", "ljson") == 2
        error = capsys.readouterr().err
        assert says in error
        assert "a.ljson" in error
        assert not (tmp_path / "o.en").exists()


def test_a_format_whose_files_are_zip_archives(tmp_path, other_package):
    code = (
        "import zipfile\nfrom rnnsmt.corpus.corpus_format import CorpusFormat\n"
        "class Pack(CorpusFormat):\n    suffixes = ('.pack',)\n"
        "    def rows(self, stream, name, langs, columns):\n"
        "        texts = [zipfile.ZipFile(stream).read(lang).splitlines() for lang in langs]\n"
        "        yield from zip(*texts)\n"
    )
    other_package(CORPUS_FORMATS, "pack", "Pack", code)
    assert rows(tmp_path / "a.pack", zipped({"en": side(0), "fr": side(1)}), format="pack") == ROWS
