"""The operations on text from Python: lists of sentences and files, with the results of the commands."""

import json
from pathlib import Path

import pytest

import rnnsmt
from rnnsmt.base.errors import InputError
from rnnsmt.cli import main

ENGLISH = ["The boats are here, Ann.", "Ann's harbour is old (and small).", "", "The old boats - they sail."]
FRENCH = ["Les bateaux sont ici, Anne.", "Le port d'Anne est vieux (et petit).", "rien", "Les vieux bateaux partent."]
LANGUAGES = {"source_lang": "en", "target_lang": "fr"}
WORDS = ["--source-lang", "en", "--target-lang", "fr"]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_texts_and_files_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists of sentences, from raw text to raw text, give the lines that the commands write."""
    monkeypatch.chdir(tmp_path)
    files = [str(write(Path(name), lines)) for name, lines in (("source", ENGLISH), ("target", FRENCH))]
    outputs = ["--output-source", "tok.en", "--output-target", "tok.fr", "--report", "report.json"]
    assert main(["corpus", "prepare", "--source", files[0], "--target", files[1], *WORDS, *outputs]) == 0
    prepared = rnnsmt.corpus.prepare(ENGLISH, FRENCH, **LANGUAGES)
    assert prepared.report() == json.loads(Path("report.json").read_text())
    assert list(prepared.texts) == [Path(f"tok.{lang}").read_text().splitlines() for lang in ("en", "fr")]
    assert prepared.report()["kept"] == len(prepared.texts[0]) == 3
    assert main(["corpus", "train-truecaser", "--input", "tok.fr", "--output-model", "model"]) == 0
    model = rnnsmt.corpus.train_truecaser(prepared.texts[1], "from-python")
    assert Path("model").read_bytes() == Path("from-python").read_bytes()
    assert main(["corpus", "truecase", "--model", "model", "--input", "tok.fr", "--output", "tc.fr"]) == 0
    truecased = rnnsmt.corpus.truecase(model, prepared.texts[1])
    assert truecased == rnnsmt.corpus.truecase("model", Path("tok.fr")) == Path("tc.fr").read_text().splitlines()
    assert truecased[0].startswith("Les bateaux")
    assert main(["corpus", "detokenize", "--input", "tc.fr", "--output", "again.fr", "--lang", "fr"]) == 0
    again = rnnsmt.corpus.detokenize(iter(truecased), lang="fr")
    assert again == Path("again.fr").read_text().splitlines() == [FRENCH[0], FRENCH[1], FRENCH[3]]
    written = rnnsmt.corpus.detokenize(truecased, "python.fr", lang="fr")
    assert written == (Path("python.fr"), {"lines": 3})
    assert Path("python.fr").read_bytes() == Path("again.fr").read_bytes()


def test_known_sentences_of_lists(tmp_path: Path) -> None:
    known = rnnsmt.corpus.overlap(ENGLISH, {"dev": [*ENGLISH[:2], "new"], "test": write(tmp_path / "t", ["new"])})
    assert known == {"dev": {"sentences": 3, "known": 2}, "test": {"sentences": 1, "known": 0}}


def test_a_split_of_lists(tmp_path: Path) -> None:
    """Without a directory, the parts are values: those that the files have."""
    sides = [[f"{word} number {n} of {n * n} {lang}" for n, word in enumerate(map(chr, range(97, 117)))]
             for lang in ("boats", "bateaux")]  # fmt: skip
    sizes = {"dev": 2, "test": 3, "similarity": 1.0, "seed": 4}
    parts = rnnsmt.corpus.split(*sides, **LANGUAGES, **sizes)
    assert {part: len(texts[0]) for part, texts in parts.texts.items()} == parts.counts.report()["pairs"]
    assert {part: len(texts[0]) for part, texts in parts.texts.items()} == {"train": 15, "dev": 2, "test": 3}
    assert sorted(line for texts in parts.texts.values() for line in texts[1]) == sorted(sides[1])
    written = rnnsmt.corpus.split(*sides, tmp_path / "out", **LANGUAGES, **sizes)
    assert (written.texts, written) == ({}, parts)
    assert (tmp_path / "out/dev.en").read_text().splitlines() == parts.texts["dev"][0]


def test_a_small_corpus_is_not_used_up_by_dev_and_test() -> None:
    """Without sizes, dev and test have a tenth of the pairs each; an empty pair is not counted."""
    sides = [[f"{word} number {n} of {n * n} {lang}" for n, word in enumerate(map(chr, range(97, 117)))] + [""]
             for lang in ("boats", "bateaux")]  # fmt: skip
    parts = rnnsmt.corpus.split(*sides, **LANGUAGES, similarity=1.0)
    assert parts.counts.report()["pairs"] == {"train": 16, "dev": 2, "test": 2}
    parts = rnnsmt.corpus.split(*sides, **LANGUAGES, similarity=1.0, test=5)
    assert parts.counts.report()["pairs"] == {"train": 13, "dev": 2, "test": 5}


def test_messages_name_arguments(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^source and target: cannot determine the languages; specify source_lang"):
        rnnsmt.corpus.prepare(ENGLISH, FRENCH)
    with pytest.raises(InputError, match=r"^source_lang 'eng': is a three-letter code; did you mean en"):
        rnnsmt.corpus.prepare(ENGLISH, source_lang="eng")
    with pytest.raises(InputError, match=r"^target and output_target must be used together"):
        rnnsmt.corpus.prepare(ENGLISH, FRENCH, output_source=tmp_path / "o", **LANGUAGES)
    with pytest.raises(InputError, match=r"^lines and without_lines cannot be combined"):
        rnnsmt.corpus.separate(tmp_path / "x", tmp_path / "a", tmp_path / "b", lines=[1], without_lines=[2])
    with pytest.raises(InputError, match=r"^input, line 1: not UTF-8|^input: sentence 1 is not valid Unicode"):
        rnnsmt.corpus.detokenize(["\ud800"], lang="fr")
    with pytest.raises(InputError, match=r"^sha256 'abc': must be 64 hexadecimal digits"):
        rnnsmt.corpus.fetch("file:///x", tmp_path / "x", sha256="abc")
    with pytest.raises(InputError, match="similarity 0: must be greater than 0"):
        rnnsmt.corpus.split(ENGLISH, FRENCH, similarity=0, **LANGUAGES)
