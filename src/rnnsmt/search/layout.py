"""Layout of a feature vector: the scores of the features of a ``moses.ini``, and the types of reordering models."""

import numpy as np

from rnnsmt.base.io import InputError
from rnnsmt.moses.ini import (
    LANGUAGE_MODELS,
    NEURAL_MODELS,
    PHRASE_TABLES,
    RESCORING,
    Feature,
    MosesIni,
    feature_count,
)

ORIENTATIONS = {
    "msd": (0, 1, 2, 2),
    "mslr": (0, 1, 3, 2),
    "monotonicity": (0, 1, 1, 1),
    "leftright": (0, 1, 0, 1),
}
"""For each type of reordering model, the indices of the scores of the orientations monotone, swap, discontinuous to the
right and discontinuous to the left. Orientations with the same index share a score."""

_STATEFUL = ("LexicalReordering", "Distortion", *LANGUAGE_MODELS, *NEURAL_MODELS)

_KNOWN = (*_STATEFUL, *PHRASE_TABLES, "WordPenalty", "PhrasePenalty", "UnknownWordPenalty")

_SINGLE = ("WordPenalty", "PhrasePenalty", "UnknownWordPenalty", "Distortion")
"""Kinds that a model has at most once, besides those that are loaded from files."""


def single(ini: MosesIni, kind: str) -> Feature | None:
    """Return the feature of a kind, None if there is none.

    Raises:
        InputError: there are several.
    """
    found = [feature for feature in ini.features if feature.kind == kind]
    if len(found) > 1:
        raise InputError(f"{ini.path}: {len(found)} features of type {kind}; this decoder supports one")
    return found[0] if found else None


def some(ini: MosesIni, kinds: tuple[str, ...]) -> list[Feature]:
    """Return the features of the given kinds.

    Raises:
        InputError: there are none.
    """
    found = [feature for feature in ini.features if feature.kind in kinds]
    if not found:
        raise InputError(f"{ini.path}: no feature of type {kinds[0]}; the decoder needs one")
    return found


def feature_vector(ini: MosesIni) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the names of the scores in a feature vector, and their columns by kind of feature.

    Stateful features come first, in the order of the ini, then the others, the unknown-word penalty last.

    Raises:
        InputError: a feature that this decoder does not have, a factored model, or two features of a kind that this
            decoder takes once.
    """
    _check_features(ini)
    stateful = [f for f in ini.features if f.kind in _STATEFUL]
    plain = [f for f in ini.features if f.kind not in _STATEFUL and f.kind != "UnknownWordPenalty"]
    unknown = [f for f in ini.features if f.kind == "UnknownWordPenalty"]
    names: list[str] = []
    columns: dict[str, np.ndarray] = {}
    for feature in stateful + plain + unknown:
        count = feature_count(feature, str(ini.path))
        kind = "LM" if feature.is_lm else feature.kind
        own = np.arange(len(names), len(names) + count)
        columns[kind] = np.concatenate([columns[kind], own]) if kind in columns else own
        names += [f"{feature.name}:{k}" for k in range(count)]
    for kind in _SINGLE:
        single(ini, kind)
    return names, columns


def _check_features(ini: MosesIni) -> None:
    """Check that the decoder has every feature of an ini.

    Raises:
        InputError: see ``feature_vector``.
    """
    for feature in ini.features:
        if feature.kind == RESCORING:
            raise InputError(
                f"{ini.path}: {feature.name} scores complete translations and cannot be used in the search; use "
                "the system whose n-best lists were rescored, or select from these lists with `tuning rerank`"
            )
        if feature.kind not in _KNOWN:
            raise InputError(
                f"{ini.path}: unknown feature {feature.kind}; tables must be PhraseDictionaryMemory (text form), and "
                f"the other supported features are {', '.join(k for k in _KNOWN if k not in PHRASE_TABLES)}"
            )
        for option in ("input-factor", "output-factor", "factor"):
            if feature.options.get(option, "0") != "0":
                raise InputError(
                    f"{ini.path}: {feature.name} has {option} other than 0; factored models are not supported"
                )


def reordering_columns(ini: MosesIni, feature: Feature | None) -> tuple[np.ndarray, bool]:
    """Parse the type of a reordering model: return the columns of its scores, and whether it is hierarchical.

    The columns are ``int64`` [8]: those of the backward scores by orientation, then of the forward scores; -1 for none,
    which is all of them without a reordering model.

    The type is parsed as in Moses, for example ``wbe-msd-bidirectional-fe-allff``: ``wbe`` (word-based) or ``phrase``,
    which Moses' decoder does not distinguish, or ``hier``; the set of orientations; backward, forward or both. If there
    are both, the backward scores come first.

    Raises:
        InputError: the model is conditioned on source phrases alone, has a single weight for all orientations, or has a
            type that Moses does not know either; or the number of scores does not match the type.
    """
    if feature is None:
        return np.full(8, -1, np.int64), False
    name = feature.options.get("type", "")
    parts = name.split("-")
    kinds = [part for part in parts if part in ORIENTATIONS]
    directions = [part for part in parts if part in ("backward", "unidirectional", "forward", "bidirectional")]
    others = set(parts) - {*kinds, *directions, "wbe", "phrase", "hier", "fe", "allff"}
    if len(kinds) != 1 or len(directions) > 1 or others:
        raise InputError(
            f"{ini.path}: reordering type {name}: {', '.join(sorted(others)) or 'its parts'}: not supported; there are "
            f"wbe, phrase and hier, {', '.join(ORIENTATIONS)}, backward, forward and bidirectional, fe, allff"
        )
    one = np.array(ORIENTATIONS[kinds[0]], np.int64)
    none = np.full(4, -1, np.int64)
    direction = directions[0] if directions else "backward"
    number = len(set(ORIENTATIONS[kinds[0]]))
    if direction == "bidirectional":
        found, number = np.concatenate([one, one + number]), 2 * number
    else:
        found = np.concatenate([none, one] if direction == "forward" else [one, none])
    if feature_count(feature, str(ini.path)) != number:
        given = feature_count(feature, str(ini.path))
        raise InputError(f"{ini.path}: reordering type {name} has {number} scores, but num-features is {given}")
    return found, "hier" in parts
