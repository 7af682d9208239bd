"""The commands that score output and make Table 1."""

import argparse
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnsmt.io import InputError, read_lines, write_json, write_lines
from rnnsmt.languages import code_mistake
from rnnsmt.networks.options import add_device
from rnnsmt.networks.settings import PRECISIONS
from rnnsmt.options import positive
from rnnsmt.progress import say
from rnnsmt.systems import FEATURES, label

if TYPE_CHECKING:
    from rnnsmt.evaluation.score_file import Score
    from rnnsmt.evaluation.table import Row

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


def _joint(text: str) -> tuple[str, list[str]]:
    name, _, parts = text.partition("=")
    if not NAME.fullmatch(name) or not parts:
        raise InputError(f"--joint {text}: write NAME=A+B, for example both=test_2016+test_2017")
    return name, parts.split("+")


def _features(text: str) -> tuple[str, list[str]]:
    system, equals, names = text.partition("=")
    added = names.split("+") if names else []
    if not NAME.fullmatch(system) or not equals or not all(map(NAME.fullmatch, added)):
        raise InputError(f"--features {text}: write SYSTEM=A+B with names of features like {', '.join(FEATURES)}")
    return system, added


def _line(row: "Row") -> str:
    runs = " ".join(f"{bleu:.2f}" for bleu in row.bleu)
    return f"{label(row.system)}, {row.test_set}: BLEU {sum(row.bleu) / row.runs:.2f} ({runs})"


def bleu_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hypothesis", required=True, metavar="FILE", help="tokenised output")
    parser.add_argument(
        "--reference", required=True, nargs="+", action="extend", metavar="FILE", help="tokenised references"
    )
    parser.add_argument("--detok-hypothesis", metavar="FILE", help="detokenised output, for sacreBLEU")
    parser.add_argument(
        "--detok-reference", nargs="+", action="extend", metavar="FILE", help="references as published, for sacreBLEU"
    )
    parser.add_argument("--lowercase", action="store_true", help="sacreBLEU without case, and says so in its signature")
    parser.add_argument("--system", required=True, metavar="NAME", help="name of the system, e.g. baseline")
    parser.add_argument("--test-set", required=True, metavar="NAME", help="name of the test set")
    parser.add_argument("--run", type=int, default=1, dest="run_number", metavar="N", help="number of the MERT run")
    parser.add_argument("--decode-report", metavar="FILE", help="the decoder's report, copied into the score file")
    parser.add_argument("--output", required=True, metavar="FILE", help="score file to write (JSON)")


def bleu(args: argparse.Namespace) -> dict[str, object]:
    r"""Score one output: tokenised BLEU as multi-bleu.perl gives it, sacreBLEU and chrF of the detokenised text.

    Reads the tokenised output and its references (repeat --reference for several), optionally the detokenised texts and
    the decoder's report; writes a JSON score file that `evaluation table` collects.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt evaluation bleu --hypothesis results/systems/rnn/run1/harbour-test.tokens \
            --reference results/corpus/tokenized/harbour-test.fr.gz \
            --detok-hypothesis results/systems/rnn/run1/harbour-test.detokenized \
            --detok-reference results/corpus/raw/harbour-test.fr.gz --system rnn --test-set harbour-test \
            --run 1 --output try/rnn.run1.json
    """
    from rnnsmt.evaluation.score_file import write_score
    from rnnsmt.evaluation.scoring import score_output

    for option, name in (("--system", args.system), ("--test-set", args.test_set)):
        _check_name(option, name)
    if args.run_number < 1:
        raise InputError(f"--run {args.run_number}: runs are counted from 1")
    if (args.detok_hypothesis is None) != (args.detok_reference is None):
        raise InputError("--detok-hypothesis and --detok-reference belong together: give both or none")
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
    )
    write_score(args.output, score)
    return {"segments": score.segments, **_scores(score)}


def _scores(score: "Score") -> dict[str, Any]:
    """Say the BLEU of an output; its figures for the last line of the log."""
    say(f"{score.system}, {score.test_set}, run {score.run}: {score.bleu}")
    if score.sacrebleu is None:
        return {"BLEU": score.bleu.bleu}
    return {
        "BLEU": score.bleu.bleu,
        "sacreBLEU": score.sacrebleu.score,
        "chrF": score.sacrebleu.chrf,
        "signature": score.sacrebleu.signature,
    }


def score_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--run-dir", required=True, nargs="+", metavar="DIR",
        help="folders of run 1, run 2 ..., with SET.output and SET.decode.json of every set")  # fmt: skip
    add("--set", required=True, nargs="+", metavar="NAME=REFERENCE=PLAIN",
        help="a set with its tokenised reference and its reference as published")  # fmt: skip
    add("--lang", required=True, metavar="L", help="language of the output, two letters")
    add("--no-detruecase", action="store_true", help="leave sentence starts as they are")
    add("--lowercase", action="store_true", help="sacreBLEU without case, and says so in its signature")
    add("--system", required=True, metavar="NAME", help="name of the system, e.g. baseline")


def score(args: argparse.Namespace) -> dict[str, object]:
    r"""Score what the runs of a system made of several sets: `corpus detokenize` and `evaluation bleu` in one go.

    For every set the folder of a run holds the decoder's output SET.output and its report SET.decode.json. Written
    beside them: SET.tokens, the output in the case of running text; SET.detokenized; SET.bleu.json, the score file.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt evaluation score --run-dir results/systems/rnn/run1 results/systems/rnn/run2 --lang fr \
            --system rnn --set \
            harbour-test=results/corpus/tokenized/harbour-test.fr.gz=results/corpus/raw/harbour-test.fr.gz
    """
    from rnnsmt.corpus.tokenizer import Detokenizer
    from rnnsmt.evaluation.score_file import write_score
    from rnnsmt.evaluation.scoring import score_output

    _check_name("--system", args.system)
    if wrong := code_mistake(args.lang):
        raise InputError(f"--lang {wrong}")
    sets = [_set_with_references(text) for text in args.set]
    bleu: dict[str, list[float]] = {name: [] for name, _, _ in sets}
    for run, folder in enumerate(args.run_dir, 1):
        for name, reference, plain_reference in sets:
            stem = f"{folder}/{name}"
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
            )
            write_score(f"{stem}.bleu.json", scored)
            bleu[name].append(float(_scores(scored)["BLEU"]))
    return {"runs": len(args.run_dir), **{f"{name} BLEU": sum(found) / len(found) for name, found in bleu.items()}}


def _check_name(option: str, name: str) -> None:
    if not NAME.fullmatch(name):
        raise InputError(f"{option} {name!r}: a name is made of letters, digits and the characters _ . + -")


def _set_with_references(text: str) -> tuple[str, str, str]:
    name, *references = text.split("=")
    if len(references) != 2:
        raise InputError(f"--set {text}: write NAME=REFERENCE=PLAIN")
    _check_name("--set", name)
    return name, references[0], references[1]


def table_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scores", required=True, nargs="+", metavar="FILE", help="score files of `evaluation bleu`")
    parser.add_argument("--output-tsv", required=True, metavar="FILE", help="table to write, tab-separated")
    parser.add_argument(
        "--output-contrasts", metavar="FILE", help="what each feature adds to each system, to write, tab-separated"
    )
    parser.add_argument("--output-json", metavar="FILE", help="both with what the columns mean, JSON")
    parser.add_argument("--output-md", required=True, metavar="FILE", help="table to write, Markdown")
    parser.add_argument("--output-html", required=True, metavar="FILE", help="table to write, HTML")
    parser.add_argument(
        "--provenance", metavar="ADDRESS", help="where the HTML page says the figures come from, seen from that page"
    )
    parser.add_argument(
        "--joint",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=A+B",
        help="test sets that are scored as one corpus too",
    )
    parser.add_argument(
        "--features",
        nargs="+",
        action="extend",
        default=[],
        metavar="SYSTEM=A+B",
        help="what a system adds to the baseline, like rnn, cslm and wp; without it its name says so, like cslm_rnn",
    )
    parser.add_argument(
        "--trainings",
        type=positive,
        default=1,
        metavar="N",
        help="of the networks, on which the runs of systems with networks take turns: run 1 the first ...",
    )
    parser.add_argument("--title", default="Table 1: BLEU", metavar="TEXT", help="of the pages")
    parser.add_argument("--paper", action="store_true", help="put the paper's figures, English to French, beside ours")
    parser.add_argument(
        "--dev-set",
        nargs="+",
        default=["dev", "val"],
        metavar="NAME",
        help="test sets that MERT saw; they come first and stand beside the paper's dev figure",
    )


def table(args: argparse.Namespace) -> dict[str, object]:
    r"""Table 1: one line per system and test set, from the score files of all runs, and what each feature adds.

    Systems come in the order of their score files. Writes every figure as TSV and JSON, and what people compare as
    Markdown and a self-contained HTML page. Every system is tested against the baseline and against every system that
    lacks one of its features (cslm_rnn against rnn and against cslm), as --features or the names of the systems say.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt evaluation table --features baseline= rnn=rnn --scores \
            results/systems/baseline/run1/harbour-test.bleu.json \
            results/systems/baseline/run2/harbour-test.bleu.json \
            results/systems/rnn/run1/harbour-test.bleu.json results/systems/rnn/run2/harbour-test.bleu.json \
            --output-tsv try/table.tsv --output-contrasts try/contrasts.tsv --output-json try/table.json \
            --output-md try/table.md --output-html try/table.html
    """
    from rnnsmt.evaluation.markdown import write_markdown
    from rnnsmt.evaluation.page import write_html
    from rnnsmt.evaluation.records import write_contrasts_tsv, write_table_json, write_tsv
    from rnnsmt.evaluation.score_file import read_score
    from rnnsmt.evaluation.table import add_joint, group, rows

    scores = group(read_score(path) for path in args.scores)
    joint = dict(_joint(text) for text in args.joint)
    for name, parts in joint.items():
        add_joint(scores, name, parts)
    table = rows(
        scores, args.dev_set, joint, dict(_features(text) for text in args.features), args.paper, args.trainings
    )
    write_tsv(args.output_tsv, table, args.paper)
    write_markdown(args.output_md, table, args.paper, args.title)
    write_html(args.output_html, table, args.paper, args.title, args.provenance)
    if args.output_contrasts is not None:
        write_contrasts_tsv(args.output_contrasts, table, args.paper)
    if args.output_json is not None:
        write_table_json(args.output_json, table, args.paper)
    for row in table:
        say(_line(row))
    return {"systems": len({row.system for row in table}), "rows": len(table), "score files": len(args.scores)}


def compare_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--reference", required=True, nargs="+", metavar="FILE", help="tokenised reference; several of one text")
    add("--baseline", required=True, nargs="+", metavar="FILE", help="tokenised output of one system, run by run")
    add("--system", required=True, nargs="+", metavar="FILE", help="that of the other, as many runs")
    add("--names", nargs=2, default=["baseline", "system"], metavar=("BASELINE", "SYSTEM"), help="what to call them")
    add("--trainings", nargs=2, type=positive, default=[1, 1], metavar=("BASELINE", "SYSTEM"),
        help="of the networks of both, on which their runs take turns")  # fmt: skip
    add("--shared-networks", action="store_true",
        help="the systems share a network; pair its trainings in the test (no effect with one training)")  # fmt: skip
    add("--source", metavar="FILE", help="the text that was translated, as the decoder read it")
    add("--details", nargs=2, metavar=("BASELINE", "SYSTEM"),
        help="phrases of both in the first run, of `search decode --output-details`; needs --source")  # fmt: skip
    add("--ini", metavar="FILE", help="tuned moses.ini of the first run of the system: what decided; needs --details")
    add("--model-dir", metavar="DIR", help="take files of the same base name from here where they exist")
    add("--columns", nargs="*", default=[], metavar="NAME", help="what its phrase scores after the fourth are called")
    add("--examples", type=positive, default=10, metavar="N", help="sentences that gain most, and that lose most")
    add("--cslm-precision", choices=PRECISIONS, default="reduced", help="of a CSLM's sum over its vocabulary")
    add_device(parser)
    add("--output-json", required=True, metavar="FILE")
    add("--output-md", required=True, metavar="FILE")


def compare(args: argparse.Namespace) -> dict[str, object]:
    r"""Compare two systems sentence by sentence: BLEU by groups of sentences, the largest gains and losses.

    With --source by its length; with --details by the length of phrases, and with the phrase pairs that only one of
    both uses; with --ini by unknown words, the pairs by how often they were extracted, and with what decided: weight
    times feature of the system's translation less that of the baseline's, where the system could have made that, under
    the system's weights. Groups are of all runs, sentences and phrases of the first.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt evaluation compare --names Baseline RNN --reference results/corpus/tokenized/harbour-test.fr.gz \
            --baseline results/systems/baseline/run1/harbour-test.tokens \
            results/systems/baseline/run2/harbour-test.tokens \
            --system results/systems/rnn/run1/harbour-test.tokens results/systems/rnn/run2/harbour-test.tokens \
            --source results/corpus/truecased/harbour-test.en.gz --details \
            results/systems/baseline/run1/harbour-test.details results/systems/rnn/run1/harbour-test.details \
            --ini results/systems/rnn/run1/moses.ini --model-dir results/augmented/rnn/network1/filtered/all \
            --columns rnn --output-json try/compare.json --output-md try/compare.md
    """
    from rnnsmt.bleu.texts import read_texts
    from rnnsmt.evaluation.comparison import Comparison
    from rnnsmt.evaluation.markdown import write_comparison
    from rnnsmt.moses.ini import PHRASE_TABLES, MosesIni
    from rnnsmt.search.model import load_model

    if len(args.baseline) != len(args.system):
        raise InputError(f"{len(args.baseline)} --baseline and {len(args.system)} --system: give as many runs of both")
    if (args.details and not args.source) or (args.ini and not args.details):
        raise InputError("--ini needs --details, and --details need --source")
    if any(len(args.baseline) % number for number in args.trainings):
        raise InputError(f"--trainings: {len(args.baseline)} runs cannot take turns on them alike")
    if args.shared_networks and len(set(args.trainings)) > 1:
        raise InputError("--shared-networks: both systems must have the same number of --trainings")
    _, references = read_texts(args.reference[0], args.reference)
    texts = [[list(read_texts(path, args.reference)[0]) for path in paths] for paths in (args.baseline, args.system)]
    trainings = args.trainings[0], args.trainings[1]
    found = Comparison(references, texts[0], texts[1], trainings, args.shared_networks)
    if args.source:
        found.add_source(read_texts(args.source, args.reference)[0])
    if args.details:
        found.add_details(*args.details)
    if args.ini:
        ini = MosesIni.read(args.ini)
        folder = None if args.model_dir is None else Path(args.model_dir)
        model = load_model(ini, list(found.source or ()), folder, args.threads, args.device, args.cslm_precision)
        table = next(ini.located(feature, folder) for feature in ini.features if feature.kind in PHRASE_TABLES)
        found.add_model(model, model.weights(ini), table, args.columns)
    content = {"baseline": args.names[0], "system": args.names[1], **found.content(args.examples)}
    write_json(args.output_json, content)
    write_comparison(args.output_md, content)
    return {"sentences": content["sentences"], "difference": content["difference"], **content["first run"]}


def provenance_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--scores", required=True, nargs="+", metavar="FILE", help="score files of `evaluation bleu`")
    add("--joint", nargs="+", action="extend", default=[], metavar="NAME=A+B", help="test sets that the table joins")
    add("--network", nargs="+", action="extend", default=[], metavar="NAME=MODEL=HISTORY", help="trained networks")
    add(
        "--inputs",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="corpora, references, alignments: what everything was made from",
    )
    add(
        "--prepared",
        nargs="+",
        default=[],
        metavar="REPORT",
        help="reports of `corpus prepare`, whose raw files must still be those that were read",
    )
    add("--config", type=json.loads, metavar="JSON", help="the configuration")
    add("--moses-home", metavar="DIR", help="the installation of Moses that took part as --config says")
    add("--hash-limit-mb", type=int, metavar="N", help="list larger files without hash (default: none)")
    add("--output", required=True, metavar="FILE", help="to write (JSON)")


def provenance(args: argparse.Namespace) -> dict[str, object]:
    r"""Where every figure of Table 1 comes from: files with their SHA-256, seeds, weights, settings, versions.

    For every system, run and test set: the score file and what lies beside it (output, detokenised text, decoder's
    report), the tuned moses.ini with its weights and the files that it names, the seed and the best iteration of MERT;
    the networks with their seeds and settings; the corpora; the configuration; the versions of this package, of its
    stages and of the packages it stands on, the commit of its checkout where it is one, the programs of Moses where
    they took part. No times and no host names: the same files give the same content. Hashing takes about a second a
    gigabyte; --hash-limit-mb leaves large files out.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt evaluation provenance --scores results/systems/rnn/run1/harbour-test.bleu.json \
            --output try/provenance.json
    """
    from rnnsmt.evaluation.provenance import FORMAT, Files, cells_and_runs, network, software
    from rnnsmt.evaluation.score_file import read_score
    from rnnsmt.evaluation.table import add_joint, group
    from rnnsmt.moses.installation import Installation, needs_of

    scores = group(read_score(path) for path in args.scores)
    joint = dict(_joint(text) for text in args.joint)
    for name, parts in joint.items():
        add_joint(scores, name, parts)
    files = Files(None if args.hash_limit_mb is None else args.hash_limit_mb << 20)
    programs = software()
    if args.moses_home is not None:
        programs["software"]["moses"] = Installation(args.moses_home).about(needs_of(args.config))
    content = programs | {
        "config": args.config,
        "inputs": [files.add(path) for path in args.inputs],
        "prepared": [files.add_as_read(path) for path in args.prepared],
        "networks": dict(network(text, files) for text in args.network),
        **cells_and_runs(scores, joint, files),
    }
    content = {"format": FORMAT, **content, "files": files.listing()}
    write_json(args.output, content)
    return {name: len(content[name]) for name in ("cells", "runs", "files")}
