"""The event log: events are written in batches and then shown, and each reader goes on from a place of its own."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from tenfold_control_api.events import log as log_module
from tenfold_control_api.events.event import Event, Filter
from tenfold_control_api.events.log import EventLog
from tenfold_control_api.problems import ApiError
from tenfold_control_api.service_settings import Settings


class Store:
    """Events in memory. `gate` holds writing back, `broken` writings fail."""

    def __init__(self, *rows: Event) -> None:
        self.rows, self.next = list(rows), (rows[-1].id if rows else 0) + 1
        self.batches: list[int] = []
        self.asked: list[tuple[int, int]] = []
        self.broken = 0
        self.gate: asyncio.Event | None = None
        self.failed = asyncio.Event()

    async def add(self, fresh: list[Event]) -> list[Event]:
        if self.gate is not None:
            await self.gate.wait()
        if self.broken:
            self.broken -= 1
            self.failed.set()
            raise OSError("the database is away")
        self.batches.append(len(fresh))
        written = []
        for event in fresh:
            written.append(replace(event, id=self.next))
            self.next += 1
        self.rows += written
        return written

    async def after(self, last: int, limit: int) -> list[Event]:
        self.asked.append((last, limit))
        return [event for event in self.rows if event.id > last][:limit]

    async def bounds(self) -> tuple[int, int]:
        return (self.rows[0].id if self.rows else self.next), self.next - 1

    async def forget(self, before: float) -> None:
        self.rows = [event for event in self.rows if event.time >= before]


def an_event(number: int = 0, kind: str = "task", time: float = 1.0) -> Event:
    return Event(kind, "lost", f"worker/{number}", "silent", time, id=number)


class Log:
    """A log that runs, and is stopped at the end."""

    def __init__(self, store: Store | None = None, *, shared: bool = False, **settings: Any) -> None:
        self.store = store or Store()
        self.log = EventLog(cast("Any", self.store), Settings(**settings), shared=shared)

    async def __aenter__(self) -> Log:
        await self.log.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.log.stop()

    async def write(self, *events: Event) -> None:
        self.log.note(events)
        await self.log.after(self.log.last, 60.0)


def numbers(events: list[Event]) -> list[int]:
    return [event.id for event in events]


async def gone(call: Any) -> ApiError:
    with pytest.raises(ApiError) as raised:
        await call
    return raised.value


async def test_what_is_noted_is_written_in_one_batch_and_shown() -> None:
    async with Log() as made:
        made.log.note([])
        made.log.note([an_event(), an_event()])
        made.log.note([an_event()])

        assert await made.log.after(0) == []
        assert numbers(await made.log.after(0, 60.0)) == [1, 2, 3]
        assert made.store.batches == [3]
        assert numbers(await made.log.after(2)) == [3]
        assert await made.log.after(3) == []
        assert made.log.last == 3


async def test_a_reader_waits_for_the_next_event_and_no_longer_than_it_says() -> None:
    async with Log() as made:
        waiting = asyncio.create_task(made.log.after(0, 60.0))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        made.log.note([an_event()])
        assert numbers(await waiting) == [1]
        assert await made.log.after(1, 0.01) == []


async def test_a_place_that_was_never_there_or_is_forgotten_is_refused() -> None:
    store = Store(*(an_event(number) for number in range(5, 8)))
    async with Log(store) as made:
        assert (made.log.first, made.log.last) == (5, 7)
        error = await gone(made.log.after(8))
        assert (error.kind, error.detail) == (
            "events-gone",
            "there is no place after event 8 any more: the newest event is 7. Start over without it.",
        )
        error = await gone(made.log.after(3))
        assert "any more: events before 5 are forgotten. " in error.detail
        assert numbers(await made.log.after(4)) == [5, 6, 7]
        assert numbers(await made.log.after(0)) == [5, 6, 7]
        assert await made.log.after(7) == []


async def test_readers_that_wait_are_bounded() -> None:
    async with Log(max_watchers=1) as made:
        waiting = asyncio.create_task(made.log.after(0, 60.0))
        for _ in range(5):
            await asyncio.sleep(0)
        error = await gone(made.log.after(0, 60.0))
        assert (error.kind, error.detail) == (
            "too-many-watchers",
            "1 requests already wait for events; that is the limit.",
        )
        assert await made.log.after(0) == []
        made.log.note([an_event()])
        await waiting


async def test_who_keeps_up_reads_memory_a_page_at_a_time_and_others_the_database() -> None:
    async with Log(Store(an_event(1), an_event(2))) as made:
        await made.write(*(an_event() for _ in range(502)))
        assert made.store.asked == []
        assert numbers(await made.log.after(2)) == list(range(3, 503))
        assert numbers(await made.log.after(502)) == [503, 504]
        assert made.store.asked == []
        assert numbers(await made.log.after(1)) == list(range(2, 502))
        assert made.store.asked == [(1, 500)]


async def test_memory_holds_the_newest_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "_RECENT", 2)
    async with Log() as made:
        await made.write(an_event(), an_event(), an_event())
        made.store.asked.clear()
        assert numbers(await made.log.after(1)) == [2, 3]
        assert made.store.asked == []
        assert numbers(await made.log.after(0)) == [1, 2, 3]
        assert made.store.asked == [(0, 500)]


async def test_ids_that_nothing_got_are_passed_over() -> None:
    async with Log() as made:
        await made.write(an_event())
        made.store.next = 4
        await made.write(an_event(), an_event())
        assert numbers(await made.log.after(1)) == [4, 5]
        assert numbers(await made.log.after(2)) == [4, 5]
        assert numbers(await made.log.after(4)) == [5]
        made.store.rows.clear()
        made.log._recent.clear()
        assert await made.log.after(1) == []
        waiting = asyncio.create_task(made.log.after(1, 60.0))
        for _ in range(5):
            await asyncio.sleep(0)
        made.log.note([an_event()])
        assert numbers(await waiting) == [6]


async def test_those_that_fit_are_waited_for_and_the_place_moves_on_past_others() -> None:
    wanted = Filter(kinds=frozenset({"run"}))
    async with Log() as made:
        await made.write(an_event(), an_event(kind="run"), an_event())
        found, place = await made.log.wanted(0, wanted)
        assert (numbers(found), place) == ([2], 3)
        assert await made.log.wanted(2, wanted) == ([], 3)
        assert await made.log.wanted(3, wanted) == ([], 3)
        waiting = asyncio.create_task(made.log.wanted(3, wanted, 60.0))
        for kind in ("task", "run"):
            await made.write(an_event(kind=kind))
        found, place = await waiting
        assert (numbers(found), place) == ([5], 5)
        assert await made.log.wanted(5, wanted, 0.01) == ([], 5)


async def test_old_events_are_forgotten() -> None:
    async with Log(Store(an_event(1, time=10.0), an_event(2, time=20.0)), event_memory=30.0) as made:
        await made.log.forget_old(50.0)
        assert made.log.first == 2
        assert "events before 2 are forgotten" in (await gone(made.log.after(-1))).detail
        assert numbers(await made.log.after(0)) == [2]


async def test_writing_is_tried_again_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log_module, "_AGAIN_S", 0.001)
    async with Log() as made:
        made.store.broken = 2
        made.log.note([an_event()])
        assert numbers(await made.log.after(0, 60.0)) == [1]
        assert made.store.batches == [1]
    assert [each.getMessage() for each in caplog.records] == ["events could not be written; it is tried again"] * 2


async def test_a_log_that_stops_writes_what_waits_and_ends_those_who_wait() -> None:
    made = Log()
    await made.log.start()
    waiting = asyncio.create_task(made.log.after(0, 60.0))
    for _ in range(5):
        await asyncio.sleep(0)
    made.log.note([an_event()])
    made.log.begin_stop()
    await made.log.stop()
    assert made.store.batches == [1]
    assert (await gone(waiting)).code == "UNAVAILABLE"


async def test_a_log_that_stops_does_not_wait_for_a_database_that_is_away() -> None:
    made = Log()
    await made.log.start()
    made.store.broken = 9
    made.log.note([an_event()])
    made.log.begin_stop()
    await made.log.stop()
    assert made.store.broken == 8

    stuck = Log(grace=0.01)
    await stuck.log.start()
    stuck.store.gate = asyncio.Event()
    stuck.log.note([an_event()])
    await stuck.log.stop()
    assert stuck.store.batches == []


async def test_a_log_that_never_started_stops() -> None:
    await Log().log.stop()


async def test_what_other_services_wrote_is_shown_in_one_order() -> None:
    store = Store(an_event(1))
    async with Log(store, shared=True, refresh_interval=60.0) as made:
        store.rows.append(an_event(2))
        store.next = 3
        assert numbers(await made.log.after(1)) == []
        assert numbers(await made.log.after(0)) == [1]
        await gone(made.log.after(4))
        assert made.log.last == 2
        store.rows.append(an_event(3))
        store.next = 4
        made.log.note([an_event()])
        assert numbers(await made.log.after(2, 60.0)) == [3, 4]
        assert made.log.last == 4


async def test_a_shared_log_looks_for_others_events_again_and_again() -> None:
    store = Store()
    async with Log(store, shared=True, refresh_interval=0.001) as made:
        waiting = asyncio.create_task(made.log.after(0, 60.0))
        store.rows.append(an_event(1))
        assert numbers(await waiting) == [1]
        assert store.batches == []
