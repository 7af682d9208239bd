"""Where networks are computed: the device, threads, the precision of matrix products, several processes."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import torch
from torch import Tensor
from torch import distributed as processes

from rnnsmt.io import InputError
from rnnsmt.progress import say


@dataclass(frozen=True)
class Place:
    """The device of this process, and which of how many processes it is; a ``with`` leaves the others at its end."""

    device: torch.device
    rank: int = 0
    processes: int = 1
    matmul_dtype: torch.dtype | None = None
    """What the caller has to round the factors of matrix products to; None: nothing, torch does what is needed."""

    @property
    def first(self) -> bool:
        """Whether this process writes the files and the log."""
        return self.rank == 0

    def describe(self) -> dict[str, str]:
        """The kind of device, and what the factors of matrix products are rounded to."""
        rounded = "float32" if torch.get_float32_matmul_precision() == "highest" else "TF32"
        return {"device": self.device.type, "factors": "bfloat16" if self.matmul_dtype is torch.bfloat16 else rounded}

    def __str__(self) -> str:
        """For the log."""
        name = "the CPU" if self.device.type == "cpu" else f"{self.device} ({torch.cuda.get_device_name(self.device)})"
        several = f", {self.processes} processes" if self.processes > 1 else ""
        return f"{name}{several}, products of {self.describe()['factors']} factors"

    def sum(self, value: Tensor) -> Tensor:
        """Add up a tensor over all processes, in place."""
        if self.processes > 1:
            processes.all_reduce(value)
        return value

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in any process."""
        if self.processes == 1:
            return flag
        return bool(self.sum(torch.tensor(float(flag), device=self.device)).item())

    def __enter__(self) -> "Place":
        return self

    def __exit__(self, *_: object) -> None:
        if self.processes > 1:
            processes.destroy_process_group()


def choose_place(name: str, threads: int, precision: str = "float32", join: bool = False) -> Place:
    """Set threads and precision of this process; join: and join the other ones where ``torchrun`` started several.

    Says so in the log where auto finds no GPU although there are signs that there should be one.

    name: cpu, cuda, or auto: a GPU where there is one. precision: ``float32``, or ``reduced``: the factors of matrix
    products are rounded, to bfloat16 (8 bits: an error of up to 0.4 %) on processors that multiply it, to TF32 (11
    bits: 0.05 %) on GPUs; sums stay float32. ``bfloat16``: rounded to it on GPUs too, and on processors that are slow
    at it. Factors of bfloat16 are rounded by the caller, see ``Place.matmul_dtype``.

    Raises:
        InputError: a GPU was asked for and there is none, or fewer than processes.
    """
    torch.set_num_threads(threads)
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise InputError("--device cuda: torch sees no GPU here; use --device cpu or a torch with CUDA")
    kind = "cuda" if name != "cpu" and there else "cpu"
    reduced = precision == "reduced"
    _allow_tf32(reduced and kind == "cuda")
    rounds = precision == "bfloat16" or (reduced and kind == "cpu" and multiplies_bfloat16())
    matmul_dtype = torch.bfloat16 if rounds else None
    # oneDNN has no LSTM of bfloat16 for processors that do not multiply it; torch's own takes its place
    fits = not rounds or kind == "cuda" or multiplies_bfloat16()
    torch.backends.mkldnn.enabled = fits  # type: ignore[assignment]  # a property of a module
    started = os.environ if join else {}
    number, rank = int(started.get("WORLD_SIZE", "1")), int(started.get("RANK", "0"))
    device = torch.device(kind)
    if kind == "cuda":
        local = take_gpu(int(started["LOCAL_RANK"])) if "LOCAL_RANK" in started else free_gpu()
        device = torch.device(kind, local)
        torch.cuda.set_device(device)
    if number > 1:
        processes.init_process_group("nccl" if kind == "cuda" else "gloo")
    if name == "auto" and kind == "cpu" and rank == 0 and (sign := _sign_of_a_gpu()):
        say(
            f"--device auto: takes the CPU, torch sees no GPU although {sign}; install a torch with CUDA that fits the "
            "driver, or give --device cpu"
        )
    return Place(device, rank, number, matmul_dtype)


RESERVED = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES")
"""Set where a scheduler has reserved a GPU."""


def _sign_of_a_gpu() -> str:
    """What says that this process should have one: a reservation, or the driver's file; empty: nothing does."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):  # hidden on purpose
        return ""
    for variable in RESERVED:
        if variable in os.environ:
            return f"{variable} is {os.environ[variable]}"
    return f"{DRIVER} is there" if DRIVER.exists() else ""


DRIVER = Path("/dev/nvidia0")


_taken: list[tuple[int, IO[str]]] = []
"""The GPU that this process has taken, and its lock, which is held until it ends."""

SHARES = 16
"""Processes of this package that tell each other that they work on a GPU."""


def free_gpu() -> int:
    """A GPU that no other process of this package on this machine has taken; if all are taken, one that few share.

    Snakemake counts GPUs but names none: jobs that run at the same time would all take the first.
    """
    if _taken:
        return _taken[0][0]
    for share in range(SHARES):
        for number in range(torch.cuda.device_count()):
            if _lock(number, share):
                return number
    return 0


def take_gpu(number: int) -> int:
    """This GPU, for a process that must not choose: one of several that train together.

    Raises:
        InputError: there are not so many.
    """
    if number >= torch.cuda.device_count():
        raise InputError(f"process {number} of this machine has no GPU of its own; start fewer processes")
    if not _taken and not _lock(number, 0):
        say(f"GPU {number}: another process of this package works on it too")
    return number


def _lock(number: int, share: int) -> bool:
    """Take a share of a GPU, if it is free."""
    name = f"rnnsmt-gpu-{torch.cuda.get_device_properties(number).uuid}{f'.{share}' if share else ''}.lock"
    try:
        lock = (Path(tempfile.gettempdir()) / name).open("a")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # taken, or the file is somebody else's
        return False
    _taken.append((number, lock))
    return True


@contextmanager
def full_precision() -> Iterator[None]:
    """Plain float32 products, whatever ``choose_place`` has set."""
    before = torch.get_float32_matmul_precision() != "highest"
    _allow_tf32(False)
    try:
        yield
    finally:
        _allow_tf32(before)


def _allow_tf32(allowed: bool) -> None:
    """In products, and in the LSTM of cuDNN, which would take TF32 unless told not to."""
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    torch.backends.cudnn.allow_tf32 = allowed


def multiplies_bfloat16() -> bool:
    """Whether this processor has instructions for it; without them it is slower than float32."""
    return any(getattr(torch.cpu, name, bool)() for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
