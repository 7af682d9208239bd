"""Compare the n-best lists of Moses and of this package for the same moses.ini and input.

Moses resolves paths relative to the current directory, so run it in the directory of moses.ini:

    cd RUN/results/systems/rnn/run1
    moses -f moses.ini -search-algorithm 1 -cube-pruning-pop-limit 1000 -s 1000 \\
        -n-best-list moses.nbest 100 distinct -include-segmentation-in-n-best < INPUT
    rnnsmt search decode --ini moses.ini --input INPUT --output out --nbest 100 --nbest-file ours.nbest
    python benchmarks/moses_reads.py moses.nbest ours.nbest

Best scores are counted as equal within ``--tolerance``; otherwise one of the searches found a better translation. For
translations with the same text and segmentation in both lists, all feature values are compared.

With ``--ini`` and ``--input``, the features of all translations of Moses are also computed from their segmentations, so
that every entry of its list is compared.
"""

import argparse
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rnnsmt.moses.ini import MosesIni
from rnnsmt.moses.nbest import read_segmentation
from rnnsmt.search.decoder import features_of_derivations
from rnnsmt.search.model import load_model


class Entry(NamedTuple):
    """A translation: text, feature values by the names of Moses, model score, segmentation."""

    text: str
    features: dict[str, list[float]]
    score: float
    segmentation: str


def read(path: Path) -> dict[int, list[Entry]]:
    """Read the n-best lists of all sentences, best first."""
    lists: dict[int, list[Entry]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        number, text, values, score, segmentation = line.split(" ||| ")[:5]
        features: dict[str, list[float]] = {}
        for item in values.split():
            if item.endswith("="):
                found = features.setdefault(item, [])
            else:
                found.append(float(item))
        lists.setdefault(int(number), []).append(Entry(text.strip(), features, float(score), segmentation.strip()))
    return lists


def recompute(lists: dict[int, list[Entry]], ini: Path, text: Path) -> tuple[int, int, dict[str, float]]:
    """Compute the features of all translations of Moses with this decoder.

    Returns:
        The number of translations, the number of those that the model can produce, and the largest difference by
        feature.
    """
    sentences = text.read_text(encoding="utf-8").splitlines()
    model = load_model(MosesIni.read(ini), sentences, threads=2)
    largest: dict[str, float] = {}
    everything = produced = 0
    numbers = sorted(lists)
    for entries in zip_longest(*(lists[number] for number in numbers)):  # the best of all sentences, then the second
        there = [(number, entry) for number, entry in zip(numbers, entries, strict=True) if entry is not None]
        derivations = [(entry.text, read_segmentation(entry.segmentation)) for _, entry in there]
        found = features_of_derivations(model, [sentences[number] for number, _ in there], derivations)
        everything += len(there)
        for (_, entry), row in zip(there, found, strict=True):
            if np.isnan(row).any():
                continue
            produced += 1
            values = dict(zip(model.feature_names, row.tolist(), strict=True))
            for name, theirs in entry.features.items():
                gap = max(abs(values[f"{name[:-1]}:{place}"] - value) for place, value in enumerate(theirs))
                largest[name] = max(largest.get(name, 0.0), gap)
    return everything, produced, largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("moses", type=Path, help="n-best lists of Moses")
    parser.add_argument("ours", type=Path, help="n-best lists of `rnnsmt search decode`")
    parser.add_argument("--tolerance", type=float, default=1.01e-3, help="of best scores (default: %(default)s)")
    parser.add_argument("--ini", type=Path, help="moses.ini, to compute the features of all translations of Moses")
    parser.add_argument("--input", type=Path, help="source text of the lists, for --ini")
    args = parser.parse_args()
    if (args.ini is None) != (args.input is None):
        parser.error("--ini and --input: give both or none")
    moses, ours = read(args.moses), read(args.ours)
    if moses.keys() != ours.keys():
        raise SystemExit("the two lists are not of the same sentences")

    gaps = [ours[number][0].score - moses[number][0].score for number in moses]
    texts = sum(ours[number][0].text == moses[number][0].text for number in moses)
    print(
        f"{len(gaps)} sentences: {texts} with the same best text; best score the same "
        f"{sum(abs(gap) <= args.tolerance for gap in gaps)}, ours better {sum(gap > args.tolerance for gap in gaps)}, "
        f"Moses' better {sum(gap < -args.tolerance for gap in gaps)}"
    )

    compared = everything = 0
    largest: dict[str, float] = {}
    for number, entries in moses.items():
        theirs = {entry.text: entry for entry in entries}
        everything += len(entries)
        for entry in ours[number]:
            other = theirs.get(entry.text)
            if other is None or other.segmentation != entry.segmentation:
                continue
            compared += 1
            for name, values in entry.features.items():
                gap = max(abs(a - b) for a, b in zip(values, other.features[name], strict=True))
                largest[name] = max(largest.get(name, 0.0), gap)
    print(f"{compared} of Moses' {everything} translations are in both lists, of the same phrases; most they differ:")
    for name, gap in largest.items():
        print(f"  {name} {gap:.6f}")

    if args.ini is not None:
        everything, produced, largest = recompute(moses, args.ini, args.input)
        print(f"{produced} of Moses' {everything} translations computed from their phrases; most features differ:")
        for name, gap in largest.items():
            print(f"  {name} {gap:.6f}")


if __name__ == "__main__":
    main()
