"""Train the continuous-space language model on text.

After every epoch the perplexity of the validation n-grams is measured; training ends after --epochs, or when it has not
become better for --patience epochs, and the best parameters are kept. The state folder holds the last checkpoint: a run
that is ended at any time goes on from it, and on a CPU ends bit for bit like one that was not. On SIGTERM, and shortly
before --time-limit, the state is saved and the exit code is 75: run the same command again. Started by torchrun, all
processes share every minibatch.
"""

import argparse

from rnnsmt.cslm.options import add_training, settings_of
from rnnsmt.io import InputError
from rnnsmt.rnn.options import add_device, need_torch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text", required=True, metavar="DIR", help="what cslm prepare wrote")
    add_training(parser, "small")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output-model", required=True, metavar="FILE")
    parser.add_argument("--output-history", required=True, metavar="FILE", help="the learning curve, as JSON")
    parser.add_argument("--state-dir", required=True, metavar="DIR", help="where checkpoints are kept")
    parser.add_argument("--save-every", type=float, default=300.0, metavar="SECONDS", help="time between checkpoints")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="stop before, save, and exit with 75")
    add_device(parser)


def run(args: argparse.Namespace) -> dict[str, object]:
    settings = settings_of(args)
    if args.seed < 0:
        raise InputError(f"--seed {args.seed}: must not be negative")
    need_torch()

    from rnnsmt.cslm.text import Text
    from rnnsmt.cslm.training import Outputs, train
    from rnnsmt.devices import choose_place

    text = Text.open(args.text)
    place = choose_place(args.device, 1, settings.precision)
    outputs = Outputs(args.output_model, args.output_history, args.state_dir, args.save_every, args.time_limit)
    try:
        return train(text, settings, args.seed, place, outputs, args.threads if place.device.type == "cpu" else 1)
    finally:
        place.close()
