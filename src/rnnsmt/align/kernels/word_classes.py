"""The exchange algorithm of word classes (Kneser and Ney 1993), compiled."""

import numpy as np

from rnnsmt.kernels.decorator import kernel


@kernel()
def _h(n):
    return n * np.log(n) if n > 0 else 0.0


@kernel()
def exchange_words(  # noqa: PLR0912
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
