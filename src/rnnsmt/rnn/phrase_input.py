"""What `rnn sample` and `rnn translate` share: options, the network with its vocabularies, source phrases as ids."""

import argparse
from typing import TYPE_CHECKING, Any

from rnnsmt.common_options import positive
from rnnsmt.io import InputError, read_lines
from rnnsmt.networks.options import add_device, need_torch

if TYPE_CHECKING:
    from rnnsmt.networks.vocabulary import Vocabulary
    from rnnsmt.rnn.model import RNNEncoderDecoder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="FILE")
    parser.add_argument("--pairs", required=True, metavar="DIR", help="what rnn prepare wrote, for the vocabularies")
    parser.add_argument("--input", required=True, metavar="FILE", help="source phrases, one a line, tokenised")
    parser.add_argument("--output", required=True, metavar="FILE")
    parser.add_argument("--max-length", type=positive, default=30, metavar="N", help="words of the longest target")
    add_device(parser)


def load(args: argparse.Namespace) -> "tuple[RNNEncoderDecoder, tuple[Vocabulary, ...], list[Any]]":
    """The network, both vocabularies, and the phrases of the input as ids with EOS.

    Raises:
        InputError: a file is missing or damaged, the network is of other vocabularies, the input has no or an empty
            line.
    """
    need_torch()

    from rnnsmt.devices import choose_place
    from rnnsmt.rnn.model_file import check_vocabularies, load_model
    from rnnsmt.rnn.pairs import Pairs

    pairs = Pairs.open(args.pairs)
    place = choose_place(args.device, args.threads)
    model, meta = load_model(args.model, place.device)
    check_vocabularies(args.model, meta, pairs)
    phrases = []
    for number, line in enumerate(read_lines(args.input), 1):
        words = line.split()
        if not words:
            raise InputError(f"{args.input}, line {number}: is empty; give one source phrase a line")
        phrases.append(pairs.vocabularies[0].ids(words, eos=True))
    if not phrases:
        raise InputError(f"{args.input}: has no lines; give one source phrase a line")
    return model, pairs.vocabularies, phrases
