"""README, docs and benchmarks: every command and option exists, every link has a target."""

import argparse
import ast
import pkgutil
import re
import runpy
import shlex
import unicodedata
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from string import Template

import pytest
import yaml
from snakemake.utils import update_config

from rnnsmt.base.fields import fields_of
from rnnsmt.cli import PASSES_ON, command_parser, main
from rnnsmt.config.sections import Config
from rnnsmt.plan.validation import checked_config
from rnnsmt.project.network_settings import setting_mistakes
from rnnsmt.project.reference import reference_lines
from rnnsmt.project.settings_table import json_schema
from rnnsmt.stages import FORMER, PACKAGES, SHORT, operations
from rnnsmt.translation import connections, queries, request_queue, serve
from rnnsmt.translation.system import MAX_CHARACTERS

ROOT = Path(__file__).parents[2]
SITE = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*(ROOT / folder / "README.md" for folder in (".", "config", "examples", "profiles")), *SITE]
BENCHMARKS = [*sorted((ROOT / "benchmarks").glob("*.md")), ROOT / "research/worth.md"]
RESEARCH = [path for path in sorted((ROOT / "research").glob("*.md")) if path not in BENCHMARKS]
SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))


def name_of(path: Path) -> str:
    """Return the path of a file in the repository, which names its tests."""
    return str(path.relative_to(ROOT))


SET = re.compile(r"(?:^| )([A-Z]+)=(\"[^\"]*\"|\S+)")
"""A variable of the shell and its value."""


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of every command in the code blocks of a page that begins with rnnsmt or snakemake.

    Shell variables that the page sets are replaced.
    """
    variables: dict[str, str] = {}
    for kind, block in re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.M | re.S):
        if kind in ("", "sh", "bash", "console"):
            for line in re.sub(r"\\\n\s*", " ", block).splitlines():
                variables |= {name: value.strip('"') for name, value in SET.findall(line)}
                for part in re.split(
                    r"\||;|&&", Template(line.split("  #")[0].removeprefix("$ ")).safe_substitute(variables)
                ):
                    if re.match(r"\s*(rnnsmt|snakemake)\b", part):
                        yield shlex.split(part.replace("...", "").replace("…", ""))


def recipes(path: Path) -> Iterator[list[str]]:
    """Yield the words of the commands of a page, or of the docstring of a script, that are indented by four spaces.

    Calls of a benchmark in a sentence or heading are included. The brackets of optional arguments, the bars between
    alternatives and dots are replaced by spaces.
    """
    text = ast.get_docstring(ast.parse(path.read_text())) if path.suffix == ".py" else path.read_text()
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    lines = re.findall(r"^    (?! )(.+(?:\n {8,}.+)*)", text, re.M)
    for lines_of_one in [*lines, *re.findall(r"`(python\s+benchmarks/[^`]+)`", text)]:
        line = re.sub(r"\\?\n *", " ", lines_of_one).split("  #")[0]
        plain = re.sub(r"(?<=\s)\[|\](?=\s|$)|(?<=\w)\|(?=\w)|\.\.\.", " ", line)
        for part in re.split(r" && | \| ", plain):
            if re.match(r"rnnsmt |snakemake |python benchmarks/", part.lstrip()):
                yield shlex.split(part)


@cache
def benchmark_options(script: str) -> dict[str, set[str]]:
    """Return the options of a benchmark: by subcommand, or of the script itself under ""."""

    class Parsed(Exception):  # noqa: N818
        """Raised instead of parsing, when the parser of a script is complete."""

    def stop(parser: argparse.ArgumentParser, *_: object) -> None:
        raise Parsed(parser)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Parsed) as caught:
        patch.setattr(argparse.ArgumentParser, "parse_args", stop)
        runpy.run_path(str(ROOT / script), run_name="__main__")
    (parser,) = caught.value.args
    parsers = {"": parser}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            parsers |= action.choices
    return {
        name: {option for one in found._actions for option in one.option_strings} for name, found in parsers.items()
    }


COMMANDS = [(package, stage) for package in PACKAGES for stage in operations(package)]


def options(package: str, stage: str, words: list[str]) -> set[str]:
    """Return the options of a command with these words."""
    parser = command_parser(package, stage, words=words)
    return {option for action in parser._actions for option in action.option_strings}


REFERENCE = re.findall(r"^<!-- reference: ([\w. \n]+?) -->$", "\n".join(page.read_text() for page in SITE), re.M)


@pytest.mark.parametrize("name", " ".join(REFERENCE).split())
def test_the_objects_of_the_reference_exist(name):
    """`make docs` writes the reference of the objects that the comments of a page name, and fails if one is missing."""
    assert pkgutil.resolve_name(name)


@pytest.mark.parametrize("path", [*PAGES, *BENCHMARKS, *SCRIPTS], ids=name_of)
def test_commands_are_those_of_the_program(path):
    for words in [*(commands(path) if path.suffix == ".md" else ()), *recipes(path)]:
        given = {word.split("=")[0] for word in words if word.startswith("--")}
        if words[0] == "python":
            assert (ROOT / words[1]).exists(), words
            if given:
                by_subcommand = benchmark_options(words[1])
                unknown = given - by_subcommand.get(words[2], by_subcommand[""])
                assert not unknown, (words, unknown)
            continue
        if words[0] != "rnnsmt" or words[1].startswith("-"):
            continue
        package, stage = SHORT.get(words[1]) or (words[1], words[2] if len(words) > 2 else "--help")
        if stage == "--help":
            assert package in PACKAGES, words
            continue
        assert stage in operations(package), words
        if (package, stage) == PASSES_ON:
            continue
        unknown = given - options(package, stage, words)
        assert not unknown, (words, unknown)


def examples(package: str, stage: str) -> list[list[str]]:
    """Return the commands in the help of a stage."""
    lines = re.sub(r" \\\n *", " ", command_parser(package, stage).description).splitlines()
    return [
        shlex.split(part) for line in lines if line.startswith("    ") for part in line.split("|") if "rnnsmt " in part
    ]


@pytest.mark.parametrize(("package", "stage"), COMMANDS)
def test_help_has_an_example(package, stage):
    """Every help has an example; docs/operations.md has it too, and tests/workflow/test_docs.py runs it."""
    names = {
        f"rnnsmt {package} {stage}",
        *(f"rnnsmt {short}" for short, full in SHORT.items() if full == (package, stage)),
    }
    found = [" ".join(words) for words in examples(package, stage)]
    assert any(words.startswith(name) for words in found for name in names), found


@pytest.mark.parametrize(("package", "stage"), COMMANDS)
def test_help_describes_every_option(package, stage):
    """Every option has a help text; a default is printed at most once, and as it is written on the command line."""
    parser = command_parser(package, stage)
    for action in parser._actions:
        assert action.help, action.option_strings
        shown = parser._get_formatter()._expand_help(action)
        assert shown.count("(default: ") <= 1, shown
        assert not re.search(r"default: (\(|\[|\)|$)", shown), shown
        assert not re.search(r"\b(null|None|Python)\b|``", shown), "what is typed in a configuration or in Python"
        labels = set(re.findall(r"; ([\w-]+): ", shown)) - {"others"} if action.choices else set()
        assert labels <= set(action.choices or ()), (shown, "describes a value that is refused")


@pytest.mark.parametrize("page", [*PAGES, *BENCHMARKS], ids=name_of)
def test_settings_in_commands_are_those_of_the_configuration(page):
    """Check settings after --config, except those for systems of OWN."""
    for words in [*commands(page), *recipes(page)]:
        if words[0] != "snakemake" or "OWN" in words:
            continue
        config = yaml.safe_load((ROOT / "config.yaml").read_text())
        if "workflow/configs/seq2seq.yaml" in words:
            update_config(config, yaml.safe_load((ROOT / "workflow/configs/seq2seq.yaml").read_text()))
        for word in words[1:]:
            name, equals, value = word.partition("=")
            if equals and not name.startswith("-") and name in fields_of(Config) and name != "data_dir":
                update_config(config, {name: yaml.safe_load(value)})
        assert list(setting_mistakes(checked_config(config))) == [], words


@pytest.mark.parametrize(
    "page", [*PAGES, *BENCHMARKS, *RESEARCH, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"], ids=name_of
)
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for address in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:|mailto:", address):
            continue
        path, _, anchor = address.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), address
        if anchor:
            assert anchor in anchors(target.read_text()), address


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as Python-Markdown's toc creates them; repeated ones get _1, _2 ..."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?) *$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M):
        plain = unicodedata.normalize("NFKD", re.sub(r"[`*]", "", heading)).encode("ascii", "ignore").decode()
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
        number = 0
        while (unique := f"{slug}_{number}" if number else slug) in found:
            number += 1
        found.add(unique)
    return found


def test_anchors():
    text = "# A `b` – c\n\n```\n# no heading\n```\n## Same\n## Same\n### What's *this*?\n"
    assert anchors(text) == {"a-b-c", "same", "same_1", "whats-this"}


def test_every_page_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text()
    listed = set(re.findall(r"([\w-]+\.md)", text))
    assert listed == {path.name for path in SITE}


def test_the_page_of_operations_is_that_of_the_program():
    assert (ROOT / "docs/operations.md").read_text() == "\n".join([*reference_lines(), ""]), (
        "python -m rnnsmt.project.reference > docs/operations.md"
    )


def test_the_picture_of_the_pipeline_has_every_chapter_with_rules():
    (picture,) = re.findall(r"```mermaid\n(.*?)```", (ROOT / "docs/index.md").read_text(), re.S)
    drawn = set(re.findall(r"(\w+)\[", picture))
    rules = {path.stem for path in (ROOT / "workflow/rules").glob("*.smk")}
    assert drawn == rules - {"common", "resources", "demo"}
    for name, text in re.findall(r"(\w+)\[(\w+):", picture):
        assert name == text


def test_limits_of_the_server():
    """Limits in the table of the section "Over HTTP" equal the constants in the code."""
    text = " ".join((ROOT / "docs/translation.md").read_text().split())
    table = text[text.index("| limit | value |") : text.index("### Behind a reverse proxy")]
    for said in (
        f"{queries.MOST_BYTES:,} bytes",
        f"{queries.MOST_LINES:,} lines of at most {serve.MOST_WORDS} words and {MAX_CHARACTERS:,} characters",
        f"`nbest` up to {queries.MOST_NBEST}",
        f"{request_queue.MOST_WAITING}, with {request_queue.MOST_COST:,} characters in total",
        f"every line counts {request_queue.LINE_COST} characters more",
        f"{request_queue.MOST_ANSWERS // 1_000_000} MB in total",
        f"up to {request_queue.SMALL_ANSWER // 1000} kB",
        f"{connections.MOST_CONNECTIONS}, and always fewer",
        f"after {connections.UNREAD_SECONDS} seconds without reading",
        f"for at most {connections.DRAIN_SECONDS} seconds",
    ):
        assert said in table, said


def test_former_commands_are_in_the_docs():
    """A former command is refused with what the table of the docs says."""
    text = (ROOT / "docs/upgrading.md").read_text().partition("\n## Commands\n")[2]
    rows = [row.split(" | ") for row in re.findall(r"^\| (.*) \|$", text, re.M)]
    for command, sentence in FORMER.items():
        cells = [row[1] for row in rows if re.search(rf"`(?:rnnsmt )?{command}( status)?`", row[0])]
        assert cells, command
        for name in re.findall(r"`(?:rnnsmt )?([^`]*)`", sentence):
            assert any(name in cell for cell in cells), (command, name)
            words = name.split()
            assert words[0] not in PACKAGES or words[1] in operations(words[0])
    assert not {f"{package} {name}" for package in PACKAGES for name in operations(package)} & set(FORMER)


def former(kind: str) -> Iterator[tuple[str, list[str]]]:
    """Yield what version 1.0.0 had of a kind: a command, section or module, and its options, keys or names."""
    for line in (ROOT / "tests/unit/version_1.0.0.txt").read_text().splitlines():
        first, _, rest = line.partition(":")
        if first.startswith(f"{kind} "):
            yield first.removeprefix(f"{kind} "), rest.split()


def test_what_version_1_0_0_had_is_there_or_on_the_page():
    """docs/upgrading.md names every option, setting, output and Python name of version 1.0.0 that is gone."""
    text = (ROOT / "docs/upgrading.md").read_text()
    settings, running, rest = re.findall(r"^## .*?(?=^## |\Z)", text, re.M | re.S)[:3]
    python = text.partition("\n## Python\n")[2]
    gone = []
    for command, given in former("command"):
        package, name = command.split()
        if package in PACKAGES and name in operations(package):
            lost = set(given) - options(package, name, [])
            rows = [row for row in rest.splitlines() if name in row or "of " in row]
            gone += [
                f"{command} {option}" for option in lost if not any(re.search(f"{option}[` ]", row) for row in rows)
            ]
        elif command not in FORMER and f"`{command}`" not in rest:
            gone.append(command)
    known = set(all_keys(json_schema()))
    for section, keys in former("settings"):
        for key in (section, *(f"{section}.{key}" for key in keys)):
            shown = re.sub(r"^(\w+)\.settings\.optimiser$", "settings.optimiser", key)
            gone += [key] if key not in known and f"`{shown}`" not in settings else []
    for _, paths in former("outputs"):
        for path in paths:
            directory = re.sub(r"\d", "{n}", re.sub(r"/\w+/network1/model", "/{network}/network1/model", path))
            places = {f"`{directory}`", f"`{path.rpartition('/')[0]}/`", f"`{path}`"}
            shards = re.sub(r"\d-of-\d", "{k}-of-{N}", path).replace("network1", "network{n}")
            gone += [path] if not any(place in running for place in {*places, f"`{shards}`"}) else []
    for module, names in former("python"):
        for name in names:
            try:
                getattr(import_module(module), name)
            except (ImportError, AttributeError):
                gone += [name] if f"`{module}.{name}`" not in python else []
    assert not gone, gone


def all_keys(schema: dict, part: dict | None = None, prefix: str = "") -> Iterator[str]:
    """Yield the keys of a JSON schema; those of sections after the section and a dot."""
    part = schema if part is None else part
    while "$ref" in part:
        part = schema["$defs"][part["$ref"].rpartition("/")[2]]
    for one in (*part.get("anyOf", ()), *part.get("allOf", ()), *([part["items"]] if "items" in part else ())):
        yield from all_keys(schema, one, prefix)
    for name, below in part.get("properties", {}).items():
        yield prefix + name
        yield from all_keys(schema, below, f"{prefix}{name}.")


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("networks trian", "networks train"),
        ("network train", "networks train"),
        ("corpus estimate", "lm estimate"),
        ("transalte letter", "translate"),
        ("train-truecaser --help", "corpus train-truecaser"),
        ("tuning mert --ini a", "tuning tune"),
        ("xyzzy", "--help"),
    ],
)
def test_an_unknown_command_names_the_one_that_is_meant(words, command, capsys):
    assert main(words.split()) == 2
    assert f"`rnnsmt {command}`" in capsys.readouterr().err
