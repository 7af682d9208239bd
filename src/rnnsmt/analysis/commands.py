"""Commands that plot and tabulate results, and the report of a run."""

import argparse
from typing import TYPE_CHECKING, Any

from rnnsmt.base.io import InputError
from rnnsmt.base.options import positive
from rnnsmt.base.progress import say
from rnnsmt.base.rendering import add_output, save, write_page

if TYPE_CHECKING:
    from rnnsmt.rnn.model import RNNEncoderDecoder
    from rnnsmt.rnn.pairs import Pairs


def learning_curve_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--history", nargs="+", required=True, metavar="FILE",
        help="training history (JSON); one file per seed")  # fmt: skip
    parser.add_argument("--title", default="Learning curve", help="figure title")
    add_output(parser)


def learning_curve(args: argparse.Namespace) -> dict[str, object]:
    r"""Plot the learning curve of a network: perplexity per word of training and held-out data against epochs.

    Inputs are the histories written by `rnn train`, `cslm train`, `nnjm train` or `seq2seq train`; each is a separate
    curve.

    Example, in the directory of a run of the demo corpus:

        rnnsmt analysis learning-curve --history results/rnn/network1/history.json --title RNN \
            --output try/learning.png try/learning.svg
    """
    from rnnsmt.analysis.curves import LearningCurve, draw_learning_curves

    curves = [LearningCurve.read(path) for path in args.history]
    save(draw_learning_curves(curves, args.title), args.output)
    perplexities = [curve.kept[1] for curve in curves if curve.kept is not None]
    figures: dict[str, object] = {"points": sum(len(curve.rows) for curve in curves)}
    return figures | ({"held-out perplexity": sum(perplexities) / len(perplexities)} if perplexities else {})


def mert_curves_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--history", nargs="+", required=True, metavar="SYSTEM=FILE",
        help="system name and tuning history (JSON) of each run")  # fmt: skip
    add_output(parser)


def mert_curves(args: argparse.Namespace) -> dict[str, object]:
    r"""Plot dev BLEU against tuning iterations, one line per run, for all systems.

    Inputs are the histories written by `tuning tune`. An orange line at the BLEU of the result spans the
    iterations whose weights are averaged.

    Example, in the directory of a run of the demo corpus:

        rnnsmt analysis mert-curves \
            --history rnn=results/systems/rnn/run1/history.json rnn=results/systems/rnn/run2/history.json \
            --output try/mert.png
    """
    from rnnsmt.analysis.curves import draw_mert_curves
    from rnnsmt.base.io import read_json

    systems: dict[str, list[dict[str, Any]]] = {}
    for text in args.history:
        system, equals, path = text.partition("=")
        if not equals:
            raise InputError(f"--history {text}: must be SYSTEM=FILE, for example rnn=run1/history.json")
        systems.setdefault(system, []).append(read_json(path))
    save(draw_mert_curves(systems), args.output)
    return {"systems": len(systems), "runs": len(args.history)}


def bleu_curves_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--system", action="append", nargs="+", required=True, metavar=("NAME FILE", "FILE"),
        help="name of a system and its tokenised output, one file per run; repeat for each system")  # fmt: skip
    add("--reference", nargs="+", required=True, metavar="FILE",
        help="tokenised reference; give several files for multiple references")  # fmt: skip
    add("--source", required=True, metavar="FILE", help="tokenised source text")
    add("--rank-text", nargs="+", required=True, metavar="FILE",
        help="tokenised source-language text for word frequencies")  # fmt: skip
    add("--groups", type=positive, default=8, metavar="N", help="number of groups of sentences, of about equal size")
    add_output(parser)
    add("--output-json", required=True, metavar="FILE", help="output file: the plotted values (JSON)")


def bleu_curves(args: argparse.Namespace) -> dict[str, object]:
    r"""Plot BLEU against the length of the source sentences and against the mean frequency rank of their words.

    As in Figure 3 of Sutskever et al. (2014), sentences are sorted and divided into groups of equal size, and corpus
    BLEU is computed for each group and averaged over the runs of a system. The most frequent word of --rank-text has
    rank 1; all words that do not occur in it share the rank one above the number of its distinct words.

    Example, in the directory of a run of the demo corpus:

        rnnsmt analysis bleu-curves --reference results/corpus/tokenized/harbour-test.fr.gz \
            --source results/corpus/truecased/harbour-test.en.gz --rank-text results/corpus/joined/train.en.gz \
            --system baseline results/systems/baseline/run1/harbour-test.tokens \
            --system cslm_rnn results/systems/cslm_rnn/run1/harbour-test.tokens \
            --output try/bleu-curves.png --output-json try/bleu-curves.json
    """
    import numpy as np

    from rnnsmt.analysis.curves import LENGTH, RANK, curve, draw_bleu_curves, groups_by, mean_ranks
    from rnnsmt.base.io import read_lines, words_of, write_json
    from rnnsmt.bleu.batch import corpus_statistics
    from rnnsmt.bleu.multi_bleu import read_texts

    source, references = read_texts(args.source, args.reference)
    statistics: dict[str, list[Any]] = {}
    for name, *outputs in args.system:
        if not outputs or name in statistics:
            raise InputError(
                f"--system {name}: duplicate name; specify each system once, followed by the outputs of all its runs"
            )
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
    add = parser.add_argument
    add("--model", required=True, metavar="FILE", help="model file written by `seq2seq train`")
    add("--sentences", required=True, metavar="FILE",
        help="tokenised sentences, one per line, in groups separated by empty lines")  # fmt: skip
    add_output(parser)
    add("--output-json", required=True, metavar="FILE", help="output file: the plotted values (JSON)")


def sentence_vectors(args: argparse.Namespace) -> dict[str, object]:
    r"""Plot sentence vectors of an LSTM encoder-decoder, as in Figure 2 of Sutskever et al. (2014).

    The vector of a sentence is the state of the last encoder layer after reading the sentence. Each group of sentences
    is projected onto its first two principal components. A warning lists the words that are not in the vocabulary.

    Example, in the directory of a run of the demo corpus:

        rnnsmt analysis sentence-vectors --model try/lstm.safetensors --sentences try/sentences.en \
            --output try/sentence-vectors.png --output-json try/sentence-vectors.json
    """
    from rnnsmt.analysis.representations import draw_sentence_vectors, principal_components, read_groups, vectors_of
    from rnnsmt.base.io import read_lines, words_of, write_json

    groups = read_groups(read_lines(args.sentences), args.sentences)

    from rnnsmt.seq2seq.model import load_model

    trained = load_model(args.model)
    plots = []
    for group in groups:
        sentences = [words_of(sentence) for sentence in group]
        unknown = sorted({word for words in sentences for word in words if word not in trained.source.index})
        if unknown:
            say(f"warning: not in the vocabulary of the network: {', '.join(unknown)}")
        points, shares = principal_components(vectors_of(trained, sentences))
        plots.append({"sentences": group, "points": points.tolist(), "variance": shares.tolist(), "unknown": unknown})
    save(draw_sentence_vectors(plots), args.output)
    write_json(args.output_json, {"groups": plots})
    return {"groups": len(groups), "sentences": sum(map(len, groups))}


def _add_scores(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--phrase-table", required=True, metavar="FILE", help="phrase table in Moses format")
    parser.add_argument("--scores", nargs="+", required=True, metavar="FILE",
        help="output of `rnn score` for the phrase table (.npy), in consecutive shards")  # fmt: skip


def score_scatter_options(parser: argparse.ArgumentParser) -> None:
    _add_scores(parser)
    add = parser.add_argument
    add("--sample", type=positive, default=20_000, metavar="N", help="maximum number of phrase pairs in the sample")
    add("--seed", type=int, default=1, help="random seed of the sample")
    add_output(parser)


def score_scatter(args: argparse.Namespace) -> dict[str, object]:
    r"""Plot network scores against phrase table scores of phrase pairs (Figure 3 of the paper).

    The table score is log p(target | source), the direct phrase probability, which is the third score in Moses format.
    The pairs are a random sample of the table. Colours show how often a pair was extracted, if the table has counts.

    Example, in the directory of a run of the demo corpus:

        rnnsmt analysis score-scatter --phrase-table results/model/phrase-table.gz \
            --scores results/rnn/network1/scores/1-of-2.npy results/rnn/network1/scores/2-of-2.npy \
            --sample 20000 --output try/scores.png
    """

    import numpy as np

    from rnnsmt.analysis.phrase_pairs import draw_sample, draw_score_scatter

    pairs = draw_sample(args.phrase_table, args.scores, args.sample, args.seed)
    save(draw_score_scatter(pairs), args.output)
    figures: dict[str, object] = {"pairs": len(pairs.table)}
    if len(pairs.table) > 2:
        figures["correlation"] = float(np.corrcoef(pairs.table, pairs.network)[0, 1])
    return figures


def _load_network(path: str, pairs_directory: str) -> "tuple[RNNEncoderDecoder, Pairs]":
    """Load a network from a model file, on the CPU, and its phrase pairs from a directory of `rnn prepare`."""
    from rnnsmt.networks.devices import set_up_device
    from rnnsmt.rnn.model import load_model_of
    from rnnsmt.rnn.pairs import Pairs

    pairs = Pairs.open(pairs_directory)
    return load_model_of(pairs, path, set_up_device("cpu", 1)), pairs


def _add_network(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="FILE", help="model file written by `rnn train`")
    parser.add_argument("--pairs", required=True, metavar="DIR", help="directory written by `rnn prepare`")


def phrase_examples_options(parser: argparse.ArgumentParser) -> None:
    _add_scores(parser)
    _add_network(parser)
    add = parser.add_argument
    add("--number", type=positive, default=5, metavar="N",
        help="number of frequent and of rare source phrases to list")  # fmt: skip
    add("--targets", type=positive, default=3, metavar="N", help="minimum number of targets of a source phrase")
    add("--top", type=positive, default=5, metavar="N", help="number of targets to list per source phrase")
    add("--draws", type=positive, default=50, metavar="N", help="number of samples from the network per source phrase")
    add("--seed", type=int, default=1, help="random seed")
    add("--output-json", required=True, metavar="FILE", help="output file (JSON)")
    add("--output-md", required=True, metavar="FILE", help="output file (Markdown)")


def phrase_examples(args: argparse.Namespace) -> dict[str, object]:
    r"""List the best targets of long source phrases by table and network score (Tables 2 and 3 of the paper).

    The command also lists the best targets sampled from the network. Source phrases are drawn at random from those with
    more than three words and at least --targets targets: frequent phrases from the 1 % with the highest counts, rare
    phrases from the 10 % with the lowest counts.

    Example, in the directory of a run of the demo corpus:

        rnnsmt analysis phrase-examples --phrase-table results/model/phrase-table.gz \
            --scores results/rnn/network1/scores/1-of-2.npy results/rnn/network1/scores/2-of-2.npy \
            --model results/rnn/network1/model.safetensors --pairs results/rnn/pairs --number 5 --draws 50 \
            --output-json try/examples.json --output-md try/examples.md
    """
    from rnnsmt.analysis import phrase_pairs as examples
    from rnnsmt.base.io import write_json

    model, pairs = _load_network(args.model, args.pairs)
    phrases = examples.long_phrases(args.phrase_table, args.targets)
    if not phrases:
        more = f"more than {examples.MORE_WORDS_THAN} words and at least {args.targets} targets"
        say(f"warning: {args.phrase_table} contains no source phrase with {more}; the output tables are empty")
    frequent, rare = examples.choose(phrases, args.number, args.seed)
    listed = examples.examples_of(
        args.phrase_table, args.scores, [*frequent, *rare], model, pairs.vocabularies,
        top=args.top, draws=args.draws, seed=args.seed,
    )  # fmt: skip
    groups = {"frequent": listed[: len(frequent)], "rare": listed[len(frequent) :]}
    write_json(args.output_json, {name: [example._asdict() for example in group] for name, group in groups.items()})
    write_page(args.output_md, "rnnsmt.analysis", "phrase-examples.md.j2", **groups, draws=args.draws)
    return {"frequent": len(frequent), "rare": len(rare)}


def embeddings_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--of", choices=("words", "phrases"), required=True,
        help="plot source words, or source phrases of four or more words")  # fmt: skip
    _add_network(parser)
    add("--sample", type=positive, default=5000, metavar="N",
        help="maximum number of points: the most frequent words, or phrases drawn at random")  # fmt: skip
    add("--seed", type=int, default=1, help="random seed of the sample and of t-SNE")
    add("--output-json", required=True, metavar="FILE", help="output file: points, labels and clusters (JSON)")
    add_output(parser, "--output-zooms", "enlarged views of the clusters")
    add_output(parser)


def embeddings(args: argparse.Namespace) -> dict[str, object]:
    r"""Plot source words (Figure 4 of the paper) or source phrases (Figure 5) in two dimensions.

    The points are the word embeddings of the network, or the vectors c of source phrases, projected by Barnes-Hut t-SNE
    (van der Maaten 2013). The outputs are the whole map, and enlarged views of clusters found by HDBSCAN (Campello et
    al. 2013).

    Example, in the directory of a run of the demo corpus:

        rnnsmt analysis embeddings --of words --model results/rnn/network1/model.safetensors --pairs results/rnn/pairs \
            --sample 2000 --output try/words.png --output-zooms try/words-zooms.png \
            --output-json try/words.json
    """

    from rnnsmt.analysis import representations as maps
    from rnnsmt.base.io import write_json

    model, pairs = _load_network(args.model, args.pairs)
    if args.of == "words":
        labelled, title = maps.word_vectors(model, pairs, args.sample), "{} source words"
    else:
        labelled, title = maps.phrase_vectors(model, pairs, args.sample, args.seed), "{} source phrases"
    if len(labelled.labels) < maps.FEW:
        say(f"warning: {len(labelled.labels)} {args.of} are too few to plot; the plot is empty")
    points = maps.plane(labelled.vectors, args.seed)
    zooms = maps.clusters(points)
    save(maps.draw_map(points, zooms, title.format(f"{len(points):,}")), args.output)
    save(maps.draw_zooms(points, labelled.labels, zooms), args.output_zooms)
    content = {
        "labels": labelled.labels,
        "points": [[round(float(x), 3), round(float(y), 3)] for x, y in points],
        "clusters": [rows.tolist() for rows in zooms],
    }
    write_json(args.output_json, content)
    return {"points": len(points), "dimensions": labelled.vectors.shape[1], "clusters": len(zooms)}


def report_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--table", required=True, metavar="FILE", help="output of `evaluation table --output-json`")
    add("--provenance", required=True, metavar="FILE", help="output of `evaluation provenance`")
    add("--figures", nargs="*", default=[], metavar="FILE", help="figures (SVG) to include in the page")
    add("--maps", nargs="*", default=[], metavar="FILE", help="output of `analysis embeddings --output-json`")
    add("--comparisons", nargs="*", default=[], metavar="FILE", help="output of `evaluation compare --output-json`")
    add("--examples", metavar="FILE", help="output of `analysis phrase-examples --output-json`")
    add("--overlap", metavar="FILE", help="output of `corpus overlap`, for a warning above the table")
    add("--logs", required=True, metavar="DIR", help="log directory, for the time and memory of every command")
    add("--output", required=True, metavar="FILE", help="output file (HTML)")


def report(args: argparse.Namespace) -> dict[str, object]:
    r"""Write all results of a run into one HTML page, which is self-contained (no other files, no network access).

    The page contains, in this order, Table 1 with the effects of the features (a click on a score shows its seeds,
    weights and hashes); figures; comparisons of systems sentence by sentence; phrase examples; maps of words and
    phrases; time and memory of every command; and the configuration.

    Example, in the directory of a run of the demo corpus:

        rnnsmt analysis report --table results/table1.json --provenance results/provenance.json \
            --logs results/logs --figures results/figures/learning-rnn.svg results/figures/mert.svg \
            --maps results/analysis/words.json --comparisons results/analysis/rnn.vs.baseline/harbour-test.json \
            --examples results/analysis/phrase-examples.json --overlap results/corpus/overlap.json \
            --output try/report.html
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
        overlap=args.overlap,
        logs=args.logs,
    )
