"""Language models for data selection in one language: training, and scores of lines (Moore and Lewis 2010).

The in-domain text is split deterministically into blocks of up to 50 consecutive lines; every tenth block is held out.
Whole blocks are held out because neighbouring lines come from the same document. The in-domain model is trained on the
other blocks, and `selection select` measures perplexity on the held-out lines. The two sides of a parallel text are
split at the same lines.

The general model is trained on random lines of the pool with as many words as the in-domain training text. A model
assigns high probability to its own training lines, so that they would never be selected. Therefore, the training lines
of the general model are scored with a second general model, which is trained on a second sample without these lines.
All models have the same vocabulary: the words that occur at least twice in the in-domain training text. All other words
are counted as ``<unk>``, so that rare words do not favour one of the models.

The score of a line is the difference of the cross-entropies of the in-domain and the general model; lower is more
in-domain. For a line s of monolingual text, it is H_in(s) - H_gen(s) in bits per word, with the end of the sentence
counted as a word. For parallel text (Axelrod, He and Gao 2011), it is the sum of the differences for both sides.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Self

import kenlm
import numpy as np

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import track
from rnnsmt.base.reading import read_byte_lines, read_lines
from rnnsmt.base.writing import scratch_directory, write_lines
from rnnsmt.lm.estimation import estimate
from rnnsmt.lm.queries import LOG2_10, load_kenlm
from rnnsmt.lm.text import frequent_words, refuse_reserved
from rnnsmt.selection import ORDER

MIN_COUNT = 2
"""Minimum count in the in-domain training text of a word of the vocabulary."""

HOLD_OUT = 10
"""Number of consecutive blocks of which the last one is held out."""


def train_models(
    in_domain: Sequence[str], pool: Sequence[str], directory: Path, seed: int, memory_mb: int
) -> dict[str, int]:
    """Split the in-domain text, sample the pool, and write the three models and their texts to a directory.

    Args:
        in_domain: files of in-domain text.
        pool: files of the pool.
        directory: output directory.
        seed: random seed.
        memory_mb: memory limit in MB.

    Returns:
        Numbers of lines and words by name.
    """
    with scratch_directory(directory / "models") as work:
        for path in in_domain:
            sum(count_words(path))
        lines = list(chain.from_iterable(map(read_lines, in_domain)))
        training, held = split_held_out(lines, ", ".join(in_domain))
        text = work / "in-domain"
        _write_scratch(text, training)
        words = sum(count_words(text))
        if not words:
            raise InputError(f"{', '.join(in_domain)}: the training part contains no words; use more in-domain text")
        vocabulary = frequent_words([text], MIN_COUNT)
        samples = sample_lines(pool, words, seed)
        _write_scratch(work / "general", samples.first)
        _write_scratch(work / "general2", samples.second or samples.first)
        for source, name in ((text, IN_DOMAIN), (work / "general", GENERAL), (work / "general2", GENERAL2)):
            estimate([source], ORDER, directory / name, vocabulary=vocabulary, memory_mb=memory_mb)
        write_lines(directory / GENERAL_TEXT, samples.first)
        write_lines(directory / HELD_OUT, held)
        return {
            "in_domain_lines": len(training),
            "in_domain_words": words,
            "held_out_lines": len(held),
            "vocabulary": len(vocabulary),
            "pool_lines": samples.pool_lines,
            "general_lines": len(samples.first),
            "general_words": sum(count_words(work / "general")),
            "general2_lines": len(samples.second),
        }


def _write_scratch(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(f"{line}\n" for line in lines)


BLOCK_LINES = 50
"""Maximum number of consecutive lines that are held out together."""


def split_held_out(lines: Sequence[str], name: str) -> tuple[list[str], list[str]]:
    """Split lines into training lines and held-out lines: the last of every ``HOLD_OUT`` blocks is held out.

    A block has ``BLOCK_LINES`` lines; in a short text, blocks are shorter, so that there are at least 2 * ``HOLD_OUT``
    blocks.
    """
    if len(lines) < 2 * HOLD_OUT:
        raise InputError(f"{name}: {len(lines)} lines of in-domain text; at least {2 * HOLD_OUT} are required")
    block = min(BLOCK_LINES, len(lines) // (2 * HOLD_OUT))
    parts: tuple[list[str], list[str]] = ([], [])
    for i, line in enumerate(lines):
        parts[i // block % HOLD_OUT == HOLD_OUT - 1].append(line)
    return parts


def count_words(path: StrPath) -> Iterator[int]:
    """Yield the number of words of each line of a file; reject lines with reserved words."""
    for number, line in enumerate(read_byte_lines(path), 1):
        words = line.split()
        refuse_reserved(words, path, number)
        yield len(words)


@dataclass(frozen=True)
class Samples:
    """Two random samples of a pool without common lines.

    Attributes:
        first, second: lines of the samples, in the order of the pool.
        pool_lines: number of lines of the pool.
    """

    first: list[str]
    second: list[str]
    pool_lines: int


def sample_lines(paths: Sequence[StrPath], words: int, seed: int) -> Samples:
    """Draw two samples of random lines without replacement, each with about ``words`` words.

    If the pool is too small, each sample has half of its words. Lines that are equal to a line of the first sample are
    excluded from the second sample, so that a model trained on one sample has not seen any line of the other. The
    samples and 12 bytes per line of the pool are kept in memory.
    """
    lengths = np.fromiter(track(chain.from_iterable(map(count_words, paths)), "reading the pool"), np.int32)
    order = np.random.default_rng(seed).permutation(len(lengths))
    total = np.cumsum(lengths[order], dtype=np.int64)
    if len(total) < 2 or not total[-1]:
        raise InputError(
            f"{', '.join(map(str, paths))}: {np.count_nonzero(lengths)} of {len(total)} lines contain words, but "
            "data selection requires more"
        )
    words = min(words, int(total[-1]) // 2)
    ends = np.searchsorted(total, [words, 2 * words]) + 1
    sample_of = np.zeros(len(lengths), np.uint8)
    sample_of[order[: ends[0]]] = 1
    sample_of[order[ends[0] : ends[1]]] = 2
    samples: tuple[list[str], ...] = ([], [], [])
    lines = chain.from_iterable(map(read_lines, paths))
    for line, number in zip(lines, sample_of.tolist(), strict=True):
        if number:
            samples[number].append(line)
    seen = frozenset(samples[1])
    return Samples(samples[1], [line for line in samples[2] if line not in seen], len(lengths))


IN_DOMAIN, GENERAL, GENERAL2 = "in-domain.arpa.gz", "general.arpa.gz", "general2.arpa.gz"

GENERAL_TEXT, HELD_OUT = "general.gz", "held-out.gz"
"""Further files in the directory written by ``rnnsmt selection models``."""


@dataclass(frozen=True)
class SideModels:
    """Models of one language.

    Attributes:
        in_domain: in-domain model.
        general: general model.
        general2: second general model, which scores the lines in ``seen``.
        seen: training lines of ``general``.
    """

    in_domain: kenlm.Model
    general: kenlm.Model
    general2: kenlm.Model
    seen: frozenset[str]

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Read the models written by ``rnnsmt selection models``."""
        in_domain, general, general2 = (load_kenlm(directory / name) for name in (IN_DOMAIN, GENERAL, GENERAL2))
        return cls(in_domain, general, general2, frozenset(read_lines(directory / GENERAL_TEXT)))

    def differences(self, lines: Sequence[str]) -> list[float]:
        """Return H_in(s) - H_gen(s) for every line s, in bits per word; ``</s>`` counts as a word."""
        differences = []
        for line in lines:
            text, general = line.encode(), self.general2 if line in self.seen else self.general
            # the cross-entropy is the negative log10 probability, converted to bits and divided by the number of words
            log10 = general.score(text) - self.in_domain.score(text)
            differences.append(LOG2_10 * log10 / (len(text.split()) + 1))
        return differences


def scores_of_rows(sides: Sequence[SideModels], rows: Sequence[tuple[str, ...]]) -> list[float]:
    """Return the score of each row: the sum of ``differences`` over its lines, one for each side."""
    texts = zip(*rows, strict=True)
    scores = [side.differences(lines) for side, lines in zip(sides, texts, strict=True)]
    return [sum(row) for row in zip(*scores, strict=True)]
