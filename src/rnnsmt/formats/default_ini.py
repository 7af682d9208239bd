"""The ``moses.ini`` of an untuned model."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rnnsmt.formats.ini import (
    DEFAULT_DISTORTION_LIMIT,
    DEFAULT_TABLE_LIMIT,
    PHRASE_DICTIONARY,
    Feature,
    MosesIni,
)
from rnnsmt.registries import SEARCH_FEATURES

REORDERING_TYPE = "wbe-msd-bidirectional-fe-allff"


def default_ini(
    directory: Path,
    phrase_table: str,
    reordering_table: str | None,
    lm: str,
    lm_order: int = 5,
    num_features: int = 4,
    distortion_limit: int = DEFAULT_DISTORTION_LIMIT,
    table_limit: int = DEFAULT_TABLE_LIMIT,
    neural: Mapping[str, tuple[str, str]] | None = None,
    further_weights: Sequence[float] | None = None,
) -> MosesIni:
    """Return the ``moses.ini`` of an untuned phrase-based baseline.

    The weights are the defaults of ``train-model.perl`` in Moses: 0.2 for each phrase score and the phrase penalty, 0.3
    for each reordering score and distortion, 0.5 for the n-gram LM, and -1 for the word penalty. The default weights of
    neural features are in ``SEARCH_FEATURES``.

    Args:
        directory: directory of the model.
        phrase_table, reordering_table, lm: paths of the files; ``reordering_table`` is None for a model without it.
        num_features: number of phrase scores.
        distortion_limit: in source words.
        table_limit: maximum number of translations per source phrase.
        neural: path of the model file and value of the option ``unknown`` of each neural feature, by name.
        further_weights: weights of the phrase scores after the fourth; None for 0.2.
    """
    factors = {"input-factor": "0", "output-factor": "0"}
    table = {"name": "TranslationModel0", "num-features": str(num_features), "path": phrase_table, **factors}
    features = [
        Feature("UnknownWordPenalty", "UnknownWordPenalty0"),
        Feature("WordPenalty", "WordPenalty0"),
        Feature("PhrasePenalty", "PhrasePenalty0"),
        Feature(PHRASE_DICTIONARY, "TranslationModel0", table),
    ]
    weights = {
        "UnknownWordPenalty0": [1.0],
        "WordPenalty0": [-1.0],
        "PhrasePenalty0": [0.2],
        "TranslationModel0": [0.2] * num_features if further_weights is None else [0.2] * 4 + list(further_weights),
    }
    if reordering_table is not None:
        options = {"name": "LexicalReordering0", "num-features": "6", "type": REORDERING_TYPE, **factors}
        features.append(Feature("LexicalReordering", "LexicalReordering0", {**options, "path": reordering_table}))
        weights["LexicalReordering0"] = [0.3] * 6
    features.append(Feature("Distortion", "Distortion0"))
    weights["Distortion0"] = [0.3]
    lm_options = {"lazyken": "0", "name": "LM0", "factor": "0", "path": lm, "order": str(lm_order)}
    features.append(Feature("KENLM", "LM0", lm_options))
    weights["LM0"] = [0.5]
    for feature, (path, unknown) in (neural or {}).items():
        kind = feature.upper()
        features.append(Feature(kind, f"{kind}0", {"name": f"{kind}0", "path": path, "unknown": unknown}))
        weights[f"{kind}0"] = [SEARCH_FEATURES[feature].weight]
    sections = {"input-factors": ["0"], "mapping": ["0 T 0"]}
    return MosesIni(directory, features, weights, distortion_limit, table_limit, sections)
