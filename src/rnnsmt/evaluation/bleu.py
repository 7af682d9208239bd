"""Score one output: tokenised BLEU as multi-bleu.perl gives it, and sacreBLEU of the detokenised text.

Reads the tokenised output and its references (repeat --reference for several), optionally the detokenised texts and
the decoder's report; writes a JSON score file that `evaluation table` collects.
"""

import argparse
import re
from typing import Any

from rnnsmt.evaluation.multi_bleu import corpus_statistics
from rnnsmt.evaluation.sacre import sacre_bleu
from rnnsmt.evaluation.score_file import SacreBleu, Score, write_score
from rnnsmt.io import InputError, read_json, read_parallel
from rnnsmt.progress import say

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rnnsmt evaluation bleu``."""
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


def run(args: argparse.Namespace) -> dict[str, object]:
    """Score one output and write its score file."""
    for option, name in (("--system", args.system), ("--test-set", args.test_set)):
        if not NAME.fullmatch(name):
            raise InputError(f"{option} {name!r}: a name is made of letters, digits and the characters _ . + -")
    if args.run_number < 1:
        raise InputError(f"--run {args.run_number}: runs are counted from 1")
    if (args.detok_hypothesis is None) != (args.detok_reference is None):
        raise InputError("--detok-hypothesis and --detok-reference belong together: give both or none")
    hypotheses, references = read_texts(args.hypothesis, args.reference)
    sentences = corpus_statistics(hypotheses, references)
    score = Score(
        system=args.system,
        test_set=args.test_set,
        run=args.run_number,
        segments=len(hypotheses),
        references=len(references),
        statistics=tuple(sentences.sum(axis=0).tolist()),
        sacrebleu=_detokenized(args, len(hypotheses)),
        decode=_report(args.decode_report),
        sentences=tuple(map(tuple, sentences.tolist())),
    )
    write_score(args.output, score)
    say(f"{args.system}, {args.test_set}, run {args.run_number}: {score.bleu}")
    figures: dict[str, object] = {"segments": score.segments, "BLEU": score.bleu.bleu}
    if score.sacrebleu is not None:
        figures["sacreBLEU"] = score.sacrebleu.score
        figures["signature"] = score.sacrebleu.signature
    return figures


def read_texts(hypothesis: str, references: list[str]) -> tuple[list[str], list[list[str]]]:
    """Read a hypothesis and its references side by side; empty segments are counted on stderr.

    Raises:
        InputError: unequal line counts, no line at all, or no word at all on one side.
    """
    columns = list(zip(*read_parallel(hypothesis, *references), strict=True))
    if not columns:
        raise InputError(f"{hypothesis}: has no lines, nothing can be scored; make the file again")
    for path, column in zip([hypothesis, *references], columns, strict=True):
        empty = sum(1 for text in column if not text.strip())
        if empty == len(column):
            raise InputError(f"{path}: all {len(column)} lines are empty, nothing can be scored; make the file again")
        if empty:
            say(f"{path}: {empty} of {len(column)} lines are empty and are scored as they are")
    return list(columns[0]), [list(column) for column in columns[1:]]


def _detokenized(args: argparse.Namespace, segments: int) -> SacreBleu | None:
    if args.detok_hypothesis is None:
        return None
    hypotheses, references = read_texts(args.detok_hypothesis, args.detok_reference)
    if len(hypotheses) != segments:
        raise InputError(
            f"{args.detok_hypothesis} has {len(hypotheses)} lines, but {args.hypothesis} has {segments}; "
            "both must hold the same output"
        )
    return sacre_bleu(hypotheses, references, args.lowercase)


def _report(path: str | None) -> dict[str, Any] | None:
    if path is None:
        return None
    report = read_json(path)
    if not isinstance(report, dict):
        raise InputError(f"{path}: not a decoder's report (a JSON map); make it with `rnnsmt search decode --report`")
    return report
