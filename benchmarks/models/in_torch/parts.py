"""What the programs in torch share: parameters with the values that models/parts.py gives its variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from models.in_torch import Tensor, Torch


class Parameters:
    """Makes parameters, and keeps them in order."""

    def __init__(self, torch: Torch, choose: np.random.Generator) -> None:
        self._torch, self.choose = torch, choose
        self.all: list[Tensor] = []

    def weight(self, shape: Sequence[int], scale: float, turned: Callable[[Any], Any] = lambda value: value) -> Tensor:
        """Normal values of `shape`, as parts.weight draws them, kept as `turned` gives them."""
        return self.kept(turned((self.choose.standard_normal(shape) * scale).astype(np.float32)))

    def bias(self, size: int, value: float = 0.0) -> Tensor:
        return self.kept(np.full([size], value, np.float32))

    def dense(self, rows: int, columns: int) -> tuple[Tensor, Tensor]:
        """Weight [columns, rows], as F.linear takes it, and bias."""
        return self.weight([rows, columns], (2.0 / rows) ** 0.5, np.transpose), self.bias(columns)

    def kept(self, value: Any) -> Tensor:
        self.all.append(self._torch.tensor(np.ascontiguousarray(value)).requires_grad_())
        return self.all[-1]


def compiled_if(torch: Torch, wanted: bool, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, by torch.compile where that is wanted."""
    compiled: Callable[..., Any] = torch.compile(function) if wanted else function
    return compiled
