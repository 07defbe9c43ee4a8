"""Sweeps as rows. No decision is made here; `save` is a compare-and-set on the version, as for runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from tenfold_control_api.database import first_row
from tenfold_control_api.schema import sweeps
from tenfold_control_api.sweeps.record import SweepRecord
from tenfold_core.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncEngine

_PLAIN = ("name", "fingerprint", "created", "reason", "version", "ended", "stop", "owner", "submitter")
#: Written once.
_FIXED = ("definition", "points", "details")


class SweepStore:
    """The table of sweeps. A method that returns has committed."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def add(self, sweep: SweepRecord) -> bool:
        """False if there is a sweep of that name."""
        fixed = {name: json.dumps(getattr(sweep, name)) for name in _FIXED}
        try:
            async with self._engine.begin() as db:
                await db.execute(insert(sweeps).values({**_row(sweep), **fixed}))
        except IntegrityError:
            return False
        return True

    async def get(self, name: str) -> SweepRecord | None:
        row = await first_row(self._engine, select(sweeps).where(sweeps.c.name == name))
        return None if row is None else _record(row)

    async def save(self, old: SweepRecord, new: SweepRecord) -> bool:
        """False, with nothing written, when somebody else changed the sweep since `old`."""
        where = (sweeps.c.name == old.name, sweeps.c.version == old.version)
        async with self._engine.begin() as db:
            return bool((await db.execute(update(sweeps).where(*where).values(_row(new)))).rowcount == 1)

    async def remove(self, name: str) -> None:
        async with self._engine.begin() as db:
            await db.execute(delete(sweeps).where(sweeps.c.name == name))

    async def active(self) -> list[SweepRecord]:
        """The sweeps that have not ended, the oldest first."""
        chosen = select(sweeps).where(sweeps.c.state == str(RunState.RUNNING))
        async with self._engine.connect() as db:
            rows = (await db.execute(chosen.order_by(sweeps.c.created, sweeps.c.name))).mappings().all()
        return [_record(row) for row in rows]

    async def page(
        self, states: Sequence[RunState], limit: int, after: tuple[str | float, ...] | None
    ) -> list[SweepRecord]:
        """The newest sweeps first, after (created, name) of the last one of the page before."""
        chosen = select(sweeps).order_by(sweeps.c.created.desc(), sweeps.c.name.desc()).limit(limit)
        if states:
            chosen = chosen.where(sweeps.c.state.in_([str(state) for state in states]))
        if after is not None:
            older, same = sweeps.c.created < after[0], (sweeps.c.created == after[0]) & (sweeps.c.name < after[1])
            chosen = chosen.where(or_(older, same))
        async with self._engine.connect() as db:
            return [_record(row) for row in (await db.execute(chosen)).mappings()]


def _row(sweep: SweepRecord) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(sweep, name) for name in _PLAIN}
    return {**row, "state": str(sweep.state), "trials": json.dumps(sweep.trials)}


def _record(row: Any) -> SweepRecord:
    return SweepRecord(
        **{name: row[name] for name in _PLAIN},
        **{name: json.loads(row[name]) for name in _FIXED},
        state=RunState(row["state"]),
        trials=tuple(json.loads(row["trials"])),
    )
