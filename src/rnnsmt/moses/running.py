"""Running a program of Moses: its output goes to a log of its own, its failure ends in one sentence."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rnnsmt.io import InputError
from rnnsmt.moses.installation import check_path, last_words
from rnnsmt.progress import say

TAIL = 1_000_000
"""Bytes at the end of a log in which the reason of a failure is looked for."""


STOPS = (signal.SIGTERM, signal.SIGINT)


class Done(NamedTuple):
    """A program that has ended well: its CPU seconds, with those of the programs that it called; what it printed."""

    seconds: float
    printed: str


def run(
    command: Sequence[object],
    log: Path,
    folder: Path,
    *,
    stdout: Path | None = None,
    threads: int = 1,
    more_logs: Sequence[Path] = (),
    held: Sequence[int] = (),
    limit: float | None = None,
) -> Done:
    """Run a program to its end. It is stopped with all that it called when this process is.

    log: what it prints is added there, and what it writes into ``more_logs`` where it fails. folder: where it runs.
    stdout: a file; without it the log. threads: of programs that use OpenMP. held: descriptors of locks that it holds
    too, should this process be killed. limit: seconds, after which it is stopped.

    Raises:
        InputError: it cannot be started, fails or takes too long; with its last words and the path of the log.
    """
    for word in command:
        if isinstance(word, Path):
            check_path(word)
    words = [str(word) for word in command]
    name = Path(words[0]).name
    say(f"running {' '.join(words)}; what it prints: {log}")
    log.parent.mkdir(parents=True, exist_ok=True)
    # the scripts of MGIZA want a program called python
    places = os.pathsep.join([*os.get_exec_path(), str(Path(sys.executable).parent)])
    environment = os.environ | {"LC_ALL": "C", "PATH": places, "OMP_NUM_THREADS": str(threads)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open("ab") as printed:
        printed.write(f"$ {' '.join(words)}\n".encode())
        printed.flush()
        begin = printed.tell()
        writing = None if stdout is None else stdout.open("wb")
        # a signal that comes between the start of the program and the wait would leave it alone
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        try:
            process = subprocess.Popen(
                words, cwd=folder, stdin=subprocess.DEVNULL, stdout=writing or printed, stderr=printed,
                start_new_session=True, env=environment, pass_fds=held,
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
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            raise InputError(f"{name}: took longer than {limit:.0f} s and was stopped; its output: {log}") from None
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if status:
        how = f"status {status}" if status > 0 else signal.Signals(-status).name
        with log.open("a", encoding="utf-8") as out:
            out.writelines(path.read_text("utf-8", "replace") for path in more_logs if path.is_file())
        said = last_words(_printed(log, begin)) or "without a word"
        raise InputError(f"{name}: ended with {how}: {said}; all of its output: {log}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Done(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, _printed(log, begin))


def _printed(log: Path, begin: int) -> str:
    """The end of what was added to a log since ``begin``."""
    with log.open("rb") as stream:
        stream.seek(max(begin, log.stat().st_size - TAIL))
        return stream.read().decode("utf-8", "replace")
