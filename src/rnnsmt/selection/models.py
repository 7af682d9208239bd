"""Train the two language models of one language that data selection compares (Moore and Lewis 2010).

The in-domain text is split in a fixed way: of every --hold-out blocks of up to 50 consecutive lines the last is held
out (whole blocks, because neighbouring lines come from one document). The in-domain model is trained on the rest; the
held-out lines go to DIR/held-out.gz, on which ``selection select`` measures. The two languages of a bitext are split
at the same lines.

The general model is trained on lines of the pool drawn at random until they have as many words as the in-domain
training text. A model likes the very lines it was trained on, so these would never be selected: a second general model,
from a second such sample without a line of the first, is there to score them. All models have the same vocabulary: the
words that occur at least --min-count times in the in-domain training text; every other word is counted as ``<unk>``, so
that rare words cannot make one model look better.

Writes DIR/in-domain.arpa.gz, DIR/general.arpa.gz, DIR/general.gz (its training lines), DIR/general2.arpa.gz,
DIR/held-out.gz and DIR/models.json.
"""

import argparse
import shutil
from itertools import chain
from pathlib import Path

from rnnsmt.common_options import positive
from rnnsmt.io import InputError, read_lines, write_json, write_lines
from rnnsmt.lm.estimate import KENLM_ORDERS, estimate, order_between
from rnnsmt.lm.text import frequent_words
from rnnsmt.selection.sampling import count_words, hold_out, sample_lines

IN_DOMAIN, GENERAL, GENERAL2 = "in-domain.arpa.gz", "general.arpa.gz", "general2.arpa.gz"
GENERAL_TEXT, HELD_OUT = "general.gz", "held-out.gz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rnnsmt selection models``."""
    parser.add_argument("--in-domain", nargs="+", required=True, metavar="FILE", help="in-domain text (the dev text)")
    parser.add_argument("--pool", nargs="+", required=True, metavar="FILE", help="the text to select from")
    parser.add_argument("--output-dir", required=True, metavar="DIR")
    parser.add_argument("--seed", type=int, required=True, help="of the pool's random sample")
    parser.add_argument("--order", type=order_between(*KENLM_ORDERS), default=5, help="of both models")
    parser.add_argument("--min-count", type=positive, default=2, help="rarer in-domain words are unknown words")
    parser.add_argument("--hold-out", type=positive, default=10, metavar="K", help="hold out every K-th block of lines")
    parser.add_argument("--memory-mb", type=positive, default=2000)


def run(args: argparse.Namespace) -> dict[str, object]:
    """Train and write the models; the figures are lines, words and vocabulary."""
    folder = Path(args.output_dir)
    work = folder / ".work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        for path in args.in_domain:
            sum(count_words(path))
        lines = list(chain.from_iterable(map(read_lines, args.in_domain)))
        training, held = hold_out(lines, args.hold_out, ", ".join(args.in_domain))
        text = work / "in-domain"
        write_lines(text, training)
        words = sum(count_words(text))
        if not words:
            raise InputError(f"{', '.join(args.in_domain)}: no words in the training part; give more in-domain text")
        vocabulary = frequent_words([text], args.min_count)
        samples = sample_lines(args.pool, words, args.seed)
        write_lines(work / "general", samples.first)
        write_lines(work / "general2", samples.second or samples.first)
        for source, name in ((text, IN_DOMAIN), (work / "general", GENERAL), (work / "general2", GENERAL2)):
            estimate([source], args.order, folder / name, vocabulary=vocabulary, memory_mb=args.memory_mb)
        write_lines(folder / GENERAL_TEXT, samples.first)
        write_lines(folder / HELD_OUT, held)
        figures: dict[str, object] = {
            "in_domain_lines": len(training),
            "in_domain_words": words,
            "held_out_lines": len(held),
            "vocabulary": len(vocabulary),
            "pool_lines": samples.pool_lines,
            "general_lines": len(samples.first),
            "general_words": sum(count_words(work / "general")),
            "general2_lines": len(samples.second),
        }
        settings = {name: getattr(args, name) for name in ("order", "min_count", "hold_out", "seed")}
        write_json(folder / "models.json", {**settings, **figures})
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return {name.replace("_", " "): value for name, value in figures.items()}
