"""Commands that score output, compare systems and write Table 1."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnsmt.base.io import InputError, read_lines, read_parallel, write_json, write_lines
from rnnsmt.base.options import positive
from rnnsmt.base.progress import say
from rnnsmt.config.features import FEATURES, label
from rnnsmt.config.languages import code_mistake

if TYPE_CHECKING:
    from rnnsmt.evaluation.scores import Score, Scores


def _joint(text: str) -> tuple[str, list[str]]:
    name, _, parts = text.partition("=")
    if not name or not parts:
        raise InputError(f"--joint {text}: must be NAME=A+B, for example both=test_2016+test_2017")
    return name, parts.split("+")


def _features(text: str) -> tuple[str, list[str]]:
    system, equals, names = text.partition("=")
    added = names.split("+") if names else []
    if not system or not equals or "" in added:
        raise InputError(
            f"--features {text}: must be SYSTEM=A+B, where A and B are features, such as {', '.join(FEATURES)}"
        )
    return system, added


def _add_reference(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reference", required=True, nargs="+", action="extend", metavar="FILE",
        help="tokenised reference; give several files for multiple references")  # fmt: skip


def _add_scores(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scores", required=True, nargs="+", metavar="FILE", help="score files of `evaluation bleu`")
    parser.add_argument("--joint", nargs="+", action="extend", default=[], metavar="NAME=A+B",
        help="additional test set NAME: test sets A and B scored as one corpus")  # fmt: skip


def _read_scores(args: argparse.Namespace) -> "tuple[Scores, dict[str, list[str]]]":
    """Return the scores, including those of joint test sets, and the parts of every joint test set."""
    from rnnsmt.evaluation.scores import add_joint, group, read_score

    scores, joint = group(map(read_score, args.scores)), dict(map(_joint, args.joint))
    for name, parts in joint.items():
        add_joint(scores, name, parts)
    return scores, joint


def bleu_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--hypothesis", required=True, metavar="FILE", help="tokenised output, one sentence per line")
    _add_reference(parser)
    add("--detok-hypothesis", metavar="FILE", help="detokenised output for sacreBLEU, chrF and TER")
    add("--detok-reference", nargs="+", action="extend", metavar="FILE",
        help="untokenised reference, for sacreBLEU, chrF and TER; give several files for multiple "
        "references")  # fmt: skip
    add("--lang", metavar="L",
        help="language of the output, two-letter code; selects sacreBLEU's tokeniser (default: 13a)")  # fmt: skip
    add("--lowercase", action="store_true", help="ignore case in sacreBLEU, chrF and chrF++")
    add("--system", required=True, metavar="NAME", help="name of the system, for example baseline")
    add("--test-set", required=True, metavar="NAME", help="name of the test set")
    add("--run", type=positive, default=1, dest="run_number", metavar="N", help="number of the tuning run (1-based)")
    add("--decode-report", metavar="FILE",
        help="report of `search decode` (JSON), which is copied into the score file")  # fmt: skip
    add("--output", required=True, metavar="FILE", help="output file: scores (JSON)")


def bleu(args: argparse.Namespace) -> dict[str, object]:
    r"""Score one output: tokenised BLEU as in multi-bleu.perl; sacreBLEU, chrF and TER on detokenised text.

    Inputs are the tokenised output and one or more tokenised references, and optionally the detokenised output with
    untokenised references and the report of the decoder. The output (JSON) is a score file for `evaluation table`. With
    --lowercase, the sacreBLEU signature contains `case:lc`; tokenised BLEU is always case-sensitive.

    Example, in the directory of a run of the demo corpus:

        rnnsmt evaluation bleu --hypothesis results/systems/rnn/run1/harbour-test.tokens \
            --reference results/corpus/tokenized/harbour-test.fr.gz \
            --detok-hypothesis results/systems/rnn/run1/harbour-test.detokenized \
            --detok-reference results/corpus/raw/harbour-test.fr.gz --system rnn --test-set harbour-test \
            --run 1 --output try/rnn.run1.json
    """
    from rnnsmt.evaluation.scores import score_output, write_score

    if (args.detok_hypothesis is None) != (args.detok_reference is None):
        raise InputError("--detok-hypothesis and --detok-reference must be used together")
    if args.lang is not None and (wrong := code_mistake(args.lang)):
        raise InputError(f"--lang {wrong}")
    score = score_output(
        args.system,
        args.test_set,
        args.run_number,
        args.hypothesis,
        args.reference,
        args.detok_hypothesis,
        args.detok_reference,
        args.lowercase,
        args.decode_report,
        args.lang,
    )
    write_score(args.output, score)
    return {"segments": score.segments, **_scores(score)}


def _scores(score: "Score") -> dict[str, Any]:
    """Log the BLEU of an output, and return its scores by name for the last line of the log."""
    from rnnsmt.evaluation.text_metrics import METRICS

    say(f"{score.system}, {score.test_set}, run {score.run}: {score.bleu}")
    if score.sacrebleu is None:
        return {"BLEU": score.bleu.bleu}
    return {
        "BLEU": score.bleu.bleu,
        "sacreBLEU": score.sacrebleu.score,
        **{METRICS[name].label: metric.score for name, metric in score.metrics.items()},
        "signature": score.sacrebleu.signature,
    }


def score_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--run-dir", required=True, nargs="+", metavar="DIR",
        help="directories of runs 1, 2, ..., which contain SET.output and SET.decode.json for every set")  # fmt: skip
    add("--set", required=True, nargs="+", metavar="NAME=REFERENCE=PLAIN",
        help="name, tokenised reference and untokenised reference of each set")  # fmt: skip
    add("--lang", required=True, metavar="L", help="language of the output, two-letter code (ISO 639-1)")
    add("--no-detruecase", action="store_true", help="do not capitalise the first word of a sentence")
    add("--lowercase", action="store_true", help="ignore case in sacreBLEU, chrF and chrF++")
    add("--system", required=True, metavar="NAME", help="name of the system, for example baseline")


def score(args: argparse.Namespace) -> dict[str, object]:
    r"""Detokenise and score the output of all runs of a system (combines `corpus detokenize` and `evaluation bleu`).

    The directory of a run contains, for every set, the output of the decoder SET.output and its report SET.decode.json.
    The command writes SET.tokens (detruecased output), SET.detokenized and SET.bleu.json (score file) to the same
    directory.

    Example, in the directory of a run of the demo corpus:

        rnnsmt evaluation score --run-dir results/systems/rnn/run1 results/systems/rnn/run2 --lang fr \
            --system rnn --set \
            harbour-test=results/corpus/tokenized/harbour-test.fr.gz=results/corpus/raw/harbour-test.fr.gz
    """
    from rnnsmt.corpus.tokenizer import Detokenizer
    from rnnsmt.evaluation.scores import score_output, write_score

    if wrong := code_mistake(args.lang):
        raise InputError(f"--lang {wrong}")
    sets = [_set_with_references(text) for text in args.set]
    bleu: dict[str, list[float]] = {name: [] for name, _, _ in sets}
    for name, reference, plain_reference in sets:  # all runs of a set, then the next: equal segments are cached
        for run, directory in enumerate(args.run_dir, 1):
            stem = f"{directory}/{name}"
            output = list(read_lines(f"{stem}.output"))
            for kind, detokenize in (("tokens", False), ("detokenized", True)):
                recase = Detokenizer(args.lang, not args.no_detruecase, detokenize)
                write_lines(f"{stem}.{kind}", map(recase, output))
            scored = score_output(
                args.system,
                name,
                run,
                f"{stem}.tokens",
                [reference],
                f"{stem}.detokenized",
                [plain_reference],
                args.lowercase,
                f"{stem}.decode.json",
                args.lang,
            )
            write_score(f"{stem}.bleu.json", scored)
            bleu[name].append(float(_scores(scored)["BLEU"]))
    return {"runs": len(args.run_dir), **{f"{name} BLEU": sum(values) / len(values) for name, values in bleu.items()}}


def _set_with_references(text: str) -> tuple[str, str, str]:
    name, *references = text.split("=")
    if len(references) != 2:
        raise InputError(f"--set {text}: must be NAME=REFERENCE=PLAIN")
    return name, references[0], references[1]


def table_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _add_scores(parser)
    add("--output-tsv", required=True, metavar="FILE", help="output file: table (TSV)")
    add("--output-contrasts", metavar="FILE", help="output file: gain from each feature in each system (TSV)")
    add("--output-json", metavar="FILE",
        help="output file: table, contrasts and descriptions of the columns (JSON)")  # fmt: skip
    add("--output-md", required=True, metavar="FILE", help="output file: table (Markdown)")
    add("--output-html", required=True, metavar="FILE", help="output file: table (HTML)")
    add("--provenance", metavar="ADDRESS",
        help="link to the output of `evaluation provenance`, relative to the HTML page")  # fmt: skip
    add("--features", nargs="+", action="extend", default=[], metavar="SYSTEM=A+B",
        help="features that each system adds to the baseline (default: derived from the system name; cslm_rnn adds "
        "cslm and rnn)")  # fmt: skip
    add("--trainings", type=positive, default=1, metavar="N",
        help="number of training runs per network; tuning run i uses training run (i - 1) mod N + 1")  # fmt: skip
    add("--title", default="Table 1: BLEU", metavar="TEXT", help="title of the pages")
    add("--tuning", default="", metavar="TEXT", help="how the systems were tuned, for the notes")
    add("--history", nargs="*", default=[], metavar="FILE",
        help="output of `tuning tune` for every run, in the directories of the score files: marks systems with runs "
        "whose dev BLEU is below that of the initial weights")  # fmt: skip
    add("--paper", action="store_true", help="also show the paper's English-French results")
    add("--dev-set", nargs="+", default=["dev", "val"], metavar="NAME",
        help="names of the dev sets, which are compared with the paper's dev results and, without --paper, only in TSV "
        "and JSON if there are test sets")  # fmt: skip


def table(args: argparse.Namespace) -> dict[str, object]:
    r"""Write Table 1 from the score files of all runs: one row per system and test set, and the gain from each feature.

    Systems are listed in the order of their score files. TSV and JSON contain all numbers; Markdown and the
    self-contained HTML page contain a table for each test set, with differences to the baseline. Significance tests
    compare every system with the baseline and with every system that has one feature less (for example cslm_rnn with
    rnn and with cslm). The features of a system are specified by --features or by its name.

    Example, in the directory of a run of the demo corpus:

        rnnsmt evaluation table --features baseline= rnn=rnn --scores \
            results/systems/baseline/run1/harbour-test.bleu.json \
            results/systems/baseline/run2/harbour-test.bleu.json \
            results/systems/rnn/run1/harbour-test.bleu.json results/systems/rnn/run2/harbour-test.bleu.json \
            --output-tsv try/table.tsv --output-contrasts try/contrasts.tsv --output-json try/table.json \
            --output-md try/table.md --output-html try/table.html
    """
    from rnnsmt.evaluation.render import write_tables
    from rnnsmt.evaluation.table import (
        COLUMNS,
        CONTRAST_COLUMNS,
        runs_below_start,
        table_of,
        write_table_json,
        write_tsv,
    )

    scores, joint = _read_scores(args)
    features = dict(map(_features, args.features))
    rows, contrasts = table_of(scores, args.dev_set, joint, features, args.paper, args.trainings)
    below_start = runs_below_start(scores, args.history)
    for row in rows:
        row["below_start"] = below_start.get(row["system"])
    write_tsv(args.output_tsv, rows, COLUMNS, args.paper)
    write_tables(
        args.output_md, args.output_html, rows, contrasts, args.dev_set,
        paper=args.paper, title=args.title, tuning=args.tuning, provenance=args.provenance,
    )  # fmt: skip
    if args.output_contrasts is not None:
        write_tsv(args.output_contrasts, contrasts, CONTRAST_COLUMNS, args.paper)
    if args.output_json is not None:
        write_table_json(args.output_json, rows, contrasts, args.paper)
    for row in rows:
        runs = " ".join(f"{bleu:.2f}" for bleu in row["bleu_runs"])
        say(f"{label(row['system'])}, {row['test_set']}: BLEU {row['bleu']:.2f} ({runs})")
    return {"systems": len({row["system"] for row in rows}), "rows": len(rows), "score files": len(args.scores)}


def compare_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _add_reference(parser)
    add("--baseline", required=True, nargs="+", metavar="FILE",
        help="tokenised output of the first system, one file per run")  # fmt: skip
    add("--system", required=True, nargs="+", metavar="FILE",
        help="tokenised output of the second system, one file per run, in the same number as --baseline")  # fmt: skip
    add("--names", nargs=2, default=["baseline", "system"], metavar=("BASELINE", "SYSTEM"),
        help="display names of the systems")  # fmt: skip
    add("--trainings", nargs=2, type=positive, default=[1, 1], metavar=("BASELINE", "SYSTEM"),
        help="number of training runs per network of each system; tuning run i uses training run "
        "(i - 1) mod N + 1")  # fmt: skip
    add("--shared-networks", action="store_true",
        help="both systems use the same networks: pair the significance test by training run (no effect with one "
        "training run)")  # fmt: skip
    add("--source", metavar="FILE", help="tokenised source text: the input of the decoder")
    add("--details", nargs=2, metavar=("BASELINE", "SYSTEM"),
        help="output of `search decode --output-details` for the first run of each system; requires "
        "--source")  # fmt: skip
    add("--ini", metavar="FILE",
        help="tuned moses.ini of the first run of --system, for feature contributions; requires --details")  # fmt: skip
    add("--model-dir", metavar="DIR",
        help="directory in which model files are looked up by base name before the paths in moses.ini are "
        "used")  # fmt: skip
    add("--columns", nargs="*", default=[], metavar="NAME",
        help="names of the additional phrase table scores, from the fifth on")  # fmt: skip
    add("--examples", type=positive, default=10, metavar="N",
        help="number of sentences to show with the largest gains, and with the largest losses")  # fmt: skip
    from rnnsmt.networks.options import add_device

    add_device(parser)
    add("--output-json", required=True, metavar="FILE", help="output file (JSON)")
    add("--output-md", required=True, metavar="FILE", help="output file (Markdown)")


def compare(args: argparse.Namespace) -> dict[str, object]:
    r"""Compare two systems sentence by sentence: BLEU with significance tests, groups of sentences, gains and losses.

    Only the reference and the outputs are required. Further inputs add to the comparison:

    * --source: BLEU by source sentence length;
    * --details: BLEU by mean phrase length, and the phrase pairs used by only one of the systems;
    * --ini: BLEU by number of unknown words, the phrase pairs used by only one system by extraction count and length,
      and the contribution of each feature to the choice of the translation. This is the weight times the difference of
      the feature values of the two translations, under the weights of --system, for the sentences whose --baseline
      translation can be derived with the phrase table of --system.

    BLEU, including that of groups, is the mean over all runs. Sentences, phrase pairs and contributions are those of
    the first runs. Gains and losses are differences of smoothed sentence BLEU.

    Example, in the directory of a run of the demo corpus:

        rnnsmt evaluation compare --names Baseline RNN --reference results/corpus/tokenized/harbour-test.fr.gz \
            --baseline results/systems/baseline/run1/harbour-test.tokens \
            results/systems/baseline/run2/harbour-test.tokens \
            --system results/systems/rnn/run1/harbour-test.tokens results/systems/rnn/run2/harbour-test.tokens \
            --source results/corpus/truecased/harbour-test.en.gz --details \
            results/systems/baseline/run1/harbour-test.details results/systems/rnn/run1/harbour-test.details \
            --ini results/systems/rnn/run1/moses.ini --model-dir results/augmented/rnn/network1/filtered/all \
            --columns rnn --output-json try/compare.json --output-md try/compare.md
    """
    from rnnsmt.bleu.multi_bleu import read_texts
    from rnnsmt.evaluation.comparison import Comparison, write_comparison
    from rnnsmt.moses.ini import PHRASE_DICTIONARY, MosesIni
    from rnnsmt.search.model import load_model

    if len(args.baseline) != len(args.system):
        raise InputError(
            f"{len(args.baseline)} --baseline and {len(args.system)} --system files; both systems must have the same "
            "number of runs"
        )
    if (args.details and not args.source) or (args.ini and not args.details):
        raise InputError("--ini requires --details, and --details requires --source")
    if any(len(args.baseline) % number for number in args.trainings):
        raise InputError(
            f"--trainings: the number of tuning runs ({len(args.baseline)}) must be a multiple of the number of "
            "training runs"
        )
    if args.shared_networks and len(set(args.trainings)) > 1:
        raise InputError("--shared-networks: both systems must have the same number of --trainings")
    _, references = read_texts(args.reference[0], args.reference)
    texts = [[list(read_texts(path, args.reference)[0]) for path in paths] for paths in (args.baseline, args.system)]
    trainings = args.trainings[0], args.trainings[1]
    comparison = Comparison(references, texts[0], texts[1], trainings, args.shared_networks)
    if args.source:
        comparison.add_source(read_texts(args.source, args.reference)[0])
    if args.details:
        comparison.add_details(*args.details)
    if args.ini:
        ini = MosesIni.read(args.ini)
        directory = None if args.model_dir is None else Path(args.model_dir)
        model = load_model(ini, list(comparison.source or ()), directory, args.threads, args.device)
        table = next(ini.located(feature, directory) for feature in ini.features if feature.kind == PHRASE_DICTIONARY)
        comparison.add_model(model, model.weights(ini), table, args.columns)
    content = {"baseline": args.names[0], "system": args.names[1], **comparison.content(args.examples)}
    write_json(args.output_json, content)
    write_comparison(args.output_md, content)
    return {"sentences": content["sentences"], "difference": content["difference"], **content["first run"]}


def oracle_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--nbest", required=True, metavar="FILE", help="n-best lists in Moses format, best translation first")
    _add_reference(parser)
    add("--sizes", type=positive, nargs="+", default=[], metavar="N",
        help="also compute the oracle BLEU of the first N translations of every list")  # fmt: skip
    add("--output", required=True, metavar="FILE", help="output file: BLEU (JSON)")
    add("--output-text", metavar="FILE",
        help="output file: translations selected by the corpus-level oracle from the full n-best lists")  # fmt: skip


def oracle(args: argparse.Namespace) -> dict[str, object]:
    r"""Compute the oracle BLEU of n-best lists: the BLEU of the translations that are closest to the reference.

    The sentence-level oracle selects the translation with the highest smoothed sentence BLEU of every list. The
    corpus-level oracle replaces single translations as long as corpus BLEU increases; it is a lower bound on the best
    possible BLEU. The BLEU of the first translation of every list is computed as well.

    Example, in the directory of a run of the demo corpus:

        rnnsmt evaluation oracle --nbest try/oracle.nbest --reference results/corpus/joined/truecased/dev.fr.gz \
            --sizes 1 10 --output try/oracle.json --output-text try/oracle.txt
    """
    from rnnsmt.evaluation.oracle import oracles, read_nbest_texts

    references = list(zip(*read_parallel(*args.reference), strict=True))
    texts = read_nbest_texts(args.nbest, len(references[0]))
    first, results = oracles(texts, references, [*args.sizes, 0])
    whole = results[-1]
    write_json(
        args.output,
        {
            "sentences": len(texts),
            "translations": sum(map(len, texts)),
            "first": first,
            "oracles": [
                {"size": result.size or None, "sentence": result.sentence, "corpus": result.corpus}
                for result in results
            ],
        },
    )
    if args.output_text is not None:
        write_lines(args.output_text, whole.translations)
    for result in results[:-1]:
        say(
            f"oracle BLEU of the first {result.size} translations: sentence {result.sentence:.2f}, "
            f"corpus {result.corpus:.2f}"
        )
    return {"first BLEU": first, "sentence oracle BLEU": whole.sentence, "corpus oracle BLEU": whole.corpus}


def provenance_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _add_scores(parser)
    add("--network", nargs="+", action="extend", default=[], metavar="NAME=MODEL=HISTORY",
        help="name, model file and training history (JSON) of each network")  # fmt: skip
    add("--inputs", nargs="+", action="extend", default=[], metavar="FILE",
        help="input files of the run (corpora, references and alignments)")  # fmt: skip
    add("--prepared", nargs="+", default=[], metavar="REPORT",
        help="reports of `corpus prepare`; the command fails if an input file has changed since its report was "
        "written")  # fmt: skip
    add("--ini", nargs="*", metavar="FILE",
        help="moses.ini of each tuned system and run; other moses.ini files next to the scores are ignored (default: "
        "no file is ignored)")  # fmt: skip
    add("--config", type=json.loads, metavar="JSON", help="configuration of the run")
    add("--moses-home", metavar="DIR", help="Moses installation directory, if --config uses Moses")
    add("--output", required=True, metavar="FILE", help="output file (JSON)")


def provenance(args: argparse.Namespace) -> dict[str, object]:
    r"""Record the provenance of the scores in Table 1: files with SHA-256, seeds, weights, settings and versions.

    The output (JSON) lists for every system, run and test set the score file and the files next to it (output,
    detokenised output), the tuned moses.ini with its weights and the files that it refers to, and the seed and the best
    iteration of tuning. It also lists the networks with their seeds and settings, the corpora, the configuration, and
    the versions of this package, of its stages and of the packages it depends on, the commit of its checkout, if any,
    and the Moses programs, if used.

    The output contains no times or host names, so the same files give the same output. Hashing takes about one second
    per gigabyte.

    Example, in the directory of a run of the demo corpus:

        rnnsmt evaluation provenance --scores results/systems/rnn/run1/harbour-test.bleu.json \
            --output try/provenance.json
    """
    from rnnsmt.evaluation.provenance import FORMAT, Files, cells_and_runs, network, software
    from rnnsmt.moses.installation import Installation, needs_of

    scores, joint = _read_scores(args)
    files = Files()
    programs = software()
    if args.moses_home is not None:
        programs["software"]["moses"] = Installation(args.moses_home).about(needs_of(args.config))
    content = programs | {
        "config": args.config,
        "inputs": [files.add(path) for path in args.inputs],
        "prepared": [files.add_as_read(path) for path in args.prepared],
        "networks": dict(network(text, files) for text in args.network),
        **cells_and_runs(scores, joint, files, args.ini),
    }
    content = {"format": FORMAT, **content, "files": files.listing()}
    write_json(args.output, content)
    return {name: len(content[name]) for name in ("cells", "runs", "files")}
