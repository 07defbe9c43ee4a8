"""Products over chosen dimensions: `tf.tensordot` and `tf.einsum`, both reduced to matrix products.

Follows TensorFlow 1.15's math_ops.py and special_math_ops.py, node names of tensordot included.
"""

from __future__ import annotations

import math as numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.ops import array, math, slicing
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.argument_types import TensorLike
    from tenfold.graph.tensor import Tensor

# --- tensordot ---


def tensordot(a: TensorLike, b: TensorLike, axes: Any, name: str | None = None) -> Tensor:
    """Contracts `axes` of a with `axes` of b: an int N (last N of a, first N of b), a pair of lists, or a tensor.

    Raises ValueError for axes that do not match.
    """
    with name_scope(name, "Tensordot", [a, b, axes]) as scope:
        a, b = convert_to_tensor(a, name="a"), convert_to_tensor(b, name="b")
        of_a, of_b = _contracted(a, axes)
        left, free_a, static_a = _as_matrix(a, of_a, flipped=False)
        right, free_b, static_b = _as_matrix(b, of_b, flipped=True)
        product = math.matmul(left, right)
        if isinstance(free_a, list) and isinstance(free_b, list):
            return array.reshape(product, free_a + free_b, name=scope)
        free_a = convert_to_tensor(free_a, dtype=dtypes.int32)
        free_b = convert_to_tensor(free_b, dtype=dtypes.int32)
        result = array.reshape(product, array.concat([free_a, free_b], 0), name=scope)
        if static_a is not None and static_b is not None:
            result.set_shape(static_a + static_b)
        return result


def _contracted(a: Tensor, axes: Any) -> tuple[Any, Any]:
    if isinstance(axes, (int, np.integer)):
        if axes < 0:
            raise ValueError("'axes' must be at least 0.")
        rank = a.shape.ndims
        if rank is None:
            size = array.rank(a)
            return math.range(size - axes, size, dtype=dtypes.int32), math.range(axes, dtype=dtypes.int32)
        if axes > rank:
            raise ValueError(f"'axes' must not be larger than the number of dimensions of tensor {a}.")
        return [*range(rank - axes, rank)], [*range(axes)]
    if isinstance(axes, (list, tuple)):
        if len(axes) != 2:
            raise ValueError("'axes' must be an integer or have length 2.")
        of_a, of_b = axes
        if isinstance(of_a, (int, np.integer)) and isinstance(of_b, (int, np.integer)):
            of_a, of_b = [of_a], [of_b]
        if isinstance(of_a, (list, tuple)) and isinstance(of_b, (list, tuple)) and len(of_a) != len(of_b):
            raise ValueError(f"Different number of contraction axes 'a' and 'b', {len(of_a)} != {len(of_b)}.")
        return of_a, of_b
    pair = convert_to_tensor(axes, name="axes", dtype=dtypes.int32)
    return pair[0], pair[1]


def _as_matrix(x: Tensor, axes: Any, *, flipped: bool) -> tuple[Tensor, Any, list[int | None] | None]:
    """`x` as (free, contracted), or the reverse if flipped; the sizes of the free dimensions, and what is known."""
    rank, listed = x.shape.ndims, isinstance(axes, (list, tuple))
    if listed and x.shape.is_fully_defined():
        sizes: list[Any] = x.shape.as_list()
        axes = [i + len(sizes) if i < 0 else i for i in axes]
        free = [i for i in range(len(sizes)) if i not in axes]
        free_sizes = [sizes[i] for i in free]
        outer, inner = numbers.prod(free_sizes), numbers.prod(sizes[i] for i in axes)
        order = axes + free if flipped else free + axes
        matrix = array.reshape(array.transpose(x, order), [inner, outer] if flipped else [outer, inner])
        return matrix, free_sizes, free_sizes
    static: list[int | None] | None = None
    if listed and rank is not None:
        axes = [i + rank if i < 0 else i for i in axes]
        rest = [i for i in range(rank) if i not in axes]
        static = [x.shape.as_list()[i] for i in rest]
        axes = convert_to_tensor(axes, dtype=dtypes.int32, name="axes")
        free_axes = convert_to_tensor(rest, dtype=dtypes.int32, name="free")
        shape = array.shape(x)
    else:
        shape = array.shape(x)
        size = array.rank(x)
        axes = convert_to_tensor(axes, dtype=dtypes.int32, name="axes")
        axes = slicing.where(axes >= 0, axes, axes + size)
        free_axes = slicing.setdiff1d(math.range(size), axes)[0]
    free_dims = slicing.gather(shape, free_axes)
    axes_dims = slicing.gather(shape, axes)
    outer_t, inner_t = math.reduce_prod(free_dims), math.reduce_prod(axes_dims)
    order_t = array.concat([axes, free_axes] if flipped else [free_axes, axes], 0)
    view = array.stack([inner_t, outer_t] if flipped else [outer_t, inner_t])
    return array.reshape(array.transpose(x, order_t), view), free_dims, static


# --- einsum ---


def einsum(equation: str, *inputs: Any, name: str | None = None, optimize: str | None = None) -> Tensor:
    """Sums products of the elements as `equation` says: "ij,jk->ik" is the matrix product.

    Without "->" the result has the labels that appear once, in alphabetical order; "..." stands for dimensions that
    broadcast. Inputs are combined from left to right; `optimize` is ignored. Raises ValueError for an equation that
    does not match the inputs.
    """
    with name_scope(name, "einsum", [equation, inputs]):
        tensors = [convert_to_tensor(x) for x in inputs]
        sides, result = _parse(equation, tensors)
        value, labels = tensors[0], sides[0]
        value, labels = _summed(value, labels, set(result).union(*sides[1:]))
        for index in range(1, len(tensors)):
            later = set(result).union(*sides[index + 1 :])
            other, other_labels = _summed(tensors[index], sides[index], later | set(labels))
            value, labels = _combined(value, labels, other, other_labels, later)
        value, labels = _summed(value, labels, set(result))
        missing = set(result) - set(labels)
        if missing:
            raise ValueError(f"Unknown output subscripts {sorted(missing)} in the equation {equation!r}")
        order = [labels.index(label) for label in result]
        return value if order == [*range(len(order))] else array.transpose(value, order)


def _parse(equation: str, tensors: list[Tensor]) -> tuple[list[str], str]:
    """The labels of each input and of the result; the dimensions of "..." get labels of their own."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(tensors):
        raise ValueError(f'Got {len(tensors)} arguments for equation "{equation}", expecting {len(parts)}')
    free = [chr(code) for code in range(0x3B1, 0x3B1 + 24)]
    spread, sides = 0, []
    for part, tensor in zip(parts, tensors, strict=True):
        count = tensor.shape.ndims
        if count is None:
            raise ValueError(f"einsum needs inputs of known rank, got {tensor!r}")
        named = part.replace("...", "")
        if "..." in part:
            extra = count - len(named)
            spread = max(spread, extra)
            part = part.replace("...", "".join(free[24 - extra :]) if extra else "")
        if len(part) != count:
            raise ValueError(f"Subscripts {named!r} do not go with the rank {count} of {tensor!r}")
        if len(set(part)) != len(part):
            raise ValueError(f"Subscript not supported: an axis appears more than once: {named}")
        sides.append(part)
    dots = "".join(free[24 - spread :]) if spread else ""
    if arrow:
        right = right.replace("...", dots)
    else:
        letters = left.replace(",", "").replace(".", "")
        right = dots + "".join(sorted(label for label in set(letters) if letters.count(label) == 1))
    if len(set(right)) != len(right):
        raise ValueError(f"Output subscript appears more than once in the equation {equation!r}")
    return sides, right


def _summed(x: Tensor, labels: str, wanted: set[str]) -> tuple[Tensor, str]:
    """`x` summed over the labels that are not wanted."""
    gone = [i for i, label in enumerate(labels) if label not in wanted]
    if not gone:
        return x, labels
    return math.reduce_sum(x, gone), "".join(label for label in labels if label in wanted)


def _combined(x: Tensor, of_x: str, y: Tensor, of_y: str, wanted: set[str]) -> tuple[Tensor, str]:
    """The product of two inputs, summed over the shared labels that are not wanted later: one batched matmul.

    # x (batch, free of x, inner), y (batch, inner, free of y), each reshaped to three dimensions
    """
    shared = [label for label in of_x if label in of_y]
    ones = [label for label in shared if 1 in (_size(x, of_x, label), _size(y, of_y, label))
            and _size(x, of_x, label) != _size(y, of_y, label)]  # fmt: skip
    if ones:
        # Dimensions that broadcast cannot go into the product.
        return _broadcast_product(x, of_x, y, of_y)
    batch = [label for label in shared if label in wanted]
    inner = [label for label in shared if label not in wanted]
    free_x = [label for label in of_x if label not in of_y]
    free_y = [label for label in of_y if label not in of_x]
    left = array.transpose(x, [of_x.index(label) for label in batch + free_x + inner])
    right = array.transpose(y, [of_y.index(label) for label in batch + inner + free_y])
    sizes_x, sizes_y = _sizes(x, of_x), _sizes(y, of_y)

    def volume(sizes: dict[str, Any], labels: list[str]) -> Any:
        known = [sizes[label] for label in labels]
        if all(isinstance(size, int) for size in known):
            return numbers.prod(known)
        product = known[0]
        for size in known[1:]:
            product = product * size
        return product

    rows, columns, depth = volume(sizes_x, free_x), volume(sizes_y, free_y), volume(sizes_x, inner)
    lead = [volume(sizes_x, batch)] if batch else []
    left = array.reshape(left, array.stack([*lead, rows, depth]))
    right = array.reshape(right, array.stack([*lead, depth, columns]))
    labels = batch + free_x + free_y
    shape = [sizes_x.get(label, sizes_y.get(label)) for label in labels]
    product = array.reshape(math.matmul(left, right), array.stack(shape) if shape else [])
    product.set_shape([_size(x, of_x, label) if label in of_x else _size(y, of_y, label) for label in labels])
    return product, "".join(labels)


def _broadcast_product(x: Tensor, of_x: str, y: Tensor, of_y: str) -> tuple[Tensor, str]:
    labels = of_x + "".join(label for label in of_y if label not in of_x)

    def aligned(value: Tensor, own: str) -> Tensor:
        order = [own.index(label) for label in labels if label in own]
        value = array.transpose(value, order)
        for place, label in enumerate(labels):
            if label not in own:
                value = tensor_op("ExpandDims", None, input=value, dim=place)
        return value

    return math.multiply(aligned(x, of_x), aligned(y, of_y)), labels


def _size(x: Tensor, labels: str, label: str) -> int | None:
    return x.shape.as_list()[labels.index(label)]


def _sizes(x: Tensor, labels: str) -> dict[str, Any]:
    """The size of each label: a number where it is known, else a scalar tensor."""
    static = x.shape.as_list()
    if None not in static:
        return dict(zip(labels, static, strict=True))
    shape = array.shape(x)
    return {label: shape[i] if static[i] is None else static[i] for i, label in enumerate(labels)}
