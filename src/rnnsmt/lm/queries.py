"""Queries with KenLM: loading of models without output, and the perplexity of a text."""

import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from rnnsmt.base.io import InputError, open_binary, read_byte_lines, read_line_blocks

_COUNT = re.compile(rb"ngram +\d{1,3} *= *\d{1,15}")

LOG2_10 = 3.321928094887362


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
        reason = _reason(str(error))
        if reason.endswith("()"):  # some versions of Python omit a message that is not UTF-8
            reason = "not UTF-8"
    raise InputError(f"{path}: KenLM cannot load it as a language model ({reason}); create it again")


def _check_header(path: str | Path) -> None:
    """Check the n-gram counts of an ARPA header; KenLM would crash on malformed ones, taking them for huge numbers.

    Raises:
        InputError: a count is malformed; names file and line.
    """
    with open_binary(path) as stream:
        if not stream.read(1 << 10).lstrip().startswith(b"\\data\\"):
            return  # a binary model, or something that KenLM complains about
    for number, line in enumerate(islice(read_byte_lines(path), 40), 1):
        if line.startswith(b"ngram ") and not _COUNT.fullmatch(line.strip()):
            raise InputError(f"{path}, line {number}: 'ngram ORDER=COUNT' expected; create the model again")
        if line.endswith(b"-grams:"):
            return


def _reason(text: str) -> str:
    """Return KenLM's message without source location, as one line of bounded length."""
    text = re.sub(r"\(\S+ in .*? threw \w+(?: because `.*?')?\. ?", "(", " ".join(text.split()))
    return text if len(text) <= 300 else f"{text[:200]} ... {text[-80:]}"


@dataclass(frozen=True)
class Perplexity:
    """Perplexity of a text under a model.

    Attributes:
        sentences: number of sentences.
        words: number of words, without ``</s>``.
        oov: number of words that the model does not contain.
        log10: sum of all base-10 log probabilities, including ``</s>`` of every sentence.
        log10_oov: part of ``log10`` that belongs to unknown words.
        perplexity: over words and ``</s>``; unknown words have the probability of ``<unk>``.
        perplexity_without_oov: the same without unknown words in sum and count (KenLM's query prints both).
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


def measure(model: Any, lines: Iterable[str], name: str) -> Perplexity:
    """Compute the perplexity of tokenised lines under a KenLM model; lines without words count as ``</s>`` only.

    Args:
        model: a ``kenlm.Model``.
        lines: the text.
        name: name of the text in the error message.

    Raises:
        InputError: there are no lines.
    """
    sentences = words = oov = 0
    total = unknown = 0.0
    for line in lines:
        sentences += 1
        for log10, _, is_oov in model.full_scores(line):
            words += 1
            total += log10
            if is_oov:
                oov += 1
                unknown += log10
    if not sentences:
        raise InputError(f"{name}: contains no lines; the perplexity of an empty text is undefined")
    events = words  # full_scores yields the words and </s>
    words -= sentences
    return Perplexity(
        sentences,
        words,
        oov,
        total,
        unknown,
        10 ** (-total / events),
        10 ** (-(total - unknown) / (events - oov)),
    )
