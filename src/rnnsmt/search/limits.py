"""What ``search decode`` and ``tuning mert`` ask of the search on the command line."""

import argparse

from rnnsmt.common_options import positive
from rnnsmt.networks.settings import PRECISIONS
from rnnsmt.search.decoder import NEURAL_CELLS, SearchOptions


def add_search_options(parser: argparse.ArgumentParser) -> None:
    """How far it looks, and how a CSLM is computed."""
    add = parser.add_argument
    add("--pop-limit", type=positive, default=1000, metavar="N", help="cube pruning: hypotheses made per stack")
    add("--stack", type=positive, default=1000, metavar="N", help="hypotheses kept per stack")
    add("--cslm-cells", type=positive, default=NEURAL_CELLS, metavar="N", help="hypotheses of a stack a CSLM scores")
    add("--cslm-precision", choices=PRECISIONS, default="reduced", help="of a CSLM's sum over its vocabulary")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where a CSLM is computed")


def search_options(args: argparse.Namespace) -> SearchOptions:
    """The options of a command with ``--threads``, ``--nbest`` and those of ``add_search_options``."""
    return SearchOptions(
        pop_limit=args.pop_limit,
        stack_size=args.stack,
        threads=args.threads,
        nbest=args.nbest,
        neural_cells=args.cslm_cells,
    )
