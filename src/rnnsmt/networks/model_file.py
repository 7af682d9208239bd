"""Files of networks (safetensors), and checkpoints of training runs, which are resumed only with the same settings."""

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from rnnsmt.base.io import InputError, atomic_path
from rnnsmt.base.resuming import CheckpointDirectory
from rnnsmt.networks.settings import NetworkSizes


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

METADATA = "rnnsmt"
"""The only key of a file's metadata. Its value is JSON: safetensors writes several keys in random order."""


def write_model(
    path: str | Path, kind: ModelFormat, model: nn.Module, sizes: NetworkSizes, content: Mapping[str, Any]
) -> None:
    """Write a network, atomically; equal networks give equal bytes. content: additional values that JSON can hold."""
    parameters = {name: parameter.detach().cpu().clone() for name, parameter in model.named_parameters()}
    described = json.dumps({"format": kind.version, "sizes": sizes.as_dict(), **content}, sort_keys=True)
    with atomic_path(path) as temporary:
        temporary.write_bytes(save(parameters, {METADATA: described}))


def read_model(
    path: str | Path,
    kind: ModelFormat,
    build: Callable[[dict[str, Any]], AnyNetwork],
    device: torch.device | str,
) -> tuple[AnyNetwork, dict[str, Any]]:
    """Read a network that ``write_model`` wrote onto a device; return it, without gradients, and its content.

    Args:
        build: creates the network, uninitialised, from its sizes.
    """
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file; {kind.remedy}")
    try:
        with safe_open(path, "pt") as file:
            content = json.loads((file.metadata() or {}).get(METADATA, "{}"))
            # copied, because the mapped tensors are not aligned like those of torch, which may change the rounding
            parameters = {name: file.get_tensor(name).to(device, copy=True) for name in file.keys()}  # noqa: SIM118
    except SafetensorError:
        raise InputError(
            f"{path}: is not a complete safetensors file (networks of version 1.0.0 cannot be read); {kind.remedy}"
        ) from None
    if content.get("format") != kind.version:
        raise InputError(f"{path}: is not {kind.network}, or was written by a different version; {kind.remedy}")
    with torch.device("meta"):
        model = build(content["sizes"])
    model.load_state_dict(parameters, assign=True)
    return model.requires_grad_(False), content


class Checkpoint(CheckpointDirectory):
    """Checkpoint of a training run: its fingerprint and state, in the file ``checkpoint.pt`` of a directory.

    Training uses generators that are seeded by the random seed and the number of the update. The global generators of
    Python, numpy and torch are neither seeded nor saved: with them, checkpoints of equal training runs would differ.
    """

    @property
    def file(self) -> Path:
        """Return the path of the file."""
        return self.path / "checkpoint.pt"

    def load(self, device: torch.device | str = "cpu") -> dict[str, Any] | None:
        """Read the last checkpoint, its tensors on ``device``; None if there is none."""
        if not self.file.exists():
            return None
        saved = torch.load(self.file, map_location=device, weights_only=True)
        self.check(saved["fingerprint"])
        state: dict[str, Any] = saved["state"]
        return state

    def lock(self) -> None:
        """Lock the checkpoint directory; remove the checkpoint of a finished training run with other settings."""
        super().lock()
        self.clear_finished(self.file.name)

    def save(self, state: Mapping[str, Any]) -> None:
        """Replace the checkpoint; equal states give equal bytes."""
        memory = io.BytesIO()  # torch.save to a path would store the name of the temporary file
        torch.save({"fingerprint": self.fingerprint, "state": dict(state)}, memory)
        with atomic_path(self.file) as temporary, temporary.open("wb") as out:
            out.write(memory.getbuffer())
