"""Reference implementation of the search, from the definitions: features, all derivations, tiny random models."""

import gzip
import itertools
import math
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import kenlm

from rnnsmt.base.errors import InputError
from rnnsmt.formats.default_ini import default_ini
from rnnsmt.formats.ini import Feature

LN10 = math.log(10.0)
SOURCE, TARGET = ["a", "b", "c", "d"], ["u", "v", "w", "x"]


@dataclass
class TinyModel:
    """Model directory and the model as Python objects; further_lm: second LM."""

    directory: Path
    phrases: dict[tuple[str, ...], list[tuple[tuple[str, ...], list[float]]]]
    reordering: dict[tuple[tuple[str, ...], tuple[str, ...]], list[float]]
    lm: "kenlm.Model"
    limit: int
    reordering_type: str = "wbe-msd-bidirectional-fe-allff"
    further_lm: "kenlm.Model | None" = None


def score_of_turn(kind: str, before: tuple[int, int] | None, start: int, end: int) -> int:
    """Return the index of the reordering score of a phrase after the preceding one, by Moses' definitions."""
    end_before = before[1] if before else -1
    monotone, swap = start == end_before + 1, before is not None and end + 1 == before[0]
    if kind == "monotonicity":
        return 0 if monotone else 1
    if kind == "leftright":
        return 0 if end_before <= start else 1
    if monotone or swap:
        return 0 if monotone else 1
    return 2 if kind == "msd" or start < end_before else 3


def hierarchical_turns(kind: str, path: list[tuple[int, int, tuple[str, ...]]]) -> tuple[list[int], list[int]]:
    """Return backward and forward orientations of a hierarchical model, from sets of source words."""
    names = {"msd": "MSDD", "mslr": "MSLR", "monotonicity": "MNNN", "leftright": "RLLR"}[kind]
    numbers = {"M": 0, "S": 1, "N": 1, "D": 2, "L": 2, "R": 3} if kind != "leftright" else {"R": 0, "L": 1}
    backward, forward = [], []
    blocks: list[set[int]] = [{-1}]
    for k, (start, end, _) in enumerate(path):
        own = set(range(start, end + 1))
        touching = [max(blocks[-1]) + 1 == start, min(blocks[-1]) == end + 1, start < min(blocks[-1]), True]
        backward.append(numbers[names[touching.index(True)]])
        while len(blocks) > 1 and (max(blocks[-1]) + 1 == min(own) or max(own) + 1 == min(blocks[-1])):
            own |= blocks.pop()
        blocks.append(own)
        done = {word for first, last, _ in path[: k + 1] for word in range(first, last + 1)}
        first, last = path[k - 1][:2] if k else (-1, -1)
        turns = [start > last and (start == last + 1 or last + 1 not in done)]
        turns += [end < first and (end == first - 1 or first - 1 not in done), start < first, True]
        forward.append(numbers[names[turns.index(True)]])
    return backward, forward


def arpa_text(rng: random.Random, words: list[str], order: int = 3) -> str:
    """Return a random ARPA model with all prefixes and suffixes of its n-grams; probabilities do not sum to 1."""
    grams: list[set[tuple[str, ...]]] = [{(w,) for w in ["<unk>", "<s>", "</s>", *words]}]
    for _ in range(2, order + 1):
        longer = set()
        for left in sorted(grams[-1]):
            for word in [*words, "</s>"]:
                gram = (*left, word)
                if "</s>" not in left and "<unk>" not in gram and gram[1:] in grams[-1] and rng.random() < 0.5:
                    longer.add(gram)
        grams.append(longer)
    lines = ["\\data\\", *(f"ngram {n}={len(g)}" for n, g in enumerate(grams, 1))]
    for n, found in enumerate(grams, 1):
        lines += ["", f"\\{n}-grams:"]
        for gram in sorted(found):
            extended = n < order and any(g[:-1] == gram for g in grams[n])
            weight = f"\t{-rng.random():.4f}" if extended else ""
            lines.append(f"{-3 * rng.random():.4f}\t{' '.join(gram)}{weight}")
    return "\n".join([*lines, "", "\\end\\", ""])


def read_model(directory: Path, phrase_table: str, reordering: str, lm: str, limit: int) -> TinyModel:
    """Read a model from text files line by line."""
    model = TinyModel(directory, {}, {}, kenlm.Model(str(directory / lm)), limit)
    with gzip.open(directory / phrase_table, "rt") as lines:
        for line in lines:
            source, target, scores, *_ = line.split(" ||| ")
            pair = tuple(target.split()), [float(score) for score in scores.split()]
            model.phrases.setdefault(tuple(source.split()), []).append(pair)
    with gzip.open(directory / reordering, "rt") as lines:
        for line in lines:
            source, target, scores = line.split(" ||| ")
            model.reordering[tuple(source.split()), tuple(target.split())] = [float(score) for score in scores.split()]
    return model


def path_of(text: str, segments: list[tuple[int, int, int]]) -> list[tuple[int, int, tuple[str, ...]]]:
    """Return the derivation of a translation with a given segmentation."""
    left, path = text.split(), []
    for first, last, size in segments:
        path.append((first, last, tuple(left[:size])))
        left = left[size:]
    assert not left
    return path


def tiny_model(
    directory: Path,
    seed: int,
    limit: int = 6,
    columns: int = 4,
    reordering_type: str = "wbe-msd-bidirectional-fe-allff",
    two_lms: bool = False,
) -> TinyModel:
    """Write a random model directory; some pairs have no reordering scores, source word ``d`` has no translation."""
    kind, direction = reordering_type.split("-")[1:3]
    turns = {"msd": 3, "mslr": 4, "monotonicity": 2, "leftright": 2}[kind] * (1 + (direction == "bidirectional"))
    rng = random.Random(seed)
    directory.mkdir(parents=True, exist_ok=True)
    phrases: dict[tuple[str, ...], list[tuple[tuple[str, ...], list[float]]]] = {}
    reordering = {}
    sources = [(s,) for s in SOURCE[:3]] + [p for p in itertools.product(SOURCE[:3], repeat=2) if rng.random() < 0.4]
    for source in sources:
        targets = {tuple(rng.choices(TARGET, k=rng.randint(1, 2))) for _ in range(rng.randint(1, 2))}
        for target in sorted(targets):
            scores = [round(rng.uniform(0.01, 1), 4) for _ in range(columns)]
            phrases.setdefault(source, []).append((target, scores))
            if rng.random() < 0.8:
                reordering[(source, target)] = [round(rng.uniform(0.05, 0.9), 4) for _ in range(turns)]
    rows = [(s, t, v) for s, options in phrases.items() for t, v in options]
    (directory / "phrase-table").write_text(
        "".join(
            f"{' '.join(s)} ||| {' '.join(t)} ||| {' '.join(map(str, v))} ||| 0-0 ||| 1 1 1 |||\n" for s, t, v in rows
        )
    )
    (directory / "reordering").write_text(
        "".join(f"{' '.join(s)} ||| {' '.join(t)} ||| {' '.join(map(str, v))}\n" for (s, t), v in reordering.items())
    )
    (directory / "lm.arpa").write_text(arpa_text(rng, [*TARGET, "d"]))
    ini = default_ini(directory, "phrase-table", "reordering", "lm.arpa", 3, columns, limit)
    for feature in ini.features:
        if feature.kind == "LexicalReordering":
            feature.options |= {"type": reordering_type, "num-features": str(turns)}
    ini.weights["LexicalReordering0"] = [0.3] * turns
    for name, weights in ini.weights.items():
        if name != "UnknownWordPenalty0":
            ini.weights[name] = [round(rng.uniform(0.05, 0.5), 3) for _ in weights]
    ini.weights["WordPenalty0"] = [-0.4]
    found = TinyModel(directory, phrases, reordering, kenlm.Model(str(directory / "lm.arpa")), limit, reordering_type)
    if two_lms:
        (directory / "further.arpa").write_text(arpa_text(rng, ["u", "v", "y", "z"], 2))
        found.further_lm = kenlm.Model(str(directory / "further.arpa"))
        ini.features.insert(
            0,
            Feature(
                "KENLM", "LM1", {"lazyken": "0", "name": "LM1", "factor": "0", "path": "further.arpa", "order": "2"}
            ),
        )
        ini.weights["LM1"] = [0.37]
    ini.write(directory / "moses.ini")
    return found


def derivations(model: TinyModel, words: list[str]) -> Iterator[list[tuple[int, int, tuple[str, ...]]]]:
    """Yield all derivations of a sentence: (first, last source word, target phrase) in target order."""

    def options(start: int, end: int) -> list[tuple[str, ...]]:
        source = tuple(words[start : end + 1])
        found = [t for t, _ in model.phrases.get(source, [])]
        return found or ([(words[start],)] if start == end else [])

    def extend(done: frozenset[int], path: list) -> Iterator[list]:
        if len(done) == len(words):
            yield path
            return
        gap = min(set(range(len(words))) - done)
        for start in range(gap, len(words)):
            for end in range(start, min(start + 2, len(words))):
                span = range(start, end + 1)
                if done & set(span) or (start != gap and abs(end - gap + 1) > model.limit):
                    continue
                for target in options(start, end):
                    yield from extend(done | set(span), [*path, (start, end, target)])

    yield from extend(frozenset(), [])


def features(
    model: TinyModel, words: list[str], path: list[tuple[int, int, tuple[str, ...]]]
) -> dict[str, list[float]]:
    """Return the features of a derivation, from Moses' definitions."""
    columns = len(next(iter(model.phrases.values()))[0][1])
    unit, kind, direction = model.reordering_type.split("-")[:3]
    half = {"msd": 3, "mslr": 4, "monotonicity": 2, "leftright": 2}[kind]
    sides = 2 if direction == "bidirectional" else 1
    out = {"LexicalReordering0": [0.0] * (half * sides), "Distortion0": [0.0], "TranslationModel0": [0.0] * columns}
    out["UnknownWordPenalty0"] = [0.0]
    text = [w for _, _, target in path for w in target]
    before: tuple[int, int] | None = None
    pair_before = None
    for (start, end, target), *blocks in zip(path, *hierarchical_turns(kind, path), strict=True):
        pair = (tuple(words[start : end + 1]), target)
        known = dict(model.phrases.get(pair[0], []))
        if target in known:
            for k, value in enumerate(known[target]):
                out["TranslationModel0"][k] += math.log(value)
        else:
            out["UnknownWordPenalty0"][0] -= 100.0
        out["Distortion0"][0] -= abs(start - (before[1] + 1 if before else 0))
        turn = following = score_of_turn(kind, before, start, end)
        if unit == "hier":
            turn, following = blocks
        if pair in model.reordering and direction != "forward":
            out["LexicalReordering0"][turn] += math.log(model.reordering[pair][turn])
        if pair_before in model.reordering and direction != "backward":
            place = following + half * (sides - 1)
            out["LexicalReordering0"][place] += math.log(model.reordering[pair_before][place])
        before, pair_before = (start, end), pair
    out["LM0"] = [model.lm.score(" ".join(text)) * LN10]
    if model.further_lm is not None:
        out["LM1"] = [model.further_lm.score(" ".join(text)) * LN10]
    out["WordPenalty0"], out["PhrasePenalty0"] = [-float(len(text))], [float(len(path))]
    return out


def exhaustive(model: TinyModel, words: list[str], weights: dict[str, list[float]]) -> dict[str, float]:
    """Return every reachable translation with the score of its best derivation."""
    best: dict[str, float] = {}
    for path in derivations(model, words):
        found = features(model, words, path)
        score = sum(w * f for name, ws in weights.items() for w, f in zip(ws, found[name], strict=True))
        text = " ".join(w for _, _, target in path for w in target)
        best[text] = max(score, best.get(text, -math.inf))
    return best


Segment = tuple[int, int, int]
"""First source word, last source word, number of target words."""


def parse_segmentation(text: str) -> list[Segment]:
    """Parse ``0-1=0-1 2=2`` (last field of an n-best entry); raise ``InputError`` for anything else."""
    segments = []
    for part in text.split():
        match = re.fullmatch(r"(\d+)(?:-(\d+))?=(?:(\d+)(?:-(\d+))?)?", part)
        if match is None:
            raise InputError(f"{part} is not a segment like 0-1=0-2")
        first, last, start, end = match.groups()
        size = 0 if start is None else int(end or start) - int(start) + 1
        segments.append((int(first), int(last or first), size))
    return segments
