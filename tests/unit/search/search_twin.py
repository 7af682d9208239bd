"""Features of a translation whose segmentation is given: Moses' n-best entries, forced derivations, tests."""

import re

import numpy as np

from rnnsmt.io import InputError
from rnnsmt.search.nbest import Derivations
from rnnsmt.search.sentence_search import SentenceSearch

Segment = tuple[int, int, int]
"""First source word, last source word, number of target words."""


def parse_segmentation(text: str) -> list[Segment]:
    """Read ``0-1=0-1 2=2`` (the last field of an n-best entry); ``InputError`` where it is something else."""
    segments = []
    for part in text.split():
        match = re.fullmatch(r"(\d+)(?:-(\d+))?=(?:(\d+)(?:-(\d+))?)?", part)
        if match is None:
            raise InputError(f"{part} is not a segment like 0-1=0-2")
        first, last, start, end = match.groups()
        size = 0 if start is None else int(end or start) - int(start) + 1
        segments.append((int(first), int(last or first), size))
    return segments


def rescore(search: SentenceSearch, sentence: int, text: str, segments: list[Segment]) -> np.ndarray:
    """Feature values ``float64`` [F] of a translation of one of the search's sentences.

    Raises:
        InputError: a phrase of the segmentation is not among the translation options.
    """
    words = text.split(" ") if text else []
    rows, position = [], 0
    for first, last, size in segments:
        rows.append(_row(search, sentence, first, last, " ".join(words[position : position + size])))
        position += size
    if position != len(words):
        raise InputError(f"the segmentation has {position} target words, the text {len(words)}")
    starts = np.array([s[0] for s in segments], np.int32)
    ends = np.array([s[1] for s in segments], np.int32)
    pairs = np.array(rows, np.int32)
    return search.features_of(Derivations(np.array([0, len(rows)]), pairs, starts, ends), pairs)[0]


def _row(search: SentenceSearch, sentence: int, first: int, last: int, phrase: str) -> int:
    looked_up = search.looked_up
    spans = looked_up.spans[sentence]
    source = int(spans[first, last - first]) if last < len(spans) and last - first < spans.shape[1] else -1
    for row in np.flatnonzero(looked_up.source_of == source):
        target = looked_up.target_of[row]
        a, b = looked_up.targets.bounds[target], looked_up.targets.bounds[target + 1]
        if " ".join(looked_up.words[w] for w in looked_up.targets.words[a:b]) == phrase:
            return int(row)
    raise InputError(f"sentence {sentence + 1}: source words {first}-{last} have no translation '{phrase}'")
