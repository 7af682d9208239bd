"""A step of a sentence that is searched in lockstep with others, compiled: all that happens between two questions.

One call for it: what Python hands over, dozens of arrays, takes as long as some of the work.
"""

import numpy as np

from rnnsmt.kernels.decorator import kernel
from rnnsmt.search.kernels.neural_choice import choose_for_neural
from rnnsmt.search.kernels.neural_store import settle
from rnnsmt.search.kernels.stack import add_cells, propose


@kernel()
def next_stack(stack, chosen, spans, lms, several, ranked, work, store, constants):
    """Make hypotheses of what was chosen for ``stack`` and answered since; choose the cells of the stack behind it.

    Args:
        stack: source words that are covered; 0 where nothing was chosen yet.
        chosen: (cells, requests, groups) of ``choose_for_neural`` for this stack.

    Returns:
        The same for the next stack; nothing where the sentence is complete.
    """
    cells, requests, groups = chosen
    if stack > 0:
        settle(requests, work, store)
        add_cells(stack, cells, ranked, work, constants, True, groups)
    if stack == spans.shape[0]:
        return np.int64(0), np.int64(0), np.int64(0)
    cells = propose(stack + 1, spans, lms, several, ranked, work, constants)
    return choose_for_neural(cells, ranked, work, constants)
