"""log p(target | source) of many phrase pairs at once: everything that pairs share is computed once.

A batch is some thousand consecutive lines of the table. Its source phrases become a tree of their prefixes, level by
level, so that each is encoded once and what two have in common is read once: the state of a recurrent network after
some words depends on these words (and, in the decoder, on the source phrase) alone. The targets of each source become
another tree. The softmax over the whole target vocabulary is nearly all the work: it is computed once for each
distinct (source, target prefix), and where the decoder reads no words, for each (source, place in the target).
"""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rnnsmt.io import InputError
from rnnsmt.networks.batches import Index
from rnnsmt.networks.softmax import ExactSoftmax
from rnnsmt.progress import Meter
from rnnsmt.rnn.model import Decoder, RNNEncoderDecoder
from rnnsmt.rnn.pairs import Pairs


class Level(NamedTuple):
    """The nodes of one level, in the order of (parent, word): level 0 are the roots, level d the distinct (root, first
    d words).

    parents, words: [n]: node of the level before, last word.

    phrases: [k] those (positions in the batch) with d words or more; nodes: [k] the node of each.
    """

    parents: Index
    words: Index
    phrases: Index
    nodes: Index


def prefix_levels(words: NDArray[np.integer], lengths: Index, roots: Index) -> list[Level]:
    """The levels 0, 1, ... of P phrases.

    Args:
        words: the ids of all phrases one after the other.
        lengths: [P], words of each phrase; 0 is possible, then it ends at its root.
        roots: [P], the root of each phrase, from 0 to the number of roots less 1.
    """
    begins = np.cumsum(lengths) - lengths
    number = int(roots.max(initial=-1)) + 1
    classes = int(words.max(initial=0)) + 1
    alive = np.arange(len(lengths))
    where = roots.astype(np.int64)
    parents, last = np.arange(number), np.zeros(number, np.int64)
    levels = []
    for depth in range(int(lengths.max(initial=0)) + 1):
        levels.append(Level(parents, last, alive, where))
        going = lengths[alive] > depth
        alive, where = alive[going], where[going]
        keys, where = np.unique(where * classes + words[begins[alive] + depth], return_inverse=True)
        parents, last = keys // classes, keys % classes
    return levels


@dataclass(frozen=True)
class Sizing:
    """How much is computed at a time. lines: of the table; rows: of states; softmax: rows of the softmax."""

    lines: int
    rows: int
    softmax: int


CPU = Sizing(8192, 512, 1024)

CUDA = Sizing(65536, 16384, 4096)

CUDA_BATCHES = 2
"""Batches at the same time on a GPU, where each takes 2.5 GB at the paper's sizes: one computes, one is read."""


def mean_of_networks(
    pairs: Pairs, begin: int, scores: NDArray[np.float32], left_out: Sequence[tuple[int, int] | None]
) -> tuple[NDArray[np.float32], int]:
    """The logarithm of the mean probability of the pairs from ``begin`` on; of how many not all networks are asked.

    scores: [networks, n]. left_out: the part that each network was not trained on (``Pairs.left_out``). A pair of such
    a part is scored by the networks that left it out alone: what they say of it is not memory.
    """
    end = begin + scores.shape[1]
    unseen = np.stack([pairs.left_out(*part, begin, end) if part else np.zeros(end - begin, bool) for part in left_out])
    asked = unseen | ~unseen.any(0)
    total = np.logaddexp.reduce(np.where(asked, scores, -np.inf))
    return (total - np.log(asked.sum(0))).astype(np.float32), int(unseen.any(0).sum())


def score_range(
    model: RNNEncoderDecoder, pairs: Pairs, begin: int, end: int, device: torch.device
) -> NDArray[np.float32]:
    """All that ``score_batches`` yields in one array."""
    return np.concatenate([np.zeros(0, np.float32), *score_batches(model, pairs, begin, end, device)])


def batches_at_once(device: torch.device, threads: int, networks: int = 1) -> int:
    """How many batches each of some networks computes at the same time: all together ``CUDA_BATCHES`` on a GPU, as many
    as threads on a processor, and one at least.
    """
    return max(1, (min(threads, CUDA_BATCHES) if device.type == "cuda" else threads) // networks)


def score_batches(
    model: RNNEncoderDecoder, pairs: Pairs, begin: int, end: int, device: torch.device, threads: int = 1
) -> Iterator[NDArray[np.float32]]:
    """Natural-log scores of the pairs ``begin`` to ``end - 1``, batch by batch, each target with its EOS.

    threads: batches that are computed at the same time (``batches_at_once``); they change no score.

    Raises:
        InputError: a score is not finite: the network is spoilt.
    """
    meter = Meter("scoring", end - begin, "pairs")
    sizing, threads = CUDA if device.type == "cuda" else CPU, batches_at_once(device, threads)
    bounds = _batches(pairs, begin, end, sizing.lines)
    softmax = ExactSoftmax(model.output.G_l, model.output.b_G)
    waiting: deque[Future[NDArray[np.float32]]] = deque()
    with ThreadPoolExecutor(threads, "score", torch.set_num_threads, (torch.get_num_threads(),)) as pool:
        while True:
            for batch in islice(bounds, threads + 1 - len(waiting)):
                waiting.append(pool.submit(_score_batch, model, softmax, pairs, batch, device, sizing))
            if not waiting:
                return
            scores = waiting.popleft().result()
            yield scores
            meter.add(len(scores))


def _batches(pairs: Pairs, begin: int, end: int, lines: int) -> Iterator[tuple[int, int]]:
    """Consecutive pairs in batches of at most ``lines``, which end where a source phrase does, if one ends there."""
    offsets, words = pairs.sides[0].offsets, pairs.sides[0].words
    while begin < end:
        last = min(begin + lines, end)
        if last < end:
            following = words[offsets[last] : offsets[last + 1]]
            cut = last
            while cut > begin and np.array_equal(words[offsets[cut - 1] : offsets[cut]], following):
                cut -= 1
            last = cut if cut > begin else last
        yield begin, last
        begin = last


def _phrases(pairs: Pairs, side: int, begin: int, end: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ids of all phrases of the pairs, with EOS, and their lengths."""
    words, offsets = pairs.sides[side]
    bounds = np.asarray(offsets[begin : end + 1], np.int64)
    return np.asarray(words[bounds[0] : bounds[-1]], np.int64), np.diff(bounds)


@torch.inference_mode()
def _score_batch(
    model: RNNEncoderDecoder,
    softmax: ExactSoftmax,
    pairs: Pairs,
    bounds: tuple[int, int],
    device: torch.device,
    sizing: Sizing,
) -> NDArray[np.float32]:
    """Scores of one batch: the pairs from the first of ``bounds`` to before the second."""
    begin, end = bounds
    c, sources = encode_distinct(model, *_phrases(pairs, 0, begin, end), device, sizing.rows)
    words, lengths = _phrases(pairs, 1, begin, end)
    begins = np.cumsum(lengths) - lengths
    inside = np.ones(len(words), bool)
    inside[begins + lengths - 1] = False  # without the EOS of each
    read = words if isinstance(model.decoder, Decoder) else np.zeros_like(words)
    scores = np.zeros(end - begin)
    context = model.decoder_context(c)
    nodes = _Nodes(context.state, torch.arange(len(c), device=device), None)
    for k, level in enumerate(prefix_levels(read[inside], lengths - 1, sources)):
        if k:
            nodes = _step(model, nodes, context.terms, level, k, sizing.rows)
        following = words[begins[level.phrases] + k]
        scores[level.phrases] += _log_p(model, softmax, nodes, context.readout, level.nodes, following, sizing.softmax)
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        raise InputError(
            f"{pairs.folder}: the network gives pair {begin + int(bad[0]) + 1} the score {scores[bad[0]]}; "
            "train it again"
        )
    return scores.astype(np.float32)


def encode_distinct(
    model: RNNEncoderDecoder, words: NDArray[np.int64], lengths: NDArray[np.int64], device: torch.device, rows: int
) -> tuple[Tensor, NDArray[np.int64]]:
    """Encode each distinct phrase once.

    words: the ids of P phrases with EOS, one after the other; lengths: [P].

    Returns: c of the distinct phrases [K, H], and which of them each phrase is [P].
    """
    levels = prefix_levels(words, lengths, np.zeros(len(lengths), np.int64))
    which = np.zeros(len(lengths), np.int64)
    found: list[Tensor] = []
    number = 0
    h = torch.zeros(1, model.sizes.hidden, device=device)
    for k, level in enumerate(levels[1:]):
        parents, read = (torch.from_numpy(part).to(device) for part in (level.parents, level.words))
        pieces = [
            model.encoder.step(h[parents[i : i + rows]], model.encoder.embed(read[i : i + rows]), k)
            for i in range(0, len(parents), rows)
        ]
        h = torch.cat(pieces)
        ended = lengths[level.phrases] == k + 1
        nodes, position = np.unique(level.nodes[ended], return_inverse=True)
        which[level.phrases[ended]] = number + position
        number += len(nodes)
        found.append(h[torch.from_numpy(nodes).to(device)])
    return model.encoder.finish(torch.cat(found)), which


class _Nodes(NamedTuple):
    """The nodes of one level: states [n, H], the source phrase of each, the last word of each (None at the roots)."""

    states: Tensor
    sources: Tensor
    words: Tensor | None


def _step(model: RNNEncoderDecoder, nodes: _Nodes, terms: Tensor, level: Level, k: int, rows: int) -> _Nodes:
    """The nodes of level k from those of the level before. terms: of the source phrases, as in ``DecoderContext``."""
    parents, words = (torch.from_numpy(part).to(terms.device) for part in (level.parents, level.words))
    states = torch.empty(len(parents), model.sizes.hidden, device=parents.device)
    sources = nodes.sources[parents]
    for i in range(0, len(parents), rows):
        part = slice(i, i + rows)
        of_source = terms.index_select(0, sources[part])
        states[part] = model.decoder.step(nodes.states[parents[part]], words[part], of_source, k)
    return _Nodes(states, sources, words)


def _log_p(
    model: RNNEncoderDecoder,
    softmax: ExactSoftmax,
    nodes: _Nodes,
    readout: Tensor,
    places: Index,
    words: Index,
    rows: int,
) -> NDArray[np.float64]:
    """log p of ``words`` [k] after the nodes ``places`` [k]. readout: of the source phrases."""
    found = np.empty(len(words))
    order = np.argsort(places, kind="stable")
    begins = np.arange(0, len(nodes.states), rows)
    for begin, asked in zip(begins, np.split(order, np.searchsorted(places[order], begins[1:])), strict=True):
        part = slice(begin, begin + rows)
        previous = None if nodes.words is None else nodes.words[part]
        g = model.softmax_input(nodes.states[part], previous, readout.index_select(0, nodes.sources[part]))
        of_g, classes = (torch.from_numpy(ids).to(g.device) for ids in (places[asked] - begin, words[asked]))
        found[asked] = softmax.log_p(g, of_g, classes).cpu().numpy()
    return found
