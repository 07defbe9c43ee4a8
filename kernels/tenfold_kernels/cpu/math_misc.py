"""Matrix products, sums of many, ranges, broadcasting helpers, bit casts and small linear algebra.

Products go to NumPy's BLAS; transposes are flags to it, not copies. Outputs are fresh, except that Bitcast and a
broadcast that changes nothing may return a view. Follows matmul_op_impl.h, aggregate_ops.cc, bcast_ops.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.cpu._common import (
    Array,
    as_array,
    as_shape,
    contiguous,
    input_type,
    invalid,
    one_number,
    output_type,
    returning_array,
    shape_text,
    text_attr,
)
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import COMPLEX, FLOATING, NUMERIC, REAL

if TYPE_CHECKING:
    from collections.abc import Callable


def _product(a: Array, b: Array) -> Any:
    if a.dtype == np.float16:
        # NumPy has no BLAS for half, and TensorFlow accumulates in float too.
        return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(np.float16)
    return np.matmul(a, b)


@kernel("MatMul", T=NUMERIC)
def build_matmul(node: KernelNode) -> Compute:
    """a_MK, b_KN → out_MN; K may be 0, which gives zeros."""
    transpose_a, transpose_b = bool(node.attrs.get("transpose_a")), bool(node.attrs.get("transpose_b"))
    product: Callable[[Array, Array], Any] = _product if input_type(node) == np.float16 else np.matmul

    def compute(a: Array, b: Array) -> Any:
        if a.ndim != 2 or b.ndim != 2:
            which, wrong = (0, a) if a.ndim != 2 else (1, b)
            raise invalid(f"In[{which}] is not a matrix. Instead it has shape {shape_text(wrong.shape)}")
        left, right = a.T if transpose_a else a, b.T if transpose_b else b
        try:
            return product(left, right)
        except ValueError:
            raise invalid(
                f"Matrix size-incompatible: In[0]: {shape_text(a.shape)}, In[1]: {shape_text(b.shape)}"
            ) from None

    return compute


@kernel("BatchMatMul", "BatchMatMulV2")
def build_batch_matmul(node: KernelNode) -> Compute:
    """Leading dimensions must be equal, and broadcast from V2 on; adj_x and adj_y take the adjoint."""
    adjoint_x, adjoint_y = bool(node.attrs.get("adj_x")), bool(node.attrs.get("adj_y"))

    def adjoint(x: Array) -> Array:
        return np.conj(x.swapaxes(-1, -2)) if x.dtype.kind == "c" else x.swapaxes(-1, -2)

    def compute(x: Array, y: Array) -> Array:
        for i, operand in enumerate((x, y)):
            if operand.ndim < 2:
                raise invalid(f"In[{i}] ndims must be >= 2: {operand.ndim}")
        left, right = adjoint(x) if adjoint_x else x, adjoint(y) if adjoint_y else y
        if left.shape[-1] != right.shape[-2]:
            raise invalid(f"Matrix size-incompatible: In[0]: {shape_text(x.shape)}, In[1]: {shape_text(y.shape)}")
        if node.op == "BatchMatMul" and x.shape[:-2] != y.shape[:-2]:
            raise invalid(
                "In[0] and In[1] must have compatible batch dimensions: "
                f"{shape_text(x.shape)} vs. {shape_text(y.shape)}"
            )
        try:
            return as_array(_product(left, right))
        except ValueError:
            raise invalid(
                "In[0] and In[1] must have compatible batch dimensions: "
                f"{shape_text(x.shape)} vs. {shape_text(y.shape)}"
            ) from None

    return compute


@kernel("AddN", "AccumulateNV2", T=NUMERIC)
def build_add_n(node: KernelNode) -> Compute:
    """No broadcasting. A single input is passed on as it is."""

    add = returning_array(np.add)

    def compute(*inputs: Array) -> Array:
        first = inputs[0]
        shape = first.shape
        for i, x in enumerate(inputs):
            if x.shape != shape:
                raise invalid(
                    f"Inputs to operation {node.name} of type {node.op} must have the same size and shape.  "
                    f"Input 0: {shape_text(shape)} != input {i}: {shape_text(x.shape)}"
                )
        if len(inputs) == 1:
            return first
        out: Array = add(first, inputs[1])
        for x in inputs[2:]:
            np.add(out, x, out)
        return out

    return compute


@kernel("Range")
def build_range(node: KernelNode) -> Compute:
    dtype = output_type(node)

    def compute(start: Array, limit: Array, delta: Array) -> Array:
        for name, value in (("start", start), ("limit", limit), ("delta", delta)):
            if value.size != 1:
                raise invalid(f"{name} must be a scalar, not shape {shape_text(value.shape)}")
        first, last, step = start.reshape(-1)[0], limit.reshape(-1)[0], delta.reshape(-1)[0]
        if step == 0:
            raise invalid(f"Requires delta != 0: {step}")
        if step > 0 and first > last:
            raise invalid(f"Requires start <= limit when delta > 0: {first}/{last}")
        if step < 0 and first < last:
            raise invalid(f"Requires start >= limit when delta < 0: {first}/{last}")
        if np.dtype(dtype).kind == "f":
            length = np.ceil(abs((float(last) - float(first)) / float(step)))
            if not np.isfinite(length):
                raise invalid(f"Requires ((limit - start) / delta) <= {np.iinfo(np.int64).max}")
            count = int(length)
            allow((count,), dtype, 4)
            # TensorFlow adds the step again and again in the output type; the product is what it rounds to.
            return (np.arange(count) * float(step) + float(first)).astype(dtype)
        allow((len(range(int(first), int(last), int(step))),), dtype, 2)
        return np.arange(int(first), int(last), int(step)).astype(dtype)

    return compute


@kernel("LinSpace")
def build_lin_space(node: KernelNode) -> Compute:
    dtype = output_type(node)

    def compute(start: Array, stop: Array, num: Array) -> Array:
        count = int(num)
        if count <= 0:
            raise invalid(f"Requires num > 0: {count}")
        allow((count,), dtype, 4)
        return np.linspace(start[()], stop[()], count, dtype=dtype)

    return compute


def broadcast_dims(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape of two. Raises InvalidArgumentError in TensorFlow's words."""
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise invalid(f"Incompatible shapes: {shape_text(a)} vs. {shape_text(b)}") from None


@kernel("BroadcastArgs")
def build_broadcast_args(node: KernelNode) -> Compute:
    dtype = output_type(node)
    return lambda s0, s1: np.array(broadcast_dims(tuple(s0.tolist()), tuple(s1.tolist())), dtype=dtype)


@kernel("BroadcastGradientArgs")
def build_broadcast_gradient_args(node: KernelNode) -> Compute:
    """Which axes of the common shape each operand was broadcast along, and so must be summed over.

    An axis where both are 1 belongs to both, as TensorFlow has it.
    """
    dtype = output_type(node)

    def compute(s0: Array, s1: Array) -> tuple[Array, Array]:
        a, b = tuple(s0.tolist()), tuple(s1.tolist())
        if a == b:
            return np.empty(0, dtype=dtype), np.empty(0, dtype=dtype)
        rank = len(broadcast_dims(a, b))
        a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
        reduce_a, reduce_b = [], []
        for i, (da, db) in enumerate(zip(a, b, strict=True)):
            if da == 1 and (db != 1 or da == db):
                reduce_a.append(i)
            if db == 1 and (da != 1 or da == db):
                reduce_b.append(i)
        return np.array(reduce_a, dtype=dtype), np.array(reduce_b, dtype=dtype)

    return compute


@kernel("BroadcastTo")
def build_broadcast_to(node: KernelNode) -> Compute:
    def compute(x: Array, shape: Array) -> Array:
        dims = as_shape(shape, dtype=x.dtype)
        if x.shape == dims:
            return x
        if x.ndim > len(dims):
            raise invalid(f"Rank of input ({x.ndim}) must be no greater than rank of output shape ({len(dims)}).")
        try:
            return np.broadcast_to(x, dims).copy()
        except ValueError:
            raise invalid(f"Incompatible shapes: {shape_text(x.shape)} vs. {shape_text(dims)}") from None

    return compute


@kernel("Bitcast")
def build_bitcast(node: KernelNode) -> Compute:
    """Types of another size take or give a last dimension of their ratio."""
    source, target = np.dtype(input_type(node)), np.dtype(output_type(node))

    def compute(x: Array) -> Array:
        x = contiguous(x)
        if source.itemsize == target.itemsize:
            return x.view(target)
        if source.itemsize > target.itemsize:
            return x.reshape(*x.shape, 1).view(target)
        ratio = target.itemsize // source.itemsize
        if x.ndim == 0 or x.shape[-1] != ratio:
            raise invalid(f"Cannot bitcast from {node.input_types[0].op_name} to {node.output_types[0].op_name}")
        wider: Array = x.view(target)
        return wider.reshape(x.shape[:-1])

    return compute


@kernel("CheckNumerics", T=FLOATING)
def build_check_numerics(node: KernelNode) -> Compute:
    message = text_attr(node, "message")

    def compute(x: Array) -> Array:
        if not np.isfinite(x).all():
            found = [name for name, test in (("Inf", np.isinf), ("NaN", np.isnan)) if test(x).any()]
            raise invalid(f"{message} : Tensor had {' and '.join(found)} values")
        return x

    return compute


@kernel("Cholesky", T=FLOATING | COMPLEX)
def build_cholesky(node: KernelNode) -> Compute:
    def compute(x: Array) -> Array:
        _square(x)
        try:
            return np.linalg.cholesky(x)
        except np.linalg.LinAlgError:
            raise invalid("Cholesky decomposition was not successful. The input might not be valid.") from None

    return compute


@kernel("MatrixInverse", T=FLOATING | COMPLEX)
def build_matrix_inverse(node: KernelNode) -> Compute:
    adjoint = bool(node.attrs.get("adjoint"))

    def compute(x: Array) -> Array:
        _square(x)
        try:
            return as_array(np.linalg.inv(np.conj(x.swapaxes(-1, -2)) if adjoint else x))
        except np.linalg.LinAlgError:
            raise invalid("Input is not invertible.") from None

    return compute


def _square(x: Array) -> None:
    if x.ndim < 2:
        raise invalid(f"Input tensor 0 must have rank >= 2, got {x.ndim}")
    if x.shape[-1] != x.shape[-2]:
        raise invalid(f"Input matrix must be square, got shape {shape_text(x.shape)}")


@kernel("Einsum")
def build_einsum(node: KernelNode) -> Compute:
    equation = text_attr(node, "equation")

    def compute(*inputs: Array) -> Array:
        try:
            return as_array(np.einsum(equation, *inputs, optimize=len(inputs) > 2))
        except ValueError as error:
            raise invalid(f"Einsum '{equation}': {error}") from None

    return compute


@kernel("Bincount", T=REAL)
def build_bincount(node: KernelNode) -> Compute:
    """How often each value below `size` occurs, or the sum of its weights; larger values are left out."""
    dtype = output_type(node)

    def compute(values: Array, size: Array, weights: Array) -> Array:
        count = one_number(size, "size")
        if count < 0:
            raise invalid(f"size ({count}) must be non-negative")
        allow((count,), np.int64, 2)
        flat = values.reshape(-1)
        if flat.size and flat.min() < 0:
            raise invalid("Input arr must be non-negative!")
        keep = flat < count
        weight = weights.reshape(-1)[keep] if weights.size else None
        return np.bincount(flat[keep], weight, minlength=count).astype(dtype)

    return compute


@kernel("Roll")
def build_roll(node: KernelNode) -> Compute:
    def compute(x: Array, shift: Array, axis: Array) -> Array:
        if x.ndim < 1:
            raise invalid("input must be 1-D or higher")
        if shift.shape != axis.shape:
            raise invalid("shift and axis must have the same size")
        return np.roll(x, tuple(shift.reshape(-1).tolist()), tuple(axis.reshape(-1).tolist()))

    return compute


@kernel("ClipByValue", T=NUMERIC)
def build_clip_by_value(node: KernelNode) -> Compute:
    """The lower bound wins over the upper one. The parts of a complex number are clipped each on its own."""

    def clip(x: Array, low: Array, high: Array) -> Array:
        return as_array(np.maximum(np.minimum(x, high), low))

    def compute(x: Array, low: Array, high: Array) -> Array:
        if any(bound.ndim and bound.shape != x.shape for bound in (low, high)):
            raise invalid(
                "clip_value_min and clip_value_max must be either of the same shape as input, or a scalar. "
                f"input shape: {shape_text(x.shape)}clip_value_min shape: {shape_text(low.shape)}"
                f"clip_value_max shape: {shape_text(high.shape)}"
            )
        if x.dtype.kind != "c":
            return clip(x, low, high)
        out = np.empty(x.shape, x.dtype)
        out.real, out.imag = clip(x.real, low.real, high.real), clip(x.imag, low.imag, high.imag)
        return out

    return compute
