"""Lists made of tensors and tensors of whole lists: stack, gather, scatter, split, concat; unset elements, refusals."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

from support.kernel_runs import Steps, make_node
from support.op_values import ints
from support.room import assert_wants
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.cpu import list_whole
from tenfold_kernels.resources import tensor_arrays
from tenfold_kernels.resources.state import ResourceManager
from tenfold_kernels.resources.tensor_lists import TensorList

F = np.float32
FLOATS = {"element_dtype": dtypes.float32}
INTS = {"element_dtype": dtypes.int32}
UNKNOWN = np.array(-1, np.int32)
WRONG_TYPE = "Invalid data types; op elements int32 but list elements float"


def list_of(shape: Any, *elements: Any, dtype: Any = dtypes.float32) -> np.ndarray:
    values = [None if each is None else np.array(each, dtype.as_numpy_dtype) for each in elements]
    return TensorList(dtype, TensorShape(shape), values).as_array()


def contents(array: np.ndarray) -> list[Any]:
    return [None if element is None else element.tolist() for element in array[()].elements]


def shape_of(array: np.ndarray) -> Any:
    shape = array[()].shape
    return None if shape.ndims is None else shape.as_list()


def longs(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


class Asked(Exception):
    """So many elements were asked for."""


def ask(count: int, what: str) -> None:
    raise Asked(f"{what} {count}")


def refused(op: str, *inputs: Any, text: str, **attrs: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=f"^{re.escape(text)}"):
        Steps()(op, *inputs, **attrs)


# -- stack and gather --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "asked", "wanted"),
    [
        (list_of([2], [1, 2], [3, 4]), ints(2), [[1, 2], [3, 4]]),
        (list_of([2], [1, 2], None), UNKNOWN, [[1, 2], [0, 0]]),
        (list_of(None, None, [1, 2]), UNKNOWN, [[0, 0], [1, 2]]),
        (list_of(None, None, None), ints(1), [[0], [0]]),
        (list_of([], 5, None), UNKNOWN, [5, 0]),
        (list_of([None, 2], None, [[1, 2]]), ints(1, -1), [[[0, 0]], [[1, 2]]]),
    ],
)
def test_elements_are_stacked(made: np.ndarray, asked: np.ndarray, wanted: Any) -> None:
    stacked = Steps()("TensorListStack", made, asked, **FLOATS)
    assert (stacked.tolist(), stacked.dtype) == (wanted, np.float32)
    assert Steps()("TensorListStack", made, asked, num_elements=2, **FLOATS).tolist() == wanted
    gathered = Steps()("TensorListGather", made, ints(1, 0, 1), asked, **FLOATS)
    assert gathered.tolist() == [wanted[1], wanted[0], wanted[1]]


def test_texts_are_stacked() -> None:
    texts = {"element_dtype": dtypes.string}
    made = list_of([], b"a", None, dtype=dtypes.string)
    stacked = Steps()("TensorListStack", made, UNKNOWN, **texts)
    assert [*map(type, stacked)] == [bytes, bytes]
    assert stacked.tolist() == [b"a", b""]
    made = list_of([2], None, [b"a", b"b"], dtype=dtypes.string)
    assert Steps()("TensorListStack", made, UNKNOWN, **texts).tolist() == [[b"", b""], [b"a", b"b"]]


def test_empty_lists_have_a_shape_that_is_known() -> None:
    assert Steps()("TensorListStack", list_of([None, 2]), ints(3, -1), **FLOATS).shape == (0, 3, 2)
    text = "Tried to stack elements of an empty list with non-fully-defined element_shape: [?,2]"
    refused("TensorListStack", list_of([None, 2]), UNKNOWN, text=text, **FLOATS)
    assert Steps()("TensorListGather", list_of(None, 5), ints(), ints(2), **FLOATS).shape == (0, 2)
    text = "Tried to gather 0-elements from a list with non-fully-defined shape: [?]"
    refused("TensorListGather", list_of([None], [5]), ints(), UNKNOWN, text=text, **FLOATS)


def test_elements_that_were_never_set_have_a_shape_that_is_known() -> None:
    text = (
        "Tried to stack list which only contains uninitialized tensors and has a non-fully-defined element_shape: [?]"
    )
    refused("TensorListStack", list_of([None], None), UNKNOWN, text=text, **FLOATS)
    text = "Tried to gather uninitialized tensors from a list with non-fully-defined element_shape: [?]"
    refused("TensorListGather", list_of([None], None, [1, 2]), ints(0), UNKNOWN, text=text, **FLOATS)
    refused("TensorListStack", list_of(None, [1], [1, 2]), UNKNOWN, text="", **FLOATS)
    refused("TensorListStack", list_of([2], [1, 2]), ints(3), text="", **FLOATS)


def test_a_stack_counts_where_it_is_told_to() -> None:
    made = list_of([], 1, 2)
    for count in (1, 3, 0, -2):
        text = f"Operation expected a list with {count} elements but got a list with 2 elements."
        refused("TensorListStack", made, UNKNOWN, text=text, num_elements=count, **FLOATS)
    refused("TensorListStack", made, UNKNOWN, text=WRONG_TYPE, **INTS)


def test_a_stack_counts_nothing_unless_it_is_said() -> None:
    made = list_of([], 1, 2)
    node = make_node("TensorListStack", [made, UNKNOWN], FLOATS, ResourceManager(), "n")
    stack = list_whole.build_stack(dataclasses.replace(node, attrs=FLOATS))
    assert stack(made, UNKNOWN).tolist() == [1, 2]


@pytest.mark.parametrize("at", [-1, 2, 3])
def test_an_element_that_is_not_there_is_not_gathered(at: int) -> None:
    text = f"Trying to gather element {at} in a list with 2 elements."
    refused("TensorListGather", list_of([], 1, 2), ints(0, at), UNKNOWN, text=text, **FLOATS)
    refused("TensorListGather", list_of([], 1, 2), ints(0), UNKNOWN, text=WRONG_TYPE, **INTS)


def test_what_stacking_takes_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list_of([2, 3], *[np.ones((2, 3))] * 5)
    assert_wants(monkeypatch, 5 * 2 * 3 * 4, lambda: Steps()("TensorListStack", made, UNKNOWN, **FLOATS))


# -- from tensors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "given", "shape"),
    [([[1, 2], [3, 4]], [2], [2]), ([[1, 2]], [-1], [None]), ([5, 6, 7], -1, None), (np.zeros((0, 2)), [2], [2])],
)
def test_rows_become_elements(value: Any, given: Any, shape: Any) -> None:
    tensor, asked = np.asarray(value, F), np.array(given, np.int32)
    made = Steps()("TensorListFromTensor", tensor, asked, **FLOATS)
    assert (contents(made), shape_of(made), made[()].dtype) == (tensor.tolist(), shape, dtypes.float32)
    places = np.arange(len(tensor), dtype=np.int32)[::-1].copy()
    for op, more in (("TensorListScatter", ()), ("TensorListScatterV2", (np.int32(-1),))):
        scattered = Steps()(op, tensor, places, asked, *more, **FLOATS)
        assert (contents(scattered), shape_of(scattered)) == (tensor[::-1].tolist(), shape)
        assert scattered[()].dtype is dtypes.float32


def test_rows_have_the_shape_that_is_said() -> None:
    text = "Specified a list with shape [?,2] from a tensor with shape [2]"
    tensor = F([[1, 2], [3, 4]])
    refused("TensorListFromTensor", tensor, ints(-1, 2), text=text, **FLOATS)
    refused("TensorListScatter", tensor, ints(0, 1), ints(-1, 2), text=text, **FLOATS)
    for op, rest in (("TensorListFromTensor", ()), ("TensorListScatter", (ints(0),))):
        refused(op, F(1), *rest, UNKNOWN, text="Tensor must be at least a vector, but saw shape: []", **FLOATS)


@pytest.mark.parametrize(
    ("places", "count", "wanted"),
    [
        ([2, 0], -1, [[3, 4], None, [1, 2]]), ([2, 0], 3, [[3, 4], None, [1, 2]]), ([1, 1], -1, [None, [3, 4]]),
        ([0, 1], 4, [[1, 2], [3, 4], None, None]), ([[1], [0]], 2, [[3, 4], [1, 2]]),
    ],
)  # fmt: skip
def test_rows_are_scattered(places: Any, count: int, wanted: Any) -> None:
    tensor, at = F([[1, 2], [3, 4]]), np.array(places, np.int32)
    made = Steps()("TensorListScatterV2", tensor, at, ints(2), np.int32(count), **FLOATS)
    assert contents(made) == wanted
    if count == -1:
        assert contents(Steps()("TensorListScatter", tensor, at, ints(2), **FLOATS)) == wanted


def test_no_rows_make_an_empty_list_or_one_of_the_size_that_is_said() -> None:
    nothing = np.zeros((0, 2), F)
    assert contents(Steps()("TensorListScatter", nothing, ints(), ints(2), **FLOATS)) == []
    assert contents(Steps()("TensorListScatterV2", nothing, ints(), ints(2), np.int32(-1), **FLOATS)) == []
    assert contents(Steps()("TensorListScatterV2", nothing, ints(), ints(2), np.int32(0), **FLOATS)) == []
    assert contents(Steps()("TensorListScatterV2", nothing, ints(), ints(2), np.int32(2), **FLOATS)) == [None] * 2


@pytest.mark.parametrize(
    ("places", "count", "text"),
    [
        ([0, 1], [2], "num_elements must be a scalar"),
        ([0, 1], -2, "TensorListScatter expects num_elements >= -1, found: -2"),
        ([0], -1, "Invalid number of rows in input tensor. Expected: 1 Actual: 2"),
        ([0, 1, 2], -1, "Invalid number of rows in input tensor. Expected: 3 Actual: 2"),
        ([0, -1], -1, "Indices in TensorListScatter must all be non-negative."),
        ([0, -1], 5, "Indices in TensorListScatter must all be non-negative."),
        ([0, 2], 2, "TensorListScatter: Trying to scatter at index 2 in list with size 2"),
        ([0, 1], 0, "TensorListScatter: Trying to scatter at index 0 in list with size 0"),
    ],
)
def test_rows_that_cannot_be_scattered(places: Any, count: Any, text: str) -> None:
    tensor, size = F([[1, 2], [3, 4]]), np.array(count, np.int32)
    refused("TensorListScatterV2", tensor, np.array(places, np.int32), ints(2), size, text=text, **FLOATS)


def test_rows_are_scattered_into_a_list() -> None:
    old = list_of([], 1, 2, None)
    for places, values, wanted in (
        ([0], [7], [7, 2, None]), ([2, 0], [7, 8], [8, 2, 7]), ([4, 1], [7, 8], [1, 8, None, None, 7]),
        ([3], [7], [1, 2, None, 7]), ([1, 1], [7, 8], [1, 8, None]), ([], [], [1, 2, None]),
    ):  # fmt: skip
        new = Steps()("TensorListScatterIntoExistingList", old, F(values), np.array(places, np.int32), **FLOATS)
        assert contents(new) == wanted
    assert contents(old) == [1, 2, None]
    nothing = Steps()("TensorListScatterIntoExistingList", list_of([]), F([]), ints(), **FLOATS)
    assert contents(nothing) == []


def test_rows_that_cannot_be_scattered_into_a_list() -> None:
    op, old = "TensorListScatterIntoExistingList", list_of([], 1, 2)
    text = "Invalid data types; input tensor type: int32 list element_type: float"
    refused(op, old, ints(5), ints(0), text=text, **INTS)
    refused(op, old, F([5]), ints([0]), text="Expected indices to be a vector, but received shape: [1,1]", **FLOATS)
    text = "Expected len(indices) == tensor.shape[0], but saw: 2 vs. 1"
    refused(op, old, F([5]), ints(0, 1), text=text, **FLOATS)
    text = "Indices in TensorListScatter must all be non-negative."
    refused(op, old, F([5, 6]), ints(0, -1), text=text, **FLOATS)
    refused(op, old, F(5), ints(0), text="Tensor must be at least a vector, but saw shape: []", **FLOATS)


def test_how_many_elements_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_arrays, "MAX_ELEMENTS", 4)
    steps, old = Steps(), list_of([], 1)
    assert len(contents(steps("TensorListScatter", F([1]), ints(3), UNKNOWN, **FLOATS))) == 4
    assert len(contents(steps("TensorListScatterIntoExistingList", old, F([1]), ints(3), **FLOATS))) == 4
    for op, inputs in (
        ("TensorListScatter", (F([1]), ints(4), UNKNOWN)),
        ("TensorListScatterV2", (F([1]), ints(0), UNKNOWN, np.int32(5))),
        ("TensorListScatterIntoExistingList", (old, F([1]), ints(4))),
    ):
        with pytest.raises(errors.ResourceExhaustedError, match=r"A TensorList would have .* elements; 4 is the limit"):
            steps(op, *inputs, **FLOATS)
        with monkeypatch.context() as patch:
            patch.setattr(list_whole, "check_count", ask)
            with pytest.raises(Asked, match=r"^A TensorList 5$"):
                steps(op, *inputs, **FLOATS)


# -- split and concat --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lengths", "given", "wanted", "shape"),
    [
        ([1, 2], [-1, 2], [[[1, 2]], [[3, 4], [5, 6]]], [None, 2]), ([3], -1, [[[1, 2], [3, 4], [5, 6]]], None),
        ([0, 3, 0], [3, 2], [[], [[1, 2], [3, 4], [5, 6]], []], [3, 2]),
    ],
)  # fmt: skip
def test_a_tensor_is_split_by_lengths(lengths: list[int], given: Any, wanted: Any, shape: Any) -> None:
    value = F([[1, 2], [3, 4], [5, 6]])
    made = Steps()("TensorListSplit", value, np.array(given, np.int32), longs(*lengths), **FLOATS)
    assert (contents(made), shape_of(made), made[()].dtype) == (wanted, shape, dtypes.float32)


@pytest.mark.parametrize(
    ("value", "given", "lengths", "text"),
    [
        (np.ones((3, 2), F), [], [3], "TensorListSplit requires element_shape to be at least of rank 1, but saw: []"),
        (F(1), [-1], [1], "Tensor must be at least a vector, but saw shape: []"),
        (np.ones((3, 2), F), [-1, 3], [3], "tensor shape [3,2] is not compatible with element_shape [?,3]"),
        (np.ones((3, 2), F), [3], [3], "tensor shape [3,2] is not compatible with element_shape [3]"),
        (np.ones((3, 2), F), -1, 3, "Expected lengths to be a vector, received shape: []"),
        (np.ones((3, 2), F), -1, [[3]], "Expected lengths to be a vector, received shape: [1,1]"),
        (np.ones((3, 2), F), -1, [1, -1], "Invalid value in lengths: -1"),
        (np.ones((3, 2), F), -1, [1, 3], "Attempting to slice [1, 4] from tensor with length 3"),
        (np.ones((3, 2), F), -1, [1, 1], "Unused values in tensor. Length of tensor: 3 Values used: 2"),
        (np.ones((3, 2), F), -1, [], "Unused values in tensor. Length of tensor: 3 Values used: 0"),
    ],
)
def test_tensors_that_cannot_be_split(value: Any, given: Any, lengths: Any, text: str) -> None:
    asked, sizes = np.array(given, np.int32), np.array(lengths, np.int64)
    refused("TensorListSplit", value, asked, sizes, text=text, **FLOATS)


def test_elements_are_joined() -> None:
    made = list_of([None, 2], [[1, 2]], np.zeros((0, 2)), [[3, 4], [5, 6]])
    for op, rest in (
        ("TensorListConcat", ()), ("TensorListConcatV2", (UNKNOWN, longs())),
        ("TensorListConcatV2", (ints(-1, 2), longs()))
    ):  # fmt: skip
        joined, lengths = Steps()(op, made, *rest, **FLOATS)
        assert (joined.tolist(), joined.dtype) == ([[1, 2], [3, 4], [5, 6]], np.float32)
        assert (lengths.tolist(), lengths.dtype) == ([1, 0, 2], np.int64)


def test_nothing_is_joined() -> None:
    for made, rest, wanted in (
        (list_of([3, 2]), (UNKNOWN, longs()), (0, 2)),
        (list_of(None), (ints(-1, 5, 1), longs()), (0, 5, 1)),
        (list_of([None]), (UNKNOWN, longs()), (0,)),
    ):
        joined, lengths = Steps()("TensorListConcatV2", made, *rest, **FLOATS)
        assert (joined.shape, joined.dtype, lengths.tolist(), lengths.dtype) == (wanted, np.float32, [], np.int64)
    text = "All except the first dimension must be fully defined when concating an empty tensor list. element_shape: "
    refused("TensorListConcatV2", list_of([3, None]), UNKNOWN, longs(), text=f"{text}[?]", **FLOATS)
    refused("TensorListConcatV2", list_of(None), UNKNOWN, longs(), text=f"{text}<unknown>", **FLOATS)
    empty, _ = Steps()("TensorListConcat", list_of(None), element_shape=TensorShape([None, 4]), **FLOATS)
    assert empty.shape == (0, 4)


def test_scalars_are_not_joined() -> None:
    text = "Concat requires elements to be at least vectors, found scalars instead."
    refused("TensorListConcatV2", list_of([]), UNKNOWN, longs(), text=text, **FLOATS)
    refused("TensorListConcatV2", list_of(None), ints(), longs(), text=text, **FLOATS)
    text = "Concat saw a scalar shape at index 1 but requires at least vectors."
    refused("TensorListConcatV2", list_of(None, [1], 2), UNKNOWN, longs(), text=text, **FLOATS)
    made = list_of([], 1)
    refused("TensorListConcat", made, text="element_shape must not be empty", element_shape=TensorShape([]), **FLOATS)
    refused("TensorListConcat", list_of([None], [1]), text=WRONG_TYPE, **INTS)


def test_elements_have_the_shape_that_is_said() -> None:
    text = "First entry of element_shape input does not match the first dim of list element at index: 1 Expected: 1"
    made = list_of(None, [[1, 2]], [[3, 4], [5, 6]])
    refused("TensorListConcatV2", made, ints(1, 2), longs(), text=text, **FLOATS)
    refused("TensorListConcatV2", made, ints(-1, 3), longs(), text="", **FLOATS)
    refused("TensorListConcatV2", list_of(None, [[1, 2]], [[3]]), UNKNOWN, longs(), text="", **FLOATS)
    # the old op's first dimension says nothing
    joined, _ = Steps()("TensorListConcat", made, element_shape=TensorShape([1, 2]), **FLOATS)
    assert joined.shape == (3, 2)
    joined, _ = Steps()("TensorListConcat", list_of([1], [5], [6]), element_shape=TensorShape([None]), **FLOATS)
    assert joined.tolist() == [5, 6]


@pytest.mark.parametrize(
    ("made", "given", "leading", "lengths"),
    [
        (list_of([None, 2], [[1, 2]], None), [-1, 2], [1, 3], [1, 3]),  # as they are said
        (list_of([None, 2], [[1, 2]], None), [-1, 2], [], [1, 1]),  # as the others are
        (list_of([None, 2], None, None), [4, 2], [], [4, 4]),  # as the shape says
        (list_of([None, 2], None, None), [4, 2], [2], [2, 4]),
        (list_of(None, None, [[1, 2], [3, 4]]), -1, [0], [0, 2]),
        (list_of([3, 2], None), -1, [], [3]),
    ],
)
def test_how_long_elements_are_that_were_never_set(made: Any, given: Any, leading: Any, lengths: Any) -> None:
    joined, found = Steps()("TensorListConcatV2", made, np.array(given, np.int32), longs(*leading), **FLOATS)
    assert found.tolist() == lengths
    wanted = [
        np.zeros((length, 2), F) if element is None else element
        for length, element in zip(lengths, made[()].elements, strict=True)
    ]
    assert joined.tolist() == np.concatenate(wanted).tolist()


def test_lengths_that_nobody_says() -> None:
    text = "List contains uninitialized tensor at index 1 but leading_dims has only 1 elements."
    unset = list_of([None, 2], None, None)
    refused("TensorListConcatV2", unset, UNKNOWN, longs(3), text=text, **FLOATS)
    different = list_of([None, 2], [[1, 2]], [[1, 2], [3, 4]], None)
    text = "List contains uninitialized tensor at index 2 but leading_dims has only 0 elements."
    refused("TensorListConcatV2", different, UNKNOWN, longs(), text=text, **FLOATS)
    text = "leading_dims[0] is -1: the length of an element must be >= 0"
    refused("TensorListConcatV2", unset, UNKNOWN, longs(-1, 2), text=text, **FLOATS)
    text = "Trying to concat list with only uninitialized tensors but element_shape_except_first_dim is not fully "
    refused("TensorListConcatV2", list_of(None, None), UNKNOWN, longs(1), text=f"{text}defined: <unknown>", **FLOATS)
    text = "Concating lists with uninitialized tensors is not supported in this version of TensorListConcat."
    shape = {"element_shape": TensorShape([None, 2])}
    refused("TensorListConcat", unset, text=text, **shape, **FLOATS)
    known = list_of([2, 2], [[1, 2], [3, 4]], None)
    refused("TensorListConcat", known, text=text, **shape, **FLOATS)


def test_the_old_op_takes_the_length_of_the_other_elements() -> None:
    shape = {"element_shape": TensorShape([None, 2])}
    made = list_of([None, 2], [[1, 2], [3, 4]], None)
    joined, lengths = Steps()("TensorListConcat", made, **shape, **FLOATS)
    assert (joined.tolist(), lengths.tolist()) == ([[1, 2], [3, 4], [0, 0], [0, 0]], [2, 2])


def test_a_list_after_another() -> None:
    def lists(*values: np.ndarray) -> np.ndarray:
        out = np.empty(len(values), object)
        for i, value in enumerate(values):
            out[i] = value[()]
        return out

    a, b = lists(list_of([], 1, 2), list_of(None)), lists(list_of([], 3), list_of(None, [4]))
    found = Steps()("TensorListConcatLists", a, b, **FLOATS)
    assert [[e.tolist() for e in each.elements] for each in found] == [[1, 2, 3], [[4]]]
    assert [each.dtype for each in found] == [dtypes.float32] * 2
    one = Steps()("TensorListConcatLists", list_of([], 1), list_of([], 3, None), **FLOATS)
    assert (contents(one), shape_of(one)) == ([1, 3, None], [])
    text = "Incompatible input TensorList tensor shapes: [2] [1]"
    refused("TensorListConcatLists", a, b[:1], text=text, **FLOATS)
    text = "input_a and input_b TensorList element shapes are not identical at index (1,). Saw "
    refused("TensorListConcatLists", a, lists(list_of([], 3), list_of([1], [4])), text=text, **FLOATS)
    refused("TensorListConcatLists", a, b, text=WRONG_TYPE, **INTS)
    mixed = lists(list_of([], 3), list_of(None, [4], dtype=dtypes.int32))
    refused("TensorListConcatLists", a, mixed, text="Invalid data types; op elements float", **FLOATS)
