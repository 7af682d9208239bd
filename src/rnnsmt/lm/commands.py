"""The commands of the n-gram language model."""

import argparse
from itertools import chain

from rnnsmt.io import read_lines, write_json
from rnnsmt.options import positive
from rnnsmt.progress import track


def estimate_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.lm.estimation import MAX_ORDER, order_between

    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="tokenised text, one segment a line")
    parser.add_argument("--output", required=True, metavar="ARPA", help="compressed by suffix")
    parser.add_argument("--order", type=order_between(1, MAX_ORDER), default=5, help="length of the longest n-grams")
    parser.add_argument(
        "--prune",
        nargs="+",
        type=int,
        default=[],
        metavar="N",
        help="leave out n-grams that occur at most N times, N for order 1, 2 ..., the last for all longer ones",
    )
    parser.add_argument("--estimator", choices=["auto", "lmplz", "builtin"], default="auto")
    parser.add_argument("--lmplz", metavar="FILE", help="KenLM's program, where it is not on PATH")
    parser.add_argument("--memory-mb", type=positive, default=2000, help="memory to stay within")
    parser.add_argument("--threads", type=positive, default=1)


def estimate(args: argparse.Namespace) -> dict[str, object]:
    r"""Estimate an interpolated modified Kneser-Ney language model and write it as an ARPA file.

    The figures are those of KenLM's lmplz (Heafield et al. 2013): interpolated unigrams,
    ``<s>``-initial n-grams counted as they occur. ``--prune 0 0 1`` leaves out the n-grams of three and more words that
    occur once, and their probability goes to the shorter contexts. ``--estimator auto`` takes lmplz where it is on PATH
    and the built-in estimator where it is not. Words are separated by space and tab; ``<s>``, ``</s>`` and ``<unk>``
    may not occur as words. A text that is too small to estimate discounts gets lmplz's fallback discounts 0.5, 1 and
    1.5, and a warning.

    Memory: the text and its n-grams stay in memory while they fit in ``--memory-mb``, and go to temporary files beside
    the output when they do not; the vocabulary always stays in memory.

    Example, in the folder of a run of the embedded corpus:

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


def interpolate_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", nargs="+", required=True, metavar="ARPA", help="the models to interpolate")
    parser.add_argument("--tune", required=True, metavar="FILE", help="tokenised text that the weights are to suit")
    parser.add_argument("--output", required=True, metavar="ARPA", help="compressed by suffix")
    parser.add_argument("--threads", type=positive, default=1)


def interpolate(args: argparse.Namespace) -> dict[str, object]:
    r"""Interpolate language models linearly into one ARPA file, with weights that suit a text.

    EM finds the weights of least perplexity. The result has the n-grams of all models and back-off weights of its own,
    as SRILM's ``-mix-lm`` (Stolcke 2002). Words that a model does not know have probability 0 under it; words that no
    model knows take no part in finding the weights. A model of weight 0 leaves no n-gram behind. The last line of the
    log has the weights and the perplexities of the models and of the result, ``<unk>`` and ``</s>`` counted, as
    ``rnnsmt lm perplexity`` has them. All models and the result are in memory.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt lm interpolate --models results/model/lm.arpa.gz try/lm.arpa.gz \
            --tune results/corpus/joined/truecased/dev.fr.gz --output try/mixed.arpa.gz
    """
    from rnnsmt.lm.interpolation import interpolate

    return interpolate(args.models, args.tune, args.output, args.threads)


def perplexity_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lm", required=True, metavar="ARPA")
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="tokenised text, one segment a line")
    parser.add_argument("--output", required=True, metavar="JSON")


def perplexity(args: argparse.Namespace) -> dict[str, object]:
    r"""Perplexity of a text under an ARPA language model, asked through KenLM.

    The JSON holds sentences, words, unknown words and the perplexity with unknown words (as ``<unk>``) and without
    them; ``</s>`` of every line is predicted and counted.

    Example, in the folder of a run of the embedded corpus:

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
