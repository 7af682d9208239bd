"""The network of Sutskever, Vinyals and Le (2014): a stack of LSTMs as encoder, another one as decoder.

The encoder reads the source words, reversed if the network was trained so, and then EOS. The final states and cells of
all its layers initialise the decoder; nothing else is passed. The decoder reads EOS and then the target words, and
computes ::

    p(y_k | y_1 .. y_{k-1}, x) = softmax(W_o g_k + b_o)

where g_k is the state of its last layer. N, T: words of source and target, B: sentences, L: layers, H: cells per layer.

Further below: the file of a network.
"""

from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from rnnsmt.base.io import InputError
from rnnsmt.networks.model_file import ModelFormat, corrupt_as_input_error, read_model, write_model
from rnnsmt.networks.operations import Dropout
from rnnsmt.networks.vocabulary import NULL, Vocabulary
from rnnsmt.seq2seq.settings import Seq2SeqSizes
from rnnsmt.seq2seq.units import KINDS, Units


class State(NamedTuple):
    """The states h and cells c of a stack of LSTMs, [L, B, H] each."""

    h: Tensor
    c: Tensor

    def select(self, rows: Tensor) -> "State":
        """Return the states of the rows [R], in this order."""
        return State(self.h.index_select(1, rows), self.c.index_select(1, rows))


NO_DROPOUT = Dropout(0.0, 0)


class Seq2Seq(nn.Module):
    """The LSTM encoder-decoder."""

    def __init__(self, sizes: Seq2SeqSizes, seed: int | None, spread: float = 0.08) -> None:
        """Build a network and draw all parameters from U(-spread, spread); seed None: they are not initialised."""
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

    def encode(
        self, source: Tensor, dropout: Dropout = NO_DROPOUT, generators: list[torch.Generator] | None = None
    ) -> State:
        """Encode source sentences; return the initial state of the decoder.

        Args:
            source: ids [N, B] in reading order, each column ending in EOS, padded with 0.
            dropout: applied to the inputs of all layers.
            generators: ``dropout.generators`` of the sentences.
        """
        lengths = (source != NULL).sum(0).cpu()
        x = embedding(source, self.source_embedding)
        states = []
        for lstm in self.encoder:
            x = _drop(x, dropout, generators or [])
            packed, state = lstm(pack_padded_sequence(x, lengths, enforce_sorted=False))
            x, _ = pad_packed_sequence(packed, total_length=len(source))
            states.append(state)
        h, c = (torch.cat(parts) for parts in zip(*states, strict=True))
        return State(h, c)

    def decode(
        self,
        words: Tensor,
        state: State,
        dropout: Dropout = NO_DROPOUT,
        generators: list[torch.Generator] | None = None,
    ) -> tuple[Tensor, State]:
        """Read words [T, B] from ``state`` on; return the last layer's states g [T, B, H] and the final state."""
        x = embedding(words, self.target_embedding)
        states = []
        for layer, lstm in enumerate(self.decoder):
            x, after = lstm(
                _drop(x, dropout, generators or []), (state.h[layer : layer + 1], state.c[layer : layer + 1])
            )
            states.append(after)
        h, c = (torch.cat(parts) for parts in zip(*states, strict=True))
        return _drop(x, dropout, generators or []), State(h, c)

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


def _drop(x: Tensor, dropout: Dropout, generators: list[torch.Generator]) -> Tensor:
    """Apply dropout to x [T, B, U], with a mask of its own for every word of every sentence."""
    steps, rows, units = x.shape
    factors = dropout.factors(rows, steps * units, generators)
    return x if factors is None else x * factors.view(rows, steps, units).transpose(0, 1)


FORMAT = ModelFormat("rnnsmt-seq2seq-1", "an LSTM encoder-decoder", "train it again with seq2seq train")


class TrainedSeq2Seq(NamedTuple):
    """The content of a model file.

    Attributes:
        model: the network.
        source, target: the units of each side.
        source_order: reading order of the source, one of ``SOURCE_ORDERS``.
        meta: settings, seed and data of the training.
    """

    model: Seq2Seq
    source: Units
    target: Units
    source_order: str
    meta: dict[str, Any]


def save_model(
    path: str | Path,
    model: Seq2Seq,
    subwords: str,
    units: tuple[Units, Units],
    source_order: str,
    meta: dict[str, Any],
) -> None:
    """Write a network, atomically. subwords: the kind of the units, one of ``KINDS``. meta: plain values."""
    words = {name: side.vocabulary.words[2:-1] for name, side in zip(("source", "target"), units, strict=True)}
    content: dict[str, Any] = {"words": words, "source order": source_order}
    if subwords != "none":
        # as tensors of bytes, which load_file reads without running code
        models = [torch.frombuffer(bytearray(side.model()), dtype=torch.uint8) for side in units]
        content |= {"subwords": subwords, "subword models": dict(zip(("source", "target"), models, strict=True))}
    write_model(path, FORMAT, model, model.sizes, content | {"meta": meta})


def load_model(path: str | Path, device: torch.device | str = "cpu") -> TrainedSeq2Seq:
    """Read a network onto a device.

    Raises:
        InputError: the file is missing, damaged, or of another kind.
    """
    model, content = read_model(path, FORMAT, lambda sizes: Seq2Seq(Seq2SeqSizes(**sizes), seed=None), device)
    with corrupt_as_input_error(path, FORMAT.remedy):
        kind = KINDS[content.get("subwords", "none")]
        models = {name: part.cpu().numpy().tobytes() for name, part in content.get("subword models", {}).items()}
        source, target = (
            kind.load(Vocabulary(content["words"][name]), models.get(name, b"")) for name in ("source", "target")
        )
        trained = TrainedSeq2Seq(model, source, target, str(content["source order"]), content["meta"])
    if (len(source), len(target)) != (model.sizes.source_vocabulary, model.sizes.target_vocabulary):
        raise InputError(f"{path}: the numbers of words and of output classes differ; {FORMAT.remedy}")
    model.eval()
    return trained


def load_ensemble(paths: list[str], device: torch.device | str = "cpu") -> list[TrainedSeq2Seq]:
    """Read the networks of an ensemble.

    Raises:
        InputError: see ``load_model``; the networks have different vocabularies or subwords.
    """
    ensemble = [load_model(path, device) for path in paths]
    first = ensemble[0]
    for path, other in zip(paths[1:], ensemble[1:], strict=True):
        if (other.source.hash(), other.target.hash()) != (first.source.hash(), first.target.hash()):
            raise InputError(
                f"{path}: has other vocabularies than {paths[0]}; train both networks on the same sentences"
            )
    return ensemble
