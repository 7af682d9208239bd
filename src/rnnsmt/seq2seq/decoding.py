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
from rnnsmt.seq2seq.model import State, Trained
from rnnsmt.seq2seq.sentences import as_read, padded
from rnnsmt.seq2seq.unknown import Fill

Ids = NDArray[np.int32]

BEAM = 12
"""As in Sutskever et al. (2014)."""


class Hypothesis(NamedTuple):
    """A translation: ids of its units without EOS; score: ln p with EOS, not normalised by length."""

    words: list[int]
    score: float


def longest_target(source_units: int) -> int:
    """Units that a translation has at most."""
    return 2 * source_units + 10


class Beams:
    """The open hypotheses of some sentences, and those that have ended."""

    def __init__(self, ensemble: Sequence[Trained], sources: Sequence[Ids], beam: int) -> None:
        self.ensemble, self.beam = ensemble, beam
        self.finished: list[list[Hypothesis]] = [[] for _ in sources]
        self.limits = [longest_target(len(source) - 1) for source in sources]
        self.owners = list(range(len(sources)))
        """The sentence of every open hypothesis; those of one sentence lie together."""
        self.words: list[list[int]] = [[] for _ in sources]
        self.scores = np.zeros(len(sources))
        self.states = [encoded(one, sources) for one in ensemble]

    @torch.inference_mode()
    def step(self) -> None:
        """Write one more word of every open hypothesis, and keep the best of each sentence.

        A hypothesis that ends leaves the beam, which is one narrower from then on (Sutskever et al. 2014, section 3.2).
        """
        eos = self.ensemble[0].target.eos
        device = self.states[0].h.device
        last = torch.tensor([words[-1] if words else eos for words in self.words], device=device)
        logs = []
        for number, one in enumerate(self.ensemble):
            g, self.states[number] = one.model.decode(last[None], self.states[number])
            logs.append(torch.log_softmax(one.model.logits(g[0]), -1))
        log_p = torch.logsumexp(torch.stack(logs), 0) - math.log(len(logs)) if len(logs) > 1 else logs[0]
        log_p[:, NULL] = -math.inf
        full = [row for row, words in enumerate(self.words) if len(words) >= self.limits[self.owners[row]]]
        if full:  # nothing but the end may follow
            ends = log_p[full, eos]
            log_p[full] = -math.inf
            log_p[full, eos] = ends
        # of every hypothesis, as many as its sentence could want
        width = min(self.beam, log_p.shape[1])
        best, following = (part.cpu().numpy() for part in log_p.topk(width, 1))
        totals = self.scores[:, None] + best.astype(np.float64)
        self._keep_best(totals, following, eos)

    def _keep_best(self, totals: NDArray[np.float64], following: NDArray[np.int64], eos: int) -> None:
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
                if word == eos:
                    self.finished[sentence].append(Hypothesis(self.words[row], score))
                else:
                    rows.append(row)
                    owners.append(sentence)
                    words.append([*self.words[row], word])
                    scores.append(score)
            begin = end
        self.owners, self.words, self.scores = owners, words, np.array(scores)
        if rows:
            index = torch.tensor(rows, device=self.states[0].h.device)
            self.states = [state.select(index) for state in self.states]


def encoded(one: Trained, sources: Sequence[Ids]) -> State:
    """The decoder's first state for sources that end in EOS."""
    device = one.model.W_o.device
    ids = padded([as_read(source, one.source_order) for source in sources])
    return one.model.encode(torch.from_numpy(ids).to(device))


@torch.inference_mode()
def beam_search(ensemble: Sequence[Trained], sources: Sequence[Ids], beam: int = BEAM) -> list[list[Hypothesis]]:
    """The translations of some sentences, best first, at most ``beam`` of each; the averages of the networks' p.

    sources: ids with EOS.
    """
    beams = Beams(ensemble, sources, beam)
    while beams.owners:
        beams.step()
    return [sorted(found, key=lambda one: -one.score) for found in beams.finished]


def translate_all(
    ensemble: Sequence[Trained], sentences: Sequence[list[str]], beam: int, batch: int, fill: Fill
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
