"""IndexedSlices: a sparse gradient, rows `values` at positions `indices` of a larger tensor.

Made by the gradients of gather and read by sparse optimizer updates; converts to a dense tensor where one is needed
(ops/indexed_slices.py). Follows TensorFlow 1.x's ops.IndexedSlices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold.graph.conversion import convert_to_tensor
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold.graph.graph import Graph
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor
    from tenfold_core.dtypes import DType


class IndexedSlicesValue(NamedTuple):
    """The value of fetched `IndexedSlices`: `values` (n, …), `indices` (n), `dense_shape` or None."""

    values: Any
    indices: Any
    dense_shape: Any


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
        """The indices of the rows."""
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


def convert_to_tensor_or_indexed_slices(
    value: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> Any:
    """`value` itself if it is IndexedSlices of a fitting type, otherwise a tensor. None stays None."""
    if value is None:
        return None
    if isinstance(value, IndexedSlices):
        wanted: DType | None = None if dtype is None else as_dtype(dtype)
        if wanted is not None and not wanted.is_compatible_with(value.dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {wanted.name} for IndexedSlices with dtype {value.dtype.name}"
            )
        return value
    return convert_to_tensor(value, dtype, name, as_ref=as_ref)


def convert_n_to_tensor_or_indexed_slices(
    values: Iterable[Any], dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> list[Any]:
    """`convert_to_tensor_or_indexed_slices` of each."""
    return [
        convert_to_tensor_or_indexed_slices(value, dtype, None if name is None else f"{name}_{i}", as_ref)
        for i, value in enumerate(values)
    ]
