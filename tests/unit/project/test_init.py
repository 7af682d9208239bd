"""`rnnsmt init`: the configurations that it writes are valid and have the expected entries."""

import contextlib
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import rnnsmt
from rnnsmt.base.errors import InputError
from rnnsmt.cli import main
from rnnsmt.plan.pipeline import pipeline_directory
from rnnsmt.plan.validation import checked_config
from rnnsmt.project import setup

DEFAULTS = yaml.safe_load((pipeline_directory() / "config.yaml").read_text())


@pytest.fixture(autouse=True)
def _with_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "find_spec", lambda name: object())


DEV_AND_TEST = ["--dev", "dev.en", "dev.de", "--test", "t.en", "t.de"]


def write(directory: Path, *names: str) -> list[str]:
    """Write files of one line; return their paths."""
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(f"a line of {name}\n")
    return [str(directory / name) for name in names]


def write_both_sides(directory: Path) -> None:
    """Write a zip archive and a TSV file of English and German, and a file of English only."""
    with zipfile.ZipFile(directory / "en-de.txt.zip", "w") as archive:
        for lang in ("en", "de"):
            archive.writestr(f"Books.{lang}", "a line\n")
    (directory / "test.tsv").write_text("a line\teine Zeile\n")
    (directory / "plain.txt").write_text("a line\n" * 12)


def settings(directory: Path) -> dict[str, Any]:
    """Return the configuration of a directory merged with the defaults, after checking that it is valid."""
    merged = DEFAULTS | yaml.safe_load((directory / "config.yaml").read_text())
    with contextlib.chdir(directory):
        checked_config(merged)
    return merged


def test_the_systems_of_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "demo"), "--demo", "--compare", "baseline", "cslm"]) == 0
    assert settings(tmp_path / "demo")["compare"] == ["baseline", "cslm"]
    assert main(["init", str(tmp_path / "other"), "--demo", "--compare", "cslm_rn"]) == 2
    assert "no system cslm_rn" in (error := capsys.readouterr().err)
    assert "cslm_rnn" in error
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("options", "tuning"),
    [
        ([], {"optimizer": "mira"}),
        (["--quick"], {"optimizer": "mira", "runs": 1}),
        (["--demo"], None),
        (["--demo", "--quick"], {"runs": 1}),
    ],
)
def test_the_optimizer_of_own_corpora(tmp_path: Path, options: list[str], tuning: dict[str, object] | None) -> None:
    """It is the best one of E11 on held-out text; the demo corpus has the paper's."""
    assert main(["init", str(tmp_path / "run"), *options]) == 0
    assert yaml.safe_load((tmp_path / "run/config.yaml").read_text()).get("tuning") == tuning


def test_training_text_alone_names_the_command_that_splits_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write(tmp_path, "train.en", "train.de")
    assert main(["init", str(tmp_path / "run"), "--bitext", *files]) == 2
    assert "rnnsmt corpus split" in capsys.readouterr().err


def test_the_demo_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "demo"), "--demo"]) == 0
    assert settings(tmp_path / "demo") == DEFAULTS | {"demo": {"scale": 1.0}}
    assert "rnnsmt run --cores 2" in capsys.readouterr().out
    profile = (tmp_path / "demo/profiles/default/config.yaml").read_text()
    assert profile == (pipeline_directory() / "profiles/default/config.yaml").read_text()


@pytest.mark.parametrize("profile", ["default", "slurm"])
def test_comments_do_not_name_files_of_a_checkout(tmp_path: Path, profile: str) -> None:
    assert main(["init", str(tmp_path), "--demo", "--profile", profile]) == 0
    lines = (tmp_path / "profiles/default/config.yaml").read_text().splitlines()
    text = " ".join(line for line in lines if line.lstrip().startswith("#"))
    assert "`rnnsmt init" in text and "rnnsmt run" in text
    text += (tmp_path / "config.yaml").read_text()
    assert not re.search("(src|workflow|profiles|docs)/|Snakefile|snakemake --cores N results", text)


def test_own_files(tmp_path: Path) -> None:
    """Languages come from the file suffixes, and corpus names are unique."""
    train = write(tmp_path, "data/train.en.gz", "data/train.de.gz")
    more = write(tmp_path, "data/opus/train.en", "data/opus/train.de")
    dev, test = write(tmp_path, "data/dev.en", "data/dev.de"), write(tmp_path, "data/it's é.en", "data/it's é.de")
    (mono,) = write(tmp_path, "data/more.de")
    words = ["init", str(tmp_path / "run"), "--bitext", *train, "--bitext", *more, "--dev", *dev, "--test", *test]
    assert main([*words, "--mono", mono]) == 0
    found = settings(tmp_path / "run")
    assert found["languages"] == {"source": "en", "target": "de"}
    assert found["data_dir"] == "../data"
    lines = (tmp_path / "run/config.yaml").read_text(encoding="utf-8").splitlines()
    assert "  - {name: train, role: bitext, source: train.en.gz, target: train.de.gz}" in lines, "as a person writes it"
    assert [(c["name"], c["role"], c.get("source"), c["target"]) for c in found["corpora"]] == [
        ("train", "bitext", "train.en.gz", "train.de.gz"),
        ("train-2", "bitext", "opus/train.en", "opus/train.de"),
        ("more", "mono", None, "more.de"),
        ("dev", "dev", "dev.en", "dev.de"),
        ("it-s", "test", "it's é.en", "it's é.de"),
    ]


def test_both_doors_write_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {role: write(tmp_path, f"{role}.en", f"{role}.de") for role in ("bitext", "dev", "test")}
    mono = write(tmp_path, "a.de", "b.de")
    options = [word for role, files in texts.items() for word in (f"--{role}", *files)]
    options += ["--mono", mono[0], "--mono", mono[1], "--languages", "en", "de"]
    assert main(["init", str(tmp_path / "command"), *options]) == 0
    said = capsys.readouterr().out.splitlines()
    files = {role: [[Path(name) for name in names]] for role, names in texts.items()}
    lines = rnnsmt.project.init(tmp_path / "python", **files, mono=mono, languages=("en", "de"))
    assert [line.replace("/python", "/command") for line in lines] == said
    assert not capsys.readouterr().out
    written = [(tmp_path / door / "config.yaml").read_bytes() for door in ("command", "python")]
    assert written[0] == written[1]
    with pytest.raises(InputError, match=r"^bitext .*: must be a list that has a list of one or two files"):
        rnnsmt.project.init(tmp_path / "other", bitext=texts["bitext"])
    with pytest.raises(InputError, match=r"^demo cannot be combined with files or languages"):
        rnnsmt.project.init(tmp_path / "other", demo=True, bitext=[texts["bitext"]])
    with pytest.raises(InputError, match="is a file, not a directory"):
        rnnsmt.project.init(mono[0], demo=True)


def test_files_with_both_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A zip archive, a prefix of two files and a TSV file are accepted with --languages."""
    write(tmp_path, "dev.en", "dev.de")
    write_both_sides(tmp_path)
    monkeypatch.chdir(tmp_path)
    words = [
        "init",
        "run",
        "--bitext",
        "en-de.txt.zip",
        "--dev",
        "dev",
        "--test",
        "test.tsv",
        "--languages",
        "en",
        "de",
    ]
    assert main(words) == 0
    assert [(corpus["name"], corpus["role"], corpus["file"]) for corpus in settings(tmp_path / "run")["corpora"]] == [
        ("en-de", "bitext", "en-de.txt.zip"),
        ("dev", "dev", "dev"),
        ("test", "test", "test.tsv"),
    ]


def test_columns_and_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--columns applies to TSV files and --members to zip archives; the check at the end reads these segments."""
    monkeypatch.chdir(tmp_path)
    for name in ("train.tsv", "test.tsv"):
        Path(name).write_text(f"7\ta line of {name}\teine Zeile\n" * 12)
    write(tmp_path, "more.en", "more.de")
    with zipfile.ZipFile("dev.zip", "w") as archive:
        for name in ("A.en", "A.de", "B.en", "B.de"):
            archive.writestr(name, "a line\n")
    files = ["--bitext", "train.tsv", "--bitext", "more.en", "more.de", "--dev", "dev.zip", "--dev", "dev.zip"]
    options = ["--columns", "2", "3", "--members", "B.en", "B.de", "--members", "A.en", "A.de"]
    assert main(["init", "run", *files, "--test", "test.tsv", *options]) == 0
    assert [(c.get("columns"), c.get("members")) for c in settings(tmp_path / "run")["corpora"]] == [
        ([2, 3], None),
        (None, None),
        (None, {"source": "B.en", "target": "B.de"}),
        (None, {"source": "A.en", "target": "A.de"}),
        ([2, 3], None),
    ]


@pytest.mark.parametrize(
    ("bitext", "languages"),
    [
        ("en-de.txt.zip", ("en", "de")),
        ("Books.de-en.zip", ("de", "en")),
        ("text", ("de", "en")),
        ("x.tmx", ("en", "de")),
    ],
)
def test_languages_of_files_with_both_sides(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    bitext: str,
    languages: tuple[str, str],
) -> None:
    """Languages come from the archive, the TMX file or the suffixes of a prefix; the direction is printed."""
    monkeypatch.chdir(tmp_path)
    write_both_sides(tmp_path)
    with zipfile.ZipFile("Books.de-en.zip", "w") as archive:
        for lang in languages:
            archive.writestr(f"Books.de-en.{lang}", "a line\n")
    write(tmp_path, "text.en", "text.de.gz")
    (tmp_path / "x.tmx").write_text(
        '<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="de"><seg>a</seg></tuv>'
        '<tuv xml:lang="en"><seg>b</seg></tuv></tu></body></tmx>'
    )
    Path("dev.tsv").write_text("another line\tandere Zeile\n")
    assert main(["init", ".", "--bitext", bitext, "--dev", "dev.tsv", "--test", "test.tsv"]) == 0
    assert tuple(settings(tmp_path)["languages"].values()) == languages
    source, target = languages
    line = f"languages: {source} to {target}, from {bitext}; for the other direction, add --languages {target} {source}"
    assert line in capsys.readouterr().out


def test_placeholders(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path), "--languages", "de", "fr"]) == 0
    found = settings(tmp_path)
    assert found["languages"] == {"source": "de", "target": "fr"}
    assert [corpus["role"] for corpus in found["corpora"]] == ["bitext", "dev", "test"]


def test_norwegian(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The language code `no` is written in quotes; unquoted, YAML parses it as false, which is accepted in a map."""
    for name in ("train", "dev", "test"):
        lines = {"no": [f"et ord {name} {n}" for n in range(40)], "en": [f"one word {name} {n}" for n in range(40)]}
        for lang, side in lines.items():
            (tmp_path / f"{name}.{lang}").write_text("".join(f"{line}\n" for line in side))
    files = [[str(tmp_path / f"{name}.{lang}") for lang in ("no", "en")] for name in ("train", "dev", "test")]
    options = [*["--bitext", *files[0]], *["--dev", *files[1]], *["--test", *files[2]]]
    assert main(["init", str(tmp_path / "run"), *options]) == 0
    assert settings(tmp_path / "run")["languages"] == {"source": "no", "target": "en"}
    assert yaml.safe_load((tmp_path / "run/config.yaml").read_text())["languages"]["source"] == "no"
    (tmp_path / "unquoted").mkdir()
    (tmp_path / "unquoted/config.yaml").write_text((tmp_path / "run/config.yaml").read_text().replace('"no"', "no"))
    capsys.readouterr()
    for config in ("run/config.yaml", "unquoted/config.yaml"):
        with pytest.raises(SystemExit, match="3"):  # a small dev set
            main(["corpus", "check", "--config", str(tmp_path / config)])
        assert "error" not in (said := capsys.readouterr()).out + said.err
    (tmp_path / "list.yaml").write_text("languages: [no, en]\ncorpora: []\n")
    assert main(["corpus", "check", "--config", str(tmp_path / "list.yaml")]) == 2
    assert "list.yaml: languages must be a map" in capsys.readouterr().err


def test_a_code_that_no_language_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path), "--languages", "xx", "fr"]) == 0
    assert "warning: --languages: xx is not a two-letter code of ISO 639-1" in capsys.readouterr().out


def test_a_suffix_that_contradicts_the_languages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A suffix that contradicts --languages causes a warning."""
    files = write(tmp_path, "train.en", "train.de")
    options = ["--bitext", *files, "--dev", *files, "--test", *files]
    assert main(["init", str(tmp_path / "run"), *options, "--languages", "en", "fr"]) == 0
    assert (
        "warning: --dev: the suffix of the target file train.de is de (German), but languages.target is fr; "
        in capsys.readouterr().out
    )


def test_without_pytorch_the_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup, "find_spec", lambda name: None)
    assert main(["init", str(tmp_path), "--demo"]) == 0
    assert settings(tmp_path)["compare"] == ["baseline"]
    said = capsys.readouterr().out
    assert "PyTorch is not installed" in said and "figures are omitted" in said
    assert settings(tmp_path)["evaluation"] == {"figures": False}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--demo", "--languages", "en", "de"], "--demo cannot be combined with files or --languages"),
        (["--bitext", "train.en", "train.de"], "there is no corpus for dev and test; add --dev and --test"),
        (["--bitext", "a.txt", "b.txt"], "add --languages SOURCE TARGET"),
        (["--bitext", "train.en", "trian.de", "--dev", "dev.en", "dev.de", "--test", "t.en", "t.de"], "did you mean"),
        (
            ["--bitext", "train.en", "train.de", "dev.en"],
            "--bitext: 3 files; specify one file with both languages, or two",
        ),
        (
            ["--bitext", "a.txt", "b.txt"],
            "--bitext: cannot determine the languages from the suffixes of a.txt and b.txt",
        ),
        (
            ["--bitext", "train.en", "dev.en"],
            "--bitext: the suffixes of train.en and dev.en are both en; specify a file",
        ),
        (["--bitext", "test.tsv"], "cannot determine the languages from test.tsv; add --languages"),
        (
            ["--bitext", "train.en", "train.de", "--dev", "dev.en", "dev.de", "--test", "t.de", "t.en"],
            "languages.target is de; correct languages, exchange source and target, or specify another file; or add",
        ),
        (
            ["--bitext", "train.en", "train.de", "--mono", "t.en"],
            "--mono: the suffix of the target file t.en is en (English), but languages.target is de; ",
        ),
        (
            ["--bitext", "plain.txt", *DEV_AND_TEST],
            "--bitext: plain.txt: 10 of the first 10 lines have fewer than 2 columns separated by tabs; specify a TSV "
            "file with a source and a target column, a TMX file, a zip archive (OPUS), or two text files",
        ),
        (
            ["--bitext", "en-de.txt.zip", *DEV_AND_TEST, "--languages", "en", "fr"],
            "--bitext: en-de.txt.zip: the archive contains no pair of text files NAME.en and NAME.fr; available: "
            "Books.en, Books.de; check the languages, or select two files with `members` in the configuration or with "
            "--members",
        ),
        (["--columns", "2", "2"], "--columns 2 2: source and target are the same"),
        (["--members", "a", "a"], "--members a a: source and target are the same"),
        (["--columns", "2", "1", "--bitext", "en-de.txt.zip"], "--columns: none of the files is a TSV file"),
        (
            ["--columns", "2", "3", "--bitext", "test.tsv", *DEV_AND_TEST, "--languages", "en", "de"],
            "--bitext: test.tsv: 1 of the first 1 lines have fewer than 3 columns separated by tabs",
        ),
        (
            ["--columns", "2", "1", "--bitext", "tset.tsv", *DEV_AND_TEST],
            "tset.tsv: no such file, and no files tset.tsv.en",
        ),
        (
            ["--members", "Books.en", "Book.de", "--bitext", "en-de.txt.zip"],
            "--members: no zip archive contains Books.en and Book.de; available: Books.en, Books.de",
        ),
        (
            [*2 * ["--members", "Books.en", "Books.de"], "--bitext", "en-de.txt.zip"],
            "--members: no further zip archive contains Books.en and Books.de; available: Books.en, Books.de",
        ),
        (
            ["--members", "a", "b", "--bitext", "test.tsv"],
            "--members: no zip archive contains a and b; available: none",
        ),
        (["--columns", "2", "1", "--demo"], "--columns cannot be combined with --demo"),
        (["--bitext", "tr", *DEV_AND_TEST], "--bitext: tr: no such file, and no files tr.en and tr.de"),
        (["--languages", "eng", "de"], "--languages: eng is a three-letter code; did you mean en"),
    ],
)
def test_mistakes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    write(tmp_path, "train.en", "train.de", "dev.en", "dev.de", "t.en", "t.de")
    write_both_sides(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["init", "run", *options]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text("mine: true\n")
    assert main(["init", str(tmp_path), "--demo"]) == 2
    assert "config.yaml exists; choose another directory" in capsys.readouterr().err
    assert (tmp_path / "config.yaml").read_text() == "mine: true\n"
    assert not (tmp_path / "profiles").exists()


def test_the_commands_that_follow_can_be_pasted_into_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "a.en", "a.de", *DEV_AND_TEST[1:3], *DEV_AND_TEST[4:])
    name = "l'été 2"
    assert main(["init", name, "--bitext", "a.en", "a.de", *DEV_AND_TEST]) == 0
    assert main(["init", f"{name} demo", "--demo"]) == 0
    commands = [line.removeprefix("next: ") for line in capsys.readouterr().out.splitlines() if "next: cd" in line]
    entered = [
        subprocess.run(["sh", "-c", command.split(" && ")[0] + " && pwd"], capture_output=True, text=True, check=True)
        for command in commands
    ]
    assert [done.stdout.strip() for done in entered] == [str(tmp_path / name), str(tmp_path / f"{name} demo")]
