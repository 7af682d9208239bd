"""Checks for another language, swapped sides and tables: warnings, and no false alarms."""

import gzip
import lzma
from itertools import islice
from pathlib import Path

import pytest

from rnnsmt.base.io import InputError, read_lines
from rnnsmt.cli import main
from rnnsmt.corpus.check import FUNCTION_WORDS, language_warnings, refuse_columns, unknown_words_warning

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
    assert list(language_warnings(["a", "b"], ["en", "fr"], [english, french])) == []
    with pytest.raises(InputError, match=r"^source and target look swapped: a looks like fr and b"):
        list(language_warnings(["a", "b"], ["en", "fr"], [french, english]))
    assert list(language_warnings(["a", "b"], ["en", "de"], [english, french])) == [
        "b: looks like fr, but the language of this side is de; check the file and languages"
    ]
    # Galician has no function words here: the sides are compared
    assert list(language_warnings(["a", "b"], ["gl", "fr"], [english, french])) == []
    assert len(list(language_warnings(["a", "b"], ["gl", "en"], [english, french]))) == 2


def test_words_of_dev_that_training_lacks(shared_dir):
    training = {word.lower(): 1 for line in real(shared_dir, "multi30k/train", "en") for word in line.split()}
    assert unknown_words_warning("dev", real(shared_dir, "multi30k/val", "en"), training, "truecaser.en") is None
    warning = unknown_words_warning("dev", real(shared_dir, "multi30k/val", "fr"), training, "truecaser.en")
    assert warning is not None and warning.startswith("dev: 97 %") and "are source and target swapped" in warning


def test_no_warning_in_doubtful_cases():
    mixed = [*GERMAN, *["the house of the dog is in the garden and he was there ."] * 12]
    assert list(language_warnings(["a"], ["en"], [GERMAN])) == [
        "a: looks like de, but the language of this side is en; check the file and languages"
    ]
    for lang, text in (("de", GERMAN), ("en", GERMAN[:3]), ("gl", GERMAN), ("en", mixed)):
        assert list(language_warnings(["a"], [lang], [text])) == []
    for text in (["1 2 3 4"] * 500, ["foo bar baz"] * 500):
        assert list(language_warnings(["a", "b"], ["en", "gl"], [text, text])) == []


def test_function_words():
    assert all(code.isalpha() and len(code) == 2 for code in FUNCTION_WORDS)
    assert all(len(set(words.split())) > 20 for words in FUNCTION_WORDS.values())


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


def test_stages_print_the_warnings(tmp_path, capsys):
    """`corpus prepare` and `corpus truecase` print the warnings and write their output."""
    text, other = tmp_path / "a.en", tmp_path / "b.fr"
    text.write_text("\n".join(GERMAN) + "\n")
    other.write_text("le chat est dans la maison et il ne sort pas de la cuisine .\n" * len(GERMAN))
    outputs = [f"--output-source={tmp_path}/o.en", f"--output-target={tmp_path}/o.fr", f"--report={tmp_path}/r"]
    assert main(["corpus", "prepare", f"--source={text}", f"--target={other}", *outputs, "--keep-all"]) == 0
    assert f"warning: {text}: looks like de, but the language of this side is en" in capsys.readouterr().err
    (tmp_path / "model").write_text("".join(f"word{i} (1/1)\n" for i in range(1000)))
    truecase = ["corpus", "truecase", f"--model={tmp_path}/model", f"--input={text}", f"--output={tmp_path}/t"]
    assert main(truecase) == 0
    assert f"warning: {text}: 100 % of the words do not occur in the training text of" in capsys.readouterr().err
