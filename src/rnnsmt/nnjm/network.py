"""The neural network joint model as a kind of network."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rnnsmt.networks.network import Network
from rnnsmt.nnjm.settings import PRESETS, JointSettings

if TYPE_CHECKING:
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.networks.task import Task


class NnjmNetwork(Network):
    """The neural network joint model (Devlin et al. 2014), trained on a word-aligned bitext as the CSLM on text."""

    data = ("examples",)
    presets = PRESETS
    version = 3

    def task(self, data: Sequence[Path], settings: JointSettings, seed: int, setup: "DeviceSetup") -> "Task":
        """Return the training on a bitext with links."""
        from rnnsmt.nnjm.examples import Examples
        from rnnsmt.nnjm.training import nnjm_task

        return nnjm_task(Examples.open(data[0]), settings, seed, setup)
