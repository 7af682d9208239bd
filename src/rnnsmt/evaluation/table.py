"""Table 1: one line per system and test set, from the score files of all runs, beside the paper's figures.

Systems come in the order of their score files. Writes every figure as TSV and JSON, and what people compare as Markdown
and a self-contained HTML page. Every system is tested against the baseline and against the system without the feature
that was added last (cslm_rnn_wp, cslm_rnn, rnn, baseline), as --features or the names of the systems say.
"""

import argparse

from rnnsmt.evaluation.bleu import NAME
from rnnsmt.evaluation.collect import Row, add_joint, group, rows
from rnnsmt.evaluation.figures import write_table_json, write_tsv
from rnnsmt.evaluation.markdown import write_markdown
from rnnsmt.evaluation.page import write_html
from rnnsmt.evaluation.score_file import read_score
from rnnsmt.io import InputError
from rnnsmt.progress import say
from rnnsmt.systems import FEATURES, label


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rnnsmt evaluation table``."""
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


def run(args: argparse.Namespace) -> dict[str, object]:
    """Make the table in its three forms."""
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


def _features(text: str) -> tuple[str, list[str]]:
    system, equals, names = text.partition("=")
    added = names.split("+") if names else []
    if not NAME.fullmatch(system) or not equals or not set(added) <= set(FEATURES):
        raise InputError(f"--features {text}: write SYSTEM=A+B with A and B of {', '.join(FEATURES)}")
    return system, added


def _line(row: Row) -> str:
    runs = " ".join(f"{bleu:.2f}" for bleu in row.bleu)
    return f"{label(row.system)}, {row.test_set}: BLEU {sum(row.bleu) / row.runs:.2f} ({runs})"
