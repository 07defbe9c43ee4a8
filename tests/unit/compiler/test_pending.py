"""What waits for what: what is ready at first, what becomes so, and the order of the smallest first."""

from __future__ import annotations

import pytest

from tenfold_compiler.pending import Pending, in_order


def test_what_is_done_frees_what_waited_for_nothing_else() -> None:
    before = {"a": "", "b": "a", "c": "ab", "d": "", "e": "cd"}
    pending = Pending(list("dcbae"), before.__getitem__)
    assert pending.first() == ["d", "a"]
    assert pending.done("a") == ["b"]
    assert pending.done("d") == []
    assert pending.done("b") == ["c"]
    assert pending.done("c") == ["e"]


def test_what_is_freed_at_once_is_in_the_order_of_the_items() -> None:
    pending = Pending([3, 1, 2], lambda item: [] if item == 3 else [3])
    assert pending.done(3) == [1, 2]


def test_others_do_not_count() -> None:
    pending = Pending([1, 2], lambda item: [7, 8])
    assert pending.first() == [1, 2]


def test_what_waits_for_itself_is_never_ready() -> None:
    pending = Pending([1, 2], lambda item: [1])
    assert pending.first() == []


def test_what_is_waited_for_twice_frees_once() -> None:
    pending = Pending([1, 2], lambda item: [1, 1] if item == 2 else [])
    assert pending.done(1) == [2]


@pytest.mark.parametrize(
    ("before", "order"),
    [
        ({0: [], 1: [], 2: []}, [0, 1, 2]),
        ({0: [3], 1: [], 2: [], 3: [1]}, [1, 2, 3, 0]),
        ({0: [4], 1: [4], 2: [4], 4: []}, [4, 0, 1, 2]),
        ({0: [2], 1: [0], 2: []}, [2, 0, 1]),
        ({0: [1], 1: [0], 2: []}, [2]),
    ],
    ids=["as they are", "smallest that is ready", "freed at once", "in a row", "a circle"],
)
def test_in_order(before: dict[int, list[int]], order: list[int]) -> None:
    assert in_order(before, before.__getitem__) == order


def test_the_smallest_of_those_that_are_ready_at_first() -> None:
    assert in_order([5, 1, 3], lambda _: []) == [1, 3, 5]
