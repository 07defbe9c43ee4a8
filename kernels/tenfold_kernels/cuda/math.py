"""Elementwise ops and their gradients: one launch each, from the text of _loops.py, with broadcasting."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tenfold_core import dtypes, opdefs
from tenfold_kernels.arrays import incompatible
from tenfold_kernels.cpu.math import shaped_as
from tenfold_kernels.cuda import _loops
from tenfold_kernels.cuda._runtime import runtime_of
from tenfold_kernels.cuda._types import ANY_NUMBERS, ON_HOST
from tenfold_kernels.cuda.loop_text import EXTRA, WHOLE, Loop, has_expression
from tenfold_kernels.fusion import expressions
from tenfold_kernels.fusion.runs import FusedOp, Source
from tenfold_kernels.registry import EVERYTHING, Compute, KernelNode, kernel, shared_kernel
from tenfold_kernels.typesets import COMPLEX

if TYPE_CHECKING:
    from tenfold_kernels.cuda._arrays import DeviceArray

#: Attributes that an expression may use.
_ATTRS = ("alpha",)


def elementwise(node: KernelNode) -> Compute:
    """A kernel of arrays of one shape or of shapes that broadcast. The two inputs (y, dy) of a gradient may have any
    shapes of as many elements; the result has that of y.
    """
    dtype = np.dtype(node.output_types[0].base_dtype.as_numpy_dtype)
    attrs = tuple((name, float(node.attrs[name])) for name in _ATTRS if name in node.attrs)
    sources: tuple[Source, ...] = tuple(("input", i) for i in range(len(node.input_types)))
    steps = (FusedOp(node.op, attrs, sources, dtype),)
    loop_of = partial(Loop, steps=steps, outputs=(0,))
    if node.op in expressions.NO_BROADCAST:
        return lambda y, dy: _loops.run_loop(loop_of, [y, shaped_as(y, dy)])[0]
    if not node.attrs.get("incompatible_shape_error", True):
        return _or_unequal(node, loop_of)
    return lambda *inputs: _loops.run_loop(loop_of, inputs)[0]


def _or_unequal(node: KernelNode, loop_of: partial[Loop]) -> Compute:
    """A comparison for which shapes that do not broadcast are unequal instead of wrong."""
    runtime = runtime_of(node.device)
    answer = runtime.to_device(np.array(node.op == "NotEqual"))

    def compute(x: DeviceArray, y: DeviceArray) -> DeviceArray:
        sizes = zip(reversed(x.shape), reversed(y.shape), strict=False)
        if all(1 in pair or pair[0] == pair[1] for pair in sizes):
            return _loops.run_loop(loop_of, [x, y])[0]
        out = runtime.empty((), answer.dtype)
        runtime.copy(answer, out)
        return out

    return compute


def _register() -> None:
    """A row for every op that has an expression, of those of this family and of nn."""
    for op in _OPS:
        if not opdefs.has(op) or opdefs.family_of(op) != "math" or op in _OWN_ROWS:
            continue
        attrs = {attr.name for attr in opdefs.get(op).attrs}
        if "T" not in attrs:
            kernel(op, device="GPU")(elementwise)
            continue
        types = [dtype for dtype in ANY_NUMBERS | COMPLEX | {dtypes.bool_} if _fits(op, dtype)]
        if types:
            kernel(op, device="GPU", T=types)(elementwise)
        if op not in _FLOATS_ONLY:
            shared_kernel(op, host=(EVERYTHING,), T=ON_HOST)


def _fits(op: str, dtype: dtypes.DType) -> bool:
    given = np.dtype(dtype.as_numpy_dtype)
    count = len(opdefs.get(op).inputs)
    out = np.dtype(bool) if op in _TESTS else given
    return has_expression(op, [given] * count, out)


#: Ops that give bools.
_TESTS = frozenset(
    ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "IsNan", "IsFinite", "IsInf")
)
_OPS = tuple(dict.fromkeys((*expressions.OPS, *EXTRA, *WHOLE)))
_FLOATS_ONLY = frozenset(op for op in _OPS if not has_expression(
    op, [np.dtype("int32")] * 3, np.dtype("int32")) and op not in _TESTS)  # fmt: skip
#: Registered below, or in another file.
_OWN_ROWS = frozenset(("AddN", "AccumulateNV2", "Cast", "Select", "SelectV2"))
_register()
kernel("Conj", device="GPU", T=COMPLEX)(elementwise)
for _whole, _part in ((dtypes.complex64, dtypes.float32), (dtypes.complex128, dtypes.float64)):
    kernel("Real", "Imag", "ComplexAbs", device="GPU", T=_whole, Tout=_part)(elementwise)
    kernel("Complex", device="GPU", T=_part, Tout=_whole)(elementwise)


@kernel("AddN", "AccumulateNV2", device="GPU", T=ANY_NUMBERS | COMPLEX)
def build_add_n(node: KernelNode) -> Compute:
    """The sum of all inputs, of one shape, in one pass, from the first to the last."""
    dtype = np.dtype(node.output_types[0].base_dtype.as_numpy_dtype)
    count = len(node.input_types)
    steps = [FusedOp("Add", (), (("input", 0), ("input", 1)), dtype)] if count > 1 else []
    for number in range(2, count):
        steps.append(FusedOp("Add", (), (("op", number - 2), ("input", number)), dtype))
    loop_of = partial(Loop, steps=tuple(steps), outputs=(len(steps) - 1,))

    def compute(*inputs: DeviceArray) -> DeviceArray:
        if any(each.shape != inputs[0].shape for each in inputs):
            raise incompatible(*inputs)  # type: ignore[arg-type] # their shapes are all that it reads
        return inputs[0] if count == 1 else _loops.run_loop(loop_of, inputs)[0]

    return compute


shared_kernel("AddN", "AccumulateNV2", host=(EVERYTHING,), T=ON_HOST)

_CASTS = ANY_NUMBERS | {dtypes.bool_, dtypes.int32}


@kernel("Cast", device="GPU", SrcT=_CASTS, DstT=_CASTS | COMPLEX)
@kernel("Cast", device="GPU", SrcT=COMPLEX, DstT=COMPLEX)
def build_cast(node: KernelNode) -> Compute:
    """Numbers as another type: floats lose their fraction towards zero, as in C."""
    source, target = (np.dtype(t.as_numpy_dtype) for t in (node.input_types[0], node.output_types[0]))
    steps = (FusedOp("Cast", (), (("input", 0),), target),)
    loop_of = partial(Loop, steps=steps, outputs=(0,))
    if source == target:
        return lambda x: x
    return lambda x: _loops.run_loop(loop_of, [x])[0]


@kernel("Select", "SelectV2", device="GPU", T=ANY_NUMBERS | COMPLEX | {dtypes.bool_})
def build_select(node: KernelNode) -> Compute:
    """Elements of one or the other. Select takes a vector of conditions for rows, too."""
    dtype = np.dtype(node.output_types[0].as_numpy_dtype)
    steps = (FusedOp("SelectV2", (), tuple(("input", i) for i in range(3)), dtype),)
    loop_of = partial(Loop, steps=steps, outputs=(0,))
    by_rows = node.op == "Select"

    def compute(condition: DeviceArray, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        if by_rows:
            if x.shape != y.shape:
                raise incompatible(x, y)  # type: ignore[arg-type] # their shapes are all that it reads
            if condition.shape != x.shape:
                rows = condition.ndim == 1 and x.ndim > 0 and condition.shape[0] == x.shape[0]
                if not rows and condition.ndim:
                    raise incompatible(condition, x)  # type: ignore[arg-type] # as above
                condition = condition.reshape(condition.shape + (1,) * (x.ndim - condition.ndim))
        return _loops.run_loop(loop_of, [condition, x, y])[0]

    return compute


shared_kernel("Select", "SelectV2", host=(EVERYTHING,), T=ON_HOST)
shared_kernel("Range", host=(EVERYTHING,), Tidx=ON_HOST)
shared_kernel("LinSpace", host=(EVERYTHING,))
