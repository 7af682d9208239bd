"""How often do two equal systems come out as different, and how often two unequal ones? p-values, simulated.

    python benchmarks/significance.py --trials 1000
    python benchmarks/significance.py --trials 1000 --shared 0 0.03 0.07 --runs 3 5 --sentences 400

A trial is a test set of random references and two systems of equal quality with R runs each:

* Sentences: a sentence has a difficulty, the probability that a word is right, the same for both systems. Each system
  has one output of it, drawn on its own, which all its runs share. That is the noise of the sample of sentences.
* Runs: a run gives another output of some sentences, drawn anew. In these the probability of a right word is shifted by
  a number that the run has for all of them, drawn from a normal distribution. That is the noise of runs: with a shift
  of 0 what single sentences differ by chance, with a large one whole runs that are better or worse.
* Trainings (--trainings N): the runs of the second system take turns on N networks, and all runs of a network share
  another such output of some sentences, with another such shift; the first system has no network.
* Shared networks (--shared): run r of both systems has the same network, as CSLM and CSLM + RNN have. It gives both
  systems another output of the same sentences, with a shift that both share; the deviations of that shift are what
  --shared lists. A row compares p_strict that knows of the shared network with one that does not; --gain is added to
  the probability of a right word of the second system, for the power of the test.

Matches of higher orders follow from runs of right words, so that the nine statistics of a sentence are possible ones.
Tests at level 0.05 are right where 5 % of the trials have p <= 0.05: more is too many findings, fewer is a weak test.
"""

import argparse
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.bleu.batch import bleu_of_many
from rnnsmt.evaluation.significance import Statistics, compare
from rnnsmt.progress import say

WORDS = 12
"""Of every sentence."""


class Mix(NamedTuple):
    """changed: share of the sentences that a run gives another output; shift: standard deviation of a run's shift."""

    name: str
    changed: float
    shift: float


MIXES = (Mix("sentences dominate", 0.2, 0.0), Mix("even", 0.2, 0.07), Mix("runs dominate", 0.2, 0.4))
LEVELS = (0.05, 0.01)


def outputs(rng: np.random.Generator, quality: NDArray[np.float64]) -> Statistics:
    """Statistics ``[..., 9]`` of sentences whose words are right with these probabilities ``[...]``."""
    return statistics_of(rng.random((*quality.shape, WORDS)) < quality[..., None])


def statistics_of(right: NDArray[np.bool_]) -> Statistics:
    """BLEU's statistics ``[..., 9]`` of sentences of which each word is right or not, ``[..., WORDS]``."""
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
    """The runs of one system, ``[R, S, 9]``."""
    found = np.repeat(outputs(rng, difficulty)[None], runs, 0)
    if trainings is not None:
        networks = np.repeat(found[:1], trainings, 0)
        change(rng, networks, difficulty, mix)
        found = networks[np.arange(runs) % trainings]
    change(rng, found, difficulty, mix)
    return found


def change(rng: np.random.Generator, found: Statistics, difficulty: NDArray[np.float64], mix: Mix) -> None:
    """Give every row of ``[R, S, 9]`` another output of some sentences, better or worse by the same for all of them."""
    changed = rng.random(found.shape[:2]) < mix.changed
    shifts = rng.normal(0.0, mix.shift, (len(found), 1))
    found[changed] = outputs(rng, np.clip(difficulty + shifts, 0.0, 1.0))[changed]


def null_trial(
    rng: np.random.Generator, runs: int, sentences: int, mix: Mix, trainings: int | None
) -> tuple[Statistics, Statistics]:
    """Two systems of equal quality."""
    difficulty = rng.uniform(0.65, 0.9, sentences)
    return system(rng, difficulty, runs, mix), system(rng, difficulty, runs, mix, trainings)


def shared_trial(
    rng: np.random.Generator, runs: int, sentences: int, mix: Mix, shared: float, gain: float, differ: float
) -> tuple[Statistics, Statistics]:
    """Two systems that share the network of every run; the second is better by a gain.

    differ: share of the sentences of which each has outputs drawn on its own.
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
    """Which part of the variance of the difference of two systems comes from runs."""
    scores = np.array([[bleu_of_many(one.sum(1)) for one in pair] for pair in pairs])
    differences = scores.mean(2) @ [-1.0, 1.0]
    return float(scores.var(2, ddof=1).sum(1).mean() / scores.shape[2] / np.mean(differences**2))


def p_values(
    mix: Mix, runs: int, trials: int, sentences: int, shuffles: int, seed: int, trainings: int | None = None
) -> tuple[float, NDArray[np.float64]]:
    """The share of runs in the noise, and ``[trials, 2]``: p-values by Clark et al. and strict ones."""
    rng = np.random.default_rng([seed, runs, round(1000 * mix.shift)])
    pairs = [null_trial(rng, runs, sentences, mix, trainings) for _ in range(trials)]
    found = np.array(
        [
            (result.p_clark, result.p_strict)
            for k, pair in enumerate(pairs)
            for result in [compare(*pair, seed=k, shuffles=shuffles, trainings=(None, trainings))]
        ],
        np.float64,
    )
    return run_share(pairs), found


def shared_table(args: argparse.Namespace) -> None:
    """Print how often p_strict is at most 0.05 for systems that share networks, without and with a gain."""
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
                        paired = compare(*pair, seed=k, shuffles=args.shuffles, shared=True)
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
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--runs", type=int, nargs="+", default=[2, 3, 5])
    parser.add_argument("--sentences", type=int, default=150)
    parser.add_argument("--shuffles", type=int, default=399)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trainings", type=int)
    parser.add_argument("--shared", type=float, nargs="+", help="deviations of the shift of shared networks")
    parser.add_argument("--differ", type=float, default=0.3, help="with --shared: share of outputs of one system alone")
    parser.add_argument("--changed", type=float, default=0.2, help="with --shared: share of outputs that a run changes")
    parser.add_argument("--gain", type=float, default=0.015, help="with --shared: by which the second system is better")
    args = parser.parse_args()
    if args.shared is not None:
        shared_table(args)
        return
    print("| noise | R | of the runs | p_strict ≤ 0.05 | p_strict ≤ 0.01 | p_value ≤ 0.05 | p_value ≤ 0.01 |")
    print("|---|---|---|---|---|---|---|")
    for mix in MIXES:
        for runs in args.runs:
            share, found = p_values(mix, runs, args.trials, args.sentences, args.shuffles, args.seed, args.trainings)
            cells = [f"{np.mean(found[:, which] <= level):.3f}" for which in (1, 0) for level in LEVELS]
            print("|", " | ".join([mix.name, str(runs), f"{share:.0%}", *cells]), "|", flush=True)
            say(f"{mix.name}, {runs} runs: {args.trials} trials")
    error = math.sqrt(0.05 * 0.95 / args.trials)
    print(f"\n{args.trials} trials a line: the shares of p ≤ 0.05 are known to ± {error:.3f} (standard error).")


if __name__ == "__main__":
    main()
