"""Kill the workflow at random moments, resume it, and compare its results with those of a run that was not killed.

    python -m tests.fuzz.kills --kills 50

Two configurations of the demo corpus, at small sizes, contain every rule that does not require Moses.
Each is run once without a kill. Then it is run again in another directory: a rule is chosen that was killed less often
than others, and a random moment within the time that its job took in the first run; at this moment Snakemake and all
processes of its session get SIGKILL. In some kills they get SIGINT up to 1.5 seconds earlier, so that training runs
have just written a checkpoint or are writing it. Some kills happen while Snakemake starts. Then the same command is run
again, as a user does. A completed run is compared with the first one: all files below ``results`` must have the same
bytes, except for logs and files that contain times (``UNEQUAL``). Then rules that were not hit are run again
(``--forcerun``) and killed, until the number of kills is reached and every rule was hit. The run is resumed and
compared once more. The directory keeps runs and kills; the same command resumes where it was stopped.

The command fails if a resumed run fails, if a file differs, is missing, or is left over, or if a rule was not hit.
"""

import argparse
import base64
import gzip
import hashlib
import http.server
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]

UNEQUAL = ("results/logs/", "results/provenance.json", "results/report/index.html")
"""What two equal runs need not have in common: logs, and two files with times, memory or paths of the run."""

KEEPING = ("align_words", "cslm_train", "mert", "nnjm_train", "rnn_train", "seq2seq_train")
"""Rules with checkpoints, of which every job must be hit."""

TRIES = 60
"""Maximum number of times that a rule is run again to be killed, before the run is resumed to its end."""

SETTINGS: dict[str, Any] = {
    "demo": {"scale": 0.1},
    "tuning": {"runs": 2, "optimiser": "mert", "iterations": 2, "restarts": 2, "nbest": 20},
    "search": {"pop_limit": 40, "stack": 40, "cslm_cells": 20},
    "phrases": {"prune": "a-e"},
    "lm": {"models": {"gazette": ["gazette"]}, "interpolate": True},
    "rnn": {"settings": {"hidden": 16, "embedding": 8, "maxout": 8, "updates": 60}},
    "cslm": {"settings": {"projection": 8, "hidden_1": 16, "hidden_2": 8, "epochs": 2}},
    "nnjm": {"settings": {"projection": 8, "hidden_1": 16, "hidden_2": 8, "epochs": 2}},
    "seq2seq": {
        "settings": {"hidden": 16, "embedding": 8, "epochs": 1},
        "nbest": 10,
        "beam": 2,
        "compare": ["baseline", "lstm"],
    },
    "compare": [
        *("baseline", "rnn", "cslm_nnjm"),
        *("lstm", "baseline+lstm", "baseline+cslm", "baseline+nnjm"),
    ],
}
"""Systems with all networks, in the search, alone and on lists."""

ALIGNED = "results/align/{}/aligned.grow-diag-final-and.gz"

SENTENCES = """the boats are in the harbour .
the boat is in the harbour .
the harbour is near the boats .

the wind is strong .
the wind was strong .
the strong wind is cold .
"""
"""Sentences that are drawn in the plane."""


@dataclass
class Configuration:
    """Configuration of the workflow, in a directory with its settings file.

    Attributes:
        name: name of the configuration and of its directory.
        directory: directory of the settings, of the run that is not killed and of those that are.
        settings: differences from config.yaml.
        options: options of Snakemake.
        targets: targets of Snakemake.
    """

    name: str
    directory: Path
    settings: Mapping[str, Any]
    options: Sequence[str] = ()
    targets: Sequence[str] = ("all",)

    def command(self, run: Path, cores: int, more: Sequence[str] = ()) -> list[str]:
        """Return the command that starts a run in a directory, or resumes it. more: further targets."""
        file = self.directory / "settings.yaml"
        return [
            *(sys.executable, "-m", "snakemake", *self.targets, *more, "--snakefile", str(ROOT / "Snakefile")),
            *("--directory", str(run), "--cores", str(cores), *self.options, "--configfile", str(file)),
        ]

    @property
    def reference(self) -> Path:
        """Return the directory of the run that is not killed."""
        return self.directory / "not-killed"


@dataclass
class Job:
    """Job of the run that was not killed: its rule, its outputs and its wall-clock seconds."""

    rule: str
    seconds: float
    outputs: list[str] = field(default_factory=list)


@dataclass
class Session:
    """Running Snakemake and the processes that it has started.

    Attributes:
        process: Snakemake, the leader of a session of its own.
        run: directory of the run.
    """

    process: subprocess.Popen
    run: Path

    def members(self) -> list[int]:
        """Return the ids of the live processes of the session."""
        found = []
        for entry in os.scandir("/proc"):
            if entry.name.isdecimal():
                try:
                    status = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
                except OSError:  # ended in the meantime
                    continue
                if int(status[3]) == self.process.pid and status[0] not in "ZX":
                    found.append(int(entry.name))
        return found

    def jobs(self) -> set[str]:
        """Return the logs of the stages that are running, relative to the directory of the run."""
        found = set()
        for member in self.members():
            try:
                log = str(Path(f"/proc/{member}/fd/1").readlink())
            except OSError:
                continue
            if log.startswith(f"{self.run}/results/logs/"):
                found.add(str(Path(log).relative_to(self.run)))
        return found

    def signal(self, number: int) -> None:
        """Send a signal to all processes of the session."""
        for member in self.members():
            try:
                os.kill(member, number)
            except ProcessLookupError:
                continue

    def kill(self) -> set[str]:
        """Kill all processes of the session; return the logs of the stages that were running."""
        self.signal(signal.SIGSTOP)  # so that the stages found running are those that are killed
        self.signal(signal.SIGSTOP)  # processes that were being started at the first signal
        found = self.jobs()
        while self.members():
            self.signal(signal.SIGKILL)
            time.sleep(0.01)
        self.process.wait()
        return found


def jobs_of(run: Path) -> dict[str, Job]:
    """Return the jobs of a complete run by log, from Snakemake's metadata."""
    found: dict[str, Job] = {}
    directory = run / ".snakemake/metadata"
    for path in directory.rglob("*") if directory.is_dir() else ():
        if path.is_file():
            record = json.loads(path.read_text(encoding="utf-8"))
            output = base64.urlsafe_b64decode("".join(part.lstrip("@") for part in path.relative_to(directory).parts))
            if record.get("log"):
                job = Job(record["rule"], record["endtime"] - record["starttime"])
                found.setdefault(record["log"][0], job).outputs.append(output.decode())
    return found


def digests(run: Path) -> dict[str, str]:
    """Return SHA-256 by path of the files below ``results`` that must be equal in equal runs."""
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((run / "results").rglob("*"))
        if path.is_file() and not (name := str(path.relative_to(run))).startswith(UNEQUAL)
    }


def differences(run: Path, reference: Path) -> list[str]:
    """Return one line for every file that is missing, left over or different compared with the reference."""
    ours, theirs = digests(run), digests(reference)
    return [
        *(f"{name}: missing" for name in theirs if name not in ours),
        *(f"{name}: left over" for name in ours if name not in theirs),
        *(f"{name}: other bytes" for name in ours if ours[name] != theirs.get(name, ours[name])),
    ]


@dataclass
class Kills:
    """Choice and record of the kills of a configuration.

    Attributes:
        jobs: jobs of the run that was not killed, by log.
        wanted: minimum number of kills.
        needed: parts that must be hit, see ``part``.
        random: generator of the moments.
        records: for every kill: the moment in seconds after the start of Snakemake, whether SIGINT preceded it, and the
            logs of the stages that were running.
        remade: outputs of the jobs that were run again to be killed.
    """

    jobs: Mapping[str, Job]
    wanted: int
    needed: set[str]
    random: random.Random
    records: list[dict[str, Any]] = field(default_factory=list)
    remade: list[str] = field(default_factory=list)

    def part(self, log: str) -> str:
        """Return the name that a job is counted under: its rule, with the log if the rule is in ``KEEPING``."""
        rule = self.jobs[log].rule
        return f"{rule} {log.removeprefix('results/logs/').removesuffix('.log')}" if rule in KEEPING else rule

    def hits(self) -> Counter:
        """Return how often each part was hit while a stage of it was running."""
        logs = (log for record in self.records for log in record["running"])
        return Counter(self.part(log) for log in logs if log in self.jobs)

    def not_hit(self) -> list[str]:
        """Return the needed parts that were not hit."""
        hits = self.hits()
        return sorted(part for part in self.needed if not hits[part])

    def enough(self) -> bool:
        """Return whether there were enough kills and all needed parts were hit."""
        return len(self.records) >= self.wanted and not self.not_hit()

    def aim(self) -> str:
        """Return the log of a job to hit next: one of a part that was not hit, or any job."""
        missing = self.not_hit()
        return self.random.choice([log for log in sorted(self.jobs) if not missing or self.part(log) in missing])

    def delay(self, log: str, ahead: int, aim: str) -> float | None:
        """Return when to kill a job that has just started, in seconds, or None to let it run.

        Args:
            log: log of the job.
            ahead: number of jobs of the run that are still to come.
            aim: log of the only job that is to be hit; empty: that of any part that was not hit, and some others.
        """
        job = self.jobs.get(log)
        if job is None or self.enough():
            return None
        missing = self.not_hit()
        left = self.wanted - len(self.records) - len(missing)
        wanted = log == aim if aim else self.part(log) in missing or self.random.random() < left / max(ahead, 1)
        if wanted:
            return self.random.uniform(0, 0.9 * job.seconds)  # Snakemake's own part comes last
        return None


def killed_run(configuration: Configuration, run: Path, kills: Kills, cores: int) -> str | None:
    """Run a configuration to its end with kills; return the reason of a failure, or None."""
    seen = set(jobs_of(run))
    for tries in (TRIES, TRIES, 0):
        process = killed(configuration, run, kills, cores, seen)
        if process and process.returncode:
            return _failure(process, run)
        if wrong := differences(run, configuration.reference):
            return "\n".join(wrong)
        print(f"{configuration.name}: resumed to its end with the same bytes")
        if kills.enough():
            break
        for _ in range(tries):  # jobs that were too fast, and further kills, if more are wanted
            process = None if kills.enough() else killed(configuration, run, kills, cores, seen, kills.aim())
            if process and process.returncode:
                return _failure(process, run)
    return None


def _failure(process: subprocess.Popen, run: Path) -> str:
    """Return the reason of a failed run."""
    log = run.with_suffix(".log")
    return f"exit status {process.returncode}; {log} ends with\n{log.read_text()[-3000:]}"


def killed(
    configuration: Configuration, run: Path, kills: Kills, cores: int, seen: set[str], aim: str = ""
) -> subprocess.Popen | None:
    """Start, kill and resume a run until it ends by itself.

    Args:
        configuration: the configuration to run.
        run: directory of the run.
        kills: choice and record of the kills.
        cores: number of cores.
        seen: logs of the jobs that were begun; those of this session are added.
        aim: log of a job to run again, and to kill once; the run is not resumed.

    Returns:
        Snakemake after its end; None if it was killed and is not resumed.
    """
    while True:
        with run.with_suffix(".log").open("a") as log:
            made = kills.jobs[aim].outputs if aim else []
            kills.remade += [
                name for name in made if (configuration.reference / name).exists()
            ]  # except temporary files
            # Snakemake makes a missing file again only if it is a target, or if a file made from it is outdated
            command = configuration.command(run, cores, kills.remade)
            command += ["--forcerun", kills.jobs[aim].outputs[0]] if aim else []
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        session = Session(process, run)
        try:
            record = kill_once(session, kills, seen, aim)
        finally:
            session.kill()  # if this command was interrupted, or SIGINT has ended Snakemake but not all jobs
        if record:
            kills.records.append(record)
            (configuration.directory / "kills.json").write_text(json.dumps(kills.records, indent=1))
            hit = ", ".join(record["running"]) or "no stage"
            print(f"{configuration.name}, kill {len(kills.records)} after {record['moment']} s: {hit}")
        if record is None:
            return process
        if aim:
            return None


def kill_once(session: Session, kills: Kills, seen: set[str], aim: str) -> dict[str, Any] | None:
    """Wait for a moment to kill a session and do it.

    Args:
        session: session that has just started.
        kills: choice and record of the kills.
        seen: logs of the jobs that earlier sessions of the run have begun; those of this one are added.
        aim: log of the job that is to be hit; the session is killed at the latest when it has ended.

    Returns:
        The record of the kill (``Kills.records``); empty if the session ended after SIGINT before it was killed; None
        if it ended by itself.
    """
    began, drawn = time.monotonic(), kills.random
    chosen, started = "", dict[str, float]()
    # some kills happen while Snakemake starts, the others while a certain job is running
    due = drawn.uniform(0, 8) if not kills.enough() and drawn.random() < 0.08 else None
    while session.process.poll() is None:
        time.sleep(0.05)
        running = session.jobs()
        now = time.monotonic() - began
        if chosen and chosen not in running:  # it was faster than in the first run
            kills.jobs[chosen].seconds = min(kills.jobs[chosen].seconds, now - started[chosen])
            chosen, due = "", (now if aim else None)
        for job in sorted(running - started.keys()):
            wait = kills.delay(job, len(kills.jobs.keys() - seen), aim)
            started[job] = now
            seen.add(job)
            if due is None and wait is not None:
                chosen, due = job, now + wait
        if due is not None and now >= due:
            interrupted = drawn.random() < 0.2
            if interrupted:
                session.signal(signal.SIGINT)
                time.sleep(drawn.uniform(0, 1.5))
            moment = round(time.monotonic() - began, 2)
            if not session.members():
                return {}
            return {"moment": moment, "interrupted": interrupted, "running": sorted(session.kill())}
    return None


def run_reference(configuration: Configuration, cores: int) -> None:
    """Run a configuration without a kill, unless a complete run exists."""
    configuration.directory.mkdir(parents=True, exist_ok=True)
    (configuration.directory / "settings.yaml").write_text(yaml.safe_dump(dict(configuration.settings)))
    done = subprocess.run(
        configuration.command(configuration.reference, cores), capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{configuration.name} fails without a kill:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def served(texts: Path, directory: Path) -> tuple[str, str]:
    """Pack texts into an archive and serve it; return its address and SHA-256."""
    directory.mkdir(parents=True, exist_ok=True)
    archive = directory / "texts.tar"
    with tarfile.open(archive, "w") as file:
        for path in sorted(texts.glob("*.gz")):
            file.add(path, f"texts/{path.name}")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(directory)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/{archive.name}", hashlib.sha256(archive.read_bytes()).hexdigest()


def configurations(directory: Path, cores: int) -> Iterator[Configuration]:
    """Yield the configurations, each with its run that was not killed."""
    sentences = directory / "sentences.txt"
    sentences.parent.mkdir(parents=True, exist_ok=True)
    sentences.write_text(SENTENCES)
    settings = SETTINGS | {"seq2seq": SETTINGS["seq2seq"] | {"sentences": str(sentences)}}
    systems = Configuration("systems", directory / "systems", settings, targets=("all", "results/table2.md"))
    run_reference(systems, cores)
    yield systems
    # tokenised corpora that are downloaded as an archive, and their alignment; jobs in parts, as on a cluster
    texts = systems.reference / "results/corpus/tokenized"
    url, sha256 = served(texts, directory / "served")

    def corpus(name: str, role: str, *sides: str) -> dict[str, Any]:
        files = {side: f"{name}.{'en' if side == 'source' else 'fr'}.gz" for side in sides}
        download = {side: {"url": url, "sha256": sha256, "member": f"texts/{file}"} for side, file in files.items()}
        return {"name": name, "role": role, **files, "download": download}

    both = ("source", "target")
    links = directory / "served/links.gz"
    sides = [gzip.decompress((texts / f"general.{lang}.gz").read_bytes()).splitlines() for lang in ("en", "fr")]
    with gzip.open(links, "wt") as file:
        for pair in zip(*sides, strict=True):
            file.write(" ".join(f"{i}-{i}" for i in range(min(len(side.split()) for side in pair))) + "\n")
    files = Configuration(
        "files", directory / "files",
        {
            "corpora": [
                corpus("general", "bitext", *both),
                corpus("harbour-dev", "dev", *both), corpus("harbour-test", "test", *both),
            ],
            "text": {"normalize": False, "tokenize": False, "escape": False},
            "selection": {"bitext": 1, "mono": 1},
            "alignment": {"external": str(links), "aligners": ["fast_align"]},
            "search": SETTINGS["search"],
            "tuning": SETTINGS["tuning"] | {"runs": 1},
            "rnn": SETTINGS["rnn"],
            "compare": ["baseline"],
        },
        options=("--set-scatter", "align_words=2", "rnn_score=3"),
        targets=("all", ALIGNED.format("fast_align"), "results/augmented/rnn_wp/network1/phrase-table.gz"),
    )  # fmt: skip
    run_reference(files, cores)
    yield files


def report(found: Mapping[str, Kills]) -> Iterator[str]:
    """Yield how often each rule was hit, and each job of the rules with long jobs."""
    for name, kills in found.items():
        hits = kills.hits()
        interrupted = sum(record["interrupted"] for record in kills.records)
        outside = sum(not record["running"] for record in kills.records)
        yield f"{name}: {len(kills.records)} kills ({interrupted} after Ctrl-C, {outside} while no stage was running)"
        for part in sorted({kills.part(log) for log in kills.jobs}):
            yield f"  {part:48}{hits[part]:4}"
        if missing := kills.not_hit():
            yield f"  not hit: {', '.join(missing)}"


def version() -> str:
    """Return a hash of the code and the rules for which a reference run is valid."""
    found = hashlib.sha256(yaml.safe_dump(SETTINGS).encode())
    for path in sorted([*ROOT.glob("src/**/*.py"), *ROOT.glob("workflow/**/*.*"), ROOT / "config.yaml"]):
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()[:12]


def main() -> None:
    """Kill, resume and compare runs; print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, metavar="N", help="minimum number of kills (default: 50)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments (default: 1)")
    parser.add_argument("--cores", type=int, default=2, help="cores of a run (default: 2)")
    parser.add_argument(
        "--directory", default="/tmp/rnnsmt-kills", help="where the runs are kept (default: %(default)s)"
    )
    args = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the session is ended
    directory = Path(args.directory).resolve() / version()
    drawn, found, wrong = random.Random(args.seed), dict[str, Kills](), list[str]()
    rules: set[str] = set()
    for configuration in configurations(directory, args.cores):
        jobs, run, file = (
            jobs_of(configuration.reference),
            configuration.directory / "killed",
            configuration.directory / "kills.json",
        )
        wanted = args.kills * 4 // 5 if configuration.name == "systems" else args.kills - args.kills * 4 // 5
        kills = found[configuration.name] = Kills(jobs, wanted, set(), drawn)
        kills.needed = {kills.part(log) for log, job in jobs.items() if job.rule not in rules}
        rules |= {job.rule for job in jobs.values()}
        if file.exists():
            kills.records = json.loads(file.read_text())
        if failed := killed_run(configuration, run, kills, args.cores):
            wrong.append(f"{configuration.name} in {run}: {failed}")
    print("\n".join(report(found)))
    not_hit = [part for kills in found.values() for part in kills.not_hit()]
    total = sum(len(kills.records) for kills in found.values())
    print(f"{total} kills over {len(rules)} rules; not hit: {', '.join(not_hit) or 'none'}; failed: {len(wrong)} runs")
    if wrong or not_hit:
        sys.exit("\n".join(wrong) or 1)


if __name__ == "__main__":
    main()
