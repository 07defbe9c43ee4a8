"""Staging maps as machines: tuples by number, piece by piece, in order where that is asked, and steps that wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.resources.quota import StateQuota
from tenfold_kernels.resources.staging import StagingMap
from tenfold_kernels.resources.waiting import Waiting


def of(*values: float) -> list[np.ndarray[Any, Any]]:
    return [np.array(value, np.float32) for value in values]


def told(waiting: Any) -> list[Any]:
    assert isinstance(waiting, Waiting)
    results: list[Any] = []
    waiting.listen(lambda outputs, error: results.append(outputs if error is None else error))
    return results


def plain(outputs: Any) -> list[float]:
    return [part.item() for part in (outputs if isinstance(outputs, tuple) else (outputs,))]


def test_a_tuple_comes_and_goes_in_pieces() -> None:
    area = StagingMap("m", 0, 0, 2, is_ordered=False)
    area.put(5, [1], of(20))
    assert (area.size(), area.incomplete_size()) == (0, 1)
    area.put(5, [0], of(10))
    assert (area.size(), area.incomplete_size()) == (1, 0)

    assert plain(area.peek(5, [0, 1])) == [10, 20]
    assert plain(area.get(5, [0])) == [10]
    with pytest.raises(errors.InvalidArgumentError, match="already been removed"):
        area.get(5, [0])
    assert plain(area.get(5, [1])) == [20]
    assert area.size() == 0


def test_an_ordered_map_gives_the_smallest_key_first() -> None:
    area = StagingMap("m", 0, 0, 1, is_ordered=True)
    for key in (7, 3, 5):
        area.put(key, [0], of(key))
    assert [plain(area.get_any([0])) for _ in range(3)] == [[3, 3], [5, 5], [7, 7]]


def test_takes_wait_for_their_key_and_leave_with_their_step() -> None:
    area = StagingMap("m", 0, 0, 1, is_ordered=False)
    one, two, gone = area.get(1, [0]), area.get(2, [0]), area.get(2, [0])
    first, second = told(one), told(two)
    gone.cancel()

    area.put(2, [0], of(20))

    assert [plain(outputs) for outputs in second] == [[20]]
    assert first == []
    assert area.size() == 0


def test_whole_tuples_wait_for_room_and_parts_do_not() -> None:
    area = StagingMap("m", 1, 0, 2, is_ordered=False)
    area.put(1, [0, 1], of(10, 11))
    waiting = told(area.put(2, [0, 1], of(20, 21)))
    for key in (3, 4):
        assert area.put(key, [0], of(30)) is None
    assert area.put(3, [1], of(31)) is None
    assert (area.size(), area.incomplete_size(), waiting) == (2, 1, [])

    assert plain(area.get(1, [0, 1])) == [10, 11]
    assert waiting == []
    assert plain(area.get(3, [0, 1])) == [30, 31]

    assert waiting == [None]
    assert plain(area.get(2, [0, 1])) == [20, 21]


def test_parts_wait_for_memory() -> None:
    area = StagingMap("m", 0, 8, 2, is_ordered=False)
    area.put(1, [0], of(1))
    area.put(1, [1], of(2))
    waiting = told(area.put(2, [1], of(3)))

    area.get(1, [1])

    assert waiting == [None]
    with pytest.raises(errors.ResourceExhaustedError, match="combined size of '12' bytes"):
        area.put(3, [0], [np.zeros(3, np.float32)])


def test_a_key_that_is_there_keeps_its_tuple() -> None:
    area = StagingMap("m", 0, 8, 1, is_ordered=False)
    for value in (10, 11, 12):
        assert area.put(1, [0], of(value)) is None

    assert area.size() == 1
    assert plain(area.get(1, [0])) == [10]


def test_a_component_that_is_gone_is_the_error_of_who_waited() -> None:
    area = StagingMap("m", 0, 0, 2, is_ordered=False)
    first, second = told(area.get(1, [0])), told(area.get(1, [0]))

    assert area.put(1, [0, 1], of(10, 11)) is None

    assert [plain(outputs) for outputs in first] == [[10]]
    assert "index '0' for key '1' has already been removed" in str(second[0])
    assert plain(area.get(1, [1])) == [11]


@pytest.mark.parametrize(
    ("indices", "message"),
    [([], "are empty"), ([1, 0], "not strictly ordered"), ([0, 0], "not strictly ordered"), ([-1], "'-1' for key '1'")],
)
def test_indices_come_in_order(indices: list[int], message: str) -> None:
    area = StagingMap("m", 0, 0, 2, is_ordered=False)
    with pytest.raises(errors.InvalidArgumentError, match=message):
        area.put(1, indices, of(*indices))
    with pytest.raises(errors.InvalidArgumentError, match=message):
        area.peek(1, indices)


def test_what_is_there_already_and_what_there_is_not_are_refused() -> None:
    area = StagingMap("m", 0, 0, 2, is_ordered=False)
    area.put(1, [0], of(1))
    with pytest.raises(errors.InvalidArgumentError, match="already initialized"):
        area.put(1, [0], of(1))
    with pytest.raises(errors.InvalidArgumentError, match="Index '2' for key '1' was out of bounds '2'"):
        area.put(1, [2], of(1))
    area.clear()
    assert area.incomplete_size() == 0


# -- edges -------------------------------------------------------------------------------------------------------------


def test_room_is_for_whole_tuples() -> None:
    area = StagingMap("m", 2, 0, 1, is_ordered=False)
    assert [area.put(key, [0], of(key)) for key in (1, 2)] == [None, None]
    third = told(area.put(3, [0], of(3)))
    assert third == []
    area.clear()
    assert third == [None]
    assert plain(area.get(3, [0])) == [3]


@pytest.mark.parametrize(("limit", "waits"), [(8, False), (7, True)])
def test_memory_counts_whole_tuples_and_parts(limit: int, waits: bool) -> None:
    area = StagingMap("m", 0, limit, 2, is_ordered=False)
    area.put(1, [0], of(1))
    assert isinstance(area.put(2, [1], of(2)), Waiting) is waits
    whole = StagingMap("m", 0, limit, 1, is_ordered=False)
    whole.put(1, [0], of(1))
    assert isinstance(whole.put(2, [0], of(2)), Waiting) is waits


def test_an_unordered_map_gives_what_came_first() -> None:
    area = StagingMap("m", 0, 0, 2, is_ordered=False)
    for key in (7, 3):
        area.put(key, [0, 1], of(key, key + 1))
    key, second = area.get_any([1])
    assert (key.dtype, key.item(), second.item()) == (np.int64, 7, 8)
    assert area.size() == 2, "a component is left"
    assert plain(area.get_any([0])) == [7, 7]
    assert area.size() == 1


def test_who_waits_for_any_key_gets_the_first_that_is_whole() -> None:
    area = StagingMap("m", 0, 0, 2, is_ordered=True)
    waiting = told(area.get_any([0, 1]))
    area.put(5, [1], of(51))
    assert waiting == []
    area.put(5, [0], of(50))
    assert [plain(found) for found in waiting] == [[5, 50, 51]]


def test_a_peek_waits_for_its_key_and_leaves_it() -> None:
    area = StagingMap("m", 0, 0, 1, is_ordered=False)
    waiting = told(area.peek(5, [0]))
    area.put(4, [0], of(4))
    assert waiting == []
    area.put(5, [0], of(5))
    assert [plain(found) for found in waiting] == [[5]]
    assert area.size() == 2


def test_components_that_are_gone_are_not_peeked_at() -> None:
    area = StagingMap("m", 0, 8, 2, is_ordered=False)
    area.put(1, [0, 1], of(10, 11))
    area.get(1, [1])
    with pytest.raises(errors.InvalidArgumentError, match="index '1' for key '1' has already been removed"):
        area.peek(1, [0, 1])
    assert plain(area.peek(1, [0])) == [10]
    assert area.put(2, [0], of(20)) is None, "what was taken makes room"
    assert area.size() == 1


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([2], "Index '2' was out of bounds '2'"),
        ([-1, 0], "Index '-1' was out of bounds '2'"),
        ([0, 2], "Index '2' was out of bounds '2'"),
        ([], "Indices are empty"),
        ([0, 0], "not strictly ordered"),
    ],
)
def test_indices_of_any_key(indices: list[int], message: str) -> None:
    area = StagingMap("m", 0, 0, 2, is_ordered=False)
    with pytest.raises(errors.InvalidArgumentError, match=message):
        area.get_any(indices)
    with pytest.raises(errors.InvalidArgumentError, match=message.replace("' was", "' for key '1' was")):
        area.get(1, indices)


def test_a_whole_tuple_does_not_meet_the_parts_of_its_key() -> None:
    area = StagingMap("m", 0, 0, 2, is_ordered=False)
    area.put(1, [0], of(1))
    area.put(1, [0, 1], of(10, 11))
    assert (area.size(), area.incomplete_size()) == (1, 1)
    area.put(1, [1], of(2))
    assert (area.size(), area.incomplete_size()) == (1, 0)
    assert plain(area.get(1, [0, 1])) == [10, 11], "the one that was whole first"


def test_a_tuple_that_is_dropped_is_not_counted() -> None:
    quota = StateQuota()
    area = StagingMap("m", 0, 0, 1, is_ordered=False, account=quota.account("m"))
    for _ in range(3):
        area.put(1, [0], of(1))
    assert quota.bytes == 4
    area.clear()
    assert (quota.bytes, area.size()) == (0, 0)
