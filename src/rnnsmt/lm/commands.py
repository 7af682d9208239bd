"""Commands of the n-gram language model."""

import argparse
from itertools import chain

from rnnsmt.base.fields import add_fields
from rnnsmt.base.io import read_lines, write_json
from rnnsmt.base.options import add_threads, positive
from rnnsmt.base.progress import track
from rnnsmt.config.sections import Lm


def estimate_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--input", nargs="+", required=True, metavar="FILE", help="tokenised text, one sentence per line")
    add("--output", required=True, metavar="ARPA",
        help="output file: language model (ARPA), compressed according to its suffix")  # fmt: skip
    add_fields(parser, Lm, "order", "prune", "estimator")
    add("--lmplz", metavar="FILE", help="path to KenLM's lmplz; overrides --estimator")
    add("--memory-mb", type=positive, default=2000, help="memory limit in MB")
    add_threads(parser)


def estimate(args: argparse.Namespace) -> dict[str, object]:
    r"""Estimate an interpolated modified Kneser-Ney language model and write it as an ARPA file.

    The model is the same as that of KenLM's lmplz (Heafield et al. 2013): unigrams are interpolated with the uniform
    distribution, and n-grams that begin with ``<s>`` keep their raw counts. ``--estimator auto`` uses lmplz if it is on
    PATH, and the built-in estimator otherwise. ``--prune 0 0 1`` discards the n-grams of three or more words that occur
    once; their probability mass goes to the shorter contexts.

    Words are separated by spaces and tabs; ``<s>``, ``</s>`` and ``<unk>`` must not occur as words. If a text is too
    small to estimate discounts, the fallback discounts of lmplz (0.5, 1 and 1.5) are used, with a warning.

    The text and its n-grams are kept in memory if they fit into --memory-mb, otherwise in temporary files next to the
    output. The vocabulary is always kept in memory.

    Example, in the directory of a run of the demo corpus:

        rnnsmt lm estimate \
            --input results/corpus/truecased/harbour.fr.gz results/corpus/truecased/gazette.fr.gz --order 5 \
            --output try/lm.arpa.gz --threads 2 --memory-mb 2000 --prune 0 0 1
    """
    from rnnsmt.lm.estimation import estimate, find_lmplz, run_lmplz

    lmplz = args.lmplz or find_lmplz(args.estimator)
    if lmplz is not None:
        return run_lmplz(lmplz, args.input, args.order, args.output, args.memory_mb, args.prune)
    return estimate(
        args.input, args.order, args.output, prune=args.prune, memory_mb=args.memory_mb, threads=args.threads
    )


def perplexity_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--lm", required=True, metavar="ARPA", help="language model of order 2 to 6 (ARPA or KenLM binary)")
    add("--input", nargs="+", required=True, metavar="FILE", help="tokenised text, one sentence per line")
    add("--output", required=True, metavar="JSON", help="output file (JSON)")


def perplexity(args: argparse.Namespace) -> dict[str, object]:
    r"""Compute the perplexity of a text under a language model.

    The output (JSON) contains the numbers of sentences, words and unknown words, and the perplexity including unknown
    words (as ``<unk>``) and excluding them. ``</s>`` is predicted and counted on every line.

    Example, in the directory of a run of the demo corpus:

        rnnsmt lm perplexity --lm try/lm.arpa.gz --input results/corpus/joined/truecased/dev.fr.gz \
            --output try/perplexity.json
    """
    from rnnsmt.lm.queries import load_kenlm, measure

    model = load_kenlm(args.lm)
    lines = chain.from_iterable(map(read_lines, args.input))
    result = measure(model, track(lines, "measuring"), ", ".join(args.input))
    write_json(args.output, {"lm_order": model.order, **result.as_dict()})
    return {
        "sentences": result.sentences,
        "words": result.words,
        "OOV": result.oov,
        "perplexity": result.perplexity,
        "without OOV": result.perplexity_without_oov,
    }
