"""The network of Sutskever, Vinyals and Le (2014): one stack of LSTMs reads a sentence, another one writes it.

The source's words, in reversed order where the network was trained so, and then EOS go through the layers of the
encoder. Its last cells and states, of all layers, begin the decoder, and nothing else passes between the two. The
decoder reads EOS and then the words that were written, and gives ::

    p(y_k | y_1 .. y_{k-1}, x) = softmax(W_o g_k + b_o)

where g_k is the state of its last layer. N, T: words of source and target, B: sentences, L: layers, H: cells of one.

Below the network: its file.
"""

from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from rnnsmt.io import InputError
from rnnsmt.networks.checkpoint import check_parameters, corrupt_as_input_error, load_file, save_file
from rnnsmt.networks.dropout import Dropout
from rnnsmt.networks.vocabulary import NULL, Vocabulary
from rnnsmt.seq2seq.settings import Seq2SeqSizes
from rnnsmt.seq2seq.units import KINDS, Units


class State(NamedTuple):
    """Of a stack of LSTMs: states h and cells c, [L, B, H] each."""

    h: Tensor
    c: Tensor

    def select(self, rows: Tensor) -> "State":
        """The states of some sentences [R], in this order."""
        return State(self.h.index_select(1, rows), self.c.index_select(1, rows))


NO_DROPOUT = Dropout(0.0, 0)


class Seq2Seq(nn.Module):
    """LSTM encoder and decoder."""

    def __init__(self, sizes: Seq2SeqSizes, seed: int | None, spread: float = 0.08) -> None:
        """All parameters from U(-spread, spread). seed: of them; None leaves them unset."""
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
        """Source ids [N, B] in the order in which they are read, each with EOS and then 0 -> the decoder's first state.

        generators: of the dropout, ``Dropout.generators`` of the sentences.
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
        """Words that the decoder reads [T, B] from a state on -> g [T, B, H], and the state behind them."""
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
        """g [..., H] -> output units [..., target classes], before the softmax."""
        return torch.addmm(self.b_o, g.flatten(0, -2), self.W_o.t()).unflatten(0, g.shape[:-1])

    def read_before(self, target: Tensor) -> Tensor:
        """What the decoder reads before each word of the targets [T, B]: EOS before the first, then the one before."""
        first = torch.full_like(target[:1], self.sizes.target_vocabulary - 1)
        return torch.cat([first, target[:-1]])

    def log_probability(self, source: Tensor, target: Tensor) -> Tensor:
        """ln p(y | x) [B]: the sum over the target's words and its EOS. source [N, B], target [T, B]: ids, EOS, 0."""
        g, _ = self.decode(self.read_before(target), self.encode(source))
        logs = torch.log_softmax(self.logits(g), -1).gather(2, target[..., None])[..., 0]
        return (logs * (target != NULL)).sum(0)


def _drop(x: Tensor, dropout: Dropout, generators: list[torch.Generator]) -> Tensor:
    """x [T, B, U] with units left out, other ones for every word of every sentence."""
    steps, rows, units = x.shape
    factors = dropout.factors(rows, steps * units, generators)
    return x if factors is None else x * factors.view(rows, steps, units).transpose(0, 1)


FORMAT = "rnnsmt-seq2seq-1"

REMEDY = "train it again with seq2seq train"


class TrainedSeq2Seq(NamedTuple):
    """What a model file holds; source, target: what it reads and writes; meta: its training's settings, seed, data."""

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
    """Write a network, whole or not at all. subwords: the kind of the units, of ``KINDS``. meta: plain values."""
    parameters = {name: parameter.detach().cpu().clone() for name, parameter in model.named_parameters()}
    words = {name: side.vocabulary.words[2:-1] for name, side in zip(("source", "target"), units, strict=True)}
    about = {"format": FORMAT, "sizes": model.sizes.as_dict(), "words": words, "source order": source_order}
    if subwords != "none":
        # what a tensor holds is read without running code
        models = [torch.frombuffer(bytearray(side.model()), dtype=torch.uint8) for side in units]
        about |= {"subwords": subwords, "subword models": dict(zip(("source", "target"), models, strict=True))}
    save_file(path, {**about, "meta": meta, "parameters": parameters})


def load_model(path: str | Path, device: torch.device | str = "cpu") -> TrainedSeq2Seq:
    """Read a network onto a device.

    Raises:
        InputError: missing, damaged, or not such a file.
    """
    content = load_file(path, device, REMEDY)
    if content.get("format") != FORMAT:
        raise InputError(f"{path}: not an LSTM encoder-decoder of this version; {REMEDY}")
    with corrupt_as_input_error(path, REMEDY):
        with torch.device("meta"):
            model = Seq2Seq(Seq2SeqSizes(**content["sizes"]), seed=None)
        model.load_state_dict(content["parameters"], assign=True)
        kind = KINDS[content.get("subwords", "none")]
        models = {name: part.cpu().numpy().tobytes() for name, part in content.get("subword models", {}).items()}
        source, target = (
            kind.load(Vocabulary(content["words"][name]), models.get(name, b"")) for name in ("source", "target")
        )
        found = TrainedSeq2Seq(model, source, target, str(content["source order"]), dict(content["meta"]))
    if (len(source), len(target)) != (model.sizes.source_vocabulary, model.sizes.target_vocabulary):
        raise InputError(f"{path}: its words are not as many as its classes; {REMEDY}")
    check_parameters(path, model, REMEDY)
    model.eval()
    return found


def load_ensemble(paths: list[str], device: torch.device | str = "cpu") -> list[TrainedSeq2Seq]:
    """Read networks that answer together.

    Raises:
        InputError: as ``load_model``; networks of different vocabularies or subwords.
    """
    found = [load_model(path, device) for path in paths]
    for path, one in zip(paths[1:], found[1:], strict=True):
        if (one.source.hash(), one.target.hash()) != (found[0].source.hash(), found[0].target.hash()):
            raise InputError(f"{path}: has other vocabularies than {paths[0]}; train them on the same sentences")
    return found
