"""The directory of the workflow: Snakefile, config.yaml, rules, conda environments and profiles.

There is one copy of these files, at the top level of the repository. An editable installation uses it there. The build
of a wheel (``setup.py``) copies it into the package, with the same layout, because the files refer to each other by
relative paths.
"""

from pathlib import Path

import rnnsmt
from rnnsmt.base.errors import InputError

PACKAGE = Path(rnnsmt.__file__).resolve().parent

IN_WHEEL = PACKAGE / "pipeline"
"""Directory of the workflow in a package that was installed from a wheel."""


def checkout() -> Path | None:
    """Return the checkout that contains this package; None if the package was installed from a wheel."""
    root = PACKAGE.parents[1]
    return root if not IN_WHEEL.is_dir() and (root / "Snakefile").is_file() else None


def pipeline_directory() -> Path:
    """Return the directory with Snakefile, config.yaml, workflow/, envs/ and profiles/."""
    directory = checkout() or IN_WHEEL
    if not directory.is_dir():
        raise InputError(f"{PACKAGE} has no workflow; install a wheel of rnnsmt, or `pip install -e` a checkout")
    return directory
