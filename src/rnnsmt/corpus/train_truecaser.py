"""Learn the usual case of every word from tokenised text and write Moses' truecasing model."""

import argparse
from itertools import chain

from rnnsmt.corpus import truecaser
from rnnsmt.io import InputError, read_lines
from rnnsmt.progress import track


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The stage's options."""
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="tokenised text of one language")
    parser.add_argument("--model", required=True, metavar="FILE", help="where the model is written")
    parser.add_argument("--lang", default="fr", metavar="L", help="two letters, for the log only")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Train a truecaser."""
    lines = chain.from_iterable(read_lines(path) for path in args.input)
    casing = truecaser.learn(track(lines, "learning case"))
    if not casing:
        raise InputError(f"{', '.join(args.input)}: no word that is not the first of its line; is this tokenised text?")
    truecaser.save(casing, args.model)
    forms = sum(len(forms) for forms in casing.values())
    return {"language": args.lang, "words": len(casing), "forms": forms}
