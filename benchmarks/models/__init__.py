"""The programs of subject 12, as somebody would write them for TensorFlow 1.x: a file a kind, nothing of the harness.

A program is a function `build(tf, wrap)`: it adds itself to the default graph and returns a `Model`. It gets `tf` from
the side that runs it. All initial values and batches come from seeded generators, so that every side starts from the
same point. `wrap` is applied to the optimizer, for synchronous training. Called by programs.py, which has the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: `tf` of a side; what a program applies to its optimizer.
TF = Any
Wrap = Any


@dataclass(frozen=True)
class Model:
    """A program in the default graph."""

    #: float32 [], fetched in every step.
    loss: Any
    #: Run in every step; None for a program that trains nothing.
    train: Any
    #: The batches, taken in turn: placeholder → array.
    feeds: Sequence[Mapping[Any, Any]]
    #: A step that is more than one run of [loss, train] with a batch: gets the session's `run` and how many steps were
    #: before it, returns the loss.
    play: Callable[[Callable[..., Any], int], Any] | None = None

    def step(self, run: Callable[..., Any], number: int) -> Any:
        """One step; its loss."""
        if self.play is not None:
            return self.play(run, number)
        fetches = [self.loss] if self.train is None else [self.loss, self.train]
        return run(fetches, self.feeds[number % len(self.feeds)])[0]


def same(optimizer: Any) -> Any:
    """The `wrap` of a program that is not trained synchronously."""
    return optimizer
