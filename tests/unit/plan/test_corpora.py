"""Messages on the files of corpora before a run."""

from dataclasses import replace
from pathlib import Path

import pytest

from rnnsmt.config.corpus_entry import CorpusEntry, Download, Downloads, HeldOut, Members
from rnnsmt.config.sections import Languages
from rnnsmt.plan.corpora import (
    corpora_of,
    file_mistakes,
    files_of,
    input_files,
    language_warnings,
    missing_files,
    similar_file,
)

LANGUAGES = Languages(source="en", target="fr")


def corpora(data_dir: Path | None, source: str, target: str, name: str = "mine"):
    entry = CorpusEntry(name=name, role="bitext", source=source, target=target)
    return corpora_of([entry], LANGUAGES, None if data_dir is None else str(data_dir))


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("val.EN", "val.en"),
        ("val.en.gz", "val.en"),
        ("train.fr", "train.fr.xz"),
        ("Train.fr.gz", "train.fr.xz"),
        ("valid.en", "val.en"),
        ("other.txt", None),
    ],
)
def test_similar_names(tmp_path, asked, meant):
    """The suggested file differs in case or compression, otherwise in a few letters; directories are not suggested."""
    for name in ("val.en", "val.de", "train.en.gz", "train.fr.xz"):
        (tmp_path / name).touch()
    (tmp_path / "other").mkdir()
    assert similar_file(str(tmp_path / asked)) == meant
    assert similar_file(str(tmp_path / "no" / asked)) is None


def test_missing_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.en").touch()
    lines = list(missing_files(corpora(tmp_path, "train.en.gz", "a/x.fr"), str(tmp_path)))
    assert lines == [
        f"corpora[0] (mine): source: {tmp_path}/train.en.gz does not exist; did you mean train.en?",
        f"corpora[0] (mine): target: {tmp_path}/a/x.fr does not exist; check the name and data_dir (now {tmp_path})",
    ]
    (line,) = missing_files(corpora(None, "train.en", "x.fr"), None)
    assert line.endswith(f"x.fr does not exist; check the name and data_dir (now {tmp_path})")
    assert list(missing_files(corpora(None, "results/demo/dev.en", "results/x"), None)) == []


def test_a_prepared_corpus_does_not_need_its_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = tmp_path / "results/corpus/tokenized/mine.report.json"
    report.parent.mkdir(parents=True)
    report.touch()
    assert list(missing_files(corpora(tmp_path, "a", "b"), str(tmp_path))) == []


@pytest.mark.parametrize(
    ("source", "target", "warning"),
    [
        ("a/train.en.gz", "train.fr", None),
        ("newstest2013-src.en.sgm", "newstest2013-ref.fr.sgm", None),
        ("train.source", "train.tc.1", None),
        ("europarl-v7.fr-en.en", "train.fra.tok.xz", None),
        ("train.en", "train.de.gz",
         "the suffix of the target file train.de.gz is de (German), but languages.target is fr; "),
        ("train.fr", "train.en",
         "the suffix of the source file train.fr is fr (French), but languages.source is en, and "
         "the suffix of the target file train.en is en (English), but languages.target is fr; "),
        ("train.fr", "test", "the suffix of the source file train.fr is fr (French), but languages.source is en; "),
    ],
)  # fmt: skip
def test_suffixes_that_contradict_the_languages(source, target, warning):
    lines = list(language_warnings(corpora(None, source, target), LANGUAGES))
    remedy = "correct languages, exchange source and target, or specify another file"
    assert lines == ([] if warning is None else [f"corpora[0] (mine): {warning}{remedy}"])


def test_a_code_that_no_language_has():
    lines = list(language_warnings(corpora(None, "a", "b"), Languages(source="en", target="xx")))
    assert [line.split(";")[0] for line in lines] == ["languages.target: xx is not a two-letter code of ISO 639-1"]


def one_file(tmp_path: Path | None, **entry):
    entry = CorpusEntry(**{"name": "mine", "role": "bitext"} | entry)
    return corpora_of([entry], LANGUAGES, None if tmp_path is None else str(tmp_path))[0]


def test_both_sides_in_one_file(tmp_path):
    """The sides of one file are written to separate files; the suffix of the file is not taken for a language."""
    corpus = one_file(tmp_path, file="all.de.tsv", columns=[3, 1])
    assert (corpus.source, corpus.target) == tuple(f"results/corpus/separated/mine.{lang}.gz" for lang in ("en", "fr"))
    assert files_of(corpus) == [("file", f"{tmp_path}/all.de.tsv")]
    assert corpus.separated.options() == "--columns 3 1"
    assert list(language_warnings([corpus], LANGUAGES)) == []
    (line,) = missing_files([corpus], str(tmp_path))
    assert line.startswith(f"corpora[0] (mine): file: {tmp_path}/all.de.tsv does not exist; ")
    members = Members(source="a b.en", target="c.fr")
    assert one_file(None, file="x.zip", members=members).separated.options() == "--members 'a b.en' c.fr"


def test_lines_of_training_text_as_sets(tmp_path):
    """Training text lacks the lines of all its sets, and sets have its files, downloads included."""
    downloads = Downloads(target=Download(url="https://example.org/all.fr", sha256=None))
    entries = [
        CorpusEntry(name="mine", role="bitext", source="a.en", target="a.fr", download=downloads),
        CorpusEntry(name="tuned", role="dev", held_out=HeldOut(corpus="mine", lines=[7, 2])),
        CorpusEntry(name="test", role="test", held_out=HeldOut(corpus="mine", lines=[3])),
        CorpusEntry(name="other", role="bitext", file="b.tmx"),
    ]
    mine, tuned, test, _ = found = corpora_of(entries, LANGUAGES, str(tmp_path))
    assert [corpus.separated.options() for corpus in found] == ["--without-lines 2 3 7", "--lines 7 2", "--lines 3", ""]
    assert dict(files_of(tuned)) == dict(files_of(mine))
    assert (dict(files_of(mine))["source"], tuned.downloads) == (f"{tmp_path}/a.en", mine.downloads)
    assert (mine.target, test.target) == tuple(f"results/corpus/separated/{name}.fr.gz" for name in ("mine", "test"))
    assert list(file_mistakes(found)) == []
    copied = corpora_of([*entries, replace(entries[0], name="copy", role="test")], LANGUAGES, None)
    assert [line.split(":")[0] for line in file_mistakes(copied)] == ["corpora[4] (copy)"] * 2


def test_a_reference_of_its_own(tmp_path):
    """A separate reference must exist, but is not a side of the corpus."""
    corpus = one_file(tmp_path, source="a.en", target="a.fr", reference="raw.fr", role="test")
    assert [side for side, _ in files_of(corpus)] == ["source", "target"]
    assert dict(input_files(corpus))["reference"] == str(tmp_path / "raw.fr")
    assert [line.split(":")[1].strip() for line in missing_files([corpus], str(tmp_path))] == [
        "source",
        "target",
        "reference",
    ]


def test_a_prefix_as_moses_has_it(tmp_path):
    """A prefix stands for two files with language suffixes; a file with the name of the prefix has precedence."""
    (tmp_path / "train.clean.en").touch()
    assert one_file(tmp_path, file="train.clean").separated is not None
    (tmp_path / "train.clean.fr.xz").touch()
    corpus = one_file(tmp_path, file="train.clean")
    assert corpus.separated is None
    assert files_of(corpus) == [
        ("source", f"{tmp_path}/train.clean.en"),
        ("target", f"{tmp_path}/train.clean.fr.xz"),
    ]
    (tmp_path / "train.clean").touch()
    assert one_file(tmp_path, file="train.clean").separated is not None


def test_a_prefix_as_mtdata_has_it(tmp_path):
    for name in ("OPUS-books-v1-eng-fra.eng", "OPUS-books-v1-eng-fra.fra.gz"):
        (tmp_path / name).touch()
    corpus = one_file(tmp_path, file="OPUS-books-v1-eng-fra")
    assert (corpus.source, corpus.target) == tuple(
        f"{tmp_path}/OPUS-books-v1-eng-fra.{end}" for end in ("eng", "fra.gz")
    )


def test_a_downloaded_file_with_both_sides(tmp_path):
    address = Download(url="https://example.org/en-fr.txt.zip", sha256=None, mirrors=["https://example.com/x.zip"])
    corpus = one_file(tmp_path, file="en-fr.txt.zip", download=Downloads(file=address))
    assert corpus.downloads == {corpus.separated.paths[0]: address}
    assert corpus.separated.paths[0].startswith("results/downloads/")
    (tmp_path / "en-fr.txt.zip").touch()
    local = one_file(tmp_path, file="en-fr.txt.zip", download=Downloads(file=address))
    assert local.separated.paths == (f"{tmp_path}/en-fr.txt.zip",)


def test_one_text_for_training_and_test_in_one_file(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\n")
    (tmp_path / "b.tsv").symlink_to("a.tsv")
    train, test = one_file(tmp_path, file="a.tsv"), one_file(tmp_path, file="b.tsv", role="test", name="t")
    (line,) = file_mistakes([train, test])
    assert "its text is also that of mine (bitext)" in line
