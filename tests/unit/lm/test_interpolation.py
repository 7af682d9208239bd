"""Linear interpolation: against a slow implementation with dictionaries, KenLM, and a search over all weights."""

import gzip
import itertools
import math
import random
from pathlib import Path

import numpy as np
import pytest

from rnnsmt.lm.arpa import read_arpa
from rnnsmt.lm.automaton import build_automaton
from rnnsmt.lm.estimation import estimate
from rnnsmt.lm.interpolation import best_weights, interpolate, mix, score_last
from rnnsmt.lm.queries import load_queries, measure


class Slow:
    """ARPA file in dictionaries, queried recursively."""

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
        found = measure(load_queries(path), dev.read_text().splitlines(), "dev")
        assert found.perplexity == pytest.approx(float(str(printed)), rel=1e-4)


def test_contexts_sum_to_one_before_decimals_are_cut(tmp_path: Path) -> None:
    """Probabilities of unrounded models sum to 1 within 1e-6; files are rounded to six decimals."""
    arpas = []
    for words, order, seed in (("aabcdef", 2, 1), ("adefghh", 4, 2)):
        path = tmp_path / f"{seed}.arpa.gz"
        estimate([text(tmp_path / f"{seed}.txt", words, 60, seed)], order, path)
        arpas.append(read_arpa(path))
    result = mix(arpas, [build_automaton(arpa) for arpa in arpas], np.array([0.3, 0.7]))
    model = build_automaton(result)
    predicted = np.array([i for i, word in enumerate(result.words.strings()) if word != b"<s>"], np.int32)
    for ngrams in result.ngrams[:-1]:
        for context in ngrams:
            whole = np.column_stack([np.tile(context, (len(predicted), 1)), predicted]).astype(np.int32)
            out = np.empty(len(whole))
            score_last(model.arrays, whole, out)
            assert np.exp(out).sum() == pytest.approx(1, abs=1e-6)


def test_unknown_words_by_their_other_name(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.arpa.gz", "b.arpa.gz", "c.arpa.gz", "d.arpa.gz")]
    dev = text(tmp_path / "dev.txt", "abg", 9, 3)
    for path, words, seed in ((paths[0], "aabc", 1), (paths[1], "abgg", 2)):
        estimate([text(tmp_path / "text", words, 60, seed)], 2, path)
    interpolate(paths[:2], dev, paths[2])
    paths[0].write_bytes(gzip.compress(gzip.decompress(paths[0].read_bytes()).replace(b"<unk>", b"<UNK>")))
    interpolate(paths[:2], dev, paths[3])
    assert paths[3].read_bytes() == paths[2].read_bytes()


def test_a_model_of_no_weight_leaves_nothing_behind(tmp_path: Path) -> None:
    paths = [tmp_path / "a.arpa.gz", tmp_path / "b.arpa.gz"]
    for path, words in zip(paths, ("ab", "abcdefgh"), strict=True):
        estimate([text(tmp_path / "text", words, 60, 1)], 2, path)
    report = interpolate(paths, text(tmp_path / "dev.txt", "ab", 60, 1), tmp_path / "c.arpa.gz")
    assert report["weights"] == "1.0000/0.0000"
    assert set(Slow(tmp_path / "c.arpa.gz").probs) == set(Slow(paths[0]).probs)


def test_a_model_with_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.arpa.gz"
    estimate([text(tmp_path / "a.txt", "aabcdef", 60, 1)], 3, path)
    interpolate([path, path], text(tmp_path / "dev.txt", "abc", 9, 2), tmp_path / "c.arpa.gz")
    one, two = Slow(path), Slow(tmp_path / "c.arpa.gz")
    for ngram, context in itertools.product(set(one.probs) - {("<s>",)}, [(), ("a",), ("a", "b")]):
        assert two.asked((*context, *ngram)[-3:]) == pytest.approx(one.asked((*context, *ngram)[-3:]), abs=2e-6)


def test_back_off_weights_above_one_are_kept(tmp_path: Path) -> None:
    """Keep such weights, which SRILM writes for a context whose n-grams are less probable than their last words."""
    path = tmp_path / "a.arpa.gz"
    path.write_bytes(
        gzip.compress(
            b"\\data\\\nngram 1=4\nngram 2=1\n\n\\1-grams:\n-99\t<s>\n-0.60206\t</s>\n-0.30103\ta\t0.255273\n"
            b"-0.60206\tb\n\n\\2-grams:\n-1\ta a\n\n\\end\\\n"
        )
    )
    interpolate([path, path], text(tmp_path / "dev.txt", "ab", 9, 2), tmp_path / "c.arpa.gz")
    mixed = Slow(tmp_path / "c.arpa.gz")
    assert mixed.backoffs["a",] == pytest.approx(1.8, rel=1e-5)
    assert sum(mixed.asked(("a", word)) for word in ("a", "b", "</s>")) == pytest.approx(1, abs=1e-5)
