"""An installation of Moses: location of its programs, requirements of each part of the pipeline, checks, and execution.

``run`` writes the output of a program to a log file; a failure becomes an error message of one sentence.
"""

import gzip
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rnnsmt.base.errors import InputError
from rnnsmt.base.opening import sha256
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import say
from rnnsmt.config.sections import Config
from rnnsmt.formats.default_ini import default_ini
from rnnsmt.plan.derived import parts_of_moses

DIRECTORIES = ("bin", "tools", "training-tools", "mgiza", "scripts/training", "scripts/generic", ".")
"""Directories below an installation that contain the programs of Moses, MGIZA, GIZA++ and fast_align."""

MOSES, TRAIN, MERT = "moses", "train-model.perl", "mert-moses.pl"

GIZA = (("mgiza", "snt2cooc", "merge_alignment.py", "mkcls"), ("GIZA++", "snt2cooc.out", "mkcls"))
"""MGIZA and GIZA++, each with the programs that ``train-model.perl`` calls in the same directory."""

OF_TRAIN = ("symal", "extract", "score", "consolidate", "lexical-reordering-score")
"""Programs that ``train-model.perl`` calls in the directory ``bin`` next to its ``scripts``, and nowhere else."""

OF_MERT = ("mert", "pro", "kbmira", "evaluator")
"""Programs that ``mert-moses.pl`` requires in the directory of ``extractor``, whatever the optimizer."""

NEEDED: dict[str, tuple[str, ...]] = {
    "model4": (TRAIN, "symal"),
    "fast_align": ("fast_align", "atools"),
    "training": (TRAIN, *OF_TRAIN[1:], "lmplz"),
    "tuning": (MERT, "extractor", *OF_MERT, MOSES),
    "decoding": (MOSES,),
}
"""Programs that each part of the pipeline and each aligner requires."""

SECONDS = 600
"""Time limit, in wall-clock seconds, for the translation of one word; it takes one second on an idle machine."""


class Needs(NamedTuple):
    """Requirements of a run on Moses: the parts that Moses performs, and their settings.

    Attributes:
        aligners: aligners of the part ``alignment``.
        lm_order: order of the language model that the decoder must be able to read.
    """

    parts: Collection[str]
    aligners: Collection[str] = ()
    lm_order: int = 5


def needs_of(config: Config) -> Needs:
    """Return the requirements of a checked configuration on Moses."""
    aligners, order = config.alignment.aligners, config.lm.order
    return Needs(parts_of_moses(config), aligners, order)


class Installation:
    """Directory of a compiled Moses, with its usual layout: ``bin``, ``scripts``, and aligners in ``tools``."""

    def __init__(self, home: StrPath) -> None:
        """Open an installation."""
        self.home = Path(home).expanduser().resolve()
        if not self.home.is_dir():
            raise InputError(f"moses_home: {home} is not a directory; it must be the directory of a Moses installation")
        check_path(self.home)

    def find(self, name: str) -> Path | None:
        """Return the path of a program, or None if it is not found.

        Programs that Moses' scripts call are looked up where the scripts expect them, others below the installation,
        then on PATH.
        """
        if name in (*OF_TRAIN, *OF_MERT):
            caller = self.find(TRAIN if name in OF_TRAIN else "extractor")
            if caller is None:
                return None
            path = (caller.resolve().parents[2] / "bin" if name in OF_TRAIN else caller.parent) / name
            return path if os.access(path, os.X_OK) else None
        for directory in DIRECTORIES:
            path = self.home / directory / name
            if path.is_file() and os.access(path, os.X_OK):
                return path
        on_path = shutil.which(name)
        return None if on_path is None else Path(on_path)

    def program(self, name: str) -> Path:
        """Return the path of a program, as ``find``.

        Raises:
            InputError: it is not found.
        """
        path = self.find(name)
        if path is None:
            raise InputError(f"{self.home}: program {name} not found in {', '.join(DIRECTORIES[:-1])} or on PATH")
        return path

    def giza(self) -> tuple[str, Path] | None:
        """Return ``mgiza`` or else ``GIZA++``, the one that is complete, with its directory; None if neither is."""
        for names in GIZA:
            first = self.find(names[0])
            if first is not None and all(os.access(first.parent / name, os.X_OK) for name in names):
                return names[0], first.parent
        return None

    def scripts(self) -> Path:
        """Return the directory of Moses' scripts, in which the scripts call each other."""
        return self.program(MERT).parent.parent

    def _wanted(self, needs: Needs) -> dict[str, str]:
        """Map each required program to the first part of the pipeline (alignment, training, ...) that uses it."""
        programs: dict[str, str] = {}
        for step in needs.parts:
            every = needs.aligners if step == "alignment" else (step,)
            for key in every:
                programs.update((name, step) for name in NEEDED[key] if name not in programs)
        return programs

    def missing(self, needs: Needs) -> list[str]:
        """Return a line for each missing program, with the part of the pipeline that uses it."""
        lines = [f"{name} (for {step})" for name, step in self._wanted(needs).items() if self.find(name) is None]
        if "alignment" in needs.parts and "model4" in needs.aligners and self.giza() is None:
            choices = " or ".join(" ".join(names) for names in GIZA)
            lines.append(f"{choices} in one directory (for alignment)")
        return lines

    def check(self, needs: Needs) -> None:
        """Check that all programs exist, and that the decoder can translate with a model like those of the pipeline.

        Raises:
            InputError: a program is missing, or the decoder cannot translate.
        """
        if lines := self.missing(needs):
            raise InputError(
                f"moses_home: {self.home} lacks {', '.join(lines)}; docs/moses.md lists the directories searched"
            )
        if {"tuning", "decoding"} & set(needs.parts):
            try_decoder(self.program(MOSES), needs.lm_order)

    def about(self, needs: Needs) -> dict[str, dict[str, str]]:
        """Return path and SHA-256 of every program that is used, for the provenance."""
        paths = {name: self.program(name) for name in self._wanted(needs)}
        giza = self.giza() if "alignment" in needs.parts and "model4" in needs.aligners else None
        if giza is not None:
            names = next(names for names in GIZA if names[0] == giza[0])
            paths |= {name: giza[1] / name for name in names}
        return {name: {"path": str(path), "sha256": sha256(path)} for name, path in paths.items()}


def try_decoder(decoder: Path, lm_order: int) -> None:
    """Translate one word with two phrase pairs, an LM of the given order, lexicalised reordering and segmentations."""
    with tempfile.TemporaryDirectory(prefix="rnnsmt-moses-") as name:
        message, nbest = _translate_a_word(decoder, Path(name), lm_order)
    if not nbest.endswith("0=0"):
        raise InputError(
            f"{decoder}: cannot translate a word with an LM of order {lm_order}, lexicalised reordering and n-best "
            f"lists with segmentations: {failure_reason(message) or 'no output'}; build a newer Moses"
            + (f", with --max-kenlm-order={lm_order}" if lm_order > 6 else "")
        )


def _translate_a_word(decoder: Path, directory: Path, lm_order: int) -> tuple[str, str]:
    """Create a small model in ``directory``, and translate the word ``a``.

    Returns:
        Standard error of the decoder, and its n-best list, which is empty if it failed.
    """
    pairs = (("a", "b"), ("b", "c"))
    scores = {"table": "1 1 1 1 ||| 0-0 ||| 1 1 1 ||| |||", "reordering": "0.2 0.4 0.4 0.2 0.4 0.4"}
    for file, rest in scores.items():
        with gzip.open(directory / f"{file}.gz", "wt") as out:
            out.writelines(f"{source} ||| {target} ||| {rest}\n" for source, target in pairs)
    ngrams = [["<s>", "</s>", "<unk>", "b"], *([" ".join(["b"] * n)] for n in range(2, lm_order + 1))]
    counts = "\n".join(f"ngram {n}={len(entries)}" for n, entries in enumerate(ngrams, 1))
    blocks = "".join(
        f"\\{n}-grams:\n"
        + "".join(f"-1\t{ngram}{'' if n == lm_order else chr(9) + '-1'}\n" for ngram in entries)
        + "\n"
        for n, entries in enumerate(ngrams, 1)
    )
    with gzip.open(directory / "lm.arpa.gz", "wt") as out:
        out.write(f"\\data\\\n{counts}\n\n{blocks}\\end\\\n")
    ini = default_ini(directory, "table.gz", "reordering.gz", "lm.arpa.gz", lm_order)
    ini.write(directory / "moses.ini")
    options = (
        "-f moses.ini -search-algorithm 1 -cube-pruning-pop-limit 10 -s 10 -threads 2 -v 0 "
        "-output-unknowns unknown -n-best-list nbest 1 distinct -include-segmentation-in-n-best"
    )
    try:
        done = subprocess.run(
            [str(decoder), *options.split()], cwd=directory, input="a\n", capture_output=True, encoding="utf-8",
            errors="replace", timeout=SECONDS, check=False,
        )  # fmt: skip
    except OSError as error:
        raise InputError(f"{decoder}: cannot be run: {error}") from None
    except subprocess.TimeoutExpired:
        raise InputError(
            f"{decoder}: did not translate a word within {SECONDS} s; run it again when the machine is less busy"
        ) from None
    works = done.returncode == 0 and done.stdout.split() == ["b"] and (directory / "nbest").is_file()
    return done.stderr, (directory / "nbest").read_text("utf-8", "replace").rstrip() if works else ""


# Running of the programs

TAIL = 1_000_000
"""Number of bytes at the end of a log that are searched for the reason of a failure."""


STOPS = (signal.SIGTERM, signal.SIGINT)
"""Signals that stop a stage; they are blocked while a program is being started."""

FAILURES = (
    "error",
    "exception",
    "cannot",
    "can't",
    "could not",
    "not found",
    "no such",
    "died",
    "terminate",
    "abort",
)
"""Substrings (in lower case) of lines that report a failure."""

CAUSES = (": not found", "command not found", "No space left", "what():", "Permission denied", "Killed", "write failed")
"""Substrings of messages that state the cause of a failure; other messages are consequences of it."""

PLACE = (" at /", " at ./", " at line ")
"""Beginnings of the location that Perl appends to a message."""


BLANKS = re.compile(r"[\s'\"$&;()|<>*?`\\\\]")
"""Characters with a meaning for the shell, which Moses' scripts do not quote."""


def check_path(path: Path) -> None:
    """Check that the shell reads a path as a single word, because Moses' scripts do not quote paths."""
    if BLANKS.search(str(path)):
        raise InputError(
            f"{path}: the Moses scripts do not support paths with spaces, quotes and other special characters; use "
            "another path"
        )


def failure_reason(text: str) -> str:
    """Return the likely reason of a failure from a program's output, without Perl's location, up to 300 characters.

    This is the first line that states a cause (``CAUSES``), for example a missing file, else the last line that reports
    a failure (``FAILURES``), else the last line.

    >>> failure_reason("step 1\\nERROR: no file x at /opt/train-model.perl line 17.\\nExit code: 2\\n")
    'ERROR: no file x'
    >>> failure_reason("sh: 1: /x/bin/symal: not found\\nExit code: 127\\nERROR: Can't generate the file\\n")
    'sh: 1: /x/bin/symal: not found'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reasons = [line for line in lines if any(word in line.lower() for word in FAILURES)]
    causes = [line for line in lines if any(word in line for word in CAUSES)]
    cause = causes[0] if causes else (reasons or lines or [""])[-1]
    for location in PLACE:
        cause = cause.split(location)[0]
    return cause[:300]


class Done(NamedTuple):
    """Result of a program that has ended successfully.

    Attributes:
        seconds: CPU time in seconds, including that of its child processes.
        printed: last ``TAIL`` bytes of its output in the log.
    """

    seconds: float
    printed: str


def run(
    command: Sequence[object],
    log: Path,
    directory: Path,
    *,
    stdout: Path | None = None,
    threads: int = 1,
    more_logs: Sequence[Path] = (),
    held: Sequence[int] = (),
) -> Done:
    """Run a program to its end; if this process is stopped, the program and its child processes are killed.

    Args:
        command: program and arguments; paths among them are checked with ``check_path``.
        log: file that the program's output is appended to.
        directory: working directory.
        stdout: file for the standard output; None for the log.
        threads: number of threads of programs that use OpenMP.
        more_logs: files of the program that are appended to the log if it fails.
        held: file descriptors of locks, which the program inherits to hold them even if this process is killed.
    """
    for word in command:
        if isinstance(word, Path):
            check_path(word)
    words = [str(word) for word in command]
    name = Path(words[0]).name
    say(f"running {name}; command and output in {log}")  # `rnnsmt status` prints the last line
    log.parent.mkdir(parents=True, exist_ok=True)
    # MGIZA's scripts call a program named python
    search_path = os.pathsep.join([*os.get_exec_path(), str(Path(sys.executable).parent)])
    variables = {"LC_ALL": "C", "PATH": search_path, "OMP_NUM_THREADS": str(threads)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open("ab") as printed:
        printed.write(f"$ {' '.join(words)}\n".encode())
        printed.flush()
        begin = printed.tell()
        writing = None if stdout is None else stdout.open("wb")
        # a signal between the start of the program and the wait below would leave the program running
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        try:
            process = subprocess.Popen(
                words, cwd=directory, stdin=subprocess.DEVNULL, stdout=writing or printed, stderr=printed,
                start_new_session=True, env=os.environ | variables, pass_fds=held,
                preexec_fn=partial(signal.pthread_sigmask, signal.SIG_SETMASK, mask),
            )  # fmt: skip
        except OSError as error:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            raise InputError(f"{words[0]}: cannot be run: {error.strerror}") from None
        finally:
            if writing is not None:
                writing.close()
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            status = process.wait()
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if status:
        how = f"status {status}" if status > 0 else signal.Signals(-status).name
        with log.open("a", encoding="utf-8") as out:
            out.writelines(path.read_text("utf-8", "replace") for path in more_logs if path.is_file())
        cause = failure_reason(_printed(log, begin)) or "no output"
        raise InputError(f"{name}: ended with {how}: {cause}; full output in {log}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Done(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, _printed(log, begin))


def _printed(log: Path, begin: int) -> str:
    """Return the end of the text appended to a log since the offset ``begin``, up to ``TAIL`` bytes."""
    with log.open("rb") as stream:
        stream.seek(max(begin, log.stat().st_size - TAIL))
        return stream.read().decode("utf-8", "replace")
