"""Requests that come twice: what is remembered, and how much of it."""

from __future__ import annotations

import asyncio

import pytest

from tenfold_core import errors
from tenfold_services.master.request_ids import RecentRequests


class Work:
    """Counts how often it was really done."""

    def __init__(self, answer: bytes | errors.OpError = b"answer") -> None:
        self.answer, self.runs = answer, 0

    async def __call__(self) -> bytes:
        self.runs += 1
        if isinstance(self.answer, errors.OpError):
            raise self.answer
        return self.answer


def requests(*, numbers: int = 100, answers: int = 10, limit: int = 1000) -> RecentRequests[bytes]:
    return RecentRequests(numbers, answers, limit, len)


async def test_the_second_request_gets_the_first_answer() -> None:
    recent, work = requests(), Work()

    assert await recent.run(1, work) is await recent.run(1, work)

    assert work.runs == 1


async def test_other_numbers_are_other_requests() -> None:
    recent, work = requests(), Work()

    await recent.run(1, work)
    await recent.run(2, work)

    assert work.runs == 2


async def test_an_error_is_an_answer_too() -> None:
    recent, work = requests(), Work(errors.NotFoundError(None, None, "gone"))

    for _ in range(2):
        with pytest.raises(errors.NotFoundError, match="gone"):
            await recent.run(1, work)

    assert work.runs == 1


async def test_an_answer_that_is_too_large_is_not_kept_and_nothing_runs_twice() -> None:
    recent, work = requests(limit=1000), Work(b"x" * 251)
    await recent.run(1, work)

    with pytest.raises(errors.AbortedError, match="received twice"):
        await recent.run(1, work)

    assert work.runs == 1


@pytest.mark.parametrize("bound", [{"answers": 2}, {"limit": 24}])
async def test_the_oldest_answers_go_first(bound: dict[str, int]) -> None:
    recent, work = requests(**bound), Work(b"123456")
    for number in range(5):
        await recent.run(number, work)

    assert await recent.run(4, work) == b"123456"
    with pytest.raises(errors.AbortedError):
        await recent.run(0, work)
    assert work.runs == 5


async def test_numbers_are_forgotten_at_last() -> None:
    recent, work = requests(numbers=3), Work()
    for number in range(5):
        await recent.run(number, work)

    await recent.run(0, work)

    assert work.runs == 6


async def test_a_request_that_runs_for_long_does_not_keep_all_that_come_after_it() -> None:
    recent, work, end = requests(numbers=3), Work(), asyncio.get_running_loop().create_future()
    waits = asyncio.create_task(recent.run("long", lambda: end))
    await asyncio.sleep(0)
    for number in range(20):
        await recent.run(number, work)

    assert sum(recent.knows(number) for number in range(20)) == 2
    assert recent.knows("long")
    end.set_result(b"at last")
    assert await waits == b"at last"


async def test_nobody_s_numbers_are_forgotten_for_another_s() -> None:
    recent, mine = requests(numbers=12), Work()
    for number in range(3):
        await recent.run(number, mine, "owner")
    for number in range(50):
        await recent.run(number, Work(), "guest")
        recent.note(number, b"served", by="another guest")

    assert all(recent.knows(number, "owner") for number in range(3))
    assert await recent.run(0, mine, "owner") == b"answer"
    assert mine.runs == 3


@pytest.mark.parametrize("bound", [{"answers": 4}, {"limit": 24}])
async def test_nobody_s_answers_are_forgotten_for_another_s(bound: dict[str, int]) -> None:
    recent, mine = requests(**bound), Work(b"123456")
    await recent.run(0, mine, "owner")
    for number in range(20):
        await recent.run(number, Work(b"123456"), "guest")

    assert await recent.run(0, mine, "owner") == b"123456"
    assert await recent.run(19, mine, "guest") == b"123456"
    assert mine.runs == 1
    with pytest.raises(errors.AbortedError):
        await recent.run(0, mine, "guest")


async def test_the_same_number_of_two_principals_is_two_requests() -> None:
    recent, work = requests(), Work()

    await recent.run(1, work, "owner")
    await recent.run(1, work, "guest")

    assert work.runs == 2
    assert not recent.knows(1, "another")


async def test_who_has_nothing_any_more_costs_nothing() -> None:
    recent = requests(numbers=4)
    for number in range(100):
        recent.note(number, b"answer", by=f"guest {number}")

    assert len(recent._groups) == 4
    assert (recent._requests, recent._answers, recent._bytes) == (4, 4, 24)
