"""Ops that go through a whole dataset, ask it for one element, or map rows: what they give, refuse and give up."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.dataset_machines import INT, SCALAR, SOON_S, Called, ints, mapped, numbers, one, result
from support.dataset_ops import refused
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.cpu import dataset_whole
from tenfold_kernels.registry import KernelNode, lookup
from tenfold_kernels.resources.datasets.transforms import Zip
from tenfold_kernels.resources.state import ResourceManager
from tenfold_kernels.resources.waiting import Waiting
from tenfold_protos.attr_value_pb2 import NameAttrList

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenfold_kernels.resources.datasets.core import Run

DEVICE = "/job:a/replica:0/task:0/device:CPU:0"


class Library:
    """A graph's library of one function, which is Python's."""

    most_turns = 1

    def __init__(self, body: Callable[..., Any]) -> None:
        self._body = body

    def instantiate(self, name: str, attrs: Mapping[str, Any], device: str) -> Called:
        assert (name, device) == ("body", DEVICE)
        return Called(self._body)


def compute(op: str, *inputs: Any, body: Callable[..., Any] | None = None, **attrs: Any) -> Any:
    """What the kernel gives, at once or from a thread of the datasets' pool."""
    library = None if body is None else Library(body)
    if body is not None:
        attrs["f"] = NameAttrList(name="body")
    node = KernelNode("n", op, attrs, (), (dtypes.variant,), DEVICE, ResourceManager(), library)
    return result(lookup(node, "CPU")(node)(*inputs))


def pairs() -> Any:
    return Zip(INT * 2, SCALAR * 2, numbers(4), mapped(numbers(4), lambda n: n * 10)).as_array()


# ---- the whole, and one element --------------------------------------------------------------------------------------


def test_a_reduction_hands_state_element_and_captured_values_in_this_order() -> None:
    seen: list[list[int]] = []

    def body(total: Any, n: Any, factor: Any) -> Any:
        seen.append([int(total), int(n), int(factor)])
        return total * factor + n

    found = compute("ReduceDataset", numbers(3).as_array(), one(5), one(2), body=body, Tstate=[dtypes.int64])

    assert seen == [[5, 0, 2], [10, 1, 2], [21, 2, 2]]
    assert int(found) == 44, "a state of one component comes by itself"


def test_a_reduction_of_several_components_gives_all_of_them() -> None:
    found = compute(
        "ReduceDataset", pairs(), one(1), one(2), one(100),
        body=lambda a, b, x, y, captured: (a + x, b + y + captured), Tstate=[dtypes.int64] * 2,
    )  # fmt: skip

    assert [int(part) for part in found] == [7, 462]


def test_a_reduction_of_nothing_is_the_state_that_it_began_with() -> None:
    assert compute("ReduceDataset", numbers(0).as_array(), one(5), body=max, Tstate=[dtypes.int64]) == 5


def test_a_reduction_must_keep_the_number_of_its_components() -> None:
    with refused("`reduce_func` must return 1 components, but it returned 2"):
        compute("ReduceDataset", numbers(1).as_array(), one(5), body=lambda s, n: (s, n), Tstate=[dtypes.int64])


def test_a_dataset_of_one_element_gives_it() -> None:
    assert compute("DatasetToSingleElement", numbers(1).as_array()) == 0
    for count, text in ((0, "Dataset was empty"), (2, "Dataset had more than one element")):
        with refused(text):
            compute("DatasetToSingleElement", numbers(count).as_array())
    two = Zip(INT * 2, SCALAR * 2, numbers(1), numbers(9)).as_array()
    assert [int(part) for part in compute("DatasetToSingleElement", two)] == [0, 0]


def test_an_element_is_had_by_its_number() -> None:
    assert [int(compute("GetElementAtIndex", numbers(3).as_array(), one(n))) for n in (2, 0)] == [2, 0]
    with pytest.raises(errors.OutOfRangeError, match="3"):
        compute("GetElementAtIndex", numbers(3).as_array(), one(3))
    with refused("index must be a scalar"):
        compute("GetElementAtIndex", numbers(3).as_array(), ints(1))


# ---- work on the pool ------------------------------------------------------------------------------------------------


def test_a_bug_in_what_is_called_ends_the_step_and_says_which() -> None:
    def bug(run: Run) -> Any:
        raise ZeroDivisionError("by nothing")

    def wrong(run: Run) -> Any:
        raise errors.DataLossError(None, None, "torn")

    with pytest.raises(errors.InternalError, match=r"^ZeroDivisionError: by nothing"):
        result(dataset_whole.at_work(bug))
    with pytest.raises(errors.DataLossError, match="torn"):
        result(dataset_whole.at_work(wrong))


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_dataset_keeps_open_is_given_up_before_the_step_has_its_result(fails: bool) -> None:
    order: list[str] = []

    def work(run: Run) -> Any:
        run.when_closed(lambda: order.append("closed"))
        if fails:
            raise errors.DataLossError(None, None, "torn")
        return "outputs"

    try:
        assert result(dataset_whole.at_work(work)) == "outputs"
    except errors.DataLossError:
        assert fails
    order.append("told")

    assert order == ["closed", "told"]


def test_a_step_that_ends_gives_up_the_function_that_it_waits_in() -> None:
    asked, left = threading.Event(), threading.Event()

    def body(*values: Any) -> Any:
        asked.set()
        return Waiting(left.set)

    node = KernelNode(
        "n", "ReduceDataset", {"f": NameAttrList(name="body"), "Tstate": [dtypes.int64]}, (), (dtypes.int64,), DEVICE,
        ResourceManager(), Library(body),
    )  # fmt: skip
    step = lookup(node, "CPU")(node)(numbers(3).as_array(), one(0))
    assert asked.wait(SOON_S)
    step.cancel()
    assert left.wait(SOON_S)


@pytest.fixture
def handed_over(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What a pool without threads was given."""
    found: list[Callable[[], None]] = []

    class Pool:
        submit = staticmethod(found.append)

    monkeypatch.setattr(dataset_whole, "pool", Pool)
    return found


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_work_whose_step_has_ended_is_not_begun(is_cancelled: bool, handed_over: list[Callable[[], None]]) -> None:
    ran: list[Run] = []
    step = dataset_whole.at_work(ran.append)
    if is_cancelled:
        step.cancel()
    handed_over.pop()()
    assert len(ran) == (not is_cancelled)


def test_a_step_that_ends_between_two_rows_has_no_more_of_them_computed(
    handed_over: list[Callable[[], None]],
) -> None:
    calls: list[int] = []

    def body(n: Any) -> Any:
        calls.append(int(n))
        step.cancel()
        return n

    attrs = {
        "f": NameAttrList(name="body"), "Targuments": [dtypes.int64], "output_types": [dtypes.int64],
        "output_shapes": [TensorShape([])],
    }  # fmt: skip
    node = KernelNode("n", "MapDefun", attrs, (), (dtypes.int64,), DEVICE, ResourceManager(), Library(body))
    step = lookup(node, "CPU")(node)(ints(1, 2, 3))
    handed_over.pop()()
    assert calls == [1]


# ---- rows ------------------------------------------------------------------------------------------------------------


def map_rows(*inputs: Any, body: Callable[..., Any], arguments: int, types: Any, shapes: Any) -> Any:
    return compute(
        "MapDefun", *inputs, body=body, Targuments=[dtypes.int64] * arguments, output_types=types,
        output_shapes=[TensorShape(shape) for shape in shapes],
    )  # fmt: skip


def test_each_row_of_the_arguments_and_all_of_what_was_captured() -> None:
    given = ints([1, 2], [3, 4], [5, 6]), ints(10, 20, 30), ints(7, 8, 9)

    def body(pair: Any, n: Any, captured: Any) -> Any:
        assert (pair.shape, n.shape, captured.tolist()) == ((2,), (), [7, 8, 9])
        return pair.sum() + n, pair * np.float32(0.5)

    sums, halves = map_rows(*given, body=body, arguments=2, types=[dtypes.int64, dtypes.float32], shapes=[[], [2]])

    assert sums.tolist() == [13, 27, 41]
    assert halves.tolist() == [[0.5, 1], [1.5, 2], [2.5, 3]]


@pytest.mark.parametrize("rows", [[1], [1, 2]])
def test_rows_of_one_output_come_by_themselves(rows: list[int]) -> None:
    found = map_rows(ints(*rows), body=lambda n: n * 3, arguments=1, types=[dtypes.int64], shapes=[[]])
    assert (found.dtype, found.tolist()) == (np.int64, [3 * n for n in rows])


def test_without_rows_there_are_outputs_of_the_declared_types_and_shapes() -> None:
    def never(*values: Any) -> Any:
        raise AssertionError(values)

    found = map_rows(
        np.zeros((0, 2), np.int64), body=never, arguments=1, types=[dtypes.int64, dtypes.float32],
        shapes=[[3, None], [2]],
    )  # fmt: skip

    assert [(part.shape, part.dtype) for part in found] == [((0, 3, 0), np.int64), ((0, 2), np.float32)]


def test_strings_stay_strings_row_by_row() -> None:
    def body(n: Any) -> Any:
        word = np.empty((), object)
        word[()] = b"x" * int(n)
        return word

    found = map_rows(ints(2, 0), body=body, arguments=1, types=[dtypes.string], shapes=[[]])
    assert [(type(word), word) for word in found] == [(bytes, b"xx"), (bytes, b"")]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([one(3)], "All arguments of MapDefun must have at least one dimension"),
        ([ints(1, 2), one(3)], "All arguments of MapDefun must have at least one dimension"),
        ([ints(1, 2), ints(1, 2, 3)], "All inputs must have the same dimension 0"),
    ],
)
def test_arguments_that_are_no_rows(given: Any, text: str) -> None:
    with refused(text):
        map_rows(*given, body=max, arguments=len(given), types=[dtypes.int64], shapes=[[]])


def test_a_function_that_gives_something_else_than_declared() -> None:
    def run(body: Callable[..., Any], shape: Any) -> Any:
        return map_rows(ints(1, 2), body=body, arguments=1, types=[dtypes.int64], shapes=[shape])

    with refused("`f` must return 1 components, but it returned 2"):
        run(lambda n: (n, n), [])
    with refused(r"Expected shape \(3,\) for output 0 of a row, got \(2,\)"):
        run(lambda n: ints(1, 2), [3])
    with refused(r"Expected all rows to have one shape, got \(1,\) and \(2,\)"):
        run(lambda n: np.zeros(int(n), np.int64), [None])


def test_as_many_types_as_shapes() -> None:
    with refused("output_types and output_shapes must be as many, got 1 and 2"):
        map_rows(ints(1), body=lambda n: n, arguments=1, types=[dtypes.int64], shapes=[[], []])


# ---- datasets in variants --------------------------------------------------------------------------------------------


def test_a_dataset_comes_out_as_it_was_wrapped() -> None:
    handle = numbers(3).as_array()
    wrapped = compute("WrapDatasetVariant", handle)

    assert wrapped.shape == ()
    with refused("not a dataset"):
        compute("DatasetToSingleElement", wrapped)
    found = compute("UnwrapDatasetVariant", wrapped)
    assert found.shape == ()
    assert found.item() is handle.item()
    assert not np.may_share_memory(found, handle)


def test_what_cannot_be_wrapped_or_unwrapped() -> None:
    handle = numbers(3).as_array()
    with refused("not a scalar dataset"):
        compute("WrapDatasetVariant", handle.reshape(1))
    with refused("not a dataset"):
        compute("WrapDatasetVariant", np.array(None, object))
    for value in (handle, compute("WrapDatasetVariant", handle).reshape(1)):
        with refused("must be a WrappedDataset variant"):
            compute("UnwrapDatasetVariant", value)


def test_a_counter_is_a_handle_with_the_name_of_its_node() -> None:
    handle = compute("DummyIterationCounter").item()
    assert (handle.device, handle.container, handle.name) == (DEVICE, "", "n")
