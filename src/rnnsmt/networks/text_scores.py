"""Scores of the n-grams of texts under a network, and the perplexity of texts under a network and under an n-gram LM.

Both models predict the same events: all words outside the shortlist of the network are one class.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.strings import Interner
from rnnsmt.base.progress import track
from rnnsmt.lm.automaton import Automaton, query
from rnnsmt.networks.ngram_scorer import NGramScorer
from rnnsmt.networks.task import perplexity_of

ContextsAndWords = tuple[NDArray[np.integer], NDArray[np.int32]]
"""N-grams of a block of text: contexts [N, C] and words [N]."""


def word_scores(scorer: NGramScorer, contexts: NDArray[np.integer], words: NDArray[np.int32]) -> NDArray[np.float32]:
    """Compute ln p of words [N] after contexts [N, C]; each distinct context is computed once."""
    distinct, owner = np.unique(contexts.astype(np.int32), axis=0, return_inverse=True)
    owner = owner.reshape(-1)
    order = np.argsort(owner, kind="stable")  # ``score`` requires ascending owners
    scores = np.empty(len(words), np.float32)
    scores[order] = scorer.score(distinct, owner[order].astype(np.int32), words[order])
    return scores


class PerplexityReport(dict[str, Any]):
    """The perplexity of a text: numbers of sentences and words, and a dictionary of results for each model."""

    @property
    def figures(self) -> dict[str, object]:
        """Return the numbers and perplexities, by name."""
        stats: dict[str, object] = {"sentences": self["sentences"], "words": self["words"], "OOV": self["oov"]}
        for name, entry in self.items():
            if isinstance(entry, dict) and "perplexity" in entry:
                stats |= {
                    f"{name} perplexity": entry["perplexity"],
                    f"{name} without OOV": entry["perplexity_without_oov"],
                }
        return stats


def network_report(
    name: str,
    scorer: NGramScorer,
    bare: Callable[[], NGramScorer],
    ngrams: Callable[[], Iterator[ContextsAndWords]],
) -> tuple[PerplexityReport, NDArray[np.float64], NDArray[np.bool_]]:
    """Compute the perplexity of a text under a network, with the exact softmax.

    Args:
        name: the name of the network in the report.
        scorer: the network, with normalised scores.
        bare: function that returns a scorer of the same network without normalisation.
        ngrams: function that yields the n-grams of the text in blocks.

    Returns:
        The report; ln p of each word and ``</s>``; and whether each word is in the shortlist (True for ``</s>``).
    """
    log_p, words = ngram_scores(scorer, ngrams())
    known = words != scorer.unknown
    sentences, oov = int(np.count_nonzero(words == scorer.end)), int(np.count_nonzero(~known))
    report = PerplexityReport(
        {
            "sentences": sentences,
            "words": len(words) - sentences,
            "oov": oov,
            "oov_rate": oov / max(len(words) - sentences, 1),
            "order": scorer.order,
            name: perplexities(log_p, known),
        }
    )
    if scorer.self_normalised:
        log_sums = ngram_scores(bare(), ngrams())[0] - log_p
        report["ln Z"] = {"mean": float(log_sums.mean()), "sd": float(log_sums.std())}
    return report, log_p, known


def ngram_scores(
    scorer: NGramScorer, blocks: Iterable[ContextsAndWords]
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Compute ln p of all n-grams of some blocks; return ln p [N] and the predicted words [N]."""
    scored = [(word_scores(scorer, *block), block[1]) for block in track(blocks, "measuring", unit="blocks")]
    scores, words = (np.concatenate(parts) for parts in zip(*scored, strict=True))
    return scores.astype(np.float64), words


def perplexities(log_p: NDArray[np.float64], known: NDArray[np.bool_]) -> dict[str, float]:
    """Compute the perplexity with and without words outside the shortlist; both include ``</s>``.

    Args:
        log_p: [N], ln p of each word and ``</s>``.
        known: bool [N], False for words outside the shortlist.
    """
    return {
        "ln_p": float(log_p.sum()),
        "perplexity": perplexity_of(log_p.mean()),
        "perplexity_without_oov": perplexity_of(log_p[known].mean()),
    }


def event_scores(lm: Automaton, lines: Iterable[list[str]], shortlist: list[str]) -> NDArray[np.float64]:
    """Compute ln p of every word and ``</s>`` of some sentences; words outside ``shortlist`` are one class.

    The probability of the class is the sum over all words of the LM outside the shortlist, including ``<unk>``. The
    contexts contain the words themselves, not the class. Each word of the shortlist that is not in the LM has the
    probability of ``<unk>``, so the sum over all events is slightly above 1. ``<s>`` and ``</s>`` as words of a text
    are unknown words.
    """
    listed, special = Interner(), Interner()
    listed.add([word.encode() for word in shortlist])
    special.add([b"<s>"])
    begin, short = lm.word_ids(special), np.unique(lm.word_ids(listed))
    every = np.arange(len(lm.arrays.unigrams), dtype=np.int32)
    outside = np.setdiff1d(every, np.concatenate([short, begin, [lm.end]]))
    outside = np.union1d(outside, [lm.unk]).astype(np.int32)
    inside = np.append(np.setdiff1d(short, [lm.unk]), lm.end).astype(np.int32)
    # the complement saves time only if the class is much larger than the shortlist; see event_log_p
    if len(outside) <= 4 * len(short):
        inside = inside[:0]
    # the LM id of every word and ``</s>``, and whether it is ``</s>`` or in the shortlist
    tokens, in_shortlist, ids, known = Interner(), set(shortlist), [], []
    for line in lines:
        ids.append(tokens.add([word.encode() for word in line]))
        known += [word in in_shortlist for word in line] + [True]
    word_ids = lm.word_ids(tokens)
    word_ids[np.isin(word_ids, [*begin, lm.end])] = lm.unk
    words = np.concatenate([np.append(word_ids[row], lm.end) for row in ids]).astype(np.int32)
    out = np.empty(len(words))
    event_log_p(lm.arrays, lm.start, words, np.array(known), lm.end, inside, outside, out)
    return out


PRECISE = 1e-3
"""Minimum usable value of 1 - mass. Below it, too many digits of the float32 probabilities of the LM cancel."""


@kernel()
def _mass(lm, state, members):
    """Return the sum of p(word | state) over some words."""
    mass = 0.0
    for word in members:
        mass += np.exp(np.float64(query(lm, state, word)[0]))
    return mass


@kernel()
def event_log_p(lm, start, words, known, end, inside, outside, out):
    """Compute ln p of every word of a text; for a word outside the shortlist, ln p of the class of these words.

    Args:
        lm: the automaton, ``rnnsmt.lm.automaton.LmArrays``.
        start: the state at the beginning of a sentence.
        words: int32 [N], LM ids of all sentences, concatenated, each ending in ``end``.
        known: bool [N], whether a word is in the shortlist.
        end: LM id of ``</s>``.
        inside: int32, LM ids of the shortlist and of ``</s>``; empty if the sum over ``outside`` is faster.
        outside: int32, LM ids of all other words, which form the class.
        out: float64 [N], filled.
    """
    state = start
    for i in range(len(words)):
        if not known[i]:
            # 1 minus the mass of ``inside``, or the sum over ``outside`` if ``inside`` is empty or digits cancel
            mass = 1.0 - _mass(lm, state, inside) if len(inside) else 0.0
            if mass < PRECISE:
                mass = _mass(lm, state, outside)
            out[i] = np.log(max(mass, 1e-40))
        # the context contains the word itself, even if it is outside the shortlist
        prob, state = query(lm, state, words[i])
        if known[i]:
            out[i] = prob
        if words[i] == end:
            state = start
