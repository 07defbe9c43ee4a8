"""TensorLists are values and travel as TensorFlow writes them; TensorArrays and stacks hold to their rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources import messages as tensors
from tenfold_kernels.resources.tensor_arrays import MAX_ELEMENTS, Stack, TensorArray
from tenfold_kernels.resources.tensor_lists import TensorList
from tenfold_protos.tensor_pb2 import TensorProto

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
