"""The progress of all runs: kept in memory, written to the database a moment later, many tasks in one transaction.

A report is answered before it is on the disk: it is news, not a promise. What is lost when the service is killed is the
last moment of a curve. Used by service.py.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, select

from tenfold_control_api.runs.progress import TaskProgress
from tenfold_control_api.schema import progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.ext.asyncio import AsyncEngine

Key = tuple[str, str, int]


class ProgressTable:
    """Used on one event loop."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        #: The runs that this process hears of.
        self._runs: dict[str, dict[tuple[str, int], TaskProgress]] = {}
        self._changed: set[Key] = set()

    async def add(self, run_id: str, job: str, index: int, report: Mapping[str, Any], now: float) -> None:
        """Keeps one report."""
        tasks = self._runs.get(run_id)
        if tasks is None:
            loaded = await self._load([run_id])
            tasks = self._runs.setdefault(run_id, loaded[run_id])
        task = tasks.get((job, index))
        if task is None:
            task = tasks[job, index] = TaskProgress(job, index)
        task.add(report, now)
        self._changed.add((run_id, job, index))

    async def of(self, run_id: str) -> list[TaskProgress]:
        """What the run's programs reported, by task."""
        return (await self.of_all([run_id]))[run_id]

    async def of_all(self, run_ids: Sequence[str]) -> dict[str, list[TaskProgress]]:
        """The same for several runs."""
        loaded = await self._load([run_id for run_id in run_ids if run_id not in self._runs])
        found = {run_id: self._runs.get(run_id) or loaded.get(run_id, {}) for run_id in run_ids}
        return {run_id: [tasks[key] for key in sorted(tasks)] for run_id, tasks in found.items()}

    async def newest(self) -> dict[str, list[TaskProgress]]:
        """The newest of what the programs of all runs reported, by run and task; their curves have but one point."""
        columns = (progress.c.run, progress.c.job, progress.c.task_index, progress.c.newest)
        async with self._engine.connect() as db:
            rows = (await db.execute(select(*columns))).all()
        older = await self._load(list({row.run for row in rows if row.newest is None and row.run not in self._runs}))
        found = await asyncio.to_thread(_read_newest, rows)
        found.update({run: list(tasks.values()) for run, tasks in (older | self._runs).items()})
        return found

    async def stored(self, run_id: str) -> list[TaskProgress]:
        """What the database has, whichever replica wrote it."""
        return list((await self._load([run_id]))[run_id].values())

    async def flush(self) -> None:
        """Writes what has changed."""
        changed, self._changed = self._changed, set()
        rows = [
            {
                **{"run": run_id, "job": job, "task_index": index},
                **{"body": json.dumps(task.to_json()), "newest": json.dumps(task.newest())},
            }
            for run_id, job, index in changed
            if (task := self._runs.get(run_id, {}).get((job, index))) is not None
        ]
        if not rows:
            return
        try:
            async with self._engine.begin() as db:
                for row in rows:
                    where = (progress.c[name] == row[name] for name in ("run", "job", "task_index"))
                    await db.execute(delete(progress).where(*where))
                await db.execute(insert(progress), rows)
        except BaseException:
            self._changed |= changed
            raise

    def release(self, run_id: str) -> None:
        """The run has ended and is written: it is read from the database from now on."""
        if not any(key[0] == run_id for key in self._changed):
            self._runs.pop(run_id, None)

    async def forget(self, run_id: str) -> None:
        """The run is deleted."""
        self._runs.pop(run_id, None)
        self._changed = {key for key in self._changed if key[0] != run_id}
        async with self._engine.begin() as db:
            await db.execute(delete(progress).where(progress.c.run == run_id))

    async def _load(self, run_ids: Sequence[str]) -> dict[str, dict[tuple[str, int], TaskProgress]]:
        found: dict[str, dict[tuple[str, int], TaskProgress]] = {run_id: {} for run_id in run_ids}
        if not found:
            return found
        async with self._engine.connect() as db:
            rows = (await db.execute(select(progress).where(progress.c.run.in_(list(found))))).mappings().all()
        for row in rows:
            key = row["job"], row["task_index"]
            found[row["run"]][key] = TaskProgress.from_json(*key, json.loads(row["body"]))
        return found


def _read_newest(rows: Sequence[Any]) -> dict[str, list[TaskProgress]]:
    found: defaultdict[str, list[TaskProgress]] = defaultdict(list)
    for row in rows:
        if row.newest is not None:
            found[row.run].append(TaskProgress.from_newest(row.job, row.task_index, json.loads(row.newest)))
    return dict(found)
