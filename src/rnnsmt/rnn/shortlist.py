"""Count the target words of every phrase pair that are outside the networks' shortlist: the paper's word penalty (WP).

Not Moses' WordPenalty, which counts all words. Writes one number n a line of the phrase table, in its order (.npy), as
`phrases augment` takes it: the column holds e^n and its logarithm is n, so the counts of the phrases of a translation
add up to its number of words outside the shortlist. Needs no network, only the pairs.

A source word that the phrase table does not know is passed through by the decoder with 0 in every column, although it
is outside the shortlist as well. Such words are the same in every translation of a sentence, so counting them would
add a constant and could change no ranking.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rnnsmt.networks.sequences import Sequences

BLOCK = 1 << 20
"""Pairs that are counted at a time."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pairs", required=True, metavar="DIR", help="what rnn prepare wrote")
    parser.add_argument("--output", required=True, metavar="FILE", help="numbers of words (.npy)")


def run(args: argparse.Namespace) -> dict[str, object]:
    import numpy as np

    from rnnsmt.networks.sequences import growing_array
    from rnnsmt.progress import say
    from rnnsmt.rnn.pairs import Pairs

    pairs = Pairs.open(args.pairs)
    words, touched = 0, 0
    with growing_array(Path(args.output), np.float32) as out:
        for counts in words_outside(pairs.sides[1]):
            out.append(counts)
            words += int(counts.sum())
            touched += int(np.count_nonzero(counts))
    if not words:
        say(
            "every target word of the phrase table is in the shortlist: the feature is 0 everywhere and changes nothing"
        )
    return {"pairs": out.length, "pairs with such words": touched, "words outside the shortlist": words}


def words_outside(side: "Sequences", block: int = BLOCK) -> "Iterator[NDArray[np.int64]]":
    """The number of UNK among the ids of every phrase, for ``block`` phrases at a time."""
    import numpy as np

    from rnnsmt.networks.vocabulary import UNK

    for begin in range(0, len(side.offsets) - 1, block):
        offsets = np.asarray(side.offsets[begin : begin + block + 1])
        unknown = side.words[offsets[0] : offsets[-1]] == UNK
        # no phrase is empty: each ends in EOS
        yield np.add.reduceat(unknown, offsets[:-1] - offsets[0], dtype=np.int64)
