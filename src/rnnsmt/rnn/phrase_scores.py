"""Computation of log p(target | source) for many phrase pairs, in which common prefixes are computed once.

A batch consists of several thousand consecutive phrase pairs. Its source phrases form a prefix tree (trie), which is
processed level by level, so that each distinct prefix is encoded once: the state of a recurrent network after a prefix
depends only on the words of this prefix (in the decoder, also on the source phrase). The targets of each source phrase
form another trie. The softmax over the whole target vocabulary, which takes nearly all the time, is computed once for
each distinct pair of a source phrase and a target prefix.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rnnsmt.base.progress import Meter
from rnnsmt.networks.batches import Index
from rnnsmt.networks.exact_softmax import ExactSoftmax
from rnnsmt.networks.prefix_tree import Level, prefix_levels
from rnnsmt.rnn.model import RNNEncoderDecoder
from rnnsmt.rnn.pairs import Pairs


@dataclass(frozen=True)
class Sizing:
    """Batch sizes: numbers of phrase pairs (``lines``), states (``rows``) and softmax rows computed at a time."""

    lines: int
    rows: int
    softmax: int


CPU = Sizing(8192, 512, 1024)

CUDA = Sizing(65536, 16384, 4096)

CUDA_BATCHES = 2
"""Number of concurrent batches on a GPU, each 2.5 GB at the paper's sizes: one is computed while the next is read."""


def score_range(
    model: RNNEncoderDecoder, pairs: Pairs, begin: int, end: int, device: torch.device
) -> NDArray[np.float32]:
    """Return the scores of ``score_batches`` in one array."""
    return np.concatenate([np.zeros(0, np.float32), *score_batches(model, pairs, begin, end, device)])


def score_batches(
    model: RNNEncoderDecoder, pairs: Pairs, begin: int, end: int, device: torch.device, threads: int = 1
) -> Iterator[NDArray[np.float32]]:
    """Yield the natural-log scores of the pairs ``begin`` to ``end - 1``, in batches; each target includes its EOS.

    threads: number of batches that are computed concurrently, on a GPU at most ``CUDA_BATCHES``. The scores do not
        depend on it.
    """
    meter = Meter("scoring", end - begin, "pairs")
    sizing = CPU
    if device.type == "cuda":
        sizing, threads = CUDA, min(threads, CUDA_BATCHES)
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
            pairs.release()


def _batches(pairs: Pairs, begin: int, end: int, lines: int) -> Iterator[tuple[int, int]]:
    """Yield ranges (begin, end) of at most ``lines`` pairs; pairs of the same source remain together if possible."""
    while begin < end:
        last = min(begin + lines, end)
        if last < end:
            cut = pairs.store.first[pairs.store.runs(np.array([last]))[0]]
            last = int(cut) if cut > begin else last
        yield begin, last
        begin = last


def _phrases(pairs: Pairs, side: int, begin: int, end: int) -> "IdsAndLengths":
    """Return the ids of the phrases of one side of the pairs, with EOS, one after the other, and their lengths [P]."""
    index = np.arange(begin, end)
    return pairs.sides[side].joined(index).astype(np.int64), pairs.sides[side].lengths(index)


def _score_batch(
    model: RNNEncoderDecoder,
    softmax: ExactSoftmax,
    pairs: Pairs,
    bounds: tuple[int, int],
    device: torch.device,
    sizing: Sizing,
) -> NDArray[np.float32]:
    """Score the pairs ``bounds[0]`` to ``bounds[1] - 1``; return float32 [pairs]."""
    source, target = (_phrases(pairs, side, *bounds) for side in (0, 1))
    return score_phrases(model, softmax, source, target, device, sizing).astype(np.float32)


IdsAndLengths = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Ids of phrases with EOS, one after the other, and the lengths of the phrases."""


@torch.inference_mode()
def score_phrases(
    model: RNNEncoderDecoder,
    softmax: ExactSoftmax,
    source: IdsAndLengths,
    target: IdsAndLengths,
    device: torch.device,
    sizing: Sizing = CPU,
) -> NDArray[np.float64]:
    """Return log p(target | source) of P phrase pairs, natural logarithms, float64 [P].

    The score of a pair is the sum over the words of the target and EOS (Cho et al. 2014, section 3.1).
    ``rnnsmt.rnn.generation`` sums the same terms in its search, and the training loss (``rnnsmt.rnn.training``) is the
    mean or the sum of the negative scores.

    Args:
        softmax: the softmax of the output layer of ``model``.
        source, target: the phrases of the pairs.
    """
    c, sources = encode_distinct(model, *source, device, sizing.rows)
    words, lengths = target
    begins = np.cumsum(lengths) - lengths
    inside = np.ones(len(words), bool)
    inside[begins + lengths - 1] = False  # EOS is predicted but never read
    scores = np.zeros(len(lengths))
    context = model.decoder_context(c)
    nodes = _Nodes(context.state, torch.arange(len(c), device=device), None)
    for k, level in enumerate(prefix_levels(words[inside], lengths - 1, sources)):
        if k:
            nodes = _step(model, nodes, context.terms, level, sizing.rows)
        # word k + 1 of the phrases that reach this level, or their EOS
        following = words[begins[level.phrases] + k]
        scores[level.phrases] += _log_p(model, softmax, nodes, context.readout, level.nodes, following, sizing.softmax)
    return scores


def encode_distinct(
    model: RNNEncoderDecoder, words: NDArray[np.int64], lengths: NDArray[np.int64], device: torch.device, rows: int
) -> tuple[Tensor, NDArray[np.int64]]:
    """Encode each distinct phrase once.

    Args:
        words: the ids of P phrases with EOS, one after the other.
        lengths: [P], their lengths.
        rows: number of states that are computed at a time.

    Returns:
        c of the K distinct phrases, [K, H], and the index of each phrase among the distinct phrases, [P].
    """
    levels = prefix_levels(words, lengths, np.zeros(len(lengths), np.int64))
    which = np.zeros(len(lengths), np.int64)
    encoded: list[Tensor] = []
    number = 0
    h = torch.zeros(1, model.sizes.hidden, device=device)
    for k, level in enumerate(levels[1:]):
        parents, read = (torch.from_numpy(array).to(device) for array in (level.parents, level.words))
        pieces = [
            model.encoder.step(h[parents[i : i + rows]], model.encoder.embed(read[i : i + rows]))
            for i in range(0, len(parents), rows)
        ]
        h = torch.cat(pieces)
        ended = lengths[level.phrases] == k + 1
        nodes, position = np.unique(level.nodes[ended], return_inverse=True)
        which[level.phrases[ended]] = number + position
        number += len(nodes)
        encoded.append(h[torch.from_numpy(nodes).to(device)])
    return model.encoder.finish(torch.cat(encoded)), which


class _Nodes(NamedTuple):
    """The nodes of one level: decoder states [n, H], source phrases [n], last words [n] (None at the roots)."""

    states: Tensor
    sources: Tensor
    words: Tensor | None


def _step(model: RNNEncoderDecoder, nodes: _Nodes, terms: Tensor, level: Level, rows: int) -> _Nodes:
    """Compute the nodes of a level from those of the previous level. terms: ``DecoderContext.terms`` of all sources."""
    parents, words = (torch.from_numpy(array).to(terms.device) for array in (level.parents, level.words))
    states = torch.empty(len(parents), model.sizes.hidden, device=parents.device)
    sources = nodes.sources[parents]
    for i in range(0, len(parents), rows):
        block = slice(i, i + rows)
        of_source = terms.index_select(0, sources[block])
        states[block] = model.decoder.step(nodes.states[parents[block]], words[block], of_source)
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
    """Compute log p of the words that follow nodes of one level, float64 [k].

    Args:
        nodes: all nodes of the level.
        readout: [sources, 2M], ``DecoderContext.readout``.
        places: [k], indices of nodes.
        words: [k], the word after each of these nodes.
        rows: number of rows of the softmax that are computed at a time.
    """
    log_p = np.empty(len(words))
    # words sorted by node, so that they can be split where the chunks of nodes end
    order = np.argsort(places, kind="stable")
    begins = np.arange(0, len(nodes.states), rows)
    for begin, group in zip(begins, np.split(order, np.searchsorted(places[order], begins[1:])), strict=True):
        block = slice(begin, begin + rows)
        previous = None if nodes.words is None else nodes.words[block]
        g = model.softmax_input(nodes.states[block], previous, readout.index_select(0, nodes.sources[block]))
        of_g, classes = (torch.from_numpy(ids).to(g.device) for ids in (places[group] - begin, words[group]))
        log_p[group] = softmax.log_p(g, of_g, classes).cpu().numpy()
    return log_p
