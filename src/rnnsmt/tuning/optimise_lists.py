"""Optimise weights for corpus BLEU on given n-best lists, once: the tuning of rescored lists.

The lists are those of a development set in Moses' format, perhaps with further features (`cslm rescore`). The ini has
exactly their features; its weights are where the optimisation starts. What one iteration of `tuning mert` does, but
nothing is decoded again: choose with the new weights from lists (`tuning rerank`); a search with them may find what no
list has held.
"""

import argparse

from rnnsmt.evaluation.batch_bleu import BatchBleu
from rnnsmt.evaluation.bleu import read_texts
from rnnsmt.io import InputError
from rnnsmt.moses.ini import MosesIni
from rnnsmt.moses.nbest import read_lists
from rnnsmt.tuning.nbest_pool import NbestPool, lump_of
from rnnsmt.tuning.optimise import active_features, optimise, pool_bleu
from rnnsmt.tuning.optimiser_options import add_optimiser, optimiser_options, start_weights


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rnnsmt tuning optimise``."""
    add = parser.add_argument
    add("--ini", required=True, metavar="FILE", help="moses.ini with the lists' features, and weights to start from")
    add("--nbest", required=True, metavar="FILE", help="n-best lists of the development set")
    add("--source", required=True, metavar="FILE", help="development set, source side")
    add("--reference", required=True, nargs="+", metavar="FILE", help="development set, one or more references")
    add("--output-ini", required=True, metavar="FILE", help="moses.ini to write, with the tuned weights")
    add_optimiser(parser)
    add("--threads", type=int, default=1, metavar="N", help="threads; the result does not depend on them")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Optimise and write the ini."""
    ini = MosesIni.read(args.ini)
    sources, references = read_texts(args.source, args.reference)
    lists = read_lists(args.nbest, ini, len(sources))
    start = start_weights(ini, lists.names)
    pool = NbestPool(len(lists.texts), len(lists.names))
    pool.add(lump_of(lists.features, BatchBleu(references).statistics(lists.texts)))
    flat = pool.flat()
    active = active_features(flat)
    if not active.any():
        raise InputError(f"{args.nbest}: no feature differs between translations of a sentence, nothing can be tuned")
    found = optimise(flat, [start], active, [args.seed, 1], optimiser_options(args), args.threads)
    for name, weight in zip(lists.names, found.weights, strict=True):
        ini.set_weight(name, float(weight))
    ini.write(args.output_ini)
    before, after = (round(100 * value, 2) for value in (pool_bleu(flat, start), found.value))
    return {"sentences": len(lists.texts), "translations": len(pool), "BLEU before": before, "BLEU": after}
