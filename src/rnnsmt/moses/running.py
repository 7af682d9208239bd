"""Runner of Moses' programs: their output goes to a log file, a failure becomes a one-sentence error."""

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

from rnnsmt.base.io import InputError
from rnnsmt.base.progress import say
from rnnsmt.moses.installation import check_path, last_words

TAIL = 1_000_000
"""Number of bytes at the end of a log that are searched for the reason of a failure."""


STOPS = (signal.SIGTERM, signal.SIGINT)
"""Signals that stop a stage; they are blocked while a program is being started."""


class Done(NamedTuple):
    """Result of a program that has ended successfully.

    Attributes:
        seconds: CPU time in seconds, including that of its child processes.
        printed: the end of its output in the log, up to ``TAIL`` bytes.
    """

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
    """Run a program to its end; if this process is stopped, the program and its child processes are killed.

    Args:
        command: program and arguments; paths among them are checked with ``check_path``.
        log: file that the program's output is appended to.
        folder: working directory.
        stdout: file for the standard output; None for the log.
        threads: number of threads of programs that use OpenMP.
        more_logs: files of the program that are appended to the log if it fails.
        held: file descriptors of locks that the program inherits, so that they are held even if this process is killed.
        limit: time limit in seconds, after which the program is killed; None for no limit.

    Raises:
        InputError: the program cannot be started, fails, or exceeds the time limit; the message contains the reason
            that it printed and the path of the log.
    """
    for word in command:
        if isinstance(word, Path):
            check_path(word)
    words = [str(word) for word in command]
    name = Path(words[0]).name
    say(f"running {' '.join(words)}; output in {log}")
    log.parent.mkdir(parents=True, exist_ok=True)
    # MGIZA's scripts call a program named python
    places = os.pathsep.join([*os.get_exec_path(), str(Path(sys.executable).parent)])
    environment = os.environ | {"LC_ALL": "C", "PATH": places, "OMP_NUM_THREADS": str(threads)}
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
            raise InputError(
                f"{name}: took longer than {limit:.0f} s and was stopped; see its output in {log}"
            ) from None
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
        raise InputError(f"{name}: ended with {how}: {said}; full output in {log}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Done(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, _printed(log, begin))


def _printed(log: Path, begin: int) -> str:
    """Return the end of the text appended to a log since the offset ``begin``, up to ``TAIL`` bytes."""
    with log.open("rb") as stream:
        stream.seek(max(begin, log.stat().st_size - TAIL))
        return stream.read().decode("utf-8", "replace")
