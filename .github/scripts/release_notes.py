"""Print the section of CHANGELOG.md of a release: ``python .github/scripts/release_notes.py v1.0.0``.

Exits with a sentence and status 1 if the tag is not the version of pyproject.toml, or the section is missing or empty.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def release_notes(tag: str, version: str, changelog: str) -> str:
    """Return the text below the heading of a version in a changelog.

    Raises:
        ValueError: the tag is not that of the version, or the changelog has no text for it.
    """
    if tag != f"v{version}":
        raise ValueError(f"the tag is {tag}, but pyproject.toml has version {version}: its tag is v{version}")
    section = re.search(rf"^## {re.escape(version)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)", changelog, re.M | re.S)
    if section is None or not section[1].strip():
        raise ValueError(f"CHANGELOG.md has no section `## {version}` with text: rename the section `Unreleased`")
    return section[1].strip() + "\n"


if __name__ == "__main__":
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    try:
        print(release_notes(sys.argv[1], stated, (ROOT / "CHANGELOG.md").read_text()), end="")
    except ValueError as error:
        sys.exit(str(error))
