"""From the score files of all runs to the rows of Table 1: checks, joint test sets, means and spread."""

import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from rnnsmt.base.io import InputError
from rnnsmt.base.progress import say
from rnnsmt.evaluation.sacre import joint_sacre_bleu
from rnnsmt.evaluation.score_file import Score
from rnnsmt.evaluation.significance import SignificanceResult, Statistics, compare_trained
from rnnsmt.plan.systems import (
    BASELINE,
    has_network,
    last_feature,
    named_features,
    ordered_features,
    paper_figure,
    paper_gain,
    share_networks,
    without,
)

Runs = dict[int, Score]
"""The scores of one system on one test set, by the number of the run."""

Scores = dict[tuple[str, str], Runs]
"""Keyed by system and test set."""


@dataclass(frozen=True)
class Contrast:
    """A system against another one on the same test set."""

    reference: str
    difference: float
    """Mean tokenised BLEU less the reference's."""
    paper: float | None
    """The same difference in the paper."""
    comparison: SignificanceResult | None
    """Its significance; none without statistics of every segment, or where the two have other runs."""

    @property
    def p_clark(self) -> float | None:
        """The p-value of Clark et al. (2011)."""
        return self.comparison.p_clark if self.comparison else None

    @property
    def p_bootstrap(self) -> float | None:
        """The p-value of the paired bootstrap."""
        return self.comparison.p_bootstrap if self.comparison else None

    @property
    def p_strict(self) -> float | None:
        """The p-value of the stricter test, the one to go by."""
        return self.comparison.p_strict if self.comparison else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the difference."""
        return self.comparison.interval if self.comparison else None

    @property
    def detectable(self) -> float | None:
        """The smallest true difference that p_strict finds in 80 % of the cases."""
        return self.comparison.detectable if self.comparison else None


@dataclass(frozen=True)
class Row:
    """One system on one test set: means over its runs, spread as the sample standard deviation (none for one run)."""

    system: str
    test_set: str
    added: tuple[str, ...]
    """What the system adds to the baseline, as far as that is known."""
    segments: int
    bleu: tuple[float, ...]
    """Tokenised BLEU of every run."""
    sacrebleu: tuple[float, ...]
    """sacreBLEU of every run, or empty."""
    chrf: tuple[float, ...]
    """chrF of every run, or empty."""
    signature: str | None
    length_ratio: float
    unknown_words: float | None
    decode_seconds: float | None
    paper: float | None
    trainings: int = 1
    """Of its networks, on which its runs take turns; 1: all runs have the same."""
    baseline: Contrast | None = None
    """Against the baseline."""
    features: Mapping[str, Contrast] = field(default_factory=dict)
    """Against the same system without a feature, by that feature, for those where that system is in the table."""

    @property
    def last(self) -> Contrast | None:
        """Against the system without the feature that the paper adds last; for one feature that is the baseline."""
        return self.features.get(last_feature(self.added) or "")

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.bleu)


def mean(values: Sequence[float]) -> float | None:
    """Arithmetic mean, none of no values."""
    return statistics.fmean(values) if values else None


def deviation(values: Sequence[float]) -> float | None:
    """Sample standard deviation, none of fewer than two values."""
    return statistics.stdev(values) if len(values) > 1 else None


def group(scores: Iterable[Score]) -> Scores:
    """Sort scores by system and test set.

    Raises:
        InputError: the same run twice; a system whose test sets have different runs; a test set that was not the same
            text for all systems; a sacreBLEU with differing signatures or only for some runs.
    """
    grouped: Scores = defaultdict(dict)
    for score in scores:
        runs = grouped[score.system, score.test_set]
        if score.run in runs:
            raise InputError(
                f"{score.path}: run {score.run} of {score.system} on {score.test_set} is already in "
                f"{runs[score.run].path}; give every score file once"
            )
        runs[score.run] = score
    _check_runs(grouped)
    _check_test_sets(grouped)
    return dict(grouped)


def _check_runs(grouped: Scores) -> None:
    first: dict[str, tuple[str, list[int]]] = {}
    for (system, test_set), runs in grouped.items():
        other, numbers = first.setdefault(system, (test_set, sorted(runs)))
        if sorted(runs) != numbers:
            raise InputError(
                f"{system} has the runs {_numbers(numbers)} on {other}, but {_numbers(runs)} on {test_set}; "
                "give the score files of the same runs for every test set"
            )


def _check_test_sets(grouped: Scores) -> None:
    first: dict[str, Score] = {}
    for (_, test_set), runs in grouped.items():
        for score in runs.values():
            other = first.setdefault(test_set, score)
            if (score.segments, score.references) != (other.segments, other.references):
                raise InputError(
                    f"{score.path}: {test_set} has {score.segments} segments and {score.references} reference(s), "
                    f"but {other.segments} and {other.references} in {other.path}; score all systems on the same text"
                )
            if _signature(score) != _signature(other):
                raise InputError(
                    f"{score.path}: sacreBLEU signature {_signature(score)} on {test_set}, but {_signature(other)} in "
                    f"{other.path}; score all runs with the same settings"
                )


def _signature(score: Score) -> str | None:
    return score.sacrebleu.signature if score.sacrebleu is not None else None


def _numbers(values: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(values)))


def add_joint(scores: Scores, name: str, parts: Sequence[str]) -> None:
    """Add a test set made of others: corpus BLEU from summed statistics, for every run of every system.

    Raises:
        InputError: the name is taken, a part is unknown or named twice, or a system lacks a part.
    """
    known = {test_set for _, test_set in scores}
    if name in known:
        raise InputError(f"--joint {name}: a test set has this name already; choose another")
    if len(parts) < 2 or len(set(parts)) < len(parts):
        raise InputError(f"--joint {name}={'+'.join(parts)}: two or more different test sets are needed")
    for part in parts:
        if part not in known:
            raise InputError(
                f"--joint {name}: there is no score file for the test set {part}; there are {', '.join(sorted(known))}"
            )
    for system in sorted({system for system, _ in scores}):
        pieces = []
        for part in parts:
            if (system, part) not in scores:
                raise InputError(f"--joint {name}: {system} has no score on {part}; score it on this set too")
            pieces.append(scores[system, part])
        scores[system, name] = {run: _join(name, [piece[run] for piece in pieces]) for run in pieces[0]}


def _join(name: str, pieces: Sequence[Score]) -> Score:
    sacre = [piece.sacrebleu for piece in pieces if piece.sacrebleu is not None]
    unknown = [piece.unknown_words for piece in pieces if piece.unknown_words is not None]
    seconds = [piece.decode_seconds for piece in pieces if piece.decode_seconds is not None]
    decode: dict[str, object] = {}
    if len(unknown) == len(pieces):
        decode["unknown_words"] = sum(unknown)
    if len(seconds) == len(pieces):
        decode["search_cpu_seconds"] = sum(seconds)
    return replace(
        pieces[0],
        test_set=name,
        segments=sum(piece.segments for piece in pieces),
        statistics=tuple(map(sum, zip(*(piece.statistics for piece in pieces), strict=True))),
        sacrebleu=joint_sacre_bleu(sacre, f"--joint {name}") if len(sacre) == len(pieces) else None,
        decode=decode,
        sentences=tuple(chain.from_iterable(piece.sentences for piece in pieces))
        if all(piece.sentences for piece in pieces)
        else (),
    )


def rows(
    scores: Scores,
    dev_sets: Iterable[str],
    joint: Iterable[str] = (),
    features: Mapping[str, Collection[str]] | None = None,
    paper: bool = False,
    trainings: int = 1,
) -> list[Row]:
    """Make the rows of the table.

    Systems in the order of their scores, development sets before test sets, joint sets last.

    features: what a system adds to the baseline, where its name does not say so.
    paper: put the paper's figures beside those of dev and test sets; joint sets have none.
    trainings: of the networks, on which the runs of systems with networks take turns.

    Raises:
        InputError: the runs of a system cannot take turns on so many trainings.
    """
    for (system, _), runs in scores.items():
        if len(runs) % trainings:
            raise InputError(
                f"--trainings {trainings}: {system} has {len(runs)} runs; the number of runs must be a multiple"
            )
    dev = set(dev_sets)
    without_paper = set(joint)
    systems, test_sets = (list(dict.fromkeys(names)) for names in zip(*scores, strict=True))
    keys = sorted(scores, key=lambda key: (systems.index(key[0]), key[1] not in dev, test_sets.index(key[1])))
    added = {system: (features or {}).get(system, named_features(system)) for system in systems}
    of = {system: trainings if has_network(added[system]) else 1 for system in systems}
    return [
        _row(scores, system, test_set, added, test_set in dev if paper and test_set not in without_paper else None, of)
        for system, test_set in keys
    ]


def _row(
    scores: Scores,
    system: str,
    test_set: str,
    added: Mapping[str, Collection[str] | None],
    is_dev: bool | None,
    trainings: Mapping[str, int],
) -> Row:
    """Make a row; is_dev: whether it stands beside the paper's dev or test figure; none: beside neither."""
    runs = [score for _, score in sorted(scores[system, test_set].items())]
    sacre = [score.sacrebleu for score in runs if score.sacrebleu is not None]
    unknown = [float(score.unknown_words) for score in runs if score.unknown_words is not None]
    seconds = [score.decode_seconds for score in runs if score.decode_seconds is not None]
    own = ordered_features(added[system])
    smaller = {feature: name for feature in own if (name := without(system, feature, added)) is not None}
    found = {
        reference: _contrast(
            scores, system, reference, test_set, is_dev, trainings, share_networks(own, added.get(reference))
        )
        for reference in dict.fromkeys([BASELINE, *smaller.values()])
    }
    return Row(
        system=system,
        test_set=test_set,
        added=own,
        segments=runs[0].segments,
        bleu=tuple(score.bleu.bleu for score in runs),
        sacrebleu=tuple(part.score for part in sacre),
        chrf=tuple(part.chrf for part in sacre if part.chrf is not None),
        signature=sacre[0].signature if sacre else None,
        length_ratio=statistics.fmean(score.bleu.length_ratio for score in runs),
        unknown_words=mean(unknown),
        decode_seconds=mean(seconds),
        paper=None if is_dev is None else paper_figure(system, is_dev),
        trainings=trainings[system],
        baseline=found[BASELINE],
        features={f: contrast for f, name in smaller.items() if (contrast := found[name]) is not None},
    )


def _contrast(
    scores: Scores,
    system: str,
    reference: str,
    test_set: str,
    is_dev: bool | None,
    trainings: Mapping[str, int],
    shared: bool,
) -> Contrast | None:
    """Compare a system with another one, where that is in the table; the runs of both are paired by their numbers.

    shared: run by run both have a network in common.
    """
    if reference == system or (reference, test_set) not in scores:
        return None
    runs, others = scores[system, test_set], scores[reference, test_set]
    averages = [statistics.fmean(score.bleu.bleu for score in part.values()) for part in (runs, others)]
    comparison = None
    if sorted(runs) != sorted(others):
        say(f"{system} on {test_set}: no significance test, because its runs differ from those of {reference}")
    elif all(score.sentences for score in (*others.values(), *runs.values())):
        both = trainings[reference], trainings[system]
        comparison = compare_trained(_statistics(others), _statistics(runs), both, shared)
    paper = None if is_dev is None else paper_gain(system, reference, is_dev)
    return Contrast(reference, averages[0] - averages[1], paper, comparison)


def _statistics(runs: Runs) -> Statistics:
    return np.array([score.sentences for _, score in sorted(runs.items())], np.int64)
