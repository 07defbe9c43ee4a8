"""The progress of runs: in memory at once, in the database a moment later, and read from where it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select

from support.small_database import small_database
from tenfold_control_api.runs.progress_table import ProgressTable
from tenfold_control_api.schema import progress

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tenfold_control_api.database import Database


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Database]:
    async with small_database(tmp_path) as opened:
        yield opened


def report(steps: int) -> dict[str, Any]:
    rates = {"global_step": None, "steps_per_second": None, "examples_per_second": None}
    return {"steps": steps, "figures": {}, "points": [], "checkpoints": [], "logdirs": [], **rates}


async def stored(engine: Database) -> dict[tuple[str, str, int], int]:
    async with engine.connect() as db:
        rows = (await db.execute(select(progress))).mappings().all()
    return {(row["run"], row["job"], row["task_index"]): json.loads(row["body"])["steps"] for row in rows}


async def test_a_report_is_known_at_once_and_written_by_a_flush(engine: Database) -> None:
    table = ProgressTable(engine)
    for job, index, steps in (("worker", 1, 5), ("worker", 0, 3), ("chief", 0, 9)):
        await table.add("r", job, index, report(steps), 7.0)

    found = await table.of("r")
    assert [(task.job, task.index, task.steps, task.updated) for task in found] == [
        ("chief", 0, 9, 7.0),
        ("worker", 0, 3, 7.0),
        ("worker", 1, 5, 7.0),
    ]
    assert await stored(engine) == {}
    assert await table.stored("r") == []
    await table.flush()
    assert await stored(engine) == {("r", "chief", 0): 9, ("r", "worker", 0): 3, ("r", "worker", 1): 5}
    assert {task.steps for task in await table.stored("r")} == {3, 5, 9}


async def test_a_flush_writes_what_changed_alone(engine: Database) -> None:
    table = ProgressTable(engine)
    await table.add("r", "worker", 0, report(1), 7.0)
    await table.add("r", "worker", 1, report(1), 7.0)
    await table.flush()
    async with engine.begin() as db:
        await db.execute(progress.delete().where(progress.c.task_index == 1))
    await table.add("r", "worker", 0, report(2), 8.0)
    await table.flush()
    assert await stored(engine) == {("r", "worker", 0): 2}
    await table.flush()
    assert await stored(engine) == {("r", "worker", 0): 2}


async def test_a_flush_that_fails_is_made_up_for(engine: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ProgressTable(engine)
    await table.add("r", "worker", 0, report(1), 7.0)

    def broken() -> Any:
        raise OSError("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(table, "_engine", type("Away", (), {"begin": staticmethod(broken)}))
        with pytest.raises(OSError, match="away"):
            await table.flush()
    await table.flush()
    assert await stored(engine) == {("r", "worker", 0): 1}


async def test_what_another_service_wrote_is_gone_on_with(engine: Database) -> None:
    first = ProgressTable(engine)
    await first.add("r", "worker", 0, report(1), 7.0)
    await first.add("other", "worker", 0, report(4), 7.0)
    await first.flush()

    table = ProgressTable(engine)
    await table.add("r", "worker", 1, report(2), 8.0)

    assert [(task.index, task.steps) for task in await table.of("r")] == [(0, 1), (1, 2)]
    found = await table.of_all(["r", "other", "none"])
    assert {run_id: [task.steps for task in tasks] for run_id, tasks in found.items()} == {
        "r": [1, 2],
        "other": [4],
        "none": [],
    }
    assert await table.of_all([]) == {}


async def test_a_run_that_is_over_is_read_from_the_database_once_it_is_written(engine: Database) -> None:
    table = ProgressTable(engine)
    await table.add("r", "worker", 0, report(1), 7.0)
    await table.add("other", "worker", 0, report(1), 7.0)
    table.release("r")
    assert [task.steps for task in await table.of("r")] == [1]
    await table.flush()
    await table.add("other", "worker", 0, report(2), 7.0)
    table.release("r")
    table.release("none")
    async with engine.begin() as db:
        await db.execute(progress.delete())
    assert await table.of("r") == []
    assert [task.steps for task in await table.of("other")] == [2]


async def test_a_deleted_run_is_forgotten_everywhere(engine: Database) -> None:
    table = ProgressTable(engine)
    for run_id in ("r", "other"):
        await table.add(run_id, "worker", 0, report(1), 7.0)
    await table.flush()
    for run_id in ("r", "other"):
        await table.add(run_id, "worker", 0, report(2), 8.0)
    await table.forget("r")
    assert await table.of("r") == []
    await table.flush()
    assert await stored(engine) == {("other", "worker", 0): 2}
