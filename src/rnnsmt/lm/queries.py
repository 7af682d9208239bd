"""Queries of n-gram models for whole texts: log10 probabilities of lines and words, and the perplexity of a text.

They are computed by KenLM if its Python module is installed, otherwise by the automaton of the decoder. The results are
bit-identical: the automaton has KenLM's log10 probabilities in single precision and adds them in KenLM's order.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rnnsmt.base.io import DAMAGED, InputError, open_binary, read_byte_lines, read_line_blocks
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.strings import find, hash_bytes
from rnnsmt.lm.arpa import read_arpa
from rnnsmt.lm.automaton import Automaton, build_automaton, following_slot, lm_slot

_COUNT = re.compile(rb"ngram +\d{1,3} *= *\d{1,15}")

LOG2_10 = 3.321928094887362

BATCH = 10_000
"""Number of lines per batch in ``measure``."""


class Queries(Protocol):
    """An n-gram model for queries. Lines are tokenised and in UTF-8; every line begins with ``<s>``.

    Attributes:
        order: maximum n-gram length.
    """

    order: int

    def line_scores(self, lines: Sequence[bytes]) -> list[float]:
        """Return the log10 probability of every line with ``</s>``, a sum in single precision."""

    def word_scores(self, lines: Sequence[bytes]) -> Iterator[tuple[float, bool]]:
        """Yield the log10 probability of every word and of ``</s>`` of every line, and whether it is unknown."""


def load_queries(path: str | Path) -> Queries:
    """Load an ARPA file (plain, .gz, .bz2, .xz), or a binary file of KenLM if its Python module is installed.

    A model of order 1, which KenLM rejects, is always read by the automaton.

    Raises:
        InputError: the file is missing, damaged or not a language model.
    """
    if find_spec("kenlm") is None or _only_unigrams(path):
        return AutomatonQueries(build_automaton(read_arpa(path), str(path), unit=1.0))
    return KenLmQueries(load_kenlm(path))


class KenLmQueries:
    """``Queries`` of a ``kenlm.Model``."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.order: int = model.order

    def line_scores(self, lines: Sequence[bytes]) -> list[float]:
        """Return the log10 probability of every line."""
        return list(map(self._model.score, lines))

    def word_scores(self, lines: Sequence[bytes]) -> Iterator[tuple[float, bool]]:
        """Yield log10 probability and whether the word is unknown."""
        for line in lines:
            for log10, _, is_oov in self._model.full_scores(line):
                yield log10, is_oov


class AutomatonQueries:
    """``Queries`` of an automaton whose unit is log10."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self.order = automaton.order

    def line_scores(self, lines: Sequence[bytes]) -> list[float]:
        """Return the log10 probability of every line."""
        sums: list[float] = self._score(lines)[0].tolist()
        return sums

    def word_scores(self, lines: Sequence[bytes]) -> Iterator[tuple[float, bool]]:
        """Yield log10 probability and whether the word is unknown."""
        _, probs, unknown = self._score(lines)
        return zip(probs.tolist(), unknown.tolist(), strict=True)

    def _score(self, lines: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Score lines.

        Returns:
            The log10 probability of every line, float32; that of every word and ``</s>``, float32; whether each of
            these is unknown, bool.
        """
        lm = self._automaton
        data = np.frombuffer(b"".join(lines), np.uint8)
        ends = np.cumsum(np.fromiter(map(len, lines), np.int64, len(lines)))
        # a line of n bytes has at most (n + 1) / 2 words
        sums, most = np.zeros(len(lines), np.float32), len(data) // 2 + 2 * len(lines)
        probs, unknown, backoffs = np.zeros(most, np.float32), np.zeros(most, np.bool_), np.zeros(lm.order, np.float32)
        ids = np.array([lm.start, lm.unk, lm.end])
        count = score_lines(lm.arrays, lm.words.table, ids, data, ends, backoffs, sums, probs, unknown)
        return sums, probs[:count], unknown[:count]


@kernel()
def log10_query(lm, state, word, backoffs):
    """Return the log10 probability (float32) of a word in a state, and the next state.

    Args:
        lm: ``LmArrays`` with log10 values.
        state, word: ids.
        backoffs: float32 [order], work space.
    """
    size = lm.rows.shape[0]
    count = 0
    total, after = np.float32(0.0), np.int32(-1)
    while state != 0:
        key, slot = lm_slot(state, word, size)
        while True:
            row = lm.rows[slot]
            if row.key == key:
                total, after = row.prob, row.next
                break
            if row.key == -1:
                break
            slot = following_slot(slot, size)
        if after >= 0:
            break
        context = lm.states[state]
        backoffs[count] = context.backoff
        count += 1
        state = context.link
    if after < 0:
        unigram = lm.unigrams[word]
        total, after = unigram.prob, unigram.next
    # as in KenLM, the back-off weights are added to the probability beginning with that of the shortest context
    for k in range(count - 1, -1, -1):
        total += backoffs[k]
    return total, after


@kernel()
def score_lines(lm, words, ids, data, ends, backoffs, sums, probs, unknown):
    """Score the words of lines and ``</s>``; return the total number of words and ``</s>``.

    Args:
        lm: ``LmArrays`` with log10 values.
        words: ``InternTable`` of the vocabulary.
        ids: int64 [3], start state, ``<unk>`` and ``</s>``.
        data: uint8, the lines, concatenated.
        ends: int64 [lines], end of each line in ``data``.
        backoffs: float32 [order], work space.
        sums: float32 [lines], filled with the sum of every line.
        probs: float32 [n], filled with the log10 probability of every word and ``</s>``.
        unknown: bool [n], set to whether a word is unknown.
    """
    count = 0
    at = np.int64(0)
    for line in range(ends.shape[0]):
        end = ends[line]
        state = np.int32(ids[0])
        total = np.float32(0.0)
        while True:
            # white space as in Python's bytes.split, which KenLM's Python module calls
            while at < end and (data[at] == 32 or 9 <= data[at] <= 13):
                at += 1
            begin = at
            while at < end and not (data[at] == 32 or 9 <= data[at] <= 13):
                at += 1
            is_end = at == begin
            word = ids[2]
            if not is_end:
                word = find(words, data, begin, at, hash_bytes(data, begin, at))
                if word < 0:
                    word = ids[1]
            prob, state = log10_query(lm, state, word, backoffs)
            total += prob
            probs[count] = prob
            unknown[count] = word == ids[1]
            count += 1
            if is_end:
                break
        sums[line] = total
    return count


def load_kenlm(path: str | Path) -> Any:
    """Return a ``kenlm.Model`` of an ARPA (plain, .gz, .bz2, .xz) or KenLM binary file.

    Raises:
        InputError: the file is missing, damaged or not a language model, or its order exceeds the maximum that KenLM
            was built for.
    """
    import kenlm

    if Path(path).suffix in (".gz", ".bz2", ".xz"):
        for _ in read_line_blocks(path):  # KenLM hangs on a truncated .bz2
            pass
    _check_header(path)
    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    try:
        return kenlm.Model(os.fspath(path), config)
    except UnicodeDecodeError:
        reason = "not UTF-8"
    except (OSError, RuntimeError) as error:
        # without source location, as one line of bounded length
        reason = re.sub(r"\(\S+ in .*? threw \w+(?: because `.*?')?\. ?", "(", " ".join(str(error).split()))
        reason = reason if len(reason) <= 300 else f"{reason[:200]} ... {reason[-80:]}"
        if reason.endswith("()"):  # some versions of Python omit a message that is not UTF-8
            reason = "not UTF-8"
    raise InputError(f"{path}: KenLM cannot load it as a language model ({reason}); create it again")


def _only_unigrams(path: str | Path) -> bool:
    """Return whether a file begins with the header of an ARPA file of order 1."""
    with open_binary(path) as stream, suppress(*DAMAGED):  # damage is reported when the whole file is read
        return re.match(rb"\s*\\data\\\s+ngram +1 *= *\d+\s+\\1-grams:", stream.read(1 << 10)) is not None
    return False


def _check_header(path: str | Path) -> None:
    """Check the n-gram counts of an ARPA header; KenLM would read malformed counts as huge numbers and crash.

    Raises:
        InputError: a count is malformed; names file and line.
    """
    with open_binary(path) as stream:
        if not stream.read(1 << 10).lstrip().startswith(b"\\data\\"):
            return  # a binary model, or a file that KenLM rejects
    for number, line in enumerate(islice(read_byte_lines(path), 40), 1):
        if line.startswith(b"ngram ") and not _COUNT.fullmatch(line.strip()):
            raise InputError(f"{path}, line {number}: 'ngram ORDER=COUNT' expected; create the model again")
        if line.endswith(b"-grams:"):
            return


@dataclass(frozen=True)
class Perplexity:
    """Perplexity of a text under a model.

    Attributes:
        sentences: number of sentences.
        words: number of words, without ``</s>``.
        oov: number of words that the model does not contain.
        log10: sum of all base-10 log probabilities, including ``</s>`` of every sentence.
        log10_oov: part of ``log10`` that is due to unknown words.
        perplexity: over words and ``</s>``; unknown words have the probability of ``<unk>``.
        perplexity_without_oov: the same, without unknown words in sum and count (KenLM's query prints both).
    """

    sentences: int
    words: int
    oov: int
    log10: float
    log10_oov: float
    perplexity: float
    perplexity_without_oov: float

    def as_dict(self) -> dict[str, float]:
        """Return the fields and the OOV rate, for JSON."""
        return {**asdict(self), "oov_rate": self.oov / max(self.words, 1)}


def measure(model: Queries, lines: Iterable[str], name: str) -> Perplexity:
    """Compute the perplexity of tokenised lines; lines without words are counted as ``</s>`` only.

    Args:
        model: the language model.
        lines: the text.
        name: name of the text in the error message.

    Raises:
        InputError: there are no lines.
    """
    sentences = words = oov = 0
    total = unknown = 0.0
    rest = iter(lines)
    while batch := [line.encode() for line in islice(rest, BATCH)]:
        sentences += len(batch)
        for log10, is_oov in model.word_scores(batch):
            words += 1
            total += log10
            if is_oov:
                oov += 1
                unknown += log10
    if not sentences:
        raise InputError(f"{name}: contains no lines; the perplexity of an empty text is undefined")
    events = words  # word_scores yields the words and </s>
    words -= sentences
    return Perplexity(
        sentences, words, oov, total, unknown, 10 ** (-total / events), 10 ** (-(total - unknown) / (events - oov))
    )
