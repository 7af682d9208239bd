"""Device, threads, and precision of matrix products for the computation of networks."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from rnnsmt.base.errors import InputError
from rnnsmt.base.progress import say


@dataclass(frozen=True)
class DeviceSetup:
    """Device, and precision of matrix products."""

    device: torch.device
    matmul_dtype: torch.dtype | None = None
    """Type to which the caller must round the factors of matrix products; None: the caller does not round them."""

    def describe(self) -> dict[str, str]:
        """Return the type of the device and the precision of the factors of matrix products."""
        rounded = "float32" if torch.get_float32_matmul_precision() == "highest" else "TF32"
        return {"device": self.device.type, "factors": "bfloat16" if self.matmul_dtype is torch.bfloat16 else rounded}

    def __str__(self) -> str:
        """Return a description for the log."""
        name = "the CPU" if self.device.type == "cpu" else f"{self.device} ({torch.cuda.get_device_name(self.device)})"
        return f"{name}, matrix products with {self.describe()['factors']} factors"


def set_up_device(name: str, threads: int, precision: str = "float32") -> DeviceSetup:
    """Choose the device, and set the number of torch threads and the precision of this process.

    A warning is logged if ``auto`` finds no GPU although there are signs of one.

    Args:
        name: ``cpu``, ``cuda`` (the first visible GPU), or ``auto``: a GPU if there is one, otherwise the CPU.
        precision: rounding of the factors of matrix products; sums are in float32. ``float32``: not rounded.
            ``reduced``: rounded to bfloat16 (8 significant bits, relative error up to 0.4 %) on CPUs with bfloat16
            instructions, and to TF32 (11 bits, 0.05 %) on GPUs. ``bfloat16``: rounded to bfloat16 on any device, even
            where that is slow. Torch rounds to TF32; the caller must round to bfloat16, see
            ``DeviceSetup.matmul_dtype``.

    Raises:
        InputError: ``cuda`` was requested, but torch finds no GPU.
    """
    torch.set_num_threads(threads)
    has_cuda = torch.cuda.is_available()
    if name == "cuda" and not has_cuda:
        raise InputError("--device cuda: torch finds no GPU; use --device cpu, or install torch with CUDA support")
    kind = "cuda" if name != "cpu" and has_cuda else "cpu"
    reduced = precision == "reduced"
    _allow_tf32(reduced and kind == "cuda")
    rounds = precision == "bfloat16" or (reduced and kind == "cpu" and multiplies_bfloat16())
    matmul_dtype = torch.bfloat16 if rounds else None
    # oneDNN has no bfloat16 LSTM for CPUs without bfloat16 instructions; torch's native one is used there
    fits = not rounds or kind == "cuda" or multiplies_bfloat16()
    torch.backends.mkldnn.enabled = fits  # type: ignore[assignment]  # a property of a module
    if name == "auto" and kind == "cpu" and (sign := _sign_of_a_gpu()):
        say(
            f"--device auto: using the CPU, because torch finds no GPU although {sign}; install a CUDA build of "
            "torch that matches the driver, or use --device cpu"
        )
    return DeviceSetup(torch.device("cuda", 0) if kind == "cuda" else torch.device("cpu"), matmul_dtype)


RESERVED = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES")
"""Environment variables that are set if a scheduler has reserved a GPU."""


def _sign_of_a_gpu() -> str:
    """Return a reason to expect a GPU: a reserved GPU or the driver's device file; an empty string if there is none."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):  # hidden on purpose
        return ""
    for variable in RESERVED:
        if variable in os.environ:
            return f"{variable} is {os.environ[variable]}"
    return f"{DRIVER} exists" if DRIVER.exists() else ""


DRIVER = Path("/dev/nvidia0")


@contextmanager
def full_precision() -> Iterator[None]:
    """Compute matrix products in float32 within the ``with`` block, regardless of ``set_up_device``."""
    before = torch.get_float32_matmul_precision() != "highest"
    _allow_tf32(False)
    try:
        yield
    finally:
        _allow_tf32(before)


def _allow_tf32(allowed: bool) -> None:
    """Allow or forbid TF32 in matrix products and in the LSTM of cuDNN, where torch allows it by default."""
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    torch.backends.cudnn.allow_tf32 = allowed


def multiplies_bfloat16() -> bool:
    """Return whether the CPU has bfloat16 instructions; without them bfloat16 is slower than float32."""
    return any(getattr(torch.cpu, name, bool)() for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
