"""Set the version of the package wherever it is stated: ``python .github/scripts/set_version.py 2.0.0``.

The section ``Unreleased`` of CHANGELOG.md becomes that of the version, with the date of today.
"""

import re
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[2]

STATED = {
    "pyproject.toml": r'^version = "(.*)"$',
    "src/rnnsmt/__init__.py": r'^__version__ = "(.*)"$',
    "workflow/rules/common.smk": r'^VERSION = "(.*)"$',
    "envs/rnnsmt.yaml": r"rnnsmt\[[\w,]+\]==([\w.]+)",
    "CITATION.cff": r"^version: (.*)$",
    "docs/install.md": r"rnnsmt-(\d[\w.]*?)(?:-py3|\.sif)",
    "config/README.md": r'[@"]v(\d[\w.]*)"',
    "CHANGELOG.md": r"^## (Unreleased)$",
}
"""Files, and the pattern of the version in each."""

DATED = r"^date-released: (.*)$"
"""Pattern of the date of a version in CITATION.cff."""


def set_version(root: Path, version: str, today: str) -> None:
    """Write a version into the files of a checkout; files that already have it keep their bytes.

    Raises:
        ValueError: the version is not X.Y.Z, or a file states none; nothing is written.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", version):
        raise ValueError(f"{version} is not a version like 2.0.0 or 2.0.0rc1")
    texts = {}
    for name, pattern in STATED.items():
        text = (root / name).read_text()
        new = f"{version} ({today})" if name == "CHANGELOG.md" else version
        found = list(re.finditer(pattern, text, re.M))
        if not found:
            raise ValueError(f"{name} has no line with the version ({pattern})")
        for match in reversed(found):
            text = text[: match.start(1)] + new + text[match.end(1) :]
        texts[name] = re.sub(DATED, f"date-released: {today}", text, flags=re.M) if name == "CITATION.cff" else text
    for name, text in texts.items():
        (root / name).write_text(text)


if __name__ == "__main__":
    try:
        set_version(ROOT, sys.argv[1], date.today().isoformat())
    except ValueError as error:
        sys.exit(str(error))
