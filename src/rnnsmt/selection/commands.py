"""Commands of data selection (Moore and Lewis 2010; Axelrod et al. 2011)."""

import argparse
import re
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from rnnsmt.base.io import InputError, read_lines, read_parallel, write_json, write_lines
from rnnsmt.base.options import add_threads, positive
from rnnsmt.base.progress import say, track

if TYPE_CHECKING:
    from rnnsmt.selection.pool import PoolFiles


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text}: must be a number greater than 0 and at most 1")
    return value


def _fraction_or_auto(text: str) -> float | str:
    return text if text == "auto" else _fraction(text)


def _corpus(text: str) -> "PoolFiles":
    from rnnsmt.selection.pool import PoolFiles

    parts = text.split("=")
    if len(parts) not in (3, 4) or not all(parts) or not re.fullmatch(r"[\w.-]+", parts[0]):
        raise argparse.ArgumentTypeError(f"{text!r}: must be NAME=SCORES=TEXT1 or NAME=SCORES=TEXT1=TEXT2")
    scores = None if parts[1] == "-" else Path(parts[1])
    return PoolFiles(parts[0], scores, [Path(path) for path in parts[2:]])


def _keep(text: str) -> tuple[str, float]:
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r}: must be NAME=all or NAME=FRACTION")
    return name, 1.0 if value == "all" else _fraction(value)


def models_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--in-domain", nargs="+", required=True, metavar="FILE", help="tokenised in-domain text, such as the dev set"
    )
    parser.add_argument(
        "--pool", nargs="+", required=True, metavar="FILE", help="tokenised text from which to select lines"
    )
    parser.add_argument("--output-dir", required=True, metavar="DIR", help="output directory")
    parser.add_argument("--seed", type=int, required=True, help="random seed for sampling from the pool")
    parser.add_argument("--memory-mb", type=positive, default=2000, help="memory limit in MB")


def models(args: argparse.Namespace) -> dict[str, object]:
    r"""Train the in-domain and general language models that `selection score` compares (Moore and Lewis 2010).

    Run the command once per language. It writes DIR/in-domain.arpa.gz, DIR/general.arpa.gz, DIR/general.gz (the
    training lines of the general model), DIR/general2.arpa.gz, DIR/held-out.gz and DIR/models.json (settings and
    counts).

    The in-domain text is divided into blocks of up to 50 consecutive lines, and every tenth block is held out. Whole
    blocks are held out because neighbouring lines come from the same document. The in-domain model is trained on the
    rest. `selection select` measures perplexity on the held-out lines. The split depends only on the number of lines,
    so the two sides of a parallel corpus are split at the same lines.

    The general model is trained on lines drawn at random from the pool until they have as many words as the in-domain
    training text. A model assigns high probability to its own training lines, so these would never be selected. They
    are therefore scored with a second general model, which is trained on another sample of the same size without the
    lines of the first sample. The vocabulary of all models is the same: the words that occur at least twice in the
    in-domain training text. All other words are mapped to ``<unk>``, so rare words do not favour any model.

    Example, in the directory of a run of the demo corpus:

        rnnsmt selection models --in-domain results/corpus/truecased/harbour-dev.en.gz \
            --pool results/corpus/truecased/general.en.gz --output-dir try/models.en --seed 1
    """
    from rnnsmt.selection import ORDER
    from rnnsmt.selection.models import HOLD_OUT, MIN_COUNT, train_models

    directory = Path(args.output_dir)
    counts = train_models(args.in_domain, args.pool, directory, args.seed, args.memory_mb)
    settings = {"order": ORDER, "min_count": MIN_COUNT, "hold_out": HOLD_OUT, "seed": args.seed}
    write_json(directory / "models.json", settings | counts)
    return {name.replace("_", " "): value for name, value in counts.items()}


def score_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text", required=True, metavar="FILE", help="tokenised text, one sentence per line")
    parser.add_argument(
        "--models",
        required=True,
        metavar="DIR",
        help="directory written by `selection models` for the language of --text",
    )
    parser.add_argument("--text2", metavar="FILE", help="other side of a parallel corpus; requires --models2")
    parser.add_argument(
        "--models2", metavar="DIR", help="directory written by `selection models` for the language of --text2"
    )
    parser.add_argument(
        "--output",
        required=True,
        metavar="TSV",
        help="output file: one score per line, compressed according to its suffix",
    )
    add_threads(parser, "processes")


def score(args: argparse.Namespace) -> dict[str, object]:
    r"""Compute the cross-entropy difference of every line of a text; a lower score means more in-domain.

    The score of a line s of a monolingual text is H_in(s) - H_gen(s), the difference of the cross-entropies under the
    in-domain and the general model in bits per word, with the end of the sentence counted as a word (Moore and Lewis
    2010). The score of a line of a parallel corpus is the sum of the differences of both sides (Axelrod, He and Gao
    2011). Lines in the training text of the general model, and copies of them, are scored with the second general model
    of `selection models`. The output has one score per line.

    Example, in the directory of a run of the demo corpus:

        rnnsmt selection score --text results/corpus/truecased/general.en.gz --models try/models.en \
            --text2 results/corpus/truecased/general.fr.gz --models2 try/models.fr --output try/general.tsv.gz \
            --threads 2
    """
    from rnnsmt.base.parallel import map_chunks
    from rnnsmt.selection.models import SideModels, scores_of_rows

    if (args.text2 is None) != (args.models2 is None):
        raise InputError("--text2 and --models2 must be used together")
    texts = [args.text] if args.text2 is None else [args.text, args.text2]
    directories = [args.models] if args.text2 is None else [args.models, args.models2]
    scorer = partial(scores_of_rows, [SideModels.load(Path(directory)) for directory in directories])
    total = 0.0

    def formatted() -> Iterator[str]:
        nonlocal total
        for scores in map_chunks(lambda: scorer, track(read_parallel(*texts), "scoring"), args.threads):
            total += sum(scores)
            yield from (f"{score:.6f}" for score in scores)

    number = write_lines(args.output, formatted())
    return {"lines": number, "mean score": total / max(number, 1)}


def select_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--corpus",
        nargs="+",
        required=True,
        type=_corpus,
        metavar="NAME=SCORES=TEXT1[=TEXT2]",
        help="for each corpus, its name, its score file written by `selection score` (- if it has none), and one "
        "text or two parallel texts",
    )
    parser.add_argument(
        "--keep",
        nargs="+",
        default=[],
        type=_keep,
        metavar="NAME=all|FRACTION",
        help="keep all lines of corpus NAME, or a fraction of them, and do not rank this corpus together with the "
        "others",
    )
    amount = parser.add_mutually_exclusive_group(required=True)
    amount.add_argument(
        "--fraction",
        type=_fraction_or_auto,
        metavar="F|auto",
        help="fraction of the lines to keep; auto: the fraction with the lowest held-out perplexity",
    )
    amount.add_argument(
        "--words",
        type=positive,
        metavar="N",
        help="keep the best lines up to a total of N words (in the last text of each corpus)",
    )
    parser.add_argument(
        "--held-out",
        nargs="+",
        metavar="FILE",
        help="held-out in-domain text in the language of the last text of each corpus; required with --fraction auto",
    )
    parser.add_argument("--output-dir", required=True, metavar="DIR", help="output directory")
    parser.add_argument(
        "--curve", required=True, metavar="TSV", help="output file: held-out perplexity for each fraction"
    )
    parser.add_argument(
        "--random",
        type=int,
        metavar="SEED",
        help="select the same number of lines at random with this seed, as a control experiment",
    )
    parser.add_argument("--memory-mb", type=positive, default=2000, help="memory limit per language model in MB")
    add_threads(parser)


def select(args: argparse.Namespace) -> dict[str, object]:
    r"""Select the lines with the lowest scores, in their original order.

    All corpora without --keep are ranked together. Either a fraction of their lines is kept (--fraction), or
    the best lines up to a total of --words words, counted in the last text (the target side of a parallel corpus).
    ``--keep NAME=all`` keeps all lines of a corpus, whose score file may then be given as ``-``; ``--keep NAME=0.5``
    keeps the half of its lines with the best scores.

    With ``--fraction auto`` a language model is estimated on the kept lines for each of ten fractions, and the fraction
    with the lowest perplexity on the --held-out text is chosen. Corpora with --keep are not used for this choice.
    Perplexity is measured on the last text of each corpus (the target side of a parallel corpus). The held-out text
    must therefore be in this language, and must not be part of the training text of the in-domain model: use
    DIR/held-out.gz of `selection models`. All these models have the same vocabulary (the words with a count of at least
    two in all ranked corpora), so their perplexities are comparable.

    ``--random SEED`` is for control experiments: the fraction, and thus the number of lines, is determined as without
    it (from perplexities with ``auto``), but the lines are drawn at random. Corpora with ``--keep NAME=all`` are kept
    as they are.

    The command writes DIR/NAME.1.gz and, for a parallel corpus, DIR/NAME.2.gz for every corpus, DIR/selected.json, and
    the curve (TSV) with the columns fraction, lines, words, perplexity, oov_rate and chosen.

    Example, in the directory of a run of the demo corpus:

        rnnsmt selection select --fraction auto --held-out try/models.fr/held-out.gz --output-dir try/selected \
            --curve try/curve.tsv --corpus \
            general=try/general.tsv.gz=results/corpus/truecased/general.en.gz=results/corpus/truecased/general.fr.gz
    """
    from rnnsmt.selection.curve import FRACTIONS, write_curve
    from rnnsmt.selection.pool import Pool, fraction_of_words, read_corpora

    is_auto = args.fraction == "auto"
    if is_auto and not args.held_out:
        raise InputError(
            "--fraction auto requires --held-out, in-domain text that the in-domain models were not trained on"
        )
    held_out = list(chain.from_iterable(map(read_lines, args.held_out or [])))
    if args.held_out and not any(line.strip() for line in held_out):
        raise InputError(
            f"{', '.join(args.held_out)}: contains no words; held-out text is required for the perplexity curve"
        )

    directory = Path(args.output_dir)
    corpora = read_corpora(args.corpus, args.keep)
    chosen = None if is_auto else args.fraction or fraction_of_words(corpora, args.words)
    pool = Pool(corpora, FRACTIONS if chosen is None else [chosen])
    points = []
    if pool.together and held_out:
        points = pool.measure(held_out, directory, args.memory_mb, args.threads)
    if chosen is None and points:
        chosen = min(points, key=lambda point: (point.perplexity, point.fraction)).fraction

    masks = (pool if args.random is None else pool.shuffled(args.random)).kept(chosen)
    pool.write(directory, masks, args.threads)
    write_curve(args.curve, points, chosen)
    of_corpora = pool.report(masks)
    report = {
        "fraction": chosen,
        "asked": f"{args.words} words" if args.words else args.fraction,
        "corpora": of_corpora,
        "curve": [vars(point) for point in points],
    }
    write_json(directory / "selected.json", report | ({} if args.random is None else {"random": args.random}))
    for name, counts in of_corpora.items():
        say(f"{name}: {counts['kept']:,} of {counts['lines']:,} lines kept")
    totals = {key: sum(counts[key] for counts in of_corpora.values()) for key in ("lines", "kept")}
    return ({} if chosen is None else {"fraction": chosen}) | totals
