"""Command ``train`` of every network: options, and all steps that do not depend on the network.

Signals are caught before torch is imported; this module does not import it.
"""

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rnnsmt.base.resuming import Stop
from rnnsmt.networks.options import SomeSettings, add_device, add_settings, chosen_settings, need_torch

if TYPE_CHECKING:
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.networks.task import Task

RESUMING = """\
--checkpoint-dir contains the last checkpoint, from which an interrupted run resumes. On a CPU, with the same
--threads, the result is bitwise identical to that of an uninterrupted run. On SIGTERM, and shortly
before --time-limit, a checkpoint is saved and the exit status is 75 (130 after Ctrl-C); run the same command
again to resume."""
"""Description of the options of ``add_training`` in the help."""


def add_training(parser: argparse.ArgumentParser, package: str, data: str, presets: Mapping[str, SomeSettings]) -> None:
    """Add all options of ``PACKAGE train``; ``data`` is the name of the option for the directory of the data."""
    parser.add_argument(f"--{data}", required=True, metavar="DIR", help=f"directory written by `{package} prepare`")
    add_settings(parser, presets, "small")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--output-model", required=True, metavar="FILE", help="output file: the trained network")
    parser.add_argument(
        "--output-history", required=True, metavar="FILE", help="output file: settings and learning curve (JSON)"
    )
    group = parser.add_argument_group("checkpoints", RESUMING)
    group.add_argument(
        "--checkpoint-dir", required=True, metavar="DIR", help="checkpoint directory, used to resume an interrupted run"
    )
    group.add_argument("--save-every", type=float, default=300.0, metavar="SECONDS", help="time between checkpoints")
    group.add_argument(
        "--time-limit",
        type=float,
        metavar="SECONDS",
        help="save a checkpoint and exit with status 75 before this time limit",
    )
    add_device(parser)


def run_training(
    args: argparse.Namespace,
    presets: Mapping[str, SomeSettings],
    make_task: "Callable[[SomeSettings, DeviceSetup], Task]",
) -> dict[str, object]:
    """Train a network: choose settings and device, create the task, fit, save.

    Args:
        args: the options of ``add_training``.
        make_task: opens the data and creates the network on a device.

    Returns:
        The statistics of the stage.

    Raises:
        SystemExit: see ``Training.fit``.
    """
    settings = chosen_settings(args, presets)
    need_torch()

    with Stop(args.time_limit) as stop:
        from rnnsmt.networks.devices import set_up_device
        from rnnsmt.networks.training import Training

        training = Training(make_task(settings, set_up_device(args.device, 1, settings.precision)), args.threads)
        training.fit(args.checkpoint_dir, args.save_every, stop)
        return training.save(args.output_model, args.output_history)
