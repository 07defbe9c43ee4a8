"""Events as rows. The database gives the ids, so that replicas share one order."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, insert, select, text

from tenfold_control_api.events.event import Event
from tenfold_control_api.schema import events

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

#: PostgreSQL's lock of who adds events. Any number will do that is not the one of migrations.
_WRITING = 0x7E_4F_0E7


class EventStore:
    """The table of events. A method that returns has committed."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def add(self, fresh: Sequence[Event]) -> list[Event]:
        """Writes events in their order; the same with their ids."""
        written: list[Event] = []
        async with self.writing() as db:
            for event in fresh:
                row = {
                    "time": event.time,
                    "kind": event.kind,
                    "action": event.action,
                    "object": event.object,
                    "message": event.message,
                    "cluster": event.cluster,
                    "run": event.run,
                    "data": json.dumps(dict(event.data)),
                    "owner": event.owner,
                }
                key = (await db.execute(insert(events).values(row))).inserted_primary_key
                assert key is not None
                written.append(replace(event, id=int(key[0])))
        return written

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that adds events; one at a time. Else one with higher ids might be seen first, and a reader
        that went on from there would never see the others."""
        async with self._engine.begin() as db:
            if db.dialect.name != "sqlite":
                await db.execute(select(func.pg_advisory_xact_lock(_WRITING)))
            yield db

    async def after(self, last: int, limit: int) -> list[Event]:
        """The events after `last`, in order."""
        chosen = select(events).where(events.c.id > last).order_by(events.c.id).limit(limit)
        async with self._engine.connect() as db:
            return [_event(row) for row in (await db.execute(chosen)).mappings()]

    async def bounds(self) -> tuple[int, int]:
        """The id of the oldest event that there is, and the last one that was given, also where that event is
        forgotten; without any event (last + 1, last)."""
        async with self.writing() as db:  # no id has been given that cannot be seen yet
            last = await db.run_sync(last_given)
            first = await db.scalar(select(func.min(events.c.id)))
            return first or last + 1, last

    async def forget(self, before: float) -> None:
        """Deletes what is older."""
        async with self._engine.begin() as db:
            await db.execute(delete(events).where(events.c.time < before))


def last_given(db: Connection) -> int:
    """The highest id that an event has had; 0 before the first one."""
    if db.dialect.name == "sqlite":
        return int(db.scalar(text(f"SELECT seq FROM sqlite_sequence WHERE name = '{events.name}'")) or 0)
    sequence = db.scalar(select(func.pg_get_serial_sequence(events.name, "id")))
    last, called = db.execute(text(f"SELECT last_value, is_called FROM {sequence}")).one()
    return int(last) if called else 0


def go_on_after(db: Connection, last: int) -> None:
    """No event gets an id up to `last` from now on."""
    if not last:
        return
    if db.dialect.name == "sqlite":
        db.execute(text(f"DELETE FROM sqlite_sequence WHERE name = '{events.name}'"))
        db.execute(text(f"INSERT INTO sqlite_sequence (name, seq) VALUES ('{events.name}', :last)"), {"last": last})
    else:
        db.execute(select(func.setval(func.pg_get_serial_sequence(events.name, "id"), last)))


def _event(row: Any) -> Event:
    return Event(
        row["kind"],
        row["action"],
        row["object"],
        row["message"],
        row["time"],
        row["cluster"],
        row["run"],
        json.loads(row["data"]),
        row["id"],
        row["owner"],
    )
