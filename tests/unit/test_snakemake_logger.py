"""The output of a run of the workflow."""

import io
import itertools
import json
import logging
import os
import re
from pathlib import Path

import pytest
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import OutputSettingsLoggerInterface

from snakemake_logger_plugin_rnnsmt import STATUS, UNFINISHED, LogHandler, Terminal, plain_error
from snakemake_logger_plugin_rnnsmt.command_line import mistakes
from snakemake_logger_plugin_rnnsmt.progress import RESULTS, WEIGHTS, Run, clock, last_words, read_log, results


class Tty(io.StringIO):
    """Stream that reports to be a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


def screen(written: str) -> list[str]:
    """Return the lines of a terminal after cursor movements up and erasing down."""
    lines = [""]
    for part in re.split(r"(\x1b\[\d+A\x1b\[J|\n)", written):
        if up := re.fullmatch(r"\x1b\[(\d+)A\x1b\[J", part):
            assert lines[-1] == ""
            lines = [*lines[: len(lines) - 1 - int(up[1])], ""]
        elif part == "\n":
            lines.append("")
        else:
            lines[-1] += part
    return lines[:-1]


def test_the_block_stays_at_the_foot():
    stream = Tty()
    terminal = Terminal(stream)
    terminal.block(["one", "two"])
    terminal.line("passes")
    terminal.block(["three"])
    terminal.line("passes too")
    assert screen(stream.getvalue()) == ["passes", "passes too", "three"]
    terminal.block([])
    assert screen(stream.getvalue()) == ["passes", "passes too"]


def test_the_block_fits_into_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "10")
    monkeypatch.setenv("LINES", "5")
    stream = Tty()
    Terminal(stream).block(["x" * 30] * 9)
    assert screen(stream.getvalue()) == ["x" * 9] * 3


def test_a_closed_pipe():
    """A closed pipe, as in `snakemake -n | head`, causes neither an error nor a traceback."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        terminal = Terminal(stream)
        terminal.line("one")
        terminal.line("two")


def test_no_block_in_a_pipe():
    stream = io.StringIO()
    terminal = Terminal(stream)
    terminal.block(["one"])
    terminal.line("passes")
    assert stream.getvalue() == "passes\n"


@pytest.fixture
def run() -> Run:
    """Return a run of nine jobs of two rules, two of them running since 0."""
    run = Run()
    run.plan({"short": 6, "long": 3, "total": 9}, 0.0)
    for number in (1, 2):
        run.announced({"jobid": number, "rule_name": "short", "wildcards": {"n": number}, "log": []}, 0.0)
    return run


def test_what_runs_and_how_far_it_is(run):
    assert run.finished(1, 2.0) == []
    assert run.block(65.0) == ["[###...........................] 1/9 jobs, 1 min 05 s", "  short n=2, 1 min 05 s"]


def test_the_expected_end():
    """The estimate assumes the mean time of a rule's jobs and the past number of parallel jobs."""
    run = Run()
    run.plan({"short": 10, "long": 4, "total": 14}, 0.0)
    at = 0.0
    for number, (rule, seconds) in enumerate([("short", 2.0)] * 8 + [("long", 30.0)] * 2):
        run.announced({"jobid": number, "rule_name": rule, "wildcards": {}, "log": []}, at)
        run.finished(number, at + seconds)
        at += seconds / 2
        assert (run.seconds_left(at + 1) is None) == (number < 4)
    left = run.seconds_left(at)
    assert left == pytest.approx((2 * 2.0 + 2 * 30.0) / 2)
    run.announced({"jobid": 20, "rule_name": "long", "wildcards": {}, "log": []}, at)
    assert run.seconds_left(at + 10.0) < left
    assert ", about 32 s left" in run.block(at)[0]


def test_rules_that_have_not_run_take_their_share_of_the_estimate():
    """A rule that has not run is estimated by its typical share of the total time."""
    run = Run()
    run.plan({"prepare": 10, "rnn_train": 1, "total": 11}, 0.0)
    for number in range(10):
        run.announced({"jobid": number, "rule_name": "prepare", "wildcards": {}, "log": []}, number)
        run.finished(number, number + 1.0)
    assert run.seconds_left(10.0) == pytest.approx(WEIGHTS["rnn_train"])
    run.announced({"jobid": 20, "rule_name": "rnn_train", "wildcards": {}, "log": []}, 10.0)
    assert run.seconds_left(20.0) == pytest.approx(WEIGHTS["rnn_train"] - 10)


def test_the_weights_are_of_rules_of_the_workflow():
    text = "".join(path.read_text() for path in Path(__file__).parents[2].glob("workflow/rules/*.smk"))
    assert set(WEIGHTS) <= set(re.findall(r"^ *(?:use )?rule (\w+)", text, re.MULTILINE))


def test_a_resumed_run_continues_the_count(run):
    """A resumed run continues the count if exactly the remaining jobs are planned; otherwise the count begins at 0."""
    run.finished(1, 2.0)
    note = json.loads(json.dumps(run.note(3.0, ended=True)))
    resumed = Run()
    assert resumed.plan({"short": 5, "long": 3, "total": 8}, 0.0, note)[0].startswith("8 of 9 jobs to run;")
    resumed.announced({"jobid": 2, "rule_name": "short", "wildcards": {}, "log": []}, 0.0)
    resumed.finished(2, 2.0)
    assert resumed.block(2.0)[0].endswith(" 2/9 jobs, 2 s")
    other = Run()
    assert other.plan({"short": 3, "total": 3}, 0.0, note)[0].startswith("3 jobs to run;")
    assert (other.done, other.total) == (0, 3)


@pytest.mark.parametrize("rule", ["all", "smt_table1", "short"])
def test_the_last_line_names_table_and_report(tmp_path, rule):
    run = Run()
    run.plan({rule: 1, "total": 1}, 0.0)
    for path in RESULTS.values():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    name = tmp_path.name
    files = results(tmp_path, tmp_path.parent)
    assert files == [f"table: {name}/results/table1.md, report: {name}/results/report/index.html"]
    assert run.end(1.0, files) == ["0/1 jobs done in 1 s"], "of a run that ended early they may be old ones"
    run.finished(1, 2.0)
    files_made = [] if rule == "short" else files  # other targets leave them as they were
    assert run.end(2.0, files) == ["1/1 jobs done in 2 s", *files_made]


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (75, "1 min 15 s"), (3660, "1 h 01 min")])
def test_durations(seconds, text):
    assert clock(seconds) == text


def test_messages_of_stages(tmp_path, run):
    """Figures are printed for preparation always and for other rules if slow; warnings are printed once."""
    log = tmp_path / "x.log"
    log.write_text("warning: 3-grams are few\npreparing: 12\nrnnsmt corpus prepare: done: lines 12, kept 3, 0.2 s\n")
    assert read_log([str(log)]) == ("corpus prepare", "lines 12, kept 3, 0.2 s", ["warning: 3-grams are few"])
    for number in (3, 4):
        run.announced({"jobid": number, "rule_name": "prepare", "wildcards": {"c": "x"}, "log": [str(log)]}, 0.0)
    assert run.finished(3, 0.2) == [
        "prepare c=x: warning: 3-grams are few",
        "[1/9] prepare c=x: lines 12, kept 3, 0.2 s",
    ]
    assert run.finished(4, 0.2) == ["[2/9] prepare c=x: lines 12, kept 3, 0.2 s"], "a warning is printed once"
    log.write_text("rnnsmt lm estimate: done: 3 n-grams\n")
    run.announced({"jobid": 5, "rule_name": "lm", "wildcards": {}, "log": [str(log)]}, 0.0)
    assert run.finished(5, 20.0) == ["[3/9] lm: 3 n-grams"]
    run.announced({"jobid": 6, "rule_name": "lm", "wildcards": {}, "log": [str(tmp_path / "none")]}, 0.0)
    assert run.finished(6, 20.0) == ["[4/9] lm: 20 s"]


def test_last_words(tmp_path):
    """The last lines are the error message of a stage, or the end of a traceback."""
    log = tmp_path / "x.log"
    log.write_text("reading\nrnnsmt corpus prepare: error: x: no text\nmore\n")
    assert last_words([str(log)]) == ["rnnsmt corpus prepare: error: x: no text"]
    log.write_text("\n".join(f"line {n}" for n in range(9)) + "\n\n")
    assert last_words([str(log)]) == [f"line {n}" for n in range(4, 9)]


def test_a_failure_is_printed_last(tmp_path, run):
    log = tmp_path / "x.log"
    log.write_text("rnnsmt corpus prepare: error: x: no text\n")
    failure = {"jobid": 2, "rule_name": "short", "log": [str(log)]}
    assert run.failed(failure) == ["[0/9] short n=2 failed"]
    assert run.end(10.0, [])[-1] == "rnnsmt corpus prepare: error: x: no text"
    assert run.end(10.0, [])[1] == f"short n=2 failed; its log: {log}"


def test_a_failure_is_printed_without_any_other_line():
    run = Run()
    run.failed({"jobid": 2, "rule_name": "short", "log": ["none.log"]})
    assert run.end(10.0, []) == ["short failed; its log: none.log"]


ELSEWHERE = "For further error details see the cluster/cloud log and the log files of the involved rule(s)."
"""End of every message of an executor for clusters."""


def test_the_reason_of_a_cluster_is_printed(tmp_path):
    """Print what only Slurm knows: it refused the job, whose log is that of an earlier run, or ended it."""
    run, old, log = Run(), tmp_path / "old.log", tmp_path / "x.log"
    old.write_text("rnnsmt phrases extract: error: corrected since\n")
    log.write_text("counting\n")
    refused = f"SLURM sbatch failed: no such node.\n    sbatch call:\n        sbatch -p all{ELSEWHERE}"
    ended = "SLURM-job '7' failed, SLURM status is: 'OUT_OF_MEMORY'."
    failure = {"jobid": 1, "rule_name": "extract", "log": [str(old)], "rule_msg": refused, "aux": {}}
    assert run.failed(failure) == ["[0/0] extract failed: SLURM sbatch failed: no such node."]
    failure = {"jobid": 2, "rule_name": "mert", "log": [str(log)], "rule_msg": f"{ended} {ELSEWHERE}"}
    assert run.failed(failure | {"aux": {"external_jobid": "7"}}) == [f"[0/0] mert failed: {ended}"]
    assert run.end(10.0, []) == [
        "extract was not submitted",
        "SLURM sbatch failed: no such node.",
        f"mert failed; its log: {log}",
        ended,
        "counting",
    ]


@pytest.mark.parametrize("told", [f"SLURM status is: 'FAILED'. {ELSEWHERE}", ELSEWHERE])
def test_the_error_of_a_stage_is_printed_without_the_reason_of_a_cluster(tmp_path, told):
    log = tmp_path / "x.log"
    log.write_text("rnnsmt rnn train: error: no space\n")
    run = Run()
    failure = {"jobid": 3, "rule_name": "train", "log": [str(log)], "rule_msg": told, "aux": {"external_jobid": "8"}}
    assert run.failed(failure) == ["[0/0] train failed"]
    assert run.end(10.0, []) == [f"train failed; its log: {log}", "rnnsmt rnn train: error: no space"]


def test_a_failure_before_a_successful_attempt_is_omitted(run):
    run.failed({"jobid": 2, "rule_name": "short", "log": []})
    run.announced({"jobid": 2, "rule_name": "short", "wildcards": {}, "log": []}, 1.0)
    run.finished(2, 2.0)
    assert run.end(10.0, []) == ["1/9 jobs done in 10 s"]


class Settings(OutputSettingsLoggerInterface):
    """Output settings of Snakemake."""

    printshellcmds = nocolor = debug_dag = verbose = show_failed_logs = stdout = dryrun = False
    quiet = None

    def __init__(self, dryrun: bool) -> None:
        self.dryrun = dryrun


def record(message: str | None = None, **about: object) -> logging.LogRecord:
    """Return a log record of Snakemake."""
    made = logging.LogRecord("snakemake", logging.INFO, "file", 1, message, None, None)
    made.__dict__.update(about)
    return made


def test_messages_of_snakemake(capsys, tmp_path, monkeypatch):
    """Known messages are reformatted or omitted, unknown ones are printed; the status is written to a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".snakemake").mkdir()
    handler = LogHandler(Settings(dryrun=False), None)
    handler.emit(record(event=LogEvent.RUN_INFO, stats={"short": 2, "total": 2}))
    handler.emit(record("Select jobs to execute..."))
    handler.emit(record("None"))
    handler.emit(record("LockException:\nDirectory cannot be locked", event=LogEvent.ERROR))
    handler.emit(record("disk is full"))
    handler.close()
    handler.close()
    lines = capsys.readouterr().err.splitlines()
    assert lines[1:] == ["LockException:", "Directory cannot be locked", "disk is full", "0/2 jobs done in 0 s"]
    assert json.loads((tmp_path / ".snakemake/rnnsmt-status.json").read_text())


def test_a_resumed_run_and_its_results(tmp_path, monkeypatch, capsys):
    """The status file is found although the logger is created in another directory; a finished run prints its table."""
    (tmp_path / "run/.snakemake").mkdir(parents=True)
    (tmp_path / "run/results").mkdir()
    (tmp_path / "run/results/table1.md").touch()
    monkeypatch.setattr("sys.argv", ["snakemake"])
    monkeypatch.chdir(tmp_path)
    handler = LogHandler(Settings(dryrun=False), None)
    monkeypatch.chdir(tmp_path / "run")
    STATUS.write_text(json.dumps({"done": 1, "total": 2}))
    handler.emit(record(event=LogEvent.RUN_INFO, stats={"all": 1, "total": 1}))
    handler.emit(record(event=LogEvent.JOB_FINISHED, job_id=1))
    handler.close()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("1 of 2 jobs to run;")
    assert lines[1:] == ["2/2 jobs done in 0 s", "table: run/results/table1.md"]
    assert json.loads(STATUS.read_text())["done"] == 2
    handler = LogHandler(Settings(dryrun=False), None)
    handler.emit(record("Nothing to be done (all requested files are present and up to date)."))
    handler.close()
    assert capsys.readouterr().err.splitlines()[1:] == ["table: results/table1.md"]


@pytest.mark.parametrize(
    ("arguments", "is_printed"),
    [
        ("", True),
        ("--cores 2 --config seed=2", True),
        ("--cores 2 all", True),
        ("results/corpus/info.json ./results/table1.tsv", True),
        ("--until smt_table1", True),
        ("results/model/phrase-table.gz", False),
        ("--config seed=2 --cores 2 results/table2.md", False),
        ("--until mert", False),
        ("all --until mert", False),
        ("--omit-from mert", False),
        ("--cores two", True),  # arguments that are not Snakemake's
    ],
)
def test_an_old_table_is_not_a_result_of_other_targets(tmp_path, monkeypatch, capsys, arguments, is_printed):
    """If there is nothing to do, the table is printed only if it is among the targets."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results/table1.md").touch()
    monkeypatch.setattr("sys.argv", ["snakemake", *arguments.split()])
    monkeypatch.chdir(tmp_path)
    handler = LogHandler(Settings(dryrun=False), None)
    handler.emit(record("Nothing to be done (all requested files are present and up to date)."))
    handler.close()
    lines = capsys.readouterr().err.splitlines()
    assert lines[1:] == ["table: results/table1.md"] * is_printed


def test_outputs_of_unfinished_jobs_are_recorded(tmp_path, monkeypatch):
    """The record contains the outputs of running and failed jobs, and missing ones of earlier runs."""
    (tmp_path / ".snakemake").mkdir()
    (tmp_path / "made").touch()
    monkeypatch.chdir(tmp_path)
    UNFINISHED.write_text(json.dumps(["earlier", "made"]))
    handler = LogHandler(Settings(dryrun=False), None)
    handler.emit(record(event=LogEvent.RUN_INFO, stats={"a": 3, "total": 3}))
    for number, outputs in enumerate((["x", "y"], ["z"], ["w"])):
        handler.emit(record(event=LogEvent.JOB_INFO, rule_name="a", jobid=number, wildcards={}, log=[], output=outputs))
    assert json.loads(UNFINISHED.read_text()) == ["earlier", "x", "y", "z", "w"]
    handler.emit(record(event=LogEvent.JOB_FINISHED, job_id=0))
    handler.emit(record(event=LogEvent.JOB_ERROR, rule_name="a", jobid=1, log=[]))
    assert json.loads(UNFINISHED.read_text()) == ["earlier", "z", "w"]
    handler.close()
    assert json.loads(UNFINISHED.read_text()) == ["earlier", "z", "w"]
    handler = LogHandler(Settings(dryrun=False), None)
    handler.emit(record(event=LogEvent.RUN_INFO, stats={"a": 1, "total": 1}))
    handler.emit(record(event=LogEvent.JOB_INFO, rule_name="a", jobid=0, wildcards={}, log=[], output=["z"]))
    handler.emit(record(event=LogEvent.JOB_FINISHED, job_id=0))
    handler.close()
    assert json.loads(UNFINISHED.read_text()) == ["earlier", "w"]


@pytest.mark.parametrize("content", ["[", "[1]", "1"])
def test_a_damaged_record_of_unfinished_jobs_is_replaced(tmp_path, monkeypatch, capsys, content):
    (tmp_path / ".snakemake").mkdir()
    monkeypatch.chdir(tmp_path)
    UNFINISHED.write_text(content)
    handler = LogHandler(Settings(dryrun=False), None)
    handler.emit(record(event=LogEvent.RUN_INFO, stats={"a": 3, "total": 3}))
    assert json.loads(UNFINISHED.read_text()) == []
    assert capsys.readouterr().err.startswith("3 jobs to run;")


@pytest.mark.parametrize("option", ["--touch", "-t", "-Ft"])
def test_marking_files_as_up_to_date_is_no_run(capsys, tmp_path, monkeypatch, option):
    """No job is reported as done, and the progress of the run before remains."""
    (tmp_path / ".snakemake").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["snakemake", option])
    STATUS.write_text(json.dumps({"done": 1, "total": 3}))
    handler = LogHandler(Settings(dryrun=False), None)
    handler.emit(record(event=LogEvent.RUN_INFO, stats={"a": 2, "total": 2}))
    handler.emit(record(event=LogEvent.JOB_INFO, rule_name="a", jobid=1, wildcards={}, log=[]))
    handler.emit(record("Output files not touched because they don't exist: a"))
    handler.emit(record(event=LogEvent.JOB_FINISHED, job_id=1))
    handler.close()
    assert capsys.readouterr().err.splitlines() == [
        "marking the existing output files of 2 jobs as up to date",
        "Output files not touched because they don't exist: a",
    ]
    assert json.loads(STATUS.read_text()) == {"done": 1, "total": 3}


def test_plans_are_snakemakes_own(capsys):
    handler = LogHandler(Settings(dryrun=True), None)
    handler.emit(record("Job stats: many", event=LogEvent.RUN_INFO, stats={"total": 1}))
    handler.close()
    assert capsys.readouterr().err == "Job stats: many\n"


def running(jobs: int) -> LogHandler:
    """Return a handler of a run of some jobs, the first of which is running."""
    handler = LogHandler(Settings(dryrun=False), None)
    handler.emit(record(event=LogEvent.RUN_INFO, stats={"a": jobs, "total": jobs}))
    handler.emit(record(event=LogEvent.JOB_INFO, rule_name="a", jobid=1, wildcards={}, log=[]))
    return handler


def test_after_ctrl_c_nothing_has_failed(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    handler = running(2)
    handler.emit(record("Terminating processes on user request, this might take some time."))
    handler.emit(record(event=LogEvent.JOB_ERROR, jobid=1, log=[]))
    handler.emit(record("WorkflowError:\nAt least one job did not complete successfully."))
    handler.close()
    said = capsys.readouterr().err
    assert "failed" not in said and "error" not in said
    assert said.splitlines()[-1] == "stopped by Ctrl-C; run the same command again to resume"


def test_after_sigterm_only_an_error_of_a_stage_is_a_failure(capsys, tmp_path, monkeypatch):
    """After SIGTERM, a job with a log that ends in an error is a failure; a job stopped by the signal is not."""
    monkeypatch.chdir(tmp_path)
    Path("stopped.log").write_text("update 3 of 4\n")
    Path("failed.log").write_text("rnnsmt rnn train: error: out of memory\n")
    handler = LogHandler(Settings(dryrun=False), None)
    handler.emit(record(event=LogEvent.RUN_INFO, stats={"a": 4, "total": 4}))
    for job, log in enumerate(("stopped.log", "failed.log", "")):
        handler.emit(record(event=LogEvent.JOB_INFO, rule_name=f"rule{job}", jobid=job, wildcards={}, log=[log]))
    handler.emit(record("Will exit after finishing currently running jobs (scheduler)."))
    for job, log in enumerate(("stopped.log", "failed.log")):
        handler.emit(record(event=LogEvent.JOB_ERROR, jobid=job, log=[log]))
        handler.emit(record("Will exit after finishing currently running jobs (scheduler)."))
    handler.emit(record(event=LogEvent.JOB_FINISHED, job_id=2))
    handler.close()
    said = capsys.readouterr().err
    assert said.count("SIGTERM received") == 1 and "Will exit" not in said
    assert "rule0" not in said
    assert said.splitlines()[-2:] == [
        "rnnsmt rnn train: error: out of memory",
        "stopped by SIGTERM; run the same command again to resume",
    ]


def test_a_signal_during_the_last_jobs_does_not_stop_the_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    handler = running(1)
    handler.emit(record("Will exit after finishing currently running jobs (scheduler)."))
    handler.emit(record(event=LogEvent.JOB_FINISHED, job_id=1))
    handler.close()
    assert "stopped by" not in capsys.readouterr().err


ABSENT = "corpora[0] (mine): source: /d/train.en does not exist; did you mean train.en.gz?"
OTHER_LANGUAGE = "corpora[1] (more): source dev.de: the suffix does not match languages: {source: en, target: fr}"
OTHER_RUN = "another run is active in /d (process 7 on here); `rnnsmt status` shows its progress"
SETTINGS = "Settings for your own corpora (auto): rnn.preset: small"
HELD = [SETTINGS, f"warning: {ABSENT}", f"warning: {OTHER_LANGUAGE}"]
MISSING = (
    'MissingInputException in rule prepare_bitext in file "/w/corpus.smk", line 58:\n'
    "Missing input files for rule prepare_bitext:\n    output: a, b\n    wildcards: corpus=mine\n"
    "    affected files:\n        /d/train.en\n        /d/else"
)


@pytest.mark.parametrize("dryrun", [False, True])
@pytest.mark.parametrize(
    ("last", "lines"),
    [
        (record("", event=LogEvent.RUN_INFO, stats={}), HELD),
        (
            record(MISSING, levelno=logging.ERROR),
            [f"error: {ABSENT}", "error: prepare_bitext corpus=mine: no such file: /d/else"],
        ),
        (record("WorkflowError:\nTarget rules may not contain wildcards.", levelno=logging.ERROR),
         ["error: Target rules may not contain wildcards."]),
        (None, HELD),
    ],
)  # fmt: skip
def test_an_error_before_the_first_job_replaces_the_warnings(capsys, tmp_path, monkeypatch, dryrun, last, lines):
    monkeypatch.chdir(tmp_path)  # the last line names an existing table of a finished run
    handler = LogHandler(Settings(dryrun=dryrun), None)
    for line in HELD:
        handler.emit(record(line, levelno=logging.INFO if line == SETTINGS else logging.WARNING))
    if last is not None:
        handler.emit(last)
    handler.close()
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if line and not line.startswith("0 jobs")] == lines


def test_an_active_run_is_the_reason_for_the_lock(capsys, tmp_path, monkeypatch):
    """Snakemake's message recommends --unlock, which is for the lock of a killed run."""
    monkeypatch.chdir(tmp_path)
    locked = record("LockException:\nCannot be locked. It can be removed with --unlock", levelno=logging.ERROR)
    for warnings, lines in (([OTHER_RUN], [f"error: {OTHER_RUN}"]), ([], locked.getMessage().splitlines())):
        handler = LogHandler(Settings(dryrun=False), None)
        for warning in [OTHER_LANGUAGE, *warnings]:
            handler.emit(record(f"warning: {warning}", levelno=logging.WARNING))
        handler.emit(locked)
        handler.close()
        assert capsys.readouterr().err.splitlines() == lines


def test_messages_after_the_plan_are_left_out_as_before(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    handler = LogHandler(Settings(dryrun=False), None)
    handler.emit(record(event=LogEvent.RUN_INFO, stats={"a": 2, "total": 2}))
    handler.emit(record("WorkflowError:\nAt least one job did not complete successfully.", levelno=logging.ERROR))
    handler.close()
    assert "At least one job" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            'MissingInputException in rule prepare_bitext in file "/w/corpus.smk", line 58:\n'
            "Missing input files for rule prepare_bitext:\n    output: a, b\n    wildcards: corpus=mine\n"
            "    affected files:\n        /d/train.en\n        /d/train.fr",
            "error: prepare_bitext corpus=mine: no such file: /d/train.en\n"
            "error: prepare_bitext corpus=mine: no such file: /d/train.fr",
        ),
        (
            'WorkflowError in file "/w/common.smk", line 44:\nThe configuration contains errors:\n  seed missing\n'
            '  File "/w/common.smk", line 44, in <module>',
            "error: The configuration contains errors:\n  seed missing",
        ),
        ('NameError in file "/w/common.smk", line 4:\nname x is not defined', None),
        ("hello", None),
    ],
)
def test_errors_of_the_workflow_are_plain(text, line):
    assert plain_error(text) == line


BOMB = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join(10 * [f'*{before}'])}]\n"
    for before, name in itertools.pairwise("abcdefghijklmnopqrstuvwxyz")
)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"seed: 1\n", None),
        (b'{\n\t"seed": 1\n}', None),
        (b"a: &a [1]\nb: *a\n", None),
        (b"a: [1\nb: 2\n", ", line 2, column 2: not valid YAML (expected ',' or ']', but got ':')"),
        (b"a:\n\tb: 1\n", ", line 2, column 1: not valid YAML (found character '\\t' that cannot start any token); "
         "indent with spaces, not with tabs"),
        (b"a: \x00\n", ": not valid YAML (unacceptable character #x0000: special characters are not allowed)"),
        ("a: é\n".encode("latin-1"), ": not UTF-8 at byte 3; convert it, e.g. with iconv -f ISO-8859-1 -t UTF-8"),
        ("a: é\n".encode("utf-16"), ": not UTF-8 at byte 0; convert it, e.g. with iconv -f UTF-16 -t UTF-8"),
        (b"[1, 2]\n", ": must contain a map at top level (key: value)"),
        (b"", ": must contain a map at top level (key: value)"),
        (BOMB.encode(), ": its aliases (*name) expand to more than 1,000,000 values; use fewer aliases"),
        (b"a: &a [*a]\n", ": its aliases (*name) expand to more than 1,000,000 values; use fewer aliases"),
        (b"a: " + 5000 * b"[", ": not valid YAML (nested too deeply)"),
    ],
)  # fmt: skip
def test_configuration_files_are_checked_before_snakemake_reads_them(tmp_path, content, sentence):
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    arguments = ["--cores", "1", "-d", str(tmp_path), "--configfile", str(path), "--config", "seed=1"]
    assert mistakes(arguments) == ([] if sentence is None else [f"{path}{sentence}"])


def test_missing_files_and_directories(tmp_path):
    (tmp_path / "file").touch()
    assert mistakes(["-d", str(tmp_path / "new"), "--configfile", str(tmp_path / "a.yaml"), str(tmp_path)]) == [
        f"--configfile {tmp_path}/a.yaml: no such file (the base of relative paths is {Path.cwd()})",
        f"--configfile {tmp_path}: cannot be read (Is a directory)",
    ]
    assert mistakes(["--directory", str(tmp_path / "new/run")]) == []
    assert (tmp_path / "new/run").is_dir()
    (line,) = mistakes(["--directory", str(tmp_path / "file")])
    assert line.endswith("a file of this name exists, a directory is needed")
    (line,) = mistakes(["--directory", "/proc/new"])
    assert line.startswith("--directory /proc/new: cannot be created (")
    assert mistakes(["--directory"]) == []


def test_a_directory_that_is_not_writable(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    assert mistakes(["-d", str(tmp_path)]) == [
        f"--directory {tmp_path}: the directory is not writable; choose another --directory"
    ]
