"""TensorArrays and stacks as machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources import tensor_arrays
from tenfold_kernels.resources.tensor_arrays import Stack, TensorArray, merged, unique_name

F32 = dtypes.float32


def ones(*shape: int) -> np.ndarray[Any, Any]:
    return np.ones(shape, np.float32)


def test_each_elements_shape_is_looked_at() -> None:
    array = TensorArray("a", F32, 4, TensorShape([None, 2]))
    array.write(0, ones(1, 2))
    array.write(1, ones(1, 2))
    array.write(2, ones(3, 2))
    with pytest.raises(errors.InvalidArgumentError, match="incompatible with"):
        array.write(3, ones(1, 3))


def test_a_shape_that_was_learnt_later_counts_for_what_comes_then() -> None:
    array = TensorArray("a", F32, 3, TensorShape(None))
    array.write(0, ones(1, 2))
    array.merge_element_shape(TensorShape([2, 2]))
    with pytest.raises(errors.InvalidArgumentError, match="incompatible with"):
        array.write(1, ones(1, 2))


def test_elements_of_one_shape_are_held_to_the_first() -> None:
    array = TensorArray("a", F32, 2, TensorShape(None), identical_element_shapes=True)
    array.write(0, ones(2))
    with pytest.raises(errors.InvalidArgumentError, match="incompatible with"):
        array.write(1, ones(3))


def test_scalars_of_a_compiled_loop_lie_among_other_elements() -> None:
    stack = Stack("s", F32, 5)
    stack.push_scalars(np.array([1, 2], np.float32))
    stack.push(np.array(3, np.float32))
    stack.push_scalars(np.array([4, 5], np.float32))
    assert not stack.takes(1)
    assert stack.pop() == 5
    vector = stack.scalars()
    assert vector is not None
    assert vector.tolist() == [1, 2, 3, 4]
    stack.drop(2)
    assert [stack.pop().item() for _ in range(2)] == [2, 1]
    with pytest.raises(errors.InvalidArgumentError, match="is empty"):
        stack.pop()


def test_a_closed_array_has_no_size() -> None:
    array = TensorArray("a", F32, 2, TensorShape(None))
    assert array.pack_size == 2
    array.close()
    with pytest.raises(errors.InvalidArgumentError, match="has already been closed"):
        _ = array.pack_size


def test_a_loop_appends_to_the_list_itself_while_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """`pusher`: as long as the stack has room for all turns of a loop, scalars and others together."""
    monkeypatch.setattr(tensor_arrays, "MAX_ELEMENTS", 5)
    stack = Stack("s", F32, -1)
    stack.push_scalars(np.zeros(3, np.float32))
    for _ in range(2):
        stack.push(ones())
    assert stack.pusher() == stack._elements.append
    assert not stack.takes(1)

    stack._elements.append(ones())
    assert stack.pusher() == stack.push
    bounded = Stack("bounded", F32, 9)
    assert bounded.pusher() == bounded.push
    stack.close()
    assert stack.pusher() == stack.push


def test_a_stack_of_arrays_is_no_vector() -> None:
    stack = Stack("s", F32, -1)
    stack.push(ones(2))
    assert stack.scalars() is None
    stack.close()
    assert stack.scalars() is None
    assert not stack.takes(0)


# -- TensorArrays -----------------------------------------------------------------------------------------------------


def array_of(size: int = 3, shape: object = None, **options: Any) -> TensorArray:
    return TensorArray("a", F32, size, TensorShape(shape), **options)


def test_a_size_is_a_number_of_elements() -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"Size should be >= 0\."):
        array_of(-1)
    assert array_of(0).open_size() == 0
    limit = tensor_arrays.MAX_ELEMENTS
    assert limit == 1 << 24
    assert array_of(limit).size == limit
    with pytest.raises(
        errors.ResourceExhaustedError, match=f"TensorArray a would have {limit + 1} elements; {limit} is"
    ):
        array_of(limit + 1)


@pytest.mark.parametrize("index", [-1, 3])
@pytest.mark.parametrize("dynamic", [True, False])
def test_where_an_element_may_be_written(index: int, dynamic: bool) -> None:
    array = array_of(3, dynamic_size=dynamic)
    if dynamic and index == 3:
        array.write(index, ones())
        assert array.open_size() == 4
        assert array.read(3) == 1
    else:
        text = f"TensorArray a: Tried to write to index {index} but array is not resizeable and size is: 3"
        with pytest.raises(errors.InvalidArgumentError, match=text):
            array.write(index, ones())
        assert array.open_size() == 3


def test_an_array_that_grows_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_arrays, "MAX_ELEMENTS", 5)
    array = array_of(0, dynamic_size=True)
    array.write(4, ones())
    with pytest.raises(errors.ResourceExhaustedError, match="TensorArray a would have 6 elements; 5 is the limit"):
        array.write(5, ones())
    assert array.open_size() == 5
    gradient = array_of(1, [2], is_gradient=True)
    with pytest.raises(errors.ResourceExhaustedError, match="would have 6 elements"):
        gradient.read(5)
    assert gradient.read(4).tolist() == [0, 0]
    assert gradient.size == 5


@pytest.mark.parametrize("index", [-1, 3])
def test_where_an_element_may_be_read(index: int) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=f"Tried to read from index {index} but array size is: 3"):
        array_of(3, []).read(index)
    if index < 0:
        with pytest.raises(errors.InvalidArgumentError, match="Tried to read from index -1"):
            array_of(3, [], is_gradient=True).read(index)


def test_what_was_not_written_is_zeros_if_its_shape_is_known() -> None:
    array = array_of(3, [2])
    assert array.read(2).tolist() == [0, 0]
    with pytest.raises(errors.InvalidArgumentError, match="Could not read index 2 twice because it was cleared"):
        array.read(2)
    with pytest.raises(
        errors.InvalidArgumentError, match=r"Could not read from TensorArray index 0\..*\[\?\]\.  It is"
    ):
        array_of(3, [None]).read(0)
    assert array_of(3, [0]).read(0).shape == (0,)


def test_an_element_is_read_once_unless_it_is_kept() -> None:
    array = array_of(clear_after_read=False)
    array.write(0, ones(2))
    assert array.read(0) is array.read(0)
    with pytest.raises(errors.InvalidArgumentError, match="index 0 because it has already been read"):
        array.write(0, ones(2))
    once = array_of()
    once.write(0, ones(2))
    once.read(0)
    with pytest.raises(errors.InvalidArgumentError, match="twice because it was cleared after a previous read"):
        once.read(0)
    with pytest.raises(errors.InvalidArgumentError, match="index 0 because it has already been read"):
        once.write(0, ones(2))


def test_an_element_is_written_once_but_a_gradient_is_added() -> None:
    array = array_of()
    array.write(1, ones(2))
    with pytest.raises(errors.InvalidArgumentError, match="index 1 because it has already been written to"):
        array.write(1, ones(2))
    gradient = array.gradient("g")
    assert gradient is array.gradient("g")
    assert gradient is not array.gradient("other")
    assert gradient.name == "a@g"
    for _ in range(3):
        gradient.write(1, ones(2))
    with pytest.raises(errors.InvalidArgumentError, match=r"existing shape is \[2\] but the new input shape is \[3\]"):
        gradient.write(1, ones(3))
    assert gradient.read(1).tolist() == [3, 3]


def test_a_gradient_reads_zeros_of_what_the_source_had() -> None:
    array = array_of(2, dynamic_size=True)
    array.write(0, ones(3))
    array.mark_size(7)
    gradient = array.gradient("g")
    assert not array.dynamic_size, "from now on the source keeps its size"
    gradient.mark_size(9)
    assert (array.pack_size, gradient.pack_size, gradient.open_size()) == (2, 7, 2)
    assert gradient.read(0).tolist() == [0, 0, 0]
    with pytest.raises(errors.InvalidArgumentError, match=r"element shape is not fully defined: <unknown>"):
        gradient.read(1)


def test_a_gradient_may_have_dimensions_before_the_source_s() -> None:
    array = array_of(2, [3])
    array.write(0, ones(3))
    gradient = array.gradient("g", (2,))
    assert gradient.element_shape.as_list() == [2, 3]
    assert gradient.read(0).shape == (2, 3)
    assert gradient.read(1).shape == (2, 3)
    unknown = array_of(2).gradient("g", (2,))
    assert unknown.element_shape.ndims is None
    assert array_of(2, [3]).gradient("g", ()).element_shape.as_list() == [3]


def test_a_gradient_is_held_to_one_shape_as_its_source_is() -> None:
    gradient = array_of(2, identical_element_shapes=True).gradient("g")
    gradient.write(0, ones(2))
    with pytest.raises(errors.InvalidArgumentError, match=r"value shape is \[3\] which is incompatible .*shape: \[2\]"):
        gradient.write(1, ones(3))


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda array: array.write(0, ones()), id="write"),
        pytest.param(lambda array: array.read(0), id="read"),
        pytest.param(lambda array: array.gradient("g"), id="gradient"),
        pytest.param(lambda array: array.open_size(), id="open_size"),
        pytest.param(lambda array: array.pack_size, id="pack_size"),
    ],
)
def test_a_closed_array_is_no_array(call: Any) -> None:
    array = array_of(3, [])
    array.write(1, ones())
    array.gradient_handles["g"] = "a handle"
    array.close()
    assert (array.gradient_handles, array._slots) == ({}, {})
    with pytest.raises(errors.InvalidArgumentError, match=r"TensorArray a has already been closed\."):
        call(array)


def test_a_shape_that_is_known_already_is_not_made_of_the_first_element() -> None:
    array = array_of(2, [2], identical_element_shapes=True)
    array.write(0, ones(2))
    assert array.element_shape.as_list() == [2]
    loose = array_of(2)
    loose.write(0, ones(2))
    loose.write(1, ones(3))
    assert loose.element_shape.ndims is None


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        (None, [2], [2]),
        ([None, 3], [2, None], [2, 3]),
        ([2], [3], "shapes during merge: \\[2\\] vs. \\[3\\]"),
        ([2], [2, 1], "ranks during merge: 1 vs. 2"),
    ],
)
def test_shapes_are_merged(a: Any, b: Any, found: Any) -> None:
    if isinstance(found, list):
        assert merged(TensorShape(a), TensorShape(b)).as_list() == found
    else:
        with pytest.raises(errors.InvalidArgumentError, match=f"PartialTensorShape: Incompatible {found}"):
            merged(TensorShape(a), TensorShape(b))


def test_names_are_given_once() -> None:
    one, other = unique_name("x"), unique_name("x")
    assert one != other
    assert one.startswith("x_")


# -- stacks -----------------------------------------------------------------------------------------------------------


def test_a_stack_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = Stack("s", F32, 2)
    assert (stack.takes(2), stack.takes(3)) == (True, False)
    stack.push(ones())
    assert (stack.takes(1), stack.takes(2)) == (True, False)
    stack.push(ones())
    with pytest.raises(errors.InvalidArgumentError, match=r"Stack\[s\] overflowed its max_size \(2\)"):
        stack.push(ones())
    none = Stack("none", F32, 0)
    with pytest.raises(errors.InvalidArgumentError, match=r"overflowed its max_size \(0\)"):
        none.push(ones())
    monkeypatch.setattr(tensor_arrays, "MAX_ELEMENTS", 3)
    endless = Stack("e", F32, -1)
    assert (endless.takes(3), endless.takes(4)) == (True, False)
    endless.push_scalars(np.zeros(2, np.float32))
    endless.push(ones())
    assert (endless.takes(0), endless.takes(1)) == (True, False)
    with pytest.raises(errors.ResourceExhaustedError, match=r"Stack\[e\] would have 4 elements; 3 is the limit"):
        endless.push(ones())


def test_a_loop_pops_the_list_itself_while_there_are_no_scalars() -> None:
    stack = Stack("s", F32, -1)
    stack.push(ones())
    assert stack.popper() == stack._elements.pop
    mixed = Stack("s", F32, -1)
    mixed.push_scalars(np.zeros(1, np.float32))
    assert mixed.popper() == mixed.pop
    stack.close()
    assert stack.popper() == stack.pop


def test_a_closed_stack_is_no_stack() -> None:
    stack = Stack("s", F32, -1)
    stack.push_scalars(np.zeros(2, np.float32))
    stack.push(ones())
    stack.close()
    assert (stack._elements, stack._scalars.size) == ([], 0)
    for call in (lambda: stack.push(ones()), stack.pop):
        with pytest.raises(errors.InvalidArgumentError, match=r"Stack\[s\] has already been closed\."):
            call()


def test_scalars_are_taken_from_their_end() -> None:
    stack = Stack("s", F32, -1)
    stack.push_scalars(np.array([1, 2, 3], np.float32))
    stack.drop(1)
    assert stack.pop() == 2
    found = stack.scalars()
    assert found is not None
    assert found.tolist() == [1]
    stack.push(np.array(9, np.float32))
    again = stack.scalars()
    assert again is not None
    assert (again.tolist(), again.dtype) == ([1, 9], np.float32)
    assert [stack.pop() for _ in range(2)] == [9, 1]
    empty = Stack("s", F32, -1).scalars()
    assert empty is not None
    assert (empty.tolist(), empty.dtype) == ([], np.float32)


def test_scalars_of_a_device_are_no_vector() -> None:
    stack = Stack("s", F32, -1)

    class OnDevice:
        ndim = 0

    stack.push(OnDevice())  # type: ignore[arg-type]
    assert stack.scalars() is None
    with pytest.raises(errors.InvalidArgumentError, match="A stack is empty when calling Pop"):
        raise tensor_arrays.empty_stack()
