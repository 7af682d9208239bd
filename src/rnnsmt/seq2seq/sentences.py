"""Sentence pairs as ids on disk, a directory of ``rnnsmt.networks.data``.

The JSON file is ``sentences.json``, the vocabularies ``vocab.source.txt`` and ``vocab.target.txt``; for subwords there
are also ``sentencepiece.source.model`` and ``sentencepiece.target.model``.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.align.pharaoh import distinct, read_links_of
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
from rnnsmt.seq2seq.settings import SUBWORDS
from rnnsmt.seq2seq.units import PositionedWords, kinds_of, make_units, read_units, write_units

SIDES = ("source", "target")

FORMAT = IdFormat("sentences.json", "rnnsmt-sentences-1", "pairs", SIDES, "run `seq2seq prepare` again")

NOT_ALIGNED: Mapping[int, int] = {}
"""Alignment of a sentence pair without links, or of a text without alignment."""

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
        self.positions = directory.stats.get("positions", False) is True
        """Whether unknown target words have position tokens."""
        if not isinstance(self.subwords, str) or self.subwords not in SUBWORDS:
            raise InputError(
                f"{self.directory / FORMAT.json}: unknown value of subwords: {self.subwords}; {FORMAT.remedy}"
            )
        kinds = kinds_of(self.subwords, self.positions)
        source, target = (
            read_units(self.directory, side, kind, FORMAT.remedy) for side, kind in zip(SIDES, kinds, strict=True)
        )
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
    alignments: Sequence[str] | None = None,
) -> dict[str, object]:
    """Write the directory of a bitext; return the statistics of the stage.

    Pairs with an empty side or with a side of more than ``max_length`` words are discarded and counted. With an
    alignment, unknown target words get position tokens, see ``PositionedWords``.

    Args:
        sources, targets: the files of each side.
        output_dir: the directory.
        sizes: number of ids of each side without EOS.
        max_length: maximum number of words of a sentence, regardless of the units.
        subwords: the kind of the units, see ``make_units``; they are learnt from the whole text of a side.
        alignments: files in Pharaoh format, one for each pair of files of the bitext.

    Raises:
        InputError: the numbers of files or of lines differ, a link is outside its sentence pair, the alignment is for
            subwords, or no pairs remain; see also ``make_units``.
    """
    if len(sources) != len(targets):
        raise InputError(
            f"got {len(sources)} --source files but {len(targets)} --target files; the numbers must be equal"
        )
    if alignments is not None and len(alignments) != len(sources):
        raise InputError(
            f"got {len(alignments)} --alignment files but {len(sources)} --source files; the numbers must be equal"
        )
    if alignments is not None and subwords != "none":
        raise InputError(f"--alignment cannot be combined with --subwords {subwords}")
    directory = Path(output_dir)
    units = []
    stats: dict[str, object] = {}
    for name, paths, size in zip(SIDES, (sources, targets), sizes, strict=True):
        option = f"--{name}-vocab-size"
        check_size(size, option)
        counts = count_words(list(paths), f"on the {name} side").words
        units.append(make_units(subwords, paths, counts, size, option))
        known = sum(number for word, number in counts.items() if units[-1].knows(word))
        if name == "target" and alignments is not None:
            units[-1] = PositionedWords.of(units[-1].vocabulary)
        stats |= {f"{name} classes": len(units[-1]), f"{name} coverage": round(known / counts.total(), 6)}
    counted, discarded, positioned = [0, 0], {"empty": 0, "too long": 0}, 0
    with write_id_directory(directory, FORMAT) as writer:
        for block in _blocks(list(zip(sources, targets, strict=True)), alignments, max_length, discarded):
            for side, of_side in enumerate(units):
                texts = [(pair.source, pair.target)[side] for pair in block]
                counted[side] += sum(map(len, texts))
                if isinstance(of_side, PositionedWords):
                    ids = [of_side.aligned_ids(pair.target, pair.aligned) for pair in block]
                    positioned += int(np.isin(np.concatenate(ids), of_side.unknown[1:]).sum())
                else:
                    ids = [of_side.ids(text, eos=True) for text in texts]
                writer.append(side, np.concatenate(ids), np.array([len(sentence) for sentence in ids]))
        if not writer.sequences:
            raise InputError(f"{sources[0]}: no sentence pair of at most {max_length} words; increase --max-length")
    by_reason = {f"discarded pairs, {reason}": number for reason, number in discarded.items()}
    stats = {"pairs": writer.sequences, **by_reason, **stats}
    description: dict[str, object] = {"format": FORMAT.version, "subwords": subwords}
    if alignments is not None:
        description["positions"] = True
        stats["target units with a position token"] = positioned
    for side, (name, of_side) in enumerate(zip(SIDES, units, strict=True)):
        stats |= {f"{name} words": counted[side], f"{name} units": writer.ids(side)}
        stats[f"{name} unknown units"] = writer.unknown[side]
        write_units(directory, name, of_side)
        description[f"{name} vocabulary"] = of_side.hash()
    fingerprint = writer.fingerprint(of_side.hash() for of_side in units)
    write_about(directory, FORMAT, {**description, **stats, "fingerprint": fingerprint})
    return stats


class _Pair(NamedTuple):
    """The words of a sentence pair, and ``aligned``: target position -> source position."""

    source: list[str]
    target: list[str]
    aligned: Mapping[int, int]


def _blocks(
    files: Sequence[tuple[str, str]], alignments: Sequence[str] | None, max_length: int, discarded: dict[str, int]
) -> Iterator[list[_Pair]]:
    """Yield the kept sentence pairs, ``BLOCK`` at a time; count the others in ``discarded`` by reason."""
    block: list[_Pair] = []
    for number, paths in enumerate(files):
        meter = Meter(f"reading {Path(paths[0]).name}", unit="pairs")
        aligned = repeat(NOT_ALIGNED) if alignments is None else aligned_positions(alignments[number], *paths)
        # the alignment is last in the zip, because it reports a different number of lines when it ends
        for lines, positions in zip(read_parallel(*paths), aligned, strict=alignments is not None):
            source, target = (split(line) for line in lines)
            meter.add(1)
            if not source or not target:
                discarded["empty"] += 1
            elif max(len(source), len(target)) > max_length:
                discarded["too long"] += 1
            else:
                block.append(_Pair(source, target, positions))
            if len(block) == BLOCK:
                yield block
                block = []
    if block:
        yield block


def aligned_positions(alignment: str, source: str, target: str) -> Iterator[Mapping[int, int]]:
    """Yield for every sentence pair: target position -> source position, for the target words with a link.

    If a target word has several source words, the middle one is used, or the left one of two middle words, as in the
    joint model.

    Raises:
        InputError: see ``read_links_of``.
    """
    for links in map(distinct, read_links_of(alignment, source, target)):
        for begin, end in pairwise(links.offsets.tolist()):
            linked: dict[int, list[int]] = {}
            for i, j in zip(links.source[begin:end].tolist(), links.target[begin:end].tolist(), strict=True):
                linked.setdefault(j, []).append(i)
            yield {j: sources[(len(sources) - 1) // 2] for j, sources in linked.items()}


def padded(sequences: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
    """Return sequences of ids as columns padded with 0, int64 [longest, B]."""
    array = np.zeros((max(map(len, sequences), default=0), len(sequences)), np.int64)
    for column, ids in enumerate(sequences):
        array[: len(ids), column] = ids
    return array


def as_read(source: NDArray[np.int32], order: str) -> NDArray[np.int32]:
    """Return a source sentence, which ends in EOS, in the reading order of the network; EOS stays last."""
    return np.concatenate([source[-2::-1], source[-1:]]) if order == "reversed" and len(source) > 1 else source
