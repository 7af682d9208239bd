"""Training of the language models of one language for data selection (Moore and Lewis 2010).

The in-domain text is split deterministically: of every ``hold_out`` blocks of up to 50 consecutive lines, the last is
held out (whole blocks, since neighbouring lines come from one document). The in-domain model is trained on the rest;
``selection select`` measures perplexity on the held-out lines. The two languages of a parallel text are split at the
same lines.

The general model is trained on random lines of the pool with as many words as the in-domain training text. A model
assigns high probability to its own training lines, so that these would never be selected. They are scored with a second
general model, trained on a second sample without any line of the first. All models have the same vocabulary: the words
that occur at least ``min_count`` times in the in-domain training text. All other words are counted as ``<unk>``, so
that rare words do not favour one of the models.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from rnnsmt.base.io import InputError, read_lines, scratch_folder, write_lines
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
    """Split the in-domain text, sample the pool, and write the three models and their texts to a directory.

    Args:
        in_domain: files of in-domain text.
        pool: files of the pool.
        folder: output directory.
        order: order of the models.
        min_count: minimum count of the words of the vocabulary.
        hold_out: one of this number of blocks is held out.
        seed: random seed of the samples.
        memory_mb: memory for the estimation.

    Returns:
        Counts by name.

    Raises:
        InputError: there are too few lines or words, or a word that is reserved by language models.
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
    """Write lines to a temporary file."""
    with path.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(f"{line}\n" for line in lines)
