"""TensorArrays and stacks as machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources import tensor_arrays
from tenfold_kernels.resources.tensor_arrays import Stack, TensorArray

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
