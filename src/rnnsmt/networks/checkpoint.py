"""Files of tensors: the checkpoint of a training, and what the files of trained networks are read and checked with.

A checkpoint is replaced whole, and only ever continued with the settings that it was begun with.
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

from rnnsmt.io import InputError, atomic_path
from rnnsmt.state_folder import StateFolder

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
"""What is raised where a file is damaged or holds something else."""


class Checkpoint:
    """One file ``state.pt`` in a state folder: fingerprint, random states, and what the training adds."""

    def __init__(self, folder: str | Path, fingerprint: Mapping[str, object]) -> None:
        """``fingerprint``: name -> value of everything that the training depends on."""
        self.folder = StateFolder(folder, fingerprint)
        self.path = self.folder.path / "state.pt"
        self.remedy = self.folder.remedy

    def load(self, device: torch.device | str = "cpu") -> dict[str, Any] | None:
        """What was saved last, its tensors on ``device``, with the random states set as they were; None: nothing yet.

        Raises:
            InputError: saved with other settings, or damaged.
        """
        if not self.path.exists():
            return None
        saved = load_file(self.path, device, self.remedy)
        before = saved.get("fingerprint")
        if not isinstance(before, dict) or not isinstance(saved.get("state"), dict):
            raise InputError(f"{self.path}: holds something else; {self.remedy}")
        self.folder.check(before)
        with corrupt_as_input_error(self.path, self.remedy):
            restore_random_states(saved["random"])
        return dict(saved["state"])

    def lock(self) -> None:
        """Keep other processes out; what a finished training of other settings left is removed."""
        self.folder.lock()
        self.folder.clear_finished(self.path.name)

    def finish(self) -> None:
        """Remember that the outputs are written: other settings may then start over."""
        self.folder.finish()

    def save(self, state: Mapping[str, Any]) -> None:
        """Replace what was saved.

        Raises:
            InputError: it cannot be written (a full disk); what was saved before is still there.
        """
        content = {"fingerprint": self.folder.fingerprint, "random": random_states(), "state": dict(state)}
        try:
            save_file(self.path, content)
        except OSError as error:
            raise InputError(
                f"{self.path}: could not be written ({error.strerror}); what was saved before is kept: make room and "
                "run the same command again"
            ) from None


def save_file(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write tensors and plain values, whole or not at all; the same content gives the same bytes."""
    memory = io.BytesIO()
    torch.save(dict(content), memory)
    with atomic_path(path) as temporary, temporary.open("wb") as out:
        out.write(memory.getbuffer())


_ZIP = b"PK\x03\x04"
"""What files of torch begin with."""


def load_file(path: str | Path, device: torch.device | str, remedy: str) -> dict[str, Any]:
    """Read what ``save_file`` wrote. No code in the file is run.

    Raises:
        InputError: missing, damaged, or something else; the sentence ends in ``remedy``.
    """
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file; {remedy}")
    with Path(path).open("rb") as file:
        if file.read(4) != _ZIP:
            raise InputError(f"{path}: cannot be read: is not a file of a network, or its beginning is lost; {remedy}")
    try:
        content = torch.load(path, map_location=device, weights_only=True)
    except _CORRUPT as error:
        raise InputError(f"{path}: cannot be read ({_reason(error)}); {remedy}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds something else; {remedy}")
    return content


@contextmanager
def corrupt_as_input_error(path: str | Path, remedy: str) -> Iterator[None]:
    """Around what takes the content of a file apart: parts that are missing or do not fit are an ``InputError``."""
    try:
        yield
    except _CORRUPT as error:
        raise InputError(f"{path}: its parts are not what they should be ({_reason(error)}); {remedy}") from None


def _reason(error: Exception) -> str:
    text = " ".join(line.strip() for line in str(error).splitlines()[:2])
    return f"{type(error).__name__}: {text[:160]}" if text else type(error).__name__


def random_states() -> dict[str, Any]:
    """The states of the random generators of the process, as tensors and plain values; no training uses a GPU's."""
    kind, keys, *rest = np.random.get_state()
    version, internal, gauss = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "numpy": [kind, torch.from_numpy(np.asarray(keys).astype(np.int64)), *rest],
        "python": [version, list(internal), gauss],
    }


def restore_random_states(states: Mapping[str, Any]) -> None:
    """Set the random generators as ``random_states`` found them."""
    torch.set_rng_state(states["torch"].cpu())
    kind, keys, *rest = states["numpy"]
    np.random.set_state((kind, keys.cpu().numpy().astype(np.uint32), *rest))
    version, internal, gauss = states["python"]
    random.setstate((version, tuple(internal), gauss))


def check_parameters(path: str | Path, model: nn.Module, remedy: str) -> None:
    """See that all are float32 numbers; no gradients are taken of them.

    Raises:
        InputError: names the file and the parameter; the sentence ends in ``remedy``.
    """
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(False)
        plain = parameter.dtype == torch.float32 and parameter.layout == torch.strided
        if not plain or not torch.isfinite(parameter).all():
            raise InputError(f"{path}: {name} holds values that are no numbers, or of another kind; {remedy}")
