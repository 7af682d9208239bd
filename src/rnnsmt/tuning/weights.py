"""Weight vectors of moses.ini files: initial weights, and weights of nested models with a subset of the features."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.io import InputError
from rnnsmt.moses.ini import PHRASE_TABLES, MosesIni

Weights = NDArray[np.float64]

UNTUNED = "UnknownWordPenalty"
"""Kind of feature whose weight is not tuned, as in Moses."""


def normalised(weights: Weights) -> Weights:
    """Return weights scaled to absolute sum 1, as in Moses' ini files."""
    return weights / np.abs(weights).sum()


def start_weights(ini: MosesIni, scores: Iterable[str]) -> Weights:
    """Return the weights ``[F]`` of these scores in the ini.

    Raises:
        InputError: all weights are 0.
    """
    weights = np.array([ini.weight(score) for score in scores])
    if not np.abs(weights).sum() > 0:
        raise InputError(f"{ini.path}: all weights are 0; set initial weights, e.g. the defaults of Moses")
    return weights


def nested_weights(ini: MosesIni, nested: MosesIni, columns: Sequence[int] | None = None) -> dict[str, float]:
    """Return the weights of a nested model by score name in the full model, e.g. ``LM0:0``.

    Args:
        ini: the full model.
        nested: a model whose features are a subset, with the same names.
        columns: column of the full model's phrase table, from 0, for each column of the nested model's table; by
            default the first columns.

    Raises:
        InputError: the nested model has a feature or column that the full model lacks, the number of columns is wrong,
            or all weights are 0.
    """
    kinds = {feature.name: feature.kind for feature in ini.features}
    found: dict[str, float] = {}
    for feature in nested.features:
        if feature.kind == UNTUNED:
            continue
        weights = nested.weights[feature.name]
        if kinds.get(feature.name) != feature.kind:
            raise InputError(f"{nested.path}: has the feature {feature.name}, which is missing in {ini.path}")
        chosen = columns if columns is not None and feature.kind in PHRASE_TABLES else range(len(weights))
        if len(set(chosen)) != len(weights) or len(chosen) != len(weights):
            raise InputError(
                f"--nested-columns {' '.join(map(str, chosen))}: {nested.path} has {len(weights)} columns; "
                "give a different column of the model's table for each"
            )
        if max(chosen) >= len(ini.weights[feature.name]):
            raise InputError(
                f"{nested.path}: score {max(chosen)} (from 0) of {feature.name} does not exist in {ini.path}, which "
                f"has {len(ini.weights[feature.name])}"
            )
        found |= {f"{feature.name}:{place}": weight for place, weight in zip(chosen, weights, strict=True)}
    if not any(found.values()):
        raise InputError(f"{nested.path}: all weights are 0")
    return found


def in_order(weights: Mapping[str, float], scores: Iterable[str]) -> Weights:
    """Return the weights ``[F]`` of these scores, 0 for missing ones."""
    return np.array([weights.get(score, 0.0) for score in scores])
