"""Measure the speed of the LSTM encoder-decoder against plain versions: training, scoring n-best lists, beam search.

    python benchmarks/seq2seq_speed.py training --sentences DIR [--updates 40]
    python benchmarks/seq2seq_speed.py scoring --model MODEL --source TEXT --nbest LISTS [--lists 12] [--alone 400]
    python benchmarks/seq2seq_speed.py search --model MODEL --source TEXT [--sentences 256] [--beam 12]

DIR: directory written by `seq2seq prepare`. LISTS: n-best lists of TEXT written by `search decode --nbest 1000`. All
times are CPU seconds of one thread. The versions are run in turn, ``--rounds`` times, and the median of each is
printed. `scoring` and `search` also compare the results of the versions.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from itertools import groupby
from statistics import median

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout

from rnnsmt.base.io import read_lines
from rnnsmt.networks.data import NULL, split
from rnnsmt.networks.devices import set_up_device
from rnnsmt.seq2seq.decoding import beam_search
from rnnsmt.seq2seq.model import load_ensemble
from rnnsmt.seq2seq.sentences import SentencePairs, as_read, padded
from rnnsmt.seq2seq.settings import SMALL, Seq2SeqSizes
from rnnsmt.seq2seq.training import Seq2SeqTrainer
from rnnsmt.seq2seq.translation_scores import Scorer


def in_turns(versions: dict[str, Callable[[], float]], rounds: int, unit: str) -> None:
    """Print the units per CPU second of each version and the ratio to the first; a call returns its number of units."""
    rates: dict[str, list[float]] = {name: [] for name in versions}
    for number in range(rounds + 1):
        for name, version in versions.items():
            began = time.process_time()
            done = version()
            if number:  # the first round compiles and fills caches
                rates[name].append(done / (time.process_time() - began))
    first = next(iter(rates.values()))
    for name, found in rates.items():
        ratio = median(a / b for a, b in zip(found, first, strict=True))
        print(f"| {name} | {median(found):,.1f} {unit} | {ratio:.2f} |", flush=True)


class Plain(nn.Module):
    """Encoder and decoder built from the modules of torch."""

    def __init__(self, sizes: Seq2SeqSizes, rate: float) -> None:
        super().__init__()
        self.source = nn.Embedding(sizes.source_vocabulary, sizes.embedding, padding_idx=NULL)
        self.target = nn.Embedding(sizes.target_vocabulary, sizes.embedding, padding_idx=NULL)
        self.encoder = nn.LSTM(sizes.embedding, sizes.hidden, sizes.layers, dropout=rate)
        self.decoder = nn.LSTM(sizes.embedding, sizes.hidden, sizes.layers, dropout=rate)
        self.output = nn.Linear(sizes.hidden, sizes.target_vocabulary)
        self.rate = rate

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the mean loss per word. source: [N, B], padded in front; target: [T, B], padded behind; padding 0."""
        _, state = self.encoder(dropout(self.source(source), self.rate))
        first = torch.full_like(target[:1], self.output.out_features - 1)
        read = dropout(self.target(torch.cat([first, target[:-1]])), self.rate)
        g, _ = self.decoder(read, state)
        return cross_entropy(self.output(dropout(g, self.rate)).flatten(0, 1), target.flatten(), ignore_index=NULL)


def training(args: argparse.Namespace) -> None:
    """Measure words of the target side, including EOS, per CPU second of training."""
    setup = set_up_device("cpu", 1, SMALL.precision)
    pairs = SentencePairs.open(args.sentences)
    trainers = {}
    for classes in (SMALL.sampled_classes, 0):
        settings = SMALL.__class__(**{**SMALL.as_dict(), "sampled_classes": classes})
        trainers[f"seq2seq train, {classes or 'all'} classes"] = Seq2SeqTrainer(pairs, settings, 1, setup)
    plain = Plain(SMALL.sizes(*map(len, pairs.vocabularies)), SMALL.dropout)
    adam = torch.optim.Adam(plain.parameters(), SMALL.learning_rate)
    rng = np.random.default_rng(1)

    def ours(trainer: Seq2SeqTrainer) -> float:
        before = trainer.sums.words
        for _ in range(args.updates):
            trainer.step()
        return trainer.sums.words - before

    def theirs() -> float:
        words = 0
        for _ in range(args.updates):
            index = rng.integers(0, len(pairs), SMALL.batch)
            source, target = ([side.phrase(i) for i in index] for side in pairs.sides)
            # padding in front of the source, so that the last state is that of the last word
            reads = torch.from_numpy(padded([ids[::-1] for ids in source])).flip(0)
            adam.zero_grad()
            plain(reads, torch.from_numpy(padded(target))).backward()
            nn.utils.clip_grad_norm_(plain.parameters(), SMALL.clip)
            adam.step()
            words += sum(map(len, target))
        return words

    versions: dict[str, Callable[[], float]] = {"plain torch, random batches, all classes": theirs}
    versions |= {name: partial(ours, trainer) for name, trainer in trainers.items()}
    in_turns(versions, args.rounds, "words/s")


def scoring(args: argparse.Namespace) -> None:
    """Measure distinct translations scored per CPU second."""
    (one,) = ensemble = load_ensemble([args.model])
    text = list(read_lines(args.source))
    entries = (line.split(" ||| ", 2) for line in read_lines(args.nbest))
    sources: list[np.ndarray] = []
    lists: list[list[np.ndarray]] = []
    for number, group in groupby(entries, key=lambda fields: int(fields[0])):
        if number % args.every == 0 and len(lists) < args.lists:
            sources.append(one.source.ids(split(text[number]), eos=True))
            lists.append([one.target.ids(split(line), eos=True) for line in dict.fromkeys(f[1] for f in group)])
    number = sum(map(len, lists))
    beginnings = sum(len({tuple(ids[:k]) for ids in found for k in range(len(ids))}) for found in lists)
    words = sum(len(ids) for found in lists for ids in found)
    print(f"{len(lists)} lists, {number:,} translations, {words:,} words with EOS, {beginnings:,} different beginnings")
    scorer = Scorer(ensemble)
    every = [(i, k) for i, found in enumerate(lists) for k in range(len(found))]
    drawn = [every[k] for k in np.random.default_rng(1).choice(len(every), min(args.alone, len(every)), replace=False)]
    results: dict[str, list[np.ndarray]] = {}
    reads = [torch.from_numpy(padded([as_read(source, one.source_order)])) for source in sources]

    def together() -> float:
        results["together"] = scorer.score(sources, lists)
        return number

    def list_by_list() -> float:
        results["by list"] = [scorer.score([s], [found])[0] for s, found in zip(sources, lists, strict=True)]
        return number

    @torch.inference_mode()
    def padded_lists() -> float:
        results["padded"] = [
            one.model.log_probability(read.expand(-1, len(found)), torch.from_numpy(padded(found))).numpy()
            for read, found in zip(reads, lists, strict=True)
        ]
        return number

    @torch.inference_mode()
    def alone() -> float:
        found = [one.model.log_probability(reads[i], torch.from_numpy(padded([lists[i][k]])))[0] for i, k in drawn]
        results["alone"] = [torch.stack(found).numpy()]
        return len(drawn)

    versions: dict[str, Callable[[], float]] = {"one by one": alone, "a padded batch of a list": padded_lists}
    versions |= {"Scorer, list by list": list_by_list, "Scorer, lists together": together}
    in_turns(versions, args.rounds, "translations/s")
    ours = np.array([results["together"][i][k] for i, k in drawn])
    double = one.model.double()
    with torch.inference_mode():
        exact = torch.stack(
            [double.log_probability(reads[i], torch.from_numpy(padded([lists[i][k]])))[0] for i, k in drawn]
        ).numpy()
    print(f"Scorer and one by one differ by at most {abs(ours - results['alone'][0]).max():.1e}, ", end="")
    print(f"from float64 by {abs(ours - exact).max():.1e} and {abs(results['alone'][0] - exact).max():.1e}; ", end="")
    same = all(map(np.array_equal, results["together"], results["by list"]))
    print(f"lists together and list by list {'have the same bits' if same else 'differ'}")


def search(args: argparse.Namespace) -> None:
    """Measure sentences translated per CPU second."""
    (one,) = ensemble = load_ensemble([args.model])
    sources = [one.source.ids(split(line), eos=True) for line in read_lines(args.source) if split(line)]
    sources = sorted(sources[: args.sentences], key=len)
    print(f"{len(sources)} sentences, {sum(map(len, sources)) / len(sources) - 1:.2f} words each")
    found: dict[int, list[list[int]]] = {}

    def run(batch: int) -> float:
        own = sources[:: args.every_alone] if batch == 1 else sources
        found[batch] = []
        for begin in range(0, len(own), batch):
            found[batch] += [best[0].words for best in beam_search(ensemble, own[begin : begin + batch], args.beam)]
        return len(own)

    in_turns({f"batches of {batch}": partial(run, batch) for batch in args.batches}, args.rounds, "/s")
    last = found[args.batches[-1]]
    for batch, translations in found.items():
        own = last[:: args.every_alone] if batch == 1 else last
        same = sum(a == b for a, b in zip(translations, own, strict=True))
        print(f"batches of {batch}: {same} of {len(own)} translations as in batches of {args.batches[-1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    for function in (training, scoring, search):
        part = parts.add_parser(function.__name__)
        part.set_defaults(run=function)
        part.add_argument("--rounds", type=int, default=3, help="number of rounds; the median is printed")
        if function is training:
            part.add_argument(
                "--sentences", required=True, metavar="DIR", help="directory written by `seq2seq prepare`"
            )
            part.add_argument("--updates", type=int, default=20, help="number of updates per round")
            continue
        part.add_argument("--model", required=True, help="model written by `seq2seq train`")
        part.add_argument("--source", required=True, help="source text")
        if function is scoring:
            part.add_argument("--nbest", required=True, help="n-best lists of the source text")
            part.add_argument("--lists", type=int, default=12, help="number of n-best lists")
            part.add_argument("--every", type=int, default=1, help="use the lists of every N-th sentence only")
            part.add_argument("--alone", type=int, default=400, help="number of translations scored one by one")
        else:
            part.add_argument("--sentences", type=int, default=256, help="number of sentences")
            part.add_argument("--beam", type=int, default=12, help="beam size")
            part.add_argument("--batches", type=int, nargs="+", default=[1, 16, 64, 256], help="batch sizes")
            part.add_argument("--every-alone", type=int, default=8, help="use every N-th sentence for batches of 1")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.run(args)


if __name__ == "__main__":
    main()
