"""Runs as rows: written once, changed by compare-and-set, found by id, submission and page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from support.small_database import small_database
from tenfold_control_api.runs.record import LOCAL, RunRecord
from tenfold_control_api.runs.store import RunStore
from tenfold_core.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[RunStore]:
    async with small_database(tmp_path) as engine:
        yield RunStore(engine)


def a_run(name: str = "r", **given: Any) -> RunRecord:
    run = RunRecord(name, f"submission {name}", "print", LOCAL, {"jobs": {"worker": 1}}, 1.0)
    return replace(run, **given)


FULL = {
    **{"state": RunState.RUNNING, "reason": "it runs", "version": 4, "started": 2.0, "ended": 3.0, "attempt": 5},
    **{"restarts": 6, "tasks": ({"job": "worker", "index": 0},), "supervisor": {"host": "h", "pid": 1}},
    **{"stop": "enough", "owner": "me", "submitter": "ann", "details": {"tags": ["a"], "parameters": {"lr": 0.1}}},
}


async def test_a_run_comes_back_as_it_was(store: RunStore) -> None:
    for run in (a_run(), a_run("full", **FULL)):
        assert await store.add(run)
        assert await store.get(run.id) == run
        assert await store.by_submission(run.submission_id) == run
    assert await store.get("none") is None
    assert await store.by_submission("none") is None


async def test_a_submission_is_one_run(store: RunStore) -> None:
    assert await store.add(a_run())
    assert not await store.add(a_run("other", submission_id="submission r"))
    assert await store.get("other") is None


async def test_a_change_is_made_on_the_version_that_was_read(store: RunStore) -> None:
    run, changed = a_run(), a_run(**FULL)
    await store.add(run)
    await store.add(a_run("other"))
    assert await store.save(run, changed)
    assert not await store.save(run, replace(changed, reason="late"))
    assert await store.get("r") == changed
    assert await store.get("other") == a_run("other")
    await store.remove("r")
    assert await store.get("r") is None
    assert await store.get("other") is not None
    assert not await store.save(changed, changed)


async def test_active_runs_have_their_reports_counted(store: RunStore) -> None:
    for state in RunState:
        await store.add(a_run(str(state), state=state))
    await store.count_report("RUNNING")
    await store.count_report("RUNNING")
    found = {run.id: reports for run, reports in await store.active()}
    assert found == {"PENDING": 0, "RUNNING": 2}


async def test_the_newest_of_a_prefix_is_found(store: RunStore) -> None:
    for name, submission, created in (
        ("a", "p%:1", 5.0),
        ("b", "p%:2", 7.0),
        ("c", "p%:3", 7.0),
        ("d", "pq:4", 9.0),
    ):
        await store.add(a_run(name, submission_id=submission, created=created))
    newest = await store.newest("p%:")
    assert newest is not None
    assert newest.id == "c"
    assert await store.newest("q") is None


async def test_pages_go_from_the_newest_to_the_oldest(store: RunStore) -> None:
    for name, created in (("a", 1.0), ("b", 2.0), ("c", 2.0), ("d", 3.0)):
        state = RunState.FAILED if name == "c" else RunState.RUNNING
        await store.add(a_run(name, created=created, state=state))

    async def page(limit: int, after: tuple[str | float, ...] | None = None, *states: RunState) -> str:
        return "".join(run.id for run in await store.page(states, limit, after))

    assert await page(9) == "dcba"
    assert await page(2) == "dc"
    assert await page(9, (2.0, "c")) == "ba"
    assert await page(9, (2.0, "b")) == "a"
    assert await page(9, (1.0, "a")) == ""
    assert await page(9, None, RunState.FAILED) == "c"
    assert await page(9, None, RunState.FAILED, RunState.RUNNING) == "dcba"
    assert await page(1, (3.0, "d"), RunState.RUNNING) == "b"
