"""The network of Sutskever, Vinyals and Le (2014): a stack of LSTMs as encoder, another stack as decoder.

The encoder reads the source words (in reversed order by default), then EOS. The final states and cells of its layers
initialise the decoder, which has no other information on the source. The decoder reads EOS, then the target words, and
computes ::

    p(y_k | y_1 .. y_{k-1}, x) = softmax(W_o g_k + b_o)

where g_k is the state of its last layer. N, T: words of source and target, B: sentences, L: layers, H: cells per layer.

The module also reads and writes model files. ``Steps`` computes a network step by step for search and scoring, without
gradients. On a CPU, it computes the rows of a step in blocks that fit into the cache, and the input products of the
first layer once for each distinct word. The number of rows of every matrix product is a multiple of ``MULTIPLE``: with
the libraries tested, the result for a row is then independent of the other rows, so scores and translations do not
depend on the rest of the batch. On a GPU, ``Steps`` calls ``Seq2Seq.encode`` and ``Seq2Seq.decode``.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.nn.functional import embedding
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.paths import StrPath
from rnnsmt.networks.data import NULL, DistinctWords, Vocabulary
from rnnsmt.networks.draws import NOTHING_DRAWN, Draws
from rnnsmt.networks.exact_softmax import ExactSoftmax
from rnnsmt.networks.model_file import ModelContent, ModelFormat, Shortlist, read_model, write_model
from rnnsmt.networks.vectors import LOG2E, power_of_2
from rnnsmt.seq2seq.sentences import SIDES, as_read, padded
from rnnsmt.seq2seq.settings import Seq2SeqSizes


class State(NamedTuple):
    """The states h and cells c of a stack of LSTMs, [L, B, H] each."""

    h: Tensor
    c: Tensor

    def select(self, rows: Tensor) -> "State":
        """Return the states of the rows [R], in this order."""
        return State(self.h.index_select(1, rows), self.c.index_select(1, rows))


class Seq2Seq(nn.Module):
    """The LSTM encoder-decoder."""

    def __init__(self, sizes: Seq2SeqSizes, seed: int | None, spread: float = 0.08) -> None:
        """Build a network, and draw all parameters from U(-spread, spread) unless ``seed`` is None."""
        super().__init__()
        self.sizes = sizes
        inputs = [sizes.embedding] + [sizes.hidden] * (sizes.layers - 1)
        self.source_embedding = nn.Parameter(torch.empty(sizes.source_vocabulary, sizes.embedding))
        self.encoder = nn.ModuleList(nn.LSTM(size, sizes.hidden) for size in inputs)
        self.target_embedding = nn.Parameter(torch.empty(sizes.target_vocabulary, sizes.embedding))
        self.decoder = nn.ModuleList(nn.LSTM(size, sizes.hidden) for size in inputs)
        self.W_o = nn.Parameter(torch.empty(sizes.target_vocabulary, sizes.hidden))
        self.b_o = nn.Parameter(torch.empty(sizes.target_vocabulary))
        if seed is not None:
            generator = torch.Generator().manual_seed(seed)
            with torch.no_grad():
                for parameter in self.parameters():
                    parameter.uniform_(-spread, spread, generator=generator)

    def encode(self, source: Tensor, draws: Draws = NOTHING_DRAWN) -> State:
        """Encode source sentences; return the initial state of the decoder.

        Args:
            source: ids [N, B] in reading order, each column ending in EOS, padded with 0.
            draws: the dropout masks of the inputs of all layers.
        """
        lengths = (source != NULL).sum(0).cpu()
        x = embedding(source, self.source_embedding)
        states = []
        for lstm in self.encoder:
            packed, state = lstm(pack_padded_sequence(draws.drop(x), lengths, enforce_sorted=False))
            x, _ = pad_packed_sequence(packed, total_length=len(source))
            states.append(state)
        h, c = (torch.cat(parts) for parts in zip(*states, strict=True))
        return State(h, c)

    def decode(self, words: Tensor, state: State, draws: Draws = NOTHING_DRAWN) -> tuple[Tensor, State]:
        """Read words [T, B], beginning in ``state``; return the last layer's states g [T, B, H] and the final state."""
        x = embedding(words, self.target_embedding)
        states = []
        for layer, lstm in enumerate(self.decoder):
            x, after = lstm(draws.drop(x), (state.h[layer : layer + 1], state.c[layer : layer + 1]))
            states.append(after)
        h, c = (torch.cat(parts) for parts in zip(*states, strict=True))
        return draws.drop(x), State(h, c)

    def logits(self, g: Tensor) -> Tensor:
        """Compute the output units before the softmax [..., target classes] from g [..., H]."""
        return torch.addmm(self.b_o, g.flatten(0, -2), self.W_o.t()).unflatten(0, g.shape[:-1])

    def read_before(self, target: Tensor) -> Tensor:
        """Return the input of the decoder for targets [T, B]: EOS first, then the previous target words."""
        first = torch.full_like(target[:1], self.sizes.target_vocabulary - 1)
        return torch.cat([first, target[:-1]])

    def log_probability(self, source: Tensor, target: Tensor) -> Tensor:
        """Compute ln p(y | x) [B], the sum over the target words and EOS.

        source, target: ids [N, B] and [T, B], each column ending in EOS, padded with 0.
        """
        g, _ = self.decode(self.read_before(target), self.encode(source))
        logs = torch.log_softmax(self.logits(g), -1).gather(2, target[..., None])[..., 0]
        return (logs * (target != NULL)).sum(0)


FORMAT = ModelFormat("rnnsmt-seq2seq-1", "an LSTM encoder-decoder", "train it again with `networks train`")


class BothWords(BaseModel):
    """The words of both sides in the metadata of a model file."""

    model_config = ConfigDict(strict=True, extra="forbid")

    source: DistinctWords
    target: DistinctWords


class Seq2SeqContent(ModelContent):
    """Metadata of a model file."""

    sizes: Seq2SeqSizes
    words: BothWords
    source_order: Annotated[Literal["reversed", "forward"], Field(alias="source order")]

    def shortlists(self) -> list[Shortlist]:
        """Return the words of both sides."""
        return [
            Shortlist("source words", self.words.source, self.sizes.source_vocabulary),
            Shortlist("target words", self.words.target, self.sizes.target_vocabulary),
        ]


class TrainedSeq2Seq(NamedTuple):
    """The content of a model file.

    Attributes:
        source, target: source vocabulary and target vocabulary.
        source_order: reading order of the source, ``reversed`` or ``forward``.
        meta: settings, seed and data of the training run.
    """

    model: Seq2Seq
    source: Vocabulary
    target: Vocabulary
    source_order: str
    meta: dict[str, Any]


def save_model(
    path: StrPath,
    model: Seq2Seq,
    vocabularies: tuple[Vocabulary, ...],
    source_order: str,
    meta: dict[str, Any],
) -> None:
    """Write a network, atomically. meta: values of built-in types."""
    words = {name: side.words[2:-1] for name, side in zip(SIDES, vocabularies, strict=True)}
    write_model(path, FORMAT, model, model.sizes, {"words": words, "source order": source_order, "meta": meta})


def load_model(path: StrPath, device: torch.device | str = "cpu") -> TrainedSeq2Seq:
    """Load a network on a device."""
    model, content = read_model(path, FORMAT, Seq2SeqContent, lambda sizes: Seq2Seq(sizes, seed=None), device)
    source, target = (Vocabulary(words) for _, words, _ in content.shortlists())
    return TrainedSeq2Seq(model.eval(), source, target, content.source_order, content.meta)


def load_ensemble(paths: list[str], device: torch.device | str = "cpu") -> list[TrainedSeq2Seq]:
    """Load the networks of an ensemble.

    Raises:
        InputError: a file is missing or malformed, or the networks have different vocabularies.
    """
    ensemble = [load_model(path, device) for path in paths]
    first = ensemble[0]
    for path, other in zip(paths[1:], ensemble[1:], strict=True):
        if (other.source.hash(), other.target.hash()) != (first.source.hash(), first.target.hash()):
            raise InputError(
                f"{path}: its vocabularies differ from those of {paths[0]}; train both networks on the same "
                "directory of `networks prepare`"
            )
    return ensemble


MULTIPLE = 16
"""The number of rows of a matrix product is a multiple of this number: for few rows, the libraries sum in another
order."""

ROWS = 256
"""Number of rows that are computed together on a CPU."""

CUDA_ROWS = 4096
"""Number of rows whose softmax is computed together on a GPU."""

Ids = NDArray[np.int32]


class Steps:
    """A trained network that is computed one word at a time."""

    def __init__(self, trained: TrainedSeq2Seq) -> None:
        self.trained = trained
        model = trained.model
        self.device = model.W_o.device
        self.softmax = ExactSoftmax(model.W_o, model.b_o)
        self._encoder = _Layers(model.source_embedding, model.encoder)
        self._decoder = _Layers(model.target_embedding, model.decoder)

    @torch.inference_mode()
    def encode(self, sources: Sequence[Ids]) -> State:
        """Compute the initial state of the decoder, [L, B or more, H], for B sources that end in EOS."""
        sources = [as_read(source, self.trained.source_order) for source in sources]
        ids = padded(sources)
        if self.device.type != "cpu":
            return self.trained.model.encode(torch.from_numpy(ids).to(self.device))
        # sorted by descending length, so that at every step the unfinished sources are the first rows
        lengths = np.array([len(source) for source in sources])
        order = np.argsort(-lengths, kind="stable")
        state = self._encoder.zeros(_multiple(len(sources)))
        for time, words in enumerate(ids[:, order]):
            active = int(np.count_nonzero(lengths > time))
            after = self._encoder.step(words[:active], np.arange(active), state)
            # the finished sources keep their final states
            state.h[:, :active], state.c[:, :active] = after.h[:, :active], after.c[:, :active]
        return state.select(torch.from_numpy(_filled(np.argsort(order), len(state.h[0]))))

    @torch.inference_mode()
    def step(self, words: NDArray[np.int64], parents: NDArray[np.int64], state: State) -> tuple[Tensor, State]:
        """Advance the decoder by one word from each of B states.

        Args:
            words: [B], the words to read.
            parents: [B], the rows of ``state`` to start from.
            state: states of previous steps.

        Returns:
            The states g of the last layer, [B or more, H], and the states of all layers. Rows from B on are padding.
        """
        if self.device.type == "cpu":
            after = self._decoder.step(words, parents, state)
            return after.h[-1], after
        reads, rows = (torch.from_numpy(array).to(self.device) for array in (words, parents))
        g, after = self.trained.model.decode(reads[None], state.select(rows))
        return g[0], after

    @torch.inference_mode()
    def log_p(self, g: Tensor, nodes: NDArray[np.int64], words: NDArray[np.int64]) -> NDArray[np.float64]:
        """Compute ln p of R words, float64 [R].

        Args:
            g: [B, H], states that ``step`` returned.
            nodes: [R], the row of ``g`` from which each word is predicted, ascending.
            words: [R], the words.
        """
        log_p = []
        number = ROWS if self.device.type == "cpu" else CUDA_ROWS
        for begin in range(0, len(g), number):
            first, last = np.searchsorted(nodes, [begin, begin + number])
            rows, targets = (
                torch.from_numpy(array).to(g.device) for array in (nodes[first:last] - begin, words[first:last])
            )
            log_p.append(self.softmax.log_p(g[begin : begin + number].contiguous(), rows, targets).cpu().numpy())
        return np.concatenate(log_p)

    def best(self, g: Tensor, width: int, least_class: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Compute ``ExactSoftmax.best`` of states g [B, H] that ``step`` returned, on a CPU."""
        parts = [self.softmax.best(g[begin : begin + ROWS], width, least_class) for begin in range(0, len(g), ROWS)]
        values, classes = zip(*parts, strict=True)
        return np.concatenate(values), np.concatenate(classes)


class _Layers:
    """A stack of LSTM layers with a word embedding, on a CPU."""

    def __init__(self, embedding: Tensor, layers: nn.ModuleList) -> None:
        """Use the parameters of an embedding [classes, E] and of ``nn.LSTM`` modules with one layer each."""
        self.embedding = embedding.detach()
        parameters = [[parameter.detach() for parameter in lstm.parameters()] for lstm in layers]
        self.weights = [(W.t(), U.t()) for W, U, _, _ in parameters]
        # ``nn.LSTM`` has two biases, one for the inputs and one for the states, which are added
        self.biases = [bias + other for _, _, bias, other in parameters]
        self.hidden = len(self.biases[0]) // 4

    def zeros(self, rows: int) -> State:
        """Return the state before the first word."""
        return State(*(torch.zeros(len(self.biases), rows, self.hidden) for _ in range(2)))

    def step(self, words: NDArray[np.int64], parents: NDArray[np.int64], state: State) -> State:
        """Compute the states [L, B or more, H] after reading words [B] in the rows ``parents`` [B] of ``state``."""
        number = _multiple(len(words))
        words, parents = (_filled(array, number) for array in (words, parents))
        inputs, which = self._inputs(words)
        h, c = (torch.empty(len(self.biases), number, self.hidden) for _ in range(2))
        # compute all layers of a block of rows before the next block, while the rows are in the cache
        for begin in range(0, number, ROWS):
            end = min(begin + ROWS, number)
            rows = torch.from_numpy(parents[begin:end])
            x = torch.empty(0)  # output of the previous layer, unused in the first
            for layer, ((W, U), b) in enumerate(zip(self.weights, self.biases, strict=True)):
                own_h, own_c = h[layer, begin:end], c[layer, begin:end]
                gates = torch.addmm(b, x, W) if layer else inputs.index_select(0, which[begin:end])
                gates.addmm_(state.h[layer].index_select(0, rows), U)
                torch.index_select(state.c[layer], 0, rows, out=own_c)
                lstm_units(gates.numpy(), own_c.numpy(), own_h.numpy())
                x = own_h
        return State(h, c)

    def _inputs(self, words: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Compute the input products of the first layer for D distinct words, [D, 4 H], and the row of each word."""
        distinct, which = np.unique(words, return_inverse=True)
        (W, _), b = self.weights[0], self.biases[0]
        distinct = _filled(distinct, _multiple(len(distinct)))
        x = self.embedding.index_select(0, torch.from_numpy(distinct))
        return torch.addmm(b, x, W), torch.from_numpy(which)


def _multiple(number: int) -> int:
    """Round up to a multiple of ``MULTIPLE``."""
    return -(-number // MULTIPLE) * MULTIPLE


def _filled(numbers: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    return np.concatenate([numbers, np.zeros(length - len(numbers), np.int64)])


ONE, TWO = np.float32(1.0), np.float32(2.0)

MOST = np.float32(126.0)
"""Upper bound of the exponent in ``sigmoid``: the argument of ``power_of_2`` must be below 128."""

# error_model="numpy" in all kernels below: Python's check for a division by zero would keep loops from vectorising


@kernel(fastmath={"contract"}, error_model="numpy", **INNER)
def sigmoid(x: np.float32) -> np.float32:
    """Return 1 / (1 + exp(-x)) with an error of at most 1e-7; NaN for NaN."""
    y = -x * LOG2E
    return ONE / (ONE + power_of_2(MOST if y > MOST else y))


@kernel(error_model="numpy", **INNER)
def to_sigmoid(x: NDArray[np.float32]) -> None:
    """Replace every number of an array by its sigmoid, in place."""
    for i in range(len(x)):
        x[i] = sigmoid(x[i])


@kernel(fastmath={"contract"}, error_model="numpy", **INNER)
def cells_after(
    i_gate: NDArray[np.float32], f_gate: NDArray[np.float32], new: NDArray[np.float32], c: NDArray[np.float32]
) -> None:
    """Update the cells of one row in place: c = f_gate * c + i_gate * tanh(new).

    Args:
        i_gate, f_gate: [H], the input gate and the forget gate, after the sigmoid.
        new: [H], the new input before its tanh.
        c: [H].
    """
    # tanh(x) = 2 sigmoid(2 x) - 1
    for i in range(len(c)):
        c[i] = f_gate[i] * c[i] + i_gate[i] * (TWO * sigmoid(TWO * new[i]) - ONE)


@kernel(fastmath={"contract"}, error_model="numpy", **INNER)
def states_after(o_gate: NDArray[np.float32], c: NDArray[np.float32], h: NDArray[np.float32]) -> None:
    """Fill the states of one row: h = o_gate * tanh(c); ``o_gate`` [H]: the output gate, after the sigmoid."""
    for i in range(len(h)):
        h[i] = o_gate[i] * (TWO * sigmoid(TWO * c[i]) - ONE)


@kernel(error_model="numpy")
def lstm_units(gates: NDArray[np.float32], c: NDArray[np.float32], h: NDArray[np.float32]) -> None:
    """Compute the cells and states of B rows after one step of an LSTM layer.

    Args:
        gates: [B, 4 H], the concatenated pre-activations of input gate, forget gate, new input and output gate, in the
            order of ``torch.nn.LSTM``; overwritten.
        c: [B, H], the cells before the step; overwritten with the cells after the step.
        h: [B, H], filled with the states after the step.
    """
    H = c.shape[1]
    for row in range(len(gates)):
        gate = gates[row]
        to_sigmoid(gate[: 2 * H])
        to_sigmoid(gate[3 * H :])
        cells_after(gate[:H], gate[H : 2 * H], gate[2 * H : 3 * H], c[row])
        states_after(gate[3 * H :], c[row], h[row])
