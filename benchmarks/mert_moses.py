#!/usr/bin/env python
"""Decode for Moses' ``mert-moses.pl`` with rnnsmt's search, to compare the optimisers on the same model and decoder.

``mert-moses.pl`` calls this script like ``moses``; ``tuning.py moses`` starts it. The environment variable TABLES is
the directory with the selected table of the model.
"""

import argparse
import os
import sys
from pathlib import Path

from rnnsmt.cli import main
from rnnsmt.formats.ini import MosesIni


def weights(ini: MosesIni) -> str:
    """Return the weights as ``moses -show-weights`` prints them, stateful features first, as in n-best lists."""
    stateful = ("LexicalReordering", "Distortion", "LM")
    return "".join(
        f"{name} UNTUNEABLE\n" if name.startswith("Unknown") else f"{name}= {' '.join(map(str, ini.weights[name]))}\n"
        for name in sorted(ini.weights, key=lambda name: not name.startswith(stateful))
    )


def overwrite(ini: MosesIni, text: str) -> None:
    """Set the weights of ``-weight-overwrite``: ``LM0= 0.5 TranslationModel0= 0.2 0.2 ...``."""
    name = ""
    for word in text.split():
        if word.endswith("="):
            name = word[:-1]
            ini.weights[name] = []
        else:
            ini.weights[name].append(float(word))


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("-config", "-f", required=True)
parser.add_argument("-show-weights", action="store_true")
parser.add_argument("-weight-overwrite", default="")
parser.add_argument("-n-best-list", nargs="+", default=["nbest", "100"])
parser.add_argument("-input-file")
args, _ = parser.parse_known_args()
ini = MosesIni.read(args.config)
if args.show_weights:
    sys.stdout.write(weights(ini))
    sys.exit()
overwrite(ini, args.weight_overwrite)
nbest, size = args.n_best_list[:2]
ini.write("weights.ini")
status = main(
    ["search", "decode", "--ini", "weights.ini", "--model-dir", os.environ["TABLES"], "--input", args.input_file,
     "--output", "decoded", "--nbest", size, "--nbest-file", nbest]
)  # fmt: skip
sys.stdout.write(Path("decoded").read_text(encoding="utf-8"))
sys.exit(status)
