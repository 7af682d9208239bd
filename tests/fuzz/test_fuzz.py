"""A few seconds, at least eight cases, of every harness, and all past findings; ``make fuzz`` runs more cases."""

import os
import signal
import time
from pathlib import Path

import pytest

from . import HARNESSES
from . import harness as module
from .harness import BAD, Case, Harness, outcomes, quiet_stderr, read_finding, run

SLOW = ("networks", "texts", "plans")
"""Harnesses that need many seconds before the first case, or for a case."""

FINDINGS = Path(__file__).parent / "findings"


def prepared(kind: type[Harness], directory: Path) -> Harness:
    """Return a prepared harness."""
    harness = kind(directory)
    with quiet_stderr():
        harness.prepare()
    return harness


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in HARNESSES])
def test_no_crash_no_hang_no_traceback_no_silent_change(tmp_path: Path, name: str) -> None:
    harness = prepared(HARNESSES[name], tmp_path)
    report = run(harness, seed=2, cases=1000, seconds=5, least=8)
    assert not [result for result, _ in report.bad]
    total = sum(report.outcomes.values())
    assert total
    assert report.outcomes["refused"] > total / 5, "the damage is noticed"


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in HARNESSES])
def test_past_findings(tmp_path: Path, name: str) -> None:
    """Every file of ``findings/NAME`` is refused with its message, or is accepted if it has none."""
    paths = sorted((FINDINGS / name).glob("*"))
    if not paths:
        pytest.skip("there is no finding of this harness")
    harness = prepared(HARNESSES[name], tmp_path)
    found = [read_finding(path) for path in paths]
    with quiet_stderr():
        for finding in found:
            harness.expected(finding.case.target)
    results = list(outcomes(harness, lambda number: found[number].case, len(found)))
    assert len(results) == len(found)
    for path, finding, result in zip(paths, found, results, strict=True):
        assert result.outcome not in BAD, (path.name, result)
        assert (result.outcome == "refused") == bool(finding.message), (path.name, result)
        assert finding.message in result.detail, (path.name, result)


class Misbehaving(Harness):
    """Harness with every kind of bad outcome."""

    name = "misbehaving"

    def prepare(self) -> None:
        """Set a single target."""
        self.originals["x"] = b"0"

    def use(self, case: Case) -> str:
        """Crash, hang or raise an exception, depending on the content."""
        content = case.content
        if content == b"crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif content == b"hang":
            time.sleep(1000)
        elif content == b"traceback":
            raise KeyError("a")
        return str(content)


def test_the_harness_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.5)
    monkeypatch.setattr(module, "MOST_SECONDS", 1)
    contents = [b"0", b"crash", b"0", b"hang", b"traceback", b"1", b"0"]
    harness = prepared(Misbehaving, tmp_path)
    found = list(outcomes(harness, lambda number: Case("x", contents[number]), len(contents)))
    expected = ["unchanged", "crash", "unchanged", "hang", "traceback", "silent change", "unchanged"]
    assert [result.outcome for result in found] == expected
    assert [result.number for result in found] == list(range(len(contents)))
