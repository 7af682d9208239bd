"""The directory of the workflow: Snakefile, config.yaml, rules, schemas, conda environments and profiles.

There is one copy of these files, at the top level of the repository. An editable installation uses it there. The build
of a wheel (``setup.py``) copies it into the package, with the same layout, because the files refer to each other by
relative paths.
"""

import argparse
import difflib
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

import rnnsmt
from rnnsmt.base.io import InputError

PACKAGE = Path(rnnsmt.__file__).resolve().parent

IN_WHEEL = PACKAGE / "pipeline"
"""Directory of the workflow in a package that was installed from a wheel."""


def checkout() -> Path | None:
    """Return the checkout that contains this package; None if the package was installed from a wheel."""
    root = PACKAGE.parents[1]
    return root if not IN_WHEEL.is_dir() and (root / "Snakefile").is_file() else None


def pipeline_directory() -> Path:
    """Return the directory with Snakefile, config.yaml, workflow/, envs/ and profiles/.

    Raises:
        InputError: the package was installed without them.
    """
    directory = checkout() or IN_WHEEL
    if not directory.is_dir():
        raise InputError(f"{PACKAGE} has no workflow; install a wheel of rnnsmt, or `pip install -e` a checkout")
    return directory


def check_package(rules: Path | None, version: str) -> None:
    """Check that the rules of a workflow and this package have the same version.

    Args:
        rules: directory of the workflow that contains the rules; None: it is not on this machine (a hosted module).
        version: version of the package that the rules require.

    Raises:
        InputError: this package has another version, or is that of another checkout.
    """
    this_checkout = checkout()
    if this_checkout is not None and rules is not None and (rules / "src").is_dir() and this_checkout != rules:
        raise InputError(
            f"rnnsmt is imported from {PACKAGE}, but this workflow is part of the checkout {rules}: run `make setup` "
            f"in {rules} and use its .venv/bin/snakemake, or run `pip install -e {rules}` in the current environment"
        )
    if rnnsmt.__version__ != version:
        raise InputError(
            f"the current environment has rnnsmt {rnnsmt.__version__}, but this workflow requires {version}: "
            f"pip install rnnsmt=={version}"
        )


def omitted(arguments: Sequence[str]) -> list[str]:
    """Return the rules and files of Snakemake's option ``--omit-from``.

    Args:
        arguments: Snakemake's command line.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--omit-from", "-O", nargs="+", default=[])
    with suppress(argparse.ArgumentError):  # Snakemake reports it
        return list(parser.parse_known_args(list(arguments))[0].omit_from)
    return []


def near_name(name: str, names: Collection[str]) -> str:
    """Return a hint with the most similar one of some names for an error message; empty if none is similar."""
    near = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {near[0]}?" if near else ""
