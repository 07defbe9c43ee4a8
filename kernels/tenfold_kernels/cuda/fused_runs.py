"""A run of elementwise ops on a GPU, with sums at its ends, as one launch: what fusion/runs.py is for the CPU.

The worker groups nodes by the shapes of one step (tenfold_compiler/fuse/); here a FusedRun becomes a Loop, and a
call that behaves as the nodes do: for arrays of other shapes it runs them one by one, `fallback`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tenfold_kernels.cuda import _loops, loop_sums
from tenfold_kernels.cuda.loop_text import Loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.cuda._arrays import DeviceArray
    from tenfold_kernels.fusion.cache import FusionCache
    from tenfold_kernels.fusion.runs import FusedRun


@dataclass(frozen=True, slots=True)
class DeviceRun:
    """A FusedRun of nodes of one GPU."""

    run: FusedRun

    @property
    def inputs(self) -> tuple[Any, ...]:
        return self.run.inputs

    @property
    def source(self) -> None:
        """Nothing is compiled by the CPU's compiler."""
        return

    def build(self, fallback: Callable[..., Any], cache: FusionCache) -> Callable[..., Any]:
        """Inputs by position → one array, or a tuple of them. Compiles at the first call."""
        run = self.run
        loop_of = partial(Loop, steps=run.ops, outputs=run.outputs, constants=run.constants)
        full = next((i for i, given in enumerate(run.inputs) if given.role == "full"), 0)
        roles = [given.role for given in run.inputs]
        alone = len(run.outputs) == 1
        sums = any(op.reduce for op in run.ops)

        def call(*inputs: DeviceArray) -> Any:
            shape = inputs[full].shape
            if len(shape) != run.rank or any(
                each.shape != _wanted(role, shape) for each, role in zip(inputs, roles, strict=True)
            ):
                return fallback(*inputs)
            if not sums:
                results = _loops.run_loop(loop_of, inputs)
            elif 0 in shape:
                # what a sum of nothing is, the kernels know
                return fallback(*inputs)
            else:
                results = loop_sums.run_loop(loop_of, inputs, shape)
            return results[0] if alone else tuple(results)

        return call


def _wanted(role: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an operand of that role in a loop of `shape`."""
    if role == "full":
        return shape
    if role == "row":
        return shape[-1:]
    return (*shape[:-1], 1) if role == "column" else ()
