"""The commands that score output and make Table 1."""

import argparse
import json
import re
from typing import TYPE_CHECKING, Any

from rnnsmt.io import InputError, read_json, write_json
from rnnsmt.progress import say
from rnnsmt.systems import FEATURES, label

if TYPE_CHECKING:
    from rnnsmt.evaluation.collect import Row
    from rnnsmt.evaluation.score_file import SacreBleu

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


def _detokenized(hypothesis: str, references: list[str], segments: int, tokenised: str, lowercase: bool) -> "SacreBleu":
    from rnnsmt.bleu.multi_bleu import read_texts
    from rnnsmt.evaluation.sacre import sacre_bleu

    hypotheses, texts = read_texts(hypothesis, references)
    if len(hypotheses) != segments:
        raise InputError(
            f"{hypothesis} has {len(hypotheses)} lines, but {tokenised} has {segments}; both must hold the same output"
        )
    return sacre_bleu(hypotheses, texts, lowercase)


def _report(path: str | None) -> dict[str, Any] | None:
    if path is None:
        return None
    report = read_json(path)
    if not isinstance(report, dict):
        raise InputError(f"{path}: not a decoder's report (a JSON map); make it with `rnnsmt search decode --report`")
    return report


def _joint(text: str) -> tuple[str, list[str]]:
    name, _, parts = text.partition("=")
    if not NAME.fullmatch(name) or not parts:
        raise InputError(f"--joint {text}: write NAME=A+B, for example both=test_2016+test_2017")
    return name, parts.split("+")


def _features(text: str) -> tuple[str, list[str]]:
    system, equals, names = text.partition("=")
    added = names.split("+") if names else []
    if not NAME.fullmatch(system) or not equals or not set(added) <= set(FEATURES):
        raise InputError(f"--features {text}: write SYSTEM=A+B with A and B of {', '.join(FEATURES)}")
    return system, added


def _line(row: "Row") -> str:

    runs = " ".join(f"{bleu:.2f}" for bleu in row.bleu)
    return f"{label(row.system)}, {row.test_set}: BLEU {sum(row.bleu) / row.runs:.2f} ({runs})"


def bleu_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hypothesis", required=True, metavar="FILE", help="tokenised output")
    parser.add_argument("--reference", required=True, nargs="+", metavar="FILE", help="tokenised references")
    parser.add_argument("--detok-hypothesis", metavar="FILE", help="detokenised output, for sacreBLEU")
    parser.add_argument("--detok-reference", nargs="+", metavar="FILE", help="references as published, for sacreBLEU")
    parser.add_argument("--lowercase", action="store_true", help="sacreBLEU without case, and says so in its signature")
    parser.add_argument("--system", required=True, metavar="NAME", help="name of the system, e.g. baseline")
    parser.add_argument("--test-set", required=True, metavar="NAME", help="name of the test set")
    parser.add_argument("--run", type=int, default=1, dest="run_number", metavar="N", help="number of the MERT run")
    parser.add_argument("--decode-report", metavar="FILE", help="the decoder's report, copied into the score file")
    parser.add_argument("--output", required=True, metavar="FILE", help="score file to write (JSON)")


def bleu(args: argparse.Namespace) -> dict[str, object]:
    """Score one output: tokenised BLEU as multi-bleu.perl gives it, and sacreBLEU of the detokenised text.

    Reads the tokenised output and its references (repeat --reference for several), optionally the detokenised texts and
    the decoder's report; writes a JSON score file that `evaluation table` collects.
    """
    for option, name in (("--system", args.system), ("--test-set", args.test_set)):
        _check_name(option, name)
    _check_run(args.run_number)
    if (args.detok_hypothesis is None) != (args.detok_reference is None):
        raise InputError("--detok-hypothesis and --detok-reference belong together: give both or none")
    return _score(args, args.output)


def _check_name(option: str, name: str) -> None:
    if not NAME.fullmatch(name):
        raise InputError(f"{option} {name!r}: a name is made of letters, digits and the characters _ . + -")


def _check_run(number: int) -> None:
    if number < 1:
        raise InputError(f"--run {number}: runs are counted from 1")


def _score(args: argparse.Namespace, output: str) -> dict[str, object]:
    """Score what the options of ``bleu`` name and write the score file; its figures."""
    from rnnsmt.bleu.multi_bleu import corpus_statistics, read_texts
    from rnnsmt.evaluation.score_file import Score, write_score

    hypotheses, references = read_texts(args.hypothesis, args.reference)
    sentences = corpus_statistics(hypotheses, references)
    detokenized = None
    if args.detok_hypothesis is not None:
        detokenized = _detokenized(
            args.detok_hypothesis, args.detok_reference, len(hypotheses), args.hypothesis, args.lowercase
        )
    score = Score(
        system=args.system,
        test_set=args.test_set,
        run=args.run_number,
        segments=len(hypotheses),
        references=len(references),
        statistics=tuple(sentences.sum(axis=0).tolist()),
        sacrebleu=detokenized,
        decode=_report(args.decode_report),
        sentences=tuple(map(tuple, sentences.tolist())),
    )
    write_score(output, score)
    say(f"{args.system}, {args.test_set}, run {args.run_number}: {score.bleu}")
    figures: dict[str, object] = {"segments": score.segments, "BLEU": score.bleu.bleu}
    if score.sacrebleu is not None:
        figures["sacreBLEU"] = score.sacrebleu.score
        figures["signature"] = score.sacrebleu.signature
    return figures


def score_run_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--run-dir", required=True, metavar="DIR", help="folder with SET.output and SET.decode.json of every set")
    add("--set", required=True, nargs="+", metavar="NAME=REFERENCE=PLAIN",
        help="a set with its tokenised reference and its reference as published")  # fmt: skip
    add("--lang", required=True, metavar="L", help="language of the output, two letters")
    add("--no-detruecase", action="store_true", help="leave sentence starts as they are")
    add("--lowercase", action="store_true", help="sacreBLEU without case, and says so in its signature")
    add("--system", required=True, metavar="NAME", help="name of the system, e.g. baseline")
    add("--run", type=int, default=1, dest="run_number", metavar="N", help="number of the MERT run")


def score_run(args: argparse.Namespace) -> dict[str, object]:
    """Score what one tuned system made of several sets: `corpus detokenize` and `evaluation bleu` in one go.

    For every set the folder holds the decoder's output SET.output and its report SET.decode.json. Written beside them:
    SET.tokens, the output in the case of running text; SET.detokenized; SET.bleu.json, the score file.
    """
    from functools import partial

    from rnnsmt.corpus.tokenizer import Detokenizer
    from rnnsmt.io import read_lines, write_lines
    from rnnsmt.parallel import map_lines

    _check_name("--system", args.system)
    _check_run(args.run_number)
    figures: dict[str, object] = {}
    for text in args.set:
        name, *references = text.split("=")
        if len(references) != 2:
            raise InputError(f"--set {text}: write NAME=REFERENCE=PLAIN")
        _check_name("--set", name)
        stem = f"{args.run_dir}/{name}"
        for path, detokenize in ((f"{stem}.tokens", False), (f"{stem}.detokenized", True)):
            make = partial(Detokenizer, args.lang, not args.no_detruecase, detokenize)
            write_lines(path, map_lines(make, read_lines(f"{stem}.output"), 1))
        one = argparse.Namespace(
            hypothesis=f"{stem}.tokens",
            reference=references[:1],
            detok_hypothesis=f"{stem}.detokenized",
            detok_reference=references[1:],
            lowercase=args.lowercase,
            system=args.system,
            test_set=name,
            run_number=args.run_number,
            decode_report=f"{stem}.decode.json",
        )
        found = _score(one, f"{stem}.bleu.json")
        figures[f"{name} BLEU"], figures[f"{name} sacreBLEU"] = found["BLEU"], found["sacreBLEU"]
    return figures


def table_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scores", required=True, nargs="+", metavar="FILE", help="score files of `evaluation bleu`")
    parser.add_argument("--output-tsv", required=True, metavar="FILE", help="table to write, tab-separated")
    parser.add_argument("--output-json", metavar="FILE", help="the same with what the columns mean, JSON")
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
        help="what a system adds to the baseline, of rnn, cslm and wp; without it its name says so, like cslm_rnn",
    )
    parser.add_argument(
        "--dev-set",
        nargs="+",
        default=["dev", "val"],
        metavar="NAME",
        help="test sets that MERT saw; they come first and stand beside the paper's dev figure",
    )


def table(args: argparse.Namespace) -> dict[str, object]:
    """Table 1: one line per system and test set, from the score files of all runs, beside the paper's figures.

    Systems come in the order of their score files. Writes every figure as TSV and JSON, and what people compare as
    Markdown and a self-contained HTML page. Every system is tested against the baseline and against the system without
    the feature that was added last (cslm_rnn_wp, cslm_rnn, rnn, baseline), as --features or the names of the systems
    say.
    """
    from rnnsmt.evaluation.collect import add_joint, group, rows
    from rnnsmt.evaluation.figures import write_table_json, write_tsv
    from rnnsmt.evaluation.markdown import write_markdown
    from rnnsmt.evaluation.page import write_html
    from rnnsmt.evaluation.score_file import read_score

    scores = group(read_score(path) for path in args.scores)
    joint = []
    for text in args.joint:
        name, _, parts = text.partition("=")
        if not NAME.fullmatch(name) or not parts:
            raise InputError(f"--joint {text}: write NAME=A+B, for example both=test_2016+test_2017")
        add_joint(scores, name, parts.split("+"))
        joint.append(name)
    table = rows(scores, args.dev_set, joint, dict(_features(text) for text in args.features))
    write_tsv(args.output_tsv, table)
    write_markdown(args.output_md, table)
    write_html(args.output_html, table, args.provenance)
    if args.output_json is not None:
        write_table_json(args.output_json, table)
    for row in table:
        say(_line(row))
    return {"systems": len({row.system for row in table}), "rows": len(table), "score files": len(args.scores)}


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
    add("--config", type=json.loads, metavar="JSON", help="the configuration")
    add("--hash-limit-mb", type=int, metavar="N", help="list larger files without hash (default: none)")
    add("--output", required=True, metavar="FILE", help="to write (JSON)")


def provenance(args: argparse.Namespace) -> dict[str, object]:
    """Where every figure of Table 1 comes from: files with their SHA-256, seeds, weights, settings, versions.

    For every system, run and test set: the score file and what lies beside it (output, detokenised text, decoder's
    report), the tuned moses.ini with its weights and the files that it names, the seed and the best iteration of MERT;
    the networks with their seeds and settings; the corpora; the configuration; the versions of this package, of its
    stages and of the packages it stands on, and the commit of its checkout where it is one. No times and no host names:
    the same files give the same content. Hashing takes about a second a gigabyte; --hash-limit-mb leaves large files
    out.
    """
    from rnnsmt.evaluation.collect import add_joint, group
    from rnnsmt.evaluation.provenance import Files, network, software, tuned_run
    from rnnsmt.evaluation.score_file import read_score

    scores = group(read_score(path) for path in args.scores)
    joint = dict(_joint(text) for text in args.joint)
    for name, parts in joint.items():
        add_joint(scores, name, parts)
    files = Files(None if args.hash_limit_mb is None else args.hash_limit_mb << 20)
    runs: dict[str, Any] = {}
    cells = []
    for (system, test_set), by_run in scores.items():
        members = []
        for number, score in sorted(by_run.items()):
            key = f"{system}/run{number}"
            sacre = None if score.sacrebleu is None else round(score.sacrebleu.score, 6)
            member = {"run": key, "bleu": round(score.bleu.bleu, 6), "sacrebleu": sacre}
            if test_set not in joint:
                runs.setdefault(key, tuned_run(score.path, files))
                member |= files.beside(score.path, test_set)
            members.append(member)
        cells.append({"system": system, "test_set": test_set, "joins": joint.get(test_set), "runs": members})
    content = {
        "format": "rnnsmt-provenance-1",
        **software(),
        "config": args.config,
        "inputs": [files.add(path) for path in args.inputs],
        "networks": dict(network(text, files) for text in args.network),
        "cells": cells,
        "runs": runs,
        "files": files.listing(),
    }
    write_json(args.output, content)
    return {"cells": len(cells), "runs": len(runs), "files": len(content["files"])}
