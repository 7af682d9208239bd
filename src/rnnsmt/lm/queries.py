"""Queries of n-gram models with KenLM: log10 probabilities of words, and the perplexity of a text."""

import io
import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from tempfile import NamedTemporaryFile

import kenlm

from rnnsmt.base.errors import InputError
from rnnsmt.base.opening import KENLM_MAGIC, open_binary
from rnnsmt.base.paths import StrPath
from rnnsmt.lm.arpa import check_header

LOG2_10 = 3.321928094887362


def load_kenlm(path: StrPath) -> kenlm.Model:
    """Load a model of order 2 to 6 from an ARPA file (plain, .gz, .bz2, .xz) or a binary file of KenLM."""
    with open_binary(path) as stream:
        if not stream.peek().startswith(KENLM_MAGIC):
            check_header(path)  # KenLM reads malformed counts as huge numbers and crashes
        if isinstance(stream.raw, io.FileIO):
            return _load(os.fspath(path), path)
        with NamedTemporaryFile(suffix=".arpa") as plain:  # KenLM's wheels cannot read compressed files
            shutil.copyfileobj(stream, plain, 1 << 20)
            plain.flush()
            return _load(plain.name, path)


def _load(file: str, path: StrPath) -> kenlm.Model:
    """Load an uncompressed file; ``path`` is the path shown in error messages."""
    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    try:
        return kenlm.Model(os.fsencode(file), config)  # names that are not UTF-8
    except UnicodeDecodeError:
        reason = "not UTF-8"
    except (OSError, RuntimeError) as error:
        # remove the source location; join lines and limit the length
        reason = re.sub(r"\(\S+ in .*? threw \w+(?: because `.*?')?\. ?", "(", " ".join(str(error).split()))
        reason = reason.replace(file, str(path))
        reason = reason if len(reason) <= 300 else f"{reason[:200]} ... {reason[-80:]}"
        if reason.endswith("()"):  # some versions of Python omit a message that is not UTF-8
            reason = "not UTF-8"
    raise InputError(f"{path}: KenLM cannot load it as a language model ({reason}); create it again")


@dataclass(frozen=True)
class Perplexity:
    """Perplexity of a text under a model.

    Attributes:
        words: number of words, without ``</s>``.
        oov: number of words that the model does not contain.
        sentences: number of lines.
        log10: sum of the base-10 log probabilities of all words and of ``</s>`` at the end of every sentence.
        log10_oov: sum of the base-10 log probabilities of unknown words.
        perplexity: perplexity over words and ``</s>``; unknown words have the probability of ``<unk>``.
        perplexity_without_oov: perplexity over known words and ``</s>`` (the ``query`` of KenLM prints both).
    """

    sentences: int
    words: int
    oov: int
    log10: float
    log10_oov: float
    perplexity: float
    perplexity_without_oov: float

    @property
    def figures(self) -> dict[str, object]:
        """Return the statistics for the last line in the log of the command."""
        return {
            "sentences": self.sentences,
            "words": self.words,
            "OOV": self.oov,
            "perplexity": self.perplexity,
            "without OOV": self.perplexity_without_oov,
        }

    def as_dict(self) -> dict[str, float]:
        """Return the fields and the OOV rate, for JSON."""
        return {**asdict(self), "oov_rate": self.oov / max(self.words, 1)}


def measure(model: kenlm.Model, lines: Iterable[str], name: str) -> Perplexity:
    """Compute the perplexity of tokenised lines; a line without words consists of ``</s>`` only.

    Args:
        name: name of the text for the error message.
    """
    sentences = events = oov = 0
    total = unknown = 0.0
    for line in lines:
        sentences += 1
        for log10, _, is_oov in model.full_scores(line.encode()):  # scores of the words and of </s>
            events += 1
            total += log10
            if is_oov:
                oov += 1
                unknown += log10
    if not sentences:
        raise InputError(f"{name}: contains no lines; the perplexity of an empty text is undefined")
    return Perplexity(
        sentences,
        events - sentences,
        oov,
        total,
        unknown,
        10 ** (-total / events),
        10 ** (-(total - unknown) / (events - oov)),
    )
