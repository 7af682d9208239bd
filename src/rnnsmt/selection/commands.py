"""The commands of data selection (Moore and Lewis 2010; Axelrod et al. 2011)."""

import argparse
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from rnnsmt.io import InputError, read_lines, read_parallel, write_json, write_lines
from rnnsmt.options import positive
from rnnsmt.progress import say, track

if TYPE_CHECKING:
    from rnnsmt.selection.ranking import PoolCorpus

FRACTIONS = [1 / 64, 1 / 32, 1 / 16, 1 / 8, 3 / 16, 1 / 4, 3 / 8, 1 / 2, 3 / 4, 1.0]


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most 1")
    return value


def _fraction_or_auto(text: str) -> float | str:
    return text if text == "auto" else _fraction(text)


def _corpus(text: str) -> "PoolCorpus":
    from rnnsmt.selection.ranking import PoolCorpus

    parts = text.split("=")
    if len(parts) not in (3, 4) or not all(parts) or not re.fullmatch(r"[\w.-]+", parts[0]):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SCORES=TEXT1 or NAME=SCORES=TEXT1=TEXT2")
    scores = None if parts[1] == "-" else Path(parts[1])
    return PoolCorpus(parts[0], scores, [Path(part) for part in parts[2:]])


def _keep(text: str) -> tuple[str, float]:
    name, found, value = text.partition("=")
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=all or NAME=FRACTION")
    return name, 1.0 if value == "all" else _fraction(value)


def models_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.lm.estimation import KENLM_ORDERS, order_between

    parser.add_argument("--in-domain", nargs="+", required=True, metavar="FILE", help="in-domain text (the dev text)")
    parser.add_argument("--pool", nargs="+", required=True, metavar="FILE", help="the text to select from")
    parser.add_argument("--output-dir", required=True, metavar="DIR")
    parser.add_argument("--seed", type=int, required=True, help="of the pool's random sample")
    parser.add_argument("--order", type=order_between(*KENLM_ORDERS), default=5, help="of both models")
    parser.add_argument("--min-count", type=positive, default=2, help="rarer in-domain words are unknown words")
    parser.add_argument("--hold-out", type=positive, default=10, metavar="K", help="hold out every K-th block of lines")
    parser.add_argument("--memory-mb", type=positive, default=2000)


def models(args: argparse.Namespace) -> dict[str, object]:
    r"""Train the two language models of one language that data selection compares (Moore and Lewis 2010).

    The in-domain text is split in a fixed way: of every --hold-out blocks of up to 50 consecutive lines the last is
    held out (whole blocks, because neighbouring lines come from one document). The in-domain model is trained on the
    rest; the held-out lines go to DIR/held-out.gz, on which ``selection select`` measures. The two languages of a
    bitext are split at the same lines.

    The general model is trained on lines of the pool drawn at random until they have as many words as the in-domain
    training text. A model likes the very lines it was trained on, so these would never be selected: a second general
    model, from a second such sample without a line of the first, is there to score them. All models have the same
    vocabulary: the words that occur at least --min-count times in the in-domain training text; every other word is
    counted as ``<unk>``, so that rare words cannot make one model look better.

    Writes DIR/in-domain.arpa.gz, DIR/general.arpa.gz, DIR/general.gz (its training lines), DIR/general2.arpa.gz,
    DIR/held-out.gz and DIR/models.json.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt selection models --in-domain results/corpus/truecased/harbour-dev.en.gz \
            --pool results/corpus/truecased/general.en.gz --output-dir try/models.en --seed 1
    """
    from rnnsmt.selection.models import train_models

    folder = Path(args.output_dir)
    settings = {name: getattr(args, name) for name in ("order", "min_count", "hold_out", "seed")}
    counts = train_models(args.in_domain, args.pool, folder, memory_mb=args.memory_mb, **settings)
    write_json(folder / "models.json", {**settings, **counts})
    return {name.replace("_", " "): value for name, value in counts.items()}


def score_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text", required=True, metavar="FILE", help="tokenised text, one segment a line")
    parser.add_argument("--models", required=True, metavar="DIR", help="models of the text's language")
    parser.add_argument("--text2", metavar="FILE", help="the other side of a bitext")
    parser.add_argument("--models2", metavar="DIR", help="models of its language")
    parser.add_argument("--output", required=True, metavar="TSV", help="one score a line, compressed by suffix")
    parser.add_argument("--threads", type=positive, default=1, help="processes")


def score(args: argparse.Namespace) -> dict[str, object]:
    r"""Score every line by how much better the in-domain model likes it than the general one; lower is more in-domain.

    Of a monolingual text (Moore and Lewis 2010): H_in(s) - H_gen(s), the cross-entropies in bits per word, the end of
    the sentence counted as a word. Of a bitext (Axelrod, He and Gao 2011): the sum of that difference over both sides.
    The models are those of ``rnnsmt selection models``; lines that its general model was trained on, and copies of
    them, are scored with its second general model. The output has one score a line.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt selection score --text results/corpus/truecased/general.en.gz --models try/models.en \
            --text2 results/corpus/truecased/general.fr.gz --models2 try/models.fr --output try/general.tsv.gz \
            --threads 2
    """
    from rnnsmt.parallel import map_chunks
    from rnnsmt.selection.scoring import CrossEntropyDifference, SideModels

    if (args.text2 is None) != (args.models2 is None):
        raise InputError("--text2 and --models2 go together: give both for a bitext, none for monolingual text")
    texts = [args.text] if args.text2 is None else [args.text, args.text2]
    folders = [args.models] if args.text2 is None else [args.models, args.models2]
    scorer = CrossEntropyDifference([SideModels.load(Path(folder)) for folder in folders])
    total = 0.0

    def formatted() -> Iterator[str]:
        nonlocal total
        for scores in map_chunks(lambda: scorer, track(read_parallel(*texts), "scoring"), args.threads):
            total += sum(scores)
            yield from (f"{score:.6f}" for score in scores)

    number = write_lines(args.output, formatted())
    return {"lines": number, "mean score": total / max(number, 1)}


def select_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.lm.estimation import KENLM_ORDERS, order_between

    parser.add_argument("--corpus", nargs="+", required=True, type=_corpus, metavar="NAME=SCORES=TEXT1[=TEXT2]")
    parser.add_argument("--keep", nargs="+", default=[], type=_keep, metavar="NAME=all|FRACTION")
    amount = parser.add_mutually_exclusive_group(required=True)
    amount.add_argument("--fraction", type=_fraction_or_auto, metavar="F|auto", help="fraction of the lines to keep")
    amount.add_argument(
        "--words", type=positive, metavar="N", help="keep the best lines until their last texts have N words"
    )
    parser.add_argument("--held-out", nargs="+", metavar="FILE", help="in-domain text of the last text's language")
    parser.add_argument("--output-dir", required=True, metavar="DIR")
    parser.add_argument("--curve", required=True, metavar="TSV")
    parser.add_argument("--fractions", nargs="+", type=_fraction, default=FRACTIONS, metavar="F", help="for auto")
    parser.add_argument(
        "--curve-order", type=order_between(*KENLM_ORDERS), default=5, help="of the curve's language models"
    )
    parser.add_argument("--unique", action="store_true", help="keep one of identical lines or pairs")
    parser.add_argument("--random", type=int, metavar="SEED", help="as many lines, but random ones: the control")
    parser.add_argument("--memory-mb", type=positive, default=2000)
    parser.add_argument("--threads", type=positive, default=1)


def select(args: argparse.Namespace) -> dict[str, object]:
    r"""Keep the lines with the lowest scores, in their original order.

    All corpora without a --keep of their own are ranked together and --fraction of their lines is kept, or as many of
    the best as have at most --words words in the last text (the target side of a bitext). ``--keep
    NAME=all`` keeps a corpus whole (its scores may be given as ``-``), ``--keep NAME=0.5`` keeps half of it by its own
    ranking. With ``--fraction auto`` a language model is estimated for every fraction of --fractions from the kept
    lines of the ranked corpora, and the fraction whose model has the least perplexity on the --held-out text is taken;
    corpora with a --keep play no part in this. Perplexity is of the last text of each corpus (the target side of a
    bitext), so the held-out text must be of that language and must not be what the in-domain model was trained on:
    ``selection models`` writes it. All models of a curve share one vocabulary (words that occur twice or more in the
    whole pool), so that their perplexities can be compared.

    Exact copies of a line (of a pair) have the same score and are kept or dropped together; --unique keeps at most the
    first of them, over each corpus.

    ``--random SEED`` is the control of an experiment: the fraction is that of the ranking, by perplexity where it is
    ``auto``, and so is the number of lines, but which lines are kept is drawn at random. Corpora that are kept whole
    stay whole.

    Writes DIR/NAME.1.gz and, for a bitext, DIR/NAME.2.gz for every corpus, DIR/selected.json, and the curve as TSV:
    fraction, lines, words, perplexity, oov_rate, chosen.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt selection select --fraction auto --held-out try/models.fr/held-out.gz --output-dir try/selected \
            --curve try/curve.tsv --corpus \
            general=try/general.tsv.gz=results/corpus/truecased/general.en.gz=results/corpus/truecased/general.fr.gz
    """
    from rnnsmt.selection.curve import write_curve
    from rnnsmt.selection.pool import Pool, fraction_of_words
    from rnnsmt.selection.ranking import read_corpus, with_keep

    corpora = with_keep(args.corpus, args.keep)
    is_auto = args.fraction == "auto"
    if is_auto and not args.held_out:
        raise InputError("--fraction auto needs --held-out: in-domain text that the in-domain models have not seen")
    held_out = list(chain.from_iterable(map(read_lines, args.held_out or [])))
    if args.held_out and not any(line.strip() for line in held_out):
        raise InputError(f"{', '.join(args.held_out)}: no words; the curve needs held-out text")

    folder = Path(args.output_dir)
    ranked = [read_corpus(corpus, args.unique) for corpus in corpora]
    chosen = None if is_auto else args.fraction or fraction_of_words(ranked, args.words)
    pool = Pool(ranked, sorted(set(args.fractions)) if chosen is None else [chosen])
    points = []
    if pool.together and held_out:
        points = pool.measure(held_out, folder, order=args.curve_order, memory_mb=args.memory_mb, threads=args.threads)
    if chosen is None and points:
        chosen = min(points, key=lambda point: (point.perplexity, point.fraction)).fraction

    masks = (pool if args.random is None else pool.shuffled(args.random)).kept(chosen)
    pool.write(folder, masks, args.threads)
    write_curve(args.curve, points, chosen)
    report = {
        "fraction": chosen,
        "asked": f"{args.words} words" if args.words else args.fraction,
        "corpora": pool.report(masks),
        "curve": [vars(point) for point in points],
    }
    write_json(folder / "selected.json", report | ({} if args.random is None else {"random": args.random}))
    lines, kept = [item.lines for item in pool.corpora], [int(mask.sum()) for mask in masks]
    for corpus, all_lines, kept_lines in zip(corpora, lines, kept, strict=True):
        say(f"{corpus.name}: {kept_lines:,} of {all_lines:,} lines kept")
    return ({} if chosen is None else {"fraction": chosen}) | {"lines": sum(lines), "kept": sum(kept)}
