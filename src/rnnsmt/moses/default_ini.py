"""The ``moses.ini`` of an untuned model, as the last step of Moses' training writes it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rnnsmt.moses.ini import NEURAL_MODELS, Feature, MosesIni
from rnnsmt.moses.nplm_file import INFO, SOURCE, TARGET, read_info, read_words

REORDERING_TYPE = "wbe-msd-bidirectional-fe-allff"

JOINT_MODEL = "NNJM0"
"""Name of the joint model for Moses: that of the joint model of this project."""


def bilingual_options(folder: Path, path: str) -> dict[str, str]:
    """Return the options of a joint model for Moses; vocabularies and sizes are beside the network.

    Args:
        folder: directory of the model.
        path: the network, relative to ``folder``.

    Raises:
        InputError: a file is missing or damaged.
    """
    sizes = read_info((folder / path).with_name(INFO))
    vocabularies = {"source_vocab": Path(path).with_name(SOURCE), "target_vocab": Path(path).with_name(TARGET)}
    for file in vocabularies.values():
        read_words(folder / file)
    return {
        "name": JOINT_MODEL, "order": str(sizes.order), "source_window": str(sizes.window), "path": path,
        **{option: str(file) for option, file in vocabularies.items()},
    }  # fmt: skip


def default_ini(
    folder: Path,
    phrase_table: str,
    reordering_table: str | None,
    lm: str,
    lm_order: int = 5,
    num_features: int = 4,
    distortion_limit: int = 6,
    table_limit: int = 20,
    neural: Mapping[str, Mapping[str, str]] | None = None,
    further_weights: Sequence[float] | None = None,
    further_lms: Sequence[str] = (),
) -> MosesIni:
    """Return the ini of an untuned phrase-based baseline, the last step of training.

    The weights are those written by Moses' ``train-model.perl``: 0.2 for every phrase score and the phrase penalty, 0.3
    for every reordering score and distortion, 0.5 for every n-gram LM, -1 for the word penalty. Those of neural
    features are in ``NEURAL_MODELS``.

    Args:
        folder: directory of the model.
        phrase_table, reordering_table, lm: paths of the files; None for no such feature.
        lm_order: order of the n-gram LMs.
        num_features: number of phrase scores.
        distortion_limit: in source words.
        table_limit: maximum number of translations per source phrase.
        neural: neural features by kind, each with its path and other options; without ``name`` it is the kind and 0.
        further_weights: weights of the phrase scores after the fourth.
        further_lms: paths of the features LM1, LM2 and so on, of the same order.
    """
    factors = {"input-factor": "0", "output-factor": "0"}
    table = {"name": "TranslationModel0", "num-features": str(num_features), "path": phrase_table, **factors}
    features = [
        Feature("UnknownWordPenalty", "UnknownWordPenalty0"),
        Feature("WordPenalty", "WordPenalty0"),
        Feature("PhrasePenalty", "PhrasePenalty0"),
        Feature("PhraseDictionaryMemory", "TranslationModel0", table),
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
    for number, path in enumerate([lm, *further_lms]):
        name = f"LM{number}"
        options = {"lazyken": "0", "name": name, "factor": "0", "path": path, "order": str(lm_order)}
        features.append(Feature("KENLM", name, options))
        weights[name] = [0.5]
    for kind, given in (neural or {}).items():
        name = given.get("name", f"{kind}0")
        features.append(Feature(kind, name, {"name": name, **given}))
        weights[name] = [NEURAL_MODELS[kind].weight]
    sections = {"input-factors": ["0"], "mapping": ["0 T 0"]}
    return MosesIni(folder, features, weights, distortion_limit, table_limit, sections)
