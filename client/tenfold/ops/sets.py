"""Sets (`tf.sets`): the last dimension of a tensor holds the elements of a set. The results are sparse tensors.

Follows TensorFlow 1.15's ops/sets_impl.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.graph.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor

#: The types of elements that the operations take.
_TYPES = (
    dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint16, dtypes.string,
)  # fmt: skip


def set_size(a: Any, validate_indices: bool = True) -> Tensor:
    """The number of distinct elements in each set of the sparse tensor `a`."""
    a = convert_to_tensor_or_sparse_tensor(a, name="a")
    if not isinstance(a, SparseTensor):
        raise TypeError("Expected `SparseTensor`, got %s." % a)  # noqa: UP031 - a tensor's str may hold braces
    if a.values.dtype.base_dtype not in _TYPES:
        raise TypeError(f"Invalid dtype {a.values.dtype!r}, not in supported types: {_TYPES}")
    return tensor_op(
        "SetSize", None, set_indices=a.indices, set_values=a.values, set_shape=a.dense_shape,
        validate_indices=validate_indices,
    )  # fmt: skip


def _operation(a: Any, b: Any, operation: str, validate_indices: bool) -> SparseTensor:
    a = convert_to_tensor_or_sparse_tensor(a, name="a")
    b = convert_to_tensor_or_sparse_tensor(b, name="b")
    kinds = [x.dtype.base_dtype for x in (a, b)]
    if kinds[0] not in _TYPES:
        raise TypeError(f"'a' invalid dtype {kinds[0]!r}, not in supported types: {_TYPES}")
    if kinds[0] != kinds[1]:
        raise TypeError(f"Types don't match, {kinds[0]!r} vs {kinds[1]!r}.")
    flip = isinstance(a, SparseTensor) and not isinstance(b, SparseTensor)
    if flip:
        # The operation takes a dense tensor first; for a difference, its attribute gives the direction.
        a, b = b, a
        operation = {"a-b": "b-a", "b-a": "a-b"}.get(operation, operation)
    inputs: dict[str, Any] = {}
    for number, value in ((1, a), (2, b)):
        if isinstance(value, SparseTensor):
            inputs |= {
                f"set{number}_indices": value.indices,
                f"set{number}_values": value.values,
                f"set{number}_shape": value.dense_shape,
            }
        else:
            inputs[f"set{number}"] = value
    kind = "".join("Sparse" if isinstance(x, SparseTensor) else "Dense" for x in (a, b))
    op_type = {"DenseDense": "DenseToDense", "DenseSparse": "DenseToSparse", "SparseSparse": "SparseToSparse"}[kind]
    parts = apply_op(
        f"{op_type}SetOperation", None, set_operation=operation, validate_indices=validate_indices, **inputs
    )
    return SparseTensor(parts[0], parts[1], parts[2])


def set_intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements that are in both sets."""
    return _operation(a, b, "intersection", validate_indices)


def set_difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """The elements of `a` that are not in `b`, or the reverse without `aminusb`."""
    return _operation(a, b, "a-b" if aminusb else "b-a", validate_indices)


def set_union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements that are in one of the sets."""
    return _operation(a, b, "union", validate_indices)


# The names of `tf.sets` since 1.14.
difference = set_difference
intersection = set_intersection
size = set_size
union = set_union
