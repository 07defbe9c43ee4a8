"""Runs as rows. No decision is made here; `save` is a compare-and-set on the version, as for clusters."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from tenfold_control_api.database import first_row, in_parts
from tenfold_control_api.runs.record import RunRecord
from tenfold_control_api.schema import diffs, runs
from tenfold_core.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncEngine

_ACTIVE = (str(RunState.PENDING), str(RunState.RUNNING))


class RunStore:
    """The table of runs. A method that returns has committed."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def add(self, run: RunRecord, diff: str | None = None) -> bool:
        """False if there is a run with that submission id. `diff`: of its working directory."""
        try:
            async with self._engine.begin() as db:
                await db.execute(insert(runs).values({"reports": 0, **_row(run)}))
                if diff:
                    await db.execute(insert(diffs).values(run=run.id, diff=diff))
        except IntegrityError:
            return False
        return True

    async def get(self, run_id: str) -> RunRecord | None:
        return await self._one(runs.c.id == run_id)

    async def by_submission(self, submission_id: str) -> RunRecord | None:
        return await self._one(runs.c.submission_id == submission_id)

    async def newest(self, prefix: str) -> RunRecord | None:
        """The newest run whose submission id begins so."""
        chosen = select(runs).where(runs.c.submission_id.startswith(prefix, autoescape=True))
        newest = chosen.order_by(runs.c.created.desc(), runs.c.id.desc()).limit(1)
        row = await first_row(self._engine, newest)
        return None if row is None else _record(row)

    async def save(self, old: RunRecord, new: RunRecord) -> bool:
        """False, with nothing written, when somebody else changed the run since `old`."""
        where = (runs.c.id == old.id, runs.c.version == old.version)
        async with self._engine.begin() as db:
            return bool((await db.execute(update(runs).where(*where).values(_row(new)))).rowcount == 1)

    async def remove(self, run_id: str) -> None:
        async with self._engine.begin() as db:
            await db.execute(delete(runs).where(runs.c.id == run_id))
            await db.execute(delete(diffs).where(diffs.c.run == run_id))

    async def keep_diff(self, run_id: str, diff: str) -> None:
        """Keeps the diff of a run's working directory, in place of what there was."""
        async with self._engine.begin() as db:
            await db.execute(delete(diffs).where(diffs.c.run == run_id))
            if diff:
                await db.execute(insert(diffs).values(run=run_id, diff=diff))

    async def diff(self, run_id: str) -> str:
        """The diff of the run's working directory; empty where there is none."""
        row = await first_row(self._engine, select(diffs).where(diffs.c.run == run_id))
        return "" if row is None else str(row["diff"])

    async def active(self) -> list[tuple[RunRecord, int]]:
        """The runs that have not ended, and how many reports each has had (for replicas)."""
        async with self._engine.connect() as db:
            rows = await db.execute(select(runs).where(runs.c.state.in_(_ACTIVE)))
            return [(_record(row), row["reports"]) for row in rows.mappings()]

    async def count(self) -> int:
        """How many runs there are."""
        async with self._engine.connect() as db:
            return int(await db.scalar(select(func.count()).select_from(runs)) or 0)

    async def page(
        self, states: Sequence[RunState], limit: int, after: tuple[str | float, ...] | None
    ) -> list[RunRecord]:
        """The newest runs first, after (created, id) of the last one of the page before."""
        chosen = select(runs).order_by(runs.c.created.desc(), runs.c.id.desc()).limit(limit)
        if states:
            chosen = chosen.where(runs.c.state.in_([str(state) for state in states]))
        if after is not None:
            older, same = runs.c.created < after[0], (runs.c.created == after[0]) & (runs.c.id < after[1])
            chosen = chosen.where(or_(older, same))
        async with self._engine.connect() as db:
            return [_record(row) for row in (await db.execute(chosen)).mappings()]

    async def versions(self) -> dict[str, int]:
        """The version of every run: a cheap way to see which have changed."""
        async with self._engine.connect() as db:
            return {run_id: version for run_id, version in (await db.execute(select(runs.c.id, runs.c.version))).all()}

    async def overview(self, run_ids: Sequence[str]) -> list[RunRecord]:
        """Those runs, as far as they are not deleted, in any order; without what takes most room and nobody looks for:
        tasks, supervisors, and environments."""
        columns = [column for column in runs.c if column.name not in ("tasks", "supervisor")]
        rows: list[Any] = []
        async with self._engine.connect() as db:
            for part in in_parts(run_ids):
                rows += (await db.execute(select(*columns).where(runs.c.id.in_(part)))).mappings().all()
        return await asyncio.to_thread(lambda: [_outline(row) for row in rows])

    async def several(self, run_ids: Sequence[str]) -> list[RunRecord]:
        """Those runs, in that order; without those that are deleted."""
        async with self._engine.connect() as db:
            rows = (await db.execute(select(runs).where(runs.c.id.in_(list(run_ids))))).mappings().all()
        found = {row["id"]: _record(row) for row in rows}
        return [found[run_id] for run_id in run_ids if run_id in found]

    async def count_report(self, run_id: str) -> None:
        """Tells the other replicas that the run's supervisor is alive."""
        async with self._engine.begin() as db:
            await db.execute(update(runs).where(runs.c.id == run_id).values(reports=runs.c.reports + 1))

    async def _one(self, condition: Any) -> RunRecord | None:
        row = await first_row(self._engine, select(runs).where(condition))
        return None if row is None else _record(row)


def _row(run: RunRecord) -> dict[str, Any]:
    return {
        "id": run.id,
        "submission_id": run.submission_id,
        "fingerprint": run.fingerprint,
        "launcher": run.launcher,
        "submission": json.dumps(dict(run.submission)),
        "created": run.created,
        "state": str(run.state),
        "reason": run.reason,
        "version": run.version,
        "started": run.started,
        "ended": run.ended,
        "attempt": run.attempt,
        "restarts": run.restarts,
        "tasks": json.dumps([dict(task) for task in run.tasks]),
        "supervisor": None if run.supervisor is None else json.dumps(dict(run.supervisor)),
        "stop": run.stop,
        "owner": run.owner,
        "submitter": run.submitter,
        "details": json.dumps(dict(run.details)),
    }


def _record(row: Any) -> RunRecord:
    values = {key: row[key] for key in _PLAIN}
    return RunRecord(
        **values,
        submission=json.loads(row["submission"]),
        details=json.loads(row["details"]),
        state=RunState(row["state"]),
        tasks=tuple(json.loads(row["tasks"])),
        supervisor=None if row["supervisor"] is None else json.loads(row["supervisor"]),
    )


def _outline(row: Any) -> RunRecord:
    run = _record({**row, "tasks": "[]", "supervisor": None})
    return replace(run, submission={name: value for name, value in run.submission.items() if name in _OUTLINE})


#: The members of a submission that runs are listed by.
_OUTLINE = ("entrypoint", "jobs")
_PLAIN = (
    *("id", "submission_id", "fingerprint", "launcher", "created", "reason", "version", "started", "ended", "attempt"),
    *("restarts", "stop", "owner", "submitter"),
)
