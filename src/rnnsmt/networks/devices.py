"""Device, threads, precision of matrix products, and processes for the computation of networks."""

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

from rnnsmt.base.io import InputError
from rnnsmt.base.progress import say


@dataclass(frozen=True)
class DeviceSetup:
    """Device, rank and precision of this process; as a context manager, leaves the process group at the end."""

    device: torch.device
    rank: int = 0
    processes: int = 1
    matmul_dtype: torch.dtype | None = None
    """Type to which the caller must round the factors of matrix products; None: torch does all rounding."""

    @property
    def first(self) -> bool:
        """Return whether this process writes the files and the log."""
        return self.rank == 0

    def describe(self) -> dict[str, str]:
        """Return the type of the device and the precision of the factors of matrix products."""
        rounded = "float32" if torch.get_float32_matmul_precision() == "highest" else "TF32"
        return {"device": self.device.type, "factors": "bfloat16" if self.matmul_dtype is torch.bfloat16 else rounded}

    def __str__(self) -> str:
        """Return a description for the log."""
        name = "the CPU" if self.device.type == "cpu" else f"{self.device} ({torch.cuda.get_device_name(self.device)})"
        several = f", {self.processes} processes" if self.processes > 1 else ""
        return f"{name}{several}, matrix products with {self.describe()['factors']} factors"

    def sum(self, value: Tensor) -> Tensor:
        """Sum a tensor over all processes, in place, and return it."""
        if self.processes > 1:
            processes.all_reduce(value)
        return value

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set in any process; also serves as a barrier."""
        if self.processes == 1:
            return flag
        return bool(self.sum(torch.tensor(float(flag), device=self.device)).item())

    def __enter__(self) -> "DeviceSetup":
        return self

    def __exit__(self, *_: object) -> None:
        if self.processes > 1:
            processes.destroy_process_group()


def set_up_device(name: str, threads: int, precision: str = "float32", join: bool = False) -> DeviceSetup:
    """Choose the device and set threads and precision of this process.

    A warning is logged if ``auto`` finds no GPU although there are signs of one.

    Args:
        name: ``cpu``, ``cuda``, or ``auto``: a GPU if there is one.
        threads: number of threads of torch.
        precision: ``float32``; ``reduced``: the factors of matrix products are rounded, to bfloat16 (8 significant
            bits, relative error up to 0.4 %) on CPUs with bfloat16 instructions, to TF32 (11 bits, 0.05 %) on GPUs,
            with sums in float32; ``bfloat16``: to bfloat16 on any device, even where that is slow. The caller rounds
            factors to bfloat16, see ``DeviceSetup.matmul_dtype``.
        join: join the process group if ``torchrun`` or ``started_processes`` started several processes.

    Raises:
        InputError: a GPU was requested and there is none, or there are fewer GPUs than processes.
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
            f"--device auto: using the CPU, because torch finds no GPU although {sign}; install a CUDA build of "
            "torch that matches the driver, or use --device cpu"
        )
    return DeviceSetup(device, rank, number, matmul_dtype)


RESERVED = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES")
"""Environment variables that are set if a scheduler has reserved a GPU."""


def _sign_of_a_gpu() -> str:
    """Return a sign that this process should have a GPU: a reservation or the driver's file; empty if there is none."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):  # hidden on purpose
        return ""
    for variable in RESERVED:
        if variable in os.environ:
            return f"{variable} is {os.environ[variable]}"
    return f"{DRIVER} exists" if DRIVER.exists() else ""


DRIVER = Path("/dev/nvidia0")


_taken: list[tuple[int, IO[str]]] = []
"""GPU taken by this process (at most one), and its lock file, which stays locked until the process ends."""

SHARES = 16
"""Maximum number of processes of this package that register on a GPU."""


def free_gpu() -> int:
    """Take a GPU that no other process of this package on this machine uses; if all are in use, the least shared one.

    Snakemake limits the number of GPUs in use but assigns none: without this, all concurrent jobs would use the first.
    """
    if _taken:
        return _taken[0][0]
    for share in range(SHARES):
        for number in range(torch.cuda.device_count()):
            if _lock(number, share):
                return number
    return 0


def take_gpu(number: int) -> int:
    """Take this GPU, for a process whose rank determines it.

    Raises:
        InputError: there is no GPU of this number.
    """
    if number >= torch.cuda.device_count():
        raise InputError(f"no free GPU for process {number} on this machine; start fewer processes")
    if not _taken and not _lock(number, 0):
        say(f"GPU {number}: is shared with another rnnsmt process")
    return number


def _lock(number: int, share: int) -> bool:
    """Lock share ``share`` (0-based) of a GPU by a file in the temporary directory; return whether it was free."""
    name = f"rnnsmt-gpu-{torch.cuda.get_device_properties(number).uuid}{f'.{share}' if share else ''}.lock"
    try:
        lock = (Path(tempfile.gettempdir()) / name).open("a")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # locked, or the file is owned by another user
        return False
    _taken.append((number, lock))
    return True


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
    """Allow or forbid TF32 in matrix products and in the LSTM of cuDNN, which by default uses it."""
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    torch.backends.cudnn.allow_tf32 = allowed


def multiplies_bfloat16() -> bool:
    """Return whether the CPU has bfloat16 instructions; without them bfloat16 is slower than float32."""
    return any(getattr(torch.cpu, name, bool)() for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
