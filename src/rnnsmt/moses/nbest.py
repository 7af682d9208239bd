"""Moses' n-best lists: ``number ||| text ||| Name= value ... ||| score [||| segmentation]``."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.io import InputError, read_lines
from rnnsmt.moses.ini import MosesIni


class Candidate(NamedTuple):
    """One line of an n-best list."""

    sentence: int
    text: str
    features: tuple[float, ...]
    score: float


class NbestLists(NamedTuple):
    """The lists of all sentences of a text, in the order of the file.

    ``names``: of the F features (``LM0:0``), in the order of the ini; ``texts``: of every sentence; ``features``:
    float64 ``[n, F]`` of every sentence. A sentence without a line in the file, which is how an empty one looks, has
    the empty translation with all features 0.
    """

    names: list[str]
    texts: list[list[str]]
    features: list[NDArray[np.float64]]


def fields_of(line: str, path: str | Path, number: int) -> list[str]:
    """The fields of a line, as they are.

    Raises:
        InputError: fewer than four, or the first is not the number of a sentence.
    """
    fields = line.split("|||")
    if len(fields) < 4 or not fields[0].strip().isdecimal():
        raise InputError(f"{path}, line {number}: not number ||| text ||| features ||| score; is it an n-best list?")
    return fields


def read_nbest(path: str | Path) -> tuple[list[str], Iterator[Candidate]]:
    """Feature names (``Name0:0``, one a value, in the order of the file) and the candidates of an n-best list.

    Raises:
        InputError: no line, one that is none of an n-best list, a feature list that differs from the first line's, a
            value that is not a finite number, or sentences out of order.
    """
    lines = enumerate(read_lines(path), 1)
    first = next(lines, None)
    if first is None:
        raise InputError(f"{path}: is empty, an n-best list is needed")
    names, candidate = _parse(path, *first)

    def candidates() -> Iterator[Candidate]:
        last = candidate.sentence
        yield candidate
        for number, line in lines:
            other_names, other = _parse(path, number, line)
            if other_names != names:
                raise InputError(f"{path}, line {number}: other features than on line 1; make the list with one model")
            if other.sentence < last:
                raise InputError(f"{path}, line {number}: sentence {other.sentence} after {last}; sort the list")
            last = other.sentence
            yield other

    return names, candidates()


def read_lists(path: str | Path, ini: MosesIni, source: Sequence[str]) -> NbestLists:
    """The lists of the sentences of a text, with the features that the ini has weights of.

    The unknown word penalty is in no list, neither in Moses' nor in ours.

    Raises:
        InputError: as ``read_nbest``; a sentence beyond the text; no translation of a sentence that is not empty;
            features that the ini lacks, or the other way round.
    """
    in_file, candidates = read_nbest(path)
    kinds = {feature.name: feature.kind for feature in ini.features}
    listed = {name: values for name, values in ini.weights.items() if kinds[name] != "UnknownWordPenalty"}
    names = [f"{name}:{place}" for name, values in listed.items() for place in range(len(values))]
    if sorted(names) != sorted(in_file):
        lacks, more = (", ".join(sorted(a - b)) for a, b in ((set(names), set(in_file)), (set(in_file), set(names))))
        parts = [f"lacks {lacks} of {ini.path}"] if lacks else []
        parts += [f"has {more}, which {ini.path} lacks"] if more else []
        raise InputError(f"{path}: {' and '.join(parts) or 'has a feature twice'}; take the ini of these features")
    order = [in_file.index(name) for name in names]
    texts: list[list[str]] = [[] for _ in source]
    rows: list[list[tuple[float, ...]]] = [[] for _ in source]
    for one in candidates:
        if one.sentence >= len(source):
            raise InputError(f"{path}: has sentence {one.sentence} (from 0), but the text has {len(source)} lines")
        texts[one.sentence].append(one.text)
        rows[one.sentence].append(one.features)
    lacking = [
        number for number, (text, found) in enumerate(zip(source, texts, strict=True)) if text.split() and not found
    ]
    if lacking:
        raise InputError(
            f"{path}: has no translation of sentence {lacking[0]} (from 0) and of {len(lacking) - 1} more; "
            "make the list of the whole text"
        )
    features = [np.array(values or [(0.0,) * len(names)])[:, order] for values in rows]
    return NbestLists(names, [found or [""] for found in texts], features)


def _parse(path: str | Path, number: int, line: str) -> tuple[list[str], Candidate]:
    fields = fields_of(line, path, number)
    names: list[str] = []
    values: list[float] = []
    name, place = "", 0
    try:
        sentence, score = int(fields[0]), float(fields[3])
        for word in fields[2].split():
            if word.endswith("="):
                name, place = word[:-1], 0
            else:
                values.append(float(word))
                names.append(f"{name}:{place}")
                place += 1
    except ValueError as error:
        raise InputError(f"{path}, line {number}: {error}; is it an n-best list?") from None
    if not all(map(math.isfinite, values)):
        raise InputError(f"{path}, line {number}: a feature that is not finite")
    return names, Candidate(sentence, " ".join(fields[1].split()), tuple(values), score)
