"""Every combination of the values of several features, as text or by its hash: `tf.sparse.cross` and `cross_hashed`.

Used by feature_column/crossed.py. Follows sparse_ops.py of TF 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.op_builder import apply_op
from tenfold.graph.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from tenfold.ops import math
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The key of the combinations' hash unless the caller gives one.
DEFAULT_HASH_KEY = 0xDECAFCAFFE


def sparse_cross(inputs: Sequence[Any], name: str | None = None) -> SparseTensor:
    """Row by row every combination of one value of each input, as "a_X_b": strings, [batch, maximum per row].

    Inputs are sparse or dense matrices of strings or integers. Raises TypeError for anything else.
    """
    return _crossed(inputs, False, 0, None, name)


def sparse_cross_hashed(
    inputs: Sequence[Any], num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> SparseTensor:
    """`sparse_cross`, each combination's hash instead: int64, below `num_buckets` unless that is 0."""
    return _crossed(inputs, True, num_buckets, hash_key, name)


def _crossed(
    inputs: Sequence[Any], hashed: bool, num_buckets: int, hash_key: int | None, name: str | None
) -> SparseTensor:
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("Inputs must be a list")
    given = [convert_to_tensor_or_sparse_tensor(each) for each in inputs]
    sparse = [each for each in given if isinstance(each, SparseTensor)]
    values = [_key(each.values) for each in sparse]
    dense = [_key(each) for each in given if not isinstance(each, SparseTensor)]
    are_strings = all(each.dtype == dtypes.string for each in (*values, *dense))
    result = apply_op(
        "SparseCross",
        name,
        indices=[each.indices for each in sparse],
        values=values,
        shapes=[each.dense_shape for each in sparse],
        dense_inputs=dense,
        hashed_output=hashed,
        num_buckets=num_buckets,
        hash_key=DEFAULT_HASH_KEY if hash_key is None else hash_key,
        out_type=dtypes.int64 if hashed else dtypes.string,
        internal_type=dtypes.string if are_strings else dtypes.int64,
    )
    return SparseTensor(*result)


def _key(tensor: Any) -> Any:
    if tensor.dtype == dtypes.string:
        return tensor
    if not tensor.dtype.is_integer:
        raise TypeError(f"Only strings and integers can be crossed, not {tensor.dtype.name}.")
    return math.cast(tensor, dtypes.int64)
