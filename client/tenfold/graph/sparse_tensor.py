"""SparseTensor: the nonzero elements of a tensor and their indices; three dense tensors in one object.

Functions on it are in ops/sparse.py; sessions feed and fetch it through session/composite_values.py. Follows TF 1.15's
framework/sparse_tensor.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold.graph.constant_value import constant_value_as_shape
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.default_stack import session_for
from tenfold.graph.op_builder import tensor_op
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold.graph.graph import Graph
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor
    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape


#: What `/` divides integers in.
_TRUEDIV_TYPES = {
    **dict.fromkeys((dtypes.uint8, dtypes.int8, dtypes.uint16, dtypes.int16), dtypes.float32),
    **dict.fromkeys((dtypes.int32, dtypes.int64), dtypes.float64),
}


class SparseTensorValue(NamedTuple):
    """The value of a fetched `SparseTensor`: `indices` (n, rank), `values` (n), `dense_shape` (rank)."""

    indices: Any
    values: Any
    dense_shape: Any


class SparseTensor:
    """`dense[indices[i]] = values[i]`, all else is zero; most functions require the indices in row-major order.

    # N elements, R dimensions: indices int64 [N, R], values [N], dense_shape int64 [R]. ValueError if these disagree.
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        with name_scope(None, "SparseTensor", [indices, values, dense_shape]):
            self._indices = convert_to_tensor(indices, name="indices", dtype=dtypes.int64)
            self._values = convert_to_tensor(values, name="values")
            self._dense_shape = convert_to_tensor(dense_shape, name="dense_shape", dtype=dtypes.int64)
        rows = self._indices.get_shape().with_rank(2)
        count = self._values.get_shape().with_rank(1)
        sizes = self._dense_shape.get_shape().with_rank(1)
        rows[0].merge_with(count[0])
        rows[1].merge_with(sizes[0])

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """From a SparseTensorValue, or another SparseTensor. Raises TypeError for anything else."""
        if not is_sparse(sparse_tensor_value):
            raise TypeError(f"Neither a SparseTensor nor SparseTensorValue: {sparse_tensor_value}.")
        return cls(sparse_tensor_value.indices, sparse_tensor_value.values, sparse_tensor_value.dense_shape)

    @property
    def indices(self) -> Tensor:
        """The indices of the elements."""
        return self._indices

    @property
    def values(self) -> Tensor:
        """The elements."""
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        """The shape of the dense tensor, as a tensor."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """The shape of the dense tensor, as far as it is known now."""
        return constant_value_as_shape(self._dense_shape)

    def get_shape(self) -> TensorShape:
        """The shape of the dense tensor, as far as it is known now."""
        return self.shape

    def _to_components(self) -> tuple[Tensor, Tensor, Tensor]:
        return self._indices, self._values, self._dense_shape

    def _from_components(self, parts: Any) -> SparseTensor:
        return SparseTensor(*parts)

    @property
    def op(self) -> Operation:
        """The operation that makes the elements."""
        return self._values.op

    @property
    def name(self) -> str:
        """The name of the elements' tensor."""
        return self._values.name

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._values.dtype

    @property
    def graph(self) -> Graph:
        """The graph of all three tensors."""
        return self._indices.graph

    def consumers(self) -> list[Operation]:
        """The operations that use one of the three tensors."""
        parts = (self._indices, self._values, self._dense_shape)
        return list(dict.fromkeys(op for part in parts for op in part.consumers()))

    def eval(self, feed_dict: Any = None, session: Any = None) -> SparseTensorValue:
        """The value in `session` or the default session. Blocks."""
        value: SparseTensorValue = session_for(session, self.graph, verb="evaluate").run(self, feed_dict)
        return value

    def __mul__(self, other: Any) -> SparseTensor:
        return self._with("SparseDenseCwiseMul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        """The quotient of the elements, of integers as floats."""
        dense = convert_to_tensor(other, dtype=self.dtype.base_dtype, name="y")
        wide = _TRUEDIV_TYPES.get(self.dtype.base_dtype)
        if wide is None:
            return self._with("SparseDenseCwiseDiv", dense)
        values = tensor_op("Cast", x=self._values, DstT=wide)
        wider = SparseTensor(self._indices, values, self._dense_shape)
        return wider._with("SparseDenseCwiseDiv", tensor_op("Cast", x=dense, DstT=wide))

    def __div__(self, other: Any) -> SparseTensor:
        """The quotient of the elements, of integers truncated."""
        return self._with("SparseDenseCwiseDiv", other)

    def _with(self, op_type: str, dense: Any) -> SparseTensor:
        values = tensor_op(
            op_type, sp_indices=self._indices, sp_values=self._values, sp_shape=self._dense_shape, dense=dense
        )
        return SparseTensor(self._indices, values, self._dense_shape)

    def __str__(self) -> str:
        return f"SparseTensor(indices={self._indices}, values={self._values}, dense_shape={self._dense_shape})"

    __repr__ = __str__


def is_sparse(value: Any) -> bool:
    """Whether `value` is a SparseTensor or a SparseTensorValue."""
    return isinstance(value, (SparseTensor, SparseTensorValue))


def as_sparse(value: Any) -> SparseTensor:
    """`value` as a SparseTensor. Raises TypeError for anything but one, or its value."""
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    if not isinstance(value, SparseTensor):
        raise TypeError("Input must be a SparseTensor.")
    return value


def as_sparse_list(values: Any) -> list[SparseTensor]:
    """Each of `values` as a SparseTensor. Raises TypeError for anything but a list or tuple."""
    if not isinstance(values, (list, tuple)):
        raise TypeError("Inputs must be a list or tuple.")
    return [as_sparse(value) for value in values]


def convert_to_tensor_or_sparse_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A SparseTensor for a sparse value, otherwise a Tensor. Raises RuntimeError if a sparse one is of another type."""
    if not is_sparse(value):
        return convert_to_tensor(value, dtype, name)
    sparse = as_sparse(value)
    if dtype is not None and not as_dtype(dtype).is_compatible_with(sparse.dtype):
        raise RuntimeError(f"Sparse dtype: requested = {as_dtype(dtype).name}, actual = {sparse.dtype.name}")
    return sparse


def components(values: Iterable[Any]) -> list[Any]:
    """The tensors among `values`, sparse ones taken apart; for name scopes and colocation."""
    flat: list[Any] = []
    for value in values:
        flat += [value.indices, value.values, value.dense_shape] if is_sparse(value) else [value]
    return flat
