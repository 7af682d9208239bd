"""Sentence pairs as word ids on disk.

The directory has the format of ``rnnsmt.networks.data``. The JSON file is ``sentences.json``, the vocabularies are
``vocab.source.txt`` and ``vocab.target.txt``.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.progress import Meter
from rnnsmt.base.reading import read_parallel
from rnnsmt.networks.data import (
    IdFormat,
    PairDirectory,
    Vocabulary,
    count_words,
    finish_id_directory,
    split,
    write_id_directory,
)

SIDES = ("source", "target")

FORMAT = IdFormat("sentences.json", "rnnsmt-sentences-2", SIDES, "run `networks prepare` again")

BLOCK = 10_000
"""Number of pairs that are written at a time."""


class SentencePairs(PairDirectory):
    """Open directory of sentence pairs."""

    kind = FORMAT


def prepare_sentences(
    sources: Sequence[str],
    targets: Sequence[str],
    output_dir: str,
    sizes: tuple[int, int],
    max_length: int,
) -> dict[str, object]:
    """Write the directory of a bitext; return the statistics of the stage.

    Pairs with an empty side or with a side of more than ``max_length`` words are discarded and counted.

    Args:
        sources, targets: the files of each side; the n-th files are parallel.
        sizes: size of each vocabulary, i.e. the number of ids including UNK and id 0 but not EOS. The vocabulary of a
            small text may be smaller.
    """
    if len(sources) != len(targets):
        raise InputError(
            f"got {len(sources)} --source files but {len(targets)} --target files; the numbers must be equal"
        )
    directory = Path(output_dir)
    vocabularies, coverage = [], {}
    for name, paths, size in zip(SIDES, (sources, targets), sizes, strict=True):
        counts = count_words(list(paths), f"on the {name} side")
        vocabularies.append(Vocabulary.from_counts(counts.words, size))
        coverage[f"{name} coverage"] = counts.coverage(vocabularies[-1])
    discarded = {"empty": 0, "too long": 0}
    with write_id_directory(directory, FORMAT) as writer:
        for block in _blocks(list(zip(sources, targets, strict=True)), max_length, discarded):
            for side, vocabulary in enumerate(vocabularies):
                ids = [vocabulary.ids(pair[side], eos=True) for pair in block]
                writer.append(side, np.concatenate(ids), np.array([len(sentence) for sentence in ids]))
        if not writer.sequences:
            raise InputError(f"{sources[0]}: no sentence pair of at most {max_length} words; increase --max-length")
    by_reason = {f"discarded pairs, {reason}": number for reason, number in discarded.items()}
    figures = {"pairs": writer.sequences, **by_reason, **coverage}
    return finish_id_directory(directory, FORMAT, writer, vocabularies, figures)


def _blocks(
    files: Sequence[tuple[str, str]], max_length: int, discarded: dict[str, int]
) -> Iterator[list[tuple[list[str], list[str]]]]:
    """Yield the words of the kept sentence pairs, ``BLOCK`` at a time; count the others in ``discarded`` by reason."""
    block: list[tuple[list[str], list[str]]] = []
    for paths in files:
        meter = Meter(f"reading {Path(paths[0]).name}", unit="pairs")
        for lines in read_parallel(*paths):
            source, target = (split(line) for line in lines)
            meter.add(1)
            if not source or not target:
                discarded["empty"] += 1
            elif max(len(source), len(target)) > max_length:
                discarded["too long"] += 1
            else:
                block.append((source, target))
            if len(block) == BLOCK:
                yield block
                block = []
    if block:
        yield block


def padded(sequences: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
    """Return sequences of ids as columns padded with 0, int64 [longest, B]."""
    array = np.zeros((max(map(len, sequences), default=0), len(sequences)), np.int64)
    for column, ids in enumerate(sequences):
        array[: len(ids), column] = ids
    return array


def as_read(source: NDArray[np.int32], order: str) -> NDArray[np.int32]:
    """Return a source sentence, which ends in EOS, in the reading order of the network; EOS stays last."""
    return np.concatenate([source[-2::-1], source[-1:]]) if order == "reversed" and len(source) > 1 else source
