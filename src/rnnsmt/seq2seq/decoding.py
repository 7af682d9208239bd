"""Translation with LSTMs only: left-to-right beam search with one network or an ensemble, many sentences at a time.

The second half of the module replaces the unknown words of a translation by ``<unk>``, words of the source, or lexical
translations. The vocabulary of a network of words contains only frequent words; all others are UNK, on both sides, and
the network does not predict to which source word an UNK corresponds. ``copy`` matches unknown words by their order;
``LexicalTranslations`` also uses the lexical table of a word alignment. A network with position tokens (Luong,
Sutskever, Le, Vinyals and Zaremba 2015) predicts the position of the source word, which ``PointedTranslations`` uses. A
translation is represented as a list of words, in which an unknown word is None, or the distance of its position token
(``Units.words``).
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rnnsmt.base.progress import say, track
from rnnsmt.networks.data import NULL, SECOND
from rnnsmt.phrases.lexical_table import NULL as NO_WORD
from rnnsmt.phrases.lexical_table import lexical_lines
from rnnsmt.seq2seq.model import Ids, Steps, TrainedSeq2Seq
from rnnsmt.seq2seq.settings import BEAM

Word = str | int | None
"""A word of a translation; an unknown word is None, or the distance of its position token."""

Fill = Callable[[TrainedSeq2Seq, Sequence[Word], Sequence[str]], list[str]]
"""Function (network, words of its translation, words of the source) -> words of the final translation."""

EXPLAINS = 0.1
"""Smallest probability of a translation of a word, relative to that of its best translation."""

Likeliest = tuple[NDArray[np.float64], NDArray[np.int64]]
"""ln p and words of the best extensions, both [hypotheses, width]."""


class Hypothesis(NamedTuple):
    """A translation: the ids of its units without EOS, and ln p including EOS, not length-normalised."""

    words: list[int]
    score: float


def longest_target(source_units: int) -> int:
    """Return the maximum number of units of a translation."""
    return 2 * source_units + 10


class Beams:
    """The open and the finished hypotheses of some sentences."""

    def __init__(self, ensemble: Sequence[TrainedSeq2Seq], sources: Sequence[Ids], beam: int) -> None:
        """Start with an empty hypothesis for each source, given as ids with EOS."""
        self.steps, self.beam, self.eos = [Steps(network) for network in ensemble], beam, ensemble[0].target.eos
        self.finished: list[list[Hypothesis]] = [[] for _ in sources]
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
    """Translate some sentences; return at most ``beam`` hypotheses of each, best first.

    The probability of a word is the mean over the networks. sources: ids with EOS.
    """
    beams = Beams(ensemble, sources, beam)
    while beams.owners:
        beams.step()
    return [sorted(hypotheses, key=lambda hypothesis: -hypothesis.score) for hypotheses in beams.finished]


def translate_all(
    ensemble: Sequence[TrainedSeq2Seq], sentences: Sequence[list[str]], beam: int, batch: int, fill: Fill
) -> tuple[list[str], dict[str, float]]:
    """Translate sentences in batches of similar length.

    Args:
        ensemble: the networks.
        sentences: the words of each sentence; an empty one is translated as an empty line.
        beam: beam size.
        batch: number of sentences that are translated together.
        fill: replaces the unknown words of a translation.

    Returns:
        The best translations, and statistics with the names that the phrase-based decoder uses: ``sentences``,
        ``words`` of the source, ``search_cpu_seconds``, ``score_sum``, and ``unknown_words``, which are source words
        that do not consist of known units.
    """
    began = time.process_time()
    network = ensemble[0]
    order = sorted((i for i, sentence in enumerate(sentences) if sentence), key=lambda i: (len(sentences[i]), i))
    texts = [""] * len(sentences)
    total, unknown = 0.0, 0
    for begin in track(range(0, len(order), batch), "translating", unit="batches"):
        numbers = order[begin : begin + batch]
        sources = [network.source.ids(sentences[i], eos=True) for i in numbers]
        unknown += sum(not network.source.knows(word) for i in numbers for word in sentences[i])
        for i, hypotheses in zip(numbers, beam_search(ensemble, sources, beam), strict=True):
            texts[i] = " ".join(fill(network, network.target.words(hypotheses[0].words), sentences[i]))
            total += hypotheses[0].score
    return texts, {
        "sentences": len(sentences),
        "words": sum(map(len, sentences)),
        "unknown_words": unknown,
        "search_cpu_seconds": round(time.process_time() - began, 3),
        "score_sum": round(total, 4),
    }


def keep(network: TrainedSeq2Seq, words: Sequence[Word], source: Sequence[str]) -> list[str]:
    """Replace every unknown word by ``<unk>``."""
    return [word if isinstance(word, str) else SECOND for word in words]


def copy(network: TrainedSeq2Seq, words: Sequence[Word], source: Sequence[str]) -> list[str]:
    """Replace the n-th unknown word of the translation by the n-th source word that is unknown to the network.

    Unknown words without a counterpart are deleted.
    """
    return _in_order(words, (word for word in source if not network.source.knows(word)))


def _in_order(words: Sequence[Word], unknown: Iterable[str]) -> list[str]:
    """Replace the unknown words by those of ``unknown``, in order; delete unknown words without a replacement."""
    following = iter(unknown)
    filled = (word if isinstance(word, str) else next(following, None) for word in words)
    return [word for word in filled if word is not None]


class LexicalTranslations:
    """Replacement of unknown words by the best translations of source words in the lexical table of a word alignment.

    The unknown words of a translation are assumed to correspond to source words that its known words do not translate:

    1. A word y of the translation translates a source word x if p(y | x) is at least ``EXPLAINS`` times the probability
       of the best translation of x. Such pairs are matched greedily, the most probable first, ties broken by the
       smallest distance of the relative positions in the sentences; every word is matched at most once.
    2. The remaining source words are ranked: those unknown to the network; those whose best translation is unknown to
       it; the others; from left to right within each group. A known word whose p(NULL | x) exceeds the probability of
       its best translation is skipped.
    3. The first of these, one for each unknown word, are assigned to the unknown words in source order. An unknown word
       is replaced by the best translation of its source word, or by the source word if the table lacks it. Unknown
       words without a counterpart are deleted.

    Ties between best translations are broken by spelling.
    """

    def __init__(self, table: dict[str, dict[str, float]]) -> None:
        """Build from a table: source word -> target word, or NULL -> p(target word | source word)."""
        null = NO_WORD.decode()
        self._words = {x: {y: p for y, p in row.items() if y != null} for x, row in table.items()}
        self._untranslated = {x: row[null] for x, row in table.items() if null in row}
        self._best = {x: min(row, key=lambda y: (-row[y], y)) for x, row in self._words.items() if row}

    @classmethod
    def read(cls, path: str | Path, sources: Iterable[str]) -> "LexicalTranslations":
        """Read the lines ``target source p`` of some source words from the f2e table of ``phrases lexical``.

        Raises:
            InputError: the file is missing or damaged, or a line is malformed.
        """
        words = {word.encode(): word for word in sources}
        table: dict[str, dict[str, float]] = {}
        for target, source, p in lexical_lines(str(path)):
            if (word := words.get(source)) is not None:
                table.setdefault(word, {})[target.decode("utf-8", "replace")] = p
        if words and not table:
            say(f"warning: {path}: contains no word of the input; is this the table p(target | source), lex.f2e?")
        return cls(table)

    def translation(self, word: str) -> str:
        """Return the best translation of a word, or the word itself if the table has none."""
        return self._best.get(word, word)

    def __call__(self, network: TrainedSeq2Seq, words: Sequence[Word], source: Sequence[str]) -> list[str]:
        """Replace the unknown words of a translation, see the class docstring."""
        number = sum(not isinstance(word, str) for word in words)
        chosen = self._candidates(network, words, source)[:number] if number else []
        return _in_order(words, (self.translation(source[i]) for i in sorted(chosen)))

    def _candidates(self, network: TrainedSeq2Seq, words: Sequence[Word], source: Sequence[str]) -> list[int]:
        """Return the positions of the source words to which unknown words may correspond, the best first."""
        explained = self._explained(words, source)
        ranked = []  # (group, position)
        for i, word in enumerate(source):
            if i in explained:
                continue
            if not network.source.knows(word):
                ranked.append((0, i))
            elif self._untranslated.get(word, 0.0) <= self._words.get(word, {}).get(self.translation(word), 0.0):
                ranked.append((2 if network.target.knows(self.translation(word)) else 1, i))
        return [i for _, i in sorted(ranked)]

    def _explained(self, words: Sequence[Word], source: Sequence[str]) -> set[int]:
        """Return the positions of the source words that are translated by known words of the translation."""
        pairs = []
        for i, x in enumerate(source):
            row = self._words.get(x, {})
            least = EXPLAINS * row[self._best[x]] if row else 0.0
            for j, y in enumerate(words):
                # the distance of i / len(source) and j / len(words), in integers
                if isinstance(y, str) and row.get(y, 0.0) >= least and y in row:
                    pairs.append((-row[y], abs(i * len(words) - j * len(source)), i, j))
        sources: set[int] = set()
        targets: set[int] = set()
        for _, _, i, j in sorted(pairs):
            if i not in sources and j not in targets:
                sources.add(i)
                targets.add(j)
        return sources


class PointedTranslations:
    """Replacement of unknown words by the translation of the source words to which their position tokens refer.

    The unknown word j with the distance d corresponds to source word i = j - d (Luong et al. 2015, section 3): it is
    replaced by the best translation of that word in a lexical table, or by the source word if the table lacks it. An
    unknown word without a position token, or whose position is outside the source, is deleted.
    """

    def __init__(self, lexicon: LexicalTranslations) -> None:
        """Use the table of ``lexicon``."""
        self._lexicon = lexicon

    def __call__(self, network: TrainedSeq2Seq, words: Sequence[Word], source: Sequence[str]) -> list[str]:
        """Replace the unknown words of a translation, see the class docstring."""
        texts = []
        for j, word in enumerate(words):
            if isinstance(word, str):
                texts.append(word)
            elif word is not None and 0 <= j - word < len(source):
                texts.append(self._lexicon.translation(source[j - word]))
        return texts
