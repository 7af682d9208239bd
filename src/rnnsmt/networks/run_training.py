"""Training of a network: all steps that do not depend on the kind of network.

Signal handlers are installed before torch is imported, because torch cannot be imported again after an interrupted
import; therefore, this module imports torch only inside of a function. Before the first update, Ctrl-C ends the run
between two steps without a checkpoint.
"""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rnnsmt.base.operations import Written
from rnnsmt.base.paths import StrPath
from rnnsmt.base.resuming import Stop
from rnnsmt.networks.options import need_torch

if TYPE_CHECKING:
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.networks.settings import TrainingSettings
    from rnnsmt.networks.task import Task


def run_training(
    make_task: "Callable[[DeviceSetup], Task]",
    settings: "TrainingSettings",
    outputs: tuple[StrPath, StrPath],
    checkpoints: tuple[StrPath, float, float | None],
    device: str,
    threads: int,
) -> Written:
    """Train a network: choose the device, create the task, fit, save.

    Args:
        make_task: opens the data and creates the network on a device.
        settings: the settings of the task.
        outputs: output files: the network, and its learning curve.
        checkpoints: checkpoint directory, minimum time between checkpoints, and time limit (both in seconds).
        device, threads: as in ``rnnsmt.networks.devices.set_up_device`` and ``Training``.

    Returns:
        The model file, with the statistics of the stage.

    Raises:
        KeyboardInterrupt: after Ctrl-C, with the checkpoint saved.
        SystemExit: 75 after SIGTERM or at the time limit, with the checkpoint saved.
    """
    need_torch()

    directory, save_every, time_limit = checkpoints
    with Stop(time_limit) as stop:
        from rnnsmt.networks.devices import set_up_device
        from rnnsmt.networks.training import Training

        stop.end_if_interrupted()
        task = make_task(set_up_device(device, 1, settings.precision))
        stop.end_if_interrupted()
        training = Training(task, threads)  # the first optimizer of a process takes seconds: torch imports its compiler
        stop.end_if_interrupted()
        try:
            training.fit(directory, save_every, stop)
            return Written(Path(outputs[0]), training.save(*outputs))
        except SystemExit:
            if stop.signal == signal.SIGINT:
                raise KeyboardInterrupt from None
            raise
        finally:  # a traceback that an interactive session keeps would hold the lock
            if training.checkpoint is not None:
                training.checkpoint.release()
