"""Phrase pairs as ids on disk, in memory-mapped arrays: pair i is line i (from 0) of the phrase table.

A folder with ``vocab.source.txt``, ``vocab.target.txt``, ``{source,target}.words.npy`` (int32, all phrases one after
the other, each ending in EOS), ``{source,target}.offsets.npy`` (int64 [pairs + 1], where each begins) and
``pairs.json`` (figures and the fingerprint), which is written last.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rnnsmt.io import InputError, read_json
from rnnsmt.networks.sequences import Sequences, open_sequences
from rnnsmt.networks.vocabulary import Vocabulary

FORMAT = "rnnsmt-pairs-1"
AGAIN = "run rnn prepare again"


class Pairs:
    """All pairs of a phrase table."""

    def __init__(self, folder: Path, source: Sequences, target: Sequences, figures: dict[str, object]) -> None:
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
            raise InputError(f"{folder / 'pairs.json'}: not of this version; {AGAIN}")
        source, target = (
            open_sequences(folder, f"{name}.", figures.get("pairs"), figures.get(f"{name} classes"), AGAIN)
            for name in ("source", "target")
        )
        pairs = cls(folder, source, target, figures)
        for name, vocabulary in zip(("source", "target"), pairs.vocabularies, strict=True):
            if vocabulary.hash() != figures.get(f"{name} vocabulary"):
                raise InputError(f"{folder}: vocab.{name}.txt was changed after the pairs; {AGAIN}")
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
