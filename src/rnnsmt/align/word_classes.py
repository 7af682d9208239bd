"""Word classes that make the class-bigram model of a text likely, by exchange (Kneser and Ney 1993; mkcls).

Words of a class share their distortion parameters in the alignment models.
"""

import numpy as np
import numpy.typing as npt

from rnnsmt.align.bitext import Side
from rnnsmt.compiled import kernel


def word_classes(side: Side, classes: int = 50, passes: int = 5) -> npt.NDArray[np.int32]:
    """The class of every word, 0 .. ``classes`` - 1, as an array [vocabulary].

    Starts with the k-th most frequent word in class k mod ``classes`` and moves, in order of frequency, each word into
    the class that raises the likelihood most; stops after ``passes`` or when no word moves. Draws no random numbers.
    """
    words = len(side.vocabulary)
    frequency = np.bincount(side.ids, minlength=words)
    order = np.lexsort((np.arange(words), -frequency)).astype(np.int32)
    assignment = np.empty(words + 1, np.int32)
    assignment[order] = np.arange(words) % classes
    assignment[words] = classes  # sentence boundary: a class of its own
    first, second = _bigrams(side)
    keys, counts = np.unique(first * (words + 1) + second, return_counts=True)
    f = _rows(keys // (words + 1), keys % (words + 1), counts, words + 1)
    turned = np.argsort(keys % (words + 1), kind="stable")
    b = _rows((keys % (words + 1))[turned], (keys // (words + 1))[turned], counts[turned], words + 1)
    _exchange(f[0], f[1], f[2], b[0], b[1], b[2], order, classes + 1, passes, assignment)
    return assignment[:words]


def _bigrams(side: Side) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Both words of all bigrams; a boundary, the word after the last one, stands before and after every sentence."""
    boundary = len(side.vocabulary)
    text = np.insert(side.ids.astype(np.int64), side.offsets, boundary)
    return text[:-1], text[1:]


def _rows(first, second, counts, size):
    """Sorted pairs as compressed sparse rows: starts, columns, counts."""
    starts = np.searchsorted(first, np.arange(size + 1))
    return starts.astype(np.int64), second.astype(np.int32), counts.astype(np.int64)


@kernel()
def _h(n):
    return n * np.log(n) if n > 0 else 0.0


@kernel()
def _exchange(  # noqa: PLR0912
    f_starts, f_words, f_counts, b_starts, b_words, b_counts, order, classes, passes, assignment
):  # fmt: skip
    """Move words between classes until none moves, at most ``passes`` times over the vocabulary; in place."""
    bigrams = np.zeros((classes, classes), np.int64)
    size = np.zeros(classes, np.int64)
    for w in range(len(f_starts) - 1):
        for k in range(f_starts[w], f_starts[w + 1]):
            bigrams[assignment[w], assignment[f_words[k]]] += f_counts[k]
            size[assignment[w]] += f_counts[k]
    after, before = np.zeros(classes, np.int64), np.zeros(classes, np.int64)
    used_after, used_before = np.empty(classes, np.int64), np.empty(classes, np.int64)
    for _ in range(passes):
        moved = 0
        for w in order:
            own, total, n_after, n_before = 0, 0, 0, 0
            for k in range(f_starts[w], f_starts[w + 1]):
                total += f_counts[k]
                if f_words[k] == w:
                    own = f_counts[k]
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
            _shift(bigrams, size, old, -1, after, used_after[:n_after], before, used_before[:n_before], own, total)
            best, best_gain = old, -np.inf
            for c in range(classes - 1):
                gain = 2.0 * (_h(size[c]) - _h(size[c] + total))
                inside = bigrams[c, c]
                gain += _h(inside + after[c] + before[c] + own) - _h(inside)
                for k in range(n_after):
                    d = used_after[k]
                    if d != c:
                        gain += _h(bigrams[c, d] + after[d]) - _h(bigrams[c, d])
                for k in range(n_before):
                    d = used_before[k]
                    if d != c:
                        gain += _h(bigrams[d, c] + before[d]) - _h(bigrams[d, c])
                if gain > best_gain + 1e-9 or (c == old and gain >= best_gain - 1e-9):
                    best, best_gain = c, gain
            _shift(bigrams, size, best, 1, after, used_after[:n_after], before, used_before[:n_before], own, total)
            assignment[w] = best
            moved += best != old
            for k in range(n_after):
                after[used_after[k]] = 0
            for k in range(n_before):
                before[used_before[k]] = 0
        if moved == 0:
            break


@kernel()
def _shift(bigrams, size, c, sign, after, used_after, before, used_before, own, total):
    """Add a word to class ``c`` (``sign`` 1) or take it out (-1)."""
    for d in used_after:
        bigrams[c, d] += sign * after[d]
    for d in used_before:
        bigrams[d, c] += sign * before[d]
    bigrams[c, c] += sign * own
    size[c] += sign * total
