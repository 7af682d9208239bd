"""Model files of networks (safetensors), and checkpoints of training runs.

A model file may come from other people (``rnnsmt.translation.archives``), and compiled kernels use word ids as array
indices. Therefore, ``read_model`` checks that the words, the sizes and the tensors of a file agree.
"""

import hashlib
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import message
from rnnsmt.base.paths import StrPath
from rnnsmt.base.resuming import CheckpointDirectory
from rnnsmt.base.writing import atomic_path
from rnnsmt.networks.data import SPECIAL
from rnnsmt.networks.network import METADATA
from rnnsmt.networks.settings import NetworkSizes


class ModelFormat(NamedTuple):
    """Format of the model files of one kind of network.

    Attributes:
        version: value of the entry ``format`` in the metadata of a file.
        network: name of the network with an article, for error messages.
        remedy: what the user should do about an invalid file; the last part of error messages.
    """

    version: str
    network: str
    remedy: str


class Shortlist(NamedTuple):
    """The words of one vocabulary of a network.

    Attributes:
        name: name of the words in error messages.
        words: the words from id 2 on, without EOS.
        ids: number of ids according to the sizes of the network, including the special ids.
    """

    name: str
    words: list[str]
    ids: int


class ModelContent(BaseModel):
    """Metadata of a model file; a subclass adds the entries of one kind of network.

    Attributes:
        format: ``ModelFormat.version``.
        sizes: the sizes of the network.
        checksum: SHA-256 of the other entries and of the tensors; empty in files of earlier versions.
        meta: settings, seed and results of the training run, values of built-in types.
    """

    model_config = ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=True)  # for NetworkSizes

    format: str
    sizes: NetworkSizes
    checksum: str = ""
    meta: dict[str, Any]

    @field_validator("format")
    @classmethod
    def check_format(cls, version: str, info: ValidationInfo) -> str:
        """Check the version against the ``ModelFormat``, which is the context of the validation."""
        assert isinstance(info.context, ModelFormat)
        if version != info.context.version:
            raise ValueError(f"must be {info.context.version}")
        return version

    def shortlists(self) -> Iterable[Shortlist]:
        """Return the words of each vocabulary in the file."""
        return ()


AnyContent = TypeVar("AnyContent", bound=ModelContent)
AnyNetwork = TypeVar("AnyNetwork", bound=nn.Module)


def write_model(
    path: StrPath, kind: ModelFormat, model: nn.Module, sizes: NetworkSizes, content: Mapping[str, Any]
) -> None:
    """Write a network, atomically; equal networks give equal bytes.

    content: further metadata, which can be represented in JSON.
    """
    parameters = {name: parameter.detach().cpu().clone() for name, parameter in model.named_parameters()}
    entries = {"format": kind.version, "sizes": sizes.as_dict(), **content}
    described = json.dumps({**entries, "checksum": _checksum(entries, parameters)}, sort_keys=True)
    with atomic_path(path) as temporary:
        temporary.write_bytes(save(parameters, {METADATA: described}))


def _checksum(entries: Mapping[str, Any], parameters: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of the entries without ``checksum``, and of the tensors in the order of their names."""
    digest = hashlib.sha256(json.dumps(entries, sort_keys=True).encode())
    for name in sorted(parameters):
        digest.update(parameters[name].contiguous().numpy().data)
    return digest.hexdigest()


def read_model(
    path: StrPath,
    kind: ModelFormat,
    content_type: type[AnyContent],
    build: Callable[[Any], AnyNetwork],
    device: torch.device | str,
) -> tuple[AnyNetwork, AnyContent]:
    """Read a model file that ``write_model`` wrote, and load the network on a device.

    Args:
        content_type: class of the metadata.
        build: function that creates an uninitialised network, given its sizes.

    Returns:
        The network, whose parameters do not require gradients, and the metadata.

    Raises:
        InputError: the file is missing, malformed or damaged, or is that of another kind of network.
    """
    try:
        if not Path(path).is_file():
            raise ValueError("no such file")
        with safe_open(path, "pt") as file:
            content = _content((file.metadata() or {}).get(METADATA, "{}"), kind, content_type)
            parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            layout = {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in parts.items()}
            # checked before the network is built, because it limits the number of layers
            if sum(math.prod(shape) for _, shape in layout.values()) != content.sizes.count():
                raise ValueError("its sizes require another number of weights than it has")
            with torch.device("meta"):
                model = build(content.sizes)
            for name, parameter in model.named_parameters():
                if layout.get(name) != ("F32", tuple(parameter.shape)):
                    raise ValueError(f"its sizes require {name} to have another shape or type")
            tensors = {name: file.get_tensor(name) for name, _ in model.named_parameters()}
            _check_values(content, tensors)
            # copied, because mapped tensors are aligned differently from torch's own, which may change the rounding
            parameters = {name: tensor.to(device, copy=True) for name, tensor in tensors.items()}
    except SafetensorError:
        raise InputError(
            f"{path}: is not a complete safetensors file (networks of version 1.0.0 cannot be read); {kind.remedy}"
        ) from None
    except ValueError as error:
        raise InputError(f"{path}: {error}; {kind.remedy}") from None
    model.load_state_dict(parameters, assign=True)
    return model.requires_grad_(False), content


def _content(described: str, kind: ModelFormat, content_type: type[AnyContent]) -> AnyContent:
    """Return the metadata of a file.

    Raises:
        ValueError: the file is of another kind, an entry is missing or has another type, or the number of words does
            not agree with the sizes.
    """
    try:
        content = content_type.model_validate_json(described, context=kind)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)
        if any(mistake["loc"] in ((), ("format",)) for mistake in wrong):
            raise ValueError(f"is not {kind.network}, or was written by a different version") from None
        place = ".".join(map(str, wrong[0]["loc"]))
        raise ValueError(f"its metadata is invalid: {place[:60]} {message(wrong[0])}") from None
    for name, words, ids in content.shortlists():
        if len(words) + SPECIAL != ids:
            raise ValueError(f"its number of {name} is {len(words):,}, but its sizes require {ids - SPECIAL:,}")
    return content


def _check_values(content: ModelContent, tensors: Mapping[str, Tensor]) -> None:
    """Check that all weights are finite, and the checksum.

    Raises:
        ValueError: a weight is NaN or infinite (the message names the tensor), or the checksum differs.
    """
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise ValueError(f"{name} contains NaN or infinite values")
    entries = content.model_dump(by_alias=True, exclude={"checksum"})
    if content.checksum and content.checksum != _checksum(entries, tensors):
        raise ValueError("is damaged (its checksum differs)")


class Checkpoint(CheckpointDirectory):
    """Checkpoint of a training run: its fingerprint and state, in the file ``checkpoint.pt`` of a directory.

    A checkpoint is loaded only if the training run has the same fingerprint. All random generators of training are
    seeded by the random seed and the number of the update. The global generators of Python, numpy and torch are neither
    seeded nor saved: with their states, the checkpoints of equal training runs would differ.
    """

    @property
    def file(self) -> Path:
        """Return the path of the checkpoint file."""
        return self.path / "checkpoint.pt"

    def load(self, device: torch.device | str = "cpu") -> dict[str, Any] | None:
        """Load the last checkpoint with its tensors on ``device``; return its state, or None if there is none.

        Raises:
            InputError: the checkpoint was saved with other settings.
        """
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
