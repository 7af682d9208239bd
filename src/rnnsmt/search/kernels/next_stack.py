"""One step of a sentence in the lockstep search: the work between two batches of the neural LM.

It is one kernel because passing dozens of arrays from Python to numba takes as long as part of the work.
"""

import numpy as np

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.search.kernels.neural_choice import choose_for_neural
from rnnsmt.search.kernels.neural_store import settle
from rnnsmt.search.kernels.stack import add_cells, propose


@kernel()
def next_stack(stack, chosen, spans, lms, several, ranked, work, store, constants):
    """Turn the chosen and scored cells of ``stack`` into hypotheses, then choose the cells of the next stack.

    Args:
        stack: number of source words that are covered; 0 in the first call, when nothing was chosen before.
        chosen: (cells, requests, groups) of ``choose_for_neural`` for this stack.
        spans: ``int32`` [words, longest], source phrase by first word and length - 1, or -1.
        lms: ``LanguageModels``.
        several: None if there is one n-gram LM.
        ranked: ``RankedOptions``.
        work: ``Work`` of the sentence.
        store: ``Store`` of the neural LM, in which all requests of this stack have been scored.
        constants: ``SearchConstants``.

    Returns:
        (cells, requests, groups) of the next stack; zeros if the sentence is complete.
    """
    cells, requests, groups = chosen
    if stack > 0:
        settle(requests, work, store)
        add_cells(stack, cells, ranked, work, constants, True, groups)
    if stack == spans.shape[0]:
        return np.int64(0), np.int64(0), np.int64(0)
    cells = propose(stack + 1, spans, lms, several, ranked, work, constants)
    return choose_for_neural(cells, ranked, work, constants)
