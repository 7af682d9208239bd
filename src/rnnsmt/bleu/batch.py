"""Kernels for the sufficient statistics of BLEU (see ``multi_bleu``) of texts and n-best lists, and for BLEU itself.

References are prepared once, and candidates are scored in batches. The kernels release the GIL and are deterministic.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.kernels.probing import find_slot
from rnnsmt.bleu.multi_bleu import SIZE, BleuScore, bleu_of, log_precision_and_penalty, tokens


class BatchBleu:
    """Sufficient statistics (see ``multi_bleu``) of many candidates per sentence."""

    def __init__(self, references: Sequence[Sequence[str]]) -> None:
        """Prepare the references: one list of texts for each set of references, all of equal length."""
        self._ids: dict[bytes, int] = {}
        self.segments = len(references[0])
        self._number = len(references)
        words: list[int] = []
        offsets = [0]
        # texts are stored sentence by sentence: the references of sentence s are texts s * number, ..., s * number +
        # number - 1
        for texts in zip(*references, strict=True):
            for text in texts:
                words.extend(self._ids.setdefault(word, len(self._ids)) for word in tokens(text))
                offsets.append(len(words))
        self._words = np.array(words, np.int32)
        self._offsets = np.array(offsets, np.int64)

    def statistics(self, candidates: "Iterable[Sequence[str]] | NumberedTexts") -> NDArray[np.int32]:
        """Return the statistics of all N candidates, sentence by sentence, int32 [N, 9].

        Args:
            candidates: candidates of every sentence, as texts or as word numbers.

        Raises:
            ValueError: the number of sentences differs from the number of sentences in the references.
        """
        texts = candidates if isinstance(candidates, NumberedTexts) else _numbered(candidates)
        if len(texts.offsets) - 1 != self.segments:
            raise ValueError(f"candidates for {len(texts.offsets) - 1} sentences, but references for {self.segments}")
        ids = np.array([self._id(word) for word in texts.vocabulary], np.int32)
        out = np.zeros((len(texts.bounds) - 1, SIZE), np.int32)
        words = ids[texts.words] if len(ids) else np.zeros(0, np.int32)
        candidate_statistics(words, texts.bounds, self._words, self._offsets, self._number, texts.offsets, out)
        return out

    def _id(self, word: str) -> int:
        """Return the number of a word in the references; -1 for unknown words and for text that is not one token."""
        words = tokens(word)
        return self._ids.get(words[0], -1) if len(words) == 1 else -1


class NumberedTexts(NamedTuple):
    """Candidates of every sentence as word numbers.

    Attributes:
        vocabulary: the words; the number of a word is its index.
        words: ``int32``, word numbers of all candidates, concatenated.
        bounds: ``int64`` [candidates + 1], index in ``words`` of the first word of each candidate.
        offsets: ``int64`` [sentences + 1], index of the first candidate of each sentence.
    """

    vocabulary: Sequence[str]
    words: NDArray[np.int32]
    bounds: NDArray[np.int64]
    offsets: NDArray[np.int64]


def _numbered(candidates: Iterable[Sequence[str]]) -> NumberedTexts:
    numbers: dict[bytes, int] = {}
    words: list[int] = []
    bounds, offsets = [0], [0]
    for texts in candidates:
        for text in texts:
            words.extend([numbers.setdefault(word, len(numbers)) for word in tokens(text)])
            bounds.append(len(words))
        offsets.append(len(bounds) - 1)
    vocabulary = [word.decode("utf-8") for word in numbers]
    return NumberedTexts(vocabulary, np.array(words, np.int32), np.array(bounds, np.int64), np.array(offsets, np.int64))


def corpus_statistics(hypotheses: Iterable[str], references: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """Return the sufficient statistics of every segment, int64 [segments, 9].

    Args:
        hypotheses: one text per segment.
        references: one list of texts for each set of references, each as long as ``hypotheses``.
    """
    return BatchBleu(references).statistics([[text] for text in hypotheses]).astype(np.int64)


def corpus_bleu(hypotheses: Iterable[str], references: Sequence[Sequence[str]]) -> BleuScore:
    """Return corpus BLEU of texts; arguments as in ``corpus_statistics``."""
    return bleu_of(corpus_statistics(hypotheses, references).sum(axis=0))


def bleu_of_many(totals: NDArray[np.floating] | NDArray[np.integer]) -> NDArray[np.float64]:
    """Return corpus BLEU in percent, [...], of summed statistics [..., 9]; see ``multi_bleu.bleu_of``."""
    rows = np.ascontiguousarray(totals, np.float64).reshape(-1, SIZE)
    out = np.empty(len(rows))
    bleu_of_rows(rows, out)
    return 100 * out.reshape(totals.shape[:-1])


def sentence_bleu(statistics: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the smoothed BLEU (0 to 1) of every row of ``statistics`` [N, 9], [N].

    Smoothing is as in Lin and Och (2004): for orders above 1, the number of matches and the number of n-grams are
    increased by 1.
    """
    counts = statistics.astype(np.float64)
    more = np.array([0.0, 1.0, 1.0, 1.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log((counts[:, :4] + more) / (counts[:, 4:8] + more))
        penalty = np.minimum(0.0, 1.0 - counts[:, 8] / counts[:, 4])
        bleu = np.exp(logs.mean(axis=1) + penalty)
    return np.where(counts[:, 0] > 0, bleu, 0.0)


@kernel(**INNER)
def _edge(node, word):
    """Return the key of an edge in the hash table of a trie; an edge is a pair (node, word), with ``word`` >= 0."""
    return (np.int64(node) << 32) | np.int64(word)


@kernel()
def _reference_trie(references, offsets, first, last):
    """Build a trie of the n-grams of references ``first`` to ``last - 1`` of one sentence.

    Node 0 is the empty n-gram, an edge is a word, and the depth of a node is the order of its n-gram.

    Args:
        references: int32, words of all references, concatenated.
        offsets: int64, index in ``references`` of the first word of each reference.
        first, last: range of the references.

    Returns:
        keys: int64 [slots], hash table with the keys of the edges; -1 marks a free slot. The number of slots is a power
            of two.
        children: int32 [slots], node at the end of the edge in each slot.
        limit: int32 [nodes], maximum count of each n-gram in a single reference.
    """
    # at most 4 n-grams begin at a word: the table is at most a quarter full, and the number of nodes is below ``size``
    size = 16
    while size < 16 * (offsets[last] - offsets[first] + 1):
        size *= 2
    keys = np.full(size, -1, np.int64)
    children = np.zeros(size, np.int32)
    limit = np.zeros(size, np.int32)
    used = np.zeros(size, np.int32)  # counts in the current reference
    nodes = 1
    for r in range(first, last):
        start, end = offsets[r], offsets[r + 1]
        used[:nodes] = 0
        for i in range(start, end):
            node = 0
            for j in range(i, min(i + 4, end)):
                key = _edge(node, references[j])
                slot = find_slot(keys, key, -1)
                if keys[slot] == -1:
                    keys[slot] = key
                    children[slot] = nodes
                    nodes += 1
                node = children[slot]
                used[node] += 1
                limit[node] = max(limit[node], used[node])
    return keys, children, limit[:nodes]


@kernel()
def _count_matches(words, keys, children, limit, used, out):
    """Count the clipped n-gram matches of one candidate in the trie of its references.

    Args:
        words: int32 [length], -1 for words that are not in any reference.
        keys, children, limit: see ``_reference_trie``.
        used: int32 [nodes], scratch buffer for the occurrences of each n-gram in the candidate so far.
        out: int32 [9]; the first eight statistics are written, the last one (the reference length) is set to 0.
    """
    used[:] = 0
    out[:] = 0
    for i in range(words.size):
        node = 0
        for j in range(i, min(i + 4, words.size)):
            if words[j] < 0:
                break
            slot = find_slot(keys, _edge(node, words[j]), -1)
            if keys[slot] == -1:
                break
            node = children[slot]
            used[node] += 1
            if used[node] <= limit[node]:  # the sum over occurrences is min(count, limit)
                out[j - i] += 1
    for order in range(4):
        out[4 + order] = max(words.size - order, 0)


@kernel()
def candidate_statistics(words, word_offsets, references, reference_offsets, number_of_references, offsets, out):
    """Compute the statistics of candidates that are grouped by sentence.

    The trie of a sentence's references is built once and used for all candidates of the sentence.

    Args:
        words: int32, words of all candidates, concatenated; -1 for a word that is not in any reference.
        word_offsets: int64 [N + 1], index in ``words`` of the first word of each candidate.
        references: int32, words of all references, concatenated.
        reference_offsets: int64 [S * number_of_references + 1], index in ``references`` of the first word of each
            reference, sentence by sentence.
        number_of_references: references per sentence.
        offsets: int64 [S + 1], index of the first candidate of each sentence.
        out: int32 [N, 9], filled with the statistics.
    """
    for s in range(offsets.size - 1):
        if offsets[s] == offsets[s + 1]:
            continue
        first, last = s * number_of_references, (s + 1) * number_of_references
        keys, children, limit = _reference_trie(references, reference_offsets, first, last)
        used = np.zeros_like(limit)
        for n in range(offsets[s], offsets[s + 1]):
            length = word_offsets[n + 1] - word_offsets[n]
            _count_matches(words[word_offsets[n] : word_offsets[n + 1]], keys, children, limit, used, out[n])
            closest = np.int64(-1)
            for r in range(first, last):
                reference = reference_offsets[r + 1] - reference_offsets[r]
                gap, best_gap = abs(reference - length), abs(closest - length)
                if closest < 0 or gap < best_gap or (gap == best_gap and reference < closest):
                    closest = reference
            out[n, 8] = closest


_log_precision_and_penalty = kernel()(log_precision_and_penalty)


@kernel()
def bleu_of_statistics(total):
    """Return corpus BLEU (0 to 1) of summed statistics [9]."""
    log_precision, log_penalty = _log_precision_and_penalty(total)
    return math.exp(log_precision + log_penalty)


@kernel()
def bleu_of_rows(totals, out):
    """Write corpus BLEU (0 to 1) of every row of ``totals`` [N, 9] to ``out`` [N]."""
    for n in range(out.size):
        out[n] = bleu_of_statistics(totals[n])
