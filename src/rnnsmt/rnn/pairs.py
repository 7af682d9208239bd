"""Phrase pairs as ids on disk, in memory-mapped arrays: pair i is line i (from 0) of the phrase table.

A folder with ``vocab.source.txt``, ``vocab.target.txt``, ``{source,target}.words.npy`` (int32, all phrases one after
the other, each ending in EOS), ``{source,target}.offsets.npy`` (int64 [pairs + 1], where each begins) and
``pairs.json`` (figures and the fingerprint), which is written last.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.io import InputError, read_json
from rnnsmt.rnn.vocabulary import Vocabulary

FORMAT = "rnnsmt-pairs-1"

BLOCK = 1 << 22
"""Numbers that are checked at a time."""


class Side(NamedTuple):
    """One side of all pairs. words: int32, offsets: int64 [pairs + 1]; both may be memory-mapped."""

    words: NDArray[np.int32]
    offsets: NDArray[np.int64]

    def phrase(self, i: int) -> NDArray[np.int32]:
        """The ids of phrase i, with EOS."""
        return self.words[self.offsets[i] : self.offsets[i + 1]]

    def lengths(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Words of the phrases ``index`` [K], with EOS."""
        return self.offsets[index + 1] - self.offsets[index]


class Pairs:
    """All pairs of a phrase table."""

    def __init__(self, folder: Path, source: Side, target: Side, figures: dict[str, object]) -> None:
        self.folder, self.sides, self.figures = folder, (source, target), figures
        self.vocabularies = tuple(Vocabulary.read(folder / f"vocab.{side}.txt") for side in ("source", "target"))

    @classmethod
    def open(cls, folder: str | Path) -> "Pairs":
        """Open a folder that ``rnn prepare`` wrote; nothing but the vocabularies is read into memory.

        Raises:
            InputError: a file is missing, damaged, or not of this folder.
        """
        folder = Path(folder)
        figures = read_json(folder / "pairs.json")
        if not isinstance(figures, dict) or figures.get("format") != FORMAT or "fingerprint" not in figures:
            raise InputError(f"{folder / 'pairs.json'}: not of this version; run rnn prepare again")
        source, target = (_open_side(folder, name, figures) for name in ("source", "target"))
        pairs = cls(folder, source, target, figures)
        for name, vocabulary in zip(("source", "target"), pairs.vocabularies, strict=True):
            if vocabulary.hash() != figures.get(f"{name} vocabulary"):
                raise InputError(f"{folder}: vocab.{name}.txt was changed after the pairs; run rnn prepare again")
        return pairs

    def __len__(self) -> int:
        return len(self.sides[0].offsets) - 1

    def source(self, i: int) -> NDArray[np.int32]:
        """The source phrase of pair i as ids, with EOS."""
        return self.sides[0].phrase(i)

    def target(self, i: int) -> NDArray[np.int32]:
        """The target phrase of pair i as ids, with EOS."""
        return self.sides[1].phrase(i)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the vocabularies and all pairs."""
        return str(self.figures["fingerprint"])


def _open_side(folder: Path, name: str, figures: dict[str, object]) -> Side:
    arrays = []
    for part in ("words", "offsets"):
        path = folder / f"{name}.{part}.npy"
        try:
            arrays.append(np.lib.format.open_memmap(path, mode="r"))
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{path}: cannot be read ({error}); run rnn prepare again") from None
    words, offsets = arrays
    expected = {"words": (np.int32, 1), "offsets": (np.int64, 1)}
    found = {"words": (words.dtype, words.ndim), "offsets": (offsets.dtype, offsets.ndim)}
    whole = found == expected and len(offsets) - 1 == figures.get("pairs") and offsets[-1] == len(words)
    if not whole or not _sound(words, offsets, figures.get(f"{name} classes")):
        raise InputError(
            f"{folder}: {name}.words.npy and {name}.offsets.npy do not fit pairs.json; run rnn prepare again"
        )
    return Side(words, offsets)


def _sound(words: NDArray[np.int32], offsets: NDArray[np.int64], classes: object) -> bool:
    """Whether all ids are below ``classes`` and every phrase has one at least; reads the files once, in blocks."""
    if not isinstance(classes, int) or offsets[0] != 0:
        return False
    for begin in range(0, len(words), BLOCK):
        block = words[begin : begin + BLOCK]
        if block.min() < 0 or block.max() >= classes:
            return False
    return all(np.diff(offsets[begin : begin + BLOCK + 1]).min() > 0 for begin in range(0, len(offsets) - 1, BLOCK))
