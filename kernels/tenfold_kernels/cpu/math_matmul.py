"""Products of matrices and vectors: MatMul, BatchMatMul*, SparseMatMul, Einsum, Cross.

Outputs are fresh; only an Einsum that moves elements may give a view.
Products go to NumPy's BLAS, large ones in chunks (_products.py); transposes are flags to it, not copies. Follows
matmul_op.cc, batch_matmul_op_impl.h, einsum_op_impl.h and cross_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_core.memory_limits import allow
from tenfold_core.reference_counts import ALWAYS_HELD, reference_count, reference_counts_are_exact
from tenfold_kernels.arrays import (
    Array,
    Shaped,
    as_array,
    incompatible,
    input_type,
    invalid,
    output_type,
    shape_text,
    text_attr,
)
from tenfold_kernels.cpu._products import OWN_LEAST, OWN_LEAST_PLAIN, add_product, batched, prepare, product
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import COMPLEX, FLOATING, INDEX, NUMERIC, REAL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def _product(a: Array, b: Array) -> Any:
    if a.dtype == np.float16:
        # NumPy has no BLAS for half, and TensorFlow accumulates in float too.
        return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(np.float16)
    return batched(a, b)


def no_matrix(a: Shaped, b: Shaped) -> Exception:
    """One of them has another rank than 2."""
    which, wrong = (0, a) if a.ndim != 2 else (1, b)
    return invalid(f"In[{which}] is not a matrix. Instead it has shape {shape_text(wrong.shape)}")


def size_mismatch(a: Shaped, b: Shaped) -> Exception:
    return invalid(f"Matrix size-incompatible: In[0]: {shape_text(a.shape)}, In[1]: {shape_text(b.shape)}")


def too_flat(index: int, operand: Shaped) -> Exception:
    """An operand of a batch of products has less than two dimensions."""
    return invalid(f"In[{index}] ndims must be >= 2: {operand.ndim}")


def batch_mismatch(x: Shaped, y: Shaped) -> Exception:
    text = f"{shape_text(x.shape)} vs. {shape_text(y.shape)}"
    return invalid(f"In[0] and In[1] must have compatible batch dimensions: {text}")


@kernel("MatMul", T=NUMERIC)
def build_matmul(node: KernelNode) -> Compute:
    """a_MK, b_KN → out_MN; K may be 0, which gives zeros.

    More than two inputs are pairs, of which the sum is wanted, after what it is added to if their number is odd: a pass
    of the worker's makes such nodes.
    """
    transpose_a, transpose_b = bool(node.attrs.get("transpose_a")), bool(node.attrs.get("transpose_b"))
    is_half = input_type(node) == np.float16
    multiply: Callable[[Array, Array], Any] = _product if is_half else product
    multiply_small: Callable[[Array, Array], Any] = _product if is_half else np.matmul
    least = OWN_LEAST if transpose_b else OWN_LEAST_PLAIN
    prepare()

    def compute(a: Array, b: Array) -> Any:
        if a.ndim != 2 or b.ndim != 2:
            raise no_matrix(a, b)
        left, right = a.T if transpose_a else a, b.T if transpose_b else b
        try:
            if a.size * right.shape[1] < least:
                return multiply_small(left, right)
            if left.shape[1] == 1 == right.shape[0]:
                return np.multiply(left, right)
            return multiply(left, right)
        except ValueError:
            raise size_mismatch(a, b) from None

    def compute_sum(*pairs: Array) -> Any:
        left, right = pairs[::2], pairs[1::2]
        if transpose_a and not transpose_b and _stacks(left, right):
            return compute(np.concatenate(left), np.concatenate(right))
        total = compute(left[0], right[0])
        for i in range(1, len(left)):
            term = compute(left[i], right[i])
            if term.shape != total.shape:
                raise invalid(
                    f"Inputs to operation {node.name} of type AddN must have the same size and shape.  "
                    f"Input 0: {shape_text(total.shape)} != input {i}: {shape_text(term.shape)}"
                )
            np.add(total, term, out=total)
        return total

    def compute_onto(total: Array, *pairs: Array) -> Any:
        if len(pairs) == 2:
            left, right = pairs
            stacked = left.ndim == 2 == right.ndim
        else:
            lefts, rights = pairs[::2], pairs[1::2]
            stacked = transpose_a and not transpose_b and _stacks(lefts, rights)
            if stacked:
                left, right = np.concatenate(lefts), np.concatenate(rights)
        if stacked and total.size * left.shape[0 if transpose_a else 1] >= OWN_LEAST:
            # counted here, where no function between the caller's variable and this one's holds it
            free = reference_count(total) == _ALONE and total.base is None and total.flags.writeable
            a, b = left.T if transpose_a else left, right.T if transpose_b else right
            if total.shape == (a.shape[0], b.shape[1]):
                added = add_product(total if free else total.copy(), a, b)
                if added is not None:
                    return added
        product = compute(left, right) if stacked else compute_sum(*pairs)
        try:
            return np.add(total, product, out=product if product.shape == total.shape else None)
        except ValueError:
            raise incompatible(total, product) from None

    if len(node.input_types) == 2:
        return compute
    return compute_onto if len(node.input_types) % 2 else compute_sum


def _alone(total: Array, *_: Array) -> int:
    return reference_count(total)


def _count_alone() -> int:
    """References to an array that its caller holds in one variable only, counted in the function that was called."""
    array, other = np.empty(()), np.empty(())
    return _alone(array, other, other)


#: Under a debugger a call holds its arguments once more: counted there, it would be one too many later on.
_MOST_ALONE = 3
_ALONE = min(_count_alone(), _MOST_ALONE) if reference_counts_are_exact() else ALWAYS_HELD


def _stacks(a_KM: Sequence[Array], b_KN: Sequence[Array]) -> bool:
    """Whether the sum of Aᵀ·B is to be one product of the As and the Bs, each stacked: all fit, and it copies less than
    it saves.
    """
    if any(x.ndim != 2 for x in (*a_KM, *b_KN)):
        return False
    m, n = a_KM[0].shape[1], b_KN[0].shape[1]
    fit = all(a.shape[0] == b.shape[0] and a.shape[1] == m and b.shape[1] == n for a, b in zip(a_KM, b_KN, strict=True))
    return fit and sum(a.shape[0] for a in a_KM) * (m + n) <= len(a_KM) * m * n


@kernel("BatchMatMul", "BatchMatMulV2")
def build_batch_matmul(node: KernelNode) -> Compute:
    """Leading dimensions must be equal, and broadcast from V2 on; adj_x and adj_y take the adjoint."""
    prepare()
    dtype = output_type(node)
    adjoint_x, adjoint_y = bool(node.attrs.get("adj_x")), bool(node.attrs.get("adj_y"))

    def adjoint(x: Array) -> Array:
        return np.conj(x.swapaxes(-1, -2)) if x.dtype.kind == "c" else x.swapaxes(-1, -2)

    def compute(x: Array, y: Array) -> Array:
        for i, operand in enumerate((x, y)):
            if operand.ndim < 2:
                raise too_flat(i, operand)
        left, right = adjoint(x) if adjoint_x else x, adjoint(y) if adjoint_y else y
        if left.shape[-1] != right.shape[-2]:
            raise size_mismatch(x, y)
        if node.op == "BatchMatMul" and x.shape[:-2] != y.shape[:-2]:
            raise batch_mismatch(x, y)
        try:
            return as_array(_product(left, right)).astype(dtype, copy=False)
        except ValueError:
            raise batch_mismatch(x, y) from None

    return compute


@kernel("BatchMatMulV3", Ta=NUMERIC, Tb=NUMERIC)
def build_mixed_batch_matmul(node: KernelNode) -> Compute:
    """Products of two types, computed in the type of the result: bytes sum to int32."""
    multiply, wide = build_batch_matmul(node), np.dtype(output_type(node))
    kinds = {np.dtype(each.as_numpy_dtype).kind for each in node.input_types}
    if "c" in kinds and wide.kind != "c":
        types = " and ".join(each.name for each in node.input_types)
        raise invalid(f"There is no product of {types} in {wide.name}: complex numbers give complex ones")

    def compute(x: Array, y: Array) -> Any:
        return multiply(x.astype(wide, copy=False), y.astype(wide, copy=False))

    return compute


def two_sizes(wanted: int, axis: int, shape: Sequence[int]) -> Exception:
    """A label of Einsum has had the size `wanted`, and is this axis of an operand."""
    where = f"at axis {axis} of the input shaped {shape_text(shape)}"
    return invalid(f"Expected dimension {wanted} {where} but got dimension {shape[axis]}")


def _check_labels(terms: Sequence[str], inputs: Sequence[Array]) -> None:
    """NumPy lets a label be of size 1 in one operand and larger in another. Raises InvalidArgumentError."""
    sizes: dict[str, int] = {}
    for term, x in zip(terms, inputs, strict=True):
        before, _, after = term.partition("...")
        for axis, label in (*enumerate(before), *enumerate(after, x.ndim - len(after))):
            if 0 <= axis < x.ndim and sizes.setdefault(label, x.shape[axis]) != x.shape[axis]:
                raise two_sizes(sizes[label], axis, x.shape)


@kernel("Einsum", views=True, T=FLOATING | COMPLEX | INDEX)
def build_einsum(node: KernelNode) -> Compute:
    """A label that the result has twice makes a diagonal of it; everything beside that is zero."""
    equation, dtype = text_attr(node, "equation").replace(" ", ""), input_type(node)
    left, _, right = equation.partition("->")
    once = "".join(dict.fromkeys(right.replace("...", "")))
    repeated = len(once) < len(right.replace("...", ""))
    dense = once if "..." not in right else "..." + once
    plain = f"{left}->{dense}" if repeated else equation
    terms = left.split(",")

    def compute(*inputs: Array) -> Array:
        if len(inputs) == len(terms):  # else NumPy says so
            _check_labels(terms, inputs)
        wide = [x.astype(np.float32) for x in inputs] if dtype is np.float16 else list(inputs)
        try:
            found = as_array(np.einsum(plain, *wide, optimize=len(wide) > 2)).astype(dtype, copy=False)
        except ValueError as error:
            raise invalid(f"Einsum '{equation}': {error}") from None
        if not repeated:
            return found
        free = found.ndim - len(once)
        sizes = dict(zip(once, found.shape[free:], strict=True))
        before, dots, after = right.partition("...")
        shape = (*(sizes[x] for x in before), *(found.shape[:free] if dots else ()), *(sizes[x] for x in after))
        allow(shape, dtype)
        out = np.zeros(shape, dtype)
        np.einsum(f"{right}->{dense}", out)[...] = found  # a view of the diagonal
        return out

    return compute


@kernel("Cross", T=REAL)
def build_cross(node: KernelNode) -> Compute:
    def compute(a: Array, b: Array) -> Array:
        if a.shape != b.shape:
            raise invalid(f"Both inputs must be of same shape: {shape_text(a.shape)} vs. {shape_text(b.shape)}")
        if a.ndim < 1 or a.shape[-1] != 3:
            raise errors.failed_precondition(
                f"Cross-products are only defined for 3-element vectors, got shape {shape_text(a.shape)}"
            )
        (x, y, z), (u, v, w) = np.moveaxis(a, -1, 0), np.moveaxis(b, -1, 0)
        return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)

    return compute


@kernel("SparseMatMul")
def build_sparse_matmul(node: KernelNode) -> Compute:
    """A product whose operands hold many zeros: here one like any other."""
    prepare()
    turn_a, turn_b = bool(node.attrs.get("transpose_a")), bool(node.attrs.get("transpose_b"))

    def compute(a: Array, b: Array) -> Array:
        if a.ndim != 2 or b.ndim != 2:
            raise invalid(f"a and b must be matrices, got shapes {shape_text(a.shape)} and {shape_text(b.shape)}")
        left, right = a.T if turn_a else a, b.T if turn_b else b
        if left.shape[1] != right.shape[0]:
            raise invalid(f"Matrix size incompatible: a: {shape_text(a.shape)}, b: {shape_text(b.shape)}")
        return as_array(product(left, right))

    return compute
