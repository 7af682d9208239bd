"""Configurations of the workflow: mutated text, and values of the wrong type, number or name."""

import os
import random
import re
import sys
import traceback
from pathlib import Path

import yaml

from rnnsmt.base.io import InputError
from rnnsmt.plan.config import check, resolve_auto
from rnnsmt.plan.corpora import language_warnings, missing_files
from rnnsmt.plan.models import Systems
from rnnsmt.plan.paths import Texts
from rnnsmt.project.network_settings import setting_mistakes
from snakemake_logger_plugin_rnnsmt.command_line import _configfile

from ..conftest import ROOT
from .harness import Case, Harness
from .mutation import mutated_text, mutated_value

TOKENS = (
    b"&a [*a]~*b~!!python/object/apply:os.system [x]~<<: *a~---~...~{~}~[~]~: ~- ~|~>~#~%~@~`~? ~2001-13-45~1e999~.nan"
    b"~0o7~auto~true~null~~~demo:~'~\"~!!binary x~!!int x~1:30~\t~seed:~systems:"
).split(b"~")  # fmt: skip
"""Words of YAML and of the configuration."""


class Configurations(Harness):
    """Files of ``--configfile``, checked as ``workflow/rules/common.smk`` does before it plans."""

    name = "configurations"

    def prepare(self) -> None:
        """Read the configurations of the checkout."""
        self.directory.joinpath("data").mkdir()
        for path in (ROOT / "config.yaml", *sorted((ROOT / "workflow/configs").glob("*.yaml"))):
            self.originals[path.name] = path.read_bytes()
        self.usual = (ROOT / "config.yaml").read_text()
        self.names = sorted(set(re.findall(r"^ *([a-z_0-9]+):", self.usual, re.M)))

    def case(self, number: int, rng: random.Random) -> Case:
        """Return a configuration with another value, or with mutated text."""
        target = self.target(number)
        data = self.originals[target]
        if rng.random() < 0.4:
            other = rng.choice(list(self.originals.values()))
            return Case(target, mutated_text(data, rng, TOKENS, other), True)
        content = yaml.safe_load(data)
        for _ in range(rng.choice([1, 1, 2, 4])):
            content = mutated_value(content, rng, self.names)
        return Case(target, yaml.safe_dump(content, allow_unicode=True).encode("utf-8", "replace"), True)

    def use(self, case: Case) -> str:
        """Check a configuration, replace ``auto``, and name files and systems."""
        from snakemake.utils import update_config

        path = self.directory / "mine.yaml"
        path.write_bytes(case.content)
        mistakes = list(_configfile(str(path)))
        if mistakes:
            raise InputError(_joined(mistakes))
        config = yaml.safe_load(self.usual)
        update_config(config, yaml.safe_load(path.read_text(encoding="utf-8")))
        mistakes = check(config, ROOT / "workflow/schemas/config.schema.json", [path])
        if mistakes:
            raise InputError(_joined(mistakes))
        resolved = resolve_auto(config)
        texts, systems = Texts(config), Systems(config)
        mistakes = list(setting_mistakes(systems))
        if mistakes:
            raise InputError(_joined(mistakes))
        corpora = list(texts.corpora.values())
        warnings = [*language_warnings(corpora, config["languages"]), *missing_files(corpora, config["data_dir"])]
        return str([resolved, list(texts.sets), list(systems.runs), len(warnings)])


def _joined(mistakes: list[str]) -> str:
    """Join error messages to one line; each must be a single line of limited length."""
    assert all("\n" not in line and len(line) < 5000 for line in mistakes), mistakes
    return "mistakes in the configuration: " + "; ".join(mistakes)


class Plans(Configurations):
    """The same files; configurations that pass the checks are planned by Snakemake, in a fork that has imported it."""

    name = "plans"
    seconds = 60
    """A plan of 64 tuning runs of every system has thousands of jobs and takes 11 seconds."""

    def start(self) -> None:
        """Import Snakemake before the first fork."""
        import snakemake.cli  # noqa: F401

    def expected(self, target: str) -> str:
        """Return an empty string: without corpora, the undamaged configuration cannot be planned."""
        return ""

    def use(self, case: Case) -> str:
        """Plan, and check the output of Snakemake."""
        super().use(case)
        path, out = self.directory / "mine.yaml", self.directory / "out"
        child = os.fork()
        if not child:
            _plan(self.directory, path, out)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        text = out.read_text(errors="replace")
        assert code in (0, 1, 2), (code, text[-3000:])
        assert not re.search(r"Traceback|(?<!Workflow)(Error|Exception) in (file|line|rule)|RecursionError", text), (
            text[-3000:]
        )
        if code:
            raise InputError("refused by Snakemake: " + " ".join(text.split())[:1000])
        return str(sorted(set(re.findall(r"^ *(?:local)?rule (\w+):$", text, re.M))))


def _plan(directory: Path, path: Path, out: Path) -> None:
    """Run Snakemake in a forked process."""
    status = 1
    try:
        from snakemake.cli import main

        os.chdir(directory)
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        sys.argv = [
            "snakemake",
            "-n",
            "--cores",
            "1",
            "--snakefile",
            str(ROOT / "Snakefile"),
            "--configfile",
            str(path),
        ]
        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
