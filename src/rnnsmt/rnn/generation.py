"""Generation of target phrases by ancestral sampling and beam search.

Id 0 ("no word") is never generated; UNK is treated as a word. Targets of more than ``max_length`` words are discarded.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import read_lines
from rnnsmt.networks.beam_search import BeamHypothesis, Beams, beam_search
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
    times: int


def sample_targets(
    model: RNNEncoderDecoder, sources: Sequence[NDArray[np.int32]], draws: int, seed: int, max_length: int
) -> list[list[Target]]:
    """Draw ``draws`` targets for each source, word by word from p; return the distinct ones by descending score.

    The draws for a source phrase depend only on the seed and on its position in ``sources``, which are ids with EOS.
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

    Args:
        sources: source phrases, ids with EOS.
        uniform: random numbers in [0, 1); each source has the same number of consecutive rows.

    Returns:
        Ids [R, K], which are arbitrary after EOS, and log p [R], -inf for targets without EOS within K words.
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
        # chance is scaled by the sum of the shares, which is below 1 because id 0 is excluded; with right=True, a class
        # of probability 0 is never selected
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


class _Decoder:
    """Decoder of a network for ``beam_search``, with its states after the words of the open hypotheses."""

    def __init__(self, model: RNNEncoderDecoder, sources: Sequence[NDArray[np.int32]]) -> None:
        """Encode the source phrases, given as ids with EOS."""
        self.model, self.eos = model, model.sizes.target_vocabulary - 1
        self.context, self.device = _context(model, sources)
        self.states = self.context.state

    def extend(
        self, beams: Beams, width: int, full: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Compute the extensions by EOS, in column 0, and by the ``width`` best words, see ``networks.beam_search``."""
        context, previous = self.context.rows(torch.from_numpy(beams.sources).to(self.device)), None
        if beams.words.shape[1]:
            parents, previous = (
                torch.from_numpy(rows).to(self.device) for rows in (beams.parents, beams.words[:, -1].copy())
            )
            self.states = self.model.decoder.step(self.states[parents], previous, context.terms)
        logits = self.model.logits(self.states, previous, context.readout)
        sums, ends = logits.logsumexp(1, keepdim=True), logits[:, -1:].clone()
        logits[:, 0] = logits[:, -1] = -torch.inf  # "no word" and EOS are not words of a target
        likely, words = logits.topk(min(width, logits.shape[1]), 1)
        log_p = (torch.cat([ends, likely], 1) - sums).double().cpu().numpy()
        log_p[full, 1:] = -np.inf
        return log_p, np.pad(words.cpu().numpy(), ((0, 0), (1, 0)), constant_values=self.eos)


def best_targets(
    model: RNNEncoderDecoder, sources: Sequence[NDArray[np.int32]], beam: int, max_length: int, nbest: int = 1
) -> list[list[BeamHypothesis]]:
    """Search for the ``nbest`` most probable targets of each source with a beam of ``beam`` open prefixes.

    The targets are sorted by descending score. Every open prefix followed by EOS is a target. sources: ids with EOS.
    """
    targets: list[list[BeamHypothesis]] = []
    step = max(ROWS // beam, 1)
    with torch.inference_mode():
        for begin in range(0, len(sources), step):
            chunk = sources[begin : begin + step]
            limits = [max_length] * len(chunk)
            targets += beam_search(_Decoder(model, chunk), limits, beam, nbest, ends_compete=False)
    return targets


def _context(model: RNNEncoderDecoder, sources: Sequence[NDArray[np.int32]]) -> tuple[DecoderContext, torch.device]:
    """Encode source phrases as one padded batch; return the context of the decoder and the device of the network."""
    device = model.output.G_l.device
    lengths = torch.tensor([len(source) for source in sources])
    padded = torch.zeros(len(sources), int(lengths.max()), dtype=torch.int64)
    for i, source in enumerate(sources):
        padded[i, : len(source)] = torch.from_numpy(np.asarray(source, np.int64))
    return model.decoder_context(model.encode(padded.to(device), lengths.to(device))), device
