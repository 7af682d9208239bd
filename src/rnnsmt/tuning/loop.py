"""Outer loop of tuning: decode, merge the n-best lists, save a checkpoint, optimise the weights, and decode with them.

As in ``mert-moses.pl``, the absolute values of the weights sum to 1, and n-best lists of all iterations accumulate. The
weights that are the result depend on the optimizer (``rnnsmt.tuning.optimizers``):

* ``mert``: as with ``mert-moses.pl``, a run ends when an optimisation no longer changes the weights, or after the
  maximum number of iterations. The result is the weights of the last optimisation.
* ``mert-averaged`` and ``mira``: the number of iterations is fixed, and the result is the mean of the weights of the
  second half of the iterations (``averaged``). BLEU varies by some tenths of a point between iterations, which can be
  as much as the difference between two systems; the mean varies less with the seed (benchmarks/tuning.md).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.progress import say, warn
from rnnsmt.base.resuming import Stop
from rnnsmt.bleu.batch import BatchBleu, NumberedTexts
from rnnsmt.bleu.multi_bleu import BleuScore, bleu_of
from rnnsmt.registries import OPTIMIZERS
from rnnsmt.tuning.checkpoint import TuningCheckpoint
from rnnsmt.tuning.nbest_pool import (
    NbestPool,
    Weights,
    active_features,
    candidate_batch,
    normalised,
    pool_bleu,
    tunable_features,
)
from rnnsmt.tuning.optimizers import optimize_weights
from rnnsmt.tuning.options import LoopOptions

SMALLEST_CHANGE = 1e-5
"""A weight that changes by less than this counts as unchanged, as in ``mert-moses.pl``."""


class Decoded(NamedTuple):
    """Translations of the dev set: best translation and n-best list of every sentence."""

    best: list[str]
    texts: list[list[str]] | NumberedTexts
    features: list[NDArray[np.float64]]
    """Feature vectors ``[n_s, F]`` of each sentence, tuned features only."""


class DevSetDecoder(Protocol):
    """Interface of the decoder that the loop requires."""

    feature_names: list[str]

    def decode(self, weights: Weights) -> Decoded:
        """Translate the dev set with these weights ``[F]``."""
        ...


class Tuned(NamedTuple):
    """Result of tuning.

    Attributes:
        weights: ``[F]``; their absolute values sum to 1.
        bleu: BLEU of the dev set decoded with these weights, in percent.
        iterations: record of every iteration: its number, dev BLEU, weights and numbers of candidates.
        averaged: numbers of the iterations whose weights are averaged; empty if the result is the weights of the last
            optimisation.
        seconds: CPU seconds of optimising, decoding and merging for each decoding in this process.
    """

    weights: Weights
    bleu: float
    iterations: list[dict[str, Any]]
    averaged: list[int]
    seconds: list[tuple[float, float, float]]

    def history(self, features: Sequence[str], seed: int) -> dict[str, object]:
        """Return the content of ``--output-history``; ``features`` are the names of the weights."""
        return {
            "features": list(features),
            "seed": seed,
            "dev_bleu": self.bleu,
            "weights": self.weights.tolist(),
            "averaged": self.averaged,
            "iterations": self.iterations,
        }


def second_half(iterations: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Return the iterations whose weights are averaged, for example the last 8 of 16; at least one."""
    return iterations[len(iterations) // 2 :]


def averaged(iterations: Sequence[dict[str, Any]]) -> Weights:
    """Return the mean ``[F]`` of the weights of the second half of the iterations, scaled by ``normalised``.

    The weights of every iteration are scaled in the same way, so that all iterations count equally. They are added in
    the order of the iterations.
    """
    return normalised(np.mean([iteration["weights"] for iteration in second_half(iterations)], axis=0))


def tune(
    decoder: DevSetDecoder,
    bleu: BatchBleu,
    start: Weights,
    checkpoint: TuningCheckpoint,
    options: LoopOptions,
    stop: Stop | None = None,
    label: str = "",
) -> Tuned:
    """Tune from ``start``, or resume from the iterations in ``checkpoint``.

    The result depends on ``options``, but not on the number of iterations in the checkpoint: if it has more iterations
    than these options request, only the first ones are used; if it has fewer, the run is resumed.

    Args:
        bleu: prepared references of the dev set.
        start: initial weights ``[F]``.
        stop: signals and time limit.
        label: name of the run, with which the progress lines begin.

    Raises:
        SystemExit: a signal was received, or the next decoding would exceed the time limit of ``stop`` if it took as
            long as the last one.
    """
    run = _Run(decoder, bleu, checkpoint, options, stop, label)
    if (saved := checkpoint.result_of(options.iterations)) is not None:
        weights, dev = saved
    else:
        weights = run.iterate(normalised(start))
        dev = run.evaluate(weights)
        checkpoint.save_result(options.iterations, weights, dev)
    iterations = checkpoint.iterations[: options.iterations]
    numbers = [one["iteration"] for one in second_half(iterations)] if run.averages else []
    if dev < (initial := iterations[0]["dev_bleu"]):
        warn(f"{label}dev BLEU {dev:.2f} is below the {initial:.2f} of the initial weights")
    return Tuned(weights, dev, iterations, numbers, run.seconds)


@dataclass
class _Run:
    """One tuning run in one process; the checkpoint is saved after every decoding."""

    decoder: DevSetDecoder
    bleu: BatchBleu
    checkpoint: TuningCheckpoint
    options: LoopOptions
    stop: Stop | None
    label: str
    seconds: list[tuple[float, float, float]] = field(default_factory=list)
    last: float = 0.0
    """Wall-clock seconds of the last decoding, including the optimisation before it."""

    @property
    def averages(self) -> bool:
        """Return whether the result is a mean of the weights of several iterations."""
        return OPTIMIZERS[self.options.optimizer.optimizer].averages

    def iterate(self, start: Weights) -> Weights:
        """Run the iterations that are missing from the checkpoint; return the resulting weights."""
        saved, wanted = self.checkpoint.iterations, self.options.iterations
        if self.averages and len(saved) >= wanted:
            return averaged(saved[:wanted])
        if len(saved) > wanted:  # the next iteration used the weights of the last optimisation
            return np.array(saved[wanted]["weights"])
        pool = NbestPool(self.bleu.segments, start.size)
        for batch in self.checkpoint.batches():
            pool.add(batch)
        if saved:
            say(f"resuming after iteration {len(saved)} with {len(pool):,} candidates from {self.checkpoint.directory}")
        while True:
            began, cpu = time.monotonic(), time.process_time()
            if self.averages and len(saved) >= wanted:
                return averaged(saved)
            weights, record = self._optimized(start, pool)
            if not self.averages and saved:
                last = np.array(saved[-1]["weights"])
                if np.abs(weights - last).max() < SMALLEST_CHANGE:
                    say(f"{self.label}the weights no longer change after iteration {len(saved)}")
                    return last
                if len(saved) >= wanted:
                    say(f"{self.label}stopped after {wanted} iterations, although the weights still change")
                    return weights
            self._ask_for_time()
            self._iteration(weights, record, pool, time.process_time() - cpu)
            self.last = time.monotonic() - began

    def _ask_for_time(self) -> None:
        """Exit with the status of ``stop`` if it requests a stop and this process has completed a decoding."""
        if self.seconds and self.stop and self.stop.asked(self.last):
            done = len(self.checkpoint.iterations)
            say(
                f"stopped {self.stop.reason()} after iteration {done}, checkpoint saved; "
                "run the same command again to resume"
            )
            raise SystemExit(self.stop.exit_code())

    def _optimized(self, start: Weights, pool: NbestPool) -> tuple[Weights, dict[str, Any]]:
        """Return the weights of the next iteration, and the first entries of its record."""
        done = len(self.checkpoint.iterations)
        if not done:
            return start, {"iteration": 1}
        flat = pool.flat()
        active = active_features(flat)
        last = np.array(self.checkpoint.iterations[-1]["weights"])
        seed = [self.options.seed, done]
        weights = optimize_weights(flat, last, active, seed, self.options.optimizer, self.options.threads)
        names = self.decoder.feature_names
        return weights, {
            "iteration": done + 1,
            "pool_bleu": 100 * pool_bleu(flat, weights),
            "constant_features": [name for name, moves in zip(names, active, strict=True) if not moves],
        }

    def _iteration(self, weights: Weights, record: dict[str, Any], pool: NbestPool, optimising: float) -> None:
        """Decode, extend the pool and save; ``optimising`` is the CPU time of the optimisation before it in seconds."""
        done = len(self.checkpoint.iterations)
        clock = [time.process_time()]
        decoded = self.decoder.decode(weights)
        clock.append(time.process_time())
        dev = self._bleu_of(decoded)
        fresh = pool.add(candidate_batch(decoded.features, self.bleu.statistics(decoded.texts)))
        clock.append(time.process_time())
        if not done:
            tunable_features(pool.flat(), self.decoder.feature_names)  # raises InputError before anything is saved
        record |= {"dev_bleu": dev.bleu, "length_ratio": dev.length_ratio, "weights": weights.tolist()}
        record |= {"new_candidates": len(fresh.sentences), "candidates": len(pool)}
        self.checkpoint.save(record, fresh)
        seconds = (optimising, clock[1] - clock[0], clock[2] - clock[1])
        self.seconds.append(seconds)
        iteration = f"{self.label}iteration {done + 1} of {self.options.iterations}"
        promised = f" ({record['pool_bleu']:.2f} on the previous n-best lists)" if done else ""
        say(
            f"{iteration}: dev {dev}{promised}, {len(fresh.sentences):,} new of {len(pool):,} candidates; "
            f"CPU s: optimise {seconds[0]:.1f}, decode {seconds[1]:.1f}, merge {seconds[2]:.1f}"
        )

    def _bleu_of(self, decoded: Decoded) -> BleuScore:
        return bleu_of(self.bleu.statistics([[text] for text in decoded.best]).sum(axis=0))

    def evaluate(self, weights: Weights) -> float:
        """Return dev BLEU in percent with the resulting weights; decode only if no iteration has used these weights."""
        for iteration in self.checkpoint.iterations:
            if iteration["weights"] == weights.tolist():
                return float(iteration["dev_bleu"])
        self._ask_for_time()
        began, cpu = time.monotonic(), time.process_time()
        dev = self._bleu_of(self.decoder.decode(weights))
        self.seconds.append((0.0, time.process_time() - cpu, 0.0))
        self.last = time.monotonic() - began
        of = (
            "mean weights of the second half of the iterations" if self.averages else "weights of the last optimisation"
        )
        say(f"{self.label}{of}: dev {dev}")
        return dev.bleu
