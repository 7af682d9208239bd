"""Measure scored pairs per CPU second: `rnn score` compared with plain padded batches of single pairs.

    python benchmarks/rnn_scoring.py --pairs DIR [--preset small] [--model FILE] [--threads 1] [--slices 6]

DIR is the directory written by ``rnnsmt rnn prepare``. Without --model, the network has the sizes of the preset and
random parameters, on which the speed does not depend. All versions score the same slices of the table in turn, so that
the load of the machine affects all of them; the median is printed. Plain padded batches:
``RNNEncoderDecoder.log_probability`` on consecutive lines, without gradients. Where CUDA is available, the times are
wall seconds.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from rnnsmt.networks.data import Sequences
from rnnsmt.networks.devices import set_up_device
from rnnsmt.rnn.model import RNNEncoderDecoder, load_model
from rnnsmt.rnn.pairs import Pairs
from rnnsmt.rnn.phrase_scores import encode_distinct, prefix_levels, score_range
from rnnsmt.rnn.settings import PRESETS

SLICE = 8192
PLAIN = 1024
"""Number of pairs of a slice that the plain versions score."""


def padded(side: Sequences, index: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return phrases as [B, longest], padded with 0, and their lengths [B]."""
    lengths = side.lengths(index)
    out = np.zeros((len(index), lengths.max()), np.int64)
    for row, i in enumerate(index):
        out[row, : lengths[row]] = side.phrase(i)
    return torch.from_numpy(out).to(device), torch.from_numpy(lengths).to(device)


@torch.inference_mode()
def plain(model: RNNEncoderDecoder, pairs: Pairs, begin: int, end: int, device: torch.device, batch: int) -> np.ndarray:
    found = []
    for start in range(begin, end, batch):
        index = np.arange(start, min(start + batch, end))
        sides = [padded(side, index, device) for side in pairs.sides]
        found.append(model.log_probability(*sides[0], *sides[1]).cpu().numpy())
    return np.concatenate(found)


def softmax_rows(model: RNNEncoderDecoder, pairs: Pairs, begin: int, end: int) -> dict[str, float]:
    """Count softmax rows per pair: padded in batches of 64; all words and EOS; distinct (source, prefix)."""
    lengths = pairs.sides[1].lengths(np.arange(begin, end))
    sources = np.array([hash(pairs.source(i).tobytes()) for i in range(begin, end)])
    _, roots = np.unique(sources, return_inverse=True)
    offsets = pairs.sides[1].offsets
    words = np.asarray(pairs.sides[1].words[offsets[begin] : offsets[end]], np.int64)
    levels = prefix_levels(words[words != model.sizes.target_vocabulary - 1], lengths - 1, roots)
    wide = sum(64 * int(lengths[i : i + 64].max()) for i in range(0, len(lengths) - 63, 64))
    rows = {"padded": wide, "all": int(lengths.sum()), "distinct": sum(len(level.words) for level in levels)}
    return {name: value / len(lengths) for name, value in rows.items()}


def timed(name: str, number: int, work: Callable[[], np.ndarray], seconds: dict[str, list[float]]) -> np.ndarray:
    before, started = time.process_time(), time.monotonic()
    found = work()
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.synchronize()
    spent = (time.monotonic() - started) if cuda else (time.process_time() - before)
    seconds.setdefault(name, []).append(spent / number)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", required=True, help="directory written by `rnnsmt rnn prepare`")
    parser.add_argument("--preset", choices=tuple(PRESETS), default="small", help="preset of the network")
    parser.add_argument("--model", help="network to score with; default: random parameters")
    parser.add_argument("--threads", type=int, default=1, help="number of threads")
    parser.add_argument("--slices", type=int, default=6, help="number of slices of the table")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    args = parser.parse_args()
    pairs = Pairs.open(args.pairs)
    device = set_up_device(args.device, args.threads).device
    if args.model:
        model, _ = load_model(args.model, device)
    else:
        model = RNNEncoderDecoder(PRESETS[args.preset].sizes(*map(len, pairs.vocabularies)), 1).to(device)
        for parameter in model.parameters():
            parameter.requires_grad_(False)
    score_range(model, pairs, 0, 256, device)
    size = min(SLICE, len(pairs) // args.slices)
    seconds: dict[str, list[float]] = {}
    largest = 0.0
    rows: dict[str, list[float]] = {}
    for k in range(args.slices):
        begin = (len(pairs) - size) * k // max(args.slices - 1, 1)
        few = begin + min(PLAIN, size)
        found = timed("rnn score", size, partial(score_range, model, pairs, begin, begin + size, device), seconds)
        for batch in (64, 256):
            name = f"plain padded batches of {batch}"
            work = partial(plain, model, pairs, begin, few, device, batch)
            expected = timed(name, few - begin, work, seconds)
            largest = max(largest, float(np.abs(found[: few - begin] - expected).max()))
        for name, value in softmax_rows(model, pairs, begin, begin + size).items():
            rows.setdefault(name, []).append(value)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    for name, value in medians.items():
        print(f"{name}: {1 / value:,.0f} pairs/s, {value / medians['rnn score']:.2f} times the time of rnn score")
    print("softmax rows a pair: " + ", ".join(f"{name} {statistics.mean(v):.2f}" for name, v in rows.items()))
    print(f"largest difference of a score: {largest:.1e}")
    words, lengths = map(np.asarray, first_sources(pairs, size))
    c, _ = encode_distinct(model, words, lengths, device, 256)
    print(f"distinct sources: {len(c)} of the first {size} lines")


def first_sources(pairs: Pairs, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ids and lengths of the first source phrases."""
    words, offsets = pairs.sides[0]
    return words[: offsets[number]].astype(np.int64), np.diff(offsets[: number + 1])


if __name__ == "__main__":
    main()
