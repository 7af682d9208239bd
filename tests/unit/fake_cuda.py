"""A simulated CUDA device: operations are computed on the CPU, and mixed devices raise errors as on a GPU.

It requires a torch without CUDA. A tensor on the device is a ``CudaTensor``: its device is ``cuda:0``, and its values
are in a CPU tensor. Every ATen operation on such tensors is handled by ``Device``, which

* refuses CPU tensors together with tensors of the device, with the exceptions of CUDA: 0-dimensional tensors in
  pointwise operations, and indices;
* counts copies between the two, and those for which the CPU has to wait for the device (``waits``);
* counts launches: one for every operation except views and allocations, and the number in ``LAUNCHES`` for operations
  of several kernels;
* records the operations that a CUDA graph captures (``FakeGraph``).

So the GPU code of the program is tested with real values. Speed, memory, rounding and the order of streams are not
simulated. A few lines of C++ are compiled against torch's headers, because torch requires a device guard before it
accesses a tensor. The guard is registered for the whole process, so tests start a process for it.
"""

import ctypes
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

aten = torch.ops.aten

CUDA = torch.device("cuda", 0)

GUARD = """
#include <c10/core/impl/DeviceGuardImplInterface.h>
namespace c10::impl { C10_REGISTER_GUARD_IMPL(CUDA, NoOpDeviceGuardImpl<DeviceType::CUDA>) }
"""

FREE = {
    "alias", "detach", "empty", "empty_like", "empty_strided", "lift_fresh", "new_empty", "new_empty_strided",
    "_unsafe_view",
}  # fmt: skip
"""Operations that launch nothing though they are no views."""

LAUNCHES = {"logsumexp": 6, "linalg_vector_norm": 1, "_softmax": 1, "_log_softmax": 1, "embedding_bag": 1}
"""Of operations that CUDA puts together of several kernels (greatest, difference, exp, sum, log, sum)."""

WAITS = {"nonzero", "masked_select", "_unique2", "unique_dim", "is_nonzero", "equal"}
"""Operations whose result is as large as the values say, or that answer the processor."""

INDICES = {"index", "index_put", "index_put_"}
"""Operations that take indices from the processor."""

PACKING = "_pack_padded_sequence"
"""Lengths, and numbers of rows, stay on the processor."""


def flattened(*values: Any) -> list[Any]:
    """Return the values in tuples and lists, in order; faster than ``torch.utils._pytree`` for those of operations."""
    found = []
    for value in values:
        found.extend(flattened(*value) if type(value) in (tuple, list) else [value])
    return found


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Return a value, or tuple or list of values, with the function applied to each of them."""
    if type(value) in (tuple, list):
        return type(value)([mapped(function, part) for part in value])
    return function(value)


class MixedDevicesError(RuntimeError):
    """Raised, as by CUDA, if the tensors of an operation are on two devices."""


class CudaTensor(torch.Tensor):
    """Tensor on the device; ``inner`` has its values."""

    inner: torch.Tensor

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> "CudaTensor":
        found = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=CUDA,
        )
        found.inner = inner
        return found

    def __repr__(self) -> str:  # type: ignore[override]
        return f"CudaTensor({self.inner!r})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.cpu().__reduce_ex__(protocol)

    def tolist(self) -> Any:
        return self.cpu().tolist()

    @property
    def data(self) -> torch.Tensor:  # type: ignore[override]
        return self.detach()

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        assert isinstance(value, CudaTensor)
        assert value.shape == self.shape
        self.inner = value.inner

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Handle an operation also in threads without a dispatch mode."""
        return Device.current.run(func, args, kwargs or {})


class Captured(NamedTuple):
    """Operation of a graph: the function, its arguments and its results."""

    function: Callable[..., Any]
    args: Any
    kwargs: Any
    found: Any

    def outputs(self) -> list[torch.Tensor]:
        """Return the output tensors."""
        return [x for x in flattened(self.found) if isinstance(x, torch.Tensor)]

    def replay(self) -> None:
        """Compute the operation again, writing to the same tensors."""
        again = flattened(self.function(*self.args, **self.kwargs))
        for out, new in zip(self.outputs(), (x for x in again if isinstance(x, torch.Tensor)), strict=True):
            if out is not new:
                out.copy_(new)


class FakeGraph:
    """Replacement of ``torch.cuda.CUDAGraph``: operations read and write the tensors that existed at capture.

    Captured operations are not computed. Their outputs become NaN or 0, so that no value can be used by mistake.
    """

    def __init__(self) -> None:
        self.operations: list[Captured] = []

    def register_generator_state(self, generator: torch.Generator) -> None:
        """Do nothing: replayed operations draw from the generators that they were called with."""

    def replay(self) -> None:
        Device.current.launches["graph"] += 1
        for operation in self.operations:
            operation.replay()


@contextmanager
def capture(graph: FakeGraph, pool: Any = None, capture_error_mode: str = "global") -> Iterator[None]:
    """Replace ``torch.cuda.graph``."""
    device = Device.current
    launches, device.captured = device.launches.copy(), graph.operations
    try:
        yield
    finally:
        device.captured, device.launches = None, launches
        for operation in graph.operations:
            for out in operation.outputs():
                out.fill_(float("nan") if out.is_floating_point() else 0)


class Device(TorchDispatchMode):
    """The device, which counts its operations.

    launches: by operation. to_device, to_host: copies. waits: how often the CPU waited for a value.
    """

    current: "Device"

    @classmethod
    def _should_skip_dynamo(cls) -> bool:  # otherwise torch imports its compiler
        return False

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.captured: list[Captured] | None = None
        self.reset()

    def reset(self) -> None:
        """Set the counts to 0."""
        self.launches: Counter[str] = Counter()
        self.to_device = self.to_host = self.waits = 0

    def counts(self) -> dict[str, int]:
        """Return all counts."""
        launches = sum(self.launches.values())
        return {"launches": launches, "to_device": self.to_device, "to_host": self.to_host, "waits": self.waits}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.run(func, args, kwargs or {})

    def run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Run an ATen operation on tensors of the device and of the CPU."""
        name = func.overloadpacket.__name__
        tensors = [x for x in flattened(*args, *kwargs.values()) if isinstance(x, torch.Tensor)]
        here = [x for x in tensors if isinstance(x, CudaTensor)]
        given = kwargs.get("device")
        target = torch.device(given).type if given is not None else ("cuda" if here else "cpu")
        if not here and target == "cpu":
            return func(*args, **kwargs)
        before = self.to_device, self.to_host, self.waits
        copies = name in ("_to_copy", "copy_")
        if copies:
            source = args[1] if name == "copy_" else args[0]
            into = args[0].device.type if name == "copy_" else target
            self._copied(source.device.type, into)
        else:
            if name != PACKING:
                self._check(func, name, args, tensors, here)
            self._launched(func, name, args)
        plain_args = [mapped(_plain, x) for x in args]
        plain_kwargs = {key: mapped(_plain, x) for key, x in kwargs.items()}
        if plain_kwargs.get("pin_memory"):
            plain_kwargs["pin_memory"] = False
        function = ONLY_CUDA.get(name, func)
        if self.captured is not None and before != (self.to_device, self.to_host, self.waits):
            raise RuntimeError(f"{name}: operation not permitted when stream is capturing")
        found = function(*plain_args, **plain_kwargs)
        if self.captured is not None and not func.is_view:
            self.captured.append(Captured(function, plain_args, plain_kwargs, found))
        if name == "_local_scalar_dense" or target == "cpu":
            return found
        if name == PACKING:
            return CudaTensor(found[0]), found[1]
        known = {id(x.inner if isinstance(x, CudaTensor) else x): x for x in tensors}

        def on_device(x: Any) -> Any:
            return known[id(x)] if id(x) in known else CudaTensor(x) if isinstance(x, torch.Tensor) else x

        return mapped(on_device, found)

    def _copied(self, source: str, into: str) -> None:
        with self.lock:
            if source == into:
                self.launches["copy"] += 1
            elif into == "cuda":
                self.to_device += 1
            else:
                self.to_host += 1
                self.waits += 1

    def _check(self, func: Any, name: str, args: Any, tensors: list[Any], here: list[Any]) -> None:
        others = [x for x in tensors if not isinstance(x, CudaTensor)]
        if name in INDICES:
            indices = [x for x in others if any(x is index for index in args[1])]
            with self.lock:
                self.to_device += len(indices)
                self.waits += len(indices)
            others = [x for x in others if not any(x is index for index in indices)]
        if torch.Tag.pointwise in func.tags or name in INDICES or name == "fill_":
            others = [x for x in others if x.dim()]
        if others:
            shapes = ", ".join(str(tuple(x.shape)) for x in others)
            raise MixedDevicesError(f"{name}: all tensors should be on cuda:0, but {shapes} is on the processor")

    def _launched(self, func: Any, name: str, args: Any) -> None:
        with self.lock:
            if name == "_local_scalar_dense":
                self.to_host += 1
                self.waits += 1
                return
            masks = name in INDICES and any(x is not None and x.dtype == torch.bool for x in args[1])
            fills = masks and name != "index" and args[2].dim() == 0  # torch calls masked_fill
            if name in WAITS or (masks and not fills):
                self.to_host += 1
                self.waits += 1
            if name not in FREE and not func.is_view:
                self.launches[name] += LAUNCHES.get(name, 1)


def lstm_cell(
    inputs: torch.Tensor, hidden: torch.Tensor, c: torch.Tensor, *biases: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Compute an LSTM cell from its gates' terms [B, 4H] and cells [B, H]; return states, cells, gates."""
    gates = inputs + hidden + sum(biases)
    i, f, g, o = gates.chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c, gates


ONLY_CUDA: dict[str, Callable[..., Any]] = {"_thnn_fused_lstm_cell": lstm_cell}
"""Operations that a processor does not have."""


def _plain(x: Any) -> Any:
    """Return the values of a tensor on the device; the CPU instead of the device."""
    if isinstance(x, CudaTensor):
        return x.inner
    return torch.device("cpu") if isinstance(x, torch.device) and x.type == "cuda" else x


def compiler() -> str | None:
    """Return the path of a C++ compiler, or None."""
    return shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")


def load_guard(directory: Path) -> None:
    """Register a device guard for CUDA in torch, for the rest of the process."""
    root = Path(torch.__file__).parent
    source, library = directory / "guard.cpp", directory / "guard.so"
    source.write_text(GUARD)
    build = [compiler() or "c++", "-std=c++20", "-shared", "-fPIC", f"-I{root / 'include'}", str(source)]
    subprocess.run([*build, "-o", str(library), f"-L{root / 'lib'}", "-lc10"], check=True)
    ctypes.CDLL(str(library))


class _Generator(torch.Generator):
    """Generator of any device, with the numbers of the CPU."""

    def __new__(cls, device: Any = "cpu") -> "_Generator":
        found = super().__new__(cls)
        found.place = torch.device(device)
        return found

    @property
    def device(self) -> torch.device:
        return self.place


class _Pool(ThreadPoolExecutor):
    """Thread pool whose threads use the device."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        def on_device() -> Any:
            with Device.current:
                return fn(*args, **kwargs)

        return super().submit(on_device)


def gradients(
    output: torch.Tensor, leaves: list[torch.Tensor], gradient: torch.Tensor, materialize_grads: bool
) -> list[torch.Tensor]:
    """Return the gradients of leaves, as ``torch.autograd.grad`` does; its engine needs streams of a real device."""
    order: list[Any] = []

    def visit(node: Any) -> None:
        if node is not None and node not in order:
            for following, _ in node.next_functions:
                visit(following)
            order.append(node)

    visit(output.grad_fn)
    at_outputs: dict[Any, dict[int, torch.Tensor]] = {node: {} for node in order}
    at_outputs[output.grad_fn][output.output_nr] = gradient
    of_leaves: dict[int, torch.Tensor] = {}
    with torch.no_grad():
        for node in reversed(order):
            received = at_outputs[node]
            if not received:
                continue
            if hasattr(node, "variable"):
                of_leaves[id(node.variable)] = received[0]
                continue
            arguments = [received.get(number) for number in range(1 + max(received))]
            if isinstance(node, torch.autograd.function.BackwardCFunction):
                found, edges = node.apply(*arguments), [edge for edge in node.next_functions if edge[0] is not None]
                found = [value for value, needed in zip(found, node.needs_input_grad, strict=True) if needed]
            else:
                found, edges = flattened(node(*arguments)), node.next_functions
            for (following, number), value in zip(edges, found, strict=True):
                if following is not None and value is not None:
                    held, shape = at_outputs[following], following._input_metadata[number].shape
                    part = value if value.shape == shape else value.sum_to_size(shape)
                    held[number] = held[number] + part if number in held else part
    return [of_leaves.get(id(leaf), torch.zeros_like(leaf)) for leaf in leaves]


@contextmanager
def fake_cuda() -> Iterator[Device]:
    """Activate the device within a ``with`` statement; ``load_guard`` must have been called."""
    device = Device.current = Device()
    load = torch.load

    def load_onto(path: Any, map_location: Any = None, **options: Any) -> Any:
        found = load(path, map_location="cpu", **options)
        on_device = torch.device(map_location or "cpu").type == "cuda"
        return tree_map_only(torch.Tensor, lambda x: x.to(CUDA), found) if on_device else found

    replaced = {
        "torch.cuda.is_available": lambda: True,
        "torch.cuda.device_count": lambda: 1,
        "torch.cuda.synchronize": lambda device=None: None,
        "torch.cuda.get_device_name": lambda device=None: "a device that is none",
        "torch.cuda._lazy_init": lambda: None,
        "torch.cuda.CUDAGraph": FakeGraph,
        "torch.cuda.graph": capture,
        "torch.cuda.graph_pool_handle": lambda: None,
        "torch._has_compatible_shallow_copy_type": lambda *_, **__: False,  # Module.to creates new parameters
        "torch._C._InferenceMode": lambda mode: torch.no_grad(),  # tensors made in it cannot be wrapped
        "torch.Generator": _Generator,
        "torch.autograd.grad": gradients,
        "torch.load": load_onto,
        "torch.optim.optimizer._foreach_supported_types": [torch.Tensor, torch.nn.Parameter, CudaTensor],
        "rnnsmt.rnn.phrase_scores.ThreadPoolExecutor": _Pool,
    }
    with ExitStack() as stack:
        for name, value in replaced.items():
            stack.enter_context(patch(name, value))
        torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(..., device=...) creates a CPU tensor first
        stack.callback(torch._C._set_only_lift_cpu_tensors, False)
        stack.enter_context(device)
        yield device


def pytest_configure(config: Any) -> None:
    """Activate the device for all tests of a process, as a plugin (``-p tests.unit.fake_cuda``)."""
    with TemporaryDirectory() as directory:
        load_guard(Path(directory))
    stack = ExitStack()
    stack.enter_context(fake_cuda())
    config.add_cleanup(stack.close)
