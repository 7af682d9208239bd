"""The command that writes Moses' moses.ini."""

import argparse
from pathlib import Path

from rnnsmt.io import InputError
from rnnsmt.moses.ini import CSLM_UNKNOWN


def ini_options(parser: argparse.ArgumentParser) -> None:
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
    parser.add_argument(
        "--cslm-unknown",
        choices=CSLM_UNKNOWN,
        default=CSLM_UNKNOWN[0],
        help="what it gives words outside its shortlist: the probability of all of them, as in the paper, or a share",
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


def ini(args: argparse.Namespace) -> dict[str, object]:
    """Write the ``moses.ini`` of a freshly trained model directory, with Moses' default weights before tuning.

    Paths inside are relative to the folder of the ini. Real Moses reads the file when it is started in that folder.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt moses ini --model-dir results/model --lm-order 5 --output try/moses.ini
    """
    from rnnsmt.moses.ini import default_ini

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
        args.cslm_unknown,
    )
    ini.write(args.output)
    return {"features": len(ini.features), "weights": sum(len(w) for w in ini.weights.values())}
