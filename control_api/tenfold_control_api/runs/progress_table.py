"""The progress of all runs: kept in memory, written to the database a moment later, many tasks in one transaction.

A report is answered before it is on the disk: it is news, not a promise. What is lost when the service is killed is the
last moment of a curve. Used by service.py.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, insert, select

from tenfold_control_api.database import in_parts
from tenfold_control_api.runs.progress import TaskProgress
from tenfold_control_api.schema import newest, progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Table
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

    def here(self, run_id: str) -> bool:
        """Whether this process hears of the run: it knows more than the database."""
        return run_id in self._runs

    async def marks(self) -> dict[str, tuple[float, int]]:
        """For each run something that is different once one of its tasks has reported again and that is written."""
        # a sum, because replicas write the tasks of one run, and not in the order of their reports
        marked = select(newest.c.run, func.sum(newest.c.updated), func.count()).group_by(newest.c.run)
        async with self._engine.connect() as db:
            return {run_id: (moments, tasks) for run_id, moments, tasks in (await db.execute(marked)).all()}

    async def newest_of(self, run_ids: Sequence[str]) -> dict[str, list[TaskProgress]]:
        """As `of_all`, but each curve has its newest point alone, and of checkpoints there is the last one. Reads no
        curve, so it is for lists."""
        found: dict[str, list[TaskProgress]] = {
            run_id: [tasks[key] for key in sorted(tasks)] for run_id in run_ids if (tasks := self._runs.get(run_id))
        }
        wanted = [run_id for run_id in run_ids if run_id not in found]
        rows: list[Any] = []
        async with self._engine.connect() as db:
            for part in in_parts(wanted):
                chosen = select(newest).where(newest.c.run.in_(part))
                rows += (await db.execute(chosen.order_by(newest.c.job, newest.c.task_index))).all()
        nothing: dict[str, list[TaskProgress]] = {run_id: [] for run_id in wanted}
        return nothing | await asyncio.to_thread(_read_newest, rows) | found

    async def stored(self, run_id: str) -> list[TaskProgress]:
        """What the database has, whichever replica wrote it."""
        return list((await self._load([run_id]))[run_id].values())

    async def flush(self) -> None:
        """Writes what has changed."""
        changed, self._changed = self._changed, set()
        rows: dict[Table, list[dict[str, Any]]] = {progress: [], newest: []}
        for run_id, job, index in changed:
            if (task := self._runs.get(run_id, {}).get((job, index))) is None:
                continue
            key = {"run": run_id, "job": job, "task_index": index}
            rows[progress].append({**key, "body": json.dumps(task.to_json())})
            rows[newest].append({**key, "updated": task.updated, "body": json.dumps(task.newest())})
        if not rows[progress]:
            return
        try:
            async with self._engine.begin() as db:
                for table, written in rows.items():
                    for row in written:
                        where = (table.c[name] == row[name] for name in ("run", "job", "task_index"))
                        await db.execute(delete(table).where(*where))
                    await db.execute(insert(table), written)
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
            for table in (progress, newest):
                await db.execute(delete(table).where(table.c.run == run_id))

    async def _load(self, run_ids: Sequence[str]) -> dict[str, dict[tuple[str, int], TaskProgress]]:
        found: dict[str, dict[tuple[str, int], TaskProgress]] = {run_id: {} for run_id in run_ids}
        if not found:
            return found
        async with self._engine.connect() as db:
            for part in in_parts(list(found)):
                for row in (await db.execute(select(progress).where(progress.c.run.in_(part)))).mappings():
                    key = row["job"], row["task_index"]
                    found[row["run"]][key] = TaskProgress.from_json(*key, json.loads(row["body"]))
        return found


def _read_newest(rows: Sequence[Any]) -> dict[str, list[TaskProgress]]:
    found: defaultdict[str, list[TaskProgress]] = defaultdict(list)
    for row in rows:
        found[row.run].append(TaskProgress.from_newest(row.job, row.task_index, json.loads(row.body)))
    return dict(found)
