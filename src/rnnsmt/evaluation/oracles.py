"""Oracle BLEU of n-best lists: BLEU of the translations that are selected with knowledge of the reference.

* The *sentence oracle* selects the translation with the highest smoothed sentence BLEU (``bleu.batch.sentence_bleu``).
* The *corpus oracle* begins with it and exchanges the translation of one sentence at a time for the one that gives the
  highest corpus BLEU, until no exchange increases it: a local optimum, hence a lower bound of the best corpus BLEU.

Among translations with equal BLEU, the first one in the list is selected.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import track
from rnnsmt.bleu.batch import BatchBleu, bleu_of_many, sentence_bleu
from rnnsmt.formats.nbest import read_nbest

PASSES = 20
"""Maximum number of passes over the sentences; two to four are usual."""

LEAST = 1e-9
"""Minimum increase of BLEU (percent) for which a translation is exchanged, larger than rounding errors."""


class Oracle(NamedTuple):
    """Oracles of n-best lists that are truncated to a number of translations.

    Attributes:
        size: number of translations, or 0 for whole lists.
        sentence: corpus BLEU (percent) of the sentence oracle.
        corpus: BLEU of the corpus oracle.
        translations: texts that the corpus oracle selects, one for each sentence.
    """

    size: int
    sentence: float
    corpus: float
    translations: list[str]


def read_nbest_texts(path: StrPath, sentences: int) -> list[list[str]]:
    """Read the translations of every sentence; a sentence without any gets an empty one."""
    texts: list[list[str]] = [[] for _ in range(sentences)]
    for candidate in track(read_nbest(path)[1], "reading", unit="translations"):
        if candidate.sentence >= sentences:
            raise InputError(
                f"{path}: has sentence {candidate.sentence}, but the references have only {sentences} (0-based)"
            )
        texts[candidate.sentence].append(candidate.text)
    return [candidates or [""] for candidates in texts]


def oracles(
    texts: Sequence[Sequence[str]], references: Sequence[Sequence[str]], sizes: Sequence[int]
) -> tuple[float, list[Oracle]]:
    """Compute oracles.

    Args:
        texts: translations of every sentence, best first.
        references: one list of texts for each set of references.
        sizes: numbers of translations to which the lists are truncated; 0: whole lists.

    Returns:
        BLEU (percent) of the first translations, and an oracle for each of ``sizes``.
    """
    statistics = BatchBleu(references).statistics(texts)
    begins = np.concatenate([[0], np.cumsum([len(translations) for translations in texts])])
    flat = [text for translations in texts for text in translations]
    first = float(bleu_of_many(statistics[begins[:-1]].sum(0)))
    results = []
    for size in sizes:
        ends = np.minimum(begins[:-1] + (size or len(flat)), begins[1:])
        ranges = [slice(begin, end) for begin, end in zip(begins[:-1].tolist(), ends.tolist(), strict=True)]
        by_sentence = sentence_bleu(statistics)
        chosen = np.array([rows.start + int(by_sentence[rows].argmax()) for rows in ranges], np.int64)
        sentence = float(bleu_of_many(statistics[chosen].sum(0)))
        corpus = _climb(statistics, ranges, chosen)
        results.append(Oracle(size, sentence, corpus, [flat[index] for index in chosen]))
    return first, results


def _climb(statistics: NDArray[np.int32], ranges: Sequence[slice], chosen: NDArray[np.int64]) -> float:
    """Exchange translations as long as corpus BLEU increases; return corpus BLEU.

    Args:
        statistics: ``[N, 9]``, BLEU statistics of all translations.
        ranges: rows of the translations of every sentence.
        chosen: ``[S]``, row of the selected translation of every sentence, updated in place.
    """
    total = statistics[chosen].astype(np.int64).sum(0)
    best = float(bleu_of_many(total))
    for _ in range(PASSES):
        changed = False
        for sentence, rows in enumerate(ranges):
            if rows.stop - rows.start == 1:
                continue
            without = total - statistics[chosen[sentence]]
            values = bleu_of_many(without + statistics[rows])
            index = int(values.argmax())
            if values[index] > best + LEAST:
                best, changed = float(values[index]), True
                chosen[sentence] = rows.start + index
                total = without + statistics[chosen[sentence]]
        if not changed:
            break
    return best
