"""Slow reference implementation of the package ``phrases`` in plain Python, written from the definitions."""

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import product

import numpy as np

Pair = tuple[str, str, str]
"""Source sentence, target sentence, links."""

Links = frozenset[tuple[int, int]]


@dataclass
class Line:
    """One line of a phrase table; ``further`` are the fields after the counts."""

    source: str
    target: str
    scores: list[float]
    alignment: list[tuple[int, int]] = field(default_factory=list)
    counts: list[float] = field(default_factory=list)
    further: list[str] = field(default_factory=list)


def phrase_line(line: Line) -> str:
    """Return a line in Moses' format, without newline: six significant digits, single spaces."""
    fields = [line.source, line.target, " ".join(f"{score:.6g}" for score in line.scores)]
    if line.alignment or line.counts or line.further:
        fields.append(" ".join(f"{i}-{j}" for i, j in line.alignment))
        fields.append(" ".join(f"{count:.15g}" for count in line.counts))
        fields += line.further
    return " ||| ".join(fields).replace("|||  |||", "||| |||").replace("|||  |||", "||| |||").rstrip(" ")


def parse_line(text: str, reordering: bool = False) -> Line | None:
    """Return the content of a line of a phrase table or reordering table; None if it must be refused."""
    fields = [part.strip(" \t\r") for part in text.split("|||")]
    if reordering:  # Moses ignores what follows the probabilities
        fields = fields[:3]
    if len(fields) < 3 or not fields[0] or not fields[1]:
        return None
    source, target = (" ".join(re.findall(r"[^ \t]+", side)) for side in fields[:2])
    tokens = [re.findall(r"[^ \t\r]+", part) for part in fields]
    numbers = [*tokens[2], *(tokens[4] if len(fields) > 4 else [])]
    if not tokens[2] or not all(map(_is_number, numbers)):
        return None
    links = tokens[3] if len(fields) > 3 else []
    if not all(re.fullmatch("[0-9]{1,9}-[0-9]{1,9}", link) for link in links):
        return None
    alignment = [(int(i), int(j)) for i, j in (link.split("-") for link in links)]
    if any(i >= len(source.split(" ")) or j >= len(target.split(" ")) for i, j in alignment):
        return None
    scores = [float(number) for number in tokens[2]]
    return Line(source, target, scores, alignment, [float(number) for number in numbers[len(scores) :]], fields[5:])


def _is_number(token: str) -> bool:
    """Return whether a token is a finite non-negative number, in ASCII digits without underscores."""
    try:
        return token.isascii() and "_" not in token and math.isfinite(float(token)) and float(token) >= 0
    except ValueError:
        return False


def links_of(text: str) -> set[tuple[int, int]]:
    """Return the links of an alignment line."""
    return {(int(a), int(b)) for a, b in (token.split("-") for token in text.split())}


def extract(pair: Pair, max_length: int):
    """Yield (source phrase, target phrase, links inside, previous, next) of every consistent phrase pair."""
    source, target, links = pair[0].split(), pair[1].split(), links_of(pair[2])
    corners = links | {(-1, -1), (len(source), len(target))}
    for i1, j1 in product(range(len(source)), range(len(target))):
        for i2 in range(i1, min(i1 + max_length, len(source))):
            for j2 in range(j1, min(j1 + max_length, len(target))):
                inside = [(i1 <= i <= i2, j1 <= j <= j2) for i, j in links]
                if (True, True) not in inside or any(a != b for a, b in inside):
                    continue
                local = frozenset((i - i1, j - j1) for i, j in links if i1 <= i <= i2 and j1 <= j <= j2)
                previous = orientation((i1 - 1, j1 - 1) in corners, (i2 + 1, j1 - 1) in corners)
                following = orientation((i2 + 1, j2 + 1) in corners, (i1 - 1, j2 + 1) in corners)
                yield " ".join(source[i1 : i2 + 1]), " ".join(target[j1 : j2 + 1]), local, previous, following


def orientation(monotone: bool, swapped: bool) -> str:
    """Return the word-based orientation relative to a neighbour."""
    if monotone and not swapped:
        return "mono"
    if swapped and not monotone:
        return "swap"
    return "other"


def lexicons(pairs: list[Pair]) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]:
    """Return p(f|e) by (f, e) and p(e|f) by (e, f), rounded as in the files."""
    joint, sources, targets = Counter(), Counter(), Counter()
    for text, text2, alignment in pairs:
        source, target, links = text.split(), text2.split(), links_of(alignment)
        words = [(source[i], target[j]) for i, j in links]
        words += [(word, "NULL") for i, word in enumerate(source) if i not in {a for a, _ in links}]
        words += [("NULL", word) for j, word in enumerate(target) if j not in {b for _, b in links}]
        for f, e in words:
            joint[f, e] += 1
            sources[f] += 1
            targets[e] += 1
    e2f = {(f, e): float(f"{n / targets[e]:.7f}") for (f, e), n in joint.items()}
    f2e = {(e, f): float(f"{n / sources[f]:.7f}") for (f, e), n in joint.items()}
    return e2f, f2e


def lexical_weight(words: list[str], given: list[str], links: set[tuple[int, int]], lexicon) -> float:
    """Return lex(words | given, links); links are pairs (position in words, position in given)."""
    weight = 1.0
    for j, word in enumerate(words):
        partners = sorted(i for jj, i in links if jj == j)
        if partners:
            weight *= sum(lexicon[word, given[i]] for i in partners) / len(partners)
        else:
            weight *= lexicon[word, "NULL"]
    return float(np.float32(weight))


def best_links(counts: Counter, swapped: bool) -> Links:
    """Return the most frequent alignment; ties are broken by the greatest list of lists of partners."""

    def key(links: Links):
        turned = {(b, a) if swapped else (a, b) for a, b in links}
        return [sorted(a for a, b in turned if b == j) for j in range(9)]

    return max(counts, key=lambda links: (counts[links], key(links)))


def tables(pairs: list[Pair], max_length: int, smoothing: float = 0.5) -> tuple[list[str], list[str]]:
    """Return the lines of the phrase table and of the reordering table."""
    occurrences = [found for pair in pairs for found in extract(pair, max_length)]
    sources, targets = Counter(o[0] for o in occurrences), Counter(o[1] for o in occurrences)
    alignments: defaultdict[tuple[str, str], Counter] = defaultdict(Counter)
    previous: defaultdict[tuple[str, str], Counter] = defaultdict(Counter)
    following: defaultdict[tuple[str, str], Counter] = defaultdict(Counter)
    for f, e, links, before, after in occurrences:
        alignments[f, e][links] += 1
        previous[f, e][before] += 1
        following[f, e][after] += 1
    e2f, f2e = lexicons(pairs)
    phrase_lines, reordering_lines = [], []
    for f, e in sorted(alignments, key=lambda pair: f"{pair[0]} ||| {pair[1]} ||| ".encode()):
        counts = alignments[f, e]
        n = counts.total()
        best, inverse = best_links(counts, False), best_links(counts, True)
        scores = (
            float(np.float32(n) / np.float32(targets[e])),
            lexical_weight(f.split(), e.split(), set(inverse), e2f),
            float(np.float32(n) / np.float32(sources[f])),
            lexical_weight(e.split(), f.split(), {(b, a) for a, b in best}, f2e),
        )
        printed = " ".join(f"{score:.6g}" for score in scores)
        links = " ".join(f"{i}-{j}" for i, j in sorted(best, key=lambda link: link[::-1]))
        phrase_lines.append(f"{f} ||| {e} ||| {printed} ||| {links} ||| {targets[e]} {sources[f]} {n} ||| |||")
        numbers = [
            (count[name] + smoothing) / (n + 3 * smoothing)
            for count in (previous[f, e], following[f, e])
            for name in ("mono", "swap", "other")
        ]
        reordering_lines.append(f"{f} ||| {e} ||| " + " ".join(f"{number:.6g}" for number in numbers))
    return phrase_lines, reordering_lines


def kneser_ney(joint: dict[tuple[str, str], int], alignments: int) -> dict[tuple[str, str], tuple[float, float]]:
    """Return smoothed (p(f|e), p(e|f)) of every pair from its extraction counts, after Foster et al. (2006)."""
    seen = Counter(-(-n // alignments) for n in joint.values())
    share = seen[1] / (seen[1] + 2 * seen[2]) if seen[1] else 0.0
    discounts = {
        c: min(max(c - (c + 1) * share * seen[c + 1] / seen[c], 0.0), c) if seen[c] else float(c) for c in (1, 2, 3)
    }

    def lost(n: int) -> float:
        below, part = divmod(n, alignments)
        known = {0: 0.0, **discounts}
        low, high = known[min(below, 3)], known[min(below + 1, 3)]
        return low + (high - low) * part / alignments

    smoothed = {}
    for (f, e), n in joint.items():
        both = []
        for side, other in ((1, 0), (0, 1)):
            given = [pair for pair in joint if pair[side] == (f, e)[side]]
            partners = sum(pair[other] == (f, e)[other] for pair in joint)
            total = sum(joint[pair] for pair in given) / alignments
            mass = sum(lost(joint[pair]) for pair in given)
            kept = n / alignments - lost(n)
            both.append((kept + mass * partners / len(joint)) / total)
        smoothed[f, e] = both[0], both[1]
    return smoothed
