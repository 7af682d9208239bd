"""Splitting a bitext into three parts without common sentences; similarity of sentences."""

import gzip
import json
import random
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnnsmt.cli import main
from rnnsmt.corpus.splitting import SentenceIndex, normalised_words, sentence_key, trigrams

from ..overriding import overridden
from .sentences import WORDS

TOKENS = [f"w{c}{d}" for c in "abcdefghij" for d in "klmnopqrst"]


def sentence(source: random.Random, length: int = 12) -> list[str]:
    return [source.choice(TOKENS) for _ in range(length)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The 7 boats, are red!", "the 8 BOATS are red"),
        ("ﬁn de l’été", "fin de l'été"),
        ("café", "cafe\u0301"),
        ("東京です。", "東 京 で す"),
        ("ชื่อจอห์น", "ชื่อ จอห์น"),
    ],
)
def test_equal_sentences(one: str, other: str) -> None:
    assert normalised_words(one) == normalised_words(other)
    assert sentence_key(normalised_words(one)) == sentence_key(normalised_words(other))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("मैं हिन्दी में लिखता हूँ। क्\u200dया?", ["मैं", "हिन्दी", "में", "लिखता", "हूँ", "क्\u200dया"]),
        ("كَتَبَ، «الدَّرْسَ»؟", ["كَتَبَ", "الدَّرْسَ"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("за\u0301мок_İl", ["за\u0301мок", "i\u0307l"]),
        ("မြန်မာ။", ["မြ", "န်", "မာ"]),
    ],
)
def test_combining_marks_are_parts_of_words(text: str, words: list[str]) -> None:
    assert normalised_words(text) == words


def test_sentences_without_words() -> None:
    assert normalised_words(" ... ") == ["..."] != normalised_words("!")
    assert trigrams(["a"]) == {("", "a", "")}


@given(st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=9), min_size=1, max_size=12), st.floats(0.05, 1))
def test_an_index_finds_what_a_comparison_with_all_finds(sentences: list[list[str]], threshold: float) -> None:
    asked, *known = sentences
    index = SentenceIndex(threshold)
    for words in known:
        index.add(words)
    a = trigrams(asked)
    exact = [(n, len(a & b) / len(a | b)) for n, b in enumerate(map(trigrams, known))]
    assert sorted(index.similar(asked)) == [(n, value) for n, value in exact if value >= threshold]


def bitext(directory: Path, pairs: int = 400) -> list[tuple[str, str]]:
    """Write random pairs with repetitions, shared sides, near-duplicates and invalid lines; return the valid pairs."""
    source = random.Random(5)
    rows = [(sentence(source), sentence(source)) for _ in range(pairs)]
    rows += [source.choice(rows) for _ in range(40)]
    rows += [(source.choice(rows)[0], sentence(source)) for _ in range(40)]
    rows += [(sentence(source), source.choice(rows)[1]) for _ in range(40)]
    for _ in range(200):
        one, other = (list(side) for side in source.choice(rows))
        one[5] = other[6] = "changed"
        rows.append((one, other))
    source.shuffle(rows)
    lines = [(" ".join(one).capitalize() + ".", " ".join(other)) for one, other in rows]
    for number, side in enumerate(("en", "fr")):
        text = "".join(f"{line[number]}\n" for line in lines).encode()
        (directory / f"all.{side}").write_bytes(text + (b"\xff\n\n" if side == "en" else b"bad\nempty\n"))
    return lines


def split(directory: Path, *options: str, output: str = "out") -> int:
    files = ["--source", str(directory / "all.en"), "--target", str(directory / "all.fr")]
    outputs = ["--output-dir", str(directory / output), "--report", str(directory / "report.json")]
    return main(overridden(["corpus", "split", *files, "--dev", "30", "--test", "40", *outputs], options))


def parts(directory: Path, output: str = "out") -> dict[str, list[tuple[str, ...]]]:
    def lines(name: str, lang: str) -> list[str]:
        path = directory / output / f"{name}.{lang}"
        raw = path.read_bytes() if path.exists() else gzip.decompress(path.with_name(f"{path.name}.gz").read_bytes())
        return raw.decode().splitlines()

    return {name: list(zip(lines(name, "en"), lines(name, "fr"), strict=True)) for name in ("train", "dev", "test")}


def test_no_sentence_is_in_two_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = bitext(tmp_path)
    assert split(tmp_path) == 0
    found = parts(tmp_path)
    assert (len(found["dev"]), len(found["test"])) == (30, 40)
    assert set().union(*found.values()) <= set(rows)
    for side in (0, 1):
        keys = {name: {tuple(normalised_words(row[side])) for row in rows} for name, rows in found.items()}
        assert not keys["train"] & keys["dev"] and not keys["train"] & keys["test"] and not keys["dev"] & keys["test"]
        held_out = [trigrams(words) for name in ("dev", "test") for words in keys[name]]
        for words in keys["train"]:
            a = trigrams(words)
            assert all(len(a & b) < 0.5 * len(a | b) for b in held_out)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["pairs"] == {name: len(rows) for name, rows in found.items()}
    assert report["unusable"] == {"empty": 1, "not UTF-8": 1}
    near = report["near_duplicates"]
    assert near["both"] >= 5
    assert len(rows) == sum(report["pairs"].values()) + sum(near.values())
    said = capsys.readouterr()
    assert "  - {name: train, role: bitext, source: train.en.gz, target: train.fr.gz}\n" in said.out
    assert f"near-duplicates of dev and test: {sum(near.values())}, empty: 1, not UTF-8: 1" in said.err


def test_seeds_and_repetitions(tmp_path: Path) -> None:
    """The split depends only on the seed; repeated pairs stay in the training text unless --unique is given."""
    rows = bitext(tmp_path)
    for output, options in (("a", []), ("b", []), ("c", ["--seed", "2"]), ("d", ["--unique"])):
        assert split(tmp_path, *options, output=output) == 0
    a, b, c, d = (parts(tmp_path, output) for output in "abcd")
    assert a == b
    assert set(a["test"]).isdisjoint(a["dev"])
    assert set(c["test"]) != set(a["test"])
    assert len(set(a["train"])) < len(a["train"])
    assert len(set(d["train"])) == len(d["train"])
    assert json.loads((tmp_path / "report.json").read_text())["repeated"] == len(rows) - len(set(rows))


def test_pairs_of_one_file(tmp_path: Path) -> None:
    rows = bitext(tmp_path)
    (tmp_path / "all.tsv").write_text("".join(f"{target}\t{source}\n" for source, target in rows))
    options = ["--columns", "2", "1", "--source-lang", "en", "--target-lang", "fr", "--dev", "30", "--test", "40"]
    outputs = ["--output-dir", str(tmp_path / "tsv")]
    assert main(["corpus", "split", "--bitext", str(tmp_path / "all.tsv"), *options, *outputs]) == 0
    assert split(tmp_path) == 0
    assert parts(tmp_path, "tsv")["test"] == parts(tmp_path)["test"]


@pytest.mark.parametrize("files", [["all"], ["all.en", "all.fr"]])
def test_two_files_or_their_prefix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, files: list[str]
) -> None:
    bitext(tmp_path)
    assert split(tmp_path) == 0
    monkeypatch.chdir(tmp_path)
    options = ["--dev", "30", "--test", "40", "--output-dir", "pair", "--report", "pair.json"]
    assert main(["corpus", "split", "--bitext", *files, *options]) == 0
    assert parts(tmp_path, "pair") == parts(tmp_path)
    assert json.loads(Path("pair.json").read_text())["input"] == "all.en and all.fr"
    assert "warning" not in capsys.readouterr().err


def test_swapped_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Swapped sides are refused, and not exchanged."""
    monkeypatch.chdir(tmp_path)
    for lang in ("en", "fr"):
        source, words = random.Random(lang), WORDS[lang].split()
        lines = (" ".join(source.choice(words) for _ in range(source.randint(5, 20))) for _ in range(400))
        (tmp_path / f"all.{lang}").write_text("".join(f"{line}\n" for line in lines))
    options = ["--dev", "10", "--test", "10", "--output-dir", "out"]
    languages = ["--source-lang", "en", "--target-lang", "fr"]
    assert main(["corpus", "split", "--bitext", "all.fr", "all.en", *languages, *options]) == 2
    assert (
        "error: source and target look swapped: all.fr looks like fr and all.en like en; exchange them"
        in capsys.readouterr().err
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--dev", "5000"],
            "pairs can be dev or test pairs (both sentences occur once and have 3 to 80 words), but 5,040 are",
        ),
        (["--bitext", "x"], "--source and --target, or --bitext, is required"),
        (["--source", "x", "--bitext", "x", "y"], "--source and --target, or --bitext, is required"),
        (["--target-lang", "en"], "source and target have the same language, en"),
    ],
)
def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str) -> None:
    bitext(tmp_path)
    assert split(tmp_path, *options) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_variants_of_one_sentence_are_no_test_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for lang in ("en", "fr"):
        lines = [f"this is one sentence of a long list, with the only word {word} in it\n" for word in TOKENS]
        (tmp_path / f"all.{lang}").write_text("".join(lines))
    assert split(tmp_path) == 2
    assert "only 1 of the pairs drawn are not similar to each other, but 30 dev and 40 test" in capsys.readouterr().err


def _tmx(header: str, langs: tuple[str, ...], rows: list[tuple[str, str]]) -> str:
    variants = (
        "".join(f'<tuv xml:lang="{lang}"><seg>{row[n % 2]}</seg></tuv>' for n, lang in enumerate(langs)) for row in rows
    )
    units = "".join(f"<tu>{unit}</tu>" for unit in variants)
    return f'<?xml version="1.0"?><tmx version="1.4"><header {header}/><body>{units}</body></tmx>'


@pytest.mark.parametrize(
    ("make", "files", "options", "langs"),
    [
        ("text", ["x.de", "x.en"], [], ("de", "en")),
        ("text", ["x"], [], ("de", "en")),
        ("text", ["x"], ["--source-lang", "en"], ("en", "de")),
        ("text", ["x.de", "x.en"], ["--target-lang", "nl"], ("de", "nl")),
        ("text", ["x.de", "two.txt"], ["--target-lang", "fr"], ("de", "fr")),
        ("text", ["more.sv-en"], [], ("sv", "en")),
        ("text", ["x.pt_BR", "x.en-GB.gz"], [], ("pt", "en")),
        ("text", ["x.zh-Hant", "x.en-GB.gz"], [], ("zh", "en")),
        ("text", ["films.pt_BR-en"], [], ("pt", "en")),
        ("text", ["films.pt_BR-en"], ["--source-lang", "en"], ("en", "pt")),
        ("text", ["x.tsv"], ["--source-lang", "de", "--target-lang", "en"], ("de", "en")),
        ("zip", ["x.zip"], [], ("de", "en")),
        ("zip", ["region.zip"], [], ("pt", "en")),
        ("zip", ["x.zip"], ["--target-lang", "de"], ("en", "de")),
        ("zip", ["x.zip"], ["--members", "Books.de-en.en", "Books.de-en.de"], ("en", "de")),
        ("tmx", ["x.tmx"], [], ("en", "de")),
        ("tmx", ["any.tmx"], [], ("de", "en")),
    ],
)
def test_languages_of_the_files(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    make: str,
    files: list[str],
    options: list[str],
    langs: tuple[str, str],
) -> None:
    """Languages are taken from file suffixes, the file names in a zip archive, or the language codes in a TMX file."""
    monkeypatch.chdir(tmp_path)
    rows = bitext(tmp_path, 200)
    sides = ["".join(f"{row[side]}\n" for row in rows) for side in (0, 1)]
    if make == "zip":
        with zipfile.ZipFile("x.zip", "w") as archive:
            archive.writestr("README", "text")
            archive.writestr("Books.de-en.de", sides[0])
            archive.writestr("Books.de-en.en", sides[1])
        with zipfile.ZipFile("region.zip", "w") as archive:
            archive.writestr("Films.pt_br-en.pt_br", sides[0])
            archive.writestr("Films.pt_br-en.en", sides[1])
    elif make == "tmx":
        Path("x.tmx").write_text(_tmx('srclang="EN-us"', ("de-DE", "en-US"), rows))
        Path("any.tmx").write_text(_tmx('srclang="*all*"', ("en", "de"), rows))
    else:
        names = [("x.de", "x.en"), ("one.txt", "two.txt"), ("more.sv-en.swe.gz", "more.sv-en.en")]
        names += [("x.pt_BR", "x.en-GB.gz"), ("x.zh-Hant", "x.en-GB.gz")] if "x.en-GB.gz" in files else []
        names += [("films.pt_BR-en.pt_BR", "films.pt_BR-en.en")]
        for name, side in ((name, side) for pair in names for name, side in zip(pair, sides, strict=True)):
            Path(name).write_bytes(gzip.compress(side.encode()) if name.endswith(".gz") else side.encode())
        Path("x.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in rows))
    chosen = ["--dev", "10", "--test", "10", "--output-dir", "out", *options]
    assert main(["corpus", "split", "--bitext", *files, *chosen]) == 0
    said = capsys.readouterr()
    assert said.out.startswith(f"languages: {{source: {langs[0]}, target: {langs[1]}}}\n")
    assert Path(f"out/train.{langs[0]}.gz").exists() and Path(f"out/dev.{langs[1]}").exists()
    assert "warning" not in said.err


def test_languages_that_a_file_does_not_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing language in a TMX file and two sides with one language are errors that list the languages found."""
    monkeypatch.chdir(tmp_path)
    rows = bitext(tmp_path, 200)
    Path("x.tmx").write_text(_tmx('srclang="de"', ("de", "it", "es"), rows))
    options = ["--dev", "10", "--test", "10", "--output-dir", "out"]
    assert main(["corpus", "split", "--bitext", "x.tmx", *options]) == 2
    error = capsys.readouterr().err
    assert "x.tmx: cannot determine the languages; specify --source-lang and --target-lang" in error
    assert main(["corpus", "split", "--bitext", "x.tmx", *options, "--source-lang", "en", "--target-lang", "fr"]) == 2
    assert "has en and fr; available: de, it, es; check the languages" in capsys.readouterr().err
    for name in ("a.en", "b.eng", "c.hsb"):
        Path(name).write_text("text\n")
    assert main(["corpus", "split", "--bitext", "a.en", "b.eng", *options]) == 2
    error = capsys.readouterr().err
    assert "source and target have the same language, en; specify two with --source-lang and --target-lang" in error
    assert main(["corpus", "split", "--bitext", "c.hsb", "a.en", *options]) == 2
    error = capsys.readouterr().err
    assert "c.hsb and a.en: cannot determine the languages; specify --source-lang" in error
