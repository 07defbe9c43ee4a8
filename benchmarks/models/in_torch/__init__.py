"""The programs of models/ as somebody would write them for torch: the same weights, batches and arithmetic.

Each is a function `build(torch, compiled)` that gives a `Trained`. It gets `torch` from the side that runs it, and
draws from the same seeded generators in the same order as its counterpart, so that both have one curve of losses; one
that cannot (TensorFlow draws its table, torch's cell is another formula) says so. Called by programs.py, which has the
table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: The module, and its tensors.
Torch = Any
Tensor = Any


@dataclass(frozen=True)
class Trained:
    """A program in torch."""

    #: The loss of a batch's arrays, as tensors, float32 []. Compiled by the builder where that is asked for.
    loss: Callable[..., Tensor]
    #: The optimizer.
    optimizer: Any
    #: The batches, NumPy arrays in the order of the parameters of `loss`, taken in turn.
    batches: Sequence[Sequence[Any]]
    #: Called between the backward pass and the optimizer, such as to clip.
    before: Callable[[], object] = lambda: None
    #: Called after the optimizer, such as to follow averages.
    after: Callable[[], object] = lambda: None
    #: Bytes that a step must read and write whatever it does: weights, slots, touched rows.
    moved: int = 0
    #: Whether its losses are those of its counterpart.
    comparable: bool = True
    #: A step that is more than a batch: gets the module's `train` of one batch and how many steps were before it.
    play: Callable[[Callable[..., Any], int], Any] | None = None


class Stepper:
    """Steps of a program in torch: what programs.Driven is for TensorFlow's."""

    def __init__(self, torch: Torch, trained: Trained) -> None:
        self._torch, self._trained = torch, trained
        self._count = 0

    def step(self) -> float:
        """One step; its loss."""
        number, trained = self._count, self._trained
        self._count += 1
        if trained.play is not None:
            return float(trained.play(self.train, number))
        return self.train(*trained.batches[number % len(trained.batches)])

    def train(self, *arrays: Any) -> float:
        """Trains with one batch; its loss. The arrays are read in place."""
        trained = self._trained
        trained.optimizer.zero_grad(set_to_none=True)
        loss = trained.loss(*map(self._torch.from_numpy, arrays))
        loss.backward()
        trained.before()
        trained.optimizer.step()
        trained.after()
        return float(loss.item())


def dense_bytes(weights: Sequence[Tensor], slots: int) -> int:
    """What an optimizer with so many slots must move: each weight and slot is read and written, a gradient is read."""
    return sum(4 * each.numel() for each in weights) * (2 + 2 * slots + 1)
