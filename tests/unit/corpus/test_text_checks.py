"""Checks for another language, swapped sides and tables: warnings, and no false alarms."""

import gzip
import lzma
import re
import sys
from itertools import islice
from pathlib import Path

import pytest

from rnnsmt.base.errors import InputError
from rnnsmt.base.reading import read_lines
from rnnsmt.cli import main
from rnnsmt.corpus.bitext_files import RawCorpus
from rnnsmt.corpus.sample import _identifier, content_warnings, refuse_columns

GERMAN = (
    """Der Hund läuft mit dem Ball über die Wiese und bellt .
Eine Frau in einem roten Kleid steht auf der Straße und wartet auf den Bus .
Die Kinder spielen im Garten , weil das Wetter heute schön ist .
Er hat das Buch nicht gelesen , aber er kennt die Geschichte von seinem Vater .
Zwei Männer sitzen an einem Tisch und trinken Kaffee aus kleinen Tassen .
Es gibt für die Stadt auch einen neuen Plan , der den Verkehr in der Mitte verringern soll .""".splitlines()
    * 4
)
"""Sentences written for this test."""

CROATIAN = [
    "Kuća se nalazi uz more i ljeti ovamo dolazi mnogo ljudi na kupanje .",
    "Nije ga vidjela od jučer , ali misli da je kod kuće .",
    "Moramo kupiti kruh i mlijeko prije nego što se trgovina zatvori .",
] * 6
"""Text that could be Bosnian or Serbian."""

REAL = [
    *(f"multi30k/{name}" for name in ("train", "val", "test_2016_flickr")),
    *(f"mini-wmt/{name}" for name in ("laws", "tatoeba", "python-docs", "news0811", "newstest2014")),
    *(f"laws10m/{name}" for name in ("dev", "train")),
]


def real(shared_dir: Path, name: str, lang: str) -> list[str]:
    """Return the first 500 lines of a real text."""
    (path,) = (shared_dir / "data").glob(f"{name}.{lang}.*")
    return list(islice(read_lines(path), 500))


@pytest.mark.parametrize("name", REAL)
def test_real_text(shared_dir, name):
    """Real texts of several domains cause no warning in the right order and an error if swapped."""
    english, french = (real(shared_dir, name, lang) for lang in ("en", "fr"))
    assert list(content_warnings(RawCorpus(("a", "b"), ("en", "fr")), [english, french])) == []
    with pytest.raises(InputError, match=r"^source and target look swapped: a looks like fr and b"):
        list(content_warnings(RawCorpus(("a", "b"), ("en", "fr")), [french, english]))
    assert list(content_warnings(RawCorpus(("a", "b"), ("en", "de")), [english, french])) == [
        "b: looks like fr, but the language of this side is de; check the file and languages"
    ]


def warned(langs: list[str], *samples: list[str]) -> list[str]:
    return list(content_warnings(RawCorpus(("a", "b")[: len(langs)], tuple(langs)), samples))


def test_doubtful_cases():
    """No warning for short text, text without words, and languages that py3langid confuses or does not know."""
    assert warned(["en"], GERMAN) == [
        "a: looks like de, but the language of this side is en; check the file and languages"
    ]
    assert warned(["en"], [line.upper() for line in GERMAN]) != []
    for lang, text in (("de", GERMAN), ("en", GERMAN[:3]), ("hsb", GERMAN), ("sr", CROATIAN), ("bs", CROATIAN)):
        assert warned([lang], text) == []
    for text in (["foo bar baz"] * 500, ["x1 y2 QQ-33"] * 500):
        assert warned(["en", "gl"], text, text) == []


def test_without_py3langid(monkeypatch, capsys, tmp_path):
    """`corpus check` says that the languages are not checked."""
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    monkeypatch.setattr("rnnsmt.corpus.sample._identifier", _identifier.__wrapped__)
    assert warned(["en"], GERMAN) == []
    monkeypatch.setattr("rnnsmt.corpus.findings.find_spec", lambda _: None)
    (tmp_path / "a.en").write_text("".join(f"{line} {number}\n" for number, line in enumerate(GERMAN)))
    assert main(["corpus", "check", "--corpus", f"a=mono={tmp_path}/a.en", "--target-lang", "en"]) == 0
    assert (
        "the languages are not checked, because py3langid (extra `check`) is not installed" in capsys.readouterr().err
    )


@pytest.mark.parametrize(("name", "opener"), [("t.tsv", open), ("t.gz", gzip.open)])
def test_a_table_is_refused(tmp_path, name, opener):
    path = tmp_path / name
    with opener(path, "wt") as out:
        out.write("".join(f"line {i}\tligne {i}\n" for i in range(30)))
    with pytest.raises(InputError, match=r"30 of the first 30 lines contain a tab.*use the key `file` in"):
        refuse_columns(str(path))


def test_tabs_in_some_lines_are_no_table(tmp_path):
    path = tmp_path / "text.en.xz"
    with lzma.open(path, "wt") as out:
        out.write("".join(f"\tline {i}\t\n" for i in range(30)) + "a\tb\n" * 3)
    refuse_columns(str(path))


def test_a_stage_prints_the_warnings(tmp_path, capsys):
    """`corpus prepare` prints the warnings and writes its output."""
    text, other = tmp_path / "a.en", tmp_path / "b.fr"
    text.write_text("\n".join(GERMAN) + "\n")
    other.write_text("le chat est dans la maison et il ne sort pas de la cuisine .\n" * len(GERMAN))
    outputs = [f"--output-source={tmp_path}/o.en", f"--output-target={tmp_path}/o.fr", f"--report={tmp_path}/r"]
    assert main(["corpus", "prepare", f"--source={text}", f"--target={other}", *outputs, "--keep-all"]) == 0
    assert f"warning: {text}: looks like de, but the language of this side is en" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "found", "tokens_may"),
    [
        (lambda line: line.replace("er", "e@@ r"), "@@", True),
        (lambda line: " ".join(f"▁{word}" for word in line.split()), "▁", True),
        (lambda line: line.replace(" .", " ￭."), "￭", True),
        (lambda line: line.replace(" .", " &quot; &#46;"), "&quot;", True),
        (lambda line: line.replace("ü", "&uuml;") + " AT&amp;T", "&quot;", True),
        (lambda line: " ".join(f"{word}|X" for word in line.split()), "word|tag", False),
        (lambda line: f">>deu<< {line}", ">>fra<<", False),
        (lambda line: f"<s> {line} </s>", "tags", False),
        (lambda line: f"00:00:02,000 --> 00:00:05,400 {line}", "subtitles", False),
        (lambda line: line.replace(" .", "-"), "hyphen", False),
        (lambda line: re.sub(r"\b(\w{3})(\w{3})", r"\1- \2", line, count=1), "hyphen", False),
        (lambda line: f"{line} é€".encode().decode("cp1252"), "Ã©", False),
        (lambda line: f"{line} à".encode().decode("latin-1"), "Ã©", False),
    ],
)
def test_traces_of_other_programs(change, found: str, tokens_may: bool) -> None:
    corpus, lines = RawCorpus(("a",), ("de",)), [change(line) for line in GERMAN]
    (warning,) = content_warnings(corpus, [lines])
    assert warning.startswith("a: ") and found in warning
    assert [*content_warnings(corpus, [lines], tokenize=False)] == ([] if tokens_may else [warning])
    assert not [*content_warnings(corpus, [[*GERMAN * 20, *lines]])]  # a few lines


def test_hyphens_of_compounds_are_no_trace() -> None:
    lines = [f"Haupt- und Nebensätze, {line}" for line in GERMAN]
    assert not [*content_warnings(RawCorpus(("a",), ("de",)), [lines])]


def test_text_without_language() -> None:
    lines = [" ".join(str((7919 * k + 104729 * n) % 32000) for k in range(8)) for n in range(400)]
    assert "not text of a language" in next(iter(content_warnings(RawCorpus(("a",), ("de",)), [lines])))
