"""The command ``train`` of every network: its options, and what it does besides the network's own data and equations.

Imports nothing heavy: signals are caught, and other processes started, before torch is imported.
"""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from rnnsmt.base.options import not_negative
from rnnsmt.base.stopping import Stop
from rnnsmt.networks.options import add_device, need_torch
from rnnsmt.networks.settings import TrainingSettings

if TYPE_CHECKING:
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.networks.training import Trainer


RESUMING = """\
The directory of --state-dir holds the last checkpoint. A run that was interrupted at any time resumes from
it; on a CPU the result is bitwise identical to that of an uninterrupted run. On SIGTERM, and shortly before
--time-limit, a checkpoint is saved and the exit status is 75 (130 after Ctrl-C); run the same command again
to resume.

With --processes, or under torchrun, every minibatch is split among several processes. The network is that of
a single process up to rounding and the random choices of a minibatch (for example --dropout
and --sampled-classes)."""
"""Description of the options of ``add_training`` in the help."""


def add_training(parser: argparse.ArgumentParser) -> None:
    """Add the options of a training besides its data and settings: seed, files, time limit, processes, device."""
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--output-model", required=True, metavar="FILE", help="output file: the trained network")
    parser.add_argument(
        "--output-history", required=True, metavar="FILE", help="output file: settings and learning curve (JSON)"
    )
    group = parser.add_argument_group("checkpoints and processes", RESUMING)
    group.add_argument(
        "--state-dir", required=True, metavar="DIR", help="checkpoint directory, used to resume an interrupted run"
    )
    group.add_argument("--save-every", type=float, default=300.0, metavar="SECONDS", help="time between checkpoints")
    group.add_argument(
        "--time-limit",
        type=float,
        metavar="SECONDS",
        help="save a checkpoint and exit with status 75 before this time limit",
    )
    group.add_argument(
        "--processes",
        type=not_negative,
        default=1,
        help="number of data-parallel processes, one per GPU; 0 is the same as 1",
    )
    add_device(parser)


def run_training(
    args: argparse.Namespace, settings: TrainingSettings, make_trainer: "Callable[[DeviceSetup], Trainer]"
) -> dict[str, object]:
    """Train a network: start the processes, choose the device, create the trainer, fit, save.

    Args:
        args: the options of ``add_training``.
        settings: the settings of the training.
        make_trainer: opens the data and creates the trainer on a device.

    Returns:
        The statistics of the stage.

    Raises:
        InputError, SystemExit: see ``Trainer.fit``; torch is not installed; a device is missing; bad data.
    """
    need_torch()

    from rnnsmt.networks.processes import started_processes

    with Stop(args.time_limit) as stop, started_processes(args.processes):
        from rnnsmt.networks.devices import set_up_device

        with set_up_device(args.device, 1, settings.precision, join=True) as setup:
            trainer = make_trainer(setup)
            trainer.fit(args.state_dir, args.save_every, stop)
            return trainer.save(args.output_model, args.output_history)
