"""Measure the effect of proposed phrases (`rnnsmt rnn propose`, `phrases fill-up`) on translations.

The script decodes a text with two systems tuned by benchmarks/mert.py of version 1.0.0, the second with proposals, with
the weights of each seed. It prints BLEU of both, the number of proposed phrases in the best derivations, and BLEU of
both on the sentences in which the second system uses a proposal and on the others, with examples.

    python benchmarks/proposals.py --without A/moses.ini A/work/mira --with B/moses.ini B/work/mira \\
        --proposals proposals.gz --source devtest.en --reference devtest.fr --seeds 1 2 3
"""

import argparse
import random
import statistics
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.io import read_json
from rnnsmt.bleu.batch import BatchBleu
from rnnsmt.bleu.multi_bleu import bleu_of, read_texts
from rnnsmt.evaluation.comparison import sentence_gains
from rnnsmt.evaluation.significance import compare
from rnnsmt.moses.ini import MosesIni
from rnnsmt.moses.nbest import phrase_pairs
from rnnsmt.phrases.table import read_phrase_table
from rnnsmt.search import SearchOptions, decode, load_model
from rnnsmt.tuning.runs import ModelDecoder


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without", nargs=2, required=True, metavar=("INI", "DIR"), help="ini file and tuned variant")
    parser.add_argument(
        "--with", nargs=2, required=True, metavar=("INI", "DIR"), dest="filled", help="the same, with proposals"
    )
    parser.add_argument("--proposals", required=True, help="phrase table written by `rnnsmt rnn propose`")
    parser.add_argument("--source", required=True, help="input text")
    parser.add_argument("--reference", required=True, help="reference translation")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], help="seeds of the tuned runs")
    parser.add_argument("--examples", type=int, default=10, help="maximum number of examples")
    return parser.parse_args()


class Output(NamedTuple):
    """The translations of a text by a system, for each seed.

    texts: the translations. phrases: (source phrase, target phrase) of every derivation. statistics: [R, S, 9].
    """

    texts: list[list[str]]
    phrases: list[list[list[tuple[str, str]]]]
    statistics: NDArray[np.int64]


def translate(ini_path: str, directory: str, source: list[str], bleu: BatchBleu, seeds: list[int]) -> Output:
    """Decode with the best weights of each seed."""
    ini, options = MosesIni.read(ini_path), SearchOptions(1000, 1000)
    model = load_model(ini, source)
    decoder = ModelDecoder(ini, source, model, options)
    texts, phrases = [], []
    for seed in seeds:
        iterations: list[dict[str, Any]] = read_json(Path(directory) / str(seed) / "checkpoint.json")["iterations"]
        weights = max(iterations, key=lambda iteration: iteration["dev_bleu"])["weights"]
        found = decode(model, source, decoder.full(np.array(weights)), options)
        texts.append([one.text for one in found])
        phrases.append([phrase_pairs(line, one.text, one.phrases) for line, one in zip(source, found, strict=True)])
    return Output(texts, phrases, np.stack([bleu.statistics([[text] for text in run]) for run in texts]))


def mean_bleu(statistics_of: NDArray[np.int64], chosen: list[NDArray[np.bool_]]) -> float:
    """Return the BLEU of the chosen sentences, averaged over the runs."""
    return statistics.fmean(
        bleu_of(run[rows].sum(axis=0)).bleu for run, rows in zip(statistics_of, chosen, strict=True)
    )


def main() -> None:
    """Decode with both systems and print the comparison."""
    args = arguments()
    source, references = read_texts(args.source, [args.reference])
    bleu = BatchBleu(references)
    proposed = {(entry.source, entry.target): entry.scores[-1] for entry in read_phrase_table(args.proposals)}
    plain, filled = (
        translate(ini, directory, source, bleu, args.seeds) for ini, directory in (args.without, args.filled)
    )
    used = [[[pair for pair in derivation if pair in proposed] for derivation in run] for run in filled.phrases]
    rows = [np.array([bool(pairs_of) for pairs_of in run]) for run in used]
    every = [np.ones(len(source), np.bool_)] * len(args.seeds)
    print("| sentences | a run | without | with | difference |\n|---|---|---|---|---|")
    for name, chosen in (("all", every), ("with a proposal", rows), ("others", [~run for run in rows])):
        count = statistics.fmean(int(run.sum()) for run in chosen)
        if not count:
            continue
        a, b = mean_bleu(plain.statistics, chosen), mean_bleu(filled.statistics, chosen)
        print(f"| {name} | {count:.0f} | {a:.2f} | {b:.2f} | {b - a:+.2f} |")
    print(f"\nall sentences: {compare(plain.statistics, filled.statistics, 1)}")
    everything = Counter(len(pair[0].split()) for run in used for derivation in run for pair in derivation)
    phrases = sum(len(derivation) for run in filled.phrases for derivation in run)
    print(
        f"proposed phrases: {everything.total() / len(used):.0f} a run of {phrases / len(used):.0f} ("
        + ", ".join(f"{n / len(used):.0f} of {words} source words" for words, n in sorted(everything.items()))
        + ")\n"
    )
    gain = [
        (difference, s)
        for s, difference in enumerate(sentence_gains(plain.statistics[0], filled.statistics[0]))
        if used[0][s] and plain.texts[0][s] != filled.texts[0][s]
    ]
    print(f"changed: {len(gain)}, better: {sum(g > 0 for g, _ in gain)}, worse: {sum(g < 0 for g, _ in gain)}\n")
    random.Random(1).shuffle(gain)
    for difference, s in gain[: args.examples]:
        for pair in used[0][s]:
            print(f"* {' → '.join(pair)} (p {proposed[pair]:.3f}), sentence BLEU {difference:+.1f}")
        for name, text in (("source", source[s]), ("without", plain.texts[0][s]), ("with", filled.texts[0][s])):
            print(f"    {name}: {text}")
        print(f"    reference: {references[0][s]}")


if __name__ == "__main__":
    main()
