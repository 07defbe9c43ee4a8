"""Elements on top of each other: shapes, types, memory that is refused before it is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.dataset_machines import ints, one
from tenfold_core import errors, memory_limits
from tenfold_kernels.resources.datasets.stacks import joined, stacked


@pytest.mark.parametrize(
    "arrays",
    [
        [one(3)],
        [one(3), one(4)],
        [ints(1, 2), ints(3, 4), ints(5, 6)],
        [np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32)],
        [np.zeros((0, 3), np.int8)] * 2,
        [np.array(True), np.array(False)],
    ],
)
def test_arrays_along_a_new_axis(arrays: list[Any]) -> None:
    found = stacked(0, arrays)
    np.testing.assert_array_equal(found, np.stack(arrays))
    assert (found.dtype, found.shape) == (arrays[0].dtype, (len(arrays), *arrays[0].shape))
    assert not found.flags.writeable
    assert not any(np.may_share_memory(found, array) for array in arrays)


def test_texts_stay_what_they_are() -> None:
    scalars = [np.array(text, object) for text in (b"a", b"")]
    assert stacked(0, scalars).tolist() == [b"a", b""]
    assert stacked(0, [np.array([b"a", b"bc"], object)] * 2).tolist() == [[b"a", b"bc"]] * 2


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ([ints(1), ints(1), ints(1, 2)], r"First element had shape \[1\] and element 2 had shape \[2\]\."),
        ([one(1), ints(1)], r"First element had shape \[\] and element 1 had shape \[1\]\."),
        ([ints([1, 2]), ints([1], [2])], r"First element had shape \[1,2\] and element 1 had shape \[2,1\]\."),
    ],
)
def test_arrays_of_other_shapes(arrays: list[Any], text: str) -> None:
    whole = f"^Cannot batch tensors with different shapes in component 7. {text}$"
    with pytest.raises(errors.InvalidArgumentError, match=whole):
        stacked(7, arrays)


def test_memory_is_asked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limits, "_limit", 40000 * 2 * 8)
    row = np.zeros((40000,), np.int64)
    assert stacked(0, [row, row]).shape == (2, 40000)
    with pytest.raises(errors.ResourceExhaustedError, match=r"shape\[3,40000\] and type int64"):
        stacked(0, [row] * 3)


def test_pieces_one_behind_the_other() -> None:
    parts = [(ints(1, 2), ints([1], [2])), (ints(), np.zeros((0, 1), np.int64)), (ints(3), ints([3]))]
    first, second = joined(parts)
    assert (first.tolist(), second.tolist()) == ([1, 2, 3], [[1], [2], [3]])
    assert not first.flags.writeable
    assert not second.flags.writeable
    assert [array.tolist() for array in joined([(ints(1),)])] == [[1]]


def test_pieces_of_other_rows() -> None:
    parts = [(ints(1), ints([1, 2])), (ints(2), ints([1, 2])), (ints(3), ints([1, 2, 3]))]
    with pytest.raises(
        errors.InvalidArgumentError,
        match=r"different shapes in component 1. First element had shape \[2\] and a later element had shape \[3\].$",
    ):
        joined(parts)


def test_pieces_of_another_number_of_components_are_not_cut_short() -> None:
    with pytest.raises(ValueError, match=r"zip\(\)"):
        joined([(ints(1), ints(2)), (ints(3),)])
