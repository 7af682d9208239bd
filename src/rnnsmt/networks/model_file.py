"""Files of tensors: networks, and checkpoints of training runs, which are resumed only with the same settings."""

import io
import pickle
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from torch import nn

from rnnsmt.base.io import InputError, atomic_path
from rnnsmt.base.resuming import CheckpointDirectory
from rnnsmt.networks.settings import NetworkSizes

_CORRUPT = (
    RuntimeError,
    EOFError,
    OSError,
    ValueError,
    LookupError,
    AttributeError,
    TypeError,
    OverflowError,
    RecursionError,
    MemoryError,
    pickle.UnpicklingError,
)
"""Exceptions that torch and Python raise on files that are damaged or have other contents."""


class ModelFormat(NamedTuple):
    """A kind of model file.

    Attributes:
        version: entry ``format`` of the file.
        network: the network with an article, for messages.
        remedy: advice at the end of messages.
    """

    version: str
    network: str
    remedy: str


AnyNetwork = TypeVar("AnyNetwork", bound=nn.Module)


def write_model(
    path: str | Path, kind: ModelFormat, model: nn.Module, sizes: NetworkSizes, content: Mapping[str, Any]
) -> None:
    """Write a network, atomically; ``content`` has additional tensors and plain values."""
    parameters = {name: parameter.detach().cpu().clone() for name, parameter in model.named_parameters()}
    save_file(path, {"format": kind.version, "sizes": sizes.as_dict(), **content, "parameters": parameters})


def read_model(
    path: str | Path,
    kind: ModelFormat,
    build: Callable[[dict[str, Any]], AnyNetwork],
    device: torch.device | str,
) -> tuple[AnyNetwork, dict[str, Any]]:
    """Read a network that ``write_model`` wrote onto a device; return it, without gradients, and the whole content.

    Args:
        path: the file.
        kind: the kind of network.
        build: creates the network, uninitialised, from its sizes.
        device: the device.

    Raises:
        InputError: the file is missing, damaged, or of another kind.
    """
    content = load_file(path, device, kind.remedy)
    if content.get("format") != kind.version:
        raise InputError(f"{path}: is not {kind.network}, or was written by a different version; {kind.remedy}")
    with corrupt_as_input_error(path, kind.remedy):
        with torch.device("meta"):
            model = build(content["sizes"])
        model.load_state_dict(content["parameters"], assign=True)
        content["meta"] = dict(content["meta"])
    check_parameters(path, model, kind.remedy)
    return model, content


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
    _check_members(path, remedy)
    try:
        content = torch.load(path, map_location=device, weights_only=True)
    except _CORRUPT as error:
        raise InputError(f"{path}: cannot be read ({_reason(error)}); {remedy}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: has unexpected contents; {remedy}")
    return content


def _check_members(path: str | Path, remedy: str) -> None:
    """Check the CRC-32 of every member of a ZIP archive, which torch writes, but does not check.

    Raises:
        InputError: one is damaged; the message ends in ``remedy``.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
    # a damaged directory of the archive may contain any values, such as those of encryption or unknown compression
    except (*_CORRUPT, zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error) as error:
        raise InputError(f"{path}: cannot be read ({_reason(error)}); {remedy}") from None
    if damaged is not None:
        raise InputError(f"{path}: is damaged: the CRC-32 of {damaged[:60]!r} is wrong; {remedy}")


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


class Checkpoint:
    """Checkpoint of a training run: its fingerprint and state, in the file ``checkpoint.pt`` of a directory.

    Training uses generators that are seeded by the random seed and the number of the update. The global generators of
    Python, numpy and torch are neither seeded nor saved: with them, checkpoints of equal training runs would differ.
    """

    def __init__(self, directory: str | Path, fingerprint: Mapping[str, object]) -> None:
        """Open the checkpoint directory; ``fingerprint`` maps name -> value of everything that training depends on."""
        self.directory = CheckpointDirectory(directory, fingerprint)
        self.path = self.directory.path / "checkpoint.pt"
        self.remedy = self.directory.remedy

    def load(self, device: torch.device | str = "cpu") -> dict[str, Any] | None:
        """Read the last checkpoint, its tensors on ``device``; None if there is none.

        Raises:
            InputError: the checkpoint was saved with other settings, or the file is damaged.
        """
        if not self.path.exists():
            return None
        saved = load_file(self.path, device, self.remedy)
        before = saved.get("fingerprint")
        if not isinstance(before, dict) or not isinstance(saved.get("state"), dict):
            raise InputError(f"{self.path}: has unexpected contents; {self.remedy}")
        self.directory.check(before)
        return dict(saved["state"])

    def lock(self) -> None:
        """Lock the checkpoint directory; remove the checkpoint of a finished training run with other settings."""
        self.directory.lock()
        self.directory.clear_finished(self.path.name)

    def release(self) -> None:
        """Release the lock."""
        self.directory.release()

    def finish(self) -> None:
        """Record that the outputs are written: a training run with other settings may then replace the checkpoint."""
        self.directory.finish()

    def save(self, state: Mapping[str, Any]) -> None:
        """Replace the checkpoint.

        Raises:
            InputError: the file cannot be written (full disk, permissions); the previous checkpoint is kept.
        """
        save_file(self.path, {"fingerprint": self.directory.fingerprint, "state": dict(state)})
