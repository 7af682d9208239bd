"""Write the ``moses.ini`` of a freshly trained model directory, with Moses' default weights before tuning.

Paths inside are relative to the folder of the ini. Real Moses reads the file when it is started in that folder.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rnnsmt.io import InputError
from rnnsmt.moses.ini import Feature, MosesIni

REORDERING_TYPE = "wbe-msd-bidirectional-fe-allff"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the stage."""
    parser.add_argument("--model-dir", type=Path, required=True, help="folder with the tables and the LM")
    parser.add_argument("--output", type=Path, required=True, help="the moses.ini to write")
    parser.add_argument("--phrase-table", default="phrase-table.gz", help="file name inside the model directory")
    parser.add_argument(
        "--reordering-table",
        default="reordering-table.wbe-msd-bidirectional-fe.gz",
        help="file name inside the model directory; 'none' for distance-based reordering alone",
    )
    parser.add_argument("--lm", default="lm.arpa.gz", help="file name inside the model directory")
    parser.add_argument("--lm-order", type=int, default=5, help="order of the LM")
    parser.add_argument(
        "--cslm", metavar="FILE", help="model of a continuous-space LM, relative to the model directory"
    )
    parser.add_argument("--num-features", type=int, default=4, help="score columns of the phrase table")
    parser.add_argument(
        "--further-weights",
        type=float,
        nargs="+",
        metavar="W",
        help="weights of the columns after the fourth, where they should not be 0.2",
    )
    parser.add_argument("--distortion-limit", type=int, default=6, help="in words, -1 for none")
    parser.add_argument("--table-limit", type=int, default=20, help="translations per source phrase, 0 for all")


def default_ini(
    folder: Path,
    phrase_table: str,
    reordering_table: str | None,
    lm: str,
    lm_order: int = 5,
    num_features: int = 4,
    distortion_limit: int = 6,
    table_limit: int = 20,
    cslm: str | None = None,
    further_weights: Sequence[float] | None = None,
) -> MosesIni:
    """The ini that training ends with: the features of a phrase-based baseline with Moses' untuned weights.

    The weights are those that Moses' ``train-model.perl`` writes: 0.2 for every phrase score and the phrase penalty,
    0.3 for every reordering score and distortion, 0.5 for the LM, -1 for the word penalty. A neural LM gets 0.25.
    ``further_weights`` are those of the phrase scores after the fourth.
    """
    factors = {"input-factor": "0", "output-factor": "0"}
    table = {"name": "TranslationModel0", "num-features": str(num_features), "path": phrase_table, **factors}
    if table_limit != 20:
        table["table-limit"] = str(table_limit)
    features = [
        Feature("UnknownWordPenalty", "UnknownWordPenalty0"),
        Feature("WordPenalty", "WordPenalty0"),
        Feature("PhrasePenalty", "PhrasePenalty0"),
        Feature("PhraseDictionaryMemory", "TranslationModel0", table),
    ]
    weights = {
        "UnknownWordPenalty0": [1.0],
        "WordPenalty0": [-1.0],
        "PhrasePenalty0": [0.2],
        "TranslationModel0": [0.2] * num_features if further_weights is None else [0.2] * 4 + list(further_weights),
    }
    if reordering_table is not None:
        options = {"name": "LexicalReordering0", "num-features": "6", "type": REORDERING_TYPE, **factors}
        features.append(Feature("LexicalReordering", "LexicalReordering0", {**options, "path": reordering_table}))
        weights["LexicalReordering0"] = [0.3] * 6
    features.append(Feature("Distortion", "Distortion0"))
    weights["Distortion0"] = [0.3]
    features.append(
        Feature("KENLM", "LM0", {"lazyken": "0", "name": "LM0", "factor": "0", "path": lm, "order": str(lm_order)})
    )
    weights["LM0"] = [0.5]
    if cslm is not None:
        features.append(Feature("CSLM", "CSLM0", {"name": "CSLM0", "path": cslm}))
        weights["CSLM0"] = [0.25]
    sections = {"input-factors": ["0"], "mapping": ["0 T 0"]}
    return MosesIni(folder, features, weights, distortion_limit, table_limit, sections)


def run(args: argparse.Namespace) -> dict[str, object]:
    """Check that the files are there and write the ini."""
    reordering = None if args.reordering_table == "none" else args.reordering_table
    for name in [args.phrase_table, args.lm, *(name for name in (reordering, args.cslm) if name)]:
        if not (args.model_dir / name).is_file():
            raise InputError(f"{args.model_dir / name}: no such file; build the model before its moses.ini")
    if args.num_features < 1 or args.lm_order < 1 or args.table_limit < 0 or args.distortion_limit < -1:
        raise InputError("--num-features and --lm-order start at 1, --table-limit at 0, --distortion-limit at -1")
    if args.further_weights is not None and len(args.further_weights) != args.num_features - 4:
        raise InputError(
            f"--further-weights: {len(args.further_weights)} given, but --num-features {args.num_features} leaves "
            f"{max(args.num_features - 4, 0)} columns after the fourth; give one for each"
        )
    ini = default_ini(
        args.model_dir,
        args.phrase_table,
        reordering,
        args.lm,
        args.lm_order,
        args.num_features,
        args.distortion_limit,
        args.table_limit,
        args.cslm,
        args.further_weights,
    )
    ini.write(args.output)
    return {"features": len(ini.features), "weights": sum(len(w) for w in ini.weights.values())}
