"""The outer loop of tuning: optimise, decode, add the n-best lists to the pool, save, until nothing is gained.

As ``mert-moses.pl``: weights have absolute sum 1; n-best lists of all iterations accumulate; the loop ends when an
iteration finds no new candidate, or after a number of iterations. It also ends when corpus BLEU of the decoded
development set has not risen by ``least_rise`` in ``patience`` iterations. The iteration with the highest BLEU counts.

In the end it is compared with the tuned weights of nested models, which have some of the features (``_Run.compare``).
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rnnsmt.bleu.batch import BatchBleu, NumberedTexts
from rnnsmt.bleu.multi_bleu import bleu_of
from rnnsmt.progress import say
from rnnsmt.stopping import Stop
from rnnsmt.tuning.nbest_pool import NbestPool, active_features, candidate_batch, pool_bleu, tunable_features
from rnnsmt.tuning.optimisation import optimise_weights
from rnnsmt.tuning.options import LoopOptions
from rnnsmt.tuning.state import TuningState
from rnnsmt.tuning.weights import Weights, normalised

LINE = (0.75, 0.5, 0.25)
"""The points between a nested model's weights and the best own ones that are tried, from the latter on."""

HOPELESS = 0.01
"""BLEU (0 to 1) on the accumulated n-best lists by which weights must be behind not to be decoded."""


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
    """The result: the weights whose decoded development BLEU is highest, and what was decoded.

    ``best_iteration``: number of the best iteration. ``comparisons``: see ``_Run.compare``; ``weights`` may be those of
    one of them. ``seconds``: CPU seconds of optimising, decoding and merging, for the decodings of this process.
    """

    weights: Weights
    bleu: float
    best_iteration: int
    iterations: list[dict[str, Any]]
    comparisons: list[dict[str, Any]]
    stopped: str
    seconds: list[tuple[float, float, float]]

    def history(self, features: Sequence[str], seed: int) -> dict[str, object]:
        """What ``--output-history`` holds; ``features``: names of the weights."""
        return {
            "features": list(features),
            "seed": seed,
            "best_iteration": self.best_iteration,
            "dev_bleu": self.bleu,
            "weights": self.weights.tolist(),
            "stopped": self.stopped,
            "iterations": self.iterations,
            "comparisons": self.comparisons,
        }


def tune(
    decoder: DevSetDecoder,
    bleu: BatchBleu,
    start: Weights,
    state: TuningState,
    options: LoopOptions,
    stop: Stop | None = None,
    nested: Sequence[Weights] = (),
) -> Tuned:
    """Tune from ``start``, or go on from what is complete in ``state``.

    What comes out depends on ``options``, not on how far a run before went: a state that has more iterations than these
    options ask for is read as far as they ask, one that has fewer is gone on with.

    Args:
        nested: tuned weights ``[F]`` of models that have some of the features, 0 for the others: the result is not
            worse than any of them on the development set.

    Raises:
        InputError: as ``tunable_features``.
        SystemExit: ``stop`` asks for it before a decoding as long as the last one would be over.
    """
    run = _Run(decoder, bleu, state, options, stop)
    run.iterate(normalised(start))
    iterations = state.iterations[: _end(state.iterations, options)]
    stopped = str(_stop_reason(iterations, options))
    best = max(iterations, key=lambda iteration: iteration["dev_bleu"])
    say(f"{stopped}; best is iteration {best['iteration']} with dev BLEU {best['dev_bleu']:.2f}")
    comparisons = run.compare(best, [normalised(weights) for weights in nested], len(iterations)) if nested else []
    chosen = max([best, *comparisons], key=lambda record: record["dev_bleu"])
    return Tuned(
        np.array(chosen["weights"]),
        chosen["dev_bleu"],
        best["iteration"],
        iterations,
        comparisons,
        stopped,
        run.seconds,
    )


def _end(iterations: list[dict[str, Any]], options: LoopOptions) -> int | None:
    """How many of these iterations a run with these options makes; none where it makes more."""
    numbers = range(1, len(iterations) + 1)
    return next((number for number in numbers if _stop_reason(iterations[:number], options) is not None), None)


def _stop_reason(iterations: list[dict[str, Any]], options: LoopOptions) -> str | None:
    if not iterations:
        return None
    if iterations[-1]["new_candidates"] == 0:
        return "stopped: no new candidates"
    scores = [iteration["dev_bleu"] for iteration in iterations]
    earlier = scores[: -options.patience]
    if earlier and max(scores) < max(earlier) + options.least_rise:
        return f"stopped: dev BLEU has not risen by {options.least_rise} in {options.patience} iterations"
    if len(iterations) >= options.max_iterations:
        return f"stopped after {options.max_iterations} iterations"
    return None


class _Run:
    """What a process does for one run, a decoding at a time; each is saved."""

    def __init__(
        self, decoder: DevSetDecoder, bleu: BatchBleu, state: TuningState, options: LoopOptions, stop: Stop | None
    ) -> None:
        self._decoder, self._bleu, self._state, self._options, self._stop = decoder, bleu, state, options, stop
        self.seconds: list[tuple[float, float, float]] = []
        self._last = 0.0
        """Seconds on the clock that the last decoding took, with what goes with it."""

    def iterate(self, start: Weights) -> None:
        """All iterations that the state lacks."""
        state = self._state
        if _end(state.iterations, self._options) is not None:
            return
        pool = self._pool(start.size, len(state.iterations))
        if state.iterations:
            say(f"resuming after iteration {len(state.iterations)} with {len(pool):,} candidates from {state.folder}")
        while _stop_reason(state.iterations, self._options) is None:
            self._ask_for_time()
            began = time.monotonic()
            self._iteration(start, pool)
            self._last = time.monotonic() - began

    def _pool(self, features: int, iterations: int) -> NbestPool:
        """What the first iterations have found."""
        pool = NbestPool(self._bleu.segments, features)
        for batch in self._state.batches(iterations):
            pool.add(batch)
        return pool

    def _ask_for_time(self) -> None:
        """End the process where time is up; it has done something then."""
        if self.seconds and self._stop and self._stop.asked(self._last):
            done = len(self._state.iterations)
            say(
                f"stopped {self._stop.reason()} after iteration {done}, state saved: "
                "run the same command again to resume"
            )
            raise SystemExit(self._stop.exit_code())

    def _iteration(self, start: Weights, pool: NbestPool) -> None:
        done = len(self._state.iterations)
        names = self._decoder.feature_names
        clock = [time.process_time()]
        record: dict[str, Any] = {"iteration": done + 1}
        weights = start
        if done:
            flat = pool.flat()
            active = active_features(flat)
            last = np.array(self._state.iterations[-1]["weights"])
            seed = [self._options.seed, done]
            weights = optimise_weights(flat, last, active, seed, self._options.optimiser, self._options.threads)
            record["pool_bleu"] = 100 * pool_bleu(flat, weights)
            record["constant_features"] = [name for name, moves in zip(names, active, strict=True) if not moves]
        clock.append(time.process_time())
        decoded = self._decoder.decode(weights)
        clock.append(time.process_time())
        dev = bleu_of(self._bleu.statistics([[text] for text in decoded.best]).sum(axis=0))
        fresh = pool.add(candidate_batch(decoded.features, self._bleu.statistics(decoded.texts)))
        clock.append(time.process_time())
        if not done:
            tunable_features(pool.flat(), names)  # refused before anything is saved
        record |= {"dev_bleu": dev.bleu, "length_ratio": dev.length_ratio, "weights": weights.tolist()}
        record |= {"new_candidates": len(fresh.sentences), "candidates": len(pool)}
        self._state.save(record, fresh)
        seconds = (clock[1] - clock[0], clock[2] - clock[1], clock[3] - clock[2])
        self.seconds.append(seconds)
        promised = f" (on the lists before {record['pool_bleu']:.2f})" if done else ""
        say(
            f"iteration {done + 1}: dev {dev}{promised}, {len(fresh.sentences):,} new of {len(pool):,} candidates; "
            f"CPU s: optimise {seconds[0]:.1f}, decode {seconds[1]:.1f}, merge {seconds[2]:.1f}"
        )

    def compare(self, best: Mapping[str, Any], nested: Sequence[Weights], iterations: int) -> list[dict[str, Any]]:
        """Decode with the weights of nested models, and between them and the best of the iterations where one is ahead.

        ``HOPELESS`` spares the decoding with weights that are far behind. Where a nested model is ahead of ``best``,
        points on the line between the two are decoded, from ``best`` on, until one is not behind the nested model: what
        the further features are worth on other text should not be lost with a little BLEU on the development set.

        Returns:
            Records of what was decoded: which of ``nested``, from 1; ``part``, the way from it to ``best``, 0 to 1; the
            weights and their BLEU. The points on the line first: of equally good weights they are taken.
        """
        own = np.array(best["weights"])
        pool = self._pool(own.size, iterations).flat()
        least = pool_bleu(pool, own) - HOPELESS
        found = [
            self._comparison(number, 0.0, weights)
            for number, weights in enumerate(nested, 1)
            if pool_bleu(pool, weights) >= least
        ]
        ahead = max(found, key=lambda record: record["dev_bleu"], default=best)
        points: list[dict[str, Any]] = []
        if ahead["dev_bleu"] > best["dev_bleu"]:
            weights = np.array(ahead["weights"])
            for part in LINE:
                points.append(self._comparison(ahead["nested"], part, normalised(weights + part * (own - weights))))
                if points[-1]["dev_bleu"] >= ahead["dev_bleu"]:
                    break
        return points + found

    def _comparison(self, nested: int, part: float, weights: Weights) -> dict[str, Any]:
        """The record of one decoding: from the state, or made and saved."""
        key = weights.tolist()
        value = next((one["dev_bleu"] for one in self._state.comparisons if one["weights"] == key), None)
        if value is None:
            self._ask_for_time()
            began, cpu = time.monotonic(), time.process_time()
            best = self._decoder.decode(weights).best
            value = bleu_of(self._bleu.statistics([[text] for text in best]).sum(axis=0)).bleu
            self._state.save_comparison({"weights": key, "dev_bleu": value})
            self.seconds.append((0.0, time.process_time() - cpu, 0.0))
            self._last = time.monotonic() - began
        where = "weights" if part == 0 else f"{part:.0%} of the way from the weights"
        say(f"{where} of nested model {nested}: dev BLEU {value:.2f}")
        return {"nested": nested, "part": part, "weights": key, "dev_bleu": value}
