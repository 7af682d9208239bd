"""The commands that draw what was learnt."""

import argparse
from typing import TYPE_CHECKING, Any

from rnnsmt.io import InputError
from rnnsmt.networks.options import need_torch
from rnnsmt.options import positive
from rnnsmt.progress import say

if TYPE_CHECKING:
    from rnnsmt.rnn.model import RNNEncoderDecoder
    from rnnsmt.rnn.pairs import Pairs


def learning_curve_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.drawing import add_output

    parser.add_argument(
        "--history", nargs="+", required=True, metavar="FILE", help="histories of trainings with other seeds (JSON)"
    )
    parser.add_argument("--title", default="Learning curve", help="what stands above the picture")
    add_output(parser)


def learning_curve(args: argparse.Namespace) -> dict[str, object]:
    r"""Draw the learning curve of a network: perplexity per word of the trained and of the held-out data by epochs.

    Reads the histories that `rnn train`, `cslm train` or `seq2seq train` wrote; a line for each.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt analysis learning-curve --history results/rnn/network1/history.json --title RNN \
            --output try/learning.png try/learning.svg
    """
    from rnnsmt.analysis.learning_curve import LearningCurve, draw_learning_curves
    from rnnsmt.drawing import check_output, save

    check_output(args.output)
    curves = [LearningCurve.read(path) for path in args.history]
    save(draw_learning_curves(curves, args.title), args.output)
    kept = [curve.kept[1] for curve in curves if curve.kept is not None]
    figures: dict[str, object] = {"points": sum(len(curve.rows) for curve in curves)}
    return figures | ({"held-out perplexity": sum(kept) / len(kept)} if kept else {})


def mert_curves_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.drawing import add_output

    parser.add_argument("--history", nargs="+", required=True, metavar="SYSTEM=FILE", help="histories of runs (JSON)")
    add_output(parser)


def mert_curves(args: argparse.Namespace) -> dict[str, object]:
    r"""Draw the tuning of all systems: BLEU of the decoded development set by iterations of MERT, a line a run.

    Reads the histories that `tuning mert` wrote, as SYSTEM=FILE; the ring is the best iteration.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt analysis mert-curves \
            --history rnn=results/systems/rnn/run1/history.json rnn=results/systems/rnn/run2/history.json \
            --output try/mert.png
    """
    from rnnsmt.analysis.mert_curves import draw_mert_curves, read_history
    from rnnsmt.drawing import check_output, save

    check_output(args.output)
    systems: dict[str, list[dict[str, Any]]] = {}
    for text in args.history:
        system, equals, path = text.partition("=")
        if not equals:
            raise InputError(f"--history {text}: write SYSTEM=FILE, for example rnn=run1/history.json")
        systems.setdefault(system, []).append(read_history(path))
    figure = draw_mert_curves(systems)
    save(figure, args.output)
    return {"systems": len(systems), "runs": len(args.history)}


def bleu_curves_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.drawing import add_output

    add = parser.add_argument
    add("--system", action="append", nargs="+", required=True, metavar=("NAME FILE", "FILE"),
        help="a name and the tokenised output of every run; once for every system")  # fmt: skip
    add("--reference", nargs="+", required=True, metavar="FILE", help="tokenised reference; several of one text")
    add("--source", required=True, metavar="FILE", help="the text that was translated, tokenised")
    add("--rank-text", nargs="+", required=True, metavar="FILE", help="text whose words are ranked, of the source")
    add("--groups", type=positive, default=8, metavar="N", help="of sentences, of about as many each")
    add_output(parser)
    add("--output-json", required=True, metavar="FILE", help="the same as numbers")


def bleu_curves(args: argparse.Namespace) -> dict[str, object]:
    r"""Draw BLEU by the length of the source sentences and by the mean frequency rank of their words.

    As Figure 3 of Sutskever et al. (2014): sentences are sorted, cut into groups of as many each, and every group is
    scored as a corpus; the mean over the runs of a system. The most frequent word of --rank-text has the rank 1, words
    that it does not have come one behind its last.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt analysis bleu-curves --reference results/corpus/tokenized/harbour-test.fr.gz \
            --source results/corpus/truecased/harbour-test.en.gz --rank-text results/corpus/joined/train.en.gz \
            --system baseline results/systems/baseline/run1/harbour-test.tokens \
            --system cslm_rnn results/systems/cslm_rnn/run1/harbour-test.tokens \
            --output try/bleu-curves.png --output-json try/bleu-curves.json
    """
    import numpy as np

    from rnnsmt.analysis.bleu_curves import LENGTH, RANK, curve, draw_bleu_curves, groups_by, mean_ranks
    from rnnsmt.bleu.multi_bleu import corpus_statistics
    from rnnsmt.bleu.texts import read_texts
    from rnnsmt.drawing import check_output, save
    from rnnsmt.io import read_lines, words_of, write_json

    check_output(args.output)
    source, references = read_texts(args.source, args.reference)
    statistics: dict[str, list[Any]] = {}
    for name, *outputs in args.system:
        if not outputs or name in statistics:
            raise InputError(f"--system {name}: give a name once, and the outputs of its runs behind it")
        statistics[name] = [corpus_statistics(read_texts(path, args.reference)[0], references) for path in outputs]
    ranks = mean_ranks(source, (line for path in args.rank_text for line in read_lines(path)))
    lengths = np.array([float(len(words_of(line))) or np.nan for line in source])
    curves = {
        value: {name: curve(numbers, groups_by(numbers, args.groups), runs) for name, runs in statistics.items()}
        for value, numbers in ((LENGTH, lengths), (RANK, ranks))
    }
    save(draw_bleu_curves(curves), args.output)
    write_json(args.output_json, curves)
    return {"systems": len(statistics), "sentences": len(source)}


def sentence_vectors_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.drawing import add_output

    add = parser.add_argument
    add("--model", required=True, metavar="FILE", help="what seq2seq train wrote")
    add("--sentences", required=True, metavar="FILE", help="groups of tokenised sentences, an empty line between them")
    add_output(parser)
    add("--output-json", required=True, metavar="FILE", help="the same as numbers")


def sentence_vectors(args: argparse.Namespace) -> dict[str, object]:
    r"""Draw the vectors that an LSTM encoder-decoder makes of sentences: Figure 2 of Sutskever et al. (2014).

    The state of the encoder's last layer behind the sentence, of every group its two principal components. Words that
    the network does not know are said.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt analysis sentence-vectors --model try/lstm.pt --sentences try/sentences.en \
            --output try/sentence-vectors.png --output-json try/sentence-vectors.json
    """
    from rnnsmt.analysis.sentence_vectors import (
        draw_sentence_vectors,
        principal_components,
        read_groups,
        vectors_of,
    )
    from rnnsmt.drawing import check_output, save
    from rnnsmt.io import read_lines, write_json

    check_output(args.output)
    groups = read_groups(read_lines(args.sentences), args.sentences)
    need_torch()

    from rnnsmt.seq2seq.model import load_model

    trained = load_model(args.model)
    found = []
    for group in groups:
        sentences = [sentence.split() for sentence in group]
        unknown = sorted({word for words in sentences for word in words if not trained.source.knows(word)})
        if unknown:
            say(f"warning: the network does not know {', '.join(unknown)}")
        points, shares = principal_components(vectors_of(trained, sentences))
        found.append({"sentences": group, "points": points.tolist(), "variance": shares.tolist(), "unknown": unknown})
    save(draw_sentence_vectors(found), args.output)
    write_json(args.output_json, {"groups": found})
    return {"groups": len(groups), "sentences": sum(map(len, groups))}


def score_scatter_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.drawing import add_output

    add = parser.add_argument
    add("--phrase-table", required=True, metavar="FILE")
    add("--scores", nargs="+", required=True, metavar="FILE", help="the network's scores of its lines, in parts (.npy)")
    add("--sample", type=positive, default=20_000, metavar="N", help="at most so many pairs")
    add("--seed", type=int, default=1)
    add_output(parser)


def score_scatter(args: argparse.Namespace) -> dict[str, object]:
    r"""Draw the network's score of phrase pairs against log p(target | source) of the phrase table: Figure 3 of the
    paper.

    A random sample of the table's lines; the third of Moses' scores is the direct phrase probability. Colour: how often
    the pair was extracted, where the table has counts.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt analysis score-scatter --phrase-table results/model/phrase-table.gz \
            --scores results/rnn/network1/scores/1-of-2.npy results/rnn/network1/scores/2-of-2.npy \
            --sample 20000 --output try/scores.png
    """
    from rnnsmt.drawing import check_output, save

    check_output(args.output)

    import numpy as np

    from rnnsmt.analysis.phrase_sample import draw_sample, draw_score_scatter

    pairs = draw_sample(args.phrase_table, args.scores, args.sample, args.seed)
    figure = draw_score_scatter(pairs)
    save(figure, args.output)
    figures: dict[str, object] = {"pairs": len(pairs.table)}
    if len(pairs.table) > 2:
        figures["correlation"] = float(np.corrcoef(pairs.table, pairs.network)[0, 1])
    return figures


def _load_network(path: str, pairs_folder: str) -> "tuple[RNNEncoderDecoder, Pairs]":
    """A network that reads source phrases, on the CPU, and its pairs.

    Raises:
        InputError: it reads targets; a file is missing or damaged.
    """
    from rnnsmt.networks.devices import choose_place
    from rnnsmt.rnn.model import load_model_of
    from rnnsmt.rnn.pairs import Pairs

    model, pairs, _ = load_model_of(Pairs.open(pairs_folder), path, choose_place("cpu", 1))
    if pairs.direction != "direct":
        raise InputError(f"{path}: was trained with --direction {pairs.direction}; it does not read source phrases")
    return model, pairs


def phrase_examples_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--phrase-table", required=True, metavar="FILE")
    add("--scores", nargs="+", required=True, metavar="FILE", help="the network's scores of its lines, in parts (.npy)")
    add("--model", required=True, metavar="FILE", help="the network")
    add("--pairs", required=True, metavar="DIR", help="what rnn prepare wrote, for the vocabularies")
    add("--number", type=positive, default=5, metavar="N", help="frequent, and as many rare source phrases")
    add("--targets", type=positive, default=3, metavar="N", help="targets that a source phrase must have")
    add("--top", type=positive, default=5, metavar="N", help="targets that are shown")
    add("--draws", type=positive, default=50, metavar="N", help="draws from the network")
    add("--seed", type=int, default=1)
    add("--output-json", required=True, metavar="FILE")
    add("--output-md", required=True, metavar="FILE")


def phrase_examples(args: argparse.Namespace) -> dict[str, object]:
    r"""Show what the phrase table and the network prefer for long source phrases, frequent and rare, and what the
    network draws itself: Tables 2 and 3 of the paper.

    The phrases are drawn at random from those of more than three words with several targets: from the hundredth that
    is extracted most often, and the tenth that is extracted least.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt analysis phrase-examples --phrase-table results/model/phrase-table.gz \
            --scores results/rnn/network1/scores/1-of-2.npy results/rnn/network1/scores/2-of-2.npy \
            --model results/rnn/network1/model.pt --pairs results/rnn/pairs --number 5 --draws 50 \
            --output-json try/examples.json --output-md try/examples.md
    """
    need_torch()

    from rnnsmt.analysis import phrase_examples as examples
    from rnnsmt.io import write_json, write_lines

    model, pairs = _load_network(args.model, args.pairs)
    phrases = examples.long_phrases(args.phrase_table, args.targets)
    if not phrases:
        more = f"more than {examples.MORE_WORDS_THAN} words and {args.targets} targets or more"
        say(f"warning: {args.phrase_table} has no source phrase of {more}: the tables stay empty")
    frequent, rare = examples.choose(phrases, args.number, args.seed)
    found = examples.examples_of(
        args.phrase_table, args.scores, [*frequent, *rare], model, pairs.vocabularies,
        top=args.top, draws=args.draws, seed=args.seed,
    )  # fmt: skip
    groups = found[: len(frequent)], found[len(frequent) :]
    write_json(args.output_json, examples.content(*groups))
    write_lines(args.output_md, examples.markdown(*groups, args.draws))
    return {"frequent": len(frequent), "rare": len(rare)}


def embeddings_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.drawing import add_output

    add = parser.add_argument
    add("--of", choices=("words", "phrases"), required=True, help="source words, or source phrases of four or more")
    add("--model", required=True, metavar="FILE", help="the network")
    add("--pairs", required=True, metavar="DIR", help="what rnn prepare wrote")
    add(
        "--sample", type=positive, default=5000, metavar="N", help="the most frequent words, or phrases drawn at random"
    )
    add("--seed", type=int, default=1)
    add("--output-json", required=True, metavar="FILE", help="points, labels and clusters")
    add("--output-zooms", nargs="+", required=True, metavar="FILE", help="pictures of the clusters, .png or .svg")
    add_output(parser)


def embeddings(args: argparse.Namespace) -> dict[str, object]:
    r"""Draw what the network has learnt of source words (Figure 4 of the paper) or phrases (Figure 5) in the plane.

    Barnes-Hut t-SNE of the embeddings, or of the vectors c: the whole map, and zooms on clusters found in it.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt analysis embeddings --of words --model results/rnn/network1/model.pt --pairs results/rnn/pairs \
            --sample 2000 --output try/words.png --output-zooms try/words-zooms.png \
            --output-json try/words.json
    """
    from rnnsmt.drawing import check_output, save

    check_output([*args.output, *args.output_zooms])
    need_torch()

    from rnnsmt.analysis import embeddings as maps
    from rnnsmt.io import write_json

    model, pairs = _load_network(args.model, args.pairs)
    if args.of == "words":
        found, title = maps.word_vectors(model, pairs, args.sample), "{} source words"
    else:
        found, title = maps.phrase_vectors(model, pairs, args.sample, args.seed), "{} source phrases"
    if len(found.labels) < maps.FEW:
        say(f"warning: {len(found.labels)} {args.of} are too few for a map: it stays empty")
    points = maps.plane(found.vectors, args.seed)
    zooms = maps.clusters(points)
    save(maps.draw_map(points, zooms, title.format(f"{len(points):,}")), args.output)
    save(maps.draw_zooms(points, found.labels, zooms), args.output_zooms)
    content = {
        "labels": found.labels,
        "points": [[round(float(x), 3), round(float(y), 3)] for x, y in points],
        "clusters": [rows.tolist() for rows in zooms],
    }
    write_json(args.output_json, content)
    return {"points": len(points), "dimensions": found.vectors.shape[1], "clusters": len(zooms)}


def report_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--table", required=True, metavar="FILE", help="of `evaluation table`, JSON")
    add("--provenance", required=True, metavar="FILE", help="of `evaluation provenance`")
    add("--figures", nargs="*", default=[], metavar="FILE", help="pictures, SVG")
    add("--maps", nargs="*", default=[], metavar="FILE", help="of `analysis embeddings`, JSON")
    add("--comparisons", nargs="*", default=[], metavar="FILE", help="of `evaluation compare`, JSON")
    add("--examples", metavar="FILE", help="of `analysis phrase-examples`, JSON")
    add("--logs", required=True, metavar="DIR", help="the stages' logs, for what they cost")
    add("--output", required=True, metavar="FILE", help="page to write, HTML")


def report(args: argparse.Namespace) -> dict[str, object]:
    r"""Write one page with everything that a run has found out; it needs no other file and no network.

    Table 1 first, where a click on a figure shows seeds, weights and hashes behind it; what each feature adds; systems
    compared sentence by sentence; what the network makes of phrases; words and phrases in the plane; learning curves
    and tuning; what every stage cost; the configuration.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt analysis report --table results/table1.json --provenance results/provenance.json \
            --logs results/logs --figures results/figures/learning-rnn.svg results/figures/mert.svg \
            --maps results/analysis/words.json --comparisons results/analysis/rnn.vs.baseline/harbour-test.json \
            --examples results/analysis/phrase-examples.json --output try/report.html
    """
    from rnnsmt.analysis.report import write_report

    return write_report(
        args.output,
        table=args.table,
        provenance=args.provenance,
        figures=args.figures,
        maps=args.maps,
        comparisons=args.comparisons,
        examples=args.examples,
        logs=args.logs,
    )
