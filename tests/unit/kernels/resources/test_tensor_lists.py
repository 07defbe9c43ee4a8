"""TensorLists are values and travel as TensorFlow writes them; TensorArrays and stacks hold to their rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors, tensor_util
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources import messages as tensors
from tenfold_kernels.resources import tensor_arrays
from tenfold_kernels.resources.tensor_arrays import MAX_ELEMENTS, Stack, TensorArray
from tenfold_kernels.resources.tensor_lists import TensorList, from_proto, list_of, split_content, to_proto
from tenfold_protos.tensor_pb2 import TensorProto, VariantTensorDataProto

F32 = dtypes.float32


def number(value: float) -> Any:
    return np.array(value, np.float32)


def contents(found: TensorList) -> list[Any]:
    return [None if element is None else element.tolist() for element in found.elements]


def test_a_push_changes_no_other_list() -> None:
    empty = TensorList(F32, TensorShape([]))
    one = empty.push(number(1))
    left, right = one.push(number(2)), one.push(number(3))
    assert [contents(x) for x in (empty, one, left, right)] == [[], [1], [1, 2], [1, 3]]
    assert contents(left.pop().push(number(4))) == [1, 4]
    assert contents(left) == [1, 2]
    assert contents(left.set(0, number(9))) == [9, 2]


@pytest.mark.parametrize("limit", [-1, 5])
def test_a_list_survives_the_wire(limit: int) -> None:
    inner = TensorList(dtypes.string, TensorShape([None]), [np.array([b"a"], object)])
    for dtype, shape, elements in (
        (F32, TensorShape([None, 2]), [np.ones((1, 2), np.float32), None, np.zeros((3, 2), np.float32)]),
        (dtypes.variant, TensorShape([]), [inner.as_array(), None]),
        (dtypes.int64, TensorShape(None), []),
    ):
        found = TensorList(dtype, shape, elements, limit)
        back = tensors.decode(TensorProto.FromString(tensors.encode(found.as_array()).SerializeToString()), "it")[()]
        assert (back.dtype, str(back.shape), back.max_num_elements) == (dtype, str(shape), limit)
        assert str(contents(back)) == str(contents(found)) or dtype is dtypes.variant
    assert contents(TensorList(dtypes.variant, TensorShape([]), [inner.as_array()]).elements[0][()]) == [[b"a"]]  # type: ignore[index]


@pytest.mark.parametrize(
    "metadata", [b"", b"\xff", b"\x05", b"\x01\x07\x01\x00", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"]
)
def test_a_broken_list_is_refused(metadata: bytes) -> None:
    proto = TensorProto(dtype=dtypes.variant.as_datatype_enum)  # type: ignore[arg-type]
    proto.variant_val.add(type_name="tensorflow::TensorList", metadata=metadata)
    with pytest.raises(errors.InvalidArgumentError):
        tensors.decode(proto, "A tensor")


def test_lists_come_in_tensor_content_too() -> None:
    """So TensorFlow's workers send them: all sizes, then all messages."""
    lists = [TensorList(F32, TensorShape([]), [number(i)] * i) for i in range(3)]
    messages = [tensors.encode(found.as_array()).variant_val[0].SerializeToString() for found in lists]
    content = b"".join(bytes([len(message)]) for message in messages) + b"".join(messages)
    proto = TensorProto(dtype=dtypes.variant.as_datatype_enum, tensor_content=content)  # type: ignore[arg-type]
    proto.tensor_shape.dim.add(size=3)
    assert [contents(found) for found in tensors.decode(proto, "it")] == [[], [1], [2, 2]]
    proto.tensor_content = content[:-1]
    with pytest.raises(errors.InvalidArgumentError):
        tensors.decode(proto, "it")


def test_unknown_variants_are_refused() -> None:
    proto = TensorProto(dtype=dtypes.variant.as_datatype_enum)  # type: ignore[arg-type]
    proto.variant_val.add(type_name="other")
    with pytest.raises(errors.InvalidArgumentError, match="'other' is not known"):
        tensors.decode(proto, "A tensor")


def test_a_size_costs_no_memory_and_has_a_limit() -> None:
    array = TensorArray("t", F32, MAX_ELEMENTS, TensorShape(None))
    assert array.size == MAX_ELEMENTS
    with pytest.raises(errors.ResourceExhaustedError, match="is the limit"):
        TensorArray("t", F32, MAX_ELEMENTS + 1, TensorShape(None))
    with pytest.raises(errors.ResourceExhaustedError):
        TensorArray("t", F32, 0, TensorShape(None), dynamic_size=True).write(2**31 - 1, number(1))


def test_elements_are_written_and_read_once() -> None:
    array = TensorArray("t", F32, 2, TensorShape(None))
    array.write(0, number(1))
    with pytest.raises(errors.InvalidArgumentError, match="it has already been written to"):
        array.write(0, number(1))
    assert array.read(0) == 1
    with pytest.raises(errors.InvalidArgumentError, match="it was cleared after a previous read"):
        array.read(0)
    with pytest.raises(errors.InvalidArgumentError, match="not fully defined"):
        array.read(1)
    with pytest.raises(errors.InvalidArgumentError, match="array is not resizeable and size is: 2"):
        array.write(2, number(1))


def test_gradients_are_added_up_and_zero_where_nothing_was_written() -> None:
    array = TensorArray("t", F32, 0, TensorShape([1]), dynamic_size=True)
    array.write(1, np.ones(1, np.float32))
    gradient = array.gradient("g")
    assert array.gradient("g") is gradient
    assert array.gradient("h") is not gradient
    gradient.write(1, np.ones(1, np.float32))
    gradient.write(1, np.ones(1, np.float32))
    assert (gradient.read(0).tolist(), gradient.read(1).tolist()) == ([0], [2])
    with pytest.raises(errors.InvalidArgumentError, match="not resizeable"):
        array.write(2, np.ones(1, np.float32))


def test_identical_shapes_are_held_and_closing_ends_it() -> None:
    array = TensorArray("t", F32, 2, TensorShape(None), identical_element_shapes=True)
    array.write(0, np.ones(2, np.float32))
    with pytest.raises(errors.InvalidArgumentError, match=r"value shape is \[3\].*inferred element shape: \[2\]"):
        array.write(1, np.ones(3, np.float32))
    array.close()
    with pytest.raises(errors.InvalidArgumentError, match="has already been closed"):
        array.read(0)


def test_stacks_have_two_ends() -> None:
    stack = Stack("s", F32, 1)
    stack.push(number(1))
    with pytest.raises(errors.InvalidArgumentError, match=r"Stack\[s\] overflowed its max_size \(1\)"):
        stack.push(number(2))
    assert stack.pop() == 1
    with pytest.raises(errors.InvalidArgumentError, match=r"is empty when calling Pop\(\)"):
        stack.pop()
    stack.close()
    with pytest.raises(errors.InvalidArgumentError, match="already been closed"):
        stack.push(number(1))


# -- the message that a list travels in --------------------------------------------------------------------------------


def message(metadata: bytes, *tensors_: Any) -> VariantTensorDataProto:
    return VariantTensorDataProto(
        type_name="tensorflow::TensorList",
        metadata=metadata,
        tensors=[tensor_util.tensor_to_proto(t) for t in tensors_],
    )


def read(proto: VariantTensorDataProto) -> TensorList:
    return from_proto(proto, lambda tensor: tensors.decode(tensor, "an element"))


def test_metadata_are_unset_ones_type_limit_and_shape() -> None:
    found = to_proto(
        TensorList(F32, TensorShape([2]), [None, np.ones(2, np.float32), None], 7), tensor_util.tensor_to_proto
    )
    shape = TensorShape([2]).as_proto().SerializeToString()
    assert found.metadata == bytes([2, 0, 2, 1, 7]) + shape
    assert found.type_name == "tensorflow::TensorList"
    assert len(found.tensors) == 1
    endless = to_proto(TensorList(F32, TensorShape([2]), []), tensor_util.tensor_to_proto)
    assert endless.metadata == b"\x00\x01" + b"\xff" * 9 + b"\x01" + shape


ONE = np.ones((), np.float32)


@pytest.mark.parametrize(
    ("metadata", "elements", "limit"),
    [
        (b"\x00\x01\x05", [1], 5),
        (b"\x01\x00\x01\x05", [None, 1], 5),
        (b"\x01\x01\x01\x00", [1, None], 0),
        (b"\x00\x01" + b"\xff" * 9 + b"\x01", [1], -1),
        (b"\x00\x01" + b"\xff" * 8 + b"\x7f", [1], (1 << 63) - 1),
        (b"\x00\x01" + b"\x80" * 9 + b"\x01", [1], -(1 << 63)),
    ],
)
def test_a_message_is_read(metadata: bytes, elements: list[Any], limit: int) -> None:
    found = read(message(metadata, ONE))
    assert contents(found) == elements
    assert (found.dtype, found.max_num_elements, found.shape.as_list()) == (F32, limit, [])


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        (b"\x06\x01\x01\x05", "says that 6 elements are not set, in 4 bytes"),
        (b"\x01\x02\x01\x05", r"a TensorList of 2 elements has the unset ones \[2\]"),
        (b"\x02\x01\x01\x01\x05", r"a TensorList of 3 elements has the unset ones \[1\]"),
        (b"\x00\x03\x05", "a TensorList of int32 has elements of another type"),
        (b"\x00\x01\x05\xff", "the element shape of a TensorList cannot be read"),
    ],
)
def test_what_no_list_can_be(metadata: bytes, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        read(message(metadata, ONE))


def test_as_many_may_be_unset_as_there_are_bytes() -> None:
    assert contents(read(message(b"\x03\x00\x01\x02\x01\x05"))) == [None] * 3


def test_a_content_is_sizes_and_messages() -> None:
    first, second = message(b"\x00\x01\x05", ONE), message(b"\x00\x01\x05", *[ONE] * 30)
    data = [each.SerializeToString() for each in (first, second)]
    assert len(data[0]) < 128 <= len(data[1])
    sizes = bytes([len(data[0]), len(data[1]) & 127 | 128, len(data[1]) >> 7])
    assert split_content(sizes + b"".join(data)) == [first, second]
    assert split_content(b"") == []
    for wrong in (sizes + b"".join(data)[:-1], b"\x05", b"\x00\x01"):
        with pytest.raises(ValueError, match="do not add up to its bytes"):
            split_content(wrong)
    with pytest.raises(ValueError, match="an element of a variant tensor cannot be read"):
        split_content(b"\x01\xff")


# -- lists as values ---------------------------------------------------------------------------------------------------


def test_lists_of_one_storage_are_apart() -> None:
    whole = TensorList(F32, TensorShape([]), [number(1), number(2)], 9)
    shorter, longer = whole.pop(), whole.push(number(3))
    assert [found.length for found in (whole, shorter, longer)] == [2, 1, 3]
    assert longer._storage is whole._storage, "appended in place"
    again = shorter.push(number(4))
    assert again._storage is not whole._storage
    assert [contents(found) for found in (whole, longer, again)] == [[1, 2], [1, 2, 3], [1, 4]]
    assert longer[2] == 3
    for found in (shorter, longer, again, whole.set(0, number(5)), whole.with_elements([])):
        assert (found.dtype, found.shape.as_list(), found.max_num_elements) == (F32, [], 9)
    assert TensorList(F32, TensorShape([])).max_num_elements == -1


def test_a_list_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_arrays, "MAX_ELEMENTS", 2)
    found = TensorList(F32, TensorShape([]), [number(1)]).push(number(2))
    for grow in (lambda: found.push(number(3)), lambda: TensorList(F32, TensorShape([]), [number(1)] * 3)):
        with pytest.raises(errors.ResourceExhaustedError, match="A TensorList would have 3 elements; 2 is the limit"):
            grow()


def test_what_is_no_list_is_refused() -> None:
    found = TensorList(F32, TensorShape([]))
    assert list_of(found.as_array()) is found
    with pytest.raises(errors.InvalidArgumentError, match=r"Input list must be a scalar saw: \[1\]"):
        list_of(found.as_array().reshape(1))
    other = np.empty((), object)
    other[()] = b"text"
    with pytest.raises(errors.InvalidArgumentError, match=r"Input handle is not a list. Saw: 'bytes'"):
        list_of(other)
