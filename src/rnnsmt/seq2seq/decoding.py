"""Translation with LSTMs only: left-to-right beam search with one network or an ensemble, many sentences at a time.

The vocabularies of source and target contain only frequent words; all other words are UNK. In a translation, UNK is
written as ``<unk>``, as in the paper.
"""

import math
import time
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from rnnsmt.base.progress import track
from rnnsmt.networks.beam_search import BeamHypothesis, Beams, beam_search
from rnnsmt.networks.data import NULL
from rnnsmt.seq2seq.model import Ids, Steps, TrainedSeq2Seq


def longest_target(source_words: int) -> int:
    """Return the maximum number of words of a translation."""
    return 2 * source_words + 10


class _Ensemble:
    """Decoders of an ensemble for ``beam_search``, with their states after the words of the open hypotheses."""

    def __init__(self, ensemble: Sequence[TrainedSeq2Seq], sources: Sequence[Ids]) -> None:
        """Encode the source sentences, given as ids with EOS."""
        self.steps, self.eos = [Steps(network) for network in ensemble], ensemble[0].target.eos
        self.states = [steps.encode(sources) for steps in self.steps]

    def extend(
        self, beams: Beams, width: int, full: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Compute the ``width`` best extensions by the mean probability of the networks, in descending order.

        EOS is returned only if it is among the best extensions; see ``networks.beam_search``.
        """
        last = beams.words[:, -1].copy() if beams.words.shape[1] else np.full(len(beams.words), self.eos)
        states = []
        for number, steps in enumerate(self.steps):
            g, self.states[number] = steps.step(last, beams.parents, self.states[number])
            states.append(g)
        if len(states) == 1 and states[0].device.type == "cpu":
            return self._best_of_one(states[0], width, full)
        return self._best_of_all(states, width, full)

    def _best_of_one(
        self, g: torch.Tensor, width: int, full: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Compute the extensions by one network on a CPU, without storing all output units in memory."""
        (steps,), rows = self.steps, np.flatnonzero(full)
        best, words = steps.best(g, min(width, steps.softmax.classes), least_class=NULL + 1)
        best, words = best[: len(full)], words[: len(full)]
        if len(rows):
            ends = steps.log_p(g, rows, np.full(len(rows), self.eos))
            best[rows], words[rows] = -math.inf, NULL
            best[rows, 0], words[rows, 0] = ends, self.eos
        return best, words

    def _best_of_all(
        self, states: Sequence[torch.Tensor], width: int, full: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Compute the extensions of H hypotheses from the states g [H or more, units] of each network."""
        units = [steps.trained.model.logits(g[: len(full)]) for steps, g in zip(self.steps, states, strict=True)]
        logs = [torch.log_softmax(each, -1) for each in units]
        log_p = torch.logsumexp(torch.stack(logs), 0) - math.log(len(logs)) if len(logs) > 1 else logs[0]
        log_p[:, NULL] = -math.inf  # padding is never generated
        rows = torch.from_numpy(np.flatnonzero(full)).to(log_p.device)
        ends = log_p[rows, self.eos]
        log_p[rows] = -math.inf
        log_p[rows, self.eos] = ends
        best, words = (tensor.cpu().numpy() for tensor in log_p.topk(min(width, log_p.shape[1]), 1))
        return best.astype(np.float64), words


@torch.inference_mode()
def best_translations(
    ensemble: Sequence[TrainedSeq2Seq], sources: Sequence[Ids], beam: int, nbest: int
) -> list[list[BeamHypothesis]]:
    """Translate sentences; return the ``nbest`` best hypotheses of each, at most ``beam``, best first.

    The probability of a word is the mean over the networks. sources: ids of each sentence with EOS.
    """
    limits = [longest_target(len(source) - 1) for source in sources]
    return beam_search(_Ensemble(ensemble, sources), limits, beam, nbest, ends_compete=True)


def translate_all(
    ensemble: Sequence[TrainedSeq2Seq], sentences: Sequence[list[str]], beam: int, batch: int
) -> tuple[list[str], dict[str, float]]:
    """Translate sentences in batches of similar length.

    Args:
        sentences: the words of each sentence; an empty one is translated as an empty line.
        batch: number of sentences that are translated together.

    Returns:
        The best translations, and statistics with the same names as in the phrase-based decoder: ``sentences``,
        ``words`` (of the source), ``unknown_words`` (source words outside the vocabulary), ``search_cpu_seconds`` and
        ``score_sum``.
    """
    began = time.process_time()
    network = ensemble[0]
    order = sorted((i for i, sentence in enumerate(sentences) if sentence), key=lambda i: (len(sentences[i]), i))
    texts = [""] * len(sentences)
    total, unknown = 0.0, 0
    for begin in track(range(0, len(order), batch), "translating", unit="batches"):
        numbers = order[begin : begin + batch]
        sources = [network.source.ids(sentences[i], eos=True) for i in numbers]
        unknown += sum(word not in network.source.index for i in numbers for word in sentences[i])
        for i, hypotheses in zip(numbers, best_translations(ensemble, sources, beam, 1), strict=True):
            texts[i] = " ".join(network.target.words[word] for word in hypotheses[0].words)
            total += hypotheses[0].score
    return texts, {
        "sentences": len(sentences),
        "words": sum(map(len, sentences)),
        "unknown_words": unknown,
        "search_cpu_seconds": round(time.process_time() - began, 3),
        "score_sum": round(total, 4),
    }
