"""Updates of variables by index beyond test_state.py's twins: quotients of integers, texts, what is empty, refusals."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.cpu.state_scatter import check_updates, operation_of
from tenfold_kernels.registry import KernelNode, lookup
from tenfold_kernels.resources.state import ResourceManager

F = np.float32


def words(*values: bytes) -> Any:
    return np.array(values, dtype=object)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("resource", [False, True])
def test_quotients_of_integers_are_cut_towards_zero_each_time(ops: Any, dtype: Any, resource: bool) -> None:
    """As in C++. The last place is divided twice."""
    start = np.array([7, -7, 7, -7, 8, -8, -99]).astype(dtype)
    indices = np.array([0, 1, 2, 3, 4, 5, 6, 6], np.int64)
    updates = np.array([2, 2, -2, -2, 2, -2, 4, 4]).astype(dtype)
    expected = start.tolist()
    for at, by in zip(indices.tolist(), updates.tolist(), strict=True):
        quotient = abs(expected[at]) // abs(by)
        expected[at] = quotient if (expected[at] < 0) == (by < 0) else -quotient

    resources = ResourceManager()
    ref = ops.handle(start, resources) if resource else ops.variable(start)
    given: dict[str, Any] = {"dtype": dtypes.as_dtype(dtype)} if resource else {}
    ops.run("ResourceScatterDiv" if resource else "ScatterDiv", [ref, indices, updates], resources=resources, **given)

    found = ops.run("ReadVariableOp", [ref], resources=resources, **given) if resource else ref.value
    assert found.tolist() == expected


def test_an_integer_divided_by_nothing_is_refused_before_anything_is_written(ops: Any) -> None:
    variable = ops.variable(np.array([[7, 8], [9, 10]]))

    with pytest.raises(errors.InvalidArgumentError, match=r"^updates must not contain 0$"):
        ops.run("ScatterDiv", [variable, [0, 1], np.array([[2, 2], [1, 0]])])
    with pytest.raises(errors.InvalidArgumentError, match=r"^indices\[1\] = 2 is not in \[0, 2\)$"):
        ops.run("ScatterDiv", [variable, [0, 2], np.array([[2, 2], [1, 1]])])
    with np.errstate(divide="ignore"):
        floats = ops.run("ScatterDiv", [ops.variable(F([1, 1])), [0], F([0])])

    assert variable.value.tolist() == [[7, 8], [9, 10]]
    assert floats.value.tolist() == [np.inf, 1]


@pytest.mark.parametrize("indices", [[0, 2, 0], [[0], [2], [0]]])
def test_the_last_of_several_texts_stays(ops: Any, indices: list[Any]) -> None:
    variable = ops.variable(words(b"a", b"b", b"c"))
    updates = words(b"x", b"y", b"z").reshape(np.shape(indices))

    assert ops.run("ScatterUpdate", [variable, indices, updates]) is variable

    assert variable.value.tolist() == [b"z", b"b", b"y"]
    ops.run("ScatterUpdate", [variable, indices, np.array(b"w", dtype=object)])
    assert variable.value.tolist() == [b"w", b"b", b"w"]


@pytest.mark.parametrize("op", ["ScatterAdd", "ScatterMul", "ScatterUpdate"])
@pytest.mark.parametrize("bad", [-1, 3])
@pytest.mark.parametrize("scalar", [False, True])
def test_a_row_that_is_not_there_is_named(ops: Any, op: str, bad: int, scalar: bool) -> None:
    variable = ops.variable(np.ones((3, 2), F))

    with pytest.raises(errors.InvalidArgumentError, match=rf"^indices\[0,1\] = {bad} is not in \[0, 3\)$"):
        ops.run(op, [variable, [[0, bad]], np.array(5, F) if scalar else np.full((1, 2, 2), 5, F)])

    assert variable.value.tolist() == np.ones((3, 2)).tolist()


def test_a_text_for_a_row_that_is_not_there_is_refused(ops: Any) -> None:
    variable = ops.variable(words(b"a", b"b"))

    for bad in (-1, 2):
        with pytest.raises(errors.InvalidArgumentError, match=rf"^indices\[1\] = {bad} is not in \[0, 2\)$"):
            ops.run("ScatterUpdate", [variable, [0, bad], words(b"x", b"y")])

    assert variable.value.tolist() == [b"a", b"b"]


@pytest.mark.parametrize("op", ["ScatterAdd", "ScatterMul"])
def test_rows_without_elements_have_to_be_there_too(ops: Any, op: str) -> None:
    variable = ops.variable(np.zeros((3, 0), F))

    ops.run(op, [variable, [2, 0], np.zeros((2, 0), F)])
    with pytest.raises(errors.InvalidArgumentError, match=r"^indices\[1\] = 3 is not in \[0, 3\)$"):
        ops.run(op, [variable, [0, 3], np.zeros((2, 0), F)])
    with pytest.raises(errors.InvalidArgumentError, match=r"^indices\[0\] = -1 is not in \[0, 3\)$"):
        ops.run(op, [variable, [-1], np.array(1, F)])


@pytest.mark.parametrize("operation", ["Add", "Sub", "Mul", "Div", "Min", "Max", "Update"])
def test_a_scalar_updates_whole_rows_and_a_scalar_index_one(ops: Any, operation: str) -> None:
    meet = {
        "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Min": np.minimum, "Max": np.maximum,
        "Update": lambda _, new: new,
    }[operation]  # fmt: skip
    start = np.arange(12, dtype=F).reshape(3, 2, 2)
    expected = start.copy()
    expected[1] = meet(expected[1], 4)
    expected[2] = meet(expected[2], np.full((2, 2), 8, F))
    variable = ops.variable(start)

    ops.run(f"Scatter{operation}", [variable, np.array([1], np.int32), np.array(4, F)])
    ops.run(f"Scatter{operation}", [variable, np.array(2, np.int32), np.full((2, 2), 8, F)])

    np.testing.assert_array_equal(variable.value, expected)


@pytest.mark.parametrize(
    ("shape", "indices", "updates", "text"),
    [
        ((), (1,), (1,), "params must be at least 1-D, got shape []"),
        ((5, 2), (2,), (2,), "updates.shape [2], indices.shape [2], params.shape [5,2]"),
        ((5, 2), (2,), (2, 1), "updates.shape [2,1], indices.shape [2], params.shape [5,2]"),
        ((5, 2), (2,), (2, 2, 2), "updates.shape [2,2,2], indices.shape [2], params.shape [5,2]"),
        ((5, 2), (2, 3), (6, 2), "updates.shape [6,2], indices.shape [2,3], params.shape [5,2]"),
    ],
)
def test_updates_of_other_shapes_are_refused(
    shape: tuple[int, ...], indices: tuple[int, ...], updates: tuple[int, ...], text: str
) -> None:
    with pytest.raises(errors.InvalidArgumentError) as refused:
        check_updates(shape, np.zeros(indices, np.int32), np.zeros(updates))

    assert refused.value.message.endswith(text)


def test_updates_of_the_shape_of_indices_and_rows_or_a_scalar_are_not() -> None:
    for indices in ((), (3,), (3, 1), (0,)):
        check_updates((5, 2), np.zeros(indices, np.int32), np.zeros((*indices, 2)))
        check_updates((5, 2), np.zeros(indices, np.int32), np.zeros(()))
    check_updates((5,), np.zeros((3,), np.int32), np.zeros((3,)))


def test_a_scalar_variable_has_no_rows(ops: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="params must be at least 1-D"):
        ops.run("ScatterAdd", [ops.variable(np.array(1, F)), [0], F([1])])


def test_operations_are_named_by_the_end_of_their_ops() -> None:
    names = ("Add", "Sub", "Mul", "Div", "Min", "Max", "Update")
    for prefix, name in itertools.product(("Scatter", "ResourceScatter", "ScatterNd", "ResourceScatterNd"), names):
        assert operation_of(prefix + name) == name


@pytest.mark.parametrize(("op", "expected"), [("Add", [1, 9, 3]), ("Sub", [1, -5, 3]), ("Min", [1, 2, 3]),
                                              ("Max", [1, 5, 3]), ("Update", [1, 5, 3])])  # fmt: skip
def test_elements_are_updated_by_their_places(ops: Any, op: str, expected: list[float]) -> None:
    resources = ResourceManager()
    variable, handle = ops.variable(F([[1, 2, 3]])), ops.handle(F([[1, 2, 3]]), resources)
    updates = F([2, 5])

    assert ops.run(f"ScatterNd{op}", [variable, [[0, 1], [0, 1]], updates]) is variable
    ops.run(f"ResourceScatterNd{op}", [handle, [[0, 1], [0, 1]], updates], resources=resources)

    assert variable.value.tolist() == [expected]
    assert ops.run("ReadVariableOp", [handle], resources=resources, dtype=dtypes.float32).tolist() == [expected]
    with pytest.raises(errors.InvalidArgumentError, match=r"indices\[0\] = \[0, 3\] does not index into"):
        ops.run(f"ScatterNd{op}", [variable, [[0, 3]], F([2])])
    with pytest.raises(errors.InvalidArgumentError, match="Dimensions"):
        ops.run(f"ScatterNd{op}", [variable, [[0, 1]], F([2, 3])])


def test_rows_are_gathered_from_a_variable(ops: Any) -> None:
    resources = ResourceManager()
    table = np.arange(12, dtype=F).reshape(2, 3, 2)
    handle = ops.handle(table, resources)

    def run(op: str, indices: Any, **attrs: Any) -> Any:
        return ops.run(op, [handle, np.array(indices)], resources=resources, dtype=dtypes.float32, **attrs)

    np.testing.assert_array_equal(run("ResourceGather", [1, 0, 1]), table[[1, 0, 1]])
    batches = run("ResourceGather", [[2, 0], [1, 1]], batch_dims=1)
    np.testing.assert_array_equal(batches, np.stack([table[0][[2, 0]], table[1][[1, 1]]]))
    np.testing.assert_array_equal(run("ResourceGatherNd", [[1, 2], [0, 1]]), table[[1, 0], [2, 1]])
    with pytest.raises(errors.InvalidArgumentError, match=r"^indices\[1\] = 2 is not in \[0, 2\)$"):
        run("ResourceGather", [0, 2])


def test_a_gather_of_before_there_were_batches_has_none(ops: Any) -> None:
    resources = ResourceManager()
    handle = ops.handle(F([[1, 2], [3, 4]]), resources)
    types = (dtypes.resource, dtypes.int32)
    attrs = {"dtype": dtypes.float32, "Tindices": dtypes.int32}
    node = KernelNode("n", "ResourceGather", attrs, types, (dtypes.float32,), ops.device, resources)

    found = lookup(node, "CPU")(node)(handle, np.array([1], np.int32))

    assert found.tolist() == [[3, 4]]
