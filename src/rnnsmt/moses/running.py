"""Running a program of Moses: its output goes to a log of its own, its failure ends in one sentence."""

import os
import resource
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rnnsmt.io import InputError
from rnnsmt.moses.installation import last_words
from rnnsmt.progress import say

TAIL = 20_000
"""Bytes at the end of a log in which the reason of a failure is looked for."""


def run(
    command: Sequence[object],
    log: Path,
    folder: Path,
    *,
    stdin: Path | None = None,
    stdout: Path | None = None,
    limit: float | None = None,
) -> float:
    """Run a program to its end; its CPU seconds, those of the programs that it called included.

    log: what it prints is added there. folder: where it runs. stdin, stdout: files; without them nothing, and the log.
    limit: seconds, after which it is stopped. It is stopped with all that it called when this process is.

    Raises:
        InputError: it cannot be started, fails or takes too long; with its last words and the path of the log.
    """
    words = [str(word) for word in command]
    name = Path(words[0]).name
    say(f"running {' '.join(words)}; what it prints: {log}")
    log.parent.mkdir(parents=True, exist_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open("ab") as printed:
        printed.write(f"$ {' '.join(words)}\n".encode())
        printed.flush()
        begin = printed.tell()
        reading = None if stdin is None else stdin.open("rb")
        writing = None if stdout is None else stdout.open("wb")
        try:
            process = subprocess.Popen(
                words, cwd=folder, stdin=reading or subprocess.DEVNULL, stdout=writing or printed, stderr=printed,
                start_new_session=True, env=os.environ | {"LC_ALL": "C"},
            )  # fmt: skip
        except OSError as error:
            raise InputError(f"{words[0]}: cannot be run: {error.strerror}") from None
        finally:
            for stream in (reading, writing):
                if stream is not None:
                    stream.close()
        try:
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
        raise InputError(
            f"{name}: ended with {how}: {_end_of(log, begin) or 'without a word'}; all of its output: {log}"
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _end_of(log: Path, begin: int) -> str:
    """The last words of what was added to a log since ``begin``."""
    with log.open("rb") as stream:
        stream.seek(max(begin, log.stat().st_size - TAIL))
        return last_words(stream.read().decode("utf-8", "replace"))
