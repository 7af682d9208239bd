"""Targets from the network: ancestral sampling and beam search.

Id 0 ("no word") is never drawn; UNK is a word like others. Targets that have not ended after ``max_length`` words are
dropped; it is at most ``RnnSizes.longest``.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rnnsmt.io import InputError, read_lines
from rnnsmt.networks.vocabulary import Vocabulary
from rnnsmt.rnn.model import DecoderContext, RNNEncoderDecoder

ROWS = 1024
"""Rows of the softmax that are computed at a time, about."""


def read_phrases(path: str | Path, vocabulary: Vocabulary, longest: int) -> list[NDArray[np.int32]]:
    """The source phrases of a file as ids with EOS. longest: how many words a phrase may have.

    Raises:
        InputError: missing, no lines, an empty line, a phrase of more words.
    """
    phrases = []
    for number, line in enumerate(read_lines(path), 1):
        words = line.split()
        if not words:
            raise InputError(f"{path}, line {number}: is empty; give one source phrase a line")
        if len(words) > longest:
            raise InputError(f"{path}, line {number}: has {len(words)} words, this network takes {longest}")
        phrases.append(vocabulary.ids(words, eos=True))
    if not phrases:
        raise InputError(f"{path}: has no lines; give one source phrase a line")
    return phrases


class Target(NamedTuple):
    """One target of a source phrase: its ids without EOS, log p(target | source), how often it was drawn."""

    words: tuple[int, ...]
    score: float
    times: int = 1


def sample_targets(
    model: RNNEncoderDecoder, sources: Sequence[NDArray[np.int32]], draws: int, seed: int, max_length: int
) -> list[list[Target]]:
    """Draw ``draws`` targets for each source, word by word from p; the distinct ones, best score first.

    sources: ids with EOS. The draws for a source follow from the seed and its place in ``sources`` alone.
    """
    found: list[list[Target]] = []
    step = max(ROWS // draws, 1)
    with torch.inference_mode():
        for begin in range(0, len(sources), step):
            part = sources[begin : begin + step]
            uniform = [
                np.random.default_rng([seed, begin + i]).random((draws, max_length + 1)) for i in range(len(part))
            ]
            words, scores = _draw(model, part, np.concatenate(uniform))
            for i in range(len(part)):
                rows = slice(i * draws, (i + 1) * draws)
                found.append(_distinct(words[rows], scores[rows], model.sizes.target_vocabulary - 1))
    return found


def _draw(
    model: RNNEncoderDecoder, sources: Sequence[NDArray[np.int32]], uniform: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """One draw for every row of ``uniform`` [R, K], the rows of a source one after the other.

    Returns: ids [R, K], after the EOS anything; log p [R], -inf where there is no EOS within K words.
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
        scores = _log_softmax(model, states, previous, context.readout)
        shares = scores.exp()
        shares[:, 0] = 0
        shares = shares.cumsum(1)
        word = torch.searchsorted(shares, chance[:, k : k + 1] * shares[:, -1:], right=True)[:, 0].clamp_max(eos)
        total += torch.where(alive, scores.gather(1, word[:, None])[:, 0], 0.0)
        words[:, k] = word
        alive &= word != eos
        if k + 1 == uniform.shape[1] or not alive.any():
            break
        states, previous = model.decoder.step(states, word, context.terms, k + 1), word
    total[alive] = -torch.inf
    return words.cpu().numpy(), total.cpu().numpy()


def _distinct(words: NDArray[np.int64], scores: NDArray[np.float64], eos: int) -> list[Target]:
    """The distinct finished draws of one source, best score first, equal scores in the order of their ids."""
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
    """The ``nbest`` most probable targets that a search with ``beam`` open prefixes finds, best first.

    sources: ids with EOS. A search ends when no open prefix is better than what has been found: words only lower log p.
    """
    found: list[list[Target]] = []
    step = max(ROWS // beam, 1)
    with torch.inference_mode():
        for begin in range(0, len(sources), step):
            found += _search(model, sources[begin : begin + step], beam, max_length, nbest)
    return found


def _search(
    model: RNNEncoderDecoder, sources: Sequence[NDArray[np.int32]], beam: int, max_length: int, nbest: int
) -> list[list[Target]]:
    context, device = _context(model, sources)
    found: list[list[Target]] = [[] for _ in sources]
    searched = torch.arange(len(sources), device=device)  # S of them are left, with W open prefixes each
    total = torch.zeros(len(sources), 1, dtype=torch.float64, device=device)
    words = torch.zeros(len(sources), 1, 0, dtype=torch.int64, device=device)
    rows, states, previous = context, context.state, None
    for k in range(max_length + 1):
        logits = model.logits(states, previous, rows.readout)
        sums = logits.logsumexp(1, keepdim=True)
        ending = total + (logits[:, -1:] - sums).double().view(total.shape)
        _collect(found, searched, words, ending, nbest)
        if k == max_length:
            break
        logits[:, 0] = logits[:, -1] = -torch.inf
        likely, word = logits.topk(min(beam, logits.shape[1]), 1)
        scores = total[:, :, None] + (likely - sums).double().view(*total.shape, -1)
        total, best = scores.flatten(1).topk(min(beam, scores[0].numel()), 1)
        parents, word = best // likely.shape[1], word.view(len(total), -1).gather(1, best)
        words = torch.cat([words.gather(1, parents[:, :, None].expand(-1, -1, k)), word[:, :, None]], 2)
        places = (torch.arange(len(total), device=device)[:, None] * logits.shape[0] // len(total)) + parents
        worst = [found[s][-1].score if len(found[s]) == nbest else -np.inf for s in searched.tolist()]
        left = total[:, 0] > torch.tensor(worst, dtype=torch.float64, device=device)
        if not left.any():
            break
        searched, total, words, places = searched[left], total[left], words[left], places[left]
        rows = context.rows(searched.repeat_interleave(total.shape[1]))
        previous = word[left].flatten()
        states = model.decoder.step(states[places.flatten()], previous, rows.terms, k + 1)
    return found


def _collect(found: list[list[Target]], searched: Tensor, words: Tensor, ending: Tensor, nbest: int) -> None:
    """Add the open prefixes of ``searched`` sources as finished targets; ``ending`` [S, W]: their log p with EOS."""
    for s, prefixes, scores in zip(searched.tolist(), words.tolist(), ending.tolist(), strict=True):
        more = [Target(tuple(p), score) for p, score in zip(prefixes, scores, strict=True) if score > -np.inf]
        found[s] = sorted(found[s] + more, key=lambda target: (-target.score, target.words))[:nbest]


def _context(model: RNNEncoderDecoder, sources: Sequence[NDArray[np.int32]]) -> tuple[DecoderContext, torch.device]:
    """The decoder's context of padded sources, and the device of the network."""
    device = model.output.G_l.device
    lengths = torch.tensor([len(source) for source in sources])
    padded = torch.zeros(len(sources), int(lengths.max()), dtype=torch.int64)
    for i, source in enumerate(sources):
        padded[i, : len(source)] = torch.from_numpy(np.asarray(source, np.int64))
    return model.decoder_context(model.encode(padded.to(device), lengths.to(device))), device


def _log_softmax(model: RNNEncoderDecoder, states: Tensor, previous: Tensor | None, readout: Tensor) -> Tensor:
    """log p of every next word [R, V], float64."""
    return torch.log_softmax(model.logits(states, previous, readout).double(), 1)
