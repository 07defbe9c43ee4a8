"""How IndexedSlices become a dense tensor: rows with the same index are added. Registers with graph/conversion.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import register_tensor_conversion_function
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.op_builder import apply_op
from tenfold.ops.slicing import gather

if TYPE_CHECKING:
    from tenfold_core.dtypes import DType


def _to_dense(value: IndexedSlices, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Any:
    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError(
            f"Tensor conversion requested dtype {dtype.name} for IndexedSlices with dtype {value.dtype.name}"
        )
    if value.dense_shape is None:
        raise ValueError(
            f"Tensor conversion requested for IndexedSlices without dense_shape: {value}. "
            "Give dense_shape when making it."
        )
    return apply_op(
        "UnsortedSegmentSum",
        data=value.values,
        segment_ids=value.indices,
        num_segments=gather(value.dense_shape, 0),
        name=name,
    )


register_tensor_conversion_function(IndexedSlices, _to_dense)
