"""Outer loop of tuning: optimise the weights, decode, merge the n-best lists, save a checkpoint, until convergence.

As in ``mert-moses.pl``, weights have absolute sum 1, n-best lists of all iterations accumulate, and the loop ends when
an iteration finds no new candidate or after a maximum number of iterations. It also ends when corpus BLEU of the
decoded development set has not risen by ``least_rise`` in ``patience`` iterations. The result is the iteration with the
highest BLEU.

Finally, the result is compared with the tuned weights of nested models, whose features are a subset (``_Run.compare``).
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.progress import say
from rnnsmt.base.resuming import Stop
from rnnsmt.bleu.batch import BatchBleu, NumberedTexts
from rnnsmt.bleu.multi_bleu import bleu_of
from rnnsmt.tuning import mert, mira, pro
from rnnsmt.tuning.checkpoint import TuningCheckpoint
from rnnsmt.tuning.nbest_pool import (
    FlatPool,
    NbestPool,
    Weights,
    active_features,
    candidate_batch,
    normalised,
    pool_bleu,
    tunable_features,
)
from rnnsmt.tuning.options import LoopOptions, OptimiserOptions

LINE = (0.75, 0.5, 0.25)
"""Points decoded on the line from a nested model's weights (0) to the best weights of this run (1), in this order."""

HOPELESS = 0.01
"""Weights are not decoded if their BLEU (0 to 1) on the n-best lists is more than this below that of the best ones."""


def optimise_weights(
    pool: FlatPool,
    start: Weights,
    active: NDArray[np.bool_],
    seed: Sequence[int],
    options: OptimiserOptions,
    threads: int = 1,
) -> Weights:
    """Return optimised weights ``[F]`` with absolute sum 1 for the pool, by MERT, batch MIRA or PRO.

    Args:
        pool: candidates of all sentences.
        start: weights of the previous iteration.
        active: ``[F]``, mask of the features whose weights may change; the others keep their weights up to the common
            scale.
        seed: entropy of the random generator of this optimisation.
        options: algorithm and its settings.
        threads: number of threads; does not affect the result.
    """
    if options.optimiser == "mira":
        return mira.optimise(pool, start, seed, options)
    if options.optimiser == "pro":
        return pro.optimise(pool, start, active, seed, options)
    return mert.optimise(pool, start, active, seed, options, threads)


class Decoded(NamedTuple):
    """Translations of the development set: best translation and n-best list of every sentence."""

    best: list[str]
    texts: list[list[str]] | NumberedTexts
    features: list[NDArray[np.float64]]
    """Feature vectors ``[n_s, F]`` of each sentence, tuned features only."""


class DevSetDecoder(Protocol):
    """Interface of the decoder that the loop requires."""

    feature_names: list[str]

    def decode(self, weights: Weights) -> Decoded:
        """Translate the development set with these weights ``[F]``."""
        ...


class Tuned(NamedTuple):
    """Result of tuning: the weights with the highest BLEU on the decoded development set, and the history.

    Attributes:
        weights: ``[F]``; may be those of one of the comparisons.
        bleu: BLEU of these weights in percent.
        best_iteration: 1-based number of the best iteration.
        iterations: records of the iterations.
        comparisons: records of the comparisons with nested models, see ``_Run.compare``.
        stopped: reason for the end of the loop.
        seconds: CPU seconds of optimising, decoding and merging, for each decoding of this process.
    """

    weights: Weights
    bleu: float
    best_iteration: int
    iterations: list[dict[str, Any]]
    comparisons: list[dict[str, Any]]
    stopped: str
    seconds: list[tuple[float, float, float]]

    def history(self, features: Sequence[str], seed: int) -> dict[str, object]:
        """Return the content of ``--output-history``; ``features`` are the names of the weights."""
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
    checkpoint: TuningCheckpoint,
    options: LoopOptions,
    stop: Stop | None = None,
    nested: Sequence[Weights] = (),
    label: str = "",
) -> Tuned:
    """Tune from ``start``, or resume from the iterations in ``checkpoint``.

    The result depends on ``options``, but not on the number of iterations in the checkpoint: if it has more iterations
    than these options allow, only the first ones are used; if it has fewer, the run is resumed.

    Args:
        decoder: decoder of the development set.
        bleu: prepared references of the development set.
        start: initial weights ``[F]``.
        checkpoint: checkpoint directory of the run.
        options: end of the loop and settings of the optimiser.
        stop: signals and time limit.
        nested: tuned weights ``[F]`` of models with a subset of the features, 0 for the other features. The result is
            not worse than any of them on the development set.
        label: beginning of the progress lines, which names the run.

    Raises:
        InputError: see ``tunable_features``.
        SystemExit: the next decoding, if it takes as long as the last one, would exceed the time limit of ``stop``, or
            a signal was received.
    """
    run = _Run(decoder, bleu, checkpoint, options, stop, label)
    run.iterate(normalised(start))
    iterations = checkpoint.iterations[: _end(checkpoint.iterations, options)]
    stopped = str(_stop_reason(iterations, options))
    best = max(iterations, key=lambda iteration: iteration["dev_bleu"])
    say(f"{label}{stopped}; best is iteration {best['iteration']} with dev BLEU {best['dev_bleu']:.2f}")
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
    """Return the number of these iterations after which a run with these options ends, or None if it continues."""
    numbers = range(1, len(iterations) + 1)
    return next((number for number in numbers if _stop_reason(iterations[:number], options) is not None), None)


def _stop_reason(iterations: list[dict[str, Any]], options: LoopOptions) -> str | None:
    """Return the reason for ending the loop after these iterations, or None."""
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
    """One tuning run in one process; the checkpoint is saved after every decoding."""

    def __init__(
        self,
        decoder: DevSetDecoder,
        bleu: BatchBleu,
        checkpoint: TuningCheckpoint,
        options: LoopOptions,
        stop: Stop | None,
        label: str,
    ) -> None:
        """Create a run; see ``tune`` for the arguments."""
        self._decoder, self._bleu, self._checkpoint = decoder, bleu, checkpoint
        self._options, self._stop, self._label = options, stop, label
        self.seconds: list[tuple[float, float, float]] = []
        self._last = 0.0
        """Wall-clock seconds of the last iteration or comparison."""

    def iterate(self, start: Weights) -> None:
        """Run the iterations that are missing from the checkpoint."""
        checkpoint = self._checkpoint
        if _end(checkpoint.iterations, self._options) is not None:
            return
        pool = self._pool(start.size, len(checkpoint.iterations))
        if checkpoint.iterations:
            say(
                f"resuming after iteration {len(checkpoint.iterations)} with {len(pool):,} candidates "
                f"from {checkpoint.directory}"
            )
        while _stop_reason(checkpoint.iterations, self._options) is None:
            self._ask_for_time()
            began = time.monotonic()
            self._iteration(start, pool)
            self._last = time.monotonic() - began

    def _pool(self, features: int, iterations: int) -> NbestPool:
        """Return the pool of the candidates of the first iterations."""
        pool = NbestPool(self._bleu.segments, features)
        for batch in self._checkpoint.batches(iterations):
            pool.add(batch)
        return pool

    def _ask_for_time(self) -> None:
        """Exit if ``stop`` requests it, but not before this process has completed a decoding.

        Raises:
            SystemExit: with the exit code of ``stop``.
        """
        if self.seconds and self._stop and self._stop.asked(self._last):
            done = len(self._checkpoint.iterations)
            say(
                f"stopped {self._stop.reason()} after iteration {done}, checkpoint saved; "
                "run the same command again to resume"
            )
            raise SystemExit(self._stop.exit_code())

    def _iteration(self, start: Weights, pool: NbestPool) -> None:
        """Optimise the weights (except in the first iteration), decode, extend the pool and save."""
        done = len(self._checkpoint.iterations)
        names = self._decoder.feature_names
        clock = [time.process_time()]
        record: dict[str, Any] = {"iteration": done + 1}
        weights = start
        if done:
            flat = pool.flat()
            active = active_features(flat)
            last = np.array(self._checkpoint.iterations[-1]["weights"])
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
            tunable_features(pool.flat(), names)  # raises InputError before anything is saved
        record |= {"dev_bleu": dev.bleu, "length_ratio": dev.length_ratio, "weights": weights.tolist()}
        record |= {"new_candidates": len(fresh.sentences), "candidates": len(pool)}
        self._checkpoint.save(record, fresh)
        seconds = (clock[1] - clock[0], clock[2] - clock[1], clock[3] - clock[2])
        self.seconds.append(seconds)
        iteration = f"{self._label}iteration {done + 1} of at most {self._options.max_iterations}"
        promised = f" ({record['pool_bleu']:.2f} on the previous n-best lists)" if done else ""
        say(
            f"{iteration}: dev {dev}{promised}, {len(fresh.sentences):,} new of {len(pool):,} candidates; "
            f"CPU s: optimise {seconds[0]:.1f}, decode {seconds[1]:.1f}, merge {seconds[2]:.1f}"
        )

    def compare(self, best: Mapping[str, Any], nested: Sequence[Weights], iterations: int) -> list[dict[str, Any]]:
        """Decode with the weights of nested models and, if one of them is better, with weights between it and ``best``.

        Weights whose BLEU on the n-best lists is lower than that of ``best`` by more than ``HOPELESS`` are not decoded.
        If a nested model is better than ``best``, points on the line between the two are decoded, starting near
        ``best``, until one is at least as good as the nested model. In this way a small gain in BLEU on the development
        set does not discard the additional features, which may help on other text.

        Returns:
            Records of the decodings: ``nested``, 1-based number of the nested model; ``part``, position on the line
            from the nested model (0) to ``best`` (1); ``weights`` and ``dev_bleu``. Points on the line come first, so
            they are preferred if BLEU is equal.
        """
        best_weights = np.array(best["weights"])
        pool = self._pool(best_weights.size, iterations).flat()
        least = pool_bleu(pool, best_weights) - HOPELESS
        candidates = [
            self._comparison(number, 0.0, weights)
            for number, weights in enumerate(nested, 1)
            if pool_bleu(pool, weights) >= least
        ]
        ahead = max(candidates, key=lambda record: record["dev_bleu"], default=best)
        points: list[dict[str, Any]] = []
        if ahead["dev_bleu"] > best["dev_bleu"]:
            weights = np.array(ahead["weights"])
            for share in LINE:
                points.append(
                    self._comparison(ahead["nested"], share, normalised(weights + share * (best_weights - weights)))
                )
                if points[-1]["dev_bleu"] >= ahead["dev_bleu"]:
                    break
        return points + candidates

    def _comparison(self, nested: int, share: float, weights: Weights) -> dict[str, Any]:
        """Return the record of one decoding with these weights; decode if the checkpoint does not contain it."""
        key = weights.tolist()
        value = next((record["dev_bleu"] for record in self._checkpoint.comparisons if record["weights"] == key), None)
        if value is None:
            self._ask_for_time()
            began, cpu = time.monotonic(), time.process_time()
            best = self._decoder.decode(weights).best
            value = bleu_of(self._bleu.statistics([[text] for text in best]).sum(axis=0)).bleu
            self._checkpoint.save_comparison({"weights": key, "dev_bleu": value})
            self.seconds.append((0.0, time.process_time() - cpu, 0.0))
            self._last = time.monotonic() - began
        what = f"interpolation of the best weights ({share:.0%}) with the" if share else "the"
        say(f"{self._label}{what} weights of nested model {nested}: dev BLEU {value:.2f}")
        return {"nested": nested, "part": share, "weights": key, "dev_bleu": value}
