"""Programs of variables: every op that changes one, as a reference and as a resource, and what it leaves behind."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from support.kernel_net import recipes_places
from tenfold_core import dtypes, opdefs
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels import registry

if TYPE_CHECKING:
    from support.program_net.program import Output, Program

_ALSO = (
    *("Assign", "AssignAdd", "AssignSub", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"),
    *("CountUpTo", "ResourceCountUpTo", "VariableShape", "IsVariableInitialized", "VarIsInitializedOp"),
    *("ResourceGather", "ResourceGatherNd", "StridedSliceAssign", "ResourceStridedSliceAssign", "DestroyResourceOp"),
)


def ops() -> list[str]:
    """Every op of optimizers and of scatters into variables, and a few more."""
    words = ("Apply", "Scatter")
    return [
        name
        for name in opdefs.names()
        if name in _ALSO
        or (
            any(word in name for word in words) and opdefs.family_of(name) == "state" and registry._rows_of(name, "CPU")
        )
    ]


class _Variables:
    """The variables of a program, by what holds them."""

    def __init__(self, p: Program, is_resource: bool, dtype: Any) -> None:
        self.p, self.is_resource, self.dtype, self.made = p, is_resource, dtype, 0

    def new(self, value: Any, is_set: bool = True) -> Output:
        self.made += 1
        value = np.asarray(value).astype(self.dtype.as_numpy_dtype)
        shape, name = TensorShape(value.shape), f"v{self.made}".encode()
        if self.is_resource:
            handle = self.p.step("VarHandleOp", dtype=self.dtype, shape=shape, shared_name=name)
            if is_set:
                self.p.step("AssignVariableOp", handle, value, dtype=self.dtype)
            return handle
        ref = self.p.step("VariableV2", dtype=self.dtype, shape=shape, shared_name=name)
        if is_set:
            self.p.step("Assign", ref, value, T=self.dtype)
        return ref

    def read(self, variable: Output) -> None:
        if self.is_resource:
            self.p.step("ReadVariableOp", variable, dtype=self.dtype)
        else:
            self.p.step("Identity", variable, T=self.dtype)


def program(p: Program, op: str) -> None:
    """Makes variables, runs the op on them, twice for optimizers, and reads what they are then."""
    d, definition = p.d, opdefs.get(op)
    is_resource = definition.inputs[0].type is dtypes.resource
    dtype = d.choice((dtypes.float32, dtypes.float32, dtypes.float64))
    if "Apply" not in op:
        dtype = d.choice((dtypes.float32, dtypes.int32, dtypes.int64, dtypes.float64))
    variables = _Variables(p, is_resource, dtype)
    if "Apply" in op:
        _optimizer(p, op, variables)
    elif "Scatter" in op:
        _scatter(p, op, variables)
    else:
        _plain(p, op, variables)


def _scalar(d: Any, name: str) -> float:
    if name == "lr_power":
        return d.choice((-0.5, -0.5, -1.0, 0.0, 0.5 if d.maybe(0.2) else -0.5))
    if name in ("l1", "l2", "l2_shrinkage"):
        return d.choice((0.0, 0.1, 0.5, -0.1 if d.maybe(0.1) else 0.2))
    return d.choice((0.1, 0.5, 0.9, 0.01, -0.1 if d.maybe(0.05) and name == "lr" else 0.3))


def _optimizer(p: Program, op: str, variables: _Variables) -> None:
    d, definition = p.d, opdefs.get(op)
    shape = tuple(max(1, size) for size in d.shape(1, 2))
    is_sparse = any(arg.name == "indices" for arg in definition.inputs)
    count = d.randint(0, 3) if is_sparse else 0
    held: list[Output] = []
    inputs: list[Any] = []
    attrs: dict[str, Any] = {
        attr.name: True for attr in definition.attrs if attr.name.startswith("use_") and d.maybe(0.4)
    }
    attrs |= {
        attr.name: d.maybe() for attr in definition.attrs if attr.name in ("update_slots", "multiply_linear_by_lr")
    }
    for arg in definition.inputs:
        if arg.is_ref or arg.type is dtypes.resource:
            sizes = shape if d.maybe(0.97) else (*shape[:-1], shape[-1] + 1)
            positive = "accum" in arg.name or arg.name in ("v", "ms", "rms", "nu") or d.maybe(0.2)
            value = d.floats(sizes, 0.1, 2) if positive else d.floats(sizes)
            if arg.name == "ms" and "Centered" in op:
                value += 9.0  # a mean square is more than the mean's square
            held.append(variables.new(value, d.maybe(0.98)))
            inputs.append(held[-1])
        elif arg.name == "grad":
            sizes = (count, *shape[1:]) if is_sparse else shape
            inputs.append(d.floats(sizes if d.maybe(0.95) else (*sizes, 2)))
        elif arg.name == "indices":
            inputs.append(np.array(d.ints(count, 0, shape[0] - 1 + d.maybe(0.06)), d.choice((np.int32, np.int64))))
        elif arg.type is dtypes.int64:
            inputs.append(np.int64(d.choice((1, 2, 10))))
        else:
            inputs.append(_scalar(d, arg.name) if d.maybe(0.97) else [0.1])
    for _ in range(2):
        p.step(op, *inputs, T=variables.dtype, **attrs)
    for each in held:
        variables.read(each)


def _scatter(p: Program, op: str, variables: _Variables) -> None:
    d = p.d
    attrs = {"dtype" if op.startswith("ResourceScatter") and "Nd" not in op else "T": variables.dtype}
    if "Nd" in op:
        drawn: dict[str, Any] = {}
        shape, at, sizes = recipes_places.scatter(d, drawn)
        if at.ndim == 1:
            at, sizes = at[None], (1, *sizes)
        if d.maybe(0.05):
            sizes = (*sizes, 2)
        held = variables.new(d.floats(shape, 1, 9).round(), d.maybe(0.98))
        p.step(op, held, at.astype(d.choice((np.int32, np.int64))), d.floats(sizes, 1, 9).round(), **attrs)
    else:
        shape = tuple(max(1, size) for size in d.shape(1, 3))
        places = d.shape(0, 2)
        at = np.array(d.ints(math.prod(places), 0, shape[0] - 1 + d.maybe(0.08))).reshape(places)
        sizes = () if d.maybe(0.2) else (*places, *shape[1:], *((2,) if d.maybe(0.05) else ()))
        held = variables.new(d.floats(shape, 1, 9).round(), d.maybe(0.98))
        low = 0 if d.maybe(0.1) else 1
        p.step(op, held, at.astype(d.choice((np.int32, np.int64))), d.floats(sizes, low, 5).round(), **attrs)
    variables.read(held)


def _plain(p: Program, op: str, variables: _Variables) -> None:
    d, dtype = p.d, variables.dtype
    shape = tuple(max(1, size) for size in d.shape(0, 2))
    other = shape if d.maybe(0.8) else d.shape(0, 2)
    if op.endswith("CountUpTo"):
        variables.dtype = d.choice((dtypes.int32, dtypes.int64))
        held = variables.new(d.choice((0, 1, 5)) if d.maybe(0.9) else [1])
        for _ in range(2):
            p.step(op, held, T=variables.dtype, limit=d.choice((2, 5, 6)))
    elif op in ("ResourceGather", "ResourceGatherNd", "StridedSliceAssign", "ResourceStridedSliceAssign"):
        drawn: dict[str, Any] = {}
        if "Gather" in op:
            sizes, at = (recipes_places.gather_nd if op.endswith("Nd") else recipes_places.gather)(d, drawn)
            held = variables.new(d.floats(sizes).round())
            p.step(op, held, at.astype(np.int64), dtype=dtype)
        else:
            sizes, ends, taken = recipes_places.strides(d, drawn)
            held = variables.new(d.floats(sizes).round())
            inputs = [np.array(each, np.int32) for each in ends]
            p.step(op, held, *inputs, d.floats(taken if d.maybe(0.8) else ()).round(), T=dtype, **drawn)
    elif op in ("IsVariableInitialized", "VarIsInitializedOp", "VariableShape", "DestroyResourceOp"):
        held = variables.new(d.floats(shape), d.maybe(0.7))
        attrs = (
            {"dtype": dtype}
            if op.startswith("Is")
            else {"ignore_lookup_error": d.maybe()}
            if op.startswith("D")
            else {}
        )
        p.step(op, held, **attrs)
        if op == "DestroyResourceOp":
            p.step(op, held, **attrs)
            p.step("VarIsInitializedOp", held)
        return
    else:
        held = variables.new(d.floats(shape).round(), d.maybe(0.9))
        attrs = {"T": dtype} if op in ("Assign", "AssignAdd", "AssignSub") else {"dtype": dtype}
        if op in ("Assign", "AssignVariableOp"):
            attrs["validate_shape"] = d.maybe()
        p.step(op, held, d.floats(other).round(), **attrs)
    variables.read(held)
