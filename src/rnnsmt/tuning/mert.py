"""The outer loop of MERT: decode, add the n-best lists to the pool, optimise, save, until nothing is gained.

As ``mert-moses.pl``: weights have absolute sum 1; n-best lists of all iterations accumulate; the loop ends when an
iteration finds no new candidate, when the weights stay what they were, or after a number of iterations. It also ends
when corpus BLEU of the decoded development set has not risen by ``least_rise`` in ``patience`` iterations.
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rnnsmt.bleu.batch import BatchBleu, NumberedTexts
from rnnsmt.bleu.multi_bleu import bleu_of
from rnnsmt.progress import say
from rnnsmt.stopping import Stop
from rnnsmt.tuning.nbest_pool import NbestPool, candidate_batch
from rnnsmt.tuning.optimisation import Weights, normalised, optimise_weights, tunable_features
from rnnsmt.tuning.options import LoopOptions
from rnnsmt.tuning.state import MertState


class Decoded(NamedTuple):
    """Translations of the development set: the best one and the n-best list of every sentence."""

    best: list[str]
    texts: list[list[str]] | NumberedTexts
    features: list[NDArray[np.float64]]
    """``[n_s, F]`` a sentence, the tuned features only."""


class DevSetDecoder(Protocol):
    """What the loop needs of a search."""

    feature_names: list[str]

    def decode(self, weights: Weights) -> Decoded:
        """Translate the development set."""
        ...


class Tuned(NamedTuple):
    """The result: the weights whose decoded development BLEU was highest, and all iterations.

    ``seconds``: CPU seconds of decoding, merging and optimising, for the iterations of this process.
    """

    weights: Weights
    bleu: float
    best_iteration: int
    iterations: list[dict[str, Any]]
    stopped: str
    seconds: list[tuple[float, float, float]]

    def history(self, features: Sequence[str], seed: int) -> dict[str, object]:
        """What ``--output-history`` holds; ``features``: names of the weights."""
        return {
            "features": list(features),
            "seed": seed,
            "best_iteration": self.best_iteration,
            "dev_bleu": self.bleu,
            "stopped": self.stopped,
            "iterations": self.iterations,
        }


def tune(
    decoder: DevSetDecoder,
    bleu: BatchBleu,
    start: Weights,
    state: MertState,
    options: LoopOptions,
    stop: Stop | None = None,
) -> Tuned:
    """Run MERT from ``start``, or go on from the last complete iteration in ``state``.

    What comes out depends on ``options``, not on how far a run before went: a state that has more iterations than these
    options ask for is read as far as they ask, one that has fewer is gone on with.

    Raises:
        InputError: as ``tunable_features``.
        SystemExit: ``stop`` asks for it before an iteration as long as the last one would be over.
    """
    seconds = []
    if _end(state.iterations, options) is None:
        pool = NbestPool(bleu.segments, start.size)
        for batch in state.batches():
            pool.add(batch)
        if state.iterations:
            say(f"going on after iteration {len(state.iterations)} with {len(pool):,} candidates from {state.folder}")
        while _stop_reason(state.iterations, options) is None:
            began = time.monotonic()
            seconds.append(_iteration(decoder, bleu, start, pool, state, options))
            if stop and stop.asked(time.monotonic() - began) and _stop_reason(state.iterations, options) is None:
                say(f"stopped {stop.reason()} after iteration {len(state.iterations)}, state saved: run again to go on")
                raise SystemExit(stop.exit_code())
    iterations = state.iterations[: _end(state.iterations, options)]
    stopped = str(_stop_reason(iterations, options))
    best = max(iterations, key=lambda iteration: iteration["dev_bleu"])
    say(f"{stopped}; best is iteration {best['iteration']} with dev BLEU {best['dev_bleu']:.2f}")
    return Tuned(np.array(best["weights"]), best["dev_bleu"], best["iteration"], iterations, stopped, seconds)


def _end(iterations: list[dict[str, Any]], options: LoopOptions) -> int | None:
    """How many of these iterations a run with these options makes; none where it makes more."""
    numbers = range(1, len(iterations) + 1)
    return next((number for number in numbers if _stop_reason(iterations[:number], options) is not None), None)


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
    decoder: DevSetDecoder, bleu: BatchBleu, start: Weights, pool: NbestPool, state: MertState, options: LoopOptions
) -> tuple[float, float, float]:
    number = len(state.iterations) + 1
    weights = np.array(state.iterations[-1]["next_weights"]) if state.iterations else normalised(start)
    clock = [time.process_time()]
    decoded = decoder.decode(weights)
    clock.append(time.process_time())
    dev = bleu_of(bleu.statistics([[text] for text in decoded.best]).sum(axis=0))
    fresh = pool.add(candidate_batch(decoded.features, bleu.statistics(decoded.texts)))
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
    active = tunable_features(flat, names)
    found = optimise_weights(
        flat, [weights], active, [options.seed, len(state.iterations) + 1], options.optimiser, options.threads
    )
    return {
        "pool_bleu": 100 * found.value,
        "next_weights": found.weights.tolist(),
        "line_searches": found.searches,
        "constant_features": [name for name, moves in zip(names, active, strict=True) if not moves],
    }
