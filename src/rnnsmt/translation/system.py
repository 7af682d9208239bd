"""A tuned system: translation of raw text to raw text, with explanations."""

import math
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.arguments import THREADS, InputDirectory, Natural, Positive, Threads
from rnnsmt.base.errors import InputError
from rnnsmt.base.opening import is_file
from rnnsmt.base.operations import check_arguments
from rnnsmt.base.reading import words_of
from rnnsmt.config.sections import Device, Preprocessing, Rnn
from rnnsmt.corpus.detokenizer import Detokenizer
from rnnsmt.corpus.raw_text import Cleaner
from rnnsmt.corpus.tokenizer import Truecaser
from rnnsmt.formats.ini import MAX_SHOWN
from rnnsmt.formats.nbest import phrase_pairs
from rnnsmt.networks.options import need_torch
from rnnsmt.search.decoder import translations
from rnnsmt.search.model import SearchModel, kinds_of_features, load_model, sum_by_kind
from rnnsmt.search.nbest import Translation
from rnnsmt.search.neural import JointFeature
from rnnsmt.search.options import SearchOptions
from rnnsmt.search.phrase_pairs import TranslationOptions
from rnnsmt.search.sentence_search import SentenceSearch
from rnnsmt.search.source_text import MAX_WORDS
from rnnsmt.search.translation_options import look_up
from rnnsmt.translation.archives import system_directory
from rnnsmt.translation.description import FILE, Description, read_ini

if TYPE_CHECKING:
    from rnnsmt.networks.data import Vocabulary
    from rnnsmt.rnn.model import RNNEncoderDecoder

MAX_CHARACTERS = 100_000
"""Maximum length of one segment. Longer text is not a sentence, and would take too long to process."""

EVIDENCE = 3
"""Maximum number of source words in ``WordEvidence.sources``."""

LEAST_DECREASE = 0.1
"""Minimum decrease of ln p of the target word for a source word in ``WordEvidence.sources``."""


class WordEvidence(NamedTuple):
    """The source words that make a target word more probable in the joint model.

    Attributes:
        log_p: its natural-log probability, given its source window and the preceding target words.
        sources: source words in descending order of their influence: the word, its 0-based position, and the decrease
            of ``log_p`` if the word is replaced with UNK.
    """

    word: str
    log_p: float
    sources: list[tuple[str, int, float]]


@dataclass(frozen=True)
class PhraseUse:
    """A phrase pair of a translation.

    Attributes:
        first, last: its first and last source word, 0-based.
        source, target: its text.
        scores: scores of the pair in the phrase table (probabilities), by name.
        runners_up: other targets of the source phrase, the best by the model's estimate first.
        evidence: evidence of the joint model for each target word; empty if the system has no joint model.
    """

    first: int
    last: int
    source: str
    target: str
    scores: dict[str, float]
    runners_up: list[str]
    evidence: list[WordEvidence]


class PhraseSpan(NamedTuple):
    """A phrase of a translation: its first and last source word (0-based), and the number of its target words."""

    first: int
    last: int
    target_words: int


@dataclass(frozen=True)
class ExplainedTranslation:
    """A translation with its parts.

    Attributes:
        text: raw text.
        tokens: output of the decoder.
        score: score of the model.
        contributions: weight times value, summed by kind of feature.
        phrases: phrases in the order of ``tokens``.
    """

    text: str
    tokens: str
    score: float
    contributions: dict[str, float]
    phrases: list[PhraseSpan]


_TIME = r"(?:\d+:)?\d\d?:\d\d[.,]\d{3}"
_TIMES = re.compile(rf" *+(?:\[{_TIME} *+--> *+{_TIME}\] *+|{_TIME} *+--> *+{_TIME}(?: [ -{{}}~]*+)?(?=\r?\Z))")


def times_of(text: str) -> str:
    """Return the times of a subtitle at the beginning of a line, which are not translated; empty if there are none.

    These are whole lines of SRT and WebVTT files, ``00:00:02,000 --> 00:00:05,400``, and beginnings of lines such as
    ``[00:00:02.000 --> 00:00:05.400]  text``.
    """
    found = _TIMES.match(text)
    return found[0] if found else ""


class System:
    """A tuned system in memory.

    Several threads may use a system at the same time; their translations are those of one thread. A pickled system
    contains the absolute path of its directory and the arguments: unpickling loads it again, in about a second, from
    this directory, which must exist there.

    Attributes:
        words: number of source words translated so far.
        unknown: number of source words that were passed through or dropped.
    """

    @check_arguments
    def __init__(
        self,
        directory: InputDirectory,
        texts: Sequence[str] | None = None,
        device: Device = Rnn.device,
        threads: Threads = THREADS,
        max_words: Positive = MAX_WORDS,
    ) -> None:
        """Load a system from its directory or archive.

        Args:
            directory: the directory, an archive, or the URL of an archive, see ``system_directory``.
            texts: raw text; if given, the tables are filtered for it, and only this text can be translated.
            device: device for a neural LM: ``auto``, ``cpu`` or ``cuda``.
            threads: number of threads of the search; translations do not depend on it.
            max_words: maximum number of words of a segment.
        """
        self.directory = system_directory(directory)
        self.description = description = Description.read(self.directory)
        description.check_tokenizer(directory)
        self.threads, self.device, self.max_words = threads, device, max_words
        self._texts, self._place = texts, self.directory.absolute()
        self._lock = threading.Lock()
        preprocessing = Preprocessing(
            normalize=description.normalize,
            tokenize=description.tokenize,
            escape=description.escape,
            lowercase=description.lowercase,
        )
        self._clean = Cleaner(description.source, preprocessing, keep_all=True)
        self._truecase = None if description.truecaser is None else Truecaser(self._file(description.truecaser))
        self._detokenize = Detokenizer(
            description.target, detruecase=description.truecaser is not None and not description.lowercase
        )
        self.ini = read_ini(self.directory)
        description.print_warnings()
        self.words, self.unknown = 0, 0
        sentences = None if texts is None else self.prepare(texts)
        self.model: SearchModel = load_model(self.ini, sentences, None, threads, device)
        self.weights = self.model.weights(self.ini)
        self.kinds = kinds_of_features(self.model, description.columns)
        self._network: tuple[RNNEncoderDecoder, list[Vocabulary]] | None = None

    def __reduce__(self) -> tuple[type["System"], tuple[object, ...]]:
        """Pickle the arguments of a call that loads this system."""
        return type(self), (self._place, self._texts, self.device, self.threads, self.max_words)

    def _file(self, path: str) -> Path:
        """Return the path of a file named in the description."""
        file = self.directory / path
        if not is_file(file):
            shown = str(file)[:MAX_SHOWN]
            raise InputError(
                f"{self.directory / FILE}: refers to {shown}, which does not exist; run the workflow again"
            )
        return file

    def prepare(self, texts: Sequence[str], first: int = 1) -> list[str]:
        """Convert raw segments into the input of the decoder: normalise, tokenise, truecase, without ``times_of``.

        Args:
            first: number of the first segment, for error messages.
        """
        if isinstance(texts, (str, bytes)):
            raise InputError("texts: must be a list of segments, not a single string")
        sentences = []
        for number, text in enumerate(texts, first):
            if not isinstance(text, str):
                raise InputError(f"segment {number}: must be a string, not {type(text).__name__}")
            if len(text) > MAX_CHARACTERS:
                raise InputError(
                    f"segment {number}: {len(text):,} characters; the maximum is {MAX_CHARACTERS:,}; split it"
                )
            tokens = self._clean(text[len(times_of(text)) :].encode("utf-8", "replace"), set())
            if tokens.count(" ") >= self.max_words:
                raise InputError(f"segment {number}: more than {self.max_words:,} words; split it")
            sentences.append(self._truecase(tokens) if self._truecase is not None and tokens else tokens)
        return sentences

    def translate(self, text: str) -> str:
        """Translate raw text with one segment per line; the translation has the same number of lines."""
        if not isinstance(text, str):
            raise InputError(f"text: must be a string, not {type(text).__name__}; use translate_all for several texts")
        return "\n".join(self.translate_all(text.replace("\r\n", "\n").split("\n")))

    def translate_all(self, texts: Sequence[str], first: int = 1) -> list[str]:
        """Translate raw segments; one call for many segments is faster than many calls.

        Args:
            first: number of the first segment, for error messages.
        """
        _, results = self._search(self.prepare(texts, first))
        return [times_of(text) + self._detokenize(result.text) for text, result in zip(texts, results, strict=True)]

    @check_arguments
    def nbest(self, text: str, n: Positive, first: int = 1) -> list[ExplainedTranslation]:
        """Return the n best distinct translations of a raw segment, best first.

        The beam is wider than that of ``translate``.

        Args:
            n: maximum number of translations.
            first: number of the segment, for error messages.
        """
        _, (best,) = self._search(self.prepare([text], first), n)
        times, entries = times_of(text), best.nbest
        if times and not best.text:
            return [self._hypothesis(times, "", best.score, best.features, best.phrases)]
        return [
            self._hypothesis(times, *entry)
            for entry in zip(entries.texts, entries.scores.tolist(), entries.features, entries.phrases, strict=True)
        ]

    @check_arguments
    def explain(self, text: str, runners_up: Natural = 3) -> tuple[ExplainedTranslation, list[PhraseUse]]:
        """Translate a raw segment; return the translation and its phrase pairs.

        Args:
            runners_up: maximum number of other targets of each source phrase.
        """
        return self.explain_all([text], runners_up)[0]

    @check_arguments
    def explain_all(
        self, texts: Sequence[str], runners_up: Natural = 3, first: int = 1
    ) -> list[tuple[ExplainedTranslation, list[PhraseUse]]]:
        """Translate and explain raw segments in one search, see ``explain``.

        Args:
            runners_up: maximum number of other targets of each source phrase.
            first: number of the first segment, for error messages.
        """
        sentences = self.prepare(texts, first)
        search, results = self._search(sentences)
        return [
            (
                self._hypothesis(times_of(text), result.text, result.score, result.features, result.phrases),
                self._phrases(search, number, sentence, result, runners_up),
            )
            for number, (text, sentence, result) in enumerate(zip(texts, sentences, results, strict=True))
        ]

    def score(self, source: str, target: str) -> float:
        """Return the natural logarithm of p(target | source) of a tokenised phrase pair under the RNN."""
        model, _ = self._rnn()

        import torch

        from rnnsmt.networks.exact_softmax import ExactSoftmax
        from rnnsmt.rnn.phrase_scores import score_phrases

        x, y = (self._ids(side, phrase).astype(np.int64) for side, phrase in enumerate((source, target)))
        sides = (x, np.array([len(x)])), (y, np.array([len(y)]))
        softmax = ExactSoftmax(model.output.G_l, model.output.b_G)
        return float(score_phrases(model, softmax, *sides, torch.device("cpu"))[0])

    def embed(self, phrase: str) -> NDArray[np.float32]:
        """Return the summary c ``[H]`` of a tokenised source phrase by the RNN encoder (section 2.2 of the paper)."""
        model, _ = self._rnn()

        import torch

        from rnnsmt.rnn.phrase_scores import encode_distinct

        ids = self._ids(0, phrase)
        with torch.inference_mode():
            c, _ = encode_distinct(model, ids, np.array([len(ids)]), torch.device("cpu"), 1)
        vectors: NDArray[np.float32] = c[0].numpy()
        return vectors

    def _search(self, sentences: list[str], nbest: int = 0) -> tuple[SentenceSearch, list[Translation]]:
        """Translate prepared segments; return the search, which has the options of the sentences, and the results."""
        description = self.description
        options = SearchOptions(
            description.pop_limit,
            description.stack,
            threads=self.threads,
            nbest=nbest,
            cslm_cells=description.cslm_cells,
        )
        search = SentenceSearch(self.model, look_up(self.model, sentences), self.weights, options)
        results = list(translations(search))
        with self._lock:
            self.words += sum(map(len, search.looked_up.spans))
            self.unknown += sum(result.unknown for result in results)
        return search, results

    def _hypothesis(
        self,
        times: str,
        tokens: str,
        score: float,
        features: NDArray[np.float64],
        phrases: list[tuple[int, int, int]],
    ) -> ExplainedTranslation:
        contributions = sum_by_kind(features * self.weights, self.kinds)
        spans = [PhraseSpan(*phrase) for phrase in phrases]
        return ExplainedTranslation(times + self._detokenize(tokens), tokens, score, contributions, spans)

    def _phrases(
        self, search: SentenceSearch, number: int, sentence: str, translation: Translation, runners_up: int
    ) -> list[PhraseUse]:
        """Return the phrase pairs of a translation with their scores and alternatives.

        Args:
            number: index of the sentence in the search.
        """
        looked_up, ranked = search.looked_up, search.ranked
        options: list[dict[str, int]] = []  # of every phrase: targets with their rows, the best estimate first
        for first, last, _ in translation.phrases:
            source = int(looked_up.spans[number][first, last - first])
            rows = ranked.row[ranked.first[source] : ranked.first[source + 1]].tolist()
            options.append({looked_up.target_text(row): row for row in rows})
        pairs = phrase_pairs(sentence, translation.text, translation.phrases)
        chosen = [targets[text] for targets, (_, text) in zip(options, pairs, strict=True)]
        evidence = self._evidence(looked_up, chosen, sentence, translation)
        places = self.model.columns["PhraseDictionaryMemory"]
        uses = []
        for (first, last, size), (phrase, text), targets in zip(translation.phrases, pairs, options, strict=True):
            row = targets.pop(text)
            scores = {}
            if row < looked_up.known:
                scores = {self.kinds[p]: math.exp(looked_up.static[row, p]) for p in places}
            shown = [unescape(phrase_text) for phrase_text in (phrase, text, *list(targets)[:runners_up])]
            uses.append(PhraseUse(first, last, shown[0], shown[1], scores, shown[2:], evidence[:size]))
            evidence = evidence[size:]
        return uses

    def _evidence(
        self, looked_up: TranslationOptions, rows: list[int], sentence: str, translation: Translation
    ) -> list[WordEvidence]:
        """Return the evidence of the joint model for every word of a translation; empty if there is no joint model.

        Args:
            rows: pair of every phrase.
        """
        feature = next((candidate for candidate in self.model.neural if isinstance(candidate, JointFeature)), None)
        if feature is None or not translation.text:
            return []
        affiliations = looked_up.affiliations
        assert affiliations is not None
        affiliated = []
        for (first, _, size), row in zip(translation.phrases, rows, strict=True):
            begin = int(affiliations.bounds[row])
            affiliated.append(first + affiliations.places[begin : begin + size].astype(np.int64))
        words, target = words_of(sentence), words_of(translation.text)
        log_p, decreases = feature.scorer.evidence(words, np.concatenate(affiliated), target)
        shown = [unescape(word) for word in words]
        evidence = []
        for word, value, row_decreases in zip(target, log_p.tolist(), decreases, strict=True):
            order = [
                int(k)
                for k in np.argsort(-row_decreases, kind="stable")[:EVIDENCE]
                if row_decreases[k] >= LEAST_DECREASE
            ]
            sources = [(shown[k], k, round(float(row_decreases[k]), 4)) for k in order]
            evidence.append(WordEvidence(unescape(word), round(value, 4), sources))
        return evidence

    def _rnn(self) -> "tuple[RNNEncoderDecoder, list[Vocabulary]]":
        with self._lock:
            if self._network is None:
                self._network = self._load_rnn()
            return self._network

    def _load_rnn(self) -> "tuple[RNNEncoderDecoder, list[Vocabulary]]":
        need_torch()

        from rnnsmt.networks.data import Vocabulary
        from rnnsmt.rnn.model import load_model_with

        if not self.description.rnn:
            raise InputError(
                f"{self.directory}: {self.description.name} has no RNN Encoder-Decoder; use a system "
                "with the feature `rnn`"
            )
        path, *files = map(self._file, self.description.rnn)
        vocabularies = [Vocabulary.read(file) for file in files]
        model = load_model_with(path, vocabularies, " and ".join(map(str, files)))
        return model.eval(), vocabularies

    def _ids(self, side: int, phrase: str) -> NDArray[np.int64]:
        """Return the ids of a source (side 0) or target (side 1) phrase, with EOS."""
        if not isinstance(phrase, str):
            raise InputError(f"phrase: must be a string, not {type(phrase).__name__}")
        _, vocabularies = self._rnn()
        if not (words := words_of(phrase)):
            raise InputError(f"'{phrase[:40]}': 0 words; the network accepts phrases of at least one word")
        return vocabularies[side].ids(words, eos=True).astype(np.int64)
