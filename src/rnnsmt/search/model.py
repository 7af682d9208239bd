"""A Moses model in memory, without its weights: phrase table, reordering scores, n-gram LMs, neural features.

The second half of the module defines the layout of a feature vector (the scores of the features of a ``moses.ini``) and
parses the types of reordering models.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.formats.ini import (
    DROP_UNKNOWN,
    LANGUAGE_MODELS,
    NO_LIMIT,
    PHRASE_DICTIONARY,
    RESCORING,
    Feature,
    MosesIni,
    feature_count,
)
from rnnsmt.lm.automaton import Automaton, load_automaton
from rnnsmt.registries import SEARCH_FEATURES
from rnnsmt.search.binary import ModelTables, ModelText, fitting_tables
from rnnsmt.search.neural import NetworkOptions, NeuralFeature
from rnnsmt.search.options import MAX_WINDOW
from rnnsmt.search.phrase_pairs import (
    MAX_SOURCE_PHRASE,
    PhraseTable,
    ReorderingTable,
    load_phrase_table,
    load_reordering_table,
)

UNKNOWN_WORD_SCORE = -100.0
"""Score of an unknown word: the logarithm of 0, floored as in Moses."""

PHRASE_SCORES = ("p(source|target)", "lex(source|target)", "p(target|source)", "lex(target|source)")
"""Columns of a phrase table, in Moses' order."""


@dataclass
class SearchModel:
    """Everything that ``decode`` needs except the weights.

    Attributes:
        ini: the ini that the model was loaded from.
        feature_names: one name ``NAME:INDEX`` per scalar weight: stateful features first, in the order of the ini, then
            the others, the unknown-word penalty last.
        table: the phrase pairs, sorted by source phrase.
        reordering_scores: ``int64`` [8], columns of the reordering table that hold the backward scores of the four
            orientations, then the forward scores; -1 for none.
        reordering_places: ``int64`` [8], columns of the feature vector that take these scores; several orientations may
            share a column; -1 for none.
        hierarchical: whether the reordering model is hierarchical, i.e. uses blocks (Galley and Manning 2008) instead
            of words or phrases.
        columns: ``int64`` column indices in a feature vector, by kind of feature.
        distortion_limit: in words, at most ``MAX_WINDOW``.
        table_limit: maximum number of translations per source phrase; 0 for no limit.
        longest: number of words of the longest source phrase that is looked up.
        drop_unknown: whether unknown words without a digit are dropped instead of passed through.
        neural: the neural features; searches use those that ``lend`` returns.
        looked_up: sentences of the last look-up and their ``TranslationOptions``.
        release: see ``ModelTables``.
    """

    ini: MosesIni
    feature_names: list[str]
    table: PhraseTable
    reordering: ReorderingTable
    reordering_scores: np.ndarray
    reordering_places: np.ndarray
    hierarchical: bool
    lms: list[Automaton]
    columns: dict[str, np.ndarray]
    distortion_limit: int
    table_limit: int
    longest: int
    drop_unknown: bool = False
    neural: list[NeuralFeature] = field(default_factory=list)
    looked_up: tuple[list[str], Any] | None = None
    release: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        """Keep the neural features for the first search."""
        self._sets = [self.neural]
        self._idle = [self.neural]

    @contextmanager
    def lend(self) -> Iterator[list[NeuralFeature]]:
        """Lend the neural features to one search, after which they are kept, with their scores, for another one.

        Searches at the same time, in several threads, get different copies. Scores do not depend on those in a store,
        so translations do not depend on other searches.
        """
        try:
            features = self._idle.pop()  # the one returned last, so searches one after the other use the same stores
        except IndexError:
            features = [feature.copy() for feature in self.neural]
            self._sets.append(features)
        for feature in chain.from_iterable(self._sets):
            feature.share = len(self._sets)
        try:
            yield features
        finally:
            self._idle.append(features)

    def weights(self, ini: MosesIni) -> np.ndarray:
        """Return the weights ``float64`` [F] of an ini that has the features of this model."""
        return np.array([ini.weight(name) for name in self.feature_names])

    @property
    def neural_columns(self) -> list[int]:
        """Return the column of every neural feature in a feature vector."""
        return [self.feature_names.index(f"{feature.name}:0") for feature in self.neural]

    @property
    def listed(self) -> np.ndarray:
        """Return the columns of the features in n-best lists: all that are tuned, as in Moses."""
        fixed = self.ini.fixed_scores()
        return np.array([column for column, name in enumerate(self.feature_names) if name not in fixed], np.int64)


def model_texts(ini: MosesIni, directory: Path | None) -> list[ModelText]:
    """Return the text files of a model: phrase table, reordering table and n-gram LMs.

    ``links`` of the phrase table is set if a neural feature requires its word alignment.

    Args:
        directory: as ``model_dir`` of ``load_model``.
    """
    tables, lms = some(ini, (PHRASE_DICTIONARY,)), some(ini, LANGUAGE_MODELS)
    reordering = single(ini, "LexicalReordering")
    scored = [*tables, reordering] if reordering is not None else tables
    links = any(SEARCH_FEATURES[feature.network].needs_links for feature in ini.features if feature.network is not None)
    texts = [
        ModelText(
            feature.kind,
            feature_count(feature, str(ini.path)),
            ini.located(feature, directory),
            links and feature.kind == PHRASE_DICTIONARY,
        )
        for feature in scored
    ]
    return texts + [ModelText("LM", 0, ini.located(feature, directory)) for feature in lms]


def binary_directories(texts: Sequence[ModelText], directory: Path | None) -> list[Path]:
    """Return the directories to search for a binary file: ``directory`` and that of the phrase table."""
    beside = texts[0].path.parent
    return [beside] if directory is None else [directory, beside]


def read_tables(texts: Sequence[ModelText], sentences: list[str] | None = None) -> ModelTables:
    """Read the text files of a model.

    Args:
        texts: the files, as returned by ``model_texts``: the phrase table first.
        sentences: as in ``load_model``.
    """
    # the language models first, because reading them requires the most memory
    lms = [load_automaton(text.path) for text in texts if text.kind == "LM"]
    table = load_phrase_table(texts[0].path, texts[0].columns, sentences, texts[0].links)
    reordering = ReorderingTable(np.zeros((1, 1)), np.zeros(len(table.source_of), np.int32))
    for text in texts:
        if text.kind == "LexicalReordering":
            reordering = load_reordering_table(text.path, table, text.columns)
    return ModelTables(table, reordering, lms)


def load_model(
    ini: MosesIni,
    sentences: list[str] | None = None,
    model_dir: StrPath | None = None,
    threads: int = 1,
    device: str = "auto",
) -> SearchModel:
    """Read the tables and LMs that an ini names, or map a binary file that was made from them.

    Args:
        ini: the ini; its weights are ignored.
        sentences: keep only phrases that occur in these tokenised sentences when text files are read; None keeps all.
        model_dir: directory that overrides the files of the ini with files of the same base name (filtered tables).
        threads, device: for neural features, see ``rnnsmt.search.neural.NetworkOptions``.
    """
    directory = Path(model_dir) if model_dir is not None else None
    if directory is not None and not directory.is_dir():
        raise InputError(f"{directory}: no such directory")
    ini.check_sections()
    names, columns = feature_vector(ini)
    texts = model_texts(ini, directory)
    networks = _networks(ini, directory)
    scores, hierarchical = reordering_columns(ini, single(ini, "LexicalReordering"))
    tables = fitting_tables(binary_directories(texts, directory), texts) or read_tables(texts, sentences)
    options = NetworkOptions(threads, device)
    limit = MAX_WINDOW if ini.distortion_limit == NO_LIMIT else ini.distortion_limit
    return SearchModel(
        ini=ini,
        feature_names=names,
        table=tables.phrases,
        reordering=tables.reordering,
        reordering_scores=scores,
        # index -1 of a missing score reads the last column; np.where discards it
        reordering_places=np.where(scores >= 0, columns.get("LexicalReordering", np.array([-1]))[scores], -1),
        hierarchical=hierarchical,
        lms=tables.lms,
        release=tables.release,
        columns=columns,
        distortion_limit=max(min(limit, MAX_WINDOW), 0),
        table_limit=ini.table_limit,
        longest=min(tables.phrases.longest_source, MAX_SOURCE_PHRASE),
        drop_unknown=ini.is_on(DROP_UNKNOWN),
        neural=[
            SEARCH_FEATURES[feature.network].load(feature.name, path, ini.unknown_score(feature), options)
            for feature, path in networks
            if feature.network is not None
        ],
    )


def _networks(ini: MosesIni, directory: Path | None) -> list[tuple[Feature, Path]]:
    """Return the neural features of an ini and their model files; called before large files are read."""
    kinds = dict.fromkeys(feature.kind for feature in ini.features if feature.network is not None)
    features = [single(ini, kind) for kind in sorted(kinds)]
    return [(feature, ini.located(feature, directory)) for feature in features if feature is not None]


def kinds_of_features(model: SearchModel, columns: Sequence[str]) -> list[str]:
    """Return the display names of the features of a model ``[F]``: one per phrase score, the kind for other features.

    If several features are of the same kind, the name begins with the name of the feature.

    Args:
        columns: names of the phrase scores after the fourth; without a name they are called score 5, score 6 and so on.
    """
    kinds = [""] * len(model.feature_names)
    for kind, places in model.columns.items():
        features = [model.feature_names[index].rpartition(":")[0] for index in places]
        for index, feature in zip(places, features, strict=True):
            name, number = kind, int(model.feature_names[index].rpartition(":")[2])
            if kind == PHRASE_DICTIONARY:
                named = [*PHRASE_SCORES, *columns]
                name = named[number] if number < len(named) else f"score {number + 1}"
            kinds[index] = f"{feature} {name}" if len(set(features)) > 1 else name
    return kinds


def sum_by_kind(contributions: NDArray[np.float64], kinds: Sequence[str]) -> dict[str, float]:
    """Sum the contributions of the features to a score by kind of feature.

    Args:
        contributions: ``[F]``, weight times value.
        kinds: ``[F]``, kind of each feature, as returned by ``kinds_of_features``; several may be equal.
    """
    sums = dict.fromkeys(kinds, 0.0)
    for kind, value in zip(kinds, contributions, strict=True):
        sums[kind] += float(value)
    return sums


ORIENTATIONS = {
    "msd": (0, 1, 2, 2),
    "mslr": (0, 1, 3, 2),
    "monotonicity": (0, 1, 1, 1),
    "leftright": (0, 1, 0, 1),
}
"""For each type of reordering model, the indices of the scores of the orientations monotone, swap, discontinuous to the
right and discontinuous to the left. Orientations with the same index share a score."""

_STATEFUL = ("LexicalReordering", "Distortion", *LANGUAGE_MODELS)

SUPPORTED = (*_STATEFUL, PHRASE_DICTIONARY, "WordPenalty", "PhrasePenalty", "UnknownWordPenalty")
"""Kinds of features that the decoder supports, in addition to networks."""

_SINGLE = ("WordPenalty", "PhrasePenalty", "UnknownWordPenalty", "Distortion")
"""Kinds that a model has at most once, except kinds that are loaded from files."""


def single(ini: MosesIni, kind: str) -> Feature | None:
    """Return the feature of a kind, None if there is none."""
    matching = [feature for feature in ini.features if feature.kind == kind]
    if len(matching) > 1:
        raise InputError(f"{ini.path}: {len(matching)} features of type {kind}; this decoder supports only one")
    return matching[0] if matching else None


def some(ini: MosesIni, kinds: tuple[str, ...]) -> list[Feature]:
    """Return the features of the given kinds."""
    matching = [feature for feature in ini.features if feature.kind in kinds]
    if not matching:
        raise InputError(f"{ini.path}: no feature of type {kinds[0]}; the decoder requires one")
    return matching


def feature_vector(ini: MosesIni) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the names of the scores in a feature vector, and their columns by kind of feature.

    Stateful features come first, in the order of the ini, then the others, the unknown-word penalty last.
    """
    _check_features(ini)
    stateful = [f for f in ini.features if f.kind in _STATEFUL or f.network is not None]
    plain = [f for f in ini.features if f not in stateful and f.kind != "UnknownWordPenalty"]
    unknown = [f for f in ini.features if f.kind == "UnknownWordPenalty"]
    names: list[str] = []
    columns: dict[str, np.ndarray] = {}
    for feature in stateful + plain + unknown:
        count = feature_count(feature, str(ini.path))
        kind = "LM" if feature.is_lm else feature.kind
        indices = np.arange(len(names), len(names) + count)
        columns[kind] = np.concatenate([columns[kind], indices]) if kind in columns else indices
        names += [f"{feature.name}:{k}" for k in range(count)]
    for kind in _SINGLE:
        single(ini, kind)
    return names, columns


def _check_features(ini: MosesIni) -> None:
    """Check that the decoder supports every feature of an ini."""
    for feature in ini.features:
        where = ini.place_of(feature)
        if feature.kind == RESCORING:
            raise InputError(
                f"{where}: {feature.name} scores complete translations and cannot be used in the search; use the "
                "system whose n-best lists were rescored, or select from these lists with `tuning rerank`"
            )
        if feature.kind not in SUPPORTED and feature.network is None:
            others = [*(kind for kind in SUPPORTED if kind != PHRASE_DICTIONARY), *map(str.upper, SEARCH_FEATURES)]
            raise InputError(
                f"{where}: unknown feature {feature.kind}; the table must be {PHRASE_DICTIONARY} (text form), and "
                f"the other supported features are {', '.join(others)}"
            )
        for option in ("input-factor", "output-factor", "factor"):
            if feature.options.get(option, "0") != "0":
                raise InputError(
                    f"{where}: {feature.name} has {option} other than 0; factored models are not supported"
                )


def reordering_columns(ini: MosesIni, feature: Feature | None) -> tuple[np.ndarray, bool]:
    """Parse the type of a reordering model: return the columns of its scores, and whether it is hierarchical.

    The columns are ``int64`` [8]: those of the backward scores by orientation, then of the forward scores; -1 for none.
    Without a reordering model, all of them are -1.

    The type is parsed as in Moses, for example ``wbe-msd-bidirectional-fe-allff``: ``wbe`` (word-based) or ``phrase``,
    which Moses' decoder does not distinguish, or ``hier``; the set of orientations; backward, forward or both. If there
    are both, the backward scores come first.
    """
    if feature is None:
        return np.full(8, -1, np.int64), False
    name = feature.options.get("type", "")
    parts = name.split("-")
    kinds = [token for token in parts if token in ORIENTATIONS]
    directions = [token for token in parts if token in ("backward", "unidirectional", "forward", "bidirectional")]
    others = set(parts) - {*kinds, *directions, "wbe", "phrase", "hier", "fe", "allff"}
    if len(kinds) != 1 or len(directions) > 1 or others:
        raise InputError(
            f"{ini.path}: reordering type {name}: {', '.join(sorted(others)) or 'its parts'}: not supported; "
            f"supported are wbe, phrase and hier, {', '.join(ORIENTATIONS)}, backward, forward and bidirectional, "
            "fe, allff"
        )
    one_direction = np.array(ORIENTATIONS[kinds[0]], np.int64)
    none = np.full(4, -1, np.int64)
    direction = directions[0] if directions else "backward"
    number = len(set(ORIENTATIONS[kinds[0]]))
    if direction == "bidirectional":
        columns, number = np.concatenate([one_direction, one_direction + number]), 2 * number
    else:
        columns = np.concatenate([none, one_direction] if direction == "forward" else [one_direction, none])
    if feature_count(feature, str(ini.path)) != number:
        declared = feature_count(feature, str(ini.path))
        raise InputError(f"{ini.path}: reordering type {name} has {number} scores, but num-features is {declared}")
    return columns, "hier" in parts
