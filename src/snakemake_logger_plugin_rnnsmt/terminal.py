"""A stream with lines that pass and, on a terminal, a block that stays at its foot."""

import shutil
from collections.abc import Sequence
from typing import TextIO


class Terminal:
    """Writes to a stream; ``stays`` says whether it can keep a block in place."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.stays = stream.isatty()
        self._shown: list[str] = []

    def line(self, text: str) -> None:
        """Print a line for good, above the block."""
        shown, self._shown = self._shown, []
        self._write(_up(len(shown)) + text + "\n")
        self.block(shown)

    def block(self, lines: Sequence[str]) -> None:
        """Show these lines instead of the block that is there; nothing where the stream is no terminal."""
        if not self.stays:
            return
        width, height = shutil.get_terminal_size()
        fitting = [line[: width - 1] for line in lines[: height - 2]]
        if fitting != self._shown:
            self._write(_up(len(self._shown)) + "".join(f"{line}\n" for line in fitting))
            self._shown = fitting

    def _write(self, text: str) -> None:
        if text:
            self.stream.write(text)
            self.stream.flush()


def _up(lines: int) -> str:
    """To the beginning of the block, which is erased."""
    return f"\x1b[{lines}A\x1b[J" if lines else ""
