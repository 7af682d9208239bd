"""Where every figure of Table 1 comes from: files with their SHA-256, seeds, weights, settings, versions.

For every system, run and test set: the score file and what lies beside it (output, detokenised text, decoder's report),
the tuned moses.ini with its weights and the files that it names, the seed and the best iteration of MERT; the networks
with their seeds and settings; the corpora; the configuration; the versions of this package, of its stages and of the
packages it stands on, and the commit of its checkout where it is one. No times and no host names: the same files give
the same content. Hashing takes
about a second a gigabyte; --hash-limit-mb leaves large files out.
"""

import argparse
import json
from typing import Any

from rnnsmt.evaluation.bleu import NAME
from rnnsmt.evaluation.collect import add_joint, group
from rnnsmt.evaluation.score_file import read_score
from rnnsmt.io import InputError, write_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rnnsmt evaluation provenance``."""
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


def run(args: argparse.Namespace) -> dict[str, object]:
    """Collect and write everything."""
    from rnnsmt.evaluation.sources import Files, network, software, tuned_run

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


def _joint(text: str) -> tuple[str, list[str]]:
    name, _, parts = text.partition("=")
    if not NAME.fullmatch(name) or not parts:
        raise InputError(f"--joint {text}: write NAME=A+B, for example both=test_2016+test_2017")
    return name, parts.split("+")
