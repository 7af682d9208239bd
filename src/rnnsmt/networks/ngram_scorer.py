"""Probabilities of n-grams under a trained feed-forward network, many at a time, for the search and for texts.

As in Devlin et al. (2014):

* The first layer is a sum of rows of a precomputed table: W_1 R for every position and every word allowed there.
* The hidden layers are computed once for each context.
* Only the output units of the requested words are computed. The exact softmax also requires the sum over all classes,
  which is computed once for each context.

On a CPU, the matrix products are computed for blocks of ``ROWS`` contexts, each by one thread; the last block is
padded. Everything else is computed row by row. A score is therefore bit-identical regardless of the other requests in
the same call.
"""

import math
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import say
from rnnsmt.formats.ini import CSLM_UNKNOWN
from rnnsmt.networks.data import NULL, UNK
from rnnsmt.networks.devices import set_up_device
from rnnsmt.networks.exact_softmax import ExactSoftmax
from rnnsmt.networks.feed_forward import FeedForwardLM, TrainedNetwork
from rnnsmt.networks.vectors import dot

ROWS = 128
"""Number of contexts in a block on a CPU; larger blocks would be slightly faster, but waste more on padding."""

CUDA_ROWS = 4096
"""Number of contexts that are computed together on a GPU."""

Ids = NDArray[np.int32]

Scores = NDArray[np.float32]


class NGramScorer(ABC):
    """Scorer of n-grams with the network of a model file; a subclass reads one kind of model file.

    Attributes:
        order: number of target words of an n-gram, including the predicted word.
        context: number of ids of a context.
        words: words[i] is the word of class i, unless i is ``padding``, ``unknown`` or ``end``.
    """

    order: int

    def __init__(
        self,
        path: StrPath,
        device: str = "auto",
        threads: int = 1,
        normalize: bool | None = None,
        unknown_score: str = CSLM_UNKNOWN[0],
    ) -> None:
        """Read the model and prepare its computation on a device.

        Args:
            device: see ``set_up_device``.
            normalize: True: divide by the exact sum over all classes. False: use the output unit of a word as its log
                probability, which is suitable for self-normalised models. None: False for self-normalised models, True
                for others.
            unknown_score: score of words outside the shortlist, one of ``CSLM_UNKNOWN``.
        """
        setup = set_up_device(device, 1)
        trained = self.load(path, setup.device)
        say(f"{Path(path).name}: computed on {setup}")
        self.vocabulary = trained.vocabulary
        self.words = trained.vocabulary.words
        self.context = trained.model.sizes.context
        self.padding, self.unknown, self.end = NULL, UNK, trained.vocabulary.eos
        self.self_normalised = trained.self_normalised
        self.normalize = not self.self_normalised if normalize is None else normalize
        self._unknown_share = -math.log(max(trained.unknown_words, 1)) if unknown_score == "word" else 0.0
        if setup.device.type == "cuda":
            self._engine: CudaEngine | CpuEngine = CudaEngine(trained.model, self.normalize)
        else:
            self._engine = CpuEngine(trained.model, self.normalize, threads)

    @abstractmethod
    def load(self, path: StrPath, device: torch.device) -> TrainedNetwork:
        """Read the model file, and set ``order``."""

    def ids(self, words: list[str]) -> Ids:
        """Return the class of every word, UNK for words outside the shortlist."""
        return self.vocabulary.ids(words)

    def score(self, contexts: Ids, owner: Ids, words: Ids) -> Scores:
        """Compute ln p(words[r] | contexts[owner[r]]), float32 [R]; UNK is scored according to ``unknown_score``.

        Args:
            contexts: int32 [C, context], oldest word first, ``padding`` before the beginning of the sentence.
            owner: int32 [R], row of ``contexts`` for each request, ascending.
            words: int32 [R], the word of each request.
        """
        if not len(words):
            return np.zeros(0, np.float32)
        contexts, owner, words = (np.ascontiguousarray(array, np.int32) for array in (contexts, owner, words))
        return self.of_unknown(self._engine.score(contexts, owner, words), words)

    def of_unknown(self, scores: Scores, words: Ids) -> Scores:
        """Adapt the scores of UNK to ``unknown_score``, in place; return the scores of the words [R]."""
        if self._unknown_share:
            scores[words == self.unknown] += self._unknown_share
        return scores


class CpuEngine:
    """Computation of a network on a CPU."""

    def __init__(self, model: FeedForwardLM, normalize: bool, threads: int) -> None:
        self.activation = model.activation
        table, places = first_layer_table(model)
        self.table, self.places = table.numpy(), places.numpy()
        self.b_1, self.b_2 = model.b_1.numpy(), model.b_2
        self.W_2 = model.W_2.t().contiguous()
        self.W_o, self.b_o = model.W_o.numpy(), model.b_o.numpy()
        self.softmax = ExactSoftmax(model.W_o, model.b_o) if normalize else None
        self._pool = ThreadPoolExecutor(threads, "cslm", torch.set_num_threads, (1,)) if threads > 1 else None

    def score(self, contexts: Ids, owner: Ids, words: Ids) -> Scores:
        """Compute ``NGramScorer.score`` of requests."""
        nothing = np.zeros((1, 0), np.int32)
        return self.score_shared(nothing, np.zeros(len(contexts), np.int32), contexts, owner, words)

    def score_shared(self, shared: Ids, shared_of: Ids, further: Ids, owner: Ids, words: Ids) -> Scores:
        """Compute ``NGramScorer.score`` of contexts, many of which begin with the same c ids.

        The part of the first layer that depends on these c ids is computed once. The scores are bit-identical to those
        of ``score``, because the rows of the table are added in the same order.

        Args:
            shared: int32 [S, c], distinct beginnings of contexts.
            shared_of: int32 [C], row of ``shared`` with which each context begins.
            further: int32 [C, context - c], the remaining ids of each context.
            owner, words: as in ``NGramScorer.score``.
        """
        contexts, count = len(further), shared.shape[1]
        sums = np.tile(self.b_1, (len(shared), 1))
        add_rows(shared, self.table, self.places[:count], sums)
        out = np.empty(len(words), np.float32)
        begins = range(0, contexts, ROWS)
        bounds = np.searchsorted(owner, [*begins, contexts])

        def block(number: int) -> None:
            span = slice(bounds[number], bounds[number + 1])
            rows = slice(begins[number], min(begins[number] + ROWS, contexts))
            h = torch.zeros(ROWS, len(self.b_1))
            first = h.numpy()[: rows.stop - rows.start]
            first[:] = sums[shared_of[rows]]
            add_rows(further[rows], self.table, self.places[count:], first)
            self._block(h, owner[span] - begins[number], words[span], out[span])

        list(self._pool.map(block, range(len(begins))) if self._pool else map(block, range(len(begins))))
        return out

    @torch.inference_mode()
    def _block(self, h: Tensor, owner: Ids, words: Ids, out: Scores) -> None:
        """Write the scores of the requests ``owner`` and ``words`` [R] to ``out`` [R].

        h: [ROWS, hidden_1], the first layer of the contexts before the activation function.
        """
        g = self.activation(torch.addmm(self.b_2, self.activation(h), self.W_2))
        if self.softmax:
            out[:] = self.softmax.log_p(g, torch.from_numpy(owner).long(), torch.from_numpy(words).long()).numpy()
            return
        output_units(g.numpy(), owner, words, self.W_o, self.b_o, out)


class CudaEngine:
    """Computation of a network on a GPU; the scores of an n-gram in different calls may differ by rounding."""

    def __init__(self, model: FeedForwardLM, normalize: bool) -> None:
        self.model = model
        self.softmax = ExactSoftmax(model.W_o, model.b_o) if normalize else None
        self.table, self.places = first_layer_table(model)

    @torch.inference_mode()
    def score(self, contexts: Ids, owner: Ids, words: Ids) -> Scores:
        """Compute ``NGramScorer.score`` of requests."""
        model, device = self.model, self.table.device
        scores = []
        for begin in range(0, len(contexts), CUDA_ROWS):
            first, last = np.searchsorted(owner, [begin, begin + CUDA_ROWS])
            block = contexts[begin : begin + CUDA_ROWS]
            # one copy to the device instead of three copies, each of which would synchronise
            ids = torch.from_numpy(np.concatenate([block.ravel(), owner[first:last] - begin, words[first:last]]))
            rows, owners, word = ids.to(device).long().split([block.size, last - first, last - first])
            rows = rows.view(block.shape) + self.places
            h = torch.nn.functional.embedding_bag(rows, self.table, mode="sum")
            g = model.activation(torch.addmm(model.b_2, model.activation(h + model.b_1), model.W_2.t()))
            if self.softmax:
                scores.append(self.softmax.log_p(g, owners, word).float())
            else:
                scores.append((g[owners] * model.W_o[word]).sum(1) + model.b_o[word])
        return torch.cat(scores).cpu().numpy()


@torch.inference_mode()
def first_layer_table(model: FeedForwardLM) -> tuple[Tensor, Tensor]:
    """Compute W_1 R for every position of the context and every word that is allowed there.

    Returns:
        The table [rows, hidden_1], and the offsets int64 [C]: the row of id i at position k is offsets[k] + i.
    """
    P, ranges = model.sizes.projection, model.sizes.ranges
    parts = [
        model.R[ids.start : ids.stop] @ model.W_1[:, index * P : (index + 1) * P].t()
        for index, ids in enumerate(ranges)
    ]
    ends = np.cumsum([len(ids) for ids in ranges])
    places = [int(end) - ids.stop for end, ids in zip(ends, ranges, strict=True)]
    return torch.cat(parts), torch.tensor(places, device=model.R.device)


@kernel()
def add_rows(
    contexts: NDArray[np.int32], table: NDArray[np.float32], places: NDArray[np.int64], out: NDArray[np.float32]
) -> None:
    """Add W_1 R of the words of B contexts to ``out``, position by position.

    Args:
        contexts: int32 [B, c], ids at c positions of the context.
        table: [rows, H], W_1 R for every position and word.
        places: int64 [c], offset of each of these positions in the table, as returned by ``first_layer_table``.
        out: [B, H].
    """
    units = table.shape[1]
    for row in range(len(contexts)):
        total = out[row]
        # units innermost: the rows of the table are contiguous, and each unit is summed in the order of the positions
        for index in range(contexts.shape[1]):
            table_row = table[places[index] + contexts[row, index]]
            for unit in range(units):
                total[unit] += table_row[unit]


@kernel()
def output_units(
    hidden: NDArray[np.float32],
    owner: NDArray[np.int32],
    words: NDArray[np.int32],
    weights: NDArray[np.float32],
    bias: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Compute the output units of the requested words before the softmax.

    Args:
        hidden: [B, H], the last hidden layer.
        owner: [R], the row of ``hidden`` for each request.
        words: [R], the word of each request.
        weights: [vocabulary, H], W_o.
        bias: [vocabulary], b_o.
        out: [R], filled.
    """
    for r in range(len(words)):
        out[r] = dot(hidden[owner[r]], weights[words[r]]) + bias[words[r]]
