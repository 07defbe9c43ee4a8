"""The answers given under each Idempotency-Key, kept in the database. Rows in, rows out; idempotency.py decides.

A row is written before the request is worked on and completed before it is answered. A crash in between (kill -9
included) therefore leaves a row without an answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from tenfold_control_api.database import first_row
from tenfold_control_api.schema import answers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from sqlalchemy.ext.asyncio import AsyncEngine


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A row. `status` is None while the request runs; `body` is None, too, when it was too large to keep."""

    fingerprint: str
    owner: str
    created: float
    status: int | None
    headers: Sequence[tuple[str, str]]
    body: bytes | None


class AnswerStore:
    """The table of answers."""

    def __init__(self, engine: AsyncEngine, owner: str, now: Callable[[], float]) -> None:
        """`owner` names this process, anew at every start; `now` is the time of service_time.py."""
        self._engine = engine
        self.owner = owner
        self._now = now

    async def begin(self, key: str, fingerprint: str) -> StoredAnswer | None:
        """Takes the key for this request. None if this request has it now; else the row that is there."""
        row = {"key": key, "fingerprint": fingerprint, "state": "running", "owner": self.owner, "created": self._now()}
        try:
            async with self._engine.begin() as db:
                await db.execute(insert(answers).values(row))
            return None
        except IntegrityError:
            return await self.get(key)

    async def get(self, key: str) -> StoredAnswer | None:
        row = await first_row(self._engine, select(answers).where(answers.c.key == key))
        if row is None:
            return None
        headers = [(name, value) for name, value in json.loads(row["headers"] or "[]")]
        return StoredAnswer(row["fingerprint"], row["owner"], row["created"], row["status"], headers, row["body"])

    async def take_over(self, key: str, owner: str) -> bool:
        """Takes the key from a process that has ended. False if another process took it first."""
        where = (answers.c.key == key, answers.c.state == "running", answers.c.owner == owner)
        async with self._engine.begin() as db:
            result = await db.execute(update(answers).where(*where).values(owner=self.owner, created=self._now()))
            return bool(result.rowcount == 1)

    async def finish(self, key: str, status: int, headers: Sequence[tuple[str, str]], body: bytes | None) -> None:
        values = {"state": "done", "status": status, "headers": json.dumps(headers), "body": body}
        async with self._engine.begin() as db:
            await db.execute(update(answers).where(answers.c.key == key).values(values))

    async def drop(self, key: str) -> None:
        """Deletes the key's row: the request did nothing, so the next one under this key may run."""
        async with self._engine.begin() as db:
            await db.execute(delete(answers).where(answers.c.key == key))

    async def forget(self, age: float, living: Collection[str]) -> None:
        """Deletes what is older, but for what a process of `living` still works on."""
        over = or_(answers.c.state == "done", answers.c.owner.not_in(list(living)))
        async with self._engine.begin() as db:
            await db.execute(delete(answers).where(answers.c.created < self._now() - age, over))
