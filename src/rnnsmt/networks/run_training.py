"""Command ``train`` of every network: options, and all steps that do not depend on the network.

Signals are caught before torch is imported; this module does not import it.
"""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from rnnsmt.base.resuming import Stop
from rnnsmt.networks.options import add_device, need_torch
from rnnsmt.networks.settings import TrainingSettings

if TYPE_CHECKING:
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.networks.training import Trainer

RESUMING = """\
--checkpoint-dir contains the last checkpoint, from which an interrupted run resumes. On a CPU, with the same
--threads, the result is bitwise identical to that of an uninterrupted run. On SIGTERM, and shortly
before --time-limit, a checkpoint is saved and the exit status is 75 (130 after Ctrl-C); run the same command
again to resume."""
"""Description of the options of ``add_training`` in the help."""


def add_training(parser: argparse.ArgumentParser) -> None:
    """Add the training options other than data and settings: seed, files, time limit, device."""
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
    args: argparse.Namespace, settings: TrainingSettings, make_trainer: "Callable[[DeviceSetup], Trainer]"
) -> dict[str, object]:
    """Train a network: choose the device, create the trainer, fit, save.

    Args:
        args: the options of ``add_training``.
        make_trainer: opens the data and creates the trainer on a device.

    Returns:
        The statistics of the stage.

    Raises:
        SystemExit: see ``Trainer.fit``.
    """
    need_torch()

    with Stop(args.time_limit) as stop:
        from rnnsmt.networks.devices import set_up_device

        trainer = make_trainer(set_up_device(args.device, 1, settings.precision))
        trainer.fit(args.checkpoint_dir, args.save_every, stop)
        return trainer.save(args.output_model, args.output_history)
