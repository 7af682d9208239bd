"""Measure training pairs per CPU second, compared with a network of the same sizes built from ``torch.nn.GRU``.

    python benchmarks/rnn_training.py --pairs FILE --vocabularies DIR [--preset small] [--batches 40] [--threads 1]

FILE is written by ``rnnsmt phrases extract --output-pairs``, DIR by ``rnnsmt networks prepare``. Also prints the
floating-point operations and the bytes moved per update. All versions process the same minibatches, whose pairs have
equal lengths:

* by hand: ``rnnsmt.rnn.model.loss_and_gradient`` (gradient of gated units, readout and softmax by hand), float32 and
  with bfloat16 factors;
* autograd: ``RNNEncoderDecoder.log_probability`` with ``backward`` (only that of the readout by hand);
* torch.nn.GRU: encoder and decoder are ``nn.GRU`` (whose reset gate differs from that of the paper; c is part of the
  input of the decoder), readout and softmax as usual, ``cross_entropy`` and ``backward``; float32 and under bfloat16
  autocast;
* whole updates: minibatch, loss and gradient, clipping, optimizer, with the minibatches of the preset.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from rnnsmt.networks.devices import DeviceSetup, set_up_device
from rnnsmt.networks.training import Training
from rnnsmt.rnn.model import RNNEncoderDecoder, loss_and_gradient
from rnnsmt.rnn.pairs import Pairs
from rnnsmt.rnn.settings import PRESETS, RnnSettings, RnnSizes
from rnnsmt.rnn.training import PairBatches, RnnTask, pair_tensors

Minibatch = tuple[Tensor, ...]
"""Source, target and lengths, as ``pair_tensors`` returns them."""

Step = Callable[[Tensor, Tensor, Tensor], object]


class WithGRU(nn.Module):
    """Encoder and decoder of the same sizes from ``torch.nn.GRU``."""

    def __init__(self, sizes: RnnSizes) -> None:
        super().__init__()
        E, H, M = sizes.embedding, sizes.hidden, sizes.maxout
        self.x, self.y = nn.Embedding(sizes.source_vocabulary, E), nn.Embedding(sizes.target_vocabulary, E)
        self.encoder, self.decoder = nn.GRU(E, H), nn.GRU(E + H, H)
        self.first, self.readout = nn.Linear(H, H), nn.Linear(H + H + E, 2 * M)
        self.low_rank, self.output = nn.Linear(M, E, bias=False), nn.Linear(E, sizes.target_vocabulary)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        c = self.encoder(self.x(source))[1]
        s_0 = torch.tanh(self.first(c))
        y = self.y(target[:-1])
        states = torch.cat([s_0, self.decoder(torch.cat([y, c.expand(len(y), -1, -1)], 2), s_0)[0]])
        before = torch.cat([torch.zeros_like(y[:1]), y])
        a = self.readout(torch.cat([states, c.expand(len(states), -1, -1), before], 2))
        scores = self.output(self.low_rank(a.unflatten(2, (-1, 2)).amax(3)))
        return nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten(), reduction="sum")


def backward(model: nn.Module, loss: Callable[[Tensor, Tensor], Tensor]) -> Step:
    def step(source: Tensor, target: Tensor, lengths: Tensor) -> object:
        model.zero_grad(set_to_none=True)
        return loss(source, target).backward()

    return step


def by_autograd(model: RNNEncoderDecoder) -> Callable[[Tensor, Tensor], Tensor]:
    def loss(source: Tensor, target: Tensor) -> Tensor:
        lengths = [torch.full((side.shape[1],), len(side), device=side.device) for side in (source, target)]
        return -model.log_probability(source.t(), lengths[0], target.t(), lengths[1]).sum()

    return loss


def versions(sizes: RnnSizes, setup: DeviceSetup) -> Iterator[tuple[str, Step]]:
    """Yield the name and the step of each version of loss and gradient."""
    model = RNNEncoderDecoder(sizes, 1, 0.1).to(setup.device)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    yield "by hand, float32", partial(loss_and_gradient, model)
    if setup.device.type == "cpu":
        yield "by hand, bfloat16 factors", partial(loss_and_gradient, model, dtype=torch.bfloat16)
    yield "autograd", backward(model, by_autograd(model))
    gru = WithGRU(sizes).to(setup.device)
    yield "torch.nn.GRU, float32", backward(gru, gru)
    with torch.autocast(setup.device.type, torch.bfloat16):
        yield "torch.nn.GRU, bfloat16 autocast", backward(gru, gru)


def clock(setup: DeviceSetup) -> float:
    """Return CPU seconds; on a GPU, wall seconds after synchronisation."""
    if setup.device.type == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def pairs_per_second(step: Callable[..., object], batches: list[Minibatch], setup: DeviceSetup) -> float:
    for batch in batches:
        step(*batch)
    begun = clock(setup)
    for batch in batches:
        step(*batch)
    return sum(batch[0].shape[1] for batch in batches) / (clock(setup) - begun)


def cost(sizes: RnnSizes, batches: list[Minibatch]) -> tuple[float, float]:
    """Return the floating-point operations and the minimum number of bytes moved of an update, on average.

    Operations: two for each product of a weight and an input, three times (forward, and two products backward). Bytes:
    each parameter is read once forward and once backward; its gradient is written, read for the norm and scaled in
    place; Adadelta reads and writes the parameter and two averages and reads the gradient: 13 numbers of 4 bytes.
    """
    E, H, M, V = sizes.embedding, sizes.hidden, sizes.maxout, sizes.target_vocabulary
    step = 3 * E * H + 3 * H * H
    total = 0
    for source, target, _ in batches:
        (N, B), T = source.shape, len(target)
        once = 4 * H * H + 2 * M * H
        total += B * (step * (N + T - 1) + once + T * (2 * M * H + M * E + E * V) + (T - 1) * 2 * M * E)
    return 6 * total / len(batches), 13 * 4 * sizes.count()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", required=True, help="file of phrase pairs")
    parser.add_argument("--vocabularies", required=True, help="directory written by `rnnsmt networks prepare`")
    parser.add_argument("--preset", choices=tuple(PRESETS), default="small", help="preset of the network")
    parser.add_argument("--batches", type=int, default=40, help="number of minibatches")
    parser.add_argument("--threads", type=int, default=1, help="number of threads")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    args = parser.parse_args()
    settings: RnnSettings = replace(PRESETS[args.preset], updates=args.batches * 2)
    setup = set_up_device(args.device, args.threads, settings.precision)
    pairs = Pairs.open(args.pairs, args.vocabularies)
    stream = PairBatches(pairs, settings.batch, 1, torch.zeros(0, dtype=torch.int64).numpy())
    batches = [pair_tensors(pairs, next(stream), setup.device) for _ in range(args.batches)]
    sizes = settings.sizes(*(len(vocabulary) for vocabulary in pairs.vocabularies))
    operations, moved = cost(sizes, batches)
    print(f"{sizes}, minibatches of {settings.batch}, {sizes.count():,} parameters")
    print(f"an update: {operations / 1e9:.1f} GFLOP, at least {moved / 1e6:.0f} MB moved")
    for name, step in versions(sizes, setup):
        rate = pairs_per_second(step, batches, setup)
        print(f"{name:34} {rate:8,.0f} pairs/s {rate / settings.batch * operations / 1e9:8,.0f} GFLOP/s", flush=True)
    trainer = Training(RnnTask(pairs, settings, 1, setup))
    for _ in range(args.batches):
        trainer.step()
    seen, begun = trainer.seen, clock(setup)
    for _ in range(args.batches):
        trainer.step()
    seconds = clock(setup) - begun
    print(f"{'whole updates of rnn train':34} {(trainer.seen - seen) / seconds:8,.0f} pairs/s", end=" ")
    print(f"{args.batches / seconds:.1f} updates/s")


if __name__ == "__main__":
    main()
