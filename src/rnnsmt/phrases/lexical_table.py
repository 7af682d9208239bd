"""Counting of linked word pairs, and writing and reading of lexical translation tables (``lex.e2f``, ``lex.f2e``)."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.strings import Interner
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import read_byte_lines
from rnnsmt.base.writing import atomic_binary
from rnnsmt.phrases.aligned_text import AlignedBlock, TextStats, read_aligned_blocks

NULL = b"NULL"
"""Name of the empty word in the tables, as in Moses."""
_SHIFT = 32


@dataclass
class LexicalCounts:
    """Link counts of word pairs; P is the number of distinct pairs.

    Attributes:
        sources, targets: source words and target words, including NULL; the number of a word is its index.
        pairs: int64 [P, 2], numbers of the source word and the target word, sorted by the words in byte order.
        joint: int64 [P], number of links of each pair.
    """

    sources: list[bytes]
    targets: list[bytes]
    pairs: NDArray[np.int64]
    joint: NDArray[np.int64]


def count_lexical(
    sources: Sequence[str], targets: Sequence[str], alignments: Sequence[str]
) -> tuple[LexicalCounts, TextStats]:
    """Count the linked word pairs of the corpora; words without links are counted as linked to NULL."""
    source_words, target_words, figures = Interner(), Interner(), TextStats()
    for words in (source_words, target_words):
        words.add([NULL])
    # Each table of counts is more than twice as long as the next one, so that a key takes part in O(log n) merges.
    tables: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for block in read_aligned_blocks(sources, targets, alignments, source_words, target_words, figures):
        tables.append(np.unique(_link_keys(block), return_counts=True))
        while len(tables) > 1 and len(tables[-2][0]) <= 2 * len(tables[-1][0]):
            tables[-2:] = [_merged(tables[-2:])]
    keys, joint = _merged(tables) if tables else (np.empty(0, np.int64), np.empty(0, np.int64))
    source_list, target_list = source_words.strings(), target_words.strings()
    pairs = np.stack((keys >> _SHIFT, keys & ((1 << _SHIFT) - 1)), axis=1)
    order = np.lexsort((_ranks(target_list)[pairs[:, 1]], _ranks(source_list)[pairs[:, 0]]))
    return LexicalCounts(source_list, target_list, pairs[order], joint[order]), figures


def _merged(
    tables: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Merge tables (keys, counts); return the distinct keys, sorted, and the sums of their counts."""
    keys, counts = (np.concatenate(columns) for columns in zip(*tables, strict=True))
    order = np.argsort(keys)
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[first], np.add.reduceat(counts[order], first) if len(first) else counts


def _link_keys(block: AlignedBlock) -> NDArray[np.int64]:
    """Return a key ``source << 32 | target`` for every link of the block and for every word without links.

    NULL has the number 0 on both sides.
    """
    counts = np.diff(block.link_offsets)
    at_source = np.repeat(block.source_offsets[:-1], counts) + block.links[:, 0]
    at_target = np.repeat(block.target_offsets[:-1], counts) + block.links[:, 1]
    free_source = np.ones(len(block.source), bool)
    free_source[at_source] = False
    free_target = np.ones(len(block.target), bool)
    free_target[at_target] = False
    source, target = block.source.astype(np.int64) << _SHIFT, block.target.astype(np.int64)
    return np.concatenate(
        (
            source[at_source] | target[at_target],
            source[free_source],
            target[free_target],
        )
    )


def _ranks(words: list[bytes]) -> NDArray[np.int64]:
    """Return the rank of every word in byte order."""
    ranks = np.empty(len(words), np.int64)
    ranks[sorted(range(len(words)), key=words.__getitem__)] = np.arange(len(words))
    return ranks


def write_lexical_tables(counts: LexicalCounts, e2f: StrPath, f2e: StrPath) -> None:
    """Write both tables; a line is ``word given-word p(word | given-word)``.

    Args:
        e2f: file for p(source word | target word).
        f2e: file for p(target word | source word).
    """
    source, target = counts.pairs[:, 0], counts.pairs[:, 1]
    source_totals = np.bincount(source, counts.joint)
    target_totals = np.bincount(target, counts.joint)
    source_words = [counts.sources[number] for number in source.tolist()]
    target_words = [counts.targets[number] for number in target.tolist()]
    with atomic_binary(e2f) as e2f_out, atomic_binary(f2e) as f2e_out:
        _write(e2f_out, source_words, target_words, counts.joint / target_totals[target])
        _write(f2e_out, target_words, source_words, counts.joint / source_totals[source])


def _write(out: BinaryIO, words: list[bytes], given: list[bytes], probabilities: NDArray[np.float64]) -> None:
    for word, condition, probability in zip(words, given, probabilities.tolist(), strict=True):
        out.write(b"%s %s %.7f\n" % (word, condition, probability))


def read_lexical_table(
    path: str, words: Mapping[bytes, int], given: Mapping[bytes, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Read a lexical table p(word | given word); lines with words outside the vocabularies are skipped.

    Args:
        words, given: numbers of the words, and numbers of the given words.

    Returns:
        Numbers of the words (int64 [P]), numbers of the given words (int64 [P]), and probabilities (float64 [P]).
    """
    numbers, conditions, probabilities = array("q"), array("q"), array("d")
    for line_number, line in enumerate(read_byte_lines(path), 1):
        try:
            word, condition, text = line.split(b" ")
            probability = float(text)
        except ValueError:
            raise InputError(
                f"{path}, line {line_number}: expected 'word word probability', separated by single spaces"
            ) from None
        if not 0.0 <= probability <= 1.0:
            raise InputError(f"{path}, line {line_number}: {probability} is not a probability")
        if word in words and condition in given:
            numbers.append(words[word])
            conditions.append(given[condition])
            probabilities.append(probability)
    return np.array(numbers), np.array(conditions), np.array(probabilities)
