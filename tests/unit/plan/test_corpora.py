"""What is told about the files of corpora before anything runs."""

from pathlib import Path

import pytest

from rnnsmt.plan.corpora import corpora_listed, language_warnings, missing_files, similar_file


def corpora(data_dir: Path | None, source: str, target: str, name: str = "mine"):
    entry = {"name": name, "role": "bitext", "source": source, "target": target}
    return corpora_listed({"corpora": [entry], "data_dir": None if data_dir is None else str(data_dir)})


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
    """Case and compression come before letters that differ; directories are not meant."""
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
        f"corpora[0] (mine): target: {tmp_path}/a/x.fr does not exist; there is no directory {tmp_path}/a",
    ]
    (line,) = missing_files(corpora(None, "train.en", "x.fr"), None)
    assert line.endswith(f"x.fr does not exist; set data_dir to the directory of the corpora (now {tmp_path})")
    (line,) = missing_files(corpora(tmp_path, "train.en", "qqq"), str(tmp_path))
    assert line.endswith("qqq does not exist; check the name and data_dir")
    assert list(missing_files(corpora(None, "results/demo/dev.en", "results/x"), None)) == []


def test_a_prepared_corpus_does_not_need_its_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = tmp_path / "results/corpus/tokenized/mine.report.json"
    report.parent.mkdir(parents=True)
    report.touch()
    assert list(missing_files(corpora(tmp_path, "a", "b"), str(tmp_path))) == []


@pytest.mark.parametrize(
    ("source", "target", "remedy"),
    [
        ("a/train.en.gz", "train.fr", None),
        ("newstest2013-src.en.sgm", "newstest2013-ref.fr.sgm", None),
        ("train.source", "train.tc.1", None),
        ("europarl-v7.fr-en.en", "train.fra.tok.xz", None),
        ("train.en", "train.de.gz", "target train.de.gz: the suffix says another language than "
         "languages: {source: en, target: fr}; if so, write languages: {source: en, target: de}"),
        ("train.fr", "train.en", "source train.fr and target train.en: the suffix says another language than "
         "languages: {source: en, target: fr}; if source and target are swapped, exchange them"),
        ("train.en", "test.en.sgm", "target test.en.sgm: the suffix says another language than "
         "languages: {source: en, target: fr}; if this is the wrong file, correct its name"),
    ],
)  # fmt: skip
def test_suffixes_that_contradict_the_languages(source, target, remedy):
    lines = list(language_warnings(corpora(None, source, target), {"source": "en", "target": "fr"}))
    assert lines == ([] if remedy is None else [f"corpora[0] (mine): {remedy}"])
