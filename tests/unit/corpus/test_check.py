"""The checks of all corpora before a run of the workflow."""

import gzip
import json
import random
from contextlib import suppress
from pathlib import Path

import pytest

import rnnsmt
from rnnsmt.base.errors import InputError
from rnnsmt.cli import main
from rnnsmt.corpus.inputs import corpus_entry
from rnnsmt.corpus.raw_text import LINE_BYTES
from rnnsmt.plan.corpora import FEW_LINES

from ..overriding import overridden
from .sentences import WORDS


def text(lang: str, lines: int, seed: int) -> list[str]:
    """Return random lines of words of a language."""
    source, words = random.Random(f"{lang}{seed}"), WORDS[lang].split()
    return [" ".join(source.choice(words) for _ in range(14)) for _ in range(lines)]


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    """Create a training text, a dev set and a test set without defects."""
    for name, lines, seed in (("train", 1500, 1), ("dev", 120, 2), ("test", 130, 3)):
        for lang in ("en", "fr"):
            (tmp_path / f"{name}.{lang}").write_text("".join(f"{line}\n" for line in text(lang, lines, seed)))
    return tmp_path


def check(directory: Path, capsys: pytest.CaptureFixture[str], *options: str, **files: tuple[str, str]) -> list[dict]:
    """Return the findings of `corpus check --json`; the exit status agrees with them."""
    files = {"train": ("train.en", "train.fr"), "dev": ("dev.en", "dev.fr"), "test": ("test.en", "test.fr")} | files
    roles = {"train": "bitext", "dev": "dev", "test": "test"}
    entries = [f"{name}={roles[name]}={directory / one}={directory / other}" for name, (one, other) in files.items()]
    try:
        status = main(overridden(["corpus", "check", "--json", "--corpus", *entries], options))
    except SystemExit as stopped:
        status = stopped.code
    found = json.loads(capsys.readouterr().out)
    assert status == (3 if any(one["warnings"] or one["errors"] for one in found) else 0)
    return found


def test_sound_corpora(corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = check(corpora, capsys)
    assert [(one["name"], one["role"], one["figures"]["lines"]) for one in found] == [
        ("train", "bitext", 1500), ("dev", "dev", 120), ("test", "test", 130),
    ]  # fmt: skip
    assert [one["warnings"] + one["errors"] for one in found] == [[], [], []]


def test_too_long_lines_and_small_sets_are_reported(corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The limits in the messages and in the help are the constants."""
    lines = (corpora / "train.en").read_text().splitlines()
    lines[5] = "x" * (LINE_BYTES + 1)
    (corpora / "train.en").write_text("".join(f"{line}\n" for line in lines))
    for lang in ("en", "fr"):
        (corpora / f"dev.{lang}").write_text("".join(f"{line}\n" for line in text(lang, FEW_LINES - 1, 2)))
    train, dev, _ = check(corpora, capsys)
    assert f"1 of 1,500 lines (0.1 %) have more than {LINE_BYTES:,} bytes" in train["warnings"]
    assert "99 lines are too few for reliable scores" in dev["warnings"]
    assert f"a line of more than {LINE_BYTES:,} bytes" in " ".join((rnnsmt.corpus.split.__doc__ or "").split())


def test_swapped_sides_and_another_language(corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, dev, _ = check(corpora, capsys, train=("train.fr", "train.en"))
    assert "source and target look swapped" in train["errors"][0]
    assert (train["warnings"], train["figures"]["lines"], dev["errors"]) == ([], 1500, [])
    (corpora / "train.de").write_text("".join(f"{line}\n" for line in text("de", 1500, 1)))
    train, dev, _ = check(corpora, capsys, train=("train.en", "train.de"))
    assert "train.de: looks like de, but the language of this side is fr" in train["warnings"][0]
    assert dev["warnings"] == []


def test_languages_are_those_of_the_file_names(corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The languages are taken from the file names if all corpora agree."""
    for number, (lang, other) in enumerate((("fr", "en"), ("en", "fr"))):
        entries = [f"train=bitext={corpora}/train.{lang}={corpora}/train.{other}"]
        assert main(["corpus", "check", "--json", "--corpus", *entries]) == 0, number
        assert not json.loads(capsys.readouterr().out)[0]["warnings"]
    (corpora / "train.fr-CA").write_text((corpora / "train.fr").read_text())
    entries = [f"train=bitext={corpora}/train.fr-CA={corpora}/train.en"]
    assert main(["corpus", "check", "--json", "--corpus", *entries]) == 0
    assert not json.loads(capsys.readouterr().out)[0]["warnings"]


@pytest.mark.parametrize(
    ("lang", "letters"), [("zh", "東南西北船港海"), ("ja", "ひかりのミナト"), ("th", ["ที่", "กา", "น้ำ"])]
)
def test_text_without_spaces_between_words(
    corpora: Path, capsys: pytest.CaptureFixture[str], lang: str, letters: str
) -> None:
    for name, lines in (("train", 1500), ("dev", 120), ("test", 130)):
        source = random.Random(name)
        words = [["".join(source.choice(letters) for _ in range(2)) for _ in range(9)] for _ in range(lines)]
        for end, space in ((lang, ""), (f"segmented.{lang}", " ")):
            (corpora / f"{name}.{end}").write_text("".join(f"{space.join(line)}。\n" for line in words))
    files = {name: (f"{name}.en", f"{name}.{lang}") for name in ("train", "dev", "test")}
    for one, (_, path) in zip(check(corpora, capsys, **files), files.values(), strict=True):
        (said,) = [warning for warning in one["warnings"] if "spaces" in warning]
        assert said.startswith(f"{corpora / path}: has no spaces between words (")
    files = {name: (f"{name}.en", f"{name}.segmented.{lang}") for name in ("train", "dev", "test")}
    assert not any("spaces" in warning for one in check(corpora, capsys, **files) for warning in one["warnings"])


def test_test_sentences_in_the_training_text(corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Test sentences with an equal or similar sentence in the training text, or an equal one in dev, are counted."""
    known = (corpora / "test.en").read_text().splitlines()
    near = [line.split() for line in known[10:15]]
    for words in near:
        words[7] = "another"
    lines = (corpora / "train.en").read_text().splitlines()
    lines[100:110] = [f"{line.upper()}!" for line in known[:10]]
    lines[200:205] = [" ".join(words) for words in near]
    (corpora / "train.en").write_text("".join(f"{line}\n" for line in lines))
    dev = (corpora / "dev.fr").read_text().splitlines()
    test = (corpora / "test.fr").read_text().splitlines()
    (corpora / "test.fr").write_text("".join(f"{line}\n" for line in dev[:2] + test[2:]))
    train, dev, test = check(corpora, capsys)
    assert (train["warnings"], dev["warnings"]) == ([], [])
    assert (test["figures"]["source_in_training"], test["figures"]["source_near_training"]) == (10, 5)
    assert test["figures"]["target_in_training"] == 0
    assert (test["figures"]["source_in_dev"], test["figures"]["target_in_dev"]) == (0, 2)
    assert test["warnings"] == [
        "10 of 130 source sentences are also in the training text, and 5 have a near-duplicate there, which makes "
        "scores too high",
        "0 source and 2 target sentences are also in dev",
    ]


def test_overlap_of_ngrams(corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The share of source n-grams that occur in the training text equals an independent count."""
    (corpora / "test.en").write_text("A b c d e\n" + (corpora / "test.en").read_text().split("\n", 1)[1])
    (corpora / "train.en").write_text("a b C.\nc d\n" + (corpora / "train.en").read_text())
    (corpora / "train.fr").write_text("un\ndeux\n" + (corpora / "train.fr").read_text())
    known: list[set[tuple[str, ...]]] = [set() for _ in range(4)]
    for line in (corpora / "train.en").read_text().splitlines():
        for n in range(1, 5):
            known[n - 1].update(ngrams(line, n))
    overlaps = []
    for line in (corpora / "test.en").read_text().splitlines():
        shares = [[gram in known[n - 1] for gram in ngrams(line, n)] for n in range(1, 5)]
        overlaps.append(sum(sum(share) / len(share) for share in shares) / 4)
    # 4 of 5 words, "a b", "b c" and "c d" of 4 bigrams, 1 of 3 trigrams, no n-gram of 4 words
    assert overlaps[0] == pytest.approx((4 / 5 + 3 / 4 + 1 / 3 + 0) / 4)
    test = check(corpora, capsys)[2]
    assert test["figures"]["ngram_overlap"] == round(sum(overlaps) / len(overlaps), 2)


def ngrams(line: str, n: int) -> list[tuple[str, ...]]:
    words = line.lower().replace(".", " ").split()
    return [tuple(words[k : k + n]) for k in range(len(words) - n + 1)]


def test_lines_that_are_wrong(corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (corpora / "train.en").read_bytes().splitlines()
    lines[:200] = lines[200:201] * 200
    lines[300:303] = [b"\xe9t\xe9"] * 3
    (corpora / "train.en").write_bytes(b"\n".join(lines) + b"\n")
    target = (corpora / "train.fr").read_bytes().splitlines()
    target[:200] = target[200:201] * 200
    target[400:600] = [b"le"] * 200
    target[600:800] = lines[600:800]
    target[800:1000] = [b""] * 200
    (corpora / "train.fr").write_bytes(b"\n".join(target) + b"\n")
    (corpora / "dev.en").write_bytes(b"\n" + (corpora / "dev.en").read_bytes().split(b"\n", 1)[1])
    train, dev, _ = check(corpora, capsys)
    assert train["figures"] | {"lines": 1500, "not_utf8": 3, "empty": 200, "unequal_length": 200, "untranslated": 200,
                               "repeated": 200} == train["figures"]  # fmt: skip
    assert [line.split(") ")[1][:25] for line in train["warnings"]] == [
        "have an empty side", "are not UTF-8; convert th", "have sides whose lengths ", "have the same text on bot",
        "are repetitions of an ear",
    ]  # fmt: skip
    assert dev["warnings"] == ["1 of 120 lines (0.8 %) have an empty side"]


def test_files_that_cannot_be_read(corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files that cannot be read are errors of the report; the other corpora are checked."""
    (corpora / "train.fr").write_text("only one\n")
    train, dev, test = check(corpora, capsys, test=("none.en", "test.fr"))
    assert "train.fr has 1 lines, but" in train["errors"][0]
    assert "none.en: no such file" in test["errors"][0]
    assert (dev["errors"], dev["figures"]["lines"]) == ([], 120)


def test_a_configuration(corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`corpus check --config` checks the corpora of a configuration, including TSV files and monolingual text."""
    pairs = zip(*((corpora / f"train.{lang}").read_text().splitlines() for lang in ("fr", "en")), strict=True)
    (corpora / "train.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in pairs))
    (corpora / "mine.yaml").write_text(
        "corpora:\n"
        "  - {name: mine, role: bitext, file: train.tsv, columns: [2, 1]}\n"
        "  - {name: more, role: mono, target: train.fr}\n"
        "  - {name: later, role: bitext, file: x.zip, download: {file: {url: 'ftp://x/x.zip', sha256: null}}}\n"
        "  - {name: tune, role: dev, source: dev.fr, target: dev.en}\n"
    )
    options = ["--config", str(corpora / "mine.yaml"), "--data-dir", str(corpora)]
    with pytest.raises(SystemExit) as stopped:
        main(["corpus", "check", *options])
    assert stopped.value.code == 3
    said = capsys.readouterr()
    assert "later: not checked, because the file has not been downloaded yet" in said.err
    lines = said.out.splitlines()
    assert lines[0] == "mine (bitext): 1,500 lines, 14.0 and 14.0 words per line"
    assert lines[1] == "more (mono): 1,500 lines, 14.0 words per line"
    assert lines[2].startswith("tune (dev): 120 lines")
    assert lines[3].startswith("  error: source and target look swapped")
    assert lines[-1] == "1 problem found"
    with pytest.raises(SystemExit):  # as de: French is found
        main(["corpus", "check", *options, "--target-lang", "de"])
    assert "(de): looks like fr, but the language of this side is de" in capsys.readouterr().out


@pytest.mark.parametrize("code", ["{}", "doc.{}-a", "0.{} / 1"])
def test_a_table_with_identifiers(corpora: Path, capsys: pytest.CaptureFixture[str], code: str) -> None:
    """A column of identifiers used as a side is reported; scores in the third column are ignored."""
    sides = [(corpora / f"train.{lang}").read_text().splitlines() for lang in ("en", "fr")]
    codes = [code.format(number) for number in range(1500)]

    def report(*columns: list[str]) -> list[str]:
        (corpora / "all.tsv").write_text("".join("\t".join(row) + "\n" for row in zip(*columns, strict=True)))
        with suppress(SystemExit):
            main(["corpus", "check", "--corpus", f"mine=bitext={corpora / 'all.tsv'}"])
        return [
            line for line in capsys.readouterr().out.splitlines() if "warning" in line and "factor of 9" not in line
        ]

    assert report(codes, *sides) == [
        f"  warning: {corpora / 'all.tsv'} (en): 1,500 of the first 1,500 lines are a number or one word, not a "
        "sentence; if the file has other columns, select those of source and target (`columns` in the configuration, "
        "--columns)"
    ]
    assert report(*sides, codes) == []
    words = [[line.split()[1] for line in side] for side in sides]  # a word list
    assert not any("not a sentence" in line for line in report(*words))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "either --config or --corpus is required"),
        (["--config", "none.yaml"], "none.yaml: no such file"),
        (["--config", "list.yaml"], "list.yaml: contains no list of corpora"),
        (["--config", "entry.yaml"], "entry.yaml: corpora must be a list of entries with name, role and files"),
        (["--config", "entry.yaml"], "corpora[0]: must be a map (key: value), not 1; corpora[1].role missing"),
        (["--config", "held-out.yaml"], "held-out.yaml: corpora[1].held_out.corpus: no corpus b"),
        (["--config", "broken.yaml"], "broken.yaml: not valid YAML"),
        (["--config", "code.yaml"], "source language: english is not a language code"),
    ],
)
def test_refusals(tmp_path, monkeypatch, capsys, options, message) -> None:
    monkeypatch.chdir(tmp_path)
    Path("list.yaml").write_text("[1, 2]\n")
    Path("entry.yaml").write_text("corpora: [1, {name: x}]\n")
    Path("held-out.yaml").write_text(
        "corpora: [{name: a, role: bitext, file: a}, {name: t, role: test, held_out: {corpus: b, lines: [1]}}]"
    )
    Path("broken.yaml").write_text("corpora: [\n")
    Path("code.yaml").write_text("languages: {source: english}\ncorpora: [{name: x, role: mono, target: x}]\n")
    assert main(["corpus", "check", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_shifted_side(corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A shifted side is found from line 601 on."""
    rng = random.Random(4)
    lines = [(text("en", 1, seed)[0], text("fr", 1, seed)[0], rng.randint(3, 14)) for seed in range(1500)]
    for lang in ("en", "fr"):
        cut = [" ".join(line[lang == "fr"].split()[: line[2]]) for line in lines]
        (corpora / f"train.{lang}").write_text("".join(f"{line}\n" for line in cut))
    assert check(corpora, capsys)[0]["warnings"] == []
    target = (corpora / "train.fr").read_text().splitlines()
    (corpora / "train.fr").write_text("".join(f"{line}\n" for line in [*target[:600], *target[601:], target[0]]))
    (warning,) = check(corpora, capsys)[0]["warnings"]
    assert "to 1,500 of the source fit the target better one line further up" in warning
    assert prepare(corpora, "train.en", "train.fr") == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert said == [f"warning: {corpora}/train.en and {corpora}/train.fr: {warning}"]
    assert prepare(corpora, "train.en", "train.fr", "--no-check") == 0
    assert "warning" not in capsys.readouterr().err


def prepare(directory: Path, source: str, target: str, *options: str) -> int:
    """Prepare two files as English and French text; return the exit status."""
    outputs = [f"--output-source={directory}/o.en", f"--output-target={directory}/o.fr", f"--report={directory}/r"]
    languages = ["--source-lang=en", "--target-lang=fr"]
    files = [f"--source={directory}/{source}", f"--target={directory}/{target}"]
    return main(overridden(["corpus", "prepare", *files, *languages, *outputs], options))


def test_preparing_swapped_sides(corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Swapped sides end `corpus prepare` before any output is written, unless --no-check is given."""
    before = sorted(corpora.iterdir())
    assert prepare(corpora, "train.fr", "train.en") == 2
    assert capsys.readouterr().err.endswith(
        f"error: source and target look swapped: {corpora}/train.fr looks like fr and {corpora}/train.en like en; "
        "exchange them, or, if they are right, set `check: false` in the entry of the corpus (--no-check of `corpus "
        "prepare`)\n"
    )
    assert sorted(corpora.iterdir()) == before
    assert prepare(corpora, "train.fr", "train.en", "--no-check") == 0
    assert "swapped" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["plain", "gzip"])
def test_known_sentences(
    corpora: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """`corpus overlap` counts the sentences of a set in several texts, also repeated ones, but no empty lines."""
    monkeypatch.chdir(corpora)
    lines = Path("train.en").read_text().splitlines()
    dev, test = (Path(f"{name}.en").read_text().splitlines() for name in ("dev", "test"))
    dev[7] = lines[-1]  # 1 of 120: less than 2 %
    Path("dev.en").write_text("".join(f"{line}\n" for line in dev))
    Path("test.en").write_text("".join(f" {line} \n\n" for line in [*lines[700:748], lines[5], lines[5], *test]))
    parts = ["one.en", "two.en.gz" if kind == "gzip" else "two.en"]
    Path(parts[0]).write_text("".join(f"{line}\n" for line in ["", "  ", *lines[:720]]))
    rest = "\n".join(lines[720:]).encode()
    Path(parts[1]).write_bytes(gzip.compress(rest) if kind == "gzip" else rest)
    options = ["--training", *parts, "--set", "dev=dev.en", "new=test.en", "--output", "overlap.json"]
    assert main(["corpus", "overlap", *options]) == 0
    known, text = set(lines), [line.strip() for line in Path("test.en").read_text().splitlines() if line.strip()]
    assert json.loads(Path("overlap.json").read_text()) == {
        "dev": {"sentences": 120, "known": 1},
        "new": {"sentences": len(text), "known": sum(line in known for line in text)},
    }
    assert [line for line in capsys.readouterr().err.splitlines() if "warning" in line] == [
        "warning: new: 50 of 180 source sentences also occur in the training text, which makes scores too high; "
        "remove them from one of the texts"
    ]


@pytest.mark.parametrize("text", ["train.en", "a=train=b=c", "a=mono=b=c", "a=dev"])
def test_entries_that_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be NAME=ROLE=SOURCE=TARGET or NAME=ROLE=FILE"):
        corpus_entry(text)


def test_entries_of_a_configuration_as_values(corpora: Path) -> None:
    """In Python, the corpora are entries of a configuration, and problems are values, not an exit status."""
    sides = {"source": "train.en", "target": "train.fr"}
    entries = [{"name": "train", "role": "bitext", **sides}, {"name": "dev", "role": "dev", **sides}]
    report = rnnsmt.corpus.check(entries, data_dir=corpora)
    assert [(one.name, one.role, one.figures["lines"]) for one in report.findings] == [
        ("train", "bitext", 1500), ("dev", "dev", 1500),
    ]  # fmt: skip
    assert report.findings[1].figures["source_in_training"] == 1500
    assert report[-1].endswith("problems found")
    with pytest.raises(InputError, match="corpus: corpora must be a list of entries with name, role and files"):
        rnnsmt.corpus.check([{"name": "train"}])
