"""Weight vectors: of the ini that tuning starts from, and of nested models, which have some of the features."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rnnsmt.io import InputError
from rnnsmt.moses.ini import PHRASE_TABLES, MosesIni

Weights = NDArray[np.float64]

UNTUNED = "UnknownWordPenalty"
"""The kind of feature whose weight stays, as in Moses."""


def normalised(weights: Weights) -> Weights:
    """Weights scaled to absolute sum 1, as Moses writes them."""
    return weights / np.abs(weights).sum()


def start_weights(ini: MosesIni, scores: Iterable[str]) -> Weights:
    """The ini's weights ``[F]`` of these scores.

    Raises:
        InputError: all of them are 0.
    """
    weights = np.array([ini.weight(score) for score in scores])
    if not np.abs(weights).sum() > 0:
        raise InputError(f"{ini.path}: all weights are 0, there is nothing to start from; give Moses' defaults")
    return weights


def nested_weights(ini: MosesIni, nested: MosesIni, columns: Sequence[int] | None = None) -> dict[str, float]:
    """The weights of a nested model, by the scores that they have in the model, like ``LM0:0``.

    Args:
        ini: the model.
        nested: one with some of its features, under the same names.
        columns: which columns of the model's phrase table those of the nested model's table are, from 0; without it
            the first ones.

    Raises:
        InputError: the nested model has a feature or a column that the model lacks; all weights are 0.
    """
    kinds = {feature.name: feature.kind for feature in ini.features}
    found: dict[str, float] = {}
    for feature in nested.features:
        if feature.kind == UNTUNED:
            continue
        weights = nested.weights[feature.name]
        if kinds.get(feature.name) != feature.kind:
            raise InputError(f"{nested.path}: has the feature {feature.name}, which {ini.path} lacks")
        chosen = columns if columns is not None and feature.kind in PHRASE_TABLES else range(len(weights))
        if len(set(chosen)) != len(weights) or len(chosen) != len(weights):
            raise InputError(
                f"--nested-columns {' '.join(map(str, chosen))}: {nested.path} has {len(weights)} columns; "
                "name a different one of the model's table for each"
            )
        if max(chosen) >= len(ini.weights[feature.name]):
            raise InputError(
                f"{nested.path}: score {max(chosen)} (from 0) of {feature.name} is none of {ini.path}, which has "
                f"{len(ini.weights[feature.name])}"
            )
        found |= {f"{feature.name}:{place}": weight for place, weight in zip(chosen, weights, strict=True)}
    if not any(found.values()):
        raise InputError(f"{nested.path}: all weights are 0, there is nothing to start from")
    return found


def nested_weights_of_runs(
    ini: MosesIni, files: Sequence[Sequence[str]], columns: Sequence[Sequence[int]], runs: int
) -> list[list[dict[str, float]]]:
    """What ``--nested-ini`` and ``--nested-columns`` say: for every run, ``nested_weights`` of every nested model.

    Args:
        ini: the model.
        files: for every nested model the ini of every run.
        columns: for every nested model as in ``nested_weights``, or none at all.
        runs: how many there are.

    Raises:
        InputError: not as many files as runs, or as columns; see ``nested_weights``.
    """
    for paths in files:
        if len(paths) != runs:
            raise InputError(f"--nested-ini {' '.join(paths)}: give one file of every run; there are {runs}")
    if columns and len(columns) != len(files):
        raise InputError("--nested-columns: give it once for every --nested-ini, or not at all")
    return [
        [
            nested_weights(ini, MosesIni.read(paths[run]), columns[number] if columns else None)
            for number, paths in enumerate(files)
        ]
        for run in range(runs)
    ]


def in_order(weights: Mapping[str, float], scores: Iterable[str]) -> Weights:
    """Weights ``[F]`` of these scores; 0 for those that are not there."""
    return np.array([weights.get(score, 0.0) for score in scores])
