"""TensorLists: what loops of control flow v2 keep their steps' tensors in. A value, as any tensor: it is never changed.

A DT_VARIANT edge carries a TensorList in a 0-d object array. Pushing onto the end of a list that shares its storage
with shorter ones appends in place, so a loop that pushes once per iteration costs no copies: a list is a length and a
storage that only grows. Between tasks a list travels as TensorFlow encodes it ("tensorflow::TensorList" in a
VariantTensorDataProto), so that real TensorFlow peers understand it. Used by cpu/list.py. Follows tensor_list.cc.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from google.protobuf.message import DecodeError

from tenfold_core import dtypes
from tenfold_core.checkpoint.coding import get_varint, put_varint
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import invalid
from tenfold_kernels.resources.tensor_arrays import check_count
from tenfold_protos import tensor_pb2, tensor_shape_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_core.dtypes import DType

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

TYPE_NAME = "tensorflow::TensorList"


class _Storage:
    """Elements that lists share. Only grows; a list of length n sees the first n."""

    __slots__ = ("elements", "lock")

    def __init__(self, elements: list[Array | None]) -> None:
        self.elements = elements
        self.lock = threading.Lock()


class TensorList:
    """An immutable list of tensors of one type. An element that was never set is None."""

    __slots__ = ("_storage", "dtype", "length", "max_num_elements", "shape")

    def __init__(
        self,
        dtype: DType,
        shape: TensorShape,
        elements: Sequence[Array | None] = (),
        max_num_elements: int = -1,
    ) -> None:
        """`shape` is what every element must be compatible with; `max_num_elements` -1 means no limit."""
        check_count(len(elements), "A TensorList")
        self.dtype, self.shape, self.max_num_elements = dtype, shape, max_num_elements
        self._storage = _Storage(list(elements))
        self.length = len(elements)

    def __repr__(self) -> str:
        return f"<TensorList of {self.length} {self.dtype.name} {self.shape}>"

    @property
    def elements(self) -> list[Array | None]:
        """All of them, a list of the caller's own."""
        return self._storage.elements[: self.length]

    def __getitem__(self, index: int) -> Array | None:
        return self._storage.elements[index]

    def push(self, element: Array) -> TensorList:
        """This list and one element more."""
        check_count(self.length + 1, "A TensorList")
        storage = self._storage
        with storage.lock:
            at_end = len(storage.elements) == self.length
            if at_end:
                storage.elements.append(element)
        return self._view(storage, self.length + 1) if at_end else self.with_elements([*self.elements, element])

    def pop(self) -> TensorList:
        """This list without its last element."""
        return self._view(self._storage, self.length - 1)

    def set(self, index: int, element: Array) -> TensorList:
        """This list with another element at `index`."""
        elements = self.elements
        elements[index] = element
        return self.with_elements(elements)

    def with_elements(self, elements: Sequence[Array | None]) -> TensorList:
        """Other elements of the same kind."""
        return TensorList(self.dtype, self.shape, elements, self.max_num_elements)

    def _view(self, storage: _Storage, length: int) -> TensorList:
        view = TensorList.__new__(TensorList)
        view.dtype, view.shape, view.max_num_elements = self.dtype, self.shape, self.max_num_elements
        view._storage, view.length = storage, length
        return view

    def as_array(self) -> Array:
        """The value of a variant edge."""
        array = np.empty((), dtype=object)
        array[()] = self
        return array


def to_proto(
    value: TensorList, encode: Callable[[Array, DType], tensor_pb2.TensorProto]
) -> tensor_pb2.VariantTensorDataProto:
    """As TensorFlow encodes it. `encode` makes the TensorProto of an element."""
    elements = value.elements
    unset = [index for index, element in enumerate(elements) if element is None]
    shape = value.shape.as_proto().SerializeToString(deterministic=True)
    metadata = b"".join(
        map(put_varint, (len(unset), *unset, value.dtype.as_datatype_enum, value.max_num_elements & 0xFFFFFFFFFFFFFFFF))
    )
    return tensor_pb2.VariantTensorDataProto(
        type_name=TYPE_NAME,
        metadata=metadata + shape,
        tensors=[encode(element, value.dtype) for element in elements if element is not None],
    )


def from_proto(
    proto: tensor_pb2.VariantTensorDataProto, decode: Callable[[tensor_pb2.TensorProto], Array]
) -> TensorList:
    """What `to_proto` or TensorFlow encoded. Raises ValueError for what no list can be."""
    data = proto.metadata
    count, at = get_varint(data, 0)
    if count > len(data):
        raise ValueError(f"a TensorList says that {count} elements are not set, in {len(data)} bytes")
    unset = set()
    for _ in range(count):
        index, at = get_varint(data, at)
        unset.add(index)
    type_number, at = get_varint(data, at)
    limit, at = get_varint(data, at)
    try:
        shape = tensor_shape_pb2.TensorShapeProto.FromString(data[at:])
    except DecodeError as error:
        raise ValueError(f"the element shape of a TensorList cannot be read: {error}") from None
    total = len(proto.tensors) + count
    if len(unset) != count or any(index >= total for index in unset):
        raise ValueError(f"a TensorList of {total} elements has the unset ones {sorted(unset)[:5]}")
    tensors = iter(proto.tensors)
    elements = [None if index in unset else decode(next(tensors)) for index in range(total)]
    dtype = dtypes.as_dtype(type_number)
    if any(tensor.dtype != type_number for tensor in proto.tensors):
        raise ValueError(f"a TensorList of {dtype.name} has elements of another type")
    max_num_elements = limit - (1 << 64) if limit >> 63 else limit
    return TensorList(dtype, TensorShape.from_proto(shape), elements, max_num_elements)


def split_content(content: bytes) -> list[tensor_pb2.VariantTensorDataProto]:
    """The variants of a tensor_content, as TensorFlow's workers send them: all sizes, then all messages.

    Raises ValueError when the sizes do not add up to the bytes.
    """
    # how many there are is not said: the sizes end where the messages that they announce fill the rest
    sizes: list[int] = []
    at = total = 0
    while at + total < len(content):
        size, at = get_varint(content, at)
        sizes.append(size)
        total += size
    if at + total != len(content):
        raise ValueError("the sizes of a variant tensor's elements do not add up to its bytes")
    items = []
    for size in sizes:
        items.append(_message(content[at : at + size]))
        at += size
    return items


def _message(content: bytes) -> tensor_pb2.VariantTensorDataProto:
    try:
        return tensor_pb2.VariantTensorDataProto.FromString(content)
    except DecodeError as error:
        raise ValueError(f"an element of a variant tensor cannot be read: {error}") from None


def list_of(value: Array) -> TensorList:
    """The list of a variant input. Raises InvalidArgumentError for another shape or another variant."""
    if value.ndim:
        raise invalid(f"Input list must be a scalar saw: {list(value.shape)}")
    found = value[()]
    if not isinstance(found, TensorList):
        text = f"Input handle is not a list. Saw: '{type(found).__name__}'"
        raise invalid(text)
    return found
