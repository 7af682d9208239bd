"""Options that the stages of both networks share; imports nothing heavy until a training begins."""

import argparse
from collections.abc import Callable
from importlib.util import find_spec

from rnnsmt.common_options import positive
from rnnsmt.io import InputError


def add_device(parser: argparse.ArgumentParser) -> None:
    """``--device`` and ``--threads``, the arguments of ``rnnsmt.devices.choose_place``."""
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto: a GPU if there is one")
    parser.add_argument("--threads", type=positive, default=1, help="threads on a CPU")


def need_torch() -> None:
    """Say what to install where torch is missing: not everybody who uses this package trains networks.

    Raises:
        InputError: it is missing.
    """
    if find_spec("torch") is None:
        raise InputError("networks need torch, which is not installed here: pip install 'rnnsmt[networks]'")


def add_training(parser: argparse.ArgumentParser) -> None:
    """What a training has besides its data and its settings: the arguments of ``train``."""
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output-model", required=True, metavar="FILE")
    parser.add_argument("--output-history", required=True, metavar="FILE", help="the learning curve, as JSON")
    parser.add_argument("--state-dir", required=True, metavar="DIR", help="where checkpoints are kept")
    parser.add_argument("--save-every", type=float, default=300.0, metavar="SECONDS", help="time between checkpoints")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="stop before, save, and exit with 75")
    add_device(parser)


def train(args: argparse.Namespace, precision: str, training: Callable[..., dict[str, object]]) -> dict[str, object]:
    """Run a training where ``--device`` says.

    training: takes ``seed``, ``place``, ``outputs`` and ``threads``. precision: as of ``choose_place``.
    """
    from rnnsmt.devices import choose_place
    from rnnsmt.networks.loop import Outputs

    place = choose_place(args.device, 1, precision, join=True)
    outputs = Outputs(args.output_model, args.output_history, args.state_dir, args.save_every, args.time_limit)
    threads = args.threads if place.device.type == "cpu" else 1
    try:
        return training(seed=args.seed, place=place, outputs=outputs, threads=threads)
    finally:
        place.close()
