"""Values as messages and back: handles, variants, and what means something in its own task only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors, tensor_util
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources import messages
from tenfold_kernels.resources.datasets.states import IteratorState
from tenfold_kernels.resources.optionals import Optional
from tenfold_kernels.resources.state import ResourceHandle
from tenfold_kernels.resources.tensor_lists import TensorList
from tenfold_kernels.resources.tensor_variants import TensorVariant, vector_of
from tenfold_protos.tensor_pb2 import TensorProto, VariantTensorDataProto

HANDLE = ResourceHandle("/device:CPU:0", "c", "n", 7, "Variable")


def objects(*values: Any) -> np.ndarray[Any, Any]:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def back(value: Any) -> Any:
    return messages.decode(messages.encode(value), "x")


@pytest.mark.parametrize(
    "value",
    [np.array([1.5, 2], np.float32), np.array(3, np.int8), np.zeros((0, 2)), np.array([b"a", b""], object)],
    ids=["floats", "scalar", "empty", "strings"],
)
def test_tensors_come_back_read_only(value: Any) -> None:
    found = back(value)
    assert (found.tolist(), found.dtype, found.shape) == (value.tolist(), value.dtype, value.shape)
    assert not found.flags.writeable


def test_handles_come_back() -> None:
    proto = messages.encode(HANDLE)
    assert proto.dtype == dtypes.resource.as_datatype_enum
    assert messages.encode(HANDLE.as_array()) == proto
    found = messages.decode(proto, "x")
    assert found.shape == ()
    assert found[()] == HANDLE
    assert not found.flags.writeable
    two = back(objects(HANDLE, HANDLE).reshape(2, 1))
    assert (two.shape, two[1, 0]) == ((2, 1), HANDLE)


def test_variants_come_back() -> None:
    made = TensorList(dtypes.variant, TensorShape([]), [vector_of(np.ones(2)), None])
    items = objects(made, IteratorState([1, b"x"]), TensorVariant(np.array([4, 5])))
    found = back(items.reshape(3, 1))
    assert found.shape == (3, 1)
    assert not found.flags.writeable
    within, state, tensor = found.ravel()
    first, unset = within.elements
    assert first[0].value.tolist() == [1, 1]
    assert unset is None
    assert state.state == [1, b"x"]
    assert tensor.value.tolist() == [4, 5]


def test_numbers_in_a_list_keep_their_type() -> None:
    made = TensorList(dtypes.float16, TensorShape([2]), [np.ones(2, np.float16)])
    (element,) = back(made.as_array())[()].elements
    assert element.dtype == np.float16
    assert element.tolist() == [1, 1]


def test_variants_are_in_the_content_too() -> None:
    plain = messages.encode(vector_of(np.ones(1), np.zeros(2)))
    sizes = [item.ByteSize() for item in plain.variant_val]
    assert all(size < 128 for size in sizes)
    content = bytes(sizes) + b"".join(item.SerializeToString() for item in plain.variant_val)
    del plain.variant_val[:]
    found = messages.decode(plain, "x", memoryview(content))
    assert [item.value.tolist() for item in found] == [[1], [0, 0]]


@pytest.mark.parametrize("item", [Optional((np.ones(1),)), object()], ids=["optional", "object"])
def test_what_stays_in_its_task_says_so(item: Any) -> None:
    text = f"A variant of type {type(item).__name__} cannot leave its task"
    for value in (objects(item), TensorList(dtypes.variant, TensorShape([1]), [objects(item)]).as_array()):
        with pytest.raises(errors.UnimplementedError, match=text):
            messages.encode(value)
    with pytest.raises(errors.UnimplementedError, match=text):
        messages.variants_to_bytes(objects(item))
    assert messages.that_stays(objects(HANDLE, item)) is item


@pytest.mark.parametrize(
    "array",
    [
        objects(),
        objects(b"a", object()),
        objects("a", object()),
        objects(HANDLE, IteratorState(1), TensorVariant(np.ones(1)), TensorList(dtypes.int32, TensorShape(None))),
    ],
    ids=["nothing", "bytes", "text", "variants"],
)
def test_what_may_leave_its_task(array: Any) -> None:
    assert messages.that_stays(array) is None


def test_variants_come_back_from_a_file() -> None:
    items = vector_of(np.ones(1), np.zeros(2)).reshape(2, 1)
    data = messages.variants_to_bytes(items)
    assert data.shape == (2, 1)
    assert all(isinstance(each, bytes) for each in data.flat)
    found = messages.variants_from_bytes(data, "the file")
    assert [each.value.tolist() for each in found.ravel()] == [[1], [0, 0]]
    assert found.shape == (2, 1)
    assert not found.flags.writeable


@pytest.mark.parametrize(
    "data",
    [b"\xff", VariantTensorDataProto(type_name="other").SerializeToString()],
    ids=["no message", "another variant"],
)
def test_a_damaged_file_is_named(data: bytes) -> None:
    with pytest.raises(errors.DataLossError, match=r"^the file: "):
        messages.variants_from_bytes(objects(data), "the file")


def variant_proto(**fields: Any) -> TensorProto:
    proto = messages.encode(vector_of(np.ones(1)))
    del proto.variant_val[:]
    proto.variant_val.add(**fields)
    return proto


def test_another_variant_is_refused() -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"^x: a variant of type 'other' is not known here"):
        messages.decode(variant_proto(type_name="other"), "x")


@pytest.mark.parametrize("count", [0, 2])
def test_a_tensor_s_variant_has_one_tensor(count: int) -> None:
    proto = variant_proto(type_name="tensorflow::Tensor")
    for _ in range(count):
        proto.variant_val[0].tensors.add().CopyFrom(tensor_util.tensor_to_proto(np.ones(1)))
    with pytest.raises(errors.InvalidArgumentError, match="'tensorflow::Tensor' is not known here"):
        messages.decode(proto, "x")


@pytest.mark.parametrize("kind", ["resource handles", "variants"])
def test_elements_fill_their_shape(kind: str) -> None:
    proto = messages.encode(HANDLE) if kind == "resource handles" else messages.encode(vector_of(np.ones(1)))
    proto.tensor_shape.dim.add(size=3)
    with pytest.raises(errors.InvalidArgumentError, match=rf"^x: 1 {kind} do not fill shape \[.*3\]"):
        messages.decode(proto, "x")


def test_the_error_of_a_tensor_keeps_its_code_and_names_the_tensor() -> None:
    proto = TensorProto(dtype=dtypes.float32.as_datatype_enum, tensor_content=b"abc")
    proto.tensor_shape.dim.add(size=1)
    with pytest.raises(errors.InvalidArgumentError, match=r"^feed x: "):
        messages.decode(proto, "feed x")
    state = variant_proto(type_name="tensorflow::Iterator", metadata=b"{")
    with pytest.raises(errors.DataLossError, match=r"^feed x: This is not the state of an iterator"):
        messages.decode(state, "feed x")


def test_a_content_beside_its_message_is_seen_where_it_lies() -> None:
    value = np.arange(4, dtype=np.float32)
    proto = tensor_util.tensor_to_proto(value)
    room = np.empty(24, np.uint8)
    for shift in (0, 1):
        room[shift : shift + 16] = value.view(np.uint8)
        proto.ClearField("tensor_content")
        found = messages.decode(proto, "x", room[shift : shift + 16].data)
        assert found.tolist() == [0, 1, 2, 3]
        assert found.flags.aligned
        assert not found.flags.writeable
        assert np.shares_memory(found, room) is (shift == 0)


@pytest.mark.parametrize(("most", "refused"), [(16, False), (15, True)])
def test_a_tensor_that_no_message_holds(monkeypatch: pytest.MonkeyPatch, most: int, refused: bool) -> None:
    monkeypatch.setattr(messages, "_LARGE", 8)
    monkeypatch.setattr(messages, "_MESSAGE", most)
    value = np.ones(4, np.float32)
    if refused:
        with pytest.raises(errors.ResourceExhaustedError, match=r"takes 16 bytes, and a message 2 GiB at most"):
            messages.encode(value)
    else:
        assert back(value).tolist() == [1] * 4


@pytest.mark.parametrize(("large", "looked"), [(15, True), (16, False)])
def test_the_copies_of_a_large_tensor_have_to_have_room(
    monkeypatch: pytest.MonkeyPatch, large: int, looked: bool
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(messages, "_LARGE", large)
    monkeypatch.setattr(messages, "allow", lambda *request: asked.append(request))
    messages.encode(np.ones(4, np.float32))
    assert asked == ([((4,), np.dtype(np.float32), 3)] if looked else [])


def test_the_limits_are_those_of_protocol_buffers() -> None:
    assert (messages._LARGE, messages._MESSAGE) == (16 * 1024**2, 2 * 1024**3 - 1)
