"""Simulate the rate of p-values at or below 0.05 and 0.01 for systems of equal and of unequal quality.

    python benchmarks/significance.py --trials 1000
    python benchmarks/significance.py --trials 1000 --shared 0 0.03 0.07 --runs 3 5 --sentences 400

A trial is a test set of random sentences and two systems of equal quality with R runs each:

* Sentences: a sentence has a probability that a word is correct, which is equal for both systems. Each system has an
  independently drawn output for it, which all runs of the system share. This is the noise of the sample of sentences.
* Runs: a run has a newly drawn output for some sentences. In these, the probability of a correct word is shifted by the
  same number for all of them, drawn from a normal distribution for each run. This is the noise of runs: with a shift of
  0, single sentences differ by chance; with a large shift, whole runs are better or worse.
* Trainings (--trainings N): the runs of the second system cycle through N networks. All runs of a network share another
  newly drawn output for some sentences, with another shift. The first system has no network.
* Shared networks (--shared): run r of both systems has the same network, like CSLM and CSLM + RNN. It gives both
  systems another output for the same sentences, with a shift that both share; --shared lists standard deviations of
  this shift. A row compares p_strict with and without taking the shared network into account. --gain is added to the
  probability of a correct word of the second system, to measure the power of the test.

The matches of higher orders are computed from sequences of correct words, so that the nine statistics of a sentence are
consistent. A test at level 0.05 is correct if 5 % of the trials of equal systems have p <= 0.05. A higher rate means
false positives, a lower rate a conservative test.
"""

import argparse
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.progress import say
from rnnsmt.bleu.batch import bleu_of_many
from rnnsmt.evaluation.significance import Statistics, compare

WORDS = 12
"""Number of words of a sentence."""


class Mix(NamedTuple):
    """changed: share of the sentences for which a run has a new output; shift: standard deviation of the shift."""

    name: str
    changed: float
    shift: float


MIXES = (Mix("sentences dominate", 0.2, 0.0), Mix("even", 0.2, 0.07), Mix("runs dominate", 0.2, 0.4))
LEVELS = (0.05, 0.01)


def outputs(rng: np.random.Generator, quality: NDArray[np.float64]) -> Statistics:
    """Draw statistics ``[..., 9]`` of sentences whose words are correct with the probabilities ``[...]``."""
    return statistics_of(rng.random((*quality.shape, WORDS)) < quality[..., None])


def statistics_of(right: NDArray[np.bool_]) -> Statistics:
    """Return the BLEU statistics ``[..., 9]`` of sentences with words that are correct or not, ``[..., WORDS]``."""
    counts, matches = [], right
    for order in range(1, 5):
        if order > 1:
            matches = matches[..., :-1] & right[..., order - 1 :]
        counts.append(matches.sum(-1))
    shape = right.shape[:-1]
    totals = [np.full(shape, WORDS + 1 - order) for order in range(1, 5)]
    return np.stack([*counts, *totals, np.full(shape, WORDS)], -1).astype(np.int64)


def system(
    rng: np.random.Generator, difficulty: NDArray[np.float64], runs: int, mix: Mix, trainings: int | None = None
) -> Statistics:
    """Draw the runs of a system, ``[R, S, 9]``."""
    found = np.repeat(outputs(rng, difficulty)[None], runs, 0)
    if trainings is not None:
        networks = np.repeat(found[:1], trainings, 0)
        change(rng, networks, difficulty, mix)
        found = networks[np.arange(runs) % trainings]
    change(rng, found, difficulty, mix)
    return found


def change(rng: np.random.Generator, found: Statistics, difficulty: NDArray[np.float64], mix: Mix) -> None:
    """Replace the output of some sentences in each row of ``[R, S, 9]``, with the same shift for all of them."""
    changed = rng.random(found.shape[:2]) < mix.changed
    shifts = rng.normal(0.0, mix.shift, (len(found), 1))
    found[changed] = outputs(rng, np.clip(difficulty + shifts, 0.0, 1.0))[changed]


def null_trial(
    rng: np.random.Generator, runs: int, sentences: int, mix: Mix, trainings: int | None
) -> tuple[Statistics, Statistics]:
    """Draw two systems of equal quality."""
    difficulty = rng.uniform(0.65, 0.9, sentences)
    return system(rng, difficulty, runs, mix), system(rng, difficulty, runs, mix, trainings)


def shared_trial(
    rng: np.random.Generator, runs: int, sentences: int, mix: Mix, shared: float, gain: float, differ: float
) -> tuple[Statistics, Statistics]:
    """Draw two systems that share the network of each run; the second is better by ``gain``.

    differ: share of the sentences for which a system has independently drawn outputs.
    """
    difficulty = rng.uniform(0.65, 0.9, sentences)
    touched = rng.random((runs, sentences)) < mix.changed
    shifts = rng.normal(0.0, shared, (runs, 1)) * touched
    quality = np.clip(np.stack([difficulty + shifts, difficulty + shifts + gain]), 0.0, 1.0)
    draws = rng.random((sentences, WORDS)), rng.random((runs, sentences, WORDS))
    common = np.where(touched[..., None], draws[1], draws[0])
    own = rng.random((2, sentences)) < differ
    systems = []
    for which in range(2):
        other = np.where(touched[..., None], rng.random(draws[1].shape), rng.random(draws[0].shape))
        system = statistics_of(np.where(own[which][:, None], other, common) < quality[which][..., None])
        change(rng, system, difficulty + gain * which, mix)
        systems.append(system)
    return systems[0], systems[1]


def run_share(pairs: Sequence[tuple[Statistics, Statistics]]) -> float:
    """Return the share of the variance of the difference of two systems that is due to runs."""
    scores = np.array([[bleu_of_many(one.sum(1)) for one in pair] for pair in pairs])
    differences = scores.mean(2) @ [-1.0, 1.0]
    return float(scores.var(2, ddof=1).sum(1).mean() / scores.shape[2] / np.mean(differences**2))


def p_values(
    mix: Mix, runs: int, trials: int, sentences: int, shuffles: int, seed: int, trainings: int | None = None
) -> tuple[float, NDArray[np.float64]]:
    """Return the share of runs in the noise, and p-values ``[trials]``."""
    rng = np.random.default_rng([seed, runs, round(1000 * mix.shift)])
    pairs = [null_trial(rng, runs, sentences, mix, trainings) for _ in range(trials)]
    found = np.array(
        [
            compare(*pair, seed=k, shuffles=shuffles, trainings=(1, trainings or 1)).p_strict
            for k, pair in enumerate(pairs)
        ],
        np.float64,
    )
    return run_share(pairs), found


def shared_table(args: argparse.Namespace) -> None:
    """Print the rates of p_strict <= 0.05 for systems that share networks, without and with a gain."""
    print(
        "| shared shift | R | noise of runs | equal: unpaired | paired | bootstrap | gain, BLEU | unpaired | paired |",
        end="",
    )
    print(" 95 % interval contains it | detectable |\n|---|---|---|---|---|---|---|---|---|---|---|")
    for shared in args.shared:
        for runs in args.runs:
            for mix in (one._replace(changed=args.changed) for one in MIXES[:2]):
                cells = []
                for gain in (0.0, args.gain):
                    rng = np.random.default_rng([args.seed, runs, round(1000 * shared), round(1000 * mix.shift)])
                    big = shared_trial(np.random.default_rng(0), 1, 400_000, mix._replace(shift=0.0), 0.0, gain, 0.3)
                    true = float(np.diff([bleu_of_many(system.sum(1)).mean() for system in big])[0])
                    found = []
                    for k in range(args.trials):
                        pair = shared_trial(rng, runs, args.sentences, mix, shared, gain, args.differ)
                        plain = compare(*pair, seed=k, shuffles=args.shuffles)
                        paired = compare(*pair, (runs, runs), True, seed=k, shuffles=args.shuffles)
                        assert plain.p_strict is not None and paired.p_strict is not None
                        assert paired.p_bootstrap is not None and paired.interval is not None
                        low, high = paired.interval
                        inside, width = low <= true <= high, paired.detectable
                        found.append(
                            [plain.p_strict <= 0.05, paired.p_strict <= 0.05, paired.p_bootstrap <= 0.05, inside, width]
                        )
                    rates = np.mean(np.array(found, np.float64), 0)
                    if gain:
                        cells += [
                            f"{true:.2f}",
                            f"{rates[0]:.3f}",
                            f"{rates[1]:.3f}",
                            f"{rates[3]:.3f}",
                            f"{rates[4]:.2f}",
                        ]
                    else:
                        cells += [f"{rates[0]:.3f}", f"{rates[1]:.3f}", f"{rates[2]:.3f}"]
                print("|", " | ".join([str(shared), str(runs), mix.name, *cells]), "|", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000, help="number of trials per row")
    parser.add_argument("--runs", type=int, nargs="+", default=[2, 3, 5], help="numbers of runs of each system")
    parser.add_argument("--sentences", type=int, default=150, help="sentences of a test set")
    parser.add_argument("--shuffles", type=int, default=399, help="number of draws of a test")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--trainings", type=int, help="number of networks of the second system; default: none")
    parser.add_argument("--shared", type=float, nargs="+", help="standard deviations of the shift of shared networks")
    parser.add_argument("--differ", type=float, default=0.3, help="with --shared: share of independent outputs")
    parser.add_argument("--changed", type=float, default=0.2, help="with --shared: share of changed outputs")
    parser.add_argument("--gain", type=float, default=0.015, help="with --shared: gain of the second system, per word")
    args = parser.parse_args()
    if args.shared is not None:
        shared_table(args)
        return
    print("| noise | R | of the runs | p_strict ≤ 0.05 | p_strict ≤ 0.01 |")
    print("|---|---|---|---|---|")
    for mix in MIXES:
        for runs in args.runs:
            share, found = p_values(mix, runs, args.trials, args.sentences, args.shuffles, args.seed, args.trainings)
            cells = [f"{np.mean(found <= level):.3f}" for level in LEVELS]
            print("|", " | ".join([mix.name, str(runs), f"{share:.0%}", *cells]), "|", flush=True)
            say(f"{mix.name}, {runs} runs: {args.trials} trials")
    error = math.sqrt(0.05 * 0.95 / args.trials)
    print(f"\n{args.trials} trials a line: the shares of p ≤ 0.05 are known to ± {error:.3f} (standard error).")


if __name__ == "__main__":
    main()
