"""Running KenLM's lmplz where it is installed."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rnnsmt.io import InputError, atomic_binary, read_byte_lines
from rnnsmt.progress import say


def find_lmplz(estimator: str) -> str | None:
    """The path of lmplz, or None for the built-in estimator.

    Args:
        estimator: ``auto``, ``lmplz`` or ``builtin``.

    Raises:
        InputError: lmplz is asked for and not on PATH.
    """
    found = None if estimator == "builtin" else shutil.which("lmplz")
    if estimator == "lmplz" and found is None:
        raise InputError("--estimator lmplz: no lmplz on PATH; install KenLM or use --estimator builtin")
    return found


def run_lmplz(
    lmplz: str, inputs: Sequence[str | Path], order: int, output: str | Path, memory_mb: int
) -> dict[str, object]:
    """Estimate with lmplz, reading compressed input and writing the ARPA file whole or not at all.

    Raises:
        InputError: lmplz failed; its last words are in the sentence.
    """
    folder = Path(output).parent
    folder.mkdir(parents=True, exist_ok=True)
    lines = 0
    with tempfile.TemporaryDirectory(prefix=".tmp-lmplz-", dir=folder) as temporary:
        arpa = Path(temporary) / "lm.arpa"
        memory = ["-S", f"{memory_mb}M", "-T", f"{temporary}/"]
        command = [lmplz, "-o", str(order), *memory, "--discount_fallback", "--arpa", str(arpa)]
        say("running " + " ".join(command))
        log = Path(temporary) / "log"
        with log.open("wb") as errors:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors)
            assert process.stdin is not None
            try:
                for path in inputs:
                    for line in read_byte_lines(path):
                        process.stdin.write(line + b"\n")
                        lines += 1
                process.stdin.close()
            except BrokenPipeError:
                pass  # lmplz ended before its input: its exit status says why
            except BaseException:
                process.kill()
                process.wait()
                raise
            status = process.wait()
        words = log.read_text("utf-8", "replace").strip().splitlines()
        if status != 0 or not arpa.exists():
            raise InputError(f"lmplz ended with status {status}: {' '.join(words[-3:])}")
        with arpa.open("rb") as source, atomic_binary(output) as target:
            shutil.copyfileobj(source, target, 1 << 20)
    return {"lines": lines, "estimator": lmplz}
