"""Probabilities of target words under a trained joint model, and the perplexity of a word-aligned bitext."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.cslm.scorer import CslmScorer
from rnnsmt.networks.batches import Index
from rnnsmt.networks.data import NULL, UNK
from rnnsmt.networks.feed_forward import TrainedNetwork
from rnnsmt.networks.ngram_scorer import CpuEngine, Ids, NGramScorer, Scores
from rnnsmt.networks.text_scores import ContextsAndWords, PerplexityReport, network_report, ngram_scores, perplexities
from rnnsmt.nnjm.examples import Examples, windows_at
from rnnsmt.nnjm.model import load_model

BLOCK = 50_000
"""Number of target words that are scored together."""


class JointScorer(NGramScorer):
    """Scorer of n-grams with a joint model; a context is a window of source words, then the preceding target words.

    Attributes:
        source_vocabulary: the source vocabulary; the input id of a source word is its id plus ``first_source``.
        window: number of source words on each side of the affiliated word.
        width: number of source words in a window.
    """

    def load(self, path: StrPath, device: torch.device) -> TrainedNetwork:
        """Read the model file."""
        trained = load_model(path, device)
        sizes: Any = trained.model.sizes
        self.order, self.window, self.width = sizes.order, sizes.window, 2 * sizes.window + 1
        assert trained.source_vocabulary is not None
        self.source_vocabulary, self.first_source = trained.source_vocabulary, len(trained.vocabulary)
        return trained

    def windows(self, words: list[str]) -> NDArray[np.int32]:
        """Return the windows in a source sentence of n words as input ids, int32 [n + 1, width].

        Row i is the window for target words that are affiliated with source word i, row n the window for ``</s>``.
        """
        ids = self.source_vocabulary.ids(words, eos=True)
        around = windows_at(ids, 0, len(ids), np.arange(len(ids)), self.window, NULL)
        return around + np.int32(self.first_source)

    def score_windows(self, windows: Ids, window_of: Ids, histories: Ids, owner: Ids, words: Ids) -> Scores:
        """Compute ``score`` of contexts that are given as windows and histories; each window is computed only once.

        On a CPU, the scores are bit-identical to those of ``score``.

        Args:
            windows: int32 [W, width], input ids of source words.
            window_of: int32 [C], row of ``windows`` of each context.
            histories: int32 [C, order - 1], the preceding target words, oldest first.
            owner, words: as in ``score``; ``owner`` are indices of the C contexts.
        """
        if not isinstance(self._engine, CpuEngine):
            return self.score(np.concatenate([windows[window_of], histories], 1), owner, words)
        if not len(words):
            return np.zeros(0, np.float32)
        windows, window_of, histories, owner, words = (
            np.ascontiguousarray(array, np.int32) for array in (windows, window_of, histories, owner, words)
        )
        return self.of_unknown(self._engine.score_shared(windows, window_of, histories, owner, words), words)

    def evidence(
        self, source: list[str], affiliated: Ids, target: list[str]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute the influence of every source word on the prediction of every word of a translation.

        The influence is the decrease of ln p when UNK replaces the source word in the window.

        Args:
            source: the words of the source sentence [m].
            affiliated: [n], source position with which each target word is affiliated.
            target: the words of the translation [n].

        Returns:
            ln p of the target words [n], and the decreases of ln p [n, m]; 0 for source words outside the window.
        """
        ids = self.ids(target)
        history = np.concatenate([np.full(self.order - 1, self.padding, np.int32), ids])
        histories = np.lib.stride_tricks.sliding_window_view(history, self.order - 1)[: len(ids)]
        contexts = np.concatenate([self.windows(source)[affiliated], histories], 1)
        replaced = np.repeat(contexts[None], self.width + 1, 0)  # the last copy is unchanged
        columns = np.arange(self.width)
        replaced[columns, :, columns] = self.first_source + UNK
        rows = replaced.reshape(-1, self.context)
        words = np.tile(ids, self.width + 1)
        scores = self.score(rows, np.arange(len(rows), dtype=np.int32), words).astype(np.float64)
        scores = scores.reshape(self.width + 1, len(ids))
        decreases = np.zeros((len(ids), len(source)))
        places = affiliated[:, None] + columns - self.window
        inside = (places >= 0) & (places < len(source))
        decreases[np.nonzero(inside)[0], places[inside]] = (scores[-1][:, None] - scores[:-1].T)[inside]
        return scores[-1], decreases


def perplexity_report(
    model: StrPath, directory: StrPath, cslm: StrPath | None, device: str, threads: int
) -> PerplexityReport:
    """Compute the report of ``networks perplexity``."""
    examples, scorer = Examples.open(directory), JointScorer(model, device, threads, normalize=True)
    for side, of_model, of_text in (
        ("source", scorer.source_vocabulary, examples.source_vocabulary),
        ("target", scorer.vocabulary, examples.target_vocabulary),
    ):
        if of_model.hash() != of_text.hash():
            raise InputError(
                f"{directory}: its {side} vocabulary differs from that of {model}; prepare the bitext with the "
                "vocabulary of the model"
            )

    def ngrams() -> Iterator[ContextsAndWords]:
        for places in _blocks(examples):
            yield examples.inputs(places, scorer.order, scorer.window), np.array(examples.target.words[places])

    bare = partial(JointScorer, model, device, threads, normalize=False)
    report, _, known = network_report("nnjm", scorer, bare, ngrams)
    if cslm is not None:
        other = CslmScorer(cslm, device, threads, normalize=True)
        if other.vocabulary.hash() != scorer.vocabulary.hash():
            raise InputError(
                f"{cslm}: its vocabulary differs from that of {model}, so their perplexities cannot be compared"
            )
        blocks = ((examples.history(at, other.order), np.array(examples.target.words[at])) for at in _blocks(examples))
        report["cslm"] = perplexities(ngram_scores(other, blocks)[0], known)
    return report


def _blocks(examples: Examples) -> Iterator[Index]:
    """Yield the positions of all target words, ``BLOCK`` at a time."""
    for begin in range(0, len(examples), BLOCK):
        yield np.arange(begin, min(begin + BLOCK, len(examples)))
