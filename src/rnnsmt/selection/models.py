"""The two language models of one language that data selection compares (Moore and Lewis 2010), and a third.

The in-domain text is split in a fixed way: of every ``hold_out`` blocks of up to 50 consecutive lines the last is held
out (whole blocks, because neighbouring lines come from one document). The in-domain model is trained on the rest; on
the held-out lines ``selection select`` measures. The two languages of a bitext are split at the same lines.

The general model is trained on lines of the pool drawn at random until they have as many words as the in-domain
training text. A model likes the very lines it was trained on, so these would never be selected: a second general model,
from a second such sample without a line of the first, is there to score them. All models have the same vocabulary: the
words that occur at least ``min_count`` times in the in-domain training text; every other word is counted as ``<unk>``,
so that rare words cannot make one model look better.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from rnnsmt.io import InputError, read_lines, scratch_folder, write_lines
from rnnsmt.lm.estimation import estimate
from rnnsmt.lm.text import frequent_words
from rnnsmt.selection.sampling import count_words, sample_lines, split_held_out
from rnnsmt.selection.scoring import GENERAL, GENERAL2, GENERAL_TEXT, HELD_OUT, IN_DOMAIN


def train_models(
    in_domain: Sequence[str],
    pool: Sequence[str],
    folder: Path,
    *,
    order: int,
    min_count: int,
    hold_out: int,
    seed: int,
    memory_mb: int,
) -> dict[str, object]:
    """Split the in-domain text, sample the pool and write the three models and their texts to a folder.

    Returns:
        What was counted, by name.

    Raises:
        InputError: too few lines or words; a word that a language model reserves.
    """
    with scratch_folder(folder / "models") as work:
        for path in in_domain:
            sum(count_words(path))
        lines = list(chain.from_iterable(map(read_lines, in_domain)))
        training, held = split_held_out(lines, hold_out, ", ".join(in_domain))
        text = work / "in-domain"
        _write_scratch(text, training)
        words = sum(count_words(text))
        if not words:
            raise InputError(f"{', '.join(in_domain)}: no words in the training part; give more in-domain text")
        vocabulary = frequent_words([text], min_count)
        samples = sample_lines(pool, words, seed)
        _write_scratch(work / "general", samples.first)
        _write_scratch(work / "general2", samples.second or samples.first)
        for source, name in ((text, IN_DOMAIN), (work / "general", GENERAL), (work / "general2", GENERAL2)):
            estimate([source], order, folder / name, vocabulary=vocabulary, memory_mb=memory_mb)
        write_lines(folder / GENERAL_TEXT, samples.first)
        write_lines(folder / HELD_OUT, held)
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
