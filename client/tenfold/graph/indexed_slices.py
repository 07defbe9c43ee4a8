"""IndexedSlices: a sparse gradient, rows `values` at positions `indices` of a larger tensor.

Made by the gradients of gather and read by sparse optimizer updates; converts to a dense tensor where one is needed
(graph/conversion.py). Follows TensorFlow 1.x's ops.IndexedSlices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import register_tensor_conversion_function

if TYPE_CHECKING:
    from tenfold.graph.graph import Graph
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor
    from tenfold_core.dtypes import DType


class IndexedSlices:
    """`dense[indices[i], ...] = values[i, ...]`; indices may repeat, and then the rows add up.

    # N slices; values (N, ...), indices (N,), dense_shape a vector or None if unknown.
    """

    def __init__(self, values: Tensor, indices: Tensor, dense_shape: Tensor | None = None) -> None:
        self._values = values
        self._indices = indices
        self._dense_shape = dense_shape

    @property
    def values(self) -> Tensor:
        """The rows."""
        return self._values

    @property
    def indices(self) -> Tensor:
        """Where the rows belong."""
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        """The shape of the dense tensor, if known."""
        return self._dense_shape

    @property
    def name(self) -> str:
        """The name of the rows."""
        return self._values.name

    @property
    def device(self) -> str:
        """The device requested for the rows."""
        return self._values.device

    @property
    def op(self) -> Operation:
        """The operation that makes the rows."""
        return self._values.op

    @property
    def dtype(self) -> DType:
        """The type of the rows."""
        return self._values.dtype

    @property
    def graph(self) -> Graph:
        """The graph of all three tensors."""
        return self._values.graph

    def _to_components(self) -> tuple[Tensor, ...]:
        parts = (self._values, self._indices)
        return parts if self._dense_shape is None else (*parts, self._dense_shape)

    def _from_components(self, parts: Any) -> IndexedSlices:
        return IndexedSlices(*parts)

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self._values, self._indices, self._dense_shape)

    def __str__(self) -> str:
        shape = f", dense_shape={self._dense_shape}" if self._dense_shape is not None else ""
        return f"IndexedSlices(indices={self._indices}, values={self._values}{shape})"

    __repr__ = __str__


def _to_dense(value: IndexedSlices, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Any:
    from tenfold.ops.op_builder import apply_op

    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError(
            f"Tensor conversion requested dtype {dtype.name} for IndexedSlices with dtype {value.dtype.name}"
        )
    if value.dense_shape is None:
        raise ValueError(
            f"Tensor conversion requested for IndexedSlices without dense_shape: {value}. "
            "Give dense_shape when making it."
        )
    from tenfold.ops.slicing import gather

    return apply_op(
        "UnsortedSegmentSum",
        data=value.values,
        segment_ids=value.indices,
        num_segments=gather(value.dense_shape, 0),
        name=name,
    )


register_tensor_conversion_function(IndexedSlices, _to_dense)
