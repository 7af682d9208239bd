"""README and docs: every command and option exists, every link has a target."""

import argparse
import re
import shlex
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Template

import pytest
import yaml

from rnnsmt.cli import PASSES_ON, _parser
from rnnsmt.plan.config import check
from rnnsmt.stages import SHORT, STAGES
from rnnsmt.translation import api, server, translator
from rnnsmt.translation.system import MAX_CHARACTERS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
IDS = [str(path.relative_to(ROOT)) for path in PAGES]


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
                    words = shlex.split(part.replace("...", "").replace("…", ""))
                    if words and words[0] in ("rnnsmt", "snakemake"):
                        yield words


@cache
def parser_of(package: str, stage: str) -> argparse.ArgumentParser:
    """Return the parser of a command."""
    parser = _parser([package, stage])
    for name in (package, stage):
        (action,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
        parser = action.choices[name]
    return parser


def options(package: str, stage: str) -> set[str]:
    """Return the options of a command."""
    return {option for action in parser_of(package, stage)._actions for option in action.option_strings}


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_commands_are_those_of_the_program(page):
    for words in commands(page):
        if words[0] != "rnnsmt" or words[1].startswith("-"):
            continue
        package, stage = SHORT.get(words[1]) or (words[1], words[2] if len(words) > 2 else "--help")
        if stage == "--help":
            assert package in STAGES, words
            continue
        assert stage in STAGES[package], words
        if (package, stage) == PASSES_ON:
            continue
        unknown = {word.split("=")[0] for word in words if word.startswith("--")} - options(package, stage)
        assert not unknown, words


def examples(package: str, stage: str) -> list[list[str]]:
    """Return the commands in the help of a stage."""
    lines = re.sub(r" \\\n *", " ", parser_of(package, stage).description).splitlines()
    return [
        shlex.split(part) for line in lines if line.startswith("    ") for part in line.split("|") if "rnnsmt " in part
    ]


@pytest.mark.parametrize(("package", "stage"), [(package, stage) for package in STAGES for stage in STAGES[package]])
def test_help_has_an_example_of_the_docs(package, stage):
    """Every command in the help of a stage is also in the docs, whose commands tests/workflow/test_docs.py runs."""
    every = [words for page in PAGES for words in commands(page)]
    found = examples(package, stage)
    assert found
    for words in found:
        assert words in every


@pytest.mark.parametrize(("package", "stage"), [(package, stage) for package in STAGES for stage in STAGES[package]])
def test_help_describes_every_option(package, stage):
    """Every option has a help text; a default is printed at most once, and as it is written on the command line."""
    parser = parser_of(package, stage)
    for action in parser._actions:
        assert action.help, action.option_strings
        shown = parser._get_formatter()._expand_help(action)
        assert shown.count("(default: ") <= 1, shown
        assert not re.search(r"default: (\(|\[|\)|$)", shown), shown


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_settings_in_commands_are_those_of_the_configuration(page):
    """Settings after --config in the docs are in the schema and have valid values."""
    for words in commands(page):
        if words[0] != "snakemake":
            continue
        config = yaml.safe_load((ROOT / "config.yaml").read_text())
        for word in words[1:]:
            name, equals, value = word.partition("=")
            if (
                equals
                and not name.startswith("-")
                and name not in ("data_dir", "gpu", "gpu_share", "mem_mb")
                and name in config
            ):
                content = yaml.safe_load(value)
                merged = isinstance(content, dict) and isinstance(config[name], dict)
                config[name] = config[name] | content if merged else content
        wrong = check(config, ROOT / "workflow/schemas/config.schema.json", [])
        assert not wrong, (words, wrong)


@pytest.mark.parametrize("page", PAGES, ids=IDS)
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
    assert listed == {path.name for path in PAGES[1:]}


def test_the_picture_of_the_pipeline_has_every_chapter_with_rules():
    (picture,) = re.findall(r"```mermaid\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    drawn = set(re.findall(r"(\w+)\[", picture))
    rules = {path.stem for path in (ROOT / "workflow/rules").glob("*.smk")}
    assert drawn == rules - {"common", "resources", "demo"}
    for name, text in re.findall(r"(\w+)\[(\w+):", picture):
        assert name == text


def test_limits_of_the_server():
    """Limits in the table of the section "Over HTTP" equal the constants in the code."""
    text = " ".join((ROOT / "docs/translation.md").read_text().split())
    table = text[text.index("| limit | value |") : text.index("### Behind a reverse proxy")]
    client, total = translator.MOST_COST_OF_CLIENT, translator.MOST_COST
    for said in (
        f"{api.MOST_BYTES:,} bytes",
        f"{api.MOST_LINES:,} lines of at most {server.MOST_WORDS} words and {MAX_CHARACTERS:,} characters",
        f"`nbest` up to {api.MOST_NBEST}",
        f"{server.MOST_HEAD_BYTES:,} bytes for the request line and headers",
        f"must arrive within {server.SECONDS:.0f} seconds",
        "| 120 `POST` requests in any 60 seconds (`--rate`)",
        f"{translator.MOST_WAITING} in total, {translator.MOST_WAITING_OF_CLIENT} per address",
        f"{total:,} characters in total, {client:,} per address",
        f"every line counts {translator.LINE_COST} characters more",
        f"more than {server.ANSWER_SECONDS:.0f} seconds",
        f"{server.MOST_CONNECTIONS} in total, {server.MOST_CONNECTIONS_OF_CLIENT} per address",
        "the /64 network of their IPv6 address",
    ):
        assert said in table, said
