"""Outer loop of tuning: optimise the weights, decode, merge the n-best lists, save a checkpoint, for fixed iterations.

As in ``mert-moses.pl``, weights have absolute sum 1, and n-best lists of all iterations accumulate. Unlike there, the
number of iterations is fixed, and the result is the mean of the weights of their second half (``averaged``). BLEU
varies by tenths from iteration to iteration, as much as systems that are compared may differ, so that selecting the
iteration with the highest BLEU on the dev set partly selects noise (benchmarks/tuning.md).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.progress import say
from rnnsmt.base.resuming import Stop
from rnnsmt.bleu.batch import BatchBleu, NumberedTexts
from rnnsmt.bleu.multi_bleu import BleuScore, bleu_of
from rnnsmt.tuning import mert, mira
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


def optimise_weights(
    pool: FlatPool,
    start: Weights,
    active: NDArray[np.bool_],
    seed: Sequence[int],
    options: OptimiserOptions,
    threads: int = 1,
) -> Weights:
    """Return optimised weights ``[F]`` with absolute sum 1 for the pool, by MERT or batch MIRA.

    Args:
        start: weights of the previous iteration.
        active: ``[F]``, mask of the features whose weights may change; the others keep their weights up to the common
            scale.
        seed: entropy of the random generator of this optimisation.
        threads: number of threads; does not affect the result.
    """
    if options.optimiser == "mira":
        return mira.optimise(pool, start, seed)
    return mert.optimise(pool, start, active, seed, options.restarts, threads)


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
        weights: ``[F]``, see ``averaged``.
        bleu: BLEU of the dev set decoded with these weights, in percent.
        seconds: CPU seconds of optimising, decoding and merging, for each decoding of this process.
    """

    weights: Weights
    bleu: float
    iterations: list[dict[str, Any]]
    seconds: list[tuple[float, float, float]]

    def history(self, features: Sequence[str], seed: int) -> dict[str, object]:
        """Return the content of ``--output-history``; ``features`` are the names of the weights."""
        return {
            "features": list(features),
            "seed": seed,
            "dev_bleu": self.bleu,
            "weights": self.weights.tolist(),
            "averaged": [iteration["iteration"] for iteration in second_half(self.iterations)],
            "iterations": self.iterations,
        }


def second_half(iterations: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Return the iterations whose weights are averaged: the last 8 of 16, the last one of one."""
    return iterations[len(iterations) // 2 :]


def averaged(iterations: Sequence[dict[str, Any]]) -> Weights:
    """Return the mean of the weights of the second half of the iterations, ``[F]``, with absolute sum 1.

    The weights of an iteration have absolute sum 1, so that every iteration counts equally. They are added in the order
    of the iterations.
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
        label: beginning of the progress lines, which names the run.

    Raises:
        SystemExit: the next decoding, if it takes as long as the last one, would exceed the time limit of ``stop``, or
            a signal was received.
    """
    run = _Run(decoder, bleu, checkpoint, options, stop, label)
    run.iterate(normalised(start))
    iterations = checkpoint.iterations[: options.iterations]
    weights = averaged(iterations)
    return Tuned(weights, run.evaluate(weights), iterations, run.seconds)


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
    """Wall-clock seconds of the last decoding, with the optimisation before it."""

    def iterate(self, start: Weights) -> None:
        """Run the iterations that are missing from the checkpoint."""
        done = len(self.checkpoint.iterations)
        if done >= self.options.iterations:
            return
        pool = NbestPool(self.bleu.segments, start.size)
        for batch in self.checkpoint.batches():
            pool.add(batch)
        if done:
            say(f"resuming after iteration {done} with {len(pool):,} candidates from {self.checkpoint.directory}")
        while len(self.checkpoint.iterations) < self.options.iterations:
            self._ask_for_time()
            began = time.monotonic()
            self._iteration(start, pool)
            self.last = time.monotonic() - began

    def _ask_for_time(self) -> None:
        """Exit with the code of ``stop`` if it requests it, but not before this process has completed a decoding."""
        if self.seconds and self.stop and self.stop.asked(self.last):
            done = len(self.checkpoint.iterations)
            say(
                f"stopped {self.stop.reason()} after iteration {done}, checkpoint saved; "
                "run the same command again to resume"
            )
            raise SystemExit(self.stop.exit_code())

    def _iteration(self, start: Weights, pool: NbestPool) -> None:
        """Optimise the weights (except in the first iteration), decode, extend the pool and save."""
        done = len(self.checkpoint.iterations)
        names = self.decoder.feature_names
        clock = [time.process_time()]
        record: dict[str, Any] = {"iteration": done + 1}
        weights = start
        if done:
            flat = pool.flat()
            active = active_features(flat)
            last = np.array(self.checkpoint.iterations[-1]["weights"])
            seed = [self.options.seed, done]
            weights = optimise_weights(flat, last, active, seed, self.options.optimiser, self.options.threads)
            record["pool_bleu"] = 100 * pool_bleu(flat, weights)
            record["constant_features"] = [name for name, moves in zip(names, active, strict=True) if not moves]
        clock.append(time.process_time())
        decoded = self.decoder.decode(weights)
        clock.append(time.process_time())
        dev = self._bleu_of(decoded)
        fresh = pool.add(candidate_batch(decoded.features, self.bleu.statistics(decoded.texts)))
        clock.append(time.process_time())
        if not done:
            tunable_features(pool.flat(), names)  # raises InputError before anything is saved
        record |= {"dev_bleu": dev.bleu, "length_ratio": dev.length_ratio, "weights": weights.tolist()}
        record |= {"new_candidates": len(fresh.sentences), "candidates": len(pool)}
        self.checkpoint.save(record, fresh)
        seconds = (clock[1] - clock[0], clock[2] - clock[1], clock[3] - clock[2])
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
        """Return BLEU in percent of the dev set decoded with the result of the run.

        The checkpoint saves it, so that a finished run decodes nothing again.
        """
        if (saved := self.checkpoint.result_of(weights)) is not None:
            return saved
        self._ask_for_time()
        began, cpu = time.monotonic(), time.process_time()
        dev = self._bleu_of(self.decoder.decode(weights))
        self.checkpoint.save_result(weights, dev.bleu)
        self.seconds.append((0.0, time.process_time() - cpu, 0.0))
        self.last = time.monotonic() - began
        say(f"{self.label}mean weights of the second half of the iterations: dev {dev}")
        return dev.bleu
