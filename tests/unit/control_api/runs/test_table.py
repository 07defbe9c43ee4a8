"""How a run changes: by compare-and-set, told to listeners and to who waits; and what is forgotten with its end."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from support.hand_clock import HandClock
from tenfold_control_api import watch as watch_module
from tenfold_control_api.attempts import ATTEMPTS
from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs.record import EXTERNAL, RunRecord
from tenfold_control_api.runs.table import RunTable
from tenfold_control_api.service_settings import Settings
from tenfold_control_api.watch import Watch
from tenfold_core.run_states import RunState


class FakeStore:
    """A database in memory. `faster` are values that another service writes before one of ours is saved."""

    def __init__(self, *runs: RunRecord) -> None:
        self.runs = {run.id: run for run in runs}
        self.faster: list[RunRecord] = []
        self.saves = 0

    async def get(self, run_id: str) -> RunRecord | None:
        return self.runs.get(run_id)

    async def save(self, old: RunRecord, new: RunRecord) -> bool:
        self.saves += 1
        if self.faster:
            self.runs[old.id] = self.faster.pop(0)
        if self.runs[old.id].version != old.version:
            return False
        self.runs[new.id] = new
        return True


def a_run() -> RunRecord:
    return RunRecord("run-1", "once", "f", EXTERNAL, {"jobs": {"worker": 1}}, 1.0)


def table_of(store: FakeStore, **settings: Any) -> RunTable:
    return RunTable(cast("Any", store), Settings(**settings), shared=False, clock=HandClock())


async def test_a_change_is_made_on_what_another_service_was_faster_with() -> None:
    store = FakeStore(a_run())
    table, heard = table_of(store), []
    table.listeners.append(lambda old, new: heard.append((old, new)))
    claimed = a_run().claim("other", None)
    store.faster = [claimed]

    run = await table.change("run-1", lambda now: now.ask_to_stop("enough", 2.0), a_run())

    assert (run.owner, run.stop, run.version) == ("other", "enough", 3)
    assert (store.saves, heard) == (2, [(claimed, run)])


async def test_no_change_is_no_news() -> None:
    store = FakeStore(a_run())
    table = table_of(store)
    table.listeners.append(lambda *_: pytest.fail("there is no news"))

    assert await table.change("run-1", lambda now: now) is store.runs["run-1"]
    assert store.saves == 0


@pytest.mark.usefixtures("impatient")
async def test_a_change_is_given_up() -> None:
    store = FakeStore(a_run())
    values = [a_run()]
    for number in range(ATTEMPTS):
        values.append(values[-1].claim(str(number), values[-1].owner))
    store.faster = values[1:]

    with pytest.raises(ApiError, match="run 'run-1' is being changed by many at once"):
        await table_of(store).change("run-1", lambda now: now.ask_to_stop("enough", 2.0))
    assert store.saves == ATTEMPTS


async def test_who_waits_is_told_and_an_end_is_the_end() -> None:
    store = FakeStore(a_run())
    table, ended = table_of(store), []
    table.end_listeners.append(ended.append)
    table.expect("run-1")
    looked = asyncio.Event()

    def over(now: RunRecord) -> bool:
        looked.set()
        return now.state.final

    waits = asyncio.create_task(table.wait("run-1", over, 20.0))
    await looked.wait()

    await table.change("run-1", lambda now: now.fail("gone", 2.0))

    assert (await waits).state is RunState.FAILED
    assert (ended, table.heard, table.watches._watches) == (["run-1"], {}, {})


async def test_limits() -> None:
    table = table_of(FakeStore(a_run()), max_active_runs=1, max_watchers=0)
    table.admit()
    table.hear("run-1")

    with pytest.raises(ApiError, match="1 runs have not ended yet"):
        table.admit()
    with pytest.raises(ApiError, match="0 requests already wait for a run"):
        await table.wait("run-1", lambda _: False, 1.0)
    with pytest.raises(ApiError, match="there is no run 'run-2'"):
        await table.get("run-2")


# -- waiting

PATIENCE = 20.0


def waits_of(monkeypatch: pytest.MonkeyPatch, clock: HandClock) -> list[float]:
    """How long each wait is meant to take, while nothing happens; the clock moves by it."""
    limits: list[float] = []

    class Passed(Watch):
        async def after(self, count: int, limit: float) -> bool:
            limits.append(limit)
            clock.now += limit
            return False

    monkeypatch.setattr(watch_module, "Watch", Passed)
    return limits


@pytest.mark.parametrize(("shared", "expected"), [(False, [5.0]), (True, [2.0, 2.0, 1.0])])
async def test_only_a_replica_has_to_look_again(
    shared: bool, expected: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = HandClock()
    limits = waits_of(monkeypatch, clock)
    store = FakeStore(a_run())
    table = RunTable(cast("Any", store), Settings(refresh_interval=2.0), shared=shared, clock=clock)

    run = await table.wait("run-1", lambda _: False, 5.0)

    assert (run, limits) == (store.runs["run-1"], expected)


async def test_who_will_not_wait_needs_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = waits_of(monkeypatch, HandClock())
    table = table_of(FakeStore(a_run()), max_watchers=0)

    for limit in (0.0, -1.0):
        assert (await table.wait("run-1", lambda _: False, limit)).id == "run-1"
    assert limits == []


class Waiting:
    """Those that wait for the end of a run; each has looked once when `join` returns."""

    def __init__(self, table: RunTable) -> None:
        self.table = table
        self.tasks: list[asyncio.Task[RunRecord]] = []

    async def join(self) -> None:
        looked = asyncio.Event()

        def over(now: RunRecord) -> bool:
            looked.set()
            return now.state.final

        self.tasks.append(asyncio.create_task(self.table.wait("run-1", over, PATIENCE)))
        await looked.wait()

    async def leave(self) -> None:
        self.tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.tasks.pop(0)


async def test_places_to_wait_are_counted_and_given_back() -> None:
    table = table_of(FakeStore(a_run()), max_watchers=2)
    waiting = Waiting(table)
    await waiting.join()
    await waiting.join()
    assert list(table.watches._watches) == ["run-1"]

    with pytest.raises(ApiError, match="2 requests already wait for a run"):
        await table.wait("run-1", lambda _: True, PATIENCE)
    await waiting.leave()
    assert list(table.watches._watches) == ["run-1"], "one waits still"
    assert (await table.wait("run-1", lambda _: True, PATIENCE)).id == "run-1"
    await waiting.leave()

    assert table.watches._watches == {}


async def test_a_run_that_is_deleted_is_gone_for_all_that_wait() -> None:
    store = FakeStore(a_run())
    table = table_of(store)
    waiting = Waiting(table)
    await waiting.join()
    await waiting.join()
    del store.runs["run-1"]
    table.deleted("run-1")

    for each in waiting.tasks:
        with pytest.raises(ApiError, match="there is no run 'run-1'"):
            await asyncio.wait_for(each, PATIENCE)
    assert table.watches._watches == {}
    table.deleted("run-1")


async def test_a_service_that_stops_lets_nobody_wait() -> None:
    waiting = Waiting(table_of(FakeStore(a_run())))
    await waiting.join()

    waiting.table.watches.close()

    with pytest.raises(ApiError, match="the control service is stopping"):
        await asyncio.wait_for(waiting.tasks[0], PATIENCE)


async def test_a_change_is_told_to_who_waits_and_the_run_goes_on() -> None:
    store = FakeStore(a_run())
    table = table_of(store)
    table.end_listeners.append(lambda _: pytest.fail("it has not ended"))
    table.hear("run-1")
    waiting = Waiting(table)
    await waiting.join()

    claimed = await table.change("run-1", lambda now: now.claim("me", None))
    assert list(table.heard) == ["run-1"]
    table.end_listeners.clear()
    ended = await table.change("run-1", lambda now: now.fail("gone", 2.0))

    assert (claimed.version, ended.version) == (2, 3)
    assert await asyncio.wait_for(waiting.tasks[0], PATIENCE) == ended


# -- who is heard


def test_a_run_is_expected_until_it_is_heard() -> None:
    clock = HandClock()
    table = RunTable(cast("Any", FakeStore()), Settings(max_active_runs=2), shared=False, clock=clock)
    table.expect("run-1")
    assert table.heard == {"run-1": (1000.0, 0)}
    clock.now += 1.0
    table.hear("run-1", 7)
    clock.now += 1.0
    table.expect("run-1")

    assert table.heard == {"run-1": (1001.0, 7)}
    table.admit()
    table.hear("run-2")
    assert table.heard["run-2"] == (1002.0, 0)
    with pytest.raises(ApiError, match="2 runs have not ended yet: the limit is 2") as refused:
        table.admit()
    assert refused.value.kind == "too-many-runs"
    table.forget("run-1")
    table.forget("unknown")
    table.admit()
