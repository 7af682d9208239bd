"""Compare the n-best lists of Moses and of this package for the same moses.ini and input.

Moses resolves paths relative to the current directory, so run it in the directory of the moses.ini:

    cd RUN/results/systems/rnn/run1
    moses -f moses.ini -search-algorithm 1 -cube-pruning-pop-limit 1000 -s 1000 \\
        -n-best-list moses.nbest 100 distinct -include-segmentation-in-n-best < INPUT
    rnnsmt search decode --ini moses.ini --input INPUT --output out --nbest 100 --nbest-file ours.nbest
    python benchmarks/moses_reads.py moses.nbest ours.nbest

Best scores are counted as equal within ``--tolerance``; otherwise one of the searches found a better translation. For
translations with the same text and segmentation in both lists, all feature values are compared.
"""

import argparse
from pathlib import Path
from typing import NamedTuple


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("moses", type=Path, help="n-best lists of Moses")
    parser.add_argument("ours", type=Path, help="n-best lists of `rnnsmt search decode`")
    parser.add_argument("--tolerance", type=float, default=1.01e-3, help="of best scores (default: %(default)s)")
    args = parser.parse_args()
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


if __name__ == "__main__":
    main()
