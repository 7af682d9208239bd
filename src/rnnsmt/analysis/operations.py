"""Operations that plot and tabulate results, and the report of a run.

A plotting operation returns the data of its figure, and draws it only if an output is given.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from rnnsmt.base.arguments import (
    InputDirectory,
    InputFile,
    InputFiles,
    OptionalOutput,
    OutputFile,
    Positive,
    Seed,
    SeveralTexts,
    Text,
    TextFiles,
    Texts,
    each,
)
from rnnsmt.base.fields import Field
from rnnsmt.base.operations import Written, operation
from rnnsmt.base.paths import StrPath
from rnnsmt.base.rendering import check_format

if TYPE_CHECKING:
    from rnnsmt.analysis.curves import BleuCurves, LearningCurves, TuningCurves
    from rnnsmt.analysis.phrase_pairs import PhraseExamples, PhraseSample
    from rnnsmt.analysis.representations import EmbeddingMap, SentenceVectors
    from rnnsmt.rnn.model import RNNEncoderDecoder
    from rnnsmt.rnn.pairs import Pairs

FigureFile = Annotated[OutputFile, Field(check=check_format)]

Figure = Annotated[
    FigureFile | Sequence[FigureFile] | None,
    Field(
        metavar="FILE",
        path="output",
        expected="a file (.png or .svg) or a list of them",
        several=True,
        required=True,
    ),
]
"""One file for each format of a figure; a Python caller may omit them."""

SOME = Field(min_length=1)


@operation(version=5)
def history_curves(
    history: Annotated[Mapping[str, Annotated[Sequence[InputFile], SOME]], SOME, Field(metavar="NAME=FILE")],
    output: Figure = None,
) -> "LearningCurves | TuningCurves":
    r"""Plot the histories of training or tuning runs, a plot for each network or system.

    Histories of `networks train`: the perplexity per word of training and held-out data against epochs. Histories of
    `tuning tune`: BLEU of the dev set against iterations, a line for each run; an orange line at the BLEU of the result
    spans the iterations whose weights are averaged.

    Example, in the directory of a run of the demo corpus:

        rnnsmt analysis history-curves \
            --history rnn=results/systems/rnn/run1/history.json rnn=results/systems/rnn/run2/history.json \
            --output try/mert.png

    Args:
        history: name of the network or system, and history (JSON) of each run.
        output: output files: the figure (.png or .svg).

    Returns:
        The curves of the runs by name: perplexities of networks, or BLEU of systems.

    Raises:
        InputError: a file is not a history, or there are histories of both training and tuning runs.
    """
    from rnnsmt.analysis.curves import draw_history_curves, read_histories
    from rnnsmt.base.rendering import save

    curves = read_histories(history)
    if output:
        save(draw_history_curves(curves), each(output))
    return curves


@operation(version=1)
def bleu_curves(
    hypothesis: Annotated[Mapping[str, Annotated[Sequence[Text], SOME]], SOME, Field(metavar="SYSTEM=FILE")],
    reference: SeveralTexts,
    source: Text,
    rank_text: Texts,
    output: Figure = None,
    output_json: OptionalOutput = None,
    *,
    groups: Positive = 8,
) -> "BleuCurves":
    r"""Plot BLEU against sentence length and word frequency rank.

    The keys are the length of the source sentences and the mean frequency rank of their words. As in Figure 3 of
    Sutskever et al. (2014), sentences are sorted and divided into groups of equal size, and corpus BLEU is computed for
    each group and averaged over the runs of a system. The most frequent word of ``rank_text`` has rank 1; all words
    that do not occur in it share the rank one above the number of its distinct words.

    Example, in the directory of a run of the demo corpus:

        rnnsmt analysis bleu-curves --reference results/corpus/tokenized/harbour-test.fr.gz \
            --source results/corpus/truecased/harbour-test.en.gz --rank-text results/corpus/joined/train.en.gz \
            --hypothesis baseline=results/systems/baseline/run1/harbour-test.tokens \
            cslm_rnn=results/systems/cslm_rnn/run1/harbour-test.tokens \
            --output try/bleu-curves.png --output-json try/bleu-curves.json

    Args:
        hypothesis: system name and tokenised output of each run.
        reference: tokenised reference; give several files for multiple references.
        source: tokenised source text.
        rank_text: tokenised source-language text for word frequencies.
        output: output files: the figure (.png or .svg).
        output_json: output file: the plotted values (JSON).
        groups: number of groups of sentences, of about equal size.

    Returns:
        The plotted values.

    Raises:
        InputError: the texts are empty or differ in length.
    """
    import numpy as np

    from rnnsmt.analysis.curves import LENGTH, RANK, BleuCurves, curve, draw_bleu_curves, groups_by, mean_ranks
    from rnnsmt.base.reading import read_lines, read_references, words_of
    from rnnsmt.base.rendering import save
    from rnnsmt.base.writing import write_json
    from rnnsmt.bleu.batch import corpus_statistics

    with TextFiles() as files:
        translations = files.each_of("reference", reference)
        sentences, references = read_references(files.of("source", source), translations)
        statistics = {
            name: [
                corpus_statistics(
                    read_references(files.of(f"hypothesis {name.replace('/', '_')} {number}", run), translations)[0],
                    references,
                )
                for number, run in enumerate(runs, 1)
            ]
            for name, runs in hypothesis.items()
        }
        ranked = files.all_of("rank_text", rank_text)
        ranks = mean_ranks(sentences, (line for path in ranked for line in read_lines(path)))
    lengths = np.array([float(len(words_of(line))) or np.nan for line in sentences])
    curves = {
        value: {name: curve(numbers, groups_by(numbers, groups), runs) for name, runs in statistics.items()}
        for value, numbers in ((LENGTH, lengths), (RANK, ranks))
    }
    if output:
        save(draw_bleu_curves(curves), each(output))
    if output_json is not None:
        write_json(output_json, curves)
    return BleuCurves(curves, len(sentences))


@operation(version=1)
def sentence_vectors(
    model: InputFile, sentences: Text, output: Figure = None, output_json: OptionalOutput = None
) -> "SentenceVectors":
    r"""Plot LSTM sentence vectors in two dimensions.

    The figure corresponds to Figure 2 of Sutskever et al. (2014). The vector of a sentence is the state of the last
    encoder layer of an LSTM encoder-decoder after reading the sentence. Each group of sentences is projected onto its
    first two principal components. A warning lists the words that are not in the vocabulary.

    Example, in the directory of a run of the demo corpus:

        rnnsmt analysis sentence-vectors --model try/lstm.safetensors --sentences try/sentences.en \
            --output try/sentence-vectors.png --output-json try/sentence-vectors.json

    Args:
        model: model file written by `networks train`.
        sentences: tokenised sentences, one per line, in groups separated by empty lines.
        output: output files: the figure (.png or .svg).
        output_json: output file: the plotted values (JSON).

    Returns:
        The plotted values.

    Raises:
        InputError: there are no sentences, or a group has fewer than three sentences or the same sentence twice.
    """
    from rnnsmt.analysis.representations import (
        SentenceVectors,
        draw_sentence_vectors,
        principal_components,
        read_groups,
        vectors_of,
    )
    from rnnsmt.base.progress import warn
    from rnnsmt.base.reading import read_lines, words_of
    from rnnsmt.base.rendering import save
    from rnnsmt.base.writing import write_json

    with TextFiles() as files:
        path = files.of("sentences", sentences)
        groups = read_groups(read_lines(path), path)

    from rnnsmt.seq2seq.model import load_model

    trained = load_model(model)
    plots = []
    for group in groups:
        split = [words_of(sentence) for sentence in group]
        unknown = sorted({word for words in split for word in words if word not in trained.source.index})
        if unknown:
            warn(f"not in the vocabulary of the network: {', '.join(unknown)}")
        points, shares = principal_components(vectors_of(trained, split))
        plots.append({"sentences": group, "points": points.tolist(), "variance": shares.tolist(), "unknown": unknown})
    if output:
        save(draw_sentence_vectors(plots), each(output))
    if output_json is not None:
        write_json(output_json, {"groups": plots})
    return SentenceVectors(plots)


@operation(version=3)
def score_scatter(
    pairs: InputFile,
    table_scores: InputFile,
    scores: InputFiles,
    output: Figure = None,
    *,
    sample: Positive = 20_000,
    seed: Seed = 1,
) -> "PhraseSample":
    r"""Plot network against phrase table scores (Figure 3 of the paper).

    The table score is log p(target | source), the direct phrase probability, which is the third score in Moses format.
    The pairs are a random sample of the table. Colours show how often a pair was extracted, if the table has counts.

    Example, in the directory of a run of the demo corpus:

        rnnsmt analysis score-scatter --pairs results/phrases/pairs.safetensors \
            --table-scores results/phrases/scores.safetensors \
            --scores results/columns/rnn/network1/1-of-2.safetensors results/columns/rnn/network1/2-of-2.safetensors \
            --sample 20000 --output try/scores.png

    Args:
        pairs: phrase pairs, written by `phrases extract` or `phrases import-table`.
        table_scores: output of `phrases score`, or scores of an imported table.
        scores: scores of the pairs by the network, written by `phrases column`, in consecutive shards.
        output: output files: the figure (.png or .svg).
        sample: maximum number of phrase pairs in the sample.

    Returns:
        The sample, with both scores and counts.

    Raises:
        InputError: a file is malformed or has scores of other pairs, or the table does not have Moses' scores.
    """
    from rnnsmt.analysis.phrase_pairs import ScoredPairs, draw_sample, draw_score_scatter
    from rnnsmt.base.rendering import save

    drawn = draw_sample(ScoredPairs(pairs, table_scores, each(scores)), sample, seed)
    if output:
        save(draw_score_scatter(drawn), each(output))
    return drawn


@operation(version=3)
def phrase_examples(
    pairs: InputFile,
    table_scores: InputFile,
    scores: InputFiles,
    model: InputFile,
    vocabularies: InputDirectory,
    output_json: OptionalOutput = None,
    output_md: OptionalOutput = None,
    *,
    number: Positive = 5,
    targets: Positive = 3,
    top: Positive = 5,
    draws: Positive = 50,
    seed: Seed = 1,
) -> "PhraseExamples":
    r"""List the best targets of long phrases (Tables 2 and 3 of the paper).

    The lists are the best targets of a source phrase by table and by network score, and the best targets sampled from
    the network. Source phrases are drawn at random from those with more than three words and at least ``targets``
    targets: frequent phrases from the 1 % with the highest counts, rare phrases from the 10 % with the lowest counts.

    Example, in the directory of a run of the demo corpus:

        rnnsmt analysis phrase-examples --pairs results/phrases/pairs.safetensors \
            --table-scores results/phrases/scores.safetensors \
            --scores results/columns/rnn/network1/1-of-2.safetensors results/columns/rnn/network1/2-of-2.safetensors \
            --model results/rnn/network1/model.safetensors --vocabularies results/rnn/vocabularies --number 5 \
            --draws 50 --output-json try/examples.json --output-md try/examples.md

    Args:
        pairs: phrase pairs, written by `phrases extract` or `phrases import-table`.
        table_scores: output of `phrases score`, or scores of an imported table.
        scores: scores of the pairs by the network, written by `phrases column`, in consecutive shards.
        model: model file written by `networks train`.
        vocabularies: directory written by `networks prepare --network rnn`.
        output_json: output file (JSON).
        output_md: output file (Markdown).
        number: number of frequent and of rare source phrases to list.
        targets: minimum number of targets of a source phrase.
        top: number of targets to list per source phrase.
        draws: number of samples from the network per source phrase.

    Returns:
        The examples.

    Raises:
        InputError: a file is malformed or has scores of other pairs, the table lacks counts, or the network was trained
            on other pairs.
    """
    from rnnsmt.analysis import phrase_pairs as examples
    from rnnsmt.base.progress import warn
    from rnnsmt.base.rendering import write_page
    from rnnsmt.base.writing import write_json

    network, trained_on = _load_network(model, pairs, vocabularies)
    scored = examples.ScoredPairs(pairs, table_scores, each(scores))
    phrases = examples.long_phrases(scored, targets)
    if not phrases:
        more = f"more than {examples.MORE_WORDS_THAN} words and at least {targets} targets"
        warn(f"{pairs} contains no source phrase with {more}; the output tables are empty")
    frequent, rare = examples.choose(phrases, number, seed)
    listed = examples.examples_of(
        scored, [*frequent, *rare], network, trained_on.vocabularies, top=top, draws=draws, seed=seed
    )
    found = examples.PhraseExamples(listed[: len(frequent)], listed[len(frequent) :])
    groups = found._asdict()
    if output_json is not None:
        write_json(output_json, {name: [example._asdict() for example in group] for name, group in groups.items()})
    if output_md is not None:
        write_page(output_md, "rnnsmt.analysis", "phrase-examples.md.j2", **groups, draws=draws)
    return found


@operation(version=3)
def embeddings(
    model: InputFile,
    pairs: InputFile,
    vocabularies: InputDirectory,
    output: Figure = None,
    output_zooms: Figure = None,
    output_json: OptionalOutput = None,
    *,
    of: Literal["words", "phrases"],
    sample: Positive = 5000,
    seed: Seed = 1,
) -> "EmbeddingMap":
    r"""Plot words or phrases in two dimensions (Figures 4 and 5 of the paper).

    The points are the word embeddings of the network, or the vectors c of source phrases, projected by Barnes-Hut t-SNE
    (van der Maaten 2013). The outputs are the whole map, and enlarged views of clusters found by HDBSCAN (Campello et
    al. 2013). The sample of phrases and t-SNE depend on ``seed``.

    Example, in the directory of a run of the demo corpus:

        rnnsmt analysis embeddings --of words --model results/rnn/network1/model.safetensors \
            --pairs results/phrases/pairs.safetensors --vocabularies results/rnn/vocabularies \
            --sample 2000 --output try/words.png --output-zooms try/words-zooms.png \
            --output-json try/words.json

    Args:
        model: model file written by `networks train`.
        pairs: phrase pairs, written by `phrases extract` or `phrases import-table`.
        vocabularies: directory written by `networks prepare --network rnn`.
        output: output files: the figure (.png or .svg).
        output_zooms: output files: enlarged views of the clusters (.png or .svg).
        output_json: output file: points, labels and clusters (JSON).
        of: plot source words, or source phrases of four or more words.
        sample: maximum number of points: the most frequent words, or phrases drawn at random.

    Returns:
        Labels, points and clusters.

    Raises:
        InputError: the network was trained on other pairs.
    """
    from rnnsmt.analysis import representations as maps
    from rnnsmt.base.progress import warn
    from rnnsmt.base.rendering import save
    from rnnsmt.base.writing import write_json

    network, trained_on = _load_network(model, pairs, vocabularies)
    if of == "words":
        labelled, title = maps.word_vectors(network, trained_on, sample), "{} source words"
    else:
        labelled, title = maps.phrase_vectors(network, trained_on, sample, seed), "{} source phrases"
    if len(labelled.labels) < maps.FEW:
        warn(f"{len(labelled.labels)} {of} are too few to plot; the plot is empty")
    points = maps.plane(labelled.vectors, seed)
    drawn = maps.EmbeddingMap(labelled.labels, points, maps.clusters(points), labelled.vectors.shape[1])
    if output:
        save(maps.draw_map(points, drawn.clusters, title.format(f"{len(points):,}")), each(output))
    if output_zooms:
        save(maps.draw_zooms(points, labelled.labels, drawn.clusters), each(output_zooms))
    if output_json is not None:
        write_json(output_json, drawn.content())
    return drawn


@operation(version=8)
def report(
    table: InputFile,
    provenance: InputFile,
    logs: InputDirectory,
    output: OutputFile,
    *,
    figures: InputFiles = (),
    maps: InputFiles = (),
    comparisons: InputFiles = (),
    examples: InputFile | None = None,
    overlap: InputFile | None = None,
    jobs: Annotated[Sequence[str], Field(metavar="NAME")] = (),
) -> Written:
    r"""Write an HTML page with all results of a run.

    The page is self-contained (no other files, no network access). It contains, in this order, Table 1 with the effects
    of the features (a click on a score shows its seeds, weights and hashes); figures; comparisons of systems sentence
    by sentence; phrase examples; maps of words and phrases; time and memory of every command; and the configuration.

    Example, in the directory of a run of the demo corpus:

        rnnsmt analysis report --table results/table1.json --provenance results/provenance.json \
            --logs results/logs --figures results/figures/learning-rnn.svg results/figures/mert.svg \
            --maps results/analysis/words.json --comparisons results/analysis/rnn.vs.baseline/harbour-test.json \
            --examples results/analysis/phrase-examples.json --overlap results/corpus/overlap.json \
            --output try/report.html

    Args:
        table: output of `evaluation table --output-json`.
        provenance: output of `evaluation provenance`.
        logs: log directory, for the time and memory of every command.
        output: output file (HTML).
        figures: figures (SVG) to include in the page.
        maps: output of `analysis embeddings --output-json`.
        comparisons: output of `evaluation compare --output-json`.
        examples: output of `analysis phrase-examples --output-json`.
        overlap: output of `corpus overlap`, for a warning above the table.
        jobs: logs to read, by name below the log directory and without suffix (`rnn/train.1`); default: all.

    Returns:
        The page; its figures are the numbers of figures, comparisons and bytes.
    """
    from rnnsmt.analysis.report_page import write_report

    written = write_report(
        output,
        table=table,
        provenance=provenance,
        figures=each(figures),
        maps=each(maps),
        comparisons=each(comparisons),
        examples=examples,
        overlap=overlap,
        logs=logs,
        jobs=jobs,
    )
    return Written(Path(output), written)


def _load_network(path: StrPath, pairs_file: StrPath, vocabularies: StrPath) -> "tuple[RNNEncoderDecoder, Pairs]":
    """Load a network on the CPU, and open the phrase pairs with the word ids of its vocabularies."""
    from rnnsmt.networks.devices import set_up_device
    from rnnsmt.rnn.model import load_model_of
    from rnnsmt.rnn.pairs import Pairs

    pairs = Pairs.open(pairs_file, vocabularies)
    return load_model_of(pairs.vocabularies, vocabularies, path, set_up_device("cpu", 1)), pairs
