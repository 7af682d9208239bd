"""Sentence pairs as ids on disk, in memory-mapped arrays.

A directory with these files:

* ``vocab.source.txt``, ``vocab.target.txt``: the vocabularies.
* ``sentencepiece.{source,target}.model``: for subwords only.
* ``{source,target}.words.npy``: int32, the units of all sentences one after the other, each ending in EOS.
* ``{source,target}.offsets.npy``: int64 [pairs + 1], where each sentence begins.
* ``sentences.json``: counts and the fingerprint; written last.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.arrays import growing_array
from rnnsmt.base.io import InputError, read_json, read_parallel, write_json
from rnnsmt.base.progress import Meter
from rnnsmt.networks.sequences import Sequences, open_sequences
from rnnsmt.networks.vocabulary import UNK, check_size, count_words, split
from rnnsmt.seq2seq.units import KINDS, Units, make_units, read_units, write_units

FORMAT = "rnnsmt-sentences-1"

AGAIN = "run seq2seq prepare again"

SIDES = ("source", "target")

BLOCK = 10_000
"""Number of pairs that are written at a time."""


class SentencePairs:
    """The sentence pairs of a bitext."""

    def __init__(
        self,
        folder: Path,
        source: Sequences,
        target: Sequences,
        subwords: str,
        units: tuple[Units, Units],
        fingerprint: str,
    ) -> None:
        self.folder, self.sides, self.subwords, self.units = folder, (source, target), subwords, units
        """sides, units: of the source and of the target. subwords: their kind, or ``none``."""
        self.fingerprint = fingerprint
        """SHA-256 of the units and all pairs."""

    @classmethod
    def open(cls, folder: str | Path) -> "SentencePairs":
        """Open a directory that ``seq2seq prepare`` wrote; only the units are read into memory.

        Raises:
            InputError: a file is missing, damaged, or inconsistent with the others.
        """
        folder = Path(folder)
        stats = read_json(folder / "sentences.json")
        if not isinstance(stats, dict) or stats.get("format") != FORMAT or "fingerprint" not in stats:
            raise InputError(f"{folder / 'sentences.json'}: written by another version; {AGAIN}")
        subwords = stats.get("subwords", "none")
        if subwords not in KINDS:
            raise InputError(f"{folder / 'sentences.json'}: unknown value of subwords: {subwords}; {AGAIN}")
        source, target = (
            open_sequences(folder, f"{name}.", stats.get("pairs"), stats.get(f"{name} classes"), AGAIN)
            for name in SIDES
        )
        units = read_units(folder, "source", subwords, AGAIN), read_units(folder, "target", subwords, AGAIN)
        for name, side in zip(SIDES, units, strict=True):
            if side.hash() != stats.get(f"{name} vocabulary"):
                raise InputError(f"{folder}: the {name} vocabulary is newer than the sentences; {AGAIN}")
        return cls(folder, source, target, subwords, units, str(stats["fingerprint"]))

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
        raise InputError(f"{len(sources)} --source but {len(targets)} --target files; give as many of each")
    folder = Path(output_dir)
    units = []
    stats: dict[str, object] = {}
    for name, paths, size in zip(SIDES, (sources, targets), sizes, strict=True):
        check_size(size)
        counts = count_words(list(paths), f"on the {name} side")
        units.append(make_units(subwords, paths, counts, size))
        known = sum(number for word, number in counts.items() if units[-1].knows(word))
        stats |= {f"{name} classes": len(units[-1]), f"{name} coverage": round(known / counts.total(), 6)}
    with ExitStack() as stack:
        words, offsets = (
            [stack.enter_context(growing_array(folder / f"{name}.{part}.npy", kind)) for name in SIDES]
            for part, kind in (("words", np.int32), ("offsets", np.int64))
        )
        for array in offsets:
            array.append(np.zeros(1, np.int64))
        counted, unknown, left_out = [0, 0], [0, 0], {"empty": 0, "too long": 0}
        for block in _blocks(zip(sources, targets, strict=True), max_length, left_out):
            for side, of_side in enumerate(units):
                counted[side] += sum(len(pair[side]) for pair in block)
                ids = [of_side.ids(pair[side], eos=True) for pair in block]
                offsets[side].append(words[side].length + np.cumsum([len(one) for one in ids]))
                words[side].append(np.concatenate(ids))
                unknown[side] += sum(int(np.count_nonzero(one == UNK)) for one in ids)
        pairs = offsets[0].length - 1
        if not pairs:
            raise InputError(f"{sources[0]}: no sentence pair of at most {max_length} words; give --max-length")
        # the arrays are replaced when the ``with`` ends: without sentences.json an interrupted directory is invalid
        (folder / "sentences.json").unlink(missing_ok=True)
    digest = hashlib.sha256()
    for array in (*words, *offsets):
        digest.update(array.digest.digest())
    stats = {"pairs": pairs, **{f"pairs left out, {reason}": number for reason, number in left_out.items()}, **stats}
    about: dict[str, object] = {"format": FORMAT, "subwords": subwords}
    for side, (name, array, of_side) in enumerate(zip(SIDES, words, units, strict=True)):
        stats |= {f"{name} words": counted[side], f"{name} units": array.length - pairs}
        stats[f"{name} unknown units"] = unknown[side]
        write_units(folder, name, of_side)
        digest.update(of_side.hash().encode())
        about[f"{name} vocabulary"] = of_side.hash()
    write_json(folder / "sentences.json", {**about, **stats, "fingerprint": digest.hexdigest()})
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
