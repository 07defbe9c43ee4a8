"""Variables in a GPU's memory: made, read, assigned, counted. See cpu/state.py, whose kernels serve where they can."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import invalid, shape_text
from tenfold_kernels.cpu._variables import variable_reader
from tenfold_kernels.cpu.state import assign_variable_kernel, variable_kernel
from tenfold_kernels.cuda import _loops
from tenfold_kernels.cuda._types import ANY_NUMBERS, MOVED
from tenfold_kernels.cuda._variables import maker
from tenfold_kernels.cuda.loop_text import Loop
from tenfold_kernels.fusion.runs import FusedOp
from tenfold_kernels.registry import EVERYTHING, Compute, KernelNode, kernel, no_kernel, shared_kernel

if TYPE_CHECKING:
    from tenfold_kernels.cuda._arrays import DeviceArray
    from tenfold_kernels.resources.state import Variable

no_kernel("CountUpTo", "ResourceCountUpTo", device="GPU", why="they count on the host, as TensorFlow's do")
no_kernel("TemporaryVariable", "DestroyTemporaryVariable", device="GPU", why="no program puts them on a GPU")

shared_kernel("VarHandleOp", "VarIsInitializedOp", "VariableShape", "DestroyResourceOp", host=(EVERYTHING,))
shared_kernel("DisableCopyOnRead", host=(EVERYTHING,))
shared_kernel("IsVariableInitialized", host=("is_initialized",))
shared_kernel("Assign", host=(), T=MOVED)
shared_kernel("ReadVariableOp", host=(), dtype=MOVED)


@kernel("Variable", "VariableV2", device="GPU", dtype=MOVED)
def build_variable(node: KernelNode) -> Compute:
    return variable_kernel(node, maker(node.device))


@kernel("AssignVariableOp", device="GPU", dtype=MOVED)
def build_assign_variable(node: KernelNode) -> Compute:
    return assign_variable_kernel(node, maker(node.device, by_value=True))


@kernel("AssignAdd", "AssignSub", device="GPU", T=ANY_NUMBERS)
def build_assign_add(node: KernelNode) -> Compute:
    update = _update(node, node.op.removeprefix("Assign"), "Parameters and update must be the same size")

    def compute(variable: Variable, value: DeviceArray) -> Variable:
        with variable.lock:
            update(variable.buffer(), value)
        return variable

    return compute


@kernel("AssignAddVariableOp", "AssignSubVariableOp", device="GPU", dtype=ANY_NUMBERS)
def build_assign_add_variable(node: KernelNode) -> Compute:
    op = node.op.removeprefix("Assign").removesuffix("VariableOp")
    update, variable_at = _update(node, op, ""), variable_reader(node)

    def compute(resource: Any, value: DeviceArray) -> None:
        variable = variable_at(resource)
        with variable.lock:
            update(variable.buffer(exclusive=True), value)

    return compute


def _update(node: KernelNode, op: str, mismatch: str) -> Any:
    """(a variable's array, a value) → the array holds the sum or the difference."""
    dtype = np.dtype(node.attrs.get("T", node.attrs.get("dtype")).as_numpy_dtype)
    steps = (FusedOp(op, (), (("input", 0), ("input", 1)), dtype),)
    loop_of = partial(Loop, steps=steps, outputs=(0,))

    def update(array: Any, value: DeviceArray) -> None:
        if array.shape != value.shape:
            raise invalid(
                mismatch
                or f"Cannot update variable with shape {shape_text(array.shape)} using a Tensor with shape "
                f"{shape_text(value.shape)}, shapes must be equal."
            )
        _loops.run_loop(loop_of, [array, value], into=[array])

    return update
