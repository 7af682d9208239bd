"""Word classes that maximise the likelihood of a class-bigram model: exchange algorithm (Kneser and Ney 1993; mkcls).

In the alignment models, all words of a class share their distortion parameters.

With N(c, d) the bigram counts and N(c) the unigram counts of classes, the log-likelihood of the class-bigram model is,
up to a constant, sum over c, d of h(N(c, d)) - 2 sum over c of h(N(c)), with h(n) = n log n. Moving one word changes
only a row and a column of N(c, d), and two elements of N(c).
"""

import numpy as np
import numpy.typing as npt

from rnnsmt.align.bitext import BitextSide
from rnnsmt.base.kernels.decorator import kernel

SENTENCES = 1_000_000
"""Number of sentences in which bigrams are counted at a time, so that memory grows only with the number of distinct
bigrams."""


def word_classes(side: BitextSide, classes: int = 50, passes: int = 5) -> npt.NDArray[np.int32]:
    """Return the class of every word, 0 .. ``classes`` - 1, as an int32 array [vocabulary].

    The k-th most frequent word starts in class k mod ``classes``. In order of descending frequency, each word is moved
    into the class that increases the likelihood most. The algorithm stops after ``passes`` iterations over the
    vocabulary, or when no word moves. It draws no random numbers.
    """
    words = len(side.vocabulary)
    frequency = np.bincount(side.ids, minlength=words)
    order = np.lexsort((np.arange(words), -frequency)).astype(np.int32)
    assignment = np.empty(words + 1, np.int32)
    assignment[order] = np.arange(words) % classes
    assignment[words] = classes  # separate class of the sentence boundary
    keys, counts = _bigrams(side)
    # f: successors of each word, b: predecessors of each word, both as (starts, words, counts)
    f = _rows(keys // (words + 1), keys % (words + 1), counts, words + 1)
    turned = np.argsort(keys % (words + 1), kind="stable")
    b = _rows((keys % (words + 1))[turned], (keys // (words + 1))[turned], counts[turned], words + 1)
    exchange_words(f[0], f[1], f[2], b[0], b[1], b[2], order, classes + 1, passes, assignment)
    return assignment[:words]


def _bigrams(side: BitextSide) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the keys of all distinct bigrams, ascending, and their counts.

    The key of a bigram is first word * (vocabulary + 1) + second word. The sentence boundary precedes and follows every
    sentence; its id is the size of the vocabulary.
    """
    boundary = len(side.vocabulary)
    keys, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for first in range(0, len(side.offsets) - 1, SENTENCES):
        offsets = side.offsets[first : first + SENTENCES + 1]
        ids = side.ids[offsets[0] : offsets[-1]].astype(np.int64)
        text = np.insert(ids, offsets - offsets[0], boundary)
        new_keys, times = np.unique(text[:-1] * (boundary + 1) + text[1:], return_counts=True)
        everything, inverse = np.unique(np.concatenate([keys, new_keys]), return_inverse=True)
        counts = np.bincount(inverse, np.concatenate([counts, times]), len(everything)).astype(np.int64)
        keys = everything
    return keys, counts


def _rows(first, second, counts, size):
    """Convert pairs that are sorted by ``first`` to compressed sparse rows; return starts, columns and counts."""
    starts = np.searchsorted(first, np.arange(size + 1))
    return starts.astype(np.int64), second.astype(np.int32), counts.astype(np.int64)


@kernel()
def _h(n):
    return n * np.log(n) if n > 0 else 0.0


@kernel()
def exchange_words(  # noqa: PLR0912
    f_starts, f_words, f_counts, b_starts, b_words, b_counts, order, classes, passes, assignment
):  # fmt: skip
    """Move words between classes until no word moves, in at most ``passes`` iterations over the vocabulary.

    Args:
        f_starts, f_words, f_counts: successors of every word and their bigram counts, as compressed sparse rows (int64,
            int32, int64); the last row is for the sentence boundary.
        b_starts, b_words, b_counts: predecessors of every word, in the same format.
        order: words in the order in which they are moved, int32.
        classes: number of classes, including the class of the sentence boundary, which is the last one and does not
            change.
        assignment: class of every word and of the boundary, int32 [vocabulary + 1], updated.
    """
    # N(c, d) and N(c)
    bigrams = np.zeros((classes, classes), np.int64)
    size = np.zeros(classes, np.int64)
    for w in range(len(f_starts) - 1):
        for k in range(f_starts[w], f_starts[w + 1]):
            bigrams[assignment[w], assignment[f_words[k]]] += f_counts[k]
            size[assignment[w]] += f_counts[k]
    # counts of the current word with its successors and predecessors, by class; used_* list the classes with non-zero
    # counts, so that computing a gain and clearing the counts take time proportional to the number of these classes
    after, before = np.zeros(classes, np.int64), np.zeros(classes, np.int64)
    used_after, used_before = np.empty(classes, np.int64), np.empty(classes, np.int64)
    for _ in range(passes):
        moved = 0
        for w in order:
            # itself: count of the bigram (word, word), both words of which change their class; total: count of the word
            itself, total, n_after, n_before = 0, 0, 0, 0
            for k in range(f_starts[w], f_starts[w + 1]):
                total += f_counts[k]
                if f_words[k] == w:
                    itself = f_counts[k]
                    continue
                c = assignment[f_words[k]]
                if after[c] == 0:
                    used_after[n_after] = c
                    n_after += 1
                after[c] += f_counts[k]
            for k in range(b_starts[w], b_starts[w + 1]):
                if b_words[k] != w:
                    c = assignment[b_words[k]]
                    if before[c] == 0:
                        used_before[n_before] = c
                        n_before += 1
                    before[c] += b_counts[k]
            old = assignment[w]
            # remove the word from its class, so that the gains of all classes are comparable
            _shift(bigrams, size, old, -1, after, used_after[:n_after], before, used_before[:n_before], itself, total)
            best, best_gain = old, -np.inf
            for c in range(classes - 1):
                # ``itself``, ``after[c]`` and ``before[c]`` are all added to element (c, c)
                gain = 2.0 * (_h(size[c]) - _h(size[c] + total))
                inside = bigrams[c, c]
                gain += _h(inside + after[c] + before[c] + itself) - _h(inside)
                for k in range(n_after):
                    d = used_after[k]
                    if d != c:
                        gain += _h(bigrams[c, d] + after[d]) - _h(bigrams[c, d])
                for k in range(n_before):
                    d = used_before[k]
                    if d != c:
                        gain += _h(bigrams[d, c] + before[d]) - _h(bigrams[d, c])
                # prefer the old class on ties, and do not move on rounding errors
                if gain > best_gain + 1e-9 or (c == old and gain >= best_gain - 1e-9):
                    best, best_gain = c, gain
            _shift(bigrams, size, best, 1, after, used_after[:n_after], before, used_before[:n_before], itself, total)
            assignment[w] = best
            moved += best != old
            for k in range(n_after):
                after[used_after[k]] = 0
            for k in range(n_before):
                before[used_before[k]] = 0
        if moved == 0:
            break


@kernel()
def _shift(bigrams, size, c, sign, after, used_after, before, used_before, itself, total):
    """Add a word to class ``c`` (``sign`` 1) or remove it (``sign`` -1).

    Args:
        bigrams, size: N(c, d) and N(c), updated.
        after, used_after: counts of the word with its successors, by class, and the classes with a non-zero count.
        before, used_before: the same for its predecessors.
        itself: count of the bigram (word, word).
        total: count of the word.
    """
    for d in used_after:
        bigrams[c, d] += sign * after[d]
    for d in used_before:
        bigrams[d, c] += sign * before[d]
    bigrams[c, c] += sign * itself
    size[c] += sign * total
