"""Memory that mapped files take in this process."""

import re
from pathlib import Path

import pytest

SMAPS = Path("/proc/self/smaps")

reads_smaps = pytest.mark.skipif(not SMAPS.exists(), reason=f"{SMAPS} is required")


def resident_kilobytes(directory: Path) -> int:
    """Return the kilobytes of the files below a directory whose pages are mapped."""
    total = 0
    for entry in re.split(r"^(?=[0-9a-f]+-)", SMAPS.read_text(), flags=re.MULTILINE):
        if f"{directory}/" in entry:
            total += sum(int(size) for size in re.findall(r"^Rss: +(\d+) kB", entry, re.MULTILINE))
    return total
