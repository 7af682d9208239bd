"""How often do two equal systems come out as different? p-values under the null, simulated.

    python benchmarks/significance.py --trials 1000 > significance.md

A trial is a test set of random references and two systems of equal quality with R runs each:

* Sentences: a sentence has a difficulty, the probability that a word is right, the same for both systems. Each system
  has one output of it, drawn on its own, which all its runs share. That is the noise of the sample of sentences.
* Runs: a run gives another output of some sentences, drawn anew. In these the probability of a right word is shifted by
  a number that the run has for all of them, drawn from a normal distribution. That is the noise of runs: with a shift
  of 0 what single sentences differ by chance, with a large one whole runs that are better or worse.
* Trainings (--trainings N): the runs of the second system take turns on N networks, and all runs of a network share
  another such output of some sentences, with another such shift; the first system has no network.

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
    right = rng.random((*quality.shape, WORDS)) < quality[..., None]
    counts, matches = [], right
    for order in range(1, 5):
        if order > 1:
            matches = matches[..., :-1] & right[..., order - 1 :]
        counts.append(matches.sum(-1))
    totals = [np.full(quality.shape, WORDS + 1 - order) for order in range(1, 5)]
    return np.stack([*counts, *totals, np.full(quality.shape, WORDS)], -1).astype(np.int64)


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
        [compare(*pair, seed=k, shuffles=shuffles, trainings=(None, trainings))[1:] for k, pair in enumerate(pairs)],
        np.float64,
    )
    return run_share(pairs), found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--runs", type=int, nargs="+", default=[2, 3, 5])
    parser.add_argument("--sentences", type=int, default=150)
    parser.add_argument("--shuffles", type=int, default=399)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trainings", type=int)
    args = parser.parse_args()
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
