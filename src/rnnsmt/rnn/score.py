"""Score phrase pairs with the network: log p(target | source), natural logarithm, EOS included, no normalisation.

Writes one float32 a line of the phrase table, in its order (.npy). --shard K/N scores the K-th of N nearly equal parts
of the table, for jobs side by side; the parts follow each other. The scores of a pair are those of the pair alone to
within 1e-4, however the table is cut. Products are float32 in full precision.
"""

import argparse
import re
from pathlib import Path

from rnnsmt.io import InputError
from rnnsmt.networks.options import add_device, need_torch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pairs", required=True, metavar="DIR", help="what rnn prepare wrote")
    parser.add_argument("--model", required=True, metavar="FILE")
    parser.add_argument("--output", required=True, metavar="FILE", help="scores (.npy)")
    parser.add_argument("--shard", default="1/1", metavar="K/N", help="part K of N only")
    add_device(parser)


def shard_of(text: str) -> tuple[int, int]:
    """``K/N`` -> (K, N).

    Raises:
        InputError: not of this form, or K is not between 1 and N.
    """
    found = re.fullmatch(r"(\d+)[/-](?:of-)?(\d+)", text)
    shard, shards = map(int, found.groups()) if found else (0, 0)
    if not 1 <= shard <= shards:
        raise InputError(f"--shard {text}: write K/N with K from 1 to N, for example 2/8")
    return shard, shards


def run(args: argparse.Namespace) -> dict[str, object]:
    shard, shards = shard_of(args.shard)
    need_torch()

    import numpy as np

    from rnnsmt.devices import choose_place
    from rnnsmt.networks.sequences import growing_array
    from rnnsmt.rnn.model_file import check_vocabularies, load_model
    from rnnsmt.rnn.pairs import Pairs
    from rnnsmt.rnn.scoring import score_batches, shard_bounds

    pairs = Pairs.open(args.pairs)
    place = choose_place(args.device, 1)
    model, meta = load_model(args.model, place.device)
    check_vocabularies(args.model, meta, pairs)
    total = 0.0
    with growing_array(Path(args.output), np.float32) as out:
        bounds = shard_bounds(pairs, shard, shards)
        for scores in score_batches(model, pairs, *bounds, place.device, args.threads):
            out.append(scores)
            total += float(scores.sum(dtype=np.float64))
    return {"pairs": out.length, "mean score": total / max(out.length, 1)}
