"""Linear interpolation: against a slow version over dictionaries, KenLM, and a search over all weights."""

import gzip
import itertools
import math
import random
from pathlib import Path

import numpy as np
import pytest

from rnnsmt.lm.estimation import estimate
from rnnsmt.lm.interpolation import best_weights, interpolate
from rnnsmt.lm.queries import load_kenlm, measure


class Slow:
    """An ARPA file as dictionaries, asked by recursion."""

    def __init__(self, path: Path) -> None:
        self.probs: dict[tuple[str, ...], float] = {}
        self.backoffs: dict[tuple[str, ...], float] = {}
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            fields = line.rstrip("\n").split("\t")
            if len(fields) > 1:
                ngram = tuple(fields[1].split(" "))
                self.probs[ngram] = 10 ** float(fields[0])
                self.backoffs[ngram] = 10 ** float(fields[2]) if len(fields) > 2 else 1.0
        self.words = {ngram[0] for ngram in self.probs if len(ngram) == 1}

    def p(self, ngram: tuple[str, ...]) -> float:
        if ngram[-1] not in self.words:
            return 0.0
        return self.asked(tuple(word if word in self.words else "<unk>" for word in ngram))

    def asked(self, ngram: tuple[str, ...]) -> float:
        if ngram in self.probs:
            return self.probs[ngram]
        return self.backoffs.get(ngram[:-1], 1.0) * self.asked(ngram[1:])


def text(path: Path, words: str, lines: int, seed: int) -> Path:
    draw = random.Random(seed)
    path.write_text("".join(" ".join(draw.choices(words, k=draw.randint(1, 6))) + "\n" for _ in range(lines)))
    return path


@pytest.mark.parametrize(("orders", "prune"), [((3, 3), ()), ((2, 4), ()), ((3, 3), (0, 0, 1))])
def test_equals_the_slow_version(tmp_path: Path, orders: tuple[int, int], prune: tuple[int, ...]) -> None:
    paths = [tmp_path / "a.arpa.gz", tmp_path / "b.arpa.gz"]
    for path, words, order, seed in zip(paths, ("aabcdef", "adefghh"), orders, (1, 2), strict=True):
        estimate([text(tmp_path / f"{seed}.txt", words, 60, seed)], order, path, prune=prune)
    dev = text(tmp_path / "dev.txt", "abdeghxx", 30, 3)
    output = tmp_path / "c.arpa.gz"
    report = interpolate(paths, dev, output)
    parts, mixed = [Slow(path) for path in paths], Slow(output)
    assert set(mixed.probs) == set(parts[0].probs) | set(parts[1].probs)

    events = []
    for line in dev.read_text().splitlines():
        sentence = ["<s>", *line.split(), "</s>"]
        for i in range(1, len(sentence)):
            ngram = tuple(sentence[max(0, i - 3) : i + 1])
            events.append([part.p(ngram[-order:]) for part, order in zip(parts, orders, strict=True)])
    likely = [pair for pair in events if sum(pair)]
    assert 0 < report["OOV of all"] == len(events) - len(likely)
    best = min(range(10001), key=lambda k: -sum(math.log(k / 1e4 * a + (1 - k / 1e4) * b + 1e-300) for a, b in likely))
    weights = [float(x) for x in str(report["weights"]).split("/")]
    assert weights == pytest.approx([best / 1e4, 1 - best / 1e4], abs=2e-4)
    assert 0.05 < weights[0] < 0.95

    weights = best_weights(np.array(likely)).tolist()
    for ngram, p in mixed.probs.items():
        if ngram != ("<s>",):
            assert p == pytest.approx(sum(w * part.p(ngram) for w, part in zip(weights, parts, strict=True)), rel=1e-5)
    contexts = {(), *(ngram[:-1] for ngram in mixed.probs)}
    for context in contexts:
        total = sum(mixed.asked((*context, word)) for word in mixed.words - {"<s>"})
        assert total == pytest.approx(1, abs=4e-6), context

    for path, printed in zip(
        [*paths, output], [*str(report["perplexities"]).split("/"), report["perplexity"]], strict=True
    ):
        found = measure(load_kenlm(path), dev.read_text().splitlines(), "dev")
        assert found.perplexity == pytest.approx(float(str(printed)), rel=1e-4)


def test_a_model_with_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.arpa.gz"
    estimate([text(tmp_path / "a.txt", "aabcdef", 60, 1)], 3, path)
    interpolate([path, path], text(tmp_path / "dev.txt", "abc", 9, 2), tmp_path / "c.arpa.gz")
    one, two = Slow(path), Slow(tmp_path / "c.arpa.gz")
    for ngram, context in itertools.product(set(one.probs) - {("<s>",)}, [(), ("a",), ("a", "b")]):
        assert two.asked((*context, *ngram)[-3:]) == pytest.approx(one.asked((*context, *ngram)[-3:]), abs=2e-6)
