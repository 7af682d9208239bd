"""How wide to search: ``SearchOptions``, and the options of the commands that search."""

import argparse
import math
from dataclasses import dataclass

from rnnsmt.moses.ini import POP_LIMIT, STACK, MosesIni
from rnnsmt.networks.settings import PRECISIONS
from rnnsmt.options import positive

NEURAL_CELLS = 100


@dataclass(frozen=True)
class SearchOptions:
    """How wide to search.

    Scores under Moses' tuned weights are about a tenth of log-probabilities, so limits given as probabilities or nats
    are scaled by ``score_scale``: a search does not change when all weights are multiplied by the same number.

    Attributes:
        pop_limit: cells (hypothesis and option) that are scored for one stack.
        stack_size: hypotheses that a stack keeps (histogram pruning).
        beam_threshold: hypotheses worse than this factor times the best of the stack are dropped. None: 1e-5, Moses'
            default, or 1e-7 where n-best lists are wanted, whose lower entries would otherwise be missing.
        threads: sentences searched at the same time.
        nbest: distinct translations per sentence to extract; 0 for none.
        margin: cells whose estimate is more than so many nats below the best estimate of the stack are not scored.
        neural_cells: cells of a stack that a neural LM scores; the others are dropped. Half of them are the best by
            all other scores, half each the best of a group that the search without it would recombine.
        in_flight: sentences of up to 40 words that are searched side by side when there is a neural LM; a longer one
            counts as several.
    """

    pop_limit: int = 1000
    stack_size: int = 1000
    beam_threshold: float | None = None
    threads: int = 1
    nbest: int = 0
    margin: float = 20.0
    neural_cells: int = NEURAL_CELLS
    in_flight: int = 128

    def log_beam(self) -> float:
        """The natural logarithm of the beam threshold."""
        if self.beam_threshold is None:
            return math.log(1e-7 if self.nbest else 1e-5)
        return math.log(self.beam_threshold) if self.beam_threshold > 0 else -math.inf


def add_search_options(parser: argparse.ArgumentParser) -> None:
    """How far it looks, and how a CSLM is computed."""
    add = parser.add_argument
    for name, section, default, what in (
        ("--pop-limit", POP_LIMIT, SearchOptions.pop_limit, "hypotheses that are scored for a stack"),
        ("--stack", STACK, SearchOptions.stack_size, "hypotheses kept per stack"),
    ):
        add(name, type=positive, metavar="N", help=f"{what}; without it what [{section}] of the ini says, or {default}")
    add("--cslm-cells", type=positive, default=NEURAL_CELLS, metavar="N", help="hypotheses of a stack a CSLM scores")
    add("--cslm-precision", choices=PRECISIONS, default="reduced", help="of a CSLM's sum over its vocabulary")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where a CSLM is computed")


def search_options(args: argparse.Namespace, ini: MosesIni) -> SearchOptions:
    """The options of a command with ``--threads``, ``--nbest`` and those of ``add_search_options``."""
    return SearchOptions(
        pop_limit=args.pop_limit or ini.number(POP_LIMIT) or SearchOptions.pop_limit,
        stack_size=args.stack or ini.number(STACK) or SearchOptions.stack_size,
        threads=args.threads,
        nbest=args.nbest,
        neural_cells=args.cslm_cells,
    )
