"""Translation with LSTMs only: left-to-right beam search with one network or an ensemble, many sentences at a time.

The vocabulary of a network contains only frequent words; all others are UNK, on both sides. In a translation, UNK is
``<unk>``, as in the paper.
"""

import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rnnsmt.base.progress import track
from rnnsmt.networks.data import NULL
from rnnsmt.seq2seq.model import Ids, Steps, TrainedSeq2Seq

Likeliest = tuple[NDArray[np.float64], NDArray[np.int64]]
"""ln p and words of the best extensions, both [hypotheses, width]."""


class ScoredIds(NamedTuple):
    """A translation: the ids of its words without EOS, and ln p including EOS, not length-normalised."""

    words: list[int]
    score: float


def longest_target(source_words: int) -> int:
    """Return the maximum number of words of a translation."""
    return 2 * source_words + 10


class Beams:
    """The open and the finished hypotheses of some sentences."""

    def __init__(self, ensemble: Sequence[TrainedSeq2Seq], sources: Sequence[Ids], beam: int) -> None:
        """Start with an empty hypothesis for each source, given as ids with EOS."""
        self.steps, self.beam, self.eos = [Steps(network) for network in ensemble], beam, ensemble[0].target.eos
        self.finished: list[list[ScoredIds]] = [[] for _ in sources]
        self.limits = [longest_target(len(source) - 1) for source in sources]
        self.owners = list(range(len(sources)))
        """Sentence of every open hypothesis, ascending."""
        self.words: list[list[int]] = [[] for _ in sources]
        self.scores = np.zeros(len(sources))
        self.parents = np.arange(len(sources))
        """Row of ``states`` of every open hypothesis, before its last word is read."""
        self.states = [steps.encode(sources) for steps in self.steps]

    @torch.inference_mode()
    def step(self) -> None:
        """Extend every open hypothesis by one word, and keep the best extensions of each sentence.

        A finished hypothesis is removed from the beam, and the beam size of its sentence is reduced by one (Sutskever
        et al. 2014, section 3.2).
        """
        last = np.array([words[-1] if words else self.eos for words in self.words])
        candidates = []
        for number, steps in enumerate(self.steps):
            g, self.states[number] = steps.step(last, self.parents, self.states[number])
            candidates.append(g)
        full = [row for row, words in enumerate(self.words) if len(words) >= self.limits[self.owners[row]]]
        if len(candidates) == 1 and candidates[0].device.type == "cpu":
            best, following = self._best_of_one(candidates[0], full)
        else:
            best, following = self._best_of_all(candidates, full)
        self._keep_best(self.scores[:, None] + best, following)

    def _best_of_one(self, g: torch.Tensor, full: list[int]) -> Likeliest:
        """Compute ``_best_of_all`` for one network on a CPU, without storing all output units in memory."""
        width = min(self.beam, self.steps[0].softmax.classes)
        best, following = self.steps[0].best(g, width, least_class=NULL + 1)
        best, following = best[: len(self.words)], following[: len(self.words)]
        if full:
            rows = np.array(full)
            ends = self.steps[0].log_p(g, rows, np.full(len(rows), self.eos))
            best[rows], following[rows] = -math.inf, NULL
            best[rows, 0], following[rows, 0] = ends, self.eos
        return best, following

    def _best_of_all(self, states: Sequence[torch.Tensor], full: list[int]) -> Likeliest:
        """Find the ``beam`` best next words of each hypothesis, by the mean probability of the networks.

        Args:
            states: for each network the states g [at least the hypotheses, H].
            full: hypotheses of maximum length, for which EOS is the only extension.

        Returns:
            ln p and words, [hypotheses, width], in descending order.
        """
        units = [steps.trained.model.logits(g[: len(self.words)]) for steps, g in zip(self.steps, states, strict=True)]
        logs = [torch.log_softmax(each, -1) for each in units]
        log_p = torch.logsumexp(torch.stack(logs), 0) - math.log(len(logs)) if len(logs) > 1 else logs[0]
        log_p[:, NULL] = -math.inf  # padding is never generated
        if full:
            ends = log_p[full, self.eos]
            log_p[full] = -math.inf
            log_p[full, self.eos] = ends
        best, following = (tensor.cpu().numpy() for tensor in log_p.topk(min(self.beam, log_p.shape[1]), 1))
        return best.astype(np.float64), following

    def _keep_best(self, totals: NDArray[np.float64], following: NDArray[np.int64]) -> None:
        """Replace the open hypotheses by the best extensions of each sentence; move finished ones to ``finished``.

        totals, following: [hypotheses, width], scores and last words of all extensions.
        """
        rows: list[int] = []
        owners, words, scores = [], [], []
        begin = 0
        while begin < len(self.owners):
            sentence, end = self.owners[begin], begin
            while end < len(self.owners) and self.owners[end] == sentence:
                end += 1
            room = self.beam - len(self.finished[sentence])
            candidates = totals[begin:end]
            order = np.argsort(-candidates, axis=None, kind="stable")[:room]
            for index in order:
                row, column = begin + int(index) // candidates.shape[1], int(index) % candidates.shape[1]
                score, word = float(totals[row, column]), int(following[row, column])
                if score == -math.inf:
                    continue
                if word == self.eos:
                    self.finished[sentence].append(ScoredIds(self.words[row], score))
                else:
                    rows.append(row)
                    owners.append(sentence)
                    words.append([*self.words[row], word])
                    scores.append(score)
            begin = end
        self.owners, self.words, self.scores = owners, words, np.array(scores)
        self.parents = np.array(rows, np.int64)


@torch.inference_mode()
def beam_search(ensemble: Sequence[TrainedSeq2Seq], sources: Sequence[Ids], beam: int) -> list[list[ScoredIds]]:
    """Translate some sentences; return at most ``beam`` hypotheses of each, best first.

    The probability of a word is the mean over the networks. sources: ids with EOS.
    """
    beams = Beams(ensemble, sources, beam)
    while beams.owners:
        beams.step()
    return [sorted(hypotheses, key=lambda hypothesis: -hypothesis.score) for hypotheses in beams.finished]


def translate_all(
    ensemble: Sequence[TrainedSeq2Seq], sentences: Sequence[list[str]], beam: int, batch: int
) -> tuple[list[str], dict[str, float]]:
    """Translate sentences in batches of similar length.

    Args:
        sentences: the words of each sentence; an empty one is translated as an empty line.
        batch: number of sentences that are translated together.

    Returns:
        The best translations, and statistics with the names that the phrase-based decoder uses: ``sentences``,
        ``words`` of the source, ``search_cpu_seconds``, ``score_sum``, and ``unknown_words``, which are source words
        outside the vocabulary.
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
        for i, hypotheses in zip(numbers, beam_search(ensemble, sources, beam), strict=True):
            texts[i] = " ".join(network.target.words[word] for word in hypotheses[0].words)
            total += hypotheses[0].score
    return texts, {
        "sentences": len(sentences),
        "words": sum(map(len, sentences)),
        "unknown_words": unknown,
        "search_cpu_seconds": round(time.process_time() - began, 3),
        "score_sum": round(total, 4),
    }
