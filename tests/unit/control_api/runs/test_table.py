"""How a run changes: by compare-and-set, told to listeners and to who waits; and what is forgotten with its end."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from support.hand_clock import HandClock
from tenfold_control_api.attempts import ATTEMPTS
from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs.record import EXTERNAL, RunRecord
from tenfold_control_api.runs.table import RunTable
from tenfold_control_api.settings import Settings
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
    assert (ended, table.heard, table._watches) == (["run-1"], {}, {})


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
