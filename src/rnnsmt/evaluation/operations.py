"""Operations that score output, compare systems and write Table 1."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rnnsmt.base.arguments import (
    THREADS,
    InputFile,
    InputFiles,
    OptionalOutput,
    OptionalOutputs,
    OutputFile,
    OutputFiles,
    Positive,
    SeveralTexts,
    Text,
    TextFiles,
    Threads,
    each,
)
from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import Field
from rnnsmt.base.operations import Values, Written, operation
from rnnsmt.base.paths import StrPath
from rnnsmt.config.features import PAPER_FEATURES, label
from rnnsmt.config.languages import Language
from rnnsmt.config.sections import Device, Evaluation, Metrics, Rnn

if TYPE_CHECKING:
    from pandas import DataFrame

    from rnnsmt.evaluation.scores import Score, Scores


def _joint(text: str) -> tuple[str, list[str]]:
    name, _, parts = text.partition("=")
    if not name or not parts:
        raise ValueError("must be NAME=A+B, for example both=test_2016+test_2017")
    return name, parts.split("+")


def _features(text: str) -> tuple[str, list[str]]:
    system, equals, names = text.partition("=")
    added = names.split("+") if names else []
    if not system or not equals or "" in added:
        raise ValueError(f"must be SYSTEM=A+B, where A and B are features, such as {', '.join(PAPER_FEATURES)}")
    return system, added


def _network(text: str) -> tuple[str, tuple[str, str]]:
    parts = text.split("=")
    if len(parts) != 3:
        raise ValueError("must be NAME=MODEL=HISTORY, for example rnn=model.safetensors=history.json")
    return parts[0], (parts[1], parts[2])


Joint = Annotated[
    Mapping[str, Sequence[str]],
    Field("additional test set NAME: test sets A and B scored as one corpus", metavar="NAME=A+B", parse=_joint,
          several=True),
]  # fmt: skip


def _read_scores(paths: Sequence[StrPath], joint: Mapping[str, Sequence[str]] | None) -> "Scores":
    """Return the scores, including those of joint test sets."""
    from rnnsmt.evaluation.scores import add_joint, group, read_score

    scores = group(map(read_score, paths))
    for name, parts in (joint or {}).items():
        add_joint(scores, name, parts)
    return scores


@dataclass(frozen=True)
class Table:
    """Table 1.

    Attributes:
        records: rows; a row has its values by column name.
        contrast_records: contrasts; a contrast has its values by column name.
        figures: numbers of systems, rows and score files.
    """

    records: list[dict[str, Any]]
    contrast_records: list[dict[str, Any]]
    figures: Mapping[str, object]

    @cached_property
    def rows(self) -> "DataFrame":
        """The rows as a data frame: system, test set, BLEU, other metrics, differences, intervals and p-values."""
        from pandas import DataFrame

        return DataFrame(self.records)

    @cached_property
    def contrasts(self) -> "DataFrame":
        """The gain from each feature in each system as a data frame."""
        from pandas import DataFrame

        return DataFrame(self.contrast_records)


@dataclass(frozen=True)
class ComparedSystems:
    """Comparison of two systems.

    Attributes:
        content: content of the JSON output.
        gains: smoothed sentence BLEU of the second system minus that of the first, for every sentence.
        figures: number of sentences, difference in BLEU, and numbers of better and worse sentences.
    """

    content: Mapping[str, Any]
    gains: Sequence[float]
    figures: Mapping[str, object]

    @cached_property
    def groups(self) -> "DataFrame":
        """BLEU of both systems in groups of sentences as a data frame; ``by`` is the property that defines a group."""
        from pandas import DataFrame

        return DataFrame([{"by": kind, **row} for kind, rows in self.content["groups"].items() for row in rows])

    @cached_property
    def examples(self) -> "DataFrame":
        """The sentences with the largest gains and losses as a data frame."""
        from pandas import DataFrame

        return DataFrame([row for rows in self.content["examples"].values() for row in rows])


@dataclass(frozen=True)
class OracleBleu:
    """Oracle BLEU of n-best lists, in percent.

    Attributes:
        first: BLEU of the first translations.
        oracles: BLEU of both oracles for lists of each size, last for the whole lists (size None).
        translations: translations that the corpus-level oracle selects from the whole lists.
        figures: BLEU of the first translations and of both oracles.
    """

    first: float
    oracles: list[dict[str, Any]]
    translations: list[str]
    figures: Mapping[str, object]


@operation(version=8)
def score(
    hypothesis: SeveralTexts,
    reference: SeveralTexts,
    output: OptionalOutputs = None,
    *,
    system: Annotated[str, Field(metavar="NAME", required=True)] = "system",
    test_set: Annotated[str | Sequence[str], Field(metavar="NAME", several=True, required=True)] = "test",
    run: Positive = 1,
    detok_hypothesis: SeveralTexts | None = None,
    detok_reference: SeveralTexts | None = None,
    detokenize: bool = False,
    detruecase: bool = True,
    lang: Language | None = None,
    lowercase: bool = False,
    metrics: Metrics = Evaluation.metrics,
    decode_report: InputFiles | None = None,
    output_tokens: OutputFiles | None = None,
    output_detokenized: OutputFiles | None = None,
) -> "Values[Score]":
    r"""Score output: tokenised BLEU as in multi-bleu.perl; sacreBLEU, chrF, TER and others on detokenised text.

    Inputs are tokenised outputs and one or more tokenised references, and optionally the detokenised outputs with
    untokenised references and the reports of the decoder. Every output (JSON) is a score file for `evaluation table`.
    With ``lowercase``, the sacreBLEU signature contains `case:lc`; tokenised BLEU is always case-sensitive.

    With ``detokenize=True``, ``hypothesis`` is the output of the decoder. It is detruecased for tokenised BLEU, and
    also detokenised for the other metrics, as by `corpus detokenize`; the two texts can be written to
    ``output_tokens`` and ``output_detokenized``.

    Several runs and test sets of a system can be scored in one call. Then ``hypothesis`` has first one file per
    ``test_set`` for the first run, then one file per ``test_set`` for the second run, and so on. The files of
    ``output`` and of other options with one file per hypothesis have the same order.

    Examples, in the directory of a run of the demo corpus:

        rnnsmt evaluation score --hypothesis results/systems/rnn/run1/harbour-test.tokens \
            --reference results/corpus/tokenized/harbour-test.fr.gz \
            --detok-hypothesis results/systems/rnn/run1/harbour-test.detokenized \
            --detok-reference results/corpus/raw/harbour-test.fr.gz --system rnn --test-set harbour-test \
            --run 1 --output try/rnn.run1.json
        rnnsmt evaluation score --hypothesis results/systems/rnn/run1/harbour-test.output \
            results/systems/rnn/run2/harbour-test.output --detokenize --lang fr \
            --reference results/corpus/tokenized/harbour-test.fr.gz \
            --detok-reference results/corpus/raw/harbour-test.fr.gz --system rnn --test-set harbour-test \
            --output try/rnn.run1.json try/rnn.run2.json

    Args:
        hypothesis: tokenised output, one sentence per line.
        reference: tokenised reference; several files are several references of one test set or, with several
            ``test_set``, the same number of references for each, in the order of the test sets.
        output: output files: scores (JSON).
        system: name of the system, for example baseline.
        test_set: name of the test set, or names of several.
        run: number of the first tuning run (1-based).
        detok_hypothesis: detokenised output for sacreBLEU and ``metrics``.
        detok_reference: untokenised reference, for sacreBLEU and ``metrics``; several files as for ``reference``.
        detokenize: detruecase and detokenise the output; requires ``lang`` and ``detok_reference``.
        detruecase: capitalise the first word of a sentence, with ``detokenize``.
        lang: language of the output, two-letter code; selects sacreBLEU's tokeniser (default: 13a).
        lowercase: ignore case in sacreBLEU, chrF and chrF++; TER always ignores it.
        decode_report: reports of `search decode` (JSON), which are copied into the score files.
        output_tokens: output files of ``detokenize``: detruecased output.
        output_detokenized: output files of ``detokenize``: detokenised output.

    Returns:
        The scores of each file of ``hypothesis``: ``bleu`` (BLEU, precisions, brevity penalty and lengths),
        ``sacrebleu`` and ``metrics``.

    Raises:
        InputError: the texts are empty or differ in length, the numbers of files do not match, or the output contains
            the phrase boundaries that Moses writes with -t.
    """
    from rnnsmt.base.reading import read_lines
    from rnnsmt.base.writing import write_lines
    from rnnsmt.corpus.detokenizer import Detokenizer
    from rnnsmt.evaluation.scores import score_output, write_score

    names = each(test_set)
    with TextFiles() as files:
        texts: dict[str, list[Any]] = {"--hypothesis": files.each_of("hypothesis", hypothesis)}
        count, runs = len(texts["--hypothesis"]), len(texts["--hypothesis"]) // len(names)
        if detokenize:
            if lang is None or detok_reference is None or detok_hypothesis is not None:
                raise InputError("--detokenize requires --lang and --detok-reference, without --detok-hypothesis")
            made = [[files.directory / f"{kind} {number}" for number in range(count)] for kind in ("tokens", "text")]
            texts["--output-tokens"] = [str(path) for path in each(output_tokens) or made[0]]
            texts["--output-detokenized"] = [str(path) for path in each(output_detokenized) or made[1]]
        elif (detok_hypothesis is None) != (detok_reference is None):
            raise InputError("--detok-hypothesis and --detok-reference must be used together")
        elif output_tokens is not None or output_detokenized is not None:
            raise InputError("--output-tokens and --output-detokenized require --detokenize")
        elif detok_hypothesis is not None:
            texts["--detok-hypothesis"] = files.each_of("detok_hypothesis", detok_hypothesis)
        references = files.each_of("reference", reference)
        plain_references = [] if detok_reference is None else files.each_of("detok_reference", detok_reference)
        texts |= {"--output": each(output) or [None] * count, "--decode-report": each(decode_report) or [None] * count}
        _check_numbers(texts, len(names), references, plain_references)
        found: dict[int, Score] = {}
        for place, name in enumerate(names):  # set by set, because equal segments of runs are cached
            of_set = [paths[place * len(paths) // len(names) : (place + 1) * len(paths) // len(names)]
                      for paths in (references, plain_references)]  # fmt: skip
            for number in range(runs):
                index = number * len(names) + place
                tokens, plain = texts["--hypothesis"][index], texts.get("--detok-hypothesis", [None] * count)[index]
                if detokenize:
                    decoded = list(read_lines(tokens))
                    tokens, plain = texts["--output-tokens"][index], texts["--output-detokenized"][index]
                    for path, joined in ((tokens, False), (plain, True)):
                        recase = Detokenizer(lang or "", detruecase, joined)
                        write_lines(path, map(recase, decoded))
                found[index] = score_output(
                    system,
                    name,
                    run + number,
                    tokens,
                    of_set[0],
                    plain,
                    of_set[1] or None,
                    lowercase,
                    texts["--decode-report"][index],
                    lang,
                    metrics,
                )
                if texts["--output"][index] is not None:
                    write_score(texts["--output"][index], found[index])
    scored = [found[index] for index in range(count)]
    return Values(scored, _figures(scored))


def _check_numbers(
    of_each: Mapping[str, Sequence[object]], sets: int, references: Sequence[str], plain_references: Sequence[str]
) -> None:
    """Check the numbers of files of ``score``; ``of_each`` has, by option, one file for each output."""
    count = len(of_each["--hypothesis"])
    for name, paths in of_each.items():
        if len(paths) != count or count % sets:
            raise InputError(
                f"{name}: {len(paths)} files, but {count} --hypothesis and {sets} --test-set; specify one file per "
                "test set for the first run, then for the second run, and so on"
            )
    for name, paths in (("--reference", references), ("--detok-reference", plain_references)):
        if len(paths) % sets:
            raise InputError(f"{name}: {len(paths)} files for {sets} --test-set; specify as many for each")


def _figures(scores: "Sequence[Score]") -> dict[str, Any]:
    """Log BLEU, and return figures for the last line of the log: all scores of a single output, or mean BLEU by set."""
    from rnnsmt.base.progress import say
    from rnnsmt.registries import METRICS

    for one in scores:
        say(f"{one.system}, {one.test_set}, run {one.run}: {one.bleu}")
    if len(scores) > 1:
        by_set: dict[str, list[float]] = {}
        for one in scores:
            by_set.setdefault(one.test_set, []).append(one.bleu.bleu)
        means = {f"{name} BLEU": sum(values) / len(values) for name, values in by_set.items()}
        return {"runs": len(scores) // len(by_set), **means}
    (only,) = scores
    figures: dict[str, Any] = {"segments": only.segments, "BLEU": only.bleu.bleu}
    if only.sacrebleu is not None:
        figures["sacreBLEU"] = only.sacrebleu.score
        figures |= {METRICS[name].label: metric.score for name, metric in only.metrics.items()}
        figures["signature"] = only.sacrebleu.signature
    return figures


@operation(version=15)
def table(
    scores: InputFiles,
    output_tsv: OptionalOutput = None,
    output_md: OptionalOutput = None,
    output_html: OptionalOutput = None,
    *,
    joint: Joint | None = None,
    output_contrasts: OutputFile | None = None,
    output_json: OutputFile | None = None,
    provenance: Annotated[str, Field(metavar="ADDRESS")] | None = None,
    features: Annotated[Mapping[str, Sequence[str]], Field(metavar="SYSTEM=A+B", parse=_features, several=True)]
    | None = None,
    trainings: Positive = 1,
    title: Annotated[str, Field(metavar="TEXT")] = "Table 1: BLEU",
    tuning: Annotated[str, Field(metavar="TEXT")] = "",
    history: InputFiles = (),
    paper: bool = False,
    dev_set: Annotated[Sequence[str], Field(metavar="NAME")] = ("dev", "val"),
    metrics: Metrics = Evaluation.metrics,
) -> Table:
    r"""Write Table 1 from the score files of all runs: one row per system and test set, and the gain from each feature.

    Systems are listed in the order of their score files. TSV and JSON contain all numbers; Markdown and the
    self-contained HTML page contain a table for each test set, with differences to the baseline. Significance tests
    compare every system with the baseline and with every system that lacks exactly one of its features (for example
    cslm_rnn with rnn and with cslm). The features of a system are specified by ``features`` or by its name.

    Example, in the directory of a run of the demo corpus:

        rnnsmt evaluation table --features baseline= rnn=rnn --scores \
            results/systems/baseline/run1/harbour-test.bleu.json \
            results/systems/baseline/run2/harbour-test.bleu.json \
            results/systems/rnn/run1/harbour-test.bleu.json results/systems/rnn/run2/harbour-test.bleu.json \
            --output-tsv try/table.tsv --output-contrasts try/contrasts.tsv --output-json try/table.json \
            --output-md try/table.md --output-html try/table.html

    Args:
        scores: score files of `evaluation score`.
        output_tsv: output file: table (TSV).
        output_md: output file: table (Markdown).
        output_html: output file: table (HTML).
        output_contrasts: output file: gain from each feature in each system (TSV).
        output_json: output file: table, contrasts and descriptions of the columns (JSON).
        provenance: link to the output of `evaluation provenance`, relative to the HTML page.
        features: features that each system adds to the baseline (default: derived from the system name; cslm_rnn adds
            cslm and rnn).
        trainings: number of training runs per network; tuning run i uses training run (i - 1) mod N + 1.
        title: title of the pages.
        tuning: how the systems were tuned, for the notes.
        history: histories that `tuning tune` wrote, in the directories of the score files; systems with runs whose dev
            BLEU is below that of the initial weights are marked.
        paper: also show the paper's English-French results.
        dev_set: names of the dev sets, which come first and are compared with the paper's dev results.

    Returns:
        The table, and the gain from each feature, as data frames.

    Raises:
        InputError: a file is not a score file, a score file is specified twice, or the scores of a test set come from
            different runs, texts or settings.
    """
    from rnnsmt.base.progress import say
    from rnnsmt.evaluation.render import write_tables
    from rnnsmt.evaluation.rows import (
        columns,
        contrast_columns,
        runs_below_start,
        table_of,
        write_table_json,
        write_tsv,
    )

    read = _read_scores(each(scores), joint)
    rows, contrasts = table_of(read, dev_set, joint or {}, features, paper, trainings, metrics)
    below_start = runs_below_start(read, map(str, each(history)))
    for row in rows:
        row["below_start"] = below_start.get(row["system"])
    if output_tsv is not None:
        write_tsv(output_tsv, rows, columns(tuple(metrics)), paper)
    write_tables(
        output_md, output_html, rows, contrasts, dev_set,
        paper=paper, title=title, tuning=tuning, provenance=provenance,
    )  # fmt: skip
    if output_contrasts is not None:
        write_tsv(output_contrasts, contrasts, contrast_columns(tuple(metrics)), paper)
    if output_json is not None:
        write_table_json(output_json, rows, contrasts, paper, tuple(metrics))
    for row in rows:
        runs = " ".join(f"{bleu:.2f}" for bleu in row["bleu_runs"])
        say(f"{label(row['system'])}, {row['test_set']}: BLEU {row['bleu']:.2f} ({runs})")
    systems = {row["system"] for row in rows}
    figures = {"systems": len(systems), "rows": len(rows), "score files": len(each(scores))}
    return Table(rows, contrasts, figures)


@operation(version=4)
def compare(
    reference: SeveralTexts,
    baseline: SeveralTexts,
    hypothesis: SeveralTexts,
    output_json: OptionalOutput = None,
    output_md: OptionalOutput = None,
    *,
    names: Annotated[tuple[str, str], Field(metavar=("BASELINE", "SYSTEM"))] = ("baseline", "system"),
    trainings: Annotated[tuple[Positive, Positive], Field(metavar=("BASELINE", "SYSTEM"))] = (1, 1),
    shared_networks: bool = False,
    source: Text | None = None,
    details: Annotated[tuple[InputFile, InputFile], Field(metavar=("BASELINE", "SYSTEM"))] | None = None,
    ini: InputFile | None = None,
    model_dir: Annotated[InputFile, Field(metavar="DIR")] | None = None,
    columns: Annotated[Sequence[str], Field(metavar="NAME")] = (),
    examples: Positive = 10,
    device: Device = Rnn.device,
    threads: Threads = THREADS,
) -> ComparedSystems:
    r"""Compare two systems sentence by sentence: BLEU with significance tests, groups of sentences, gains and losses.

    Only the reference and the outputs are required. Further inputs add to the comparison:

    * ``source``: BLEU by source sentence length;
    * ``details``: BLEU by mean phrase length, and the phrase pairs used by only one of the systems;
    * ``ini``: BLEU by number of unknown words; the numbers of phrase pairs used by only one system, by extraction count
      and by length; and the contribution of each feature to the choice of the translation. A contribution is the weight
      in ``ini`` times the difference of the feature values of the two translations. It is computed for the sentences
      whose ``baseline`` translation can be derived with the phrase table of ``ini``.

    BLEU, also of groups of sentences, is the mean over all runs. Example sentences, phrase pairs and contributions are
    those of the first run of each system. Gains and losses are differences of smoothed sentence BLEU.

    Example, in the directory of a run of the demo corpus:

        rnnsmt evaluation compare --names Baseline RNN --reference results/corpus/tokenized/harbour-test.fr.gz \
            --baseline results/systems/baseline/run1/harbour-test.tokens \
            results/systems/baseline/run2/harbour-test.tokens \
            --hypothesis results/systems/rnn/run1/harbour-test.tokens results/systems/rnn/run2/harbour-test.tokens \
            --source results/corpus/truecased/harbour-test.en.gz --details \
            results/systems/baseline/run1/harbour-test.details results/systems/rnn/run1/harbour-test.details \
            --ini results/systems/rnn/run1/moses.ini --model-dir results/augmented/rnn/network1/selected/all \
            --columns rnn --output-json try/compare.json --output-md try/compare.md

    Args:
        reference: tokenised reference; give several files for multiple references.
        baseline: tokenised output of the first system, one file per run.
        hypothesis: tokenised output of the second system, one file per run, in the same number as ``baseline``.
        names: display names of the systems.
        trainings: number of training runs per network of each system; tuning run i uses training run
            (i - 1) mod N + 1.
        shared_networks: both systems use the same networks: pair the significance test by training run (no effect with
            one training run).
        source: tokenised source text: the input of the decoder.
        details: output of `search decode --output-details` for the first run of each system; requires ``source``.
        ini: tuned moses.ini of the first run of the second system, for feature contributions; requires ``details``.
        model_dir: directory in which model files are looked up by base name before the paths in moses.ini are used.
        columns: names of the additional phrase table scores, from the fifth on.
        examples: number of sentences to show with the largest gains, and with the largest losses.
        output_json: output file (JSON).
        output_md: output file (Markdown).

    Returns:
        The content of the output, gains of all sentences, and data frames of the groups and examples.

    Raises:
        InputError: the texts are empty or differ in length, the systems have different numbers of runs, or an argument
            that another one requires is missing.
    """
    from rnnsmt.base.reading import read_references
    from rnnsmt.base.writing import write_json
    from rnnsmt.evaluation.comparison import Comparison, write_comparison
    from rnnsmt.formats.ini import MosesIni
    from rnnsmt.search.model import load_model

    with TextFiles() as files:
        references = files.each_of("reference", reference)
        outputs = [files.each_of(name, texts) for name, texts in (("baseline", baseline), ("hypothesis", hypothesis))]
        runs = len(outputs[0])
        if runs != len(outputs[1]):
            raise InputError(
                f"{runs} --baseline and {len(outputs[1])} --hypothesis files; both systems must have the same number "
                "of runs"
            )
        if (details and source is None) or (ini and not details):
            raise InputError("--ini requires --details, and --details requires --source")
        if any(runs % number for number in trainings):
            raise InputError(
                f"--trainings: the number of tuning runs ({runs}) must be a multiple of the number of training runs"
            )
        if shared_networks and len(set(trainings)) > 1:
            raise InputError("--shared-networks: both systems must have the same number of --trainings")
        _, reference_texts = read_references(references[0], references)
        texts = [[list(read_references(path, references)[0]) for path in paths] for paths in outputs]
        comparison = Comparison(reference_texts, texts[0], texts[1], trainings, shared_networks)
        if source is not None:
            comparison.add_source(read_references(files.of("source", source), references)[0])
    if details:
        comparison.add_details(*map(str, details))
    if ini:
        read = MosesIni.read(ini)
        directory = None if model_dir is None else Path(model_dir)
        model = load_model(read, list(comparison.source or ()), directory, threads, device)
        comparison.add_model(model, model.weights(read), columns)
    content = {"baseline": names[0], "system": names[1], **comparison.content(examples)}
    if output_json is not None:
        write_json(output_json, content)
    if output_md is not None:
        write_comparison(output_md, content)
    figures = {"sentences": content["sentences"], "difference": content["difference"], **content["first run"]}
    return ComparedSystems(content, comparison.gains.tolist(), figures)


@operation(version=1)
def oracle(
    nbest: InputFile,
    reference: SeveralTexts,
    output: OptionalOutput = None,
    *,
    sizes: Annotated[Sequence[Positive], Field(metavar="N")] = (),
    output_text: OutputFile | None = None,
) -> OracleBleu:
    r"""Compute the oracle BLEU of n-best lists: the BLEU of the translations that are closest to the reference.

    The sentence-level oracle selects the translation with the highest smoothed sentence BLEU of every list. The
    corpus-level oracle replaces single translations as long as corpus BLEU increases; it is a lower bound on the best
    possible BLEU. The BLEU of the first translation of every list is computed as well.

    Example, in the directory of a run of the demo corpus:

        rnnsmt evaluation oracle --nbest try/dev.nbest --reference results/corpus/joined/truecased/dev.fr.gz \
            --sizes 1 10 --output try/oracle.json --output-text try/oracle.txt

    Args:
        nbest: n-best lists in Moses format, best translation first.
        reference: tokenised reference; give several files for multiple references.
        output: output file: BLEU (JSON).
        sizes: also compute the oracle BLEU of the first N translations of every list.
        output_text: output file: translations selected by the corpus-level oracle from the full n-best lists.

    Returns:
        BLEU of the first translations and of both oracles, and the selected translations.

    Raises:
        InputError: the references differ in length, or the lists have more sentences than the references.
    """
    from rnnsmt.base.progress import say
    from rnnsmt.base.reading import read_parallel
    from rnnsmt.base.writing import write_json, write_lines
    from rnnsmt.evaluation.oracles import oracles, read_nbest_texts

    with TextFiles() as files:
        references = list(zip(*read_parallel(*files.each_of("reference", reference)), strict=True))
    texts = read_nbest_texts(nbest, len(references[0]))
    first, results = oracles(texts, references, [*sizes, 0])
    whole = results[-1]
    found = [{"size": result.size or None, "sentence": result.sentence, "corpus": result.corpus} for result in results]
    if output is not None:
        translations = sum(map(len, texts))
        write_json(output, {"sentences": len(texts), "translations": translations, "first": first, "oracles": found})
    if output_text is not None:
        write_lines(output_text, whole.translations)
    for result in results[:-1]:
        say(
            f"oracle BLEU of the first {result.size} translations: sentence {result.sentence:.2f}, "
            f"corpus {result.corpus:.2f}"
        )
    figures = {"first BLEU": first, "sentence oracle BLEU": whole.sentence, "corpus oracle BLEU": whole.corpus}
    return OracleBleu(first, found, whole.translations, figures)


@operation(version=7)
def provenance(
    scores: InputFiles,
    output: OutputFile,
    *,
    joint: Joint | None = None,
    network: Annotated[
        Mapping[str, tuple[InputFile, InputFile]], Field(metavar="NAME=MODEL=HISTORY", parse=_network, several=True)
    ]
    | None = None,
    inputs: InputFiles = (),
    prepared: Annotated[InputFiles, Field(metavar="REPORT")] = (),
    ini: Annotated[InputFiles, Field(min_length=0)] | None = None,
    config: Annotated[Mapping[str, Any], Field(metavar="JSON", parse=json.loads)] | None = None,
    moses_home: Annotated[InputFile, Field(metavar="DIR")] | None = None,
) -> Written:
    r"""Record the provenance of the scores in Table 1: files with SHA-256, seeds, weights, settings and versions.

    The output (JSON) lists for every system, run and test set the score file and the files next to it (output,
    detokenised output), the tuned moses.ini with its weights and the files that it refers to, and the seed and the best
    iteration of tuning. It also lists the networks with their seeds and settings, the corpora, the configuration, the
    Moses programs if they were used, the versions of this package, of its commands and of its dependencies, and the
    commit if the package is a git checkout.

    The output contains no times or host names, so the same files give the same output. Hashing takes about one second
    per gigabyte.

    Example, in the directory of a run of the demo corpus:

        rnnsmt evaluation provenance --scores results/systems/rnn/run1/harbour-test.bleu.json \
            --output try/provenance.json

    Args:
        scores: score files of `evaluation score`.
        network: name, model file and training history (JSON) of each network.
        inputs: input files of the run (corpora, references and alignments).
        prepared: reports of `corpus prepare`; the command fails if an input file has changed since its report was
            written.
        ini: moses.ini of each tuned system and run; other moses.ini files next to the scores are ignored (default: no
            file is ignored).
        config: configuration of the run.
        moses_home: Moses installation directory, if ``config`` uses Moses.
        output: output file (JSON).

    Returns:
        The file; its figures are the numbers of scores, runs and files.

    Raises:
        InputError: a file is missing, not a score file, or was changed after its report was written.
    """
    from rnnsmt.base.writing import write_json
    from rnnsmt.evaluation.origins import FORMAT, Files, cells_and_runs, details_of_network, software, strings
    from rnnsmt.moses.installation import Installation, needs_of
    from rnnsmt.plan.validation import recorded_config
    from rnnsmt.registries import of_other_packages

    read = _read_scores(each(scores), joint)
    files = Files()
    programs = software()
    if moses_home is not None:
        if config is None:
            raise InputError("--moses-home requires --config")
        needs = needs_of(recorded_config(config))
        programs["software"]["moses"] = Installation(str(moses_home)).about(needs)
    if added := of_other_packages(set(strings(config))):
        programs["software"]["added by packages"] = added
    inis = None if ini is None else [str(path) for path in each(ini)]
    content = programs | {
        "config": config,
        "inputs": [files.add(path) for path in each(inputs)],
        "prepared": [files.add_as_read(path) for path in each(prepared)],
        "networks": {name: details_of_network(*paths, files) for name, paths in (network or {}).items()},
        **cells_and_runs(read, joint or {}, files, inis),
    }
    content = {"format": FORMAT, **content, "files": files.listing()}
    write_json(output, content)
    return Written(Path(output), {name: len(content[name]) for name in ("cells", "runs", "files")})
