"""Files of tensors: checkpoints of trainings, and reading, writing and checking of the files of networks.

A checkpoint is replaced atomically, and a training is only resumed with the settings that it was started with.
"""

import io
import pickle
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from rnnsmt.base.io import InputError, atomic_path
from rnnsmt.base.state_folder import StateFolder

_CORRUPT = (
    RuntimeError,
    EOFError,
    OSError,
    ValueError,
    LookupError,
    AttributeError,
    TypeError,
    pickle.UnpicklingError,
)
"""Exceptions that torch and Python raise on files that are damaged or hold something else."""


class Checkpoint:
    """The file ``state.pt`` in a state directory: fingerprint, random states, and the state of the training."""

    def __init__(self, folder: str | Path, fingerprint: Mapping[str, object]) -> None:
        """Open the state directory. fingerprint: name -> value of everything that the training depends on."""
        self.folder = StateFolder(folder, fingerprint)
        self.path = self.folder.path / "state.pt"
        self.remedy = self.folder.remedy

    def load(self, device: torch.device | str = "cpu") -> dict[str, Any] | None:
        """Read the last saved state, its tensors on ``device``, and restore the random states; None if there is none.

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
        with corrupt_as_input_error(self.path, self.remedy):
            restore_random_states(saved["random"])
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
        content = {"fingerprint": self.folder.fingerprint, "random": random_states(), "state": dict(state)}
        try:
            save_file(self.path, content)
        except OSError as error:
            raise InputError(
                f"{self.path}: could not be written ({error.strerror}); the last checkpoint is kept: free disk space "
                "and run the same command again"
            ) from None


def save_file(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write tensors and plain values to a file, atomically; equal contents give equal bytes."""
    memory = io.BytesIO()  # torch.save to a path would store the name of the temporary file
    torch.save(dict(content), memory)
    with atomic_path(path) as temporary, temporary.open("wb") as out:
        out.write(memory.getbuffer())


_ZIP = b"PK\x03\x04"
"""The first bytes of every file of ``torch.save``, a ZIP archive."""


def load_file(path: str | Path, device: torch.device | str, remedy: str) -> dict[str, Any]:
    """Read a file that ``save_file`` wrote, onto ``device``. No code in the file is run.

    Raises:
        InputError: the file is missing, damaged, or of another kind; the message ends in ``remedy``.
    """
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file; {remedy}")
    with Path(path).open("rb") as file:
        if file.read(4) != _ZIP:
            raise InputError(f"{path}: cannot be read: not a model file, or its beginning is damaged; {remedy}")
    try:
        content = torch.load(path, map_location=device, weights_only=True)
    except _CORRUPT as error:
        raise InputError(f"{path}: cannot be read ({_reason(error)}); {remedy}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: has unexpected contents; {remedy}")
    return content


@contextmanager
def corrupt_as_input_error(path: str | Path, remedy: str) -> Iterator[None]:
    """Convert exceptions on missing or mismatched parts of a file's content to ``InputError``."""
    try:
        yield
    except _CORRUPT as error:
        raise InputError(f"{path}: has unexpected contents ({_reason(error)}); {remedy}") from None


def _reason(error: Exception) -> str:
    """Return the type and the first two lines of an exception, at most 160 characters of them."""
    text = " ".join(line.strip() for line in str(error).splitlines()[:2])
    return f"{type(error).__name__}: {text[:160]}" if text else type(error).__name__


def random_states() -> dict[str, Any]:
    """Return the states of the random generators of Python, numpy and torch (CPU), as tensors and plain values.

    No training uses the generator of a GPU.
    """
    kind, keys, *rest = np.random.get_state()
    version, internal, gauss = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "numpy": [kind, torch.from_numpy(np.asarray(keys).astype(np.int64)), *rest],
        "python": [version, list(internal), gauss],
    }


def restore_random_states(states: Mapping[str, Any]) -> None:
    """Set the random generators to states that ``random_states`` returned."""
    torch.set_rng_state(states["torch"].cpu())
    kind, keys, *rest = states["numpy"]
    np.random.set_state((kind, keys.cpu().numpy().astype(np.uint32), *rest))
    version, internal, gauss = states["python"]
    random.setstate((version, tuple(internal), gauss))


def check_parameters(path: str | Path, model: nn.Module, remedy: str) -> None:
    """Check that all parameters are dense and finite float32 tensors, and turn off their gradients.

    Raises:
        InputError: one is not; the message names the file and the parameter and ends in ``remedy``.
    """
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(False)
        plain = parameter.dtype == torch.float32 and parameter.layout == torch.strided
        if not plain or not torch.isfinite(parameter).all():
            raise InputError(f"{path}: {name} contains NaN or infinite values, or has the wrong type; {remedy}")
