"""Checkpoints of trainings: replaced atomically, and only resumed with the settings that the training began with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from rnnsmt.base.io import InputError
from rnnsmt.base.state_folder import StateFolder
from rnnsmt.networks.model_file import load_file, save_file


class Checkpoint:
    """The file ``state.pt`` in a state directory: fingerprint and state of the training.

    Trainings draw from generators of their own, by seed and number of the update. The generators that Python, numpy and
    torch share are not part of the state: nobody seeds them, so that the states of equal trainings would differ.
    """

    def __init__(self, folder: str | Path, fingerprint: Mapping[str, object]) -> None:
        """Open the state directory. fingerprint: name -> value of everything that the training depends on."""
        self.folder = StateFolder(folder, fingerprint)
        self.path = self.folder.path / "state.pt"
        self.remedy = self.folder.remedy

    def load(self, device: torch.device | str = "cpu") -> dict[str, Any] | None:
        """Read the last saved state, its tensors on ``device``; None if there is none.

        Raises:
            InputError: the state was saved with other settings, or the file is damaged.
        """
        if not self.path.exists():
            return None
        saved = load_file(self.path, device, self.remedy)
        before = saved.get("fingerprint")
        if not isinstance(before, dict) or not isinstance(saved.get("state"), dict):
            raise InputError(f"{self.path}: has unexpected contents; {self.remedy}")
        self.folder.check(before)
        return dict(saved["state"])

    def lock(self) -> None:
        """Lock the state directory; remove the state of a finished training with other settings."""
        self.folder.lock()
        self.folder.clear_finished(self.path.name)

    def finish(self) -> None:
        """Record that the outputs are written: a training with other settings may then start over."""
        self.folder.finish()

    def save(self, state: Mapping[str, Any]) -> None:
        """Replace the saved state.

        Raises:
            InputError: the file cannot be written (full disk); the previous state is kept.
        """
        content = {"fingerprint": self.folder.fingerprint, "state": dict(state)}
        try:
            save_file(self.path, content)
        except OSError as error:
            raise InputError(
                f"{self.path}: could not be written ({error.strerror}); the last checkpoint is kept: free disk space "
                "and run the same command again"
            ) from None
