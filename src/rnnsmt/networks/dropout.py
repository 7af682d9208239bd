"""Dropout (Srivastava et al. 2014) whose choices follow from the seed and the examples, not from threads or devices."""

import torch
from torch import Tensor

CPU = torch.device("cpu")

DROPOUT_ROWS = 32
"""Examples that share a random generator on a processor: minibatches are shared out to threads in multiples of it."""


class Dropout:
    """Leaves out a share of the units, in 256ths (at least one if any), and scales the others up.

    What is left out follows from the seed and the number of the first of every ``DROPOUT_ROWS`` examples, whichever
    thread they come to.
    """

    def __init__(self, share: float, seed: int) -> None:
        self.limit = min(max(round(256 * share), 1), 255) if share > 0 else 0
        self.seed = seed

    def generators(self, rows: Tensor, device: torch.device = CPU) -> list[torch.Generator]:
        """For a batch of examples with these numbers, which lie on the processor; none: nothing is left out.

        On a GPU one generator draws for the whole batch, whose choices then are others than a processor's.
        """
        if not self.limit:
            return []
        firsts = rows[:: DROPOUT_ROWS if device.type == "cpu" else len(rows)].tolist()
        return [torch.Generator(device).manual_seed((self.seed * 1_000_003 + n) % (1 << 63)) for n in firsts]

    def factors(self, rows: int, units: int, generators: list[torch.Generator]) -> Tensor | None:
        """The next factors ``[rows, units]``, float32: 0 for units that are left out; None where none is."""
        if not generators:
            return None
        device = generators[0].device
        size = (DROPOUT_ROWS if device.type == "cpu" else rows) * units
        draws = torch.empty(len(generators), -(-size // 8), dtype=torch.int64, device=device)
        for part, generator in zip(draws, generators, strict=True):
            part.random_(-(1 << 63), None, generator=generator)
        bytes_ = draws.view(torch.uint8)[:, :size].reshape(-1)[: rows * units]
        return (bytes_ >= self.limit).float().mul_(256 / (256 - self.limit)).view(rows, units)
