"""A Moses model in memory, without its weights: phrase table, reordering scores, n-gram LMs, neural features.

The module also defines the layout of a feature vector, i.e. the order of the scores of all features of a ``moses.ini``,
and parses the types of reordering models.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError, OtherVersionError
from rnnsmt.base.paths import StrPath
from rnnsmt.formats.binary_forms import (
    REMEDY,
    binary_name,
    changed_text,
    describe_texts,
    free_large_block,
    refuse_form,
)
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
from rnnsmt.lm.automaton_file import open_automaton, write_automaton
from rnnsmt.phrases.table import PhraseTable, open_table
from rnnsmt.registries import SEARCH_FEATURES
from rnnsmt.search.neural import NetworkOptions, NeuralFeature
from rnnsmt.search.options import MAX_WINDOW
from rnnsmt.search.phrase_pairs import MAX_SOURCE_PHRASE, load_phrase_table, load_reordering_table

UNKNOWN_WORD_SCORE = -100.0
"""Score of an unknown word: the logarithm of 0, floored as in Moses."""

Form = TypeVar("Form")

PHRASE_SCORES = ("p(source|target)", "lex(source|target)", "p(target|source)", "lex(target|source)")
"""Columns of a phrase table, in Moses' order."""


@dataclass
class SearchModel:
    """Everything that ``decode`` needs except the weights.

    Attributes:
        ini: the ini that the model was loaded from.
        feature_names: one name ``NAME:INDEX`` per scalar weight. The stateful features come first, in the order of the
            ini, then the other features, and the unknown-word penalty last.
        table: the phrase pairs, sorted by source phrase.
        reordering_scores: ``int64`` [8], columns of the reordering table with the backward scores of the four
            orientations, then with their forward scores; -1 for none.
        reordering_places: ``int64`` [8], columns of the feature vector for these scores; several orientations may share
            a column; -1 for none.
        hierarchical: whether the reordering model is hierarchical, i.e. uses blocks (Galley and Manning 2008) instead
            of words or phrases.
        columns: kind of feature -> ``int64`` [n], its columns in a feature vector.
        distortion_limit: in words, at most ``MAX_WINDOW``.
        table_limit: maximum number of translations per source phrase; 0 for no limit.
        longest: number of words of the longest source phrase that is looked up.
        drop_unknown: whether unknown words without a digit are dropped instead of passed through.
        neural: the neural features; a search uses the features that ``lend`` provides.
        looked_up: the sentences of the last look-up, and their ``TranslationOptions``.
        release: function that unmaps all pages of memory-mapped files read so far; later reads map them again.
    """

    ini: MosesIni
    feature_names: list[str]
    table: PhraseTable
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
        """Make the neural features available to the first search."""
        self._sets = [self.neural]
        self._idle = [self.neural]

    @contextmanager
    def lend(self) -> Iterator[list[NeuralFeature]]:
        """Provide neural features to one search, exclusively, within the ``with`` block.

        Afterwards, the features and their stored scores are available to the next search. Simultaneous searches in
        several threads get separate copies of the features. A score is the same whether it is computed or was stored
        before, so translations do not depend on other searches.
        """
        try:
            features = self._idle.pop()  # those returned last, so consecutive searches use the same stores
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
        """Return the weights in an ini with the features of this model, ``float64`` [F]."""
        return np.array([ini.weight(name) for name in self.feature_names])

    @property
    def neural_columns(self) -> list[int]:
        """Return the column of every neural feature in a feature vector."""
        return [self.feature_names.index(f"{feature.name}:0") for feature in self.neural]

    @property
    def listed(self) -> np.ndarray:
        """Return the columns of the features that n-best lists contain, which are all tuned features, as in Moses."""
        fixed = self.ini.fixed_scores()
        return np.array([column for column, name in enumerate(self.feature_names) if name not in fixed], np.int64)


def model_files(ini: MosesIni, directory: Path | None, feature: Feature) -> tuple[Path, list[Path]]:
    """Return the text file of a table or LM, and its existing binary forms in the order in which they are tried.

    The text file may be missing if there is a binary form.

    Args:
        directory: as ``model_dir`` of ``load_model``.

    Raises:
        InputError: none of these files exists.
    """
    own = ini.file_of(feature)
    folders = dict.fromkeys([own.parent] if directory is None else [directory, own.parent])
    binaries = [path for folder in folders if (path := folder / binary_name(own)).is_file()]
    text = _text_file(ini, directory, feature) if binaries else ini.located(feature, directory)
    return text, binaries


def _text_file(ini: MosesIni, directory: Path | None, feature: Feature) -> Path:
    """Return the text file of a feature, which may be missing."""
    try:
        return ini.located(feature, directory)
    except InputError:
        return ini.file_of(feature)


def used_file(ini: MosesIni, directory: Path | None, feature: Feature) -> Path:
    """Return the file of a feature that the search reads: the binary form of a table or LM, or the text file.

    Args:
        directory: as ``model_dir`` of ``load_model``.

    Raises:
        InputError: there is no such file, or only a binary form of another version.
    """

    def ignore(path: Path, reason: str) -> None:
        """Ignore the reason why a binary form is not used: ``load_model`` reports it."""

    mapped: tuple[Any, ...] | None = None
    if feature.kind in (PHRASE_DICTIONARY, "LexicalReordering"):  # one binary form has the scores of both
        mapped = _map_table(ini, directory, ignore)
    elif feature.is_lm:
        mapped = _map_lm(ini, directory, feature, ignore)
    return mapped[0] if mapped is not None else ini.located(feature, directory)


def _table_features(ini: MosesIni) -> tuple[Feature, Feature | None, bool]:
    """Return the features of the phrase table and the reordering table, and whether the word alignments are needed."""
    links = any(SEARCH_FEATURES[feature.network].needs_links for feature in ini.features if feature.network is not None)
    return some(ini, (PHRASE_DICTIONARY,))[0], single(ini, "LexicalReordering"), links


def _mapped(
    open_form: Callable[[Path, str], Form], path: Path, text: Path, report: Callable[[Path, str], None]
) -> Form | None:
    """Map a binary form; return None, after ``report``, if another version wrote it and its text file exists."""
    try:
        return open_form(path, REMEDY)
    except OtherVersionError:
        if not text.is_file():
            raise
    report(path, "was written by another version of rnnsmt")
    return None


def _map_table(
    ini: MosesIni, directory: Path | None, report: Callable[[Path, str], None]
) -> tuple[Path, PhraseTable] | None:
    """Map the binary form of phrase table and reordering table that agrees with the ini and with the text files.

    Args:
        report: function that is called with each binary form that does not agree, and with the reason.

    Returns:
        The file and the table; None if the text files must be read.
    """
    dictionary, reordering, links = _table_features(ini)
    columns = feature_count(dictionary, str(ini.path))
    text, binaries = model_files(ini, directory, dictionary)
    texts = [text] if reordering is None else [text, _text_file(ini, directory, reordering)]
    for path in binaries:
        table = _mapped(open_table, path, text, report)
        if table is None:
            continue
        if links and table.affiliations is None:
            reason: str | None = "has no word alignment of the phrase pairs, which the joint model requires"
        elif table.log_scores.shape[1] != columns or (
            reordering is not None and table.reordering.log_scores.shape[1] != feature_count(reordering, str(ini.path))
        ):
            reason = "was created from other files than those of this moses.ini"
        else:
            reason = changed_text(table.texts, texts)
        if reason is None:
            return path, table
        report(path, reason)
    return None


def _map_lm(
    ini: MosesIni, directory: Path | None, feature: Feature, report: Callable[[Path, str], None]
) -> tuple[Path, Automaton, Callable[[], None]] | None:
    """Map the binary form of an n-gram LM that agrees with the ARPA file.

    Args:
        report: function that is called with each binary form that does not agree, and with the reason.

    Returns:
        The file, the LM, and a function that unmaps the pages that were read so far; None if the ARPA file must be
        read.
    """
    text, binaries = model_files(ini, directory, feature)
    for path in binaries:
        mapped = _mapped(open_automaton, path, text, report)
        if mapped is None:
            continue
        lm, description, release = mapped
        reason = changed_text(description, [text])
        if reason is None:
            return path, lm, release
        report(path, reason)
    return None


def load_table(ini: MosesIni, directory: Path | None, sentences: list[str] | None) -> PhraseTable:
    """Map the binary form of phrase table and reordering table, or read the text files.

    Args:
        directory, sentences: as ``model_dir`` and ``sentences`` of ``load_model``.
    """
    mapped = _map_table(ini, directory, refuse_form)
    if mapped is None:
        return read_table(ini, directory, sentences)
    free_large_block()
    return mapped[1]


def read_table(ini: MosesIni, directory: Path | None, sentences: list[str] | None = None) -> PhraseTable:
    """Read the text files of phrase table and reordering table.

    Args:
        directory, sentences: as ``model_dir`` and ``sentences`` of ``load_model``.
    """
    dictionary, reordering, links = _table_features(ini)
    paths = [ini.located(feature, directory) for feature in (dictionary, reordering) if feature is not None]
    pairs = load_phrase_table(paths[0], feature_count(dictionary, str(ini.path)), sentences, links)
    if reordering is None:
        return pairs.table()
    return pairs.table(load_reordering_table(paths[1], pairs, feature_count(reordering, str(ini.path))))


def binarize(ini: MosesIni, directory: Path | None, output_dir: Path | None) -> tuple[list[Path], PhraseTable]:
    """Write the binary forms of the tables and LMs of a model, from their text files.

    Args:
        directory: as ``model_dir`` of ``load_model``.
        output_dir: directory of the binary forms; None: each is written to the directory of its text file.

    Returns:
        The paths of the binary forms, beginning with that of the table, and the table.

    Raises:
        InputError: a file is missing or malformed, or two binary forms would have the same path.
    """
    dictionary, reordering, _ = _table_features(ini)
    lms = [ini.located(feature, directory) for feature in some(ini, LANGUAGE_MODELS)]
    texts = [ini.located(feature, directory) for feature in (dictionary, reordering) if feature is not None]
    outputs = [(output_dir or path.parent) / binary_name(path) for path in [texts[0], *lms]]
    if len(set(outputs)) < len(outputs):
        raise InputError(f"{ini.path}: files differ only in the suffix, so that their binary files would have one name")
    descriptions = [describe_texts(paths) for paths in [texts, *([path] for path in lms)]]
    automata = [load_automaton(path) for path in lms]  # all files are read before the first one is written
    table = read_table(ini, directory)
    table.texts = descriptions[0]
    for lm, path, description in zip(automata, outputs[1:], descriptions[1:], strict=True):
        write_automaton(lm, path, description)
    table.write(outputs[0])
    return outputs, table


def load_lm(ini: MosesIni, directory: Path | None, feature: Feature) -> tuple[Automaton, Callable[[], None] | None]:
    """Map the binary form of an n-gram LM, or read the ARPA file.

    Returns:
        The LM, and a function that unmaps the pages that were read so far (None if the ARPA file was read).
    """
    mapped = _map_lm(ini, directory, feature, refuse_form)
    if mapped is None:
        return load_automaton(ini.located(feature, directory)), None
    free_large_block()
    _, lm, release = mapped
    return lm, release


def load_model(
    ini: MosesIni,
    sentences: list[str] | None = None,
    model_dir: StrPath | None = None,
    threads: int = 1,
    device: str = "auto",
) -> SearchModel:
    """Map the binary forms of the tables and LMs that an ini names, or read the text files.

    Args:
        ini: the ini; its weights are ignored.
        sentences: tokenised sentences; of text files, only phrases that occur in the sentences are kept. None: all.
        model_dir: directory of files that are used instead of files in the ini with the same base names, such as tables
            filtered for a text, or the binary forms of these files.
        threads, device: for neural features, see ``rnnsmt.search.neural.NetworkOptions``.

    Raises:
        InputError: a file is missing or malformed, or the decoder does not support the model.
    """
    directory = Path(model_dir) if model_dir is not None else None
    if directory is not None and not directory.is_dir():
        raise InputError(f"{directory}: no such directory")
    ini.check_sections()
    names, columns = feature_vector(ini)
    for feature in some(ini, (PHRASE_DICTIONARY, *LANGUAGE_MODELS)):  # before large files are read
        model_files(ini, directory, feature)
    networks = _networks(ini, directory)
    scores, hierarchical = reordering_columns(ini, single(ini, "LexicalReordering"))
    # the language models first, because reading them requires the most memory
    lms, releases = zip(*(load_lm(ini, directory, feature) for feature in some(ini, LANGUAGE_MODELS)), strict=True)
    table = load_table(ini, directory, sentences)
    mapped = [release for release in (*releases, table.release) if release is not None]
    options = NetworkOptions(threads, device)
    limit = MAX_WINDOW if ini.distortion_limit == NO_LIMIT else ini.distortion_limit
    return SearchModel(
        ini=ini,
        feature_names=names,
        table=table,
        reordering_scores=scores,
        # index -1 of a missing score reads the last column; np.where discards it
        reordering_places=np.where(scores >= 0, columns.get("LexicalReordering", np.array([-1]))[scores], -1),
        hierarchical=hierarchical,
        lms=list(lms),
        release=partial(_call_all, mapped),
        columns=columns,
        distortion_limit=max(min(limit, MAX_WINDOW), 0),
        table_limit=ini.table_limit,
        longest=min(table.longest_source, MAX_SOURCE_PHRASE),
        drop_unknown=ini.is_on(DROP_UNKNOWN),
        neural=[
            SEARCH_FEATURES[feature.network].load(feature.name, path, ini.unknown_score(feature), options)
            for feature, path in networks
            if feature.network is not None
        ],
    )


def _call_all(functions: Sequence[Callable[[], None]]) -> None:
    for function in functions:
        function()


def _networks(ini: MosesIni, directory: Path | None) -> list[tuple[Feature, Path]]:
    """Return the neural features of an ini and their model files; called before large files are read."""
    kinds = dict.fromkeys(feature.kind for feature in ini.features if feature.network is not None)
    features = [single(ini, kind) for kind in sorted(kinds)]
    return [(feature, ini.located(feature, directory)) for feature in features if feature is not None]


def kinds_of_features(model: SearchModel, columns: Sequence[str]) -> list[str]:
    """Return the display names of the scores of a feature vector [F]: names of phrase scores, otherwise the kind.

    If the model has several features of the same kind, the display name begins with the name of the feature.

    Args:
        columns: names of the phrase scores after the fourth; scores without a name are called score 5, score 6, etc.
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
        kinds: ``[F]``, kind of each feature, as returned by ``kinds_of_features``; kinds may be repeated.
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
"""For each type of reordering model, the index of the score of each orientation: monotone, swap, discontinuous to the
right, discontinuous to the left. Orientations with the same index share a score."""

_STATEFUL = ("LexicalReordering", "Distortion", *LANGUAGE_MODELS)

SUPPORTED = (*_STATEFUL, PHRASE_DICTIONARY, "WordPenalty", "PhrasePenalty", "UnknownWordPenalty")
"""Kinds of features that the decoder supports, in addition to networks."""

_SINGLE = ("WordPenalty", "PhrasePenalty", "UnknownWordPenalty", "Distortion")
"""Kinds of features without a file that a model may have only once."""


def single(ini: MosesIni, kind: str) -> Feature | None:
    """Return the only feature of a kind; None if there is none.

    Raises:
        InputError: there are several.
    """
    matching = [feature for feature in ini.features if feature.kind == kind]
    if len(matching) > 1:
        raise InputError(f"{ini.path}: {len(matching)} features of type {kind}; this decoder supports only one")
    return matching[0] if matching else None


def some(ini: MosesIni, kinds: tuple[str, ...]) -> list[Feature]:
    """Return the features of the given kinds.

    Raises:
        InputError: there is none.
    """
    matching = [feature for feature in ini.features if feature.kind in kinds]
    if not matching:
        raise InputError(f"{ini.path}: no feature of type {kinds[0]}; the decoder requires one")
    return matching


def feature_vector(ini: MosesIni) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the names of the scores in a feature vector, and their columns by kind of feature.

    The stateful features come first, in the order of the ini, then the other features, and the unknown-word penalty
    last.
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
    """Parse the type of a reordering model; return the columns of its scores, and whether it is hierarchical.

    The columns are ``SearchModel.reordering_scores``. Without a reordering model, all of them are -1.

    The type is parsed as in Moses, for example ``wbe-msd-bidirectional-fe-allff``. Its parts are ``wbe`` (word-based)
    or ``phrase``, which Moses' decoder does not distinguish, or ``hier``; the set of orientations; and the direction,
    ``backward``, ``forward`` or ``bidirectional``. In a bidirectional model, the backward scores come first.

    Raises:
        InputError: the type is not supported, or does not agree with ``num-features``.
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
