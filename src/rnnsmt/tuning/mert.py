"""The outer loop of MERT: decode, add the n-best lists to the pool, optimise, save, until nothing is gained.

As ``mert-moses.pl``: weights have absolute sum 1; n-best lists of all iterations accumulate; the loop ends when an
iteration finds no new candidate, when the weights stay what they were, or after a number of iterations. It also ends
when corpus BLEU of the decoded development set has not risen by ``least_rise`` in ``patience`` iterations.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rnnsmt.bleu.batch import BatchBleu
from rnnsmt.bleu.multi_bleu import bleu_of
from rnnsmt.io import InputError
from rnnsmt.moses.ini import MosesIni
from rnnsmt.progress import say
from rnnsmt.search.options import search_options
from rnnsmt.stages import STAGES
from rnnsmt.stopping import Stop
from rnnsmt.tuning.commands import start_weights
from rnnsmt.tuning.nbest_pool import NbestPool, lump_of
from rnnsmt.tuning.optimisation import OptimiserOptions, Weights, active_features, normalised, optimise
from rnnsmt.tuning.state import MertState, content_hash, outline_hash


class Decoded(NamedTuple):
    """Translations of the development set: the best one and the n-best list of every sentence."""

    best: list[str]
    texts: list[list[str]]
    features: list[NDArray[np.float64]]
    """``[n_s, F]`` a sentence, the tuned features only."""


class Decoder(Protocol):
    """What the loop needs of a search."""

    feature_names: list[str]

    def decode(self, weights: Weights) -> Decoded:
        """Translate the development set."""
        ...


@dataclass(frozen=True)
class LoopOptions:
    """When the loop ends, and how each optimisation searches."""

    seed: int = 1
    max_iterations: int = 25
    patience: int = 3
    threads: int = 1
    least_rise: float = 0.05
    least_change: float = 1e-5
    optimiser: OptimiserOptions = field(default_factory=OptimiserOptions)


class Tuned(NamedTuple):
    """The result: the weights whose decoded development BLEU was highest, and all iterations.

    ``seconds``: CPU seconds of decoding, merging and optimising, for the iterations of this process.
    """

    weights: Weights
    bleu: float
    iterations: list[dict[str, Any]]
    stopped: str
    seconds: list[tuple[float, float, float]]


def tune(
    decoder: Decoder,
    bleu: BatchBleu,
    start: Weights,
    state: MertState,
    options: LoopOptions,
    stop: Stop | None = None,
) -> Tuned:
    """Run MERT from ``start``, or go on from the last complete iteration in ``state``.

    Raises:
        InputError: BLEU is 0 whatever the weights, or no feature differs between candidates.
        SystemExit: ``stop`` asks for it before an iteration as long as the last one would be over.
    """
    pool = NbestPool(bleu.segments, start.size)
    for lump in state.lumps():
        pool.add(lump)
    if state.iterations:
        say(f"going on after iteration {len(state.iterations)} with {len(pool):,} candidates from {state.folder}")
    seconds = []
    while (stopped := _stop_reason(state.iterations, options)) is None:
        began = time.monotonic()
        seconds.append(_iteration(decoder, bleu, start, pool, state, options))
        if stop and stop.asked(time.monotonic() - began) and _stop_reason(state.iterations, options) is None:
            say(f"stopped {stop.reason()} after iteration {len(state.iterations)}, state saved: run again to go on")
            raise SystemExit(stop.exit_code())
    best = max(state.iterations, key=lambda iteration: iteration["dev_bleu"])
    say(f"{stopped}; best is iteration {best['iteration']} with dev BLEU {best['dev_bleu']:.2f}")
    return Tuned(np.array(best["weights"]), best["dev_bleu"], state.iterations, stopped, seconds)


def _stop_reason(iterations: list[dict[str, Any]], options: LoopOptions) -> str | None:
    if not iterations:
        return None
    last = iterations[-1]
    if last["new_candidates"] == 0:
        return "stopped: no new candidates"
    change = np.max(np.abs(np.array(last["next_weights"]) - np.array(last["weights"])))
    if change < options.least_change:
        return "stopped: the weights stay what they are"
    scores = [iteration["dev_bleu"] for iteration in iterations]
    earlier = scores[: -options.patience]
    if earlier and max(scores) < max(earlier) + options.least_rise:
        return f"stopped: dev BLEU has not risen by {options.least_rise} in {options.patience} iterations"
    if len(iterations) >= options.max_iterations:
        return f"stopped after {options.max_iterations} iterations"
    return None


def _iteration(
    decoder: Decoder, bleu: BatchBleu, start: Weights, pool: NbestPool, state: MertState, options: LoopOptions
) -> tuple[float, float, float]:
    number = len(state.iterations) + 1
    weights = np.array(state.iterations[-1]["next_weights"]) if state.iterations else normalised(start)
    clock = [time.process_time()]
    decoded = decoder.decode(weights)
    clock.append(time.process_time())
    dev = bleu_of(bleu.statistics([[text] for text in decoded.best]).sum(axis=0))
    fresh = pool.add(lump_of(decoded.features, bleu.statistics(decoded.texts)))
    clock.append(time.process_time())
    record = {"iteration": number, "dev_bleu": dev.bleu, "length_ratio": dev.length_ratio, "weights": weights.tolist()}
    record |= {"new_candidates": len(fresh.sentences), "candidates": len(pool)}
    record |= _optimise(decoder.feature_names, pool, weights, state, options)
    clock.append(time.process_time())
    state.save(record, fresh)
    seconds = (clock[1] - clock[0], clock[2] - clock[1], clock[3] - clock[2])
    say(
        f"iteration {number}: dev {dev}, {len(fresh.sentences):,} new of {len(pool):,} candidates, pool BLEU "
        f"{record['pool_bleu']:.2f}; CPU s: decode {seconds[0]:.1f}, merge {seconds[1]:.1f}, optimise {seconds[2]:.1f}"
    )
    return seconds


def _optimise(
    names: Sequence[str], pool: NbestPool, weights: Weights, state: MertState, options: LoopOptions
) -> dict[str, Any]:
    flat = pool.flat()
    _check_matches(flat.statistics)
    active = active_features(flat)
    constant = [name for name, moves in zip(names, active, strict=True) if not moves]
    if len(constant) == len(names):
        raise InputError(
            "every feature is constant on every n-best list, so no weight can be tuned; "
            "is --nbest larger than 1, and does the phrase table cover the development set?"
        )
    if constant:
        say(f"warning: constant on every n-best list, the weight stays: {', '.join(constant)}")
    found = optimise(
        flat, [weights], active, [options.seed, len(state.iterations) + 1], options.optimiser, options.threads
    )
    return {
        "pool_bleu": 100 * found.value,
        "next_weights": found.weights.tolist(),
        "line_searches": found.searches,
        "constant_features": constant,
    }


def _check_matches(statistics: NDArray[np.int32]) -> None:
    for order in range(4):
        if not statistics[:, order].any():
            raise InputError(
                f"no translation in the n-best lists shares a {order + 1}-gram with its reference, so BLEU is 0 "
                "whatever the weights; do --source and --reference belong together, and are they tokenised alike?"
            )


def fingerprint(args: argparse.Namespace, ini: MosesIni) -> dict[str, str]:
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
        self._options = search_options(args, ini)
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
