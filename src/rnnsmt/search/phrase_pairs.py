"""Phrase pairs of a text, independent of weights, as the look-up returns them."""

from typing import Any, NamedTuple

import numpy as np

from rnnsmt.search.table_reader import Affiliations


class TargetPhrases(NamedTuple):
    """Target phrases as words, with their LM scores in the empty context.

    Attributes:
        bounds: ``int64`` [phrases + 1]; the words of phrase p are bounds[p]..bounds[p + 1] - 1 in the other arrays.
        words: ``int32`` [words], target vocabulary ids.
        lm_words: ``int32`` [LMs, words], word ids of the LMs.
        alone_state: ``int32`` [LMs, words], LM state after each word, from the empty context.
        alone_rest: ``float64`` [LMs, words], natural-log LM score of the words after each word, from the empty context.
        alone_total: ``float64`` [LMs, phrases], natural-log LM score of the whole phrase, from the empty context.
    """

    bounds: np.ndarray
    words: np.ndarray
    lm_words: np.ndarray
    alone_state: np.ndarray
    alone_rest: np.ndarray
    alone_total: np.ndarray


class TranslationOptions(NamedTuple):
    """Phrase pairs for sentences, independent of weights: from the model, for unknown words, and from XML.

    Attributes:
        spans: per sentence ``int32`` [words, longest], source phrase by first word and length - 1; -1 for none.
        words: target vocabulary, including the unknown words.
        targets: target phrases of the pairs, including the unknown words.
        source_of, target_of: ``int32`` [rows], phrases of the pairs; pairs are sorted by source phrase.
        static: ``float64`` [rows, F], features that depend on the pair alone.
        reordering: ``float64`` [rows, 8], backward scores by orientation, then forward scores.
        forward_class: ``int32`` [rows], equal for pairs with equal forward scores.
        table_of: ``int8`` [rows], phrase table of a pair; -1 for pairs from no table.
        walls: per sentence, as returned by ``marked_input.walls_before``.
        longest: number of words of the longest source phrase.
        sources: number of source phrases, including unknown words and spans with translations in XML.
        known: number of pairs of the model, which come first; then those of unknown words, then those of XML.
        unknown: words that have no translation of their own.
        affiliations: those of the pairs, for a model that needs them, else None: passed-through words and translations
            from XML are affiliated with the first source word.
        prepared: for every neural feature of the model, the result of ``NeuralFeature.prepare`` for these pairs.
    """

    spans: list[np.ndarray]
    words: list[str]
    targets: TargetPhrases
    source_of: np.ndarray
    target_of: np.ndarray
    static: np.ndarray
    reordering: np.ndarray
    forward_class: np.ndarray
    table_of: np.ndarray
    walls: list[np.ndarray]
    longest: int
    sources: int
    known: int
    unknown: list[str]
    affiliations: Affiliations | None
    prepared: list[Any]

    def target_text(self, row: int) -> str:
        """Return the target phrase of a pair as text."""
        begin, end = self.targets.bounds[self.target_of[row] :][:2]
        return " ".join(self.words[word] for word in self.targets.words[begin:end])

    def find(self, source: int, target: np.ndarray) -> int:
        """Return the row of a source phrase with the target words ``target`` ``int32``; -1 for none."""
        begin, end = np.searchsorted(self.source_of, (source, source + 1))
        bounds = self.targets.bounds
        for row in range(begin, end) if source >= 0 else ():
            phrase = self.target_of[row]
            if np.array_equal(self.targets.words[bounds[phrase] : bounds[phrase + 1]], target):
                return row
        return -1
