"""Command ``train`` of every network: options, processes, and all steps that do not depend on the network.

Signals are caught, and other processes are started, before torch is imported; this module does not import it.

Several processes of one training run on one machine, one per GPU, have the exit codes of a single process. The process
started by the user or the workflow has rank 0: it writes the files and the log, receives the signals to stop, and exits
with the code of a training run with a single process. It starts the others with the environment variables of
``torchrun``, which is not used because it replaces every exit code by 1.
"""

import argparse
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rnnsmt.base.options import not_negative
from rnnsmt.base.progress import say
from rnnsmt.base.resuming import SAVED, Stop
from rnnsmt.networks.options import add_device, need_torch
from rnnsmt.networks.settings import TrainingSettings

if TYPE_CHECKING:
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.networks.training import Trainer

RESUMING = """\
--checkpoint-dir contains the last checkpoint, from which an interrupted run resumes. On a CPU, with the same
--threads, the result is bitwise identical to that of an uninterrupted run. On SIGTERM, and shortly
before --time-limit, a checkpoint is saved and the exit status is 75 (130 after Ctrl-C); run the same command
again to resume.

With --processes, or under torchrun, every minibatch is split among several processes. The network is the
same as with a single process, except for rounding and the random choices within a minibatch (for
example of --dropout and --sampled-classes)."""
"""Description of the options of ``add_training`` in the help."""


def add_training(parser: argparse.ArgumentParser) -> None:
    """Add the training options other than data and settings: seed, files, time limit, processes, device."""
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--output-model", required=True, metavar="FILE", help="output file: the trained network")
    parser.add_argument(
        "--output-history", required=True, metavar="FILE", help="output file: settings and learning curve (JSON)"
    )
    group = parser.add_argument_group("checkpoints and processes", RESUMING)
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
    group.add_argument(
        "--processes",
        type=not_negative,
        default=1,
        help="number of data-parallel processes, one per GPU; 0 means 1",
    )
    add_device(parser)


def run_training(
    args: argparse.Namespace, settings: TrainingSettings, make_trainer: "Callable[[DeviceSetup], Trainer]"
) -> dict[str, object] | None:
    """Train a network: start the processes, choose the device, create the trainer, fit, save.

    Args:
        args: the options of ``add_training``.
        settings: the training settings.
        make_trainer: opens the data and creates the trainer on a device.

    Returns:
        The statistics of the stage; None in all processes but the first, so that one process prints them.

    Raises:
        InputError, SystemExit: see ``Trainer.fit``; torch is not installed; a device is missing; bad data.
    """
    need_torch()

    with Stop(args.time_limit) as stop, started_processes(args.processes):
        from rnnsmt.networks.devices import set_up_device

        with set_up_device(args.device, 1, settings.precision, join=True) as setup:
            trainer = make_trainer(setup)
            trainer.fit(args.checkpoint_dir, args.save_every, stop)
            stats = trainer.save(args.output_model, args.output_history)
            return stats if setup.first else None


PATIENCE = {0: 60.0, 2: 5.0, SAVED: 60.0, 128 + signal.SIGINT: 60.0}
"""Exit code of another process -> seconds within which the first process must also end; 1 second for other codes."""

_DIE_WITH_PARENT = 1
"""``PR_SET_PDEATHSIG`` of Linux' prctl."""


@contextmanager
def started_processes(number: int) -> Iterator[None]:
    """Make this process rank 0 of ``number`` processes that train together; the others run the same command line.

    Nothing is started if ``number`` is 0 or 1, or if torchrun started this process. If another process ends early, this
    one would wait forever in an all-reduce; it therefore exits too, with code 2 if the other one did so because of
    invalid input, else with code 1.
    """
    if number <= 1 or "WORLD_SIZE" in os.environ:
        yield
        return
    before = dict(os.environ)
    shared = {"WORLD_SIZE": str(number), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    others: list[subprocess.Popen[bytes]] = []
    over = threading.Event()
    patience = 0.0
    try:
        for rank in range(1, number):
            environment = {**before, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            command = [sys.executable, "-m", "rnnsmt", *sys.argv[1:]]
            others.append(subprocess.Popen(command, env=environment, preexec_fn=_end_with_parent))
            threading.Thread(target=_watch, args=(others[-1], over), daemon=True).start()
        os.environ.update(shared, RANK="0", LOCAL_RANK="0")
        yield
        patience = PATIENCE[0]
    except SystemExit:  # a signal or the time limit: all processes stop after the same update
        patience = PATIENCE[SAVED]
        raise
    finally:
        # after any other exception ``patience`` is 0: the others are killed at once
        over.set()
        for other in others:
            with suppress(subprocess.TimeoutExpired):
                other.wait(patience)
            other.kill()
            other.wait()
        os.environ.clear()
        os.environ.update(before)


def _free_port() -> int:
    """Return a TCP port of this machine that is free now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _end_with_parent() -> None:
    """Ask Linux to kill this process when its parent dies, also if the parent is killed."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def _watch(other: subprocess.Popen[bytes], over: threading.Event) -> None:
    """Wait for another process; exit this one if the other one ended before the training was over."""
    code = other.wait()
    if not over.wait(PATIENCE.get(code, 1.0)):
        say(f"another process of this training run exited with status {code}; stopping")
        os._exit(code if code == 2 else 1)
