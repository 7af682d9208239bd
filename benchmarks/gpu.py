"""Measure training updates, scores of phrase pairs, and n-grams of the search on a GPU.

    python benchmarks/gpu.py --pairs FILE --vocabularies DIR --text DIR --examples DIR --sentences DIR [--presets small]
        [--updates 500]

The phrase pairs are written by ``phrases extract --output-pairs``, the directories by ``networks prepare``; networks
whose data are not given are skipped. All networks are untrained. Times are wall-clock times of one process after
synchronisation. Printed are:

* milliseconds per training update (median, minimum and maximum of ten blocks of ``--updates`` / 10 updates; a tenth of
  them for the LSTM with preset ``paper``), with CUDA graphs and without them; peak memory that torch allocated;
* phrase pairs scored per second by ``phrases column``, and the largest difference from the scores of the CPU for the
  first 2,000 pairs;
* n-grams per second from the CSLM and the joint model, in calls of 4,096 random contexts as in the search;
* for preset ``paper``, the difference of the gradients of three minibatches from those on the CPU in float64, relative
  to their norm (takes minutes of CPU time).
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import median

import numpy as np
import torch

from rnnsmt.cslm.model import cslm_task
from rnnsmt.cslm.settings import PRESETS as CSLM_PRESETS
from rnnsmt.cslm.text import Text
from rnnsmt.networks.devices import DeviceSetup, full_precision, set_up_device
from rnnsmt.networks.feed_forward import FeedForwardLM
from rnnsmt.networks.ngram_scorer import CudaEngine
from rnnsmt.networks.training import Training
from rnnsmt.nnjm.examples import Examples
from rnnsmt.nnjm.settings import PRESETS as NNJM_PRESETS
from rnnsmt.nnjm.training import nnjm_task
from rnnsmt.rnn.pairs import Pairs
from rnnsmt.rnn.phrase_scores import score_range
from rnnsmt.rnn.settings import PRESETS as RNN_PRESETS
from rnnsmt.rnn.training import RnnTask
from rnnsmt.seq2seq.sentences import SentencePairs
from rnnsmt.seq2seq.settings import PRESETS as SEQ2SEQ_PRESETS
from rnnsmt.seq2seq.training import Seq2SeqTask

MakeTrainer = Callable[[DeviceSetup], Training]

CONTEXTS = 4096
"""Number of contexts in a call of the search."""


def trainers(args: argparse.Namespace, preset: str) -> Iterator[tuple[str, str, MakeTrainer]]:
    """Yield the name, the precision and the constructor of each network with a preset."""
    if args.pairs:
        pairs, rnn = Pairs.open(args.pairs, args.vocabularies), RNN_PRESETS[preset]
        yield "RNN Encoder-Decoder", rnn.precision, lambda setup: Training(RnnTask(pairs, rnn, 1, setup))
        if preset == "paper":
            reduced = replace(rnn, precision="reduced")
            yield "the same, TF32", reduced.precision, lambda setup: Training(RnnTask(pairs, reduced, 1, setup))
    if args.text:
        text, cslm = Text.open(args.text), CSLM_PRESETS[preset]
        yield "CSLM", cslm.precision, lambda setup: Training(cslm_task(text, cslm, 1, setup))
    if args.examples:
        examples, nnjm = Examples.open(args.examples), NNJM_PRESETS[preset]
        yield "joint model", nnjm.precision, lambda setup: Training(nnjm_task(examples, nnjm, 1, setup))
    if args.sentences:
        sentences, seq2seq = SentencePairs.open(args.sentences), SEQ2SEQ_PRESETS[preset]
        yield (
            "LSTM Encoder-Decoder",
            seq2seq.precision,
            lambda setup: Training(Seq2SeqTask(sentences, seq2seq, 1, setup)),
        )


def milliseconds(trainer: Training, updates: int) -> tuple[float, float, float]:
    """Return the median, minimum and maximum of the milliseconds per update over ten blocks of updates."""
    found = []
    for _ in range(10):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(max(updates // 10, 1)):
            trainer.step()
        torch.cuda.synchronize()
        found.append(1000 * (time.perf_counter() - begun) / max(updates // 10, 1))
    return median(found), min(found), max(found)


def updates(args: argparse.Namespace) -> None:
    """Print a row for each network and preset."""
    print("| network | preset | batch | parameters | ms per update | range | without graphs | examples/s | MB |")
    print("|---|---|---:|---:|---:|---|---:|---:|---:|")
    for preset in args.presets:
        for name, precision, make in trainers(args, preset):
            torch.cuda.empty_cache()  # the memory of the previous network and its graphs
            torch.cuda.reset_peak_memory_stats()
            trainer = make(set_up_device("cuda", 1, precision))
            number = (
                args.updates if preset == "small" or name != "LSTM Encoder-Decoder" else max(args.updates // 10, 20)
            )
            for _ in range(number):  # captures the graphs
                trainer.step()
            found = milliseconds(trainer, number)
            memory = torch.cuda.max_memory_allocated() / 1e6
            without = ""
            if trainer.graphed is not None:
                failed = "" if trainer.graphed.works else " (graphs failed)"
                trainer.graphed = None
                without = f"{milliseconds(trainer, number)[0]:.2f}{failed}"
            rate = 1000 * trainer.task.settings.batch / found[0]
            print(
                f"| {name} | {preset} | {trainer.task.settings.batch:,} | {len(trainer.flat):,} | {found[0]:.2f} | "
                f"{found[1]:.2f} to {found[2]:.2f} | {without} | {rate:,.0f} | {memory:,.0f} |",
                flush=True,
            )
            del trainer  # before the next one is created


def gradients(args: argparse.Namespace) -> None:
    """Print the largest difference of the gradient of three minibatches from that in float64 on the CPU."""
    print("\n| gradient of a minibatch, preset `paper` | largest difference from float64 on the CPU |\n|---|---:|")
    for name, precision, make in trainers(args, "paper"):
        if name == "LSTM Encoder-Decoder":  # takes minutes on a CPU
            continue
        cpu = make(set_up_device("cpu", os.cpu_count() or 1))
        gpu = make(set_up_device("cuda", 1, precision))  # last, because it sets the precision of this process
        cpu.task.model.double()
        for parameter in cpu.task.model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        worst = 0.0
        for _ in range(3):
            index = next(gpu.task.batches)
            gpu.gradient(gpu.minibatch(index))
            cpu.loss_and_gradient(cpu.task.model, *cpu.minibatch(index))
            exact = torch.cat([p.grad.flatten() for p in cpu.task.model.parameters() if p.grad is not None])
            assert gpu.flat.grad is not None
            difference = torch.linalg.vector_norm(gpu.flat.grad.cpu().double() - exact)
            worst = max(worst, float(difference / torch.linalg.vector_norm(exact)))
        print(f"| {name} | {worst:.1e} |", flush=True)


def phrase_pairs(args: argparse.Namespace) -> None:
    """Print the speed of scoring phrase pairs."""
    pairs = Pairs.open(args.pairs, args.vocabularies)
    print("\n| scoring phrase pairs | pairs/s | largest difference from the CPU |\n|---|---:|---:|")
    for preset in args.presets:
        setup = set_up_device("cuda", 1)
        model = RnnTask(pairs, RNN_PRESETS[preset], 1, setup).model.requires_grad_(False)
        end = min(400_000, len(pairs))
        score_range(model, pairs, 0, min(20_000, end), setup.device)
        torch.cuda.synchronize()
        begun = time.perf_counter()
        scores = score_range(model, pairs, 0, end, setup.device)
        rate = end / (time.perf_counter() - begun)
        some = min(2000, end)
        exact = score_range(model.cpu(), pairs, 0, some, torch.device("cpu"))
        print(f"| {preset} | {rate:,.0f} | {np.abs(scores[:some] - exact).max():.1e} |", flush=True)


def ngrams(args: argparse.Namespace) -> None:
    """Print the speed of scoring n-grams of the search."""
    print("\n| n-grams of the search, 4,096 contexts in a call | ms per call | n-grams/s |\n|---|---:|---:|")
    for preset in args.presets:
        for name, _, make in trainers(args, preset):
            trainer = make(set_up_device("cuda", 1))
            model = trainer.task.model
            if not isinstance(model, FeedForwardLM):
                continue
            model.requires_grad_(False)
            rng = np.random.default_rng(1)
            ranges = model.sizes.ranges
            contexts = np.stack([rng.integers(r.start, r.stop, CONTEXTS) for r in ranges], 1).astype(np.int32)
            owner = np.arange(CONTEXTS, dtype=np.int32)
            words = rng.integers(0, 1000, CONTEXTS).astype(np.int32)
            for kind, normalize in (("exact softmax", True), ("self-normalised", False)):
                with full_precision():
                    engine = CudaEngine(model, normalize)
                    for _ in range(20):
                        engine.score(contexts, owner, words)
                    begun = time.perf_counter()
                    for _ in range(200):
                        engine.score(contexts, owner, words)
                    each = (time.perf_counter() - begun) / 200
                print(f"| {name}, {preset}, {kind} | {1000 * each:.2f} | {CONTEXTS / each:,.0f} |", flush=True)
                del engine
            torch.cuda.empty_cache()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", help="file of phrase pairs")
    parser.add_argument("--vocabularies", help="directory of their vocabularies")
    parser.add_argument("--text", help="directory of the training text of the CSLM")
    parser.add_argument("--examples", help="directory of the examples of the joint model")
    parser.add_argument("--sentences", help="directory of sentence pairs")
    parser.add_argument("--presets", nargs="+", choices=tuple(RNN_PRESETS), default=["paper", "small"], help="presets")
    parser.add_argument("--updates", type=int, default=500, help="number of updates that are timed")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("torch finds no GPU")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}\n")
    updates(args)
    if args.pairs:
        phrase_pairs(args)
    ngrams(args)
    if "paper" in args.presets:
        gradients(args)


if __name__ == "__main__":
    main()
