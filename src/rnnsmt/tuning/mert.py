"""Tune the weights of a model for corpus BLEU on a development set: minimum error rate training (Och 2003).

One process: the model is loaded once; every iteration decodes the development set, adds the n-best lists to those of
all iterations before, optimises by exact line searches, and saves its state, so that the same command after an
interruption goes on and ends with the same weights (with a CSLM: on the same kind of processor; other last digits of a
score make a known translation a new one). Where another iteration would be over after --time-limit, the exit code is
75: run the same command again. Output: the ini with the weights of the iteration whose decoded development set had the
highest BLEU, and the history of all iterations.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rnnsmt.common_options import positive
from rnnsmt.evaluation.batch_bleu import BatchBleu
from rnnsmt.evaluation.bleu import read_texts
from rnnsmt.io import InputError, write_json
from rnnsmt.moses.ini import MosesIni
from rnnsmt.search.limits import add_search_options, search_options
from rnnsmt.signals import Stop
from rnnsmt.stages import STAGES
from rnnsmt.tuning.loop import Decoded, LoopOptions, Tuned, tune
from rnnsmt.tuning.optimise import Weights
from rnnsmt.tuning.optimiser_options import add_optimiser, optimiser_options, start_weights
from rnnsmt.tuning.state import MertState, content_hash, outline_hash


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rnnsmt tuning mert``."""
    add = parser.add_argument
    add("--ini", required=True, metavar="FILE", help="moses.ini with the weights to start from")
    add("--source", required=True, metavar="FILE", help="development set, source side")
    add("--reference", required=True, nargs="+", metavar="FILE", help="development set, one or more references")
    add("--output-ini", required=True, metavar="FILE", help="moses.ini to write, with the tuned weights")
    add("--output-history", required=True, metavar="FILE", help="iterations, to write (JSON)")
    add("--state-dir", required=True, metavar="DIR", help="where the state of the run is kept")
    add("--model-dir", metavar="DIR", help="take the ini's files from here where they exist, e.g. filtered tables")
    add("--nbest", type=int, default=100, metavar="N", help="distinct translations of a sentence and iteration")
    add_optimiser(parser)
    add("--max-iterations", type=positive, default=25, metavar="N", help="most iterations")
    add(
        "--patience",
        type=positive,
        default=3,
        metavar="N",
        help="iterations in which dev BLEU must rise by 0.05, or the run ends",
    )
    add("--time-limit", type=float, metavar="SECONDS", help="stop before, save, and exit with 75")
    add_search_options(parser)
    add("--threads", type=int, default=1, metavar="N", help="threads; the result does not depend on them")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Tune, write the tuned ini and the history."""
    stop = Stop(args.time_limit)
    if args.nbest < 2:
        raise InputError(f"--nbest {args.nbest}: must be at least 2")
    ini = MosesIni.read(args.ini)
    sources, references = read_texts(args.source, args.reference)
    state = MertState(args.state_dir, _fingerprint(args, ini))
    decoder = ModelDecoder(ini, sources, args)
    options = LoopOptions(
        seed=args.seed,
        max_iterations=args.max_iterations,
        patience=args.patience,
        threads=args.threads,
        optimiser=optimiser_options(args),
    )
    tuned = tune(decoder, BatchBleu(references), decoder.start, state, options, stop)
    decoder.set_weights(tuned.weights)
    ini.write(args.output_ini)
    write_json(args.output_history, _history(args, decoder, tuned))
    state.finish()
    return {"iterations": len(tuned.iterations), "dev BLEU": tuned.bleu}


def _fingerprint(args: argparse.Namespace, ini: MosesIni) -> dict[str, str]:
    """What the result depends on, by the name a user knows it by."""
    found = {
        "version of this stage": str(STAGES["tuning"]["mert"].version),
        f"--ini {args.ini}": content_hash(args.ini),
        f"--source {args.source}": content_hash(args.source),
        "--reference " + " ".join(args.reference): content_hash(*args.reference),
    }
    for feature in ini.features:
        if "path" in feature.options:
            path = ini.located(feature, Path(args.model_dir) if args.model_dir else None)
            found[f"model file {path.name}"] = outline_hash(path)
    for name in ("seed", "nbest", "restarts", "combine", "random_directions", "max_iterations", "patience", "pop_limit",
                 "stack", "cslm_cells", "cslm_precision"):  # fmt: skip
        found[f"--{name.replace('_', '-')}"] = str(getattr(args, name))
    return found


def _history(args: argparse.Namespace, decoder: "ModelDecoder", tuned: Tuned) -> dict[str, object]:
    return {
        "features": list(decoder.feature_names),
        "seed": args.seed,
        "best_iteration": max(tuned.iterations, key=lambda iteration: iteration["dev_bleu"])["iteration"],
        "dev_bleu": tuned.bleu,
        "stopped": tuned.stopped,
        "iterations": tuned.iterations,
    }


class ModelDecoder:
    """The search as the loop sees it: tuned features only (the unknown word penalty keeps its weight, as in Moses)."""

    def __init__(self, ini: MosesIni, sources: list[str], args: argparse.Namespace) -> None:
        """Load the model for these sentences."""
        from rnnsmt.search import load_model

        self._ini, self.sources = ini, sources
        self.model = load_model(ini, sources, args.model_dir, args.threads, args.device, args.cslm_precision)
        self._options = search_options(args)
        names = list(self.model.feature_names)
        self._tuned = np.array([not name.startswith("UnknownWordPenalty") for name in names])
        self._weights = np.array([ini.weight(name) for name in names])
        self.feature_names = [name for name, tuned in zip(names, self._tuned, strict=True) if tuned]
        self.start = start_weights(ini, self.feature_names)

    def decode(self, weights: Weights) -> Decoded:
        """Translate the development set with these weights of the tuned features."""
        from rnnsmt.search import decode

        full = self.full(weights)
        translations = decode(self.model, self.sources, full, self._options)
        texts: list[list[str]] = []
        features: list[NDArray[np.float64]] = []
        for translation in translations:
            if not translation.nbest.texts:  # an empty sentence
                texts.append([translation.text])
                features.append(translation.features[None, self._tuned])
                continue
            fixed = translation.nbest.features[:, ~self._tuned] @ full[~self._tuned]
            possible = fixed >= fixed.max() - 1e-6
            texts.append([text for text, keep in zip(translation.nbest.texts, possible, strict=True) if keep])
            features.append(translation.nbest.features[possible][:, self._tuned])
        return Decoded([translation.text for translation in translations], texts, features)

    def full(self, weights: Weights) -> Weights:
        """All weights of the model, in the order of its features."""
        full = self._weights.copy()
        full[self._tuned] = weights
        return full

    def set_weights(self, weights: Weights) -> None:
        """Put the weights of the tuned features into the ini."""
        for name, weight in zip(self.feature_names, weights, strict=True):
            self._ini.set_weight(name, float(weight))
