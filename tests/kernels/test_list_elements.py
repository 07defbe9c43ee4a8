"""Ops of single elements of TensorLists: bounds at their edges, element shapes, elements never set, refusals."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

from support.kernel_runs import Steps, make_node
from support.op_values import ints
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.cpu import list as list_ops
from tenfold_kernels.resources import tensor_arrays
from tenfold_kernels.resources.state import ResourceManager
from tenfold_kernels.resources.tensor_lists import TensorList

F = np.float32
FLOATS = {"element_dtype": dtypes.float32}
UNKNOWN = np.array(-1, np.int32)


def list_of(shape: Any, *elements: Any, dtype: Any = dtypes.float32, most: int = -1) -> np.ndarray:
    values = [None if each is None else np.asarray(each, dtype.as_numpy_dtype) for each in elements]
    return TensorList(dtype, TensorShape(shape), values, most).as_array()


def contents(array: np.ndarray) -> list[Any]:
    return [None if element is None else element.tolist() for element in array[()].elements]


def shape_of(array: np.ndarray) -> Any:
    shape = array[()].shape
    return None if shape.ndims is None else shape.as_list()


def refused(op: str, *inputs: Any, text: str, **attrs: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=f"^{re.escape(text)}"):
        Steps()(op, *inputs, **attrs)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("given", "shape"), [(-1, None), ([], []), ([2, 3], [2, 3]), ([-1, 3], [None, 3]), ([-5], [None]), ([0], [0])]
)
def test_an_empty_list_has_a_shape_of_elements_and_a_limit(kind: Any, given: Any, shape: Any) -> None:
    made = Steps()("EmptyTensorList", np.array(given, kind), np.int32(7), **FLOATS)
    assert (shape_of(made), contents(made)) == (shape, [])
    assert (made[()].dtype, made[()].max_num_elements) == (dtypes.float32, 7)
    reserved = Steps()("TensorListReserve", np.array(given, kind), np.int32(2), **FLOATS)
    assert (shape_of(reserved), contents(reserved)) == (shape, [None, None])
    assert reserved[()].max_num_elements == -1


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (0, "The only valid scalar shape tensor is the fully unknown shape specified as -1."),
        (-2, "The only valid scalar shape tensor is the fully unknown shape specified as -1."),
        ([[2]], "element_shape must be at most rank 1 but has the shape of [1,1]"),
    ],
)
def test_what_is_no_shape_of_elements(given: Any, text: str) -> None:
    refused("EmptyTensorList", np.array(given, np.int32), np.int32(-1), text=text, **FLOATS)


def test_sizes_of_lists_are_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "max_num_elements expected to be a scalar but got shape: [1]"
    refused("EmptyTensorList", ints(2), ints(1), text=text, **FLOATS)
    refused("TensorListReserve", ints(2), ints(1), text="num_elements expected to be a scalar but got", **FLOATS)
    text = "The num_elements to reserve must be a non negative number, but got -1"
    refused("TensorListReserve", ints(2), np.int32(-1), text=text, **FLOATS)
    refused("TensorListResize", list_of([]), ints(1), text="size expected to be a scalar but got shape: [1]")
    assert contents(Steps()("TensorListReserve", ints(2), np.int32(0), **FLOATS)) == []
    monkeypatch.setattr(tensor_arrays, "MAX_ELEMENTS", 4)
    assert len(contents(Steps()("TensorListReserve", ints(2), np.int32(4), **FLOATS))) == 4
    with pytest.raises(errors.ResourceExhaustedError, match="A TensorList would have 5 elements; 4 is the limit"):
        Steps()("TensorListReserve", ints(2), np.int32(5), **FLOATS)


class Asked(Exception):
    """So many elements were asked for."""


def ask(count: int, what: str) -> None:
    raise Asked(f"{what} {count}")


def test_a_number_is_asked_for_before_a_list_of_so_many_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take the memory of the task."""
    monkeypatch.setattr(list_ops, "check_count", ask)
    made = list_of([], 1)
    for op, inputs, attrs in (
        ("TensorListReserve", (ints(2), np.int32(5)), FLOATS),
        ("TensorListResize", (made, np.int32(5)), {}),
        ("TensorListSetItem", (made, np.int32(4), F(1)), FLOATS | {"resize_if_index_out_of_bounds": True}),
    ):
        with pytest.raises(Asked, match=r"^A TensorList 5$"):
            Steps()(op, *inputs, **attrs)


def test_an_element_more() -> None:
    old = list_of([None, 2], [[1, 2]])
    new = Steps()("TensorListPushBack", old, F([[3, 4], [5, 6]]), **FLOATS)
    assert contents(new) == [[[1, 2]], [[3, 4], [5, 6]]]
    assert contents(old) == [[[1, 2]]]
    text = "Tried to append a tensor with incompatible shape to a list. Op element shape: [2] list shape: [?,2]"
    refused("TensorListPushBack", old, F([1, 2]), text=text, **FLOATS)
    text = "Invalid data types; op elements int32 but list elements float"
    refused("TensorListPushBack", old, np.int32([[1, 2]]), text=text, element_dtype=dtypes.int32)


def test_a_full_list_takes_no_more() -> None:
    push = lambda *elements, most: Steps()(  # noqa: E731
        "TensorListPushBack", list_of([], *elements, most=most), F(9), **FLOATS
    )
    assert contents(push(1, most=2)) == [1, 9]
    assert contents(push(1, most=-1)) == [1, 9]
    text = r"^Tried to push item into a full list list size: {0} max_num_elements: {0}$"
    for elements in ((1, 2), ()):
        with pytest.raises(errors.InvalidArgumentError, match=text.format(len(elements))):
            push(*elements, most=len(elements))


def test_the_last_element_comes_off() -> None:
    steps = Steps()
    shorter, last = steps("TensorListPopBack", list_of([2], [1, 2], [3, 4]), ints(2), **FLOATS)
    assert (contents(shorter), last.tolist()) == ([[1, 2]], [3, 4])
    none, one = steps("TensorListPopBack", list_of(None, 7), UNKNOWN, **FLOATS)
    assert (contents(none), one.tolist()) == ([], 7)
    refused("TensorListPopBack", list_of([]), ints(), text="Trying to pop from an empty list.", **FLOATS)
    refused("TensorListPopBack", list_of([], 1), ints(), text="Invalid data types; op", element_dtype=dtypes.int32)


@pytest.mark.parametrize(
    ("shape", "given", "wanted"),
    [([2], -1, [0, 0]), (None, [3], [0, 0, 0]), ([None, 2], [1, -1], [[0, 0]]), ([], -1, 0), ([0], -1, [])],
)
def test_an_element_that_was_never_set_reads_as_zeros(shape: Any, given: Any, wanted: Any) -> None:
    made, asked = list_of(shape, None), np.array(given, np.int32)
    _, last = Steps()("TensorListPopBack", made, asked, **FLOATS)
    item = Steps()("TensorListGetItem", made, np.int32(0), asked, **FLOATS)
    for found in (last, item):
        assert (found.tolist(), found.dtype) == (wanted, np.float32)


def test_an_element_whose_shape_nobody_knows() -> None:
    text = "Trying to read an uninitialized tensor but element_shape is not fully defined"
    for shape, given in ((None, -1), ([None], [-1]), ([None, 2], -1)):
        made, asked = list_of(shape, None), np.array(given, np.int32)
        refused("TensorListPopBack", made, asked, text=text, **FLOATS)
        refused("TensorListGetItem", made, np.int32(0), asked, text=text, **FLOATS)
    text = r"not fully defined: \[\?,2\] and no list element is set\.$"
    with pytest.raises(errors.InvalidArgumentError, match=text):
        Steps()("TensorListGetItem", list_of([None, 2], None), np.int32(0), UNKNOWN, **FLOATS)
    words = list_of([2], None, dtype=dtypes.string)
    item = Steps()("TensorListGetItem", words, np.int32(0), UNKNOWN, element_dtype=dtypes.string)
    assert item.tolist() == [b"", b""]


def test_other_elements_tell_the_shape_of_one_that_was_never_set() -> None:
    made = list_of(None, None, [1, 2, 3], None)
    item = Steps()("TensorListGetItem", made, np.int32(2), UNKNOWN, **FLOATS)
    assert item.tolist() == [0, 0, 0]
    refused("TensorListPopBack", made, UNKNOWN, text="Trying to read an uninitialized tensor", **FLOATS)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_element_is_read_and_set(at: int) -> None:
    made = list_of([], 5, 6, 7)
    assert Steps()("TensorListGetItem", made, np.int32(at), UNKNOWN, **FLOATS).tolist() == 5 + at
    changed = Steps()("TensorListSetItem", made, np.int32(at), F(9), **FLOATS)
    assert contents(changed) == [9 if i == at else 5 + i for i in range(3)]
    assert contents(made) == [5, 6, 7]


@pytest.mark.parametrize("at", [-1, 3, 4])
def test_an_element_that_is_not_there(at: int) -> None:
    made = list_of([], 5, 6, 7)
    text = f"Trying to access element {at} in a list with 3 elements."
    refused("TensorListGetItem", made, np.int32(at), UNKNOWN, text=text, **FLOATS)
    text = f"Trying to modify element {at} in a list with 3 elements."
    refused("TensorListSetItem", made, np.int32(at), F(1), text=text, **FLOATS)
    resizing = FLOATS | {"resize_if_index_out_of_bounds": True}
    if at < 0:
        refused("TensorListSetItem", made, np.int32(at), F(1), text=text, **resizing)
    else:
        longer = Steps()("TensorListSetItem", made, np.int32(at), F(1), **resizing)
        assert contents(longer) == [5, 6, 7, *[None] * (at - 3), 1]
        assert contents(made) == [5, 6, 7]


def test_an_element_of_another_shape_or_type_is_not_set() -> None:
    made = list_of([None, 2], None)
    text = "Tried to set a tensor with incompatible shape at a list index. Item element shape: [2] list shape: [?,2]"
    refused("TensorListSetItem", made, np.int32(0), F([1, 2]), text=text, **FLOATS)
    wrong = {"element_dtype": dtypes.int32}
    text = "Invalid data types; op elements int32 but list elements float"
    refused("TensorListSetItem", made, np.int32(0), np.int32([[1, 2]]), text=text, **wrong)
    refused("TensorListGetItem", made, np.int32(0), UNKNOWN, text=text, **wrong)


def test_a_list_does_not_grow_unless_it_is_said() -> None:
    made = list_of([], 1)
    node = make_node("TensorListSetItem", [made, np.int32(1), F(2)], FLOATS, ResourceManager(), "n")
    put = list_ops.build_set_item(dataclasses.replace(node, attrs=FLOATS))
    with pytest.raises(errors.InvalidArgumentError, match="Trying to modify element 1 in a list with 1 elements"):
        put(made, np.array(1, np.int32), np.array(2, F))


def test_a_list_grows_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_arrays, "MAX_ELEMENTS", 4)
    resizing = FLOATS | {"resize_if_index_out_of_bounds": True}
    assert len(contents(Steps()("TensorListSetItem", list_of([], 1), np.int32(3), F(1), **resizing))) == 4
    with pytest.raises(errors.ResourceExhaustedError, match="A TensorList would have 5 elements; 4 is the limit"):
        Steps()("TensorListSetItem", list_of([], 1), np.int32(4), F(1), **resizing)


def test_lengths_are_counted() -> None:
    for count in range(3):
        length = Steps()("TensorListLength", list_of([], *range(count)))
        assert (length.tolist(), length.dtype, length.shape) == (count, np.int32, ())


def test_rows_of_a_tensor() -> None:
    rows = list_ops.rows_of(F([[1, 2], [3, 4]]))
    assert [None if row is None else row.tolist() for row in rows] == [[1, 2], [3, 4]]
    assert [type(row) for row in list_ops.rows_of(F([1, 2]))] == [np.ndarray] * 2
    assert list_ops.rows_of(np.zeros((0, 2))) == []
    with pytest.raises(errors.InvalidArgumentError, match=r"^Tensor must be at least a vector, but saw shape: \[\]$"):
        list_ops.rows_of(np.array(1))


def test_shapes_tell_more_together() -> None:
    merged = list_ops.merged_with(TensorShape([None, None]), [None, np.zeros((2, 3)), None])
    assert merged.as_list() == [2, 3]
    assert list_ops.merged_with(TensorShape(None), [None]).ndims is None
    with pytest.raises(errors.InvalidArgumentError):
        list_ops.merged_with(TensorShape([2]), [np.zeros(3)])
    assert list_ops.defined_dims(TensorShape([2, 0]), "no") == (2, 0)
    for shape in (TensorShape(None), TensorShape([2, None])):
        with pytest.raises(errors.InvalidArgumentError, match=r"^no$"):
            list_ops.defined_dims(shape, "no")


def test_rows_pushed_onto_lists_keep_them() -> None:
    lists = np.empty(2, object)
    lists[0], lists[1] = list_of([], 1)[()], list_of(None)[()]
    found = Steps()("TensorListPushBackBatch", lists, F([5, 6]), **FLOATS)
    assert [[e.tolist() for e in each.elements] for each in found] == [[1, 5], [6]]
    assert [each.length for each in lists] == [1, 0]
    lists[0] = list_of([], 1, dtype=dtypes.int32)[()]
    refused("TensorListPushBackBatch", lists, F([5, 6]), text="Invalid data types; op elements float", **FLOATS)
    lists[0], lists[1] = list_of(None)[()], list_of([2])[()]
    text = "Tried to append a tensor with incompatible shape to a list at index 1. Op element shape: [] list shape: [2]"
    refused("TensorListPushBackBatch", lists, F([5, 6]), text=text, **FLOATS)
