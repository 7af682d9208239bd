"""Moses' n-best lists: ``number ||| text ||| Name= value ... ||| score [||| segmentation]``."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rnnsmt.io import InputError, read_lines


class Candidate(NamedTuple):
    """One line of an n-best list."""

    sentence: int
    text: str
    features: tuple[float, ...]
    score: float


def read_nbest(path: str | Path) -> tuple[list[str], Iterator[Candidate]]:
    """Feature names (``Name0:0``, one a value, in the order of the file) and the candidates of an n-best list.

    Raises:
        InputError: no line, fewer than four fields, a feature list that differs from the first line's, a value that is
            not a finite number, or sentences out of order.
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


def _parse(path: str | Path, number: int, line: str) -> tuple[list[str], Candidate]:
    fields = line.split("|||")
    if len(fields) < 4:
        raise InputError(f"{path}, line {number}: {len(fields)} fields instead of 4; is this a Moses n-best list?")
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
        raise InputError(f"{path}, line {number}: {error}; is this a Moses n-best list?") from None
    if sentence < 0 or not all(map(math.isfinite, values)):
        raise InputError(f"{path}, line {number}: a negative sentence or a feature that is not finite")
    return names, Candidate(sentence, " ".join(fields[1].split()), tuple(values), score)
