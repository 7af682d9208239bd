"""Generation of target phrases by ancestral sampling and beam search.

Id 0 ("no word") is never generated; UNK is treated as a word. Targets that have not ended after ``max_length`` words
are discarded.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import read_lines
from rnnsmt.networks.data import Vocabulary, split
from rnnsmt.rnn.model import DecoderContext, RNNEncoderDecoder

ROWS = 1024
"""Approximate number of rows of the softmax that are computed at a time."""


def read_phrases(path: StrPath, vocabulary: Vocabulary) -> list[NDArray[np.int32]]:
    """Read source phrases, one per line, as ids with EOS."""
    phrases = []
    for number, line in enumerate(read_lines(path), 1):
        words = split(line)
        if not words:
            raise InputError(f"{path}, line {number}: is empty; each line must be a source phrase")
        phrases.append(vocabulary.ids(words, eos=True))
    if not phrases:
        raise InputError(f"{path}: contains no lines; each line must be a source phrase")
    return phrases


class Target(NamedTuple):
    """A target phrase: its ids without EOS, log p(target | source), and the number of times it was drawn."""

    words: tuple[int, ...]
    score: float
    times: int = 1


def sample_targets(
    model: RNNEncoderDecoder, sources: Sequence[NDArray[np.int32]], draws: int, seed: int, max_length: int
) -> list[list[Target]]:
    """Draw ``draws`` targets for each source, word by word from p; return the distinct ones by descending score.

    The draws for a source depend only on the seed and on its position in ``sources``. sources: ids with EOS.
    """
    targets: list[list[Target]] = []
    step = max(ROWS // draws, 1)
    with torch.inference_mode():
        for begin in range(0, len(sources), step):
            chunk = sources[begin : begin + step]
            uniform = [
                np.random.default_rng([seed, begin + i]).random((draws, max_length + 1)) for i in range(len(chunk))
            ]
            words, scores = _draw(model, chunk, np.concatenate(uniform))
            for i in range(len(chunk)):
                rows = slice(i * draws, (i + 1) * draws)
                targets.append(_distinct(words[rows], scores[rows], model.sizes.target_vocabulary - 1))
    return targets


def _draw(
    model: RNNEncoderDecoder, sources: Sequence[NDArray[np.int32]], uniform: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Draw one target for every row of ``uniform`` [R, K], by inversion of the cumulative distribution of each word.

    uniform: numbers in [0, 1), the same number of consecutive rows for every source. Return ids [R, K], arbitrary after
    the EOS, and log p [R], -inf where there is no EOS within K words.
    """
    context, device = _context(model, sources)
    rows = torch.arange(len(sources), device=device).repeat_interleave(len(uniform) // len(sources))
    context = context.rows(rows)
    eos = model.sizes.target_vocabulary - 1
    chance = torch.from_numpy(uniform).to(device)
    words = torch.zeros(uniform.shape, dtype=torch.int64, device=device)
    total = torch.zeros(len(uniform), dtype=torch.float64, device=device)
    alive = torch.ones(len(uniform), dtype=torch.bool, device=device)
    states, previous = context.state, None
    for k in range(uniform.shape[1]):
        scores = torch.log_softmax(model.logits(states, previous, context.readout).double(), 1)
        shares = scores.exp()
        shares[:, 0] = 0
        shares = shares.cumsum(1)
        # chance is scaled by the sum of the shares, which is below 1 because id 0 is excluded; right=True never selects
        # a class of probability 0
        word = torch.searchsorted(shares, chance[:, k : k + 1] * shares[:, -1:], right=True)[:, 0].clamp_max(eos)
        total += torch.where(alive, scores.gather(1, word[:, None])[:, 0], 0.0)
        words[:, k] = word
        alive &= word != eos
        if k + 1 == uniform.shape[1] or not alive.any():
            break
        states, previous = model.decoder.step(states, word, context.terms), word
    total[alive] = -torch.inf
    return words.cpu().numpy(), total.cpu().numpy()


def _distinct(words: NDArray[np.int64], scores: NDArray[np.float64], eos: int) -> list[Target]:
    """Return the distinct finished draws of one source, by descending score, then by ids."""
    counts: dict[tuple[int, ...], Target] = {}
    for row, score in zip(words.tolist(), scores.tolist(), strict=True):
        if score > -np.inf:
            target = tuple(row[: row.index(eos)])
            before = counts.get(target, Target(target, score, 0))
            counts[target] = before._replace(times=before.times + 1)
    return sorted(counts.values(), key=lambda target: (-target.score, target.words))


def beam_search(
    model: RNNEncoderDecoder, sources: Sequence[NDArray[np.int32]], beam: int, max_length: int, nbest: int = 1
) -> list[list[Target]]:
    """Search for the ``nbest`` most probable targets of each source with ``beam`` open prefixes.

    The targets are sorted by descending score. The search for a source ends when no open prefix has a better score than
    the worst of the ``nbest`` targets found, since each further word can only lower log p. sources: ids with EOS.
    """
    targets: list[list[Target]] = []
    step = max(ROWS // beam, 1)
    with torch.inference_mode():
        for begin in range(0, len(sources), step):
            targets += _search(model, sources[begin : begin + step], beam, max_length, nbest)
    return targets


def _search(
    model: RNNEncoderDecoder, sources: Sequence[NDArray[np.int32]], beam: int, max_length: int, nbest: int
) -> list[list[Target]]:
    """Run the beam search of ``beam_search`` for all ``sources`` together, one word per iteration."""
    context, device = _context(model, sources)
    targets: list[list[Target]] = [[] for _ in sources]
    # S sources are still searched, with W open prefixes each: searched [S], total (log p) [S, W], words [S, W, k]; rows
    # of states and logits are [S * W]
    searched = torch.arange(len(sources), device=device)
    total = torch.zeros(len(sources), 1, dtype=torch.float64, device=device)
    words = torch.zeros(len(sources), 1, 0, dtype=torch.int64, device=device)
    rows, states, previous = context, context.state, None
    for k in range(max_length + 1):
        logits = model.logits(states, previous, rows.readout)
        sums = logits.logsumexp(1, keepdim=True)
        ending = total + (logits[:, -1:] - sums).double().view(total.shape)
        _collect(targets, searched, words, ending, nbest)  # every open prefix, ended by EOS, is a candidate
        if k == max_length:
            break
        logits[:, 0] = logits[:, -1] = -torch.inf  # "no word" and EOS do not extend a prefix
        likely, word = logits.topk(min(beam, logits.shape[1]), 1)
        scores = total[:, :, None] + (likely - sums).double().view(*total.shape, -1)
        # best: indices in the flattened [W, extensions] of each source
        total, best = scores.flatten(1).topk(min(beam, scores[0].numel()), 1)
        parents, word = best // likely.shape[1], word.view(len(total), -1).gather(1, best)
        words = torch.cat([words.gather(1, parents[:, :, None].expand(-1, -1, k)), word[:, :, None]], 2)
        # the rows of the parents' states: those of source s begin at s * W
        places = (torch.arange(len(total), device=device)[:, None] * logits.shape[0] // len(total)) + parents
        worst = [targets[s][-1].score if len(targets[s]) == nbest else -np.inf for s in searched.tolist()]
        left = total[:, 0] > torch.tensor(worst, dtype=torch.float64, device=device)
        if not left.any():
            break
        searched, total, words, places = searched[left], total[left], words[left], places[left]
        rows = context.rows(searched.repeat_interleave(total.shape[1]))
        previous = word[left].flatten()
        states = model.decoder.step(states[places.flatten()], previous, rows.terms)
    return targets


def _collect(best_targets: list[list[Target]], searched: Tensor, words: Tensor, ending: Tensor, nbest: int) -> None:
    """Add open prefixes as finished targets and keep the ``nbest`` best targets of each source.

    Args:
        best_targets: per source, its best targets so far, by descending score; updated.
        searched: int64 [S], indices of sources in ``best_targets``.
        words: int64 [S, W, k], the prefixes.
        ending: float64 [S, W], their log p with EOS.
    """
    for s, prefixes, scores in zip(searched.tolist(), words.tolist(), ending.tolist(), strict=True):
        more = [Target(tuple(p), score) for p, score in zip(prefixes, scores, strict=True) if score > -np.inf]
        best_targets[s] = sorted(best_targets[s] + more, key=lambda target: (-target.score, target.words))[:nbest]


def _context(model: RNNEncoderDecoder, sources: Sequence[NDArray[np.int32]]) -> tuple[DecoderContext, torch.device]:
    """Encode sources, padded to one length; return the decoder's context and the device of the network."""
    device = model.output.G_l.device
    lengths = torch.tensor([len(source) for source in sources])
    padded = torch.zeros(len(sources), int(lengths.max()), dtype=torch.int64)
    for i, source in enumerate(sources):
        padded[i, : len(source)] = torch.from_numpy(np.asarray(source, np.int64))
    return model.decoder_context(model.encode(padded.to(device), lengths.to(device))), device
