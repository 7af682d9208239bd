"""Sentence pairs as ids on disk, a directory of ``rnnsmt.networks.data``.

The JSON file is ``sentences.json``, the vocabularies ``vocab.source.txt`` and ``vocab.target.txt``; for subwords there
are also ``sentencepiece.source.model`` and ``sentencepiece.target.model``.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.io import InputError, read_parallel
from rnnsmt.base.progress import Meter
from rnnsmt.networks.data import (
    IdDirectory,
    IdFormat,
    check_size,
    check_vocabulary,
    count_words,
    open_id_directory,
    split,
    write_about,
    write_id_directory,
)
from rnnsmt.seq2seq.units import KINDS, make_units, read_units, write_units

SIDES = ("source", "target")

FORMAT = IdFormat("sentences.json", "rnnsmt-sentences-1", "pairs", SIDES, "run seq2seq prepare again")

BLOCK = 10_000
"""Number of pairs that are written at a time."""


class SentencePairs:
    """The sentence pairs of a bitext."""

    def __init__(self, directory: IdDirectory) -> None:
        """Read the units.

        Raises:
            InputError: their files are missing or damaged, or of an unknown kind.
        """
        self.directory, self.sides = directory.path, directory.sides
        self.fingerprint = directory.fingerprint
        """SHA-256 of the units and all pairs."""
        self.subwords = directory.stats.get("subwords", "none")
        """Kind of the units, one of ``SUBWORDS``."""
        if not isinstance(self.subwords, str) or self.subwords not in KINDS:
            raise InputError(
                f"{self.directory / FORMAT.json}: unknown value of subwords: {self.subwords}; {FORMAT.remedy}"
            )
        source, target = (read_units(self.directory, side, self.subwords, FORMAT.remedy) for side in SIDES)
        self.units = source, target

    @classmethod
    def open(cls, path: str | Path) -> "SentencePairs":
        """Open a directory that ``seq2seq prepare`` wrote; only the units are read into memory.

        Raises:
            InputError: a file is missing, damaged, or inconsistent with the others.
        """
        directory = open_id_directory(path, FORMAT)
        pairs = cls(directory)
        for side, units in zip(SIDES, pairs.units, strict=True):
            check_vocabulary(directory, FORMAT, side, units.hash())
        return pairs

    def __len__(self) -> int:
        return len(self.sides[0].offsets) - 1


def prepare_sentences(
    sources: Sequence[str],
    targets: Sequence[str],
    output_dir: str,
    sizes: tuple[int, int],
    max_length: int,
    subwords: str = "none",
) -> dict[str, object]:
    """Write the directory of a bitext; return the statistics of the stage.

    Pairs with an empty side or with a side of more than ``max_length`` words are left out and counted.

    Args:
        sources, targets: the files of each side.
        output_dir: the directory.
        sizes: number of ids of each side without EOS.
        max_length: maximum number of words of a sentence, whatever the units.
        subwords: the kind of the units, see ``make_units``; they are learnt from the whole text of a side.

    Raises:
        InputError: the numbers of files or of lines differ, or no pair is left; see also ``make_units``.
    """
    if len(sources) != len(targets):
        raise InputError(
            f"{len(sources)} --source but {len(targets)} --target files; the numbers of files must be equal"
        )
    directory = Path(output_dir)
    units = []
    stats: dict[str, object] = {}
    for name, paths, size in zip(SIDES, (sources, targets), sizes, strict=True):
        check_size(size)
        counts = count_words(list(paths), f"on the {name} side")
        units.append(make_units(subwords, paths, counts, size))
        known = sum(number for word, number in counts.items() if units[-1].knows(word))
        stats |= {f"{name} classes": len(units[-1]), f"{name} coverage": round(known / counts.total(), 6)}
    counted, left_out = [0, 0], {"empty": 0, "too long": 0}
    with write_id_directory(directory, FORMAT) as writer:
        for block in _blocks(zip(sources, targets, strict=True), max_length, left_out):
            for side, of_side in enumerate(units):
                counted[side] += sum(len(pair[side]) for pair in block)
                ids = [of_side.ids(pair[side], eos=True) for pair in block]
                writer.append(side, np.concatenate(ids), np.array([len(sentence) for sentence in ids]))
        if not writer.sequences:
            raise InputError(f"{sources[0]}: no sentence pair of at most {max_length} words; increase --max-length")
    left = {f"pairs left out, {reason}": number for reason, number in left_out.items()}
    stats = {"pairs": writer.sequences, **left, **stats}
    about: dict[str, object] = {"format": FORMAT.version, "subwords": subwords}
    for side, (name, of_side) in enumerate(zip(SIDES, units, strict=True)):
        stats |= {f"{name} words": counted[side], f"{name} units": writer.ids(side)}
        stats[f"{name} unknown units"] = writer.unknown[side]
        write_units(directory, name, of_side)
        about[f"{name} vocabulary"] = of_side.hash()
    fingerprint = writer.fingerprint(of_side.hash() for of_side in units)
    write_about(directory, FORMAT, {**about, **stats, "fingerprint": fingerprint})
    return stats


def _blocks(
    files: Iterator[tuple[str, str]], max_length: int, left_out: dict[str, int]
) -> Iterator[list[tuple[list[str], list[str]]]]:
    """Yield the words of the kept sentence pairs, ``BLOCK`` at a time; count the others in ``left_out`` by reason."""
    block: list[tuple[list[str], list[str]]] = []
    for paths in files:
        meter = Meter(f"reading {Path(paths[0]).name}", unit="pairs")
        for lines in read_parallel(*paths):
            source, target = (split(line) for line in lines)
            meter.add(1)
            if not source or not target:
                left_out["empty"] += 1
            elif max(len(source), len(target)) > max_length:
                left_out["too long"] += 1
            else:
                block.append((source, target))
            if len(block) == BLOCK:
                yield block
                block = []
    if block:
        yield block


def padded(sequences: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
    """Return sequences of ids as columns padded with 0, int64 [longest, B]."""
    found = np.zeros((max(map(len, sequences), default=0), len(sequences)), np.int64)
    for column, ids in enumerate(sequences):
        found[: len(ids), column] = ids
    return found


def as_read(source: NDArray[np.int32], order: str) -> NDArray[np.int32]:
    """Return a source sentence, which ends in EOS, in the reading order of the network; EOS stays last."""
    return np.concatenate([source[-2::-1], source[-1:]]) if order == "reversed" and len(source) > 1 else source
