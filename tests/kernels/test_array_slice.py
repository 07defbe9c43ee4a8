"""Slice, StridedSlice, its gradient and assignments: bounds at their edges, masks, refusals, what is remembered."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from support.kernel_runs import make_node
from support.op_values import ints, refused
from support.room import assert_wants
from tenfold_core import dtypes, errors
from tenfold_kernels.cpu import array_slice
from tenfold_kernels.resources.state import ResourceManager

F = np.float32
X = np.arange(24, dtype=F).reshape(2, 3, 4)


def frozen(*values: Any) -> np.ndarray:
    array = np.array(values, np.int32)
    array.flags.writeable = False
    return array


# -- Slice -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_sizes_from_beginnings(ops: Any, kind: Any) -> None:
    x = X[0]
    for begin in itertools.product(range(4), range(5)):
        choices = [[*range(d - b + 1), -1] for b, d in zip(begin, x.shape, strict=True)]
        for size in itertools.product(*choices):
            wanted = x[tuple(slice(b, None if s == -1 else b + s) for b, s in zip(begin, size, strict=True))]
            found = ops.run("Slice", [x, np.array(begin, kind), np.array(size, kind)])
            assert (found.shape, found.tolist()) == (wanted.shape, wanted.tolist())
    assert np.shares_memory(ops.run("Slice", [x, ints(1, 0), ints(1, 2)]), x)
    scalar = ops.run("Slice", [F(3), np.zeros(0, kind), np.zeros(0, kind)])
    assert (scalar.shape, scalar.tolist()) == ((), 3)


SIZES = "Expected begin and size arguments to be 1-D tensors of size 2, but got shapes "


@pytest.mark.parametrize(
    ("begin", "size", "text"),
    [
        ([0], [1, 1], f"{SIZES}[1] and [2] instead."),
        ([0, 0], [1], f"{SIZES}[2] and [1] instead."),
        ([[0, 0]], [1, 1], f"{SIZES}[1,2] and [2] instead."),
        ([0, 0], [[1, 1]], f"{SIZES}[2] and [1,2] instead."),
        ([0, 0, 0], [1, 1, 1], f"{SIZES}[3] and [3] instead."),
        ([-1, 0], [1, 1], "Expected begin[0] in [0, 3], but got -1"),
        ([0, 5], [1, -1], "Expected begin[1] in [0, 4], but got 5"),
        ([1, 0], [3, 1], "Expected size[0] in [0, 2], but got 3"),
        ([0, 4], [1, 1], "Expected size[1] in [0, 0], but got 1"),
        ([0, 0], [-2, 1], "Expected size[0] in [0, 3], but got -2"),
    ],
)
def test_what_is_not_there(ops: Any, begin: Any, size: Any, text: str) -> None:
    refused(ops, "Slice", [X[0], np.array(begin, np.int32), np.array(size, np.int32)], text)


def test_a_slice_of_a_scalar_stays_an_array(ops: Any) -> None:
    nothing = frozen()
    cut, _ = ops.build("Slice", [F(3), nothing, nothing], {})
    for x in (np.array(3, F), np.array(b"x", object)):
        for _ in range(2):
            found = cut(x, nothing, nothing)
            assert (type(found), found.dtype, found.tolist()) == (np.ndarray, x.dtype, x.tolist())


def test_a_slice_remembers_constants_only(ops: Any) -> None:
    x, y = X[0], np.arange(20, dtype=F).reshape(4, 5)
    first, second, two, three = frozen(0, 1), frozen(1, 0), frozen(2, -1), frozen(-1, 2)
    cut, _ = ops.build("Slice", [x, first, two], {})

    def check(value: np.ndarray, begin: np.ndarray, size: np.ndarray) -> None:
        wanted = value[tuple(slice(b, None if s == -1 else b + s) for b, s in zip(begin, size, strict=True))]
        assert cut(value, begin, size).tolist() == wanted.tolist()

    for value, begin, size in (
        (x, first, two), (x, first, two), (x, second, two), (x, first, two), (x, first, three), (y, first, three),
        (y, first, three), (x, first, three), (x, second, three),
    ):  # fmt: skip
        check(value, begin, size)
    changing = ints(0, 0)
    check(x, changing, two)
    changing[:] = 1, 1
    check(x, changing, two)
    sizes = ints(1, 1)
    check(x, first, sizes)
    sizes[:] = 2, 2
    check(x, first, sizes)


# -- StridedSlice ------------------------------------------------------------------------------------------------------

EQUAL = "Expected begin, end, and strides to be 1D equal size tensors, but got shapes "


@pytest.mark.parametrize(
    ("begin", "end", "strides", "masks", "text"),
    [
        ([0], [1, 1], [1, 1], {}, f"{EQUAL}[1], [2], and [2] instead."),
        ([0, 0], [1, 1], [1], {}, f"{EQUAL}[2], [2], and [1] instead."),
        ([[0]], [[1]], [[1]], {}, f"{EQUAL}[1,1], [1,1], and [1,1] instead."),
        (0, 1, 1, {}, f"{EQUAL}[], [], and [] instead."),
        ([0] * 4, [1] * 4, [1] * 4, {}, "Index out of range using input dim 3; input has only 3 dims"),
        (
            [0] * 5,
            [1] * 5,
            [1] * 5,
            {"ellipsis_mask": 1},
            "Index out of range using input dim 3; input has only 3 dims",
        ),
        ([0, 0], [1, 1], [1, 0], {}, "strides[1] must be non-zero"),
        ([0, 0], [1, 1], [1, -1], {"shrink_axis_mask": 2}, "only stride 1 allowed on non-range indexing."),
        ([0, 3], [1, 4], [1, 1], {"shrink_axis_mask": 2}, "slice index 3 of dimension 1 out of bounds."),
        ([0, -4], [1, 4], [1, 1], {"shrink_axis_mask": 2}, "slice index -4 of dimension 1 out of bounds."),
        ([0, 4], [1, 5], [1, 1], {"shrink_axis_mask": 2, "ellipsis_mask": 1}, "slice index 4 of dimension 2 out of"),
        ([0, 2], [1, 5], [1, 1], {"shrink_axis_mask": 2, "new_axis_mask": 1}, "slice index 2 of dimension 0 out of"),
        ([0, 0], [1, 1], [1, 1], {"ellipsis_mask": 3}, "Multiple ellipses in slice spec not allowed"),
    ],
)
def test_slices_that_there_are_not(ops: Any, begin: Any, end: Any, strides: Any, masks: Any, text: str) -> None:
    refused(ops, "StridedSlice", [X, *(np.array(each, np.int32) for each in (begin, end, strides))], text, **masks)


def test_an_index_may_count_from_the_end_up_to_the_first(ops: Any) -> None:
    for at in (-3, -1, 0, 2):
        found = ops.run("StridedSlice", [X[0], ints(at), ints(9), ints(1)], shrink_axis_mask=1)
        assert found.tolist() == X[0][at].tolist()
    one = ops.run("StridedSlice", [X, ints(1, 2, 3), ints(0, 0, 0), ints(1, 5, 1)], shrink_axis_mask=7)
    assert (type(one), one.shape, one.tolist()) == (np.ndarray, (), 23)


def test_a_new_axis_is_none_where_the_ellipsis_stands(ops: Any) -> None:
    nothing = ints(0, 0, 0)
    found = ops.run(
        "StridedSlice", [X, nothing, ints(0, 0, 2), ints(1, 1, 1)], ellipsis_mask=1, new_axis_mask=3, shrink_axis_mask=3
    )
    assert found.tolist() == X[..., None, 0:2].tolist()
    found = ops.run("StridedSlice", [X, ints(1, 0), ints(2, 0), ints(1, 1)], ellipsis_mask=2, shrink_axis_mask=1)
    assert found.tolist() == X[1].tolist()
    found = ops.run("StridedSlice", [X, ints(0, 1, 0), ints(0, 2, 3), ints(1, 1, 2)], ellipsis_mask=1)
    assert found.tolist() == X[..., 1:2, 0:3:2].tolist()
    ends = [ints(0, 0, 3), ints(1, 0, 4), ints(1, 1, 1)]
    found = ops.run("StridedSlice", [X, *ends], ellipsis_mask=2, shrink_axis_mask=4)
    assert found.tolist() == X[0:1, ..., 3].tolist()
    four = [ints(0, 1, 1, 1), ints(2, 2, 2, 2), ints(1, 1, 1, 1)]
    found = ops.run("StridedSlice", [X, *four], ellipsis_mask=1)
    assert found.tolist() == X[1:2, 1:2, 1:2].tolist()


def test_a_strided_slice_remembers_constants_only(ops: Any) -> None:
    begins, ends, steps = (frozen(0, 1), frozen(1, 0)), (frozen(2, 3), frozen(3, 3)), (frozen(1, 1), frozen(2, 1))
    cut, _ = ops.build("StridedSlice", [X[0], begins[0], ends[0], steps[0]], {"shrink_axis_mask": 0})

    def check(x: np.ndarray, begin: np.ndarray, end: np.ndarray, step: np.ndarray) -> None:
        wanted = x[tuple(slice(*each) for each in zip(begin, end, step, strict=True))]
        assert cut(x, begin, end, step).tolist() == wanted.tolist()

    for begin, end, step in itertools.product(begins, ends, steps):
        for x in (X[0], X[0], X[:, 0], X[1]):
            check(x, begin, end, step)
            check(x, begins[0], ends[0], steps[0])
    for place in range(3):
        given = [begins[0], ends[0], steps[0]]
        given[place] = changing = given[place].copy()
        check(X[0], *given)
        changing[:] = ((1, 2), (1, 2), (2, 2))[place]
        check(X[0], *given)


def test_an_index_is_checked_for_each_shape() -> None:
    node = make_node("StridedSlice", [X[0], ints(0), ints(0), ints(1)], {"shrink_axis_mask": 1}, ResourceManager(), "n")
    index = array_slice.StridedSliceSpec(node).remembered()
    at, end, step = frozen(2), frozen(0), frozen(1)
    assert index((3,), at, end, step) == index((3,), at, end, step) == (2, Ellipsis)
    with pytest.raises(errors.InvalidArgumentError, match="slice index 2 of dimension 0 out of bounds"):
        index((2,), at, end, step)


# -- the gradient ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_a_gradient_goes_where_the_slice_was(ops: Any, kind: Any) -> None:
    for index in (slice(1, 3), slice(None, None, -2), slice(3, 0, -1), slice(0, 0)):
        begin, end, step = index.indices(4)
        dy = np.ones((3, len(range(begin, end, step))), F) * np.arange(1, 4)[:, None]
        wanted = np.zeros((3, 4), F)
        wanted[:, index] = dy
        masks = {"begin_mask": 1, "end_mask": 1 | (2 if end < 0 else 0)}
        args = [np.array(each, kind) for each in ([3, 4], [0, begin], [0, end], [1, step])]
        found = ops.run("StridedSliceGrad", [*args, dy.astype(F)], **masks)
        assert found.tolist() == wanted.tolist()


def test_gradients_of_several_slices_are_added(ops: Any) -> None:
    """What a pass makes of a sum of gradients."""
    shape, step = frozen(2, 3), frozen(1, 1)
    first = [frozen(0, 0), frozen(2, 2), step, np.ones((2, 2), F)]
    other = [frozen(1, 1), frozen(2, 3), step, np.full((1, 2), 5, F)]
    node = make_node("StridedSliceGrad", [shape, *first], {}, ResourceManager(), "n")
    add = array_slice.build_strided_slice_grad(
        dataclasses.replace(node, input_types=(*node.input_types, *node.input_types[1:]))
    )
    for _ in range(2):
        assert add(shape, *first, *other).tolist() == [[1, 1, 0], [1, 6, 5]]
        assert add(shape, *other, *first).tolist() == [[1, 1, 0], [1, 6, 5]]
    with pytest.raises(errors.InvalidArgumentError, match=r"^shape of dy was \[2,2\] instead of \[1,2\]$"):
        add(shape, *first, *other[:3], first[3])


def test_a_gradient_keeps_the_sign_of_its_zeros(ops: Any) -> None:
    found = ops.run("StridedSliceGrad", [ints(3), ints(1), ints(2), ints(1), F([-0.0])])
    assert np.signbit(found).tolist() == [False, True, False]


def test_where_no_text_was_taken_is_an_empty_one(ops: Any) -> None:
    found = ops.run("StridedSliceGrad", [ints(3), ints(1), ints(2), ints(1), np.array([b"x"], object)])
    assert found.tolist() == [b"", b"x", b""]


def test_gradients_that_do_not_fit(ops: Any) -> None:
    ones, args = np.ones((1, 2), F), [ints(0, 0), ints(1, 2), ints(1, 1)]
    refused(ops, "StridedSliceGrad", [ints([2, 3]), *args, ones], "shape must be 1-D, got shape [1,2]")
    refused(ops, "StridedSliceGrad", [ints(2, -3), *args, ones], "Dimension -3 must be >= 0")
    refused(ops, "StridedSliceGrad", [ints(2, 3), *args, ones[0]], "shape of dy was [2] instead of [1,2]")
    refused(ops, "StridedSliceGrad", [ints(2, 3), *args, ones[:, :1]], "shape of dy was [1,1] instead of [1,2]")


def test_what_a_gradient_takes_is_asked_for(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    args = [ints(20, 30), ints(0, 0), ints(1, 2), ints(1, 1), np.ones((1, 2), F)]
    assert_wants(monkeypatch, 20 * 30 * 4, lambda: ops.run("StridedSliceGrad", args))


# -- assignments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["StridedSliceAssign", "ResourceStridedSliceAssign", "TensorStridedSliceUpdate"])
@pytest.mark.parametrize(
    "value", [5, [5], [[5]], [1, 2], [[1, 2]], [[1], [2]], [[1, 2], [3, 4]]]
)  # fmt: skip
def test_values_are_broadcast_to_the_slice(ops: Any, op: str, value: Any) -> None:
    wanted = X[0].copy()
    wanted[1:3, ::2] = value
    place = [ints(1, 0), ints(3, 0), ints(1, 2), np.array(value, F)]
    masks = {"begin_mask": 2, "end_mask": 2}
    if op == "StridedSliceAssign":
        variable = ops.variable(X[0])
        assert ops.run(op, [variable, *place], **masks) is variable
        found = variable.value
    elif op == "ResourceStridedSliceAssign":
        resources = ResourceManager()
        handle = ops.handle(X[0], resources)
        assert ops.run(op, [handle, *place], resources=resources, **masks) is None
        found = ops.run("ReadVariableOp", [handle], resources=resources, dtype=dtypes.float32)
    else:
        found = ops.run(op, [X[0], *place], **masks)
    assert found.tolist() == wanted.tolist()


def test_a_value_that_was_read_before_stays(ops: Any) -> None:
    resources = ResourceManager()
    handle = ops.handle(X[0], resources)
    read, _ = ops.build("ReadVariableOp", [handle], {"dtype": dtypes.float32}, resources)
    before = read(handle)
    ops.run("ResourceStridedSliceAssign", [handle, ints(0), ints(1), ints(1), F(99)], resources=resources)
    assert before.tolist() == X[0].tolist()
    assert read(handle)[0].tolist() == [99] * 4


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.ones(3, F), "Cannot broadcast input shape [3] into final shape [2,2]"),
        (np.ones((3, 1), F), "Cannot broadcast input shape [3,1] into final shape [2,2]"),
        (np.ones((1, 2, 2), F), "Cannot broadcast input shape [1,2,2] into final shape [2,2]"),
        (np.ones((0, 2), F), "Cannot broadcast input shape [0,2] into final shape [2,2]"),
    ],
)
def test_values_that_do_not_fit(ops: Any, value: np.ndarray, text: str) -> None:
    variable = ops.variable(X[0])
    refused(ops, "StridedSliceAssign", [variable, ints(0, 0), ints(2, 2), ints(1, 1), value], text)
    assert variable.value.tolist() == X[0].tolist()


def test_an_empty_slice_takes_any_value(ops: Any) -> None:
    variable = ops.variable(X[0])
    ops.run("StridedSliceAssign", [variable, ints(0, 0), ints(0, 2), ints(1, 1), np.ones((7, 3), F)])
    assert variable.value.tolist() == X[0].tolist()


def test_an_update_that_does_not_fit_is_named(ops: Any) -> None:
    inputs = [X[0], ints(0, 0), ints(2, 2), ints(1, 1), np.ones(3, F)]
    refused(ops, "TensorStridedSliceUpdate", inputs, "TensorStridedSliceUpdate 'u': ", name="u")
    assert X[0].tolist() == np.arange(12).reshape(3, 4).tolist()


def test_a_handle_of_another_type_is_refused(ops: Any) -> None:
    resources = ResourceManager()
    handle = ops.handle(X[0], resources)
    node = make_node("ResourceStridedSliceAssign", [handle, ints(0), ints(1), ints(1), ints(5)], {}, resources, "n")
    variable = ops.variable(X[0])
    with pytest.raises(errors.InvalidArgumentError, match=r"^l-value dtype float does not match r-value dtype int32$"):
        array_slice.check_slice_type(node, variable, variable.value, ints(5))
    array_slice.check_slice_type(node, variable, variable.value, X)
