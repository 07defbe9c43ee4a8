"""Staging areas as machines: elements in line, peeks that take nothing, room that is waited for, steps that end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.resources.quota import StateQuota
from tenfold_kernels.resources.staging import StagingArea, size_of
from tenfold_kernels.resources.waiting import Waiting


def one(value: float, size: int = 1) -> tuple[np.ndarray]:
    return (np.full(size, value, np.float32),)


def told(waiting: Any) -> list[Any]:
    assert isinstance(waiting, Waiting)
    results: list[Any] = []
    waiting.listen(lambda outputs, error: results.append(outputs if error is None else error))
    return results


def test_first_in_first_out_and_a_peek_takes_nothing() -> None:
    area = StagingArea("a", 0, 0)
    for value in (1, 2):
        assert area.put(one(value)) is None

    assert area.peek(1, 1).tolist() == [2]
    assert area.size() == 2
    assert [area.get(1).tolist(), area.get(1).tolist()] == [[1], [2]]


def test_several_tensors_stay_together() -> None:
    area = StagingArea("a", 0, 0)
    area.put((*one(1), *one(2)))

    assert [part.tolist() for part in area.get(2)] == [[1], [2]]


def test_a_take_waits_for_an_element() -> None:
    area = StagingArea("a", 0, 0)
    first, second = told(area.get(1)), told(area.get(1))

    area.put(one(7))

    assert [part.tolist() for part in first] == [[7]]
    assert not second


def test_a_step_that_ends_takes_nothing() -> None:
    area = StagingArea("a", 0, 0)
    given_up = area.get(1)
    results = told(given_up)
    given_up.cancel()

    area.put(one(7))

    assert not results
    assert area.get(1).tolist() == [7]


def test_a_put_waits_for_room() -> None:
    area = StagingArea("a", 1, 0)
    area.put(one(1))
    waiting = told(area.put(one(2)))

    assert area.get(1).tolist() == [1]

    assert waiting == [None]
    assert area.get(1).tolist() == [2]


def test_bytes_count_too() -> None:
    area = StagingArea("a", 0, 10)
    area.put(one(1, 2))
    waiting = told(area.put(one(2)))
    with pytest.raises(errors.ResourceExhaustedError, match="combined size of '12' bytes"):
        area.put(one(3, 3))

    area.clear()

    assert waiting == [None]
    assert area.size() == 1


def test_an_index_below_zero_is_refused() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="no element -1"):
        StagingArea("a", 0, 0).peek(-1, 1)


def test_a_tuple_of_another_length_is_named_and_gone() -> None:
    area = StagingArea("a", 0, 0)
    area.put((*one(1), *one(2)))
    waiting = told(area.peek(1, 1))

    with pytest.raises(errors.InvalidArgumentError, match=r"Mismatch stage/unstage: 2 vs\. 1"):
        area.get(1)
    area.put(one(3))
    area.put((*one(4), *one(5)))

    # The steps that waited are told, not the step that put what did not fit.
    assert [type(found) for found in waiting] == [errors.InvalidArgumentError]
    assert area.size() == 2


def test_strings_count_by_number() -> None:
    area = StagingArea("a", 0, 47)
    strings = np.array([b"x" * 1000, b""], object)
    area.put((strings[:1],))
    with pytest.raises(errors.ResourceExhaustedError, match="combined size of '48' bytes"):
        area.put((strings,))


# -- edges: room, memory, steps that wait ------------------------------------------------------------------------------


def test_room_is_a_number_of_tuples() -> None:
    area = StagingArea("a", 2, 0)
    assert [area.put(one(1)), area.put(one(2))] == [None, None]
    waits = told(area.put(one(3)))
    assert area.peek(0, 1).tolist() == [1]
    assert waits == []
    area.get(1)
    assert waits == [None]
    assert area.size() == 2


@pytest.mark.parametrize(("limit", "waits"), [(16, False), (15, True)])
def test_memory_is_a_number_of_bytes(limit: int, waits: bool) -> None:
    area = StagingArea("a", 0, limit)
    area.put(one(1, 2))
    assert isinstance(area.put(one(2, 2)), Waiting) is waits
    area.get(1)
    assert area.size() == 1, "the one that waited, or the second"


def test_one_tuple_may_take_all_memory() -> None:
    area = StagingArea("a", 0, 8)
    area.put(one(1, 2))
    text = "Attempted to insert tensors with combined size of '12' bytes into Staging Area with a memory limit of '8'"
    with pytest.raises(errors.ResourceExhaustedError, match=text):
        area.put(one(1, 3))
    area.get(1)
    area.put(one(1, 2))
    area.clear()
    assert area.put(one(1, 2)) is None, "what was cleared is not counted any more"


def test_a_peek_waits_for_its_place() -> None:
    area = StagingArea("a", 0, 0)
    second = told(area.peek(1, 1))
    area.put(one(1))
    assert second == []
    area.put(one(2))
    assert [part.tolist() for part in second] == [[2]]
    assert area.size() == 2


def test_who_waits_in_line_is_served_as_far_as_it_goes() -> None:
    area = StagingArea("a", 1, 0)
    takers = [told(area.get(1)) for _ in range(3)]
    area.put(one(1))
    area.put(one(2))
    assert [len(each) for each in takers] == [1, 1, 0]
    area.put(one(3))
    assert [each[0].tolist() for each in takers] == [[1], [2], [3]]
    assert area.put(one(4)) is None
    waiting = [told(area.put(one(value))) for value in (5, 6)]
    assert area.get(1).tolist() == [4]
    assert waiting == [[None], []]
    assert area.get(1).tolist() == [5]
    assert waiting == [[None], [None]]
    assert area._line == []


def test_a_step_that_ends_at_the_last_moment_takes_nothing() -> None:
    area = StagingArea("a", 0, 0)

    class GivesUpLate:
        def claim(self) -> bool:
            return False

    gone = told(area.get(1))
    area._line[0] = (GivesUpLate(), area._line[0][1])  # type: ignore[assignment]
    area.put(one(7))
    assert gone == []
    assert area._line == []
    assert area.get(1).tolist() == [7]


def test_a_step_that_leaves_twice_takes_no_other_with_it() -> None:
    area = StagingArea("a", 0, 0)
    gone, stays = area.get(1), told(area.get(1))
    gone.cancel()
    gone.cancel()
    assert len(area._line) == 1
    area.put(one(7))
    assert [part.tolist() for part in stays] == [[7]]


def test_what_is_put_is_kept_as_it_was() -> None:
    area, value = StagingArea("a", 0, 0), np.ones(2)
    area.put((value[:],))
    value[:] = 9
    found = area.get(1)
    assert found.tolist() == [1, 1]
    assert not found.flags.writeable


def test_sizes_of_texts_are_those_of_their_headers() -> None:
    texts = np.array([b"x" * 100, b""], object)
    assert size_of([texts, None, np.zeros(3, np.int16)]) == 2 * 24 + 6


def test_an_account_follows_what_waits_and_what_is_cleared() -> None:
    quota = StateQuota()
    area = StagingArea("a", 1, 0, quota.account("a"))
    area.put(one(1, 2))
    told(area.put(one(2, 3)))
    assert quota.bytes == 8
    area.get(1)
    assert quota.bytes == 12, "the one that waited is in now"
    area.clear()
    assert quota.bytes == 0
