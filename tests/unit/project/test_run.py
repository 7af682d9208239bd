"""`rnnsmt run`: the command line of Snakemake, and the table at the end."""

import logging
import signal
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from rnnsmt.cli import main
from rnnsmt.plan.pipeline import pipeline_directory
from rnnsmt.project import running
from rnnsmt.project.running import command_line

SNAKEFILE = ["--snakefile", str(pipeline_directory() / "Snakefile")]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a demo project in the current directory."""
    monkeypatch.chdir(tmp_path)
    assert main(["init", ".", "--demo"]) == 0
    return tmp_path


@pytest.fixture
def snakemake(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Replace Snakemake by a function whose result is its exit status."""

    def replace(action: Callable[[], object]) -> None:
        def run() -> None:
            raise SystemExit(action())

        monkeypatch.setattr(sys, "argv", ["rnnsmt"])
        monkeypatch.setitem(sys.modules, "snakemake.cli", types.SimpleNamespace(main=run))

    return replace


def test_what_is_added(directory: Path) -> None:
    profile = ["--workflow-profile", "profiles/default"]
    assert command_line(["--cores", "2", "results/table2.md"]) == [
        *SNAKEFILE, "--configfile=config.yaml", *profile, "--cores", "2", "results/table2.md",
    ]  # fmt: skip
    assert command_line(["--configfile", "a.yaml", "b.yaml"]) == [
        *SNAKEFILE,
        *profile,
        "--configfile",
        "a.yaml",
        "b.yaml",
    ]
    given = ["-s", "mine", "--workflow-profile", "none", "target"]
    assert command_line(given) == ["--configfile=config.yaml", *given]


def test_another_directory(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    added = command_line(["--directory", str(directory)])
    assert f"--configfile={directory / 'config.yaml'}" in added
    assert str(directory / "profiles/default") in added


def test_a_directory_that_is_not_set_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--cores", "2"]) == 2
    assert "config.yaml: no such file; create a run directory with `rnnsmt init DIR`" in capsys.readouterr().err


@pytest.mark.parametrize("status", [0, 1])
def test_the_table_of_a_run_that_succeeds(
    directory: Path, snakemake: Callable, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    def run() -> int:
        assert sys.argv[1:3] == SNAKEFILE
        assert sys.argv[-3:] == ["--cores", "2", "--help-me"]
        (directory / "results").mkdir()
        (directory / "results/table1.md").write_text("| System | BLEU |\n")
        return status

    snakemake(run)
    with pytest.raises(SystemExit) as end:
        main(["run", "--cores", "2", "--help-me"])
    assert end.value.code == status
    assert capsys.readouterr().out.endswith("| System | BLEU |\n") == (status == 0)


@pytest.mark.parametrize(
    ("records", "status"),
    [
        ([{"event": LogEvent.ERROR, "exception": "WorkflowError"}], 2),
        ([{"event": LogEvent.ERROR, "exception": "NameError"}], 1),
        ([{"event": LogEvent.RUN_INFO}, {"event": LogEvent.ERROR, "exception": "WorkflowError"}], 1),
        ([], 1),
    ],
)
def test_the_exit_status_of_invalid_input_is_2(
    directory: Path, snakemake: Callable, records: list[dict], status: int
) -> None:
    """The exit status is 2 for invalid input found before the run; for failed jobs and bugs it is that of Snakemake."""

    def run() -> int:
        for about in records:
            logging.getLogger("snakemake.logging").error("message", extra=about)
        return 1

    snakemake(run)
    with pytest.raises(SystemExit) as end:
        main(["run", "--cores", "2"])
    assert end.value.code == status


def test_sigterm_before_the_first_job_is_reported(
    directory: Path, snakemake: Callable, capsys: pytest.CaptureFixture[str]
) -> None:
    snakemake(lambda: 128 + signal.SIGTERM)
    with pytest.raises(SystemExit) as end:
        main(["run", "--cores", "2"])
    assert end.value.code == 128 + signal.SIGTERM
    assert capsys.readouterr().err == "rnnsmt run: stopped by SIGTERM; run the same command again to resume\n"


def test_no_table_if_the_run_has_not_written_it(
    directory: Path, snakemake: Callable, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "results").mkdir()
    (directory / "results/table1.md").write_text("| System | BLEU |\n")
    snakemake(lambda: 0)
    with pytest.raises(SystemExit):
        main(["run", "-n"])
    assert "System" not in capsys.readouterr().out


def test_no_table_if_files_are_only_touched(
    directory: Path, snakemake: Callable, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "results").mkdir()
    snakemake(lambda: (directory / "results/table1.md").write_text("| System | BLEU |\n") and 0)
    with pytest.raises(SystemExit):
        main(["run", "--cores", "2", "--touch"])
    assert "System" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "module", "sentence"),
    [
        (["--executor", "slurm"], "snakemake_executor_plugin_slurm", "--executor slurm: Snakemake's plugin for Slurm"),
        ([], "snakemake_executor_plugin_slurm", "profiles/default/config.yaml: executor slurm: Snakemake's plugin"),
        (["--report", "a.zip"], "pygments", "--report: the Python module pygments"),
    ],
)
def test_a_missing_extra_is_reported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    snakemake: Callable,
    options: list[str],
    module: str,
    sentence: str,
) -> None:
    """A missing package is reported with the extra to install before Snakemake starts."""
    monkeypatch.chdir(tmp_path)
    assert main(["init", ".", "--demo", *([] if options else ["--profile", "slurm"])]) == 0
    snakemake(lambda: 7)
    installed = {module}
    monkeypatch.setattr(running, "find_spec", lambda name: name in installed or name == "snakemake" or None)
    with pytest.raises(SystemExit) as end:
        main(["run", *options])
    assert end.value.code == 7
    installed.clear()
    assert main(["run", *options]) == 2
    error = capsys.readouterr().err
    extra = "report" if module == "pygments" else "slurm"
    assert sentence in error
    assert f"is not installed; run `pip install 'rnnsmt[{extra}]'`" in error


def test_its_own_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", "--help"])
    assert end.value.code == 0
    assert "Options are passed on to Snakemake" in capsys.readouterr().out
