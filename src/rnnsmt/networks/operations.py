"""Operations of networks with hand-written gradients: matrix products of rounded factors, dropout, gradients in place.

The masks of dropout (Srivastava et al. 2014) depend on the seed and the examples, not on the number of threads.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Products:
    """Matrix products of factors that are rounded to ``dtype`` (bfloat16), or not rounded (None).

    Products of rounded factors are summed in float32 and the result is rounded as well; what is added later is not.
    """

    def __init__(self, dtype: torch.dtype | None = None) -> None:
        self.dtype = dtype

    def round(self, x: Tensor) -> Tensor:
        """Round a factor that is used in several products, so that it is rounded only once."""
        return x if self.dtype is None else x.to(self.dtype)

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        """Compute a @ b, float32."""
        if self.dtype is None:
            return a @ b
        return (a.to(self.dtype) @ b.to(self.dtype)).float()

    def add_to(self, total: Tensor, a: Tensor, b: Tensor) -> Tensor:
        """Compute total + a @ b, which may overwrite ``total``: on a GPU this saves a kernel launch."""
        if total.is_cuda and self.dtype is None:
            return total.addmm_(a, b)
        return self(a, b).add_(total)


def put_gradient(parameter: nn.Parameter, gradient: Tensor) -> None:
    """Copy a gradient into the existing ``.grad`` of a parameter, which may be a view of a flat tensor."""
    assert parameter.grad is not None
    parameter.grad.copy_(gradient)


def put_gradients(parameters: Sequence[nn.Parameter], gradients: Sequence[Tensor]) -> None:
    """Copy gradients into the existing ``.grad`` of several parameters, in one launch on a GPU."""
    torch._foreach_copy_([parameter.grad for parameter in parameters if parameter.grad is not None], list(gradients))


CPU = torch.device("cpu")

DROPOUT_ROWS = 32
"""Number of examples per random generator on a CPU; the parts of a minibatch for threads begin at multiples of it."""


class Dropout:
    """Dropout with a rate in 256ths (at least 1/256 if not 0); the remaining units are scaled up.

    The masks depend on the seed and the index of the first of every ``DROPOUT_ROWS`` examples, whichever thread
    computes them.
    """

    def __init__(self, share: float, seed: int) -> None:
        self.limit = min(max(round(256 * share), 1), 255) if share > 0 else 0
        self.seed = seed

    def generators(self, rows: Tensor, device: torch.device = CPU) -> list[torch.Generator]:
        """Return the random generators for a batch of examples; an empty list if the rate is 0.

        Args:
            rows: [B], the indices of the examples, in CPU memory.
            device: where the masks are drawn. On a GPU one generator draws for the whole batch, so its masks differ
                from those of a CPU.
        """
        if not self.limit:
            return []
        firsts = rows[:: DROPOUT_ROWS if device.type == "cpu" else len(rows)].tolist()
        return [torch.Generator(device).manual_seed((self.seed * 1_000_003 + n) % (1 << 63)) for n in firsts]

    def factors(self, rows: int, units: int, generators: list[torch.Generator]) -> Tensor | None:
        """Draw the next factors, float32 [rows, units]: 0 for dropped units, else 1 / (1 - rate); None: no dropout."""
        if not generators:
            return None
        device = generators[0].device
        size = (DROPOUT_ROWS if device.type == "cpu" else rows) * units
        # one random byte per unit, drawn as int64: a byte below ``limit`` drops its unit
        draws = torch.empty(len(generators), -(-size // 8), dtype=torch.int64, device=device)
        for part, generator in zip(draws, generators, strict=True):
            part.random_(-(1 << 63), None, generator=generator)
        bytes_ = draws.view(torch.uint8)[:, :size].reshape(-1)[: rows * units]
        return (bytes_ >= self.limit).float().mul_(256 / (256 - self.limit)).view(rows, units)
