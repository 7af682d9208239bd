"""Translation by LSTMs alone: left-to-right beam search, many sentences together, by one network or several."""

import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rnnsmt.networks.vocabulary import NULL
from rnnsmt.progress import track
from rnnsmt.seq2seq.model import TrainedSeq2Seq
from rnnsmt.seq2seq.steps import Ids, Steps
from rnnsmt.seq2seq.unknown import Fill

BEAM = 12
"""As in Sutskever et al. (2014)."""


Likeliest = tuple[NDArray[np.float64], NDArray[np.int64]]
"""ln p and words, [hypotheses, width]."""


class Hypothesis(NamedTuple):
    """A translation: ids of its units without EOS; score: ln p with EOS, not normalised by length."""

    words: list[int]
    score: float


def longest_target(source_units: int) -> int:
    """Units that a translation has at most."""
    return 2 * source_units + 10


class Beams:
    """The open hypotheses of some sentences, and those that have ended."""

    def __init__(self, ensemble: Sequence[TrainedSeq2Seq], sources: Sequence[Ids], beam: int) -> None:
        self.steps, self.beam, self.eos = [Steps(one) for one in ensemble], beam, ensemble[0].target.eos
        self.finished: list[list[Hypothesis]] = [[] for _ in sources]
        self.limits = [longest_target(len(source) - 1) for source in sources]
        self.owners = list(range(len(sources)))
        """The sentence of every open hypothesis; those of one sentence lie together."""
        self.words: list[list[int]] = [[] for _ in sources]
        self.scores = np.zeros(len(sources))
        self.parents = np.arange(len(sources))
        """The row of ``states`` that every open hypothesis goes on from."""
        self.states = [steps.encode(sources) for steps in self.steps]

    @torch.inference_mode()
    def step(self) -> None:
        """Write one more word of every open hypothesis, and keep the best of each sentence.

        A hypothesis that ends leaves the beam, which is one narrower from then on (Sutskever et al. 2014, section 3.2).
        """
        last = np.array([words[-1] if words else self.eos for words in self.words])
        found = []
        for number, steps in enumerate(self.steps):
            g, self.states[number] = steps.step(last, self.parents, self.states[number])
            found.append(g)
        full = [row for row, words in enumerate(self.words) if len(words) >= self.limits[self.owners[row]]]
        if len(found) == 1 and found[0].device.type == "cpu":
            best, following = self._best_of_one(found[0], full)
        else:
            best, following = self._best_of_all(found, full)
        self._keep_best(self.scores[:, None] + best, following)

    def _best_of_one(self, g: torch.Tensor, full: list[int]) -> Likeliest:
        """As ``_best_of_all`` for one network on a processor, whose output units are never in memory all at once."""
        width = min(self.beam, self.steps[0].softmax.classes)
        best, following = self.steps[0].best(g, width, least_class=NULL + 1)
        best, following = best[: len(self.words)], following[: len(self.words)]
        if full:
            rows = np.array(full)
            ends = self.steps[0].log_p(g, rows, np.full(len(rows), self.eos))
            best[rows], following[rows] = -math.inf, NULL
            best[rows, 0], following[rows, 0] = ends, self.eos
        return best, following

    def _best_of_all(self, found: Sequence[torch.Tensor], full: list[int]) -> Likeliest:
        """ln p of the words that may follow each hypothesis, as many as its sentence could want, and which they are.

        found: the states g [at least the hypotheses, H] of every network. full: hypotheses that only the end may
        follow. Returns: two arrays [hypotheses, width], the likeliest first.
        """
        units = [steps.trained.model.logits(g[: len(self.words)]) for steps, g in zip(self.steps, found, strict=True)]
        logs = [torch.log_softmax(each, -1) for each in units]
        log_p = torch.logsumexp(torch.stack(logs), 0) - math.log(len(logs)) if len(logs) > 1 else logs[0]
        log_p[:, NULL] = -math.inf
        if full:
            ends = log_p[full, self.eos]
            log_p[full] = -math.inf
            log_p[full, self.eos] = ends
        best, following = (part.cpu().numpy() for part in log_p.topk(min(self.beam, log_p.shape[1]), 1))
        return best.astype(np.float64), following

    def _keep_best(self, totals: NDArray[np.float64], following: NDArray[np.int64]) -> None:
        rows: list[int] = []
        owners, words, scores = [], [], []
        begin = 0
        while begin < len(self.owners):
            sentence, end = self.owners[begin], begin
            while end < len(self.owners) and self.owners[end] == sentence:
                end += 1
            room = self.beam - len(self.finished[sentence])
            here = totals[begin:end]
            order = np.argsort(-here, axis=None, kind="stable")[:room]
            for place in order:
                row, column = begin + int(place) // here.shape[1], int(place) % here.shape[1]
                score, word = float(totals[row, column]), int(following[row, column])
                if score == -math.inf:
                    continue
                if word == self.eos:
                    self.finished[sentence].append(Hypothesis(self.words[row], score))
                else:
                    rows.append(row)
                    owners.append(sentence)
                    words.append([*self.words[row], word])
                    scores.append(score)
            begin = end
        self.owners, self.words, self.scores = owners, words, np.array(scores)
        self.parents = np.array(rows, np.int64)


@torch.inference_mode()
def beam_search(ensemble: Sequence[TrainedSeq2Seq], sources: Sequence[Ids], beam: int = BEAM) -> list[list[Hypothesis]]:
    """The translations of some sentences, best first, at most ``beam`` of each; the averages of the networks' p.

    sources: ids with EOS.
    """
    beams = Beams(ensemble, sources, beam)
    while beams.owners:
        beams.step()
    return [sorted(found, key=lambda one: -one.score) for found in beams.finished]


def translate_all(
    ensemble: Sequence[TrainedSeq2Seq], sentences: Sequence[list[str]], beam: int, batch: int, fill: Fill
) -> tuple[list[str], dict[str, float]]:
    """The best translations of sentences, ``batch`` of about the same length together, and the figures of the search.

    fill: what is written for unknown words. The figures have the names of the phrase-based decoder's where they are the
    same thing: ``sentences``, ``words`` of the source, ``search_cpu_seconds``, ``score_sum``; ``unknown_words``: of the
    source, not of known units.
    """
    began = time.process_time()
    one = ensemble[0]
    order = sorted((i for i, sentence in enumerate(sentences) if sentence), key=lambda i: (len(sentences[i]), i))
    found = [""] * len(sentences)
    total, unknown = 0.0, 0
    for begin in track(range(0, len(order), batch), "translating", unit="batches"):
        numbers = order[begin : begin + batch]
        sources = [one.source.ids(sentences[i], eos=True) for i in numbers]
        unknown += sum(not one.source.knows(word) for i in numbers for word in sentences[i])
        for i, hypotheses in zip(numbers, beam_search(ensemble, sources, beam), strict=True):
            found[i] = " ".join(fill(one, one.target.words(hypotheses[0].words), sentences[i]))
            total += hypotheses[0].score
    return found, {
        "sentences": len(sentences),
        "words": sum(map(len, sentences)),
        "unknown_words": unknown,
        "search_cpu_seconds": round(time.process_time() - began, 3),
        "score_sum": round(total, 4),
    }
