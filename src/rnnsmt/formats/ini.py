"""``moses.ini``: the features of a model, their weights and the paths of its files.

The format is that of Moses, with section names in brackets. ``[feature]`` contains a line for each feature function
(``KENLM name=LM0 path=...``), and ``[weight]`` a line with the weights of each feature (``LM0= 0.5``). Paths are
relative to the directory of the ini file, so that a model directory can be moved. Moses resolves relative paths against
the working directory, and is therefore started inside the model directory.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from rnnsmt.base.errors import InputError
from rnnsmt.base.opening import is_file
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import read_lines
from rnnsmt.base.writing import atomic_text
from rnnsmt.config.features import UnknownScore
from rnnsmt.registries import SEARCH_FEATURES

NO_LIMIT = -1
"""Distortion limit that allows all jumps."""

MAX_WEIGHT = 1e9
"""Maximum absolute value of a weight; a larger one would lose the scores of other features by rounding."""

MAX_PATH = 1000
"""Maximum number of characters of a path in a file."""

MAX_SHOWN = 300
"""Number of characters of a path that a message shows at most."""

MAX_WORD = 300
"""Maximum number of characters of a name, or of an option other than ``path=`` including its value."""

DEFAULT_TABLE_LIMIT = 20

DEFAULT_DISTORTION_LIMIT = 6

PHRASE_DICTIONARY = "PhraseDictionaryMemory"
"""Kind of the feature for a phrase table in text form."""

TABLES = (PHRASE_DICTIONARY, "LexicalReordering")
"""Features with a table whose lines are phrase pairs."""

LANGUAGE_MODELS = ("KENLM", "SRILM", "IRSTLM", "RandLM")

RESCORING = "Rescored"
"""Kind of features that score complete translations; they occur only in n-best lists, as decoders cannot use them."""

CSLM_UNKNOWN: tuple[str, ...] = get_args(UnknownScore)
"""Values of the option ``unknown`` of a neural feature, the default first."""

UNKNOWN_WORDS = "UnknownWordPenalty"
"""Kind of the only feature that is not tuned by default, as in Moses."""

ONE_SCORE = (
    RESCORING,
    UNKNOWN_WORDS,
    "WordPenalty",
    "PhrasePenalty",
    "Distortion",
    *LANGUAGE_MODELS,
)

KNOWN_FEATURES = (*ONE_SCORE, *TABLES)

POP_LIMIT, STACK, DROP_UNKNOWN = "cube-pruning-pop-limit", "stack", "drop-unknown"
"""Sections that the decoder of ``rnnsmt.search`` uses, in addition to the sections that ``MosesIni`` parses."""

WITHOUT_EFFECT = (
    "verbose", "threads", "description", "show-weights", "report-all-factors", "report-all-factors-in-n-best",
    "report-segmentation", "report-segmentation-enriched", "print-alignment-info", "print-alignment-info-in-n-best",
    "print-id", "print-passthrough", "print-passthrough-in-n-best", "alignment-output-file", "sort-word-alignment",
    "include-segmentation-in-n-best", "n-best-list", "n-best-factor", "labeled-n-best-list", "output-factors",
    "output-hypo-score", "translation-details", "translation-all-details", "output-unknowns", "output-search-graph",
    "output-search-graph-extended", "output-word-graph", "search-algorithm", "cube-pruning-lazy-scoring",
    "cube-pruning-deterministic-search", "early-discarding-threshold", "use-persistent-cache", "persistent-cache-size",
    "clean-lm-cache", "minlexr-memory", "minphr-memory", "no-cache",
)  # fmt: skip
"""Sections that do not change translations: they control output, details of Moses' search, and memory."""

KNOWN_VALUES = {
    "input-factors": ("0",),
    "inputtype": ("0",),
    "xml-input": ("pass-through",),
    "max-phrase-length": ("20",),
}
"""Sections that change translations, with their supported values; the first one is Moses' default."""


_ON, _OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_YES, _NO = ("1", "true", "yes", "y"), ("0", "false", "no", "n")


@dataclass
class Feature:
    """A feature function: its Moses class, its name, and its ``key=value`` options in file order.

    Attributes:
        number: line number in the file from which the feature was read, for error messages.
    """

    kind: str
    name: str
    options: dict[str, str] = field(default_factory=dict)
    number: int | None = field(default=None, compare=False)

    @property
    def is_lm(self) -> bool:
        """Return whether the feature is an n-gram language model."""
        return self.kind in LANGUAGE_MODELS

    @property
    def network(self) -> str | None:
        """Return the name of a neural feature (a key of ``SEARCH_FEATURES``), or None for other features.

        The kind of a neural feature is this name in capital letters. Moses has no such features. The line in
        ``[feature]`` has the options ``name``, ``path`` (the model file) and ``unknown``.
        """
        name = self.kind.lower()
        return name if self.kind == name.upper() and name in SEARCH_FEATURES else None

    def line(self) -> str:
        """Return the line of the feature in the ``[feature]`` section."""
        return " ".join([self.kind, *(f"{key}={value}" for key, value in self.options.items())])


@dataclass
class MosesIni:
    """Content of a ``moses.ini``.

    Attributes:
        directory: directory against which relative paths are resolved.
        features: the features in file order.
        weights: the weights of each feature, by name.
        distortion_limit: in source words; ``NO_LIMIT`` for no limit.
        table_limit: maximum number of translations per source phrase; 0 for no limit.
        sections: lines of all other sections by name, without comments; ``write`` writes them again.
        path: the file that was read, for error messages.
        section_lines: line number of each section name in this file.
    """

    directory: Path
    features: list[Feature]
    weights: dict[str, list[float]]
    distortion_limit: int = DEFAULT_DISTORTION_LIMIT
    table_limit: int = DEFAULT_TABLE_LIMIT
    sections: dict[str, list[str]] = field(default_factory=dict)
    path: Path | None = None
    section_lines: dict[str, int] = field(default_factory=dict, compare=False)

    @classmethod
    def read(cls, path: StrPath) -> "MosesIni":
        """Read an ini file."""
        path = Path(path)
        numbered, section_lines = _sections(path)
        ini = cls(path.parent, [], {}, path=path, section_lines=section_lines)
        counts: dict[str, int] = {}
        for number, line in numbered.pop("feature", []):
            ini.features.append(_feature(line, counts, path, number))
        for number, line in numbered.pop("feature-overwrite", []):
            ini._overwrite(line, number)
        names = [feature.name for feature in ini.features]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"{path}: two features are called {name}; use different values of name=")
        for number, line in numbered.pop("weight", []):
            name, values = _weights(line, f"{path}, line {number}")
            if name not in names:
                raise InputError(
                    f"{path}, line {number}: weights for {name}, but there is no such feature; remove the line"
                )
            if name in ini.weights:
                raise InputError(f"{path}, line {number}: duplicate weights of {name}; keep one of the lines")
            ini.weights[name] = values
        sections = {name: [line for _, line in lines] for name, lines in numbered.items()}
        # without the section Moses allows all jumps
        limit = _integer(sections.pop("distortion-limit", None), "distortion-limit", path, NO_LIMIT)
        ini.distortion_limit = max(limit, NO_LIMIT)
        ini.table_limit = _integer(sections.pop("ttable-limit", None), "ttable-limit", path, DEFAULT_TABLE_LIMIT)
        tables = [feature for feature in ini.features if feature.kind.startswith("PhraseDictionary")]
        if len(tables) > 1:
            raise InputError(
                f"{path}, line {tables[1].number}: {tables[1].name} is a second phrase table; only one is supported, "
                "so use a model with one"
            )
        for table in tables:
            if "table-limit" in table.options:
                ini.table_limit = _integer([table.options.pop("table-limit")], "table-limit", path, 0)
        ini.sections = sections
        if not ini.features:
            convert = "convert it to the present format: Moses prints such lines (`line=`)"
            remedy = convert if "ttable-file" in sections else "is this a moses.ini?"
            raise InputError(f"{path}: no [feature] section; {remedy}")
        ini._check_weights()
        ini.fixed_scores()
        return ini

    def _overwrite(self, line: str, number: int) -> None:
        """Apply a line of ``[feature-overwrite]``, ``NAME key=value ...``, to the feature, as Moses does."""
        where = f"{self.path}, line {number}"
        name, *options = line.split()
        feature = next((feature for feature in self.features if feature.name == name), None)
        if feature is None:
            raise InputError(f"{where}: options for {name}, but there is no such feature; remove the line")
        for option in options or [""]:
            key, _, value = option.partition("=")
            # Moses reads these two options before it reads [feature-overwrite]
            if not value or key in ("name", "num-features"):
                raise InputError(f"{where}: cannot overwrite {option or name}; correct the line of {name} in [feature]")
            feature.options[key] = value
            if key == "path":
                feature.number = number

    def _check_weights(self) -> None:
        for feature in self.features:
            if feature.name not in self.weights:
                if feature.kind == UNKNOWN_WORDS:
                    self.weights[feature.name] = [1.0]
                    continue
                raise InputError(f"{self.place_of(feature)}: {feature.name} has no line in [weight]; add one")
            known = feature.kind in KNOWN_FEATURES or feature.network is not None
            if not known and "num-features" not in feature.options:
                continue  # the decoder rejects features of unknown kinds
            expected = feature_count(feature, str(self.path))
            count = len(self.weights[feature.name])
            if expected != count:
                raise InputError(
                    f"{self.place_of(feature)}: {feature.name} has {expected} scores but {count} weights; "
                    "correct its line in [weight]"
                )

    def fixed_scores(self) -> set[str]:
        """Return the names of the scores, e.g. ``TranslationModel0:2``, that are neither tuned nor in n-best lists.

        As in Moses, these are all scores of a feature with ``tuneable=false``, scores for which ``tuneable-components``
        is 0, and the unknown-word penalty unless it has ``tuneable=true``.
        """
        fixed: set[str] = set()
        for feature in self.features:
            count = len(self.weights[feature.name])
            (tuneable,) = self._switches(feature, "tuneable", "0" if feature.kind == UNKNOWN_WORDS else "1")
            components = self._switches(feature, "tuneable-components", ",".join("1" * count))
            if len(components) != count:
                raise InputError(
                    f"{self.place_of(feature)}: {feature.name} has {count} scores but {len(components)} values in "
                    "tuneable-components; specify one for each score"
                )
            fixed |= {f"{feature.name}:{k}" for k, tuned in enumerate(components) if not (tuneable and tuned)}
        return fixed

    def _switches(self, feature: Feature, key: str, default: str) -> list[bool]:
        """Return the values of a Boolean option of a feature, in any spelling that Moses accepts."""
        values = feature.options.get(key, default).lower().split(",")
        if not set(values) <= {*_YES, *_NO} or (key == "tuneable" and len(values) > 1):
            form = "true or false" if key == "tuneable" else "1 or 0 for each score, as in 1,0,1"
            raise InputError(
                f"{self.place_of(feature)}: {feature.name} has {key}={feature.options[key]}; it must be {form}"
            )
        return [value in _YES for value in values]

    def check_weight_sections(self) -> None:
        """Check that no section replaces weights of ``[weight]``."""
        for section in ("weight-overwrite", "weight-file"):
            if section in self.sections:
                raise InputError(
                    f"{self._place(section)}: [{section}] is not supported; write its weights into [weight] and remove "
                    "the section"
                )

    def number(self, section: str) -> int | None:
        """Return the positive integer in a section of ``sections``, or None if there is no such section."""
        lines = self.sections.get(section)
        if not lines:
            return None
        number = _integer(lines, section, self.path or self.directory, 1)
        if number < 1:
            raise InputError(f"{self._place(section)}: [{section}] {number}: must be at least 1")
        return number

    def is_on(self, section: str) -> bool:
        """Return whether a section of ``sections`` is present and switched on; without a value, it is switched on."""
        if section not in self.sections:
            return False
        value = " ".join(self.sections[section]).lower()
        if value not in ("", *_ON, *_OFF):
            raise InputError(f"{self._place(section)}: [{section}] {value[:60]}: must be 0 or 1")
        return value not in _OFF

    def check_sections(self) -> None:
        """Check that no section would make Moses translate differently from the decoder of ``rnnsmt.search``."""
        self.check_weight_sections()
        self._check_mapping()
        for name, lines in self.sections.items():
            value = " ".join(lines)
            if name == "mapping" or name in (POP_LIMIT, STACK, DROP_UNKNOWN, *WITHOUT_EFFECT) or value.lower() in _OFF:
                continue
            allowed = KNOWN_VALUES.get(name, ())
            if value not in allowed:
                raise InputError(
                    f"{self._place(name)}: [{name}]{f' {value[:60]}' if value else ''} is not supported by this "
                    f"decoder; remove the section" + (f" or set it to {allowed[0]}" if allowed else "")
                )

    def _check_mapping(self) -> None:
        """Check that ``[mapping]`` consists of a single step, the translation by the phrase table."""
        lines = [line.split() for line in self.sections.get("mapping", ["0 T 0"])]
        if lines not in ([["0", "T", "0"]], [["T", "0"]]):
            raise InputError(
                f"{self._place('mapping')}: [mapping] {', '.join(' '.join(line) for line in lines)[:60]}: this "
                "decoder supports only one decoding path with one phrase table; use 0 T 0"
            )

    def is_same_model(self, other: "MosesIni") -> bool:
        """Return whether another ini is equal except for weights."""

        def model(ini: "MosesIni") -> tuple[object, ...]:
            features = [ini._resolved(feature) for feature in ini.features]
            return features, ini.distortion_limit, ini.table_limit, ini.sections

        return model(self) == model(other)

    def _resolved(self, feature: Feature) -> Feature:
        """Return a feature with the absolute path of its file."""
        path = {"path": str(self.file_of(feature).resolve())} if "path" in feature.options else {}
        return Feature(feature.kind, feature.name, feature.options | path)

    def _place(self, section: str) -> str:
        line = self.section_lines.get(section)
        return f"{self.path}" if line is None else f"{self.path}, line {line}"

    def place_of(self, feature: Feature) -> str:
        """Return the file and line of a feature, for error messages."""
        return f"{self.path}" if feature.number is None else f"{self.path}, line {feature.number}"

    def weight(self, score: str) -> float:
        """Return the weight of a score, given its name, e.g. ``TranslationModel0:2``."""
        name, _, index = score.rpartition(":")
        return self.weights[name][int(index)]

    def add_scores_of_lists(self, weights: Mapping[str, float]) -> None:
        """Add features that only rescored n-best lists contain, with their weights.

        Raises:
            InputError: the ini already has a feature with this name, or the name is invalid.
        """
        for name, weight in weights.items():
            if not name.isidentifier():
                raise InputError(f"--feature {name}={weight:g}: must be a name such as LSTM0 and a weight")
            if name in self.weights:
                raise InputError(
                    f"{self.path}: already has a feature {name}; remove it from --feature, or rescore with another name"
                )
            self.features.append(Feature(RESCORING, name, {"name": name}))
            self.weights[name] = [weight]

    def set_weight(self, score: str, value: float) -> None:
        """Set the weight of a score, given its name, e.g. ``TranslationModel0:2``."""
        name, _, index = score.rpartition(":")
        self.weights[name][int(index)] = value

    def file_of(self, feature: Feature) -> Path:
        """Return the path of a feature's file, resolved against the directory of the ini."""
        if "path" not in feature.options:
            raise InputError(f"{self.path}: feature {feature.name} has no path=; add the path of its file")
        if len(feature.options["path"]) > MAX_PATH:
            raise InputError(f"{self.place_of(feature)}: path= has more than {MAX_PATH} characters; correct it")
        return _with_suffix(feature, self.directory / feature.options["path"])

    def located(self, feature: Feature, directory: Path | None = None) -> Path:
        """Return the file of a feature, or the file of the same base name in ``directory`` if there is one."""
        path = self.file_of(feature)
        if directory is not None:
            other = _with_suffix(feature, directory / Path(feature.options["path"]).name)
            if is_file(other):
                return other
        if not is_file(path):
            raise InputError(
                f"{self.place_of(feature)}: the file of {feature.name} is missing: {str(path)[:MAX_SHOWN]}; "
                "correct path= or create the file"
            )
        return path

    def unknown_score(self, feature: Feature) -> str:
        """Return the value of the option ``unknown`` of a neural feature, one of ``CSLM_UNKNOWN``."""
        unknown = feature.options.get("unknown", CSLM_UNKNOWN[0])
        if unknown not in CSLM_UNKNOWN:
            raise InputError(
                f"{self.path}: {feature.name} has unknown={unknown}; it must be {' or '.join(CSLM_UNKNOWN)}"
            )
        return unknown

    def text_for(self, directory: Path) -> str:
        """Return the content of an ini file in ``directory``; relative paths are rewritten relative to it."""
        out: list[str] = []
        for name, lines in self.sections.items():
            out += [f"[{name}]", *lines, ""]
        out += ["[distortion-limit]", str(self.distortion_limit), "", "[feature]"]
        for feature in self.features:
            options = dict(feature.options)
            if "path" in options and not Path(options["path"]).is_absolute():
                options["path"] = os.path.relpath(self.directory / options["path"], directory)
            if feature.kind == PHRASE_DICTIONARY and self.table_limit != DEFAULT_TABLE_LIMIT:
                options["table-limit"] = str(self.table_limit)
            out.append(Feature(feature.kind, feature.name, options).line())
        out += ["", "[weight]"]
        out += [f"{name}= " + " ".join(f"{w:.10g}" for w in ws) for name, ws in self.weights.items()]
        return "\n".join(out) + "\n"

    def write(self, path: StrPath) -> None:
        """Write the ini atomically; relative paths are rewritten so that they refer to the same files."""
        with atomic_text(path) as out:
            out.write(self.text_for(Path(path).parent))


def _with_suffix(feature: Feature, path: Path) -> Path:
    """Return the path of a feature's file, with ``.gz`` for a reordering table that exists only with this suffix.

    Moses tries ``.gz`` for reordering tables, but not for other files.
    """
    packed = path.with_name(f"{path.name}.gz") if feature.kind == "LexicalReordering" and path.name else path
    return packed if is_file(packed) and not is_file(path) else path


def feature_count(feature: Feature, where: str) -> int:
    """Return the number of scalar scores of a feature function."""
    if feature.kind in ONE_SCORE or feature.network is not None:
        return 1
    default = {PHRASE_DICTIONARY: "4", "LexicalReordering": "6"}.get(feature.kind)
    text = feature.options.get("num-features", default)
    if text is None or not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise InputError(f"{where}: feature {feature.name}: num-features={text} is not a positive integer")
    return int(text)


def _sections(path: Path) -> tuple[dict[str, list[tuple[int, str]]], dict[str, int]]:
    """Return the lines of every section, as pairs (line number, text), and the line numbers of the section names."""
    sections: dict[str, list[tuple[int, str]]] = {}
    begins: dict[str, int] = {}
    name: str | None = None
    for number, raw in enumerate(read_lines(path), 1):
        line = raw.split("#", 1)[0].strip()
        if not line:
            continue
        if any(len(word) > MAX_WORD and not word.startswith("path=") for word in line.split()):
            raise InputError(f"{path}, line {number}: a name or value has more than {MAX_WORD} characters; correct it")
        if line.startswith("["):
            if not line.endswith("]"):
                raise InputError(f"{path}, line {number}: a section name without closing bracket: {line[:60]}")
            name = line[1:-1].strip()
            sections.setdefault(name, [])
            begins.setdefault(name, number)
        elif name is None:
            raise InputError(f"{path}, line {number}: text before the first [section]; is this a moses.ini?")
        else:
            sections[name].append((number, line))
    return sections, begins


def _feature(line: str, counts: dict[str, int], path: Path, number: int) -> Feature:
    kind, *rest = line.split()
    options: dict[str, str] = {}
    for option in rest:
        key, equals, value = option.partition("=")
        if not equals:
            raise InputError(f"{path}, line {number}: {option} in the feature {kind} is not key=value")
        options[key] = value
    index = counts.get(kind, 0)
    counts[kind] = index + 1
    return Feature(kind, options.get("name", f"{kind}{index}"), options, number)


def _weights(line: str, where: str) -> tuple[str, list[float]]:
    name, equals, values = line.partition("=")
    if not equals:
        raise InputError(f"{where}: not of the form NAME= weight ...: {line[:60]}")
    try:
        numbers = [float(value) for value in values.split()]
    except ValueError:
        raise InputError(f"{where}: a weight of {name.strip()} is not a number") from None
    if not all(math.isfinite(number) for number in numbers):
        raise InputError(f"{where}: a weight of {name.strip()} is not finite")
    if any(abs(number) > MAX_WEIGHT for number in numbers):
        raise InputError(
            f"{where}: a weight of {name.strip()} is larger than {MAX_WEIGHT:g} in absolute value; weights in Moses "
            "are about 1 or less"
        )
    return name.strip(), numbers


def _integer(lines: list[str] | None, name: str, path: Path, default: int) -> int:
    if not lines:
        return default
    try:
        number = int(lines[-1].split()[-1])
    except ValueError:
        raise InputError(f"{path}: {name} {lines[-1][:60]} is not an integer") from None
    if not abs(number) < 1 << 31:
        raise InputError(f"{path}: {name} {lines[-1][:60]} is too large")
    return number


def same_models(
    inis: Sequence[StrPath], directories: Sequence[StrPath] | None
) -> list[tuple[Path | None, dict[int, MosesIni]]]:
    """Group ini files that differ only in weights.

    Args:
        directories: directories whose files replace model files with the same base name: a single directory for all
            ini files, or a directory for each; None to use the paths of the ini files.

    Returns:
        Pairs, one for each group: the directory or None, and the ini files by their indices in ``inis``.
    """
    places = [None] * len(inis) if not directories else [Path(directory) for directory in directories]
    if len(places) == 1:
        places *= len(inis)
    if len(places) != len(inis):
        raise InputError(
            f"--model-dir: {len(places)} directories for {len(inis)} --ini files; specify one, or one for each"
        )
    models: list[tuple[Path | None, dict[int, MosesIni]]] = []
    for index, (path, directory) in enumerate(zip(inis, places, strict=True)):
        ini = MosesIni.read(path)
        for other, alike in models:
            if other == directory and next(iter(alike.values())).is_same_model(ini):
                alike[index] = ini
                break
        else:
            models.append((directory, {index: ini}))
    return models
