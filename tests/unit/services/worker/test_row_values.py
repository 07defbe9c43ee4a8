"""A value for each of many elements: what it looks like as a stack, as a list, and behind an axis for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_services.worker.row_values import ON_AXES, Each, NotOneShape, Stack, of_rank, stack

ROWS = np.arange(24, dtype=np.float32).reshape(4, 2, 3)


def test_a_stack_is_cut_into_views_and_numbers_into_arrays_without_axes() -> None:
    each = Stack(ROWS).each()
    assert [array.tolist() for array in each] == ROWS.tolist()
    assert all(np.shares_memory(array, ROWS) for array in each)

    numbers = np.arange(3)
    each = Stack(numbers).each()
    assert [(array.shape, int(array)) for array in each] == [((), 0), ((), 1), ((), 2)]
    assert all(type(array) is np.ndarray and np.shares_memory(array, numbers) for array in each)
    texts = Stack(np.array([b"a", b"bc"], object)).each()
    assert [array[()] for array in texts] == [b"a", b"bc"]


def test_what_an_element_looks_like() -> None:
    arrays = [np.zeros((2, 3)), np.zeros((5, 3))]
    assert (Stack(ROWS).rank, Stack(np.zeros(4)).rank, Each(arrays).rank) == (2, 0, 2)
    assert Each(arrays).each() is arrays


@pytest.mark.parametrize(("size", "is_large"), [((1 << 16) - 1, False), (1 << 16, True)])
def test_an_element_of_64_kib_is_large(size: int, is_large: bool) -> None:
    assert Stack(np.zeros((2, size), np.int8)).is_large == is_large
    assert Each([np.zeros(size, np.int8), np.zeros(1, np.int8)]).is_large == is_large
    assert not Stack(np.zeros((0, size), np.int8)).is_large


def test_a_list_of_one_shape_becomes_a_stack_and_another_does_not() -> None:
    assert stack(Stack(ROWS)) is ROWS
    found = stack(Each(list(ROWS)))
    assert (found.dtype, found.tolist()) == (ROWS.dtype, ROWS.tolist())
    assert stack(Each([np.array(1), np.array(2)])).tolist() == [1, 2]
    texts = stack(Each([np.array(b"a", object), np.array(b"bc", object)]))
    assert texts.tolist() == [b"a", b"bc"]
    with pytest.raises(NotOneShape):
        stack(Each([np.zeros(2), np.zeros(3)]))


def test_elements_get_axes_in_front_of_their_own() -> None:
    plain = np.ones(3)
    assert of_rank(plain, 5) is plain
    assert of_rank(Stack(ROWS), 2).shape == (4, 2, 3)
    assert of_rank(Stack(ROWS), 4).shape == (4, 1, 1, 2, 3)
    assert of_rank(Each([np.ones(3), np.ones(3)]), 2).shape == (2, 1, 3)
    assert of_rank(Stack(np.arange(4)), 1).tolist() == [[0], [1], [2], [3]]


@pytest.mark.parametrize(
    ("op", "given", "wanted"),
    [
        ("Sum", [0, -1], [1, 2]), ("Sum", 1, 2), ("ReverseV2", [-2], [1]),
        ("ExpandDims", 0, 1), ("ExpandDims", -1, 3), ("ExpandDims", -3, 1), ("ExpandDims", 2, 3),
        ("Reshape", [3, 2], [4, 3, 2]), ("Reshape", [], [4]), ("Transpose", [1, 0], [0, 2, 1]),
    ],
)  # fmt: skip
def test_axes_of_an_element_as_a_stack_has_them(op: str, given: Any, wanted: Any) -> None:
    found = ON_AXES[op](np.array(given, np.int32), ROWS)
    assert (found.tolist(), found.dtype) == (wanted, np.int32)
