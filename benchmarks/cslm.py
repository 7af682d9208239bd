"""Measure the speed of the CSLM or the joint model: n-grams per CPU second in training, and in scoring for the CSLM.

    python benchmarks/cslm.py --text DIR [--preset small] [--model FILE] [--settings hidden_2=128 ...] [--threads 1]
    python benchmarks/cslm.py --examples DIR [--preset small] [--settings hidden_2=128 ...] [--threads 1]

DIR is the directory written by ``rnnsmt networks prepare`` for the network. Training: whole updates (minibatch,
gradient, clipping, Adam), with the gradient by hand and the settings of the preset, and, with all classes and without
dropout and penalty, by hand, by autograd over the same equations, and in plain PyTorch (modules, cross entropy,
torch.optim.Adam). Scoring: all words of the first sentences of the text with their distinct contexts, as in ``cslm
rescore``, and several words per context, as in the search. If --model is missing, the network has random parameters.
The versions are run in turn, so that the load of the machine affects all of them; the best of several rounds is
printed.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from rnnsmt.cslm.model import FORMAT, cslm_task
from rnnsmt.cslm.scorer import CslmScorer
from rnnsmt.cslm.settings import PRESETS, CslmSettings
from rnnsmt.cslm.text import Text, contexts_at
from rnnsmt.networks.devices import multiplies_bfloat16, set_up_device
from rnnsmt.networks.feed_forward import FeedForwardLM, TrainedNetwork, save_model
from rnnsmt.networks.feed_forward_training import FeedForwardTask
from rnnsmt.networks.settings import FeedForwardSettings
from rnnsmt.networks.training import Training
from rnnsmt.nnjm.examples import Examples
from rnnsmt.nnjm.settings import PRESETS as JOINT_PRESETS
from rnnsmt.nnjm.settings import JointSettings
from rnnsmt.nnjm.training import nnjm_task

SENTENCES = 1000
WORDS = 20
"""Number of words scored per context, as in the search."""


BY_HAND, AUTOGRAD, PLAIN = "by hand", "autograd", "plain PyTorch"


def versions_of(settings: FeedForwardSettings) -> dict[str, tuple[str, FeedForwardSettings]]:
    """Return the implementation and the settings of the rows by name; rows of several implementations are the last."""
    exact = replace(settings, dropout=0.0, sampled_classes=0, self_normalised=0.0)
    return {
        BY_HAND: (BY_HAND, settings),
        f"{BY_HAND}, no dropout": (BY_HAND, replace(settings, dropout=0.0)),
        f"{BY_HAND}, self-normalised": (BY_HAND, replace(settings, self_normalised=0.1)),
        **{f"{kind}, all classes, no dropout or penalty": (kind, exact) for kind in (BY_HAND, AUTOGRAD, PLAIN)},
    }


def by_autograd(reduced: bool, model: FeedForwardLM, contexts: Tensor, words: Tensor, _: Tensor) -> Tensor:
    """Return the same sums and gradient by autograd, without dropout and penalty; reduced: autocast to bfloat16."""
    for parameter in model.parameters():
        assert parameter.grad is not None
        parameter.grad.zero_()
    with torch.autocast("cpu", torch.bfloat16, enabled=reduced):
        units = model.logits(contexts.t())
    log_sums = torch.logsumexp(units.float(), 1)
    loss = (log_sums - units.float().gather(1, words[:, None])[:, 0]).sum()
    loss.backward()
    return torch.stack([loss, (log_sums**2).sum()]).detach().double()


def best(work: dict[str, Callable[[], int]], rounds: int) -> dict[str, float]:
    """Return the units per CPU second of each version; a version returns the number of units it processed."""
    found = dict.fromkeys(work, 0.0)
    for name in [*work, *list(work) * rounds]:
        before = time.process_time()
        units = work[name]()
        found[name] = max(found[name], units / (time.process_time() - before))
    return found


def training(data: Text | Examples, settings: FeedForwardSettings, threads: int, rounds: int) -> dict[str, float]:
    torch.set_num_threads(threads)
    work: dict[str, Callable[[], int]] = {}
    for precision in ("reduced", "float32"):
        setup = set_up_device("cpu", 1, precision)
        for name, (kind, changed) in versions_of(settings).items():
            if isinstance(data, Examples):
                assert isinstance(changed, JointSettings)
                task = nnjm_task(data, changed, 1, setup)
            else:
                assert isinstance(changed, CslmSettings)
                task = cslm_task(data, changed, 1, setup)
            trainer = Training(task, threads)
            if kind == AUTOGRAD:
                trainer.loss_and_gradient = partial(by_autograd, precision == "reduced")  # type: ignore[method-assign]
            if kind == PLAIN:
                work[f"{name}, {precision}"] = partial(Plain(task, precision == "reduced").updates, 8)
            else:
                work[f"{name}, {precision}"] = partial(updates, trainer, 8)
    return best(work, rounds)


class Plain:
    """Network of the same sizes in plain PyTorch: modules, cross entropy, Adam."""

    def __init__(self, task: FeedForwardTask, reduced: bool) -> None:
        sizes = task.model.sizes
        unit = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh}[sizes.activation]
        self.network = torch.nn.Sequential(
            torch.nn.Embedding(sizes.inputs, sizes.projection),
            torch.nn.Flatten(),
            torch.nn.Linear(sizes.context * sizes.projection, sizes.hidden_1),
            unit(),
            torch.nn.Linear(sizes.hidden_1, sizes.hidden_2),
            unit(),
            torch.nn.Linear(sizes.hidden_2, sizes.vocabulary),
        )
        self.task, self.reduced = task, reduced
        self.optimizer = torch.optim.Adam(self.network.parameters(), task.settings.learning_rate)

    def updates(self, number: int) -> int:
        """Perform updates with all classes, without dropout and penalty; return the number of n-grams."""
        seen = 0
        for _ in range(number):
            ngrams = torch.from_numpy(self.task.ngrams.rows(next(self.task.batches)))
            self.optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=self.reduced):
                units = self.network(ngrams[:, :-1])
            loss = torch.nn.functional.cross_entropy(units.float(), ngrams[:, -1])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.task.settings.clip)
            self.optimizer.step()
            seen += len(ngrams)
        return seen


def updates(trainer: Training, number: int) -> int:
    before = trainer.seen
    for _ in range(number):
        trainer.step()
    return trainer.seen - before


def scoring(text: Text, model: str, threads: int, rounds: int) -> dict[str, float]:
    versions = {
        "exact": CslmScorer(model, "cpu", threads, normalize=True),
        "bare output unit": CslmScorer(model, "cpu", threads, normalize=False),
    }
    scorer = versions["bare output unit"]
    number = int(text.offsets[min(SENTENCES, len(text.offsets) - 1)])
    words = np.asarray(text.words[:number])
    contexts = contexts_at(words, np.arange(number), scorer.order - 1, scorer.end).astype(np.int32)
    distinct, owner = np.unique(contexts, axis=0, return_inverse=True)
    order = np.argsort(owner.reshape(-1), kind="stable")
    rows = owner.reshape(-1)[order].astype(np.int32)
    several = np.repeat(np.arange(len(distinct), dtype=np.int32), WORDS)
    asked = np.resize(words, len(several))
    print(f"{number:,} n-grams with {len(distinct):,} distinct contexts; {len(several):,} with {WORDS} words a context")
    work: dict[str, Callable[[], int]] = {}
    for name, version in versions.items():
        work[f"{name}: text"] = partial(scored, version, distinct, rows, words[order])
        work[f"{name}: {WORDS} words a context"] = partial(scored, version, distinct, several, asked)
    return best(work, rounds)


def scored(scorer: CslmScorer, contexts: np.ndarray, owner: np.ndarray, words: np.ndarray) -> int:
    return len(scorer.score(contexts, owner, words))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = parser.add_mutually_exclusive_group(required=True)
    data.add_argument("--text", help="directory written by `rnnsmt networks prepare --network cslm`")
    data.add_argument("--examples", help="directory written by `rnnsmt networks prepare --network nnjm`")
    parser.add_argument("--preset", choices=tuple(PRESETS), default="small", help="preset of the network")
    parser.add_argument(
        "--settings", nargs="*", default=[], metavar="NAME=N", help="override preset settings (integers)"
    )
    parser.add_argument("--model", help="network to score with; default: random parameters")
    parser.add_argument("--threads", type=int, default=1, help="number of threads")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds; the best is printed")
    args = parser.parse_args()
    given = {name: int(value) for name, value in (setting.split("=") for setting in args.settings)}
    presets: dict[str, FeedForwardSettings] = dict(JOINT_PRESETS) if args.examples else dict(PRESETS)
    settings = replace(presets[args.preset], **given)  # type: ignore[arg-type]
    if not multiplies_bfloat16():
        print("this processor does not multiply bfloat16: rows *by hand, reduced* use float32 factors")
    trained: Text | Examples
    if args.examples:
        trained = Examples.open(args.examples)
    else:
        trained = Text.open(args.text)
        print_scoring(trained, settings, args)
    for name, rate in training(trained, settings, args.threads, args.rounds).items():
        print(f"training, {name}: {rate:,.0f} n-grams per CPU second")


def print_scoring(text: Text, settings: FeedForwardSettings, args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = args.model or str(Path(directory) / "random.safetensors")
        if not args.model:
            model = FeedForwardLM(settings.sizes(len(text.vocabulary)), 1, 0.0)
            save_model(path, FORMAT, TrainedNetwork(model, text.vocabulary, False, 0, {}))
        for name, rate in scoring(text, path, args.threads, args.rounds).items():
            print(f"scoring, {name}: {rate:,.0f} n-grams per CPU second")


if __name__ == "__main__":
    main()
