"""The ops of TensorArrays and stacks: sizes, shapes and types that they refuse, and what they pass on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support import kernel_runs
from support.kernel_runs import Steps, make_node
from support.op_values import ints
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels import registry
from tenfold_kernels.resources.handles import resource_of
from tenfold_kernels.resources.tensor_arrays import Stack, TensorArray

F32, INT = dtypes.float32, dtypes.int32
UNKNOWN = TensorShape(None)
FLOW = np.zeros((), np.float32)


class Arrays(Steps):
    """Steps of which some make arrays of floats."""

    def array(self, size: int, *rows: Any, kind: str = "TensorArrayV3", **attrs: Any) -> Any:
        """The handle of an array whose first elements are `rows`."""
        made = self(kind, np.array(size, np.int32), **{"dtype": F32, "element_shape": UNKNOWN, **attrs})
        handle = made if kind == "TensorArray" else made[0]
        for index, row in enumerate(rows):
            held(handle).write(index, of(row))
        return handle

    def refused(self, message: str, op: str, *inputs: Any, **attrs: Any) -> None:
        with pytest.raises(errors.InvalidArgumentError, match=message):
            self(op, *inputs, **attrs)


@pytest.fixture
def steps() -> Arrays:
    return Arrays()


def of(value: Any, dtype: Any = np.float32) -> Any:
    return np.array(value, dtype)


def longs(*values: int) -> Any:
    return np.array(values, np.int64)


def held(handle: Any) -> TensorArray:
    found = handle[()].resource
    assert isinstance(found, TensorArray)
    return found


def flows(value: Any) -> None:
    assert (value.tolist(), value.shape, value.dtype) == (0, (), np.float32)


# -- arrays ------------------------------------------------------------------------------------------------------------


def test_an_array_is_as_its_node_says(steps: Arrays) -> None:
    handle, flow = steps(
        "TensorArrayV3", of(3, np.int32), dtype=INT, element_shape=TensorShape([2]), tensor_array_name=b"mine"
    )
    array = held(handle)
    assert (array.dtype, array.size, array.element_shape.as_list(), array.dynamic_size) == (INT, 3, [2], False)
    assert array.name.startswith("mine")
    flows(flow)
    assert held(steps.array(0, name="node")).name.startswith("node")
    assert held(steps.array(0, dynamic_size=True)).dynamic_size
    assert held(steps.array(1)) is not held(steps.array(1)), "another in every step"
    steps.refused(r"^TensorArray size must be scalar, but had shape: \[1\]$", "TensorArrayV3", ints(1), dtype=F32)


def test_an_array_is_cleared_by_reads_and_of_any_shapes_unless_its_node_says_otherwise(steps: Arrays) -> None:
    array = held(steps.array(2, [1.0]))
    array.read(0)
    with pytest.raises(errors.InvalidArgumentError, match="twice"):
        array.read(0)
    array.write(1, of([1.0, 2.0]))
    kept = held(steps.array(2, [1.0], clear_after_read=False, identical_element_shapes=True))
    assert [kept.read(0).tolist() for _ in range(2)] == [[1.0]] * 2
    with pytest.raises(errors.InvalidArgumentError, match="incompatible"):
        kept.write(1, of([1.0, 2.0]))


def test_a_node_that_leaves_everything_out_makes_a_plain_array(steps: Arrays) -> None:
    node = make_node("TensorArrayV3", [of(1, np.int32)], {"dtype": F32}, steps.resources, "n")
    bare = replace(node, attrs={"dtype": F32})
    array = held(registry.lookup(bare, "CPU")(bare)(of(2, np.int32))[0])
    assert not array.dynamic_size
    array.write(0, of([1.0]))
    array.write(1, of([1.0, 2.0]))
    array.read(0)
    with pytest.raises(errors.InvalidArgumentError, match="twice"):
        array.read(0)


def test_one_element_after_the_other(steps: Arrays) -> None:
    handle = steps.array(2)
    flows(steps("TensorArrayWriteV3", handle, of(1, np.int32), of([5.0]), FLOW))
    assert steps("TensorArrayReadV3", handle, of(1, np.int32), FLOW, dtype=F32).tolist() == [5.0]
    size = steps("TensorArraySizeV3", handle, FLOW)
    assert (size.tolist(), size.shape, size.dtype) == (2, (), np.int32)
    refused = r"^TensorArray index must be scalar, but had shape: \[1\]$"
    steps.refused(refused, "TensorArrayWriteV3", handle, ints(0), of([5.0]), FLOW)
    steps.refused(refused, "TensorArrayReadV3", handle, ints(0), FLOW, dtype=F32)
    steps("TensorArrayCloseV3", handle)
    steps.refused("closed", "TensorArraySizeV3", handle, FLOW)


@pytest.mark.parametrize(
    ("op", "inputs", "verb"),
    [
        ("TensorArrayWriteV3", [of(0, np.int32), ints(1), FLOW], "is trying to write"),
        ("TensorArrayScatterV3", [ints(0), ints(1), FLOW], "is trying to write"),
        ("TensorArrayUnpack", [ints(1), FLOW], "is trying to write"),
        ("TensorArraySplitV3", [ints(1), longs(1), FLOW], "is trying to write"),
        ("TensorArrayReadV3", [of(0, np.int32), FLOW], "requested"),
        ("TensorArrayGatherV3", [ints(0), FLOW], "requested"),
        ("TensorArrayPack", [FLOW], "requested"),
        ("TensorArrayConcatV3", [FLOW], "requested"),
    ],
)
def test_types_are_those_of_the_array(steps: Arrays, op: str, inputs: list[Any], verb: str) -> None:
    attrs = {"dtype": INT} if verb == "requested" else {"T": INT}
    steps.refused(
        f"^TensorArray dtype is float but Op {verb} dtype int32.$", op, steps.array(1, [1.0]), *inputs, **attrs
    )


def gathered(steps: Arrays, handle: Any, *places: int, shape: Any = None) -> Any:
    return steps("TensorArrayGatherV3", handle, ints(*places), FLOW, dtype=F32, element_shape=TensorShape(shape))


def test_elements_are_gathered_by_their_places(steps: Arrays) -> None:
    rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert gathered(steps, steps.array(3, *rows), 2, 0).tolist() == [rows[2], rows[0]]
    assert gathered(steps, steps.array(3, *rows), 1, shape=[2]).tolist() == [rows[1]]
    pack = steps("TensorArrayPack", steps.array(3, *rows), FLOW, dtype=F32, element_shape=UNKNOWN)
    assert pack.tolist() == rows
    none = gathered(steps, steps.array(0), shape=[2, 0, 3])
    assert (none.shape, none.dtype) == ((0, 2, 0, 3), np.float32)
    with pytest.raises(errors.UnimplementedError, match=r"^TensorArray has size zero, but element shape .* not full"):
        gathered(steps, steps.array(0), shape=[2, None])
    with pytest.raises(errors.InvalidArgumentError, match=r"^Expected indices to be a vector, but received shape: "):
        steps("TensorArrayGatherV3", steps.array(1), of(0, np.int32), FLOW, dtype=F32)


def test_elements_that_are_gathered_have_one_shape(steps: Arrays) -> None:
    with pytest.raises(
        errors.InvalidArgumentError,
        match=r"^TensorArray has inconsistent shapes.  Index 0 has shape: \[1\] but index 2 has shape: \[2\]$",
    ):
        gathered(steps, steps.array(3, [1.0], [2.0], [3.0, 4.0]), 0, 1, 2)
    with pytest.raises(
        errors.InvalidArgumentError, match=r"passed element_shape \[2\] which does not match the Tensor at index 0: \[1"
    ):
        gathered(steps, steps.array(1, [1.0]), 0, shape=[2])
    handle = steps.array(1)
    gathered(steps, handle, shape=[2])
    with pytest.raises(errors.InvalidArgumentError, match="incompatible"):
        held(handle).write(0, of([1.0]))


def scattered(steps: Arrays, handle: Any, places: Any, value: Any) -> Any:
    return steps("TensorArrayScatterV3", handle, places, of(value), FLOW)


def test_rows_are_scattered_to_their_places(steps: Arrays) -> None:
    handle = steps.array(3)
    flows(scattered(steps, handle, ints(2, 0), [[1.0], [2.0]]))
    assert [held(handle).read(index).tolist() for index in (0, 2)] == [[2.0], [1.0]]
    flows(scattered(steps, steps.array(0), ints(), np.zeros((0, 2))))
    grown = steps.array(1, dynamic_size=True)
    scattered(steps, grown, ints(3), [[7.0]])
    assert (held(grown).size, held(grown).read(3).tolist()) == (4, [7.0])
    with pytest.raises(errors.InvalidArgumentError, match=r"^Max scatter index must be < array size \(3 vs\. 3\)$"):
        scattered(steps, steps.array(3), ints(3, 0), [[1.0], [2.0]])
    with pytest.raises(errors.InvalidArgumentError, match=r"^Expected len\(indices\) == values.shape.*: 1 vs\. 2"):
        scattered(steps, steps.array(3), ints(0), [[1.0], [2.0]])
    with pytest.raises(errors.InvalidArgumentError, match=r"^Expected indices to be a vector, .* shape: \[1,1\]$"):
        scattered(steps, steps.array(3), np.zeros((1, 1), np.int32), [[1.0]])
    with pytest.raises(errors.InvalidArgumentError, match=r"^Input value for unpack must be at least a vector"):
        scattered(steps, steps.array(3), ints(0), 1.0)


def unpacked(steps: Arrays, handle: Any, value: Any) -> Any:
    return steps("TensorArrayUnpack", handle, of(value), FLOW)


def test_a_tensor_is_unpacked_into_a_whole_array(steps: Arrays) -> None:
    handle = steps.array(2)
    flows(unpacked(steps, handle, [[1.0], [2.0]]))
    assert [held(handle).read(index).tolist() for index in range(2)] == [[1.0], [2.0]]
    assert held(handle).gradient("g").pack_size == 2
    grown = steps.array(1, dynamic_size=True)
    unpacked(steps, grown, [1.0, 2.0, 3.0])
    assert held(grown).size == 3
    for size, text in ((1, "2 vs. 1"), (3, "2 vs. 3")):
        with pytest.raises(errors.InvalidArgumentError, match=rf"first dimension equal to the array size \({text}\)$"):
            unpacked(steps, steps.array(size), [1.0, 2.0])
    with pytest.raises(errors.InvalidArgumentError, match="first dimension equal"):
        unpacked(steps, steps.array(3, dynamic_size=True), [1.0, 2.0])
    with pytest.raises(errors.InvalidArgumentError, match="must be at least a vector"):
        unpacked(steps, steps.array(0), 1.0)


def joined(steps: Arrays, handle: Any, shape: Any = None) -> Any:
    return steps("TensorArrayConcatV3", handle, FLOW, dtype=F32, element_shape_except0=TensorShape(shape))


def test_elements_are_joined_along_their_first_axis(steps: Arrays) -> None:
    value, lengths = joined(steps, steps.array(3, [[1.0, 2.0]], np.zeros((0, 2)), [[3.0, 4.0], [5.0, 6.0]]))
    assert value.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert (lengths.tolist(), lengths.dtype) == ([1, 0, 2], np.int64)
    assert joined(steps, steps.array(1, [[1.0, 2.0]]), [2])[0].tolist() == [[1, 2]]
    value, lengths = joined(steps, steps.array(0), [2, 0])
    assert (value.shape, value.dtype, lengths.shape, lengths.dtype) == ((0, 2, 0), np.float32, (0,), np.int64)
    with pytest.raises(errors.UnimplementedError, match=r"^TensorArray has size zero, but element_shape_except0 "):
        joined(steps, steps.array(0), [None])


@pytest.mark.parametrize(
    ("rows", "shape", "message"),
    [
        ([[1.0], 2.0], None, "^Concat saw a scalar shape at index 1 but requires at least vectors."),
        ([[[1.0]]], [2], r"element_shape_except0 \[2\] but index 0 has \(excepting dimension 0\) shape: \[1\] which"),
        (
            [[[1.0]], [[1.0]], [[1.0, 2.0]]],
            None,
            r"dimension 0\) shape: \[1\] but index 2 has \(excepting dimension 0\) shape: \[2\]$",
        ),
    ],
)
def test_elements_that_cannot_be_joined(steps: Arrays, rows: list[Any], shape: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        joined(steps, steps.array(len(rows), *rows), shape)


def split(steps: Arrays, handle: Any, value: Any, lengths: Any) -> Any:
    return steps("TensorArraySplitV3", handle, of(value), lengths, FLOW)


def test_a_tensor_is_split_by_lengths(steps: Arrays) -> None:
    handle = steps.array(3)
    flows(split(steps, handle, [[1.0], [2.0], [3.0]], longs(2, 0, 1)))
    assert [held(handle).read(i).tolist() for i in range(3)] == [[[1.0], [2.0]], [], [[3.0]]]
    assert held(handle).gradient("g").pack_size == 3
    grown = steps.array(1, dynamic_size=True)
    split(steps, grown, [1.0, 2.0], longs(1, 1))
    assert held(grown).size == 2
    flows(split(steps, steps.array(0), np.zeros(0), longs()))


@pytest.mark.parametrize(
    ("value", "lengths", "message"),
    [
        ([1.0], np.array(1, np.int64), r"^Expected lengths to be a vector, received shape: \[\]$"),
        (1.0, longs(1), r"^Expected value to be at least a vector, but received shape: \[\]$"),
        ([1.0, 2.0], longs(1, 2), r"^Expected sum of lengths .* sum of lengths is 3 and value's shape is: \[2\] $"),
        ([1.0, 2.0], longs(1, 0), "sum of lengths is 1 and"),
        ([1.0, 2.0], longs(3, -1), "sum of lengths is 2 and"),
        ([1.0, 2.0], longs(2), r"^TensorArray's size is not equal to the size of lengths \(2 vs\. 1\), and the"),
        ([1.0, 2.0], longs(1, 1, 0), r"\(2 vs\. 3\)"),
    ],
)
def test_lengths_that_do_not_fit(steps: Arrays, value: Any, lengths: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        split(steps, steps.array(2), value, lengths)


@pytest.mark.parametrize("op", ["TensorArrayGradV3", "TensorArrayGradV2"])
def test_an_array_has_one_gradient_for_a_source(steps: Arrays, op: str) -> None:
    handle = steps.array(2, [1.0], [2.0])
    node = make_node("TensorArraySizeV2", [handle], {}, steps.resources, "n")

    def gradient(source: bytes) -> Any:
        made = steps(op, handle, FLOW, source=source)
        if op == "TensorArrayGradV2":
            return resource_of(node, made, TensorArray)
        flows(made[1])
        return held(made[0])

    first = gradient(b"a")
    assert first is gradient(b"a") is held(handle).gradient("a")
    assert first is not gradient(b"b")
    assert first.size == 2


def test_only_a_plain_gradients_handle_is_kept(steps: Arrays) -> None:
    handle = steps.array(1, [1.0])
    kept = [steps("TensorArrayGradV3", handle, FLOW, source=b"a")[0] for _ in range(2)]
    assert kept[0] is kept[1]
    made = steps("TensorArrayGradV3", handle, FLOW, source=b"b")[0]
    assert made is not kept[0]
    assert steps("TensorArrayGradV2", steps.array(1), FLOW, source=b"a") is not kept[0]


def test_a_gradient_may_have_elements_of_more_axes(steps: Arrays) -> None:
    handle = steps.array(1, [1.0], element_shape=TensorShape([1]))
    longer, flow = steps("TensorArrayGradWithShape", handle, FLOW, ints(3), source=b"a")
    flows(flow)
    assert held(longer).element_shape.as_list() == [3, 1]


def test_references_name_what_they_carry(steps: Arrays) -> None:
    handle = steps.array(1, kind="TensorArray")
    assert handle.value.tolist() == [b"_tensor_arrays", handle.resource.name.encode()]


# -- stacks ------------------------------------------------------------------------------------------------------------


def stack_of(steps: Arrays, limit: Any = -1, **attrs: Any) -> Any:
    return steps("StackV2", of(limit, np.int32), elem_type=F32, **attrs)


def test_a_stack_is_as_its_node_says(steps: Arrays) -> None:
    handle = stack_of(steps, 1, stack_name=b"mine")
    stack = handle[()].resource
    assert isinstance(stack, Stack)
    assert stack.name.startswith("mine")
    assert stack_of(steps, name="node")[()].resource.name.startswith("node")
    assert stack_of(steps, name="node")[()].resource is not stack_of(steps, name="node")[()].resource
    steps.refused(r"^Stack size must be a scalar, but had shape: \[1\]$", "StackV2", ints(1), elem_type=F32)
    pushed = of([1.0])
    assert steps("StackPushV2", handle, pushed) is pushed
    steps.refused(r"overflowed its max_size \(1\)$", "StackPushV2", handle, of([2.0]))
    steps.refused("^Must have type 1 but got 3$", "StackPushV2", handle, ints(1))
    assert steps("StackPopV2", handle, elem_type=F32).tolist() == [1.0]
    steps("StackCloseV2", handle)
    steps.refused("closed", "StackPushV2", handle, pushed)


def test_an_old_stack_has_no_maximum(steps: Arrays) -> None:
    stack = steps("Stack", elem_type=F32)
    assert stack.value[0] == b"_stacks"
    for value in range(3):
        stack.resource.push(of(value))
    assert stack.resource.pop() == 2


def test_a_loop_binds_its_stacks(steps: Arrays) -> None:
    handle = stack_of(steps, 2)
    push = kernel_runs.build("StackPushV2", [handle, of(1.0)], {}, steps.resources)[0]
    pop = kernel_runs.build("StackPopV2", [handle], {"elem_type": F32}, steps.resources)[0]
    bound, popper = push.bind(handle), pop.bind(handle)
    for value in (1.0, 2.0):
        bound(of(value))
    assert [popper().tolist() for _ in range(2)] == [2.0, 1.0]
