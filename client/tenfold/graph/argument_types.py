"""What the public functions take: the types of their annotations. Imported for type checkers only.

A type here admits what `convert_to_tensor`, `TensorShape` and `as_dtype` accept, as far as a type can say it: that the
numbers of a nested list are of one type, they check when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.operators import Operators
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold_core.dtypes import DType
from tenfold_core.tensor_shape import Dimension, TensorShape
from tenfold_protos.tensor_shape_pb2 import TensorShapeProto


class SupportsTensor(Protocol):
    """Several tensors that give one, as a partitioned variable does."""

    def as_tensor(self) -> Operators: ...


#: A tensor, a variable, or what becomes a constant: a number, a string, an array, a shape,
#: nested sequences of these or of tensors.
TensorLike: TypeAlias = (
    Operators | IndexedSlices | SupportsTensor | npt.ArrayLike | Sequence[Any] | TensorShape | Dimension
)
#: What functions of dense and of sparse tensors take.
TensorOrSparse: TypeAlias = TensorLike | SparseTensor
#: What an optimizer takes: a value, or a function that is asked for it when the optimizer is applied.
RateLike: TypeAlias = TensorLike | Callable[[], TensorLike]
#: An element type of Tenfold, NumPy or Python, its name, or its number in types.proto.
DTypeLike: TypeAlias = DType | np.dtype[Any] | type[Any] | str | int
#: A static shape; None for a size that is not known. A number is a shape of one dimension.
ShapeLike: TypeAlias = TensorShape | TensorShapeProto | Iterable[SupportsIndex | None] | SupportsIndex
