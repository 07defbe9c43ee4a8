"""The answers given under each Idempotency-Key, kept in the database. Rows in, rows out; idempotency.py decides.

A row is written before the request is worked on and completed before it is answered. A crash in between (kill -9
included) therefore leaves a row without an answer.
"""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from tenfold_control_api.answer_budget import AnswerBudget
from tenfold_control_api.database import first_row
from tenfold_control_api.problems import ApiError
from tenfold_control_api.schema import answers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncEngine

    from tenfold_control_api.service_settings import Settings

log = logging.getLogger(__name__)

#: Answers that are given up in one transaction.
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A row. `status` is None while the request runs; `body` is None, too, when it was too large to keep, or was given
    up for others."""

    fingerprint: str
    owner: str
    created: float
    status: int | None
    headers: Sequence[tuple[str, str]]
    body: bytes | None


class AnswerStore:
    """The table of answers."""

    def __init__(self, engine: AsyncEngine, owner: str, now: Callable[[], float], settings: Settings) -> None:
        """`owner` names this process, anew at every start; `now` is the time of service_time.py."""
        self._engine = engine
        self.owner = owner
        self._now = now
        self._budget = AnswerBudget(settings)
        #: Whether there are keys from before they belonged to callers.
        self._has_former = False
        #: One at a time gives up answers.
        self._trimming = asyncio.Lock()

    async def start(self) -> None:
        """Counts what there is."""
        chosen = select(answers.c.principal, func.count(), func.sum(answers.c.size)).group_by(answers.c.principal)
        async with self._engine.connect() as db:
            rows = [(caller, keys, int(size)) for caller, keys, size in await db.execute(chosen)]
        self._budget.recount(rows)
        self._has_former = any(caller is None for caller, _, _ in rows)

    async def begin(self, key: str, fingerprint: str, principal: str) -> StoredAnswer | None:
        """Takes the key for this request of `principal`. None if this request has it now; else the row that is there.
        Raises RESOURCE_EXHAUSTED where no further key can be remembered."""
        try:
            self._budget.require_key(principal)
        except ApiError:
            if (known := await self.get(key)) is not None:
                return known
            raise
        row = {"key": key, "fingerprint": fingerprint, "state": "running", "owner": self.owner, "created": self._now()}
        try:
            async with self._engine.begin() as db:
                await db.execute(insert(answers).values({**row, "principal": principal}))
        except IntegrityError:
            return await self.get(key)
        self._budget.add(principal, keys=1)
        return None

    async def former(self, key: str) -> StoredAnswer | None:
        """The row under a key of before keys belonged to callers, which says nothing of whose it is."""
        if not self._has_former:
            return None
        row = await first_row(self._engine, select(answers).where(answers.c.key == key, answers.c.principal.is_(None)))
        return None if row is None else _answer(row)

    async def get(self, key: str) -> StoredAnswer | None:
        row = await first_row(self._engine, select(answers).where(answers.c.key == key))
        return None if row is None else _answer(row)

    async def take_over(self, key: str, owner: str) -> bool:
        """Takes the key from a process that has ended. False if another process took it first."""
        where = (answers.c.key == key, answers.c.state == "running", answers.c.owner == owner)
        async with self._engine.begin() as db:
            result = await db.execute(update(answers).where(*where).values(owner=self.owner, created=self._now()))
            return bool(result.rowcount == 1)

    async def finish(
        self, key: str, principal: str, status: int, headers: Sequence[tuple[str, str]], body: bytes | None
    ) -> None:
        """Keeps the answer (None: it is too large). Older ones are given up for it where there is no room."""
        told = json.dumps(headers)
        size = len(told) + len(body or b"")
        values = {"state": "done", "status": status, "headers": told, "body": body, "size": size}
        async with self._engine.begin() as db:
            await db.execute(update(answers).where(answers.c.key == key).values(values))
        self._budget.add(principal, size=size)
        if self._budget.excess(principal) is not None:
            try:
                await self._trim(principal)
            except (SQLAlchemyError, OSError):
                # this answer is kept; the next one tries it again
                log.exception("stored answers are above their limit, and none could be given up")

    async def _trim(self, principal: str) -> None:
        async with self._trimming:
            while (over := self._budget.excess(principal)) is not None:
                whose, wanted = over
                c = answers.c
                mine = c.principal.is_(None) if whose is None else c.principal == whose
                oldest = select(c.key, c.size).where(mine, c.size > 0).order_by(c.created).limit(_AT_ONCE)
                freed, keys = 0, []
                async with self._engine.begin() as db:
                    for key, size in (await db.execute(oldest)).all():
                        if freed >= wanted:
                            break
                        keys.append(key)
                        freed += size
                    # the key and the status stay
                    gone = {"body": None, "headers": None, "size": 0}
                    await db.execute(update(answers).where(c.key.in_(keys)).values(gone))
                if not keys:  # another service has given them up
                    await self.start()
                    return
                self._budget.add(whose, size=-freed)

    async def drop(self, key: str, principal: str) -> None:
        """Deletes the key's row: the request did nothing, so the next one under this key may run."""
        async with self._engine.begin() as db:
            await db.execute(delete(answers).where(answers.c.key == key))
        self._budget.add(principal, keys=-1)

    async def forget(self, age: float, living: Collection[str]) -> None:
        """Deletes what is older, but for what a process of `living` still works on."""
        over = or_(answers.c.state == "done", answers.c.owner.not_in(list(living)))
        async with self._engine.begin() as db:
            await db.execute(delete(answers).where(answers.c.created < self._now() - age, over))
        await self.start()


def _answer(row: RowMapping) -> StoredAnswer:
    headers = [(name, value) for name, value in json.loads(row["headers"] or "[]")]
    return StoredAnswer(row["fingerprint"], row["owner"], row["created"], row["status"], headers, row["body"])
