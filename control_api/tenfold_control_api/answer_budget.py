"""What stored answers and their keys take, of each caller and together, and what has to go. Pure.

Used by answer_store.py. A key guards a request against a second run, so none is ever given up before its time: new ones
are refused. An answer may go before its time: the oldest of the caller that is above its share, else of the one that
has most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold_control_api.problems import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_control_api.service_settings import Settings

#: As soon as something goes, so much of a limit goes: else each further answer would have to look for one to replace.
_SPARE = 8


@dataclass(slots=True)
class _Taken:
    keys: int = 0
    size: int = 0


class AnswerBudget:
    """Counts of one process. Other services on the same database are seen when `recount` is called."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        #: Caller (None: not known) → what it takes.
        self._taken: dict[str | None, _Taken] = {}
        self._keys = self._size = 0

    def recount(self, rows: Iterable[tuple[str | None, int, int]]) -> None:
        """What the database holds: (caller, keys, bytes)."""
        self._taken = {caller: _Taken(keys, size) for caller, keys, size in rows}
        self._keys = sum(each.keys for each in self._taken.values())
        self._size = sum(each.size for each in self._taken.values())

    def require_key(self, caller: str | None) -> None:
        """Raises RESOURCE_EXHAUSTED where there may be no further key."""
        mine = self._taken.get(caller)
        if mine is not None and mine.keys >= self._settings.max_keys_per_caller:
            held, limit, whose = mine.keys, self._settings.max_keys_per_caller, "of this caller "
        elif self._keys >= self._settings.max_keys:
            held, limit, whose = self._keys, self._settings.max_keys, ""
        else:
            return
        raise ApiError(
            "too-many-keys",
            f"{held} Idempotency-Keys {whose}are remembered: the limit is {limit}. Each is for "
            f"{self._settings.idempotency_memory:g} s. The request was not worked on.",
            extra={"outcome": "not-run"},
            headers={"Retry-After": "60"},
        )

    def add(self, caller: str | None, *, keys: int = 0, size: int = 0) -> None:
        taken = self._taken.setdefault(caller, _Taken())
        taken.keys += keys
        taken.size += size
        self._keys += keys
        self._size += size

    def excess(self, caller: str | None) -> tuple[str | None, int] | None:
        """Once an answer of `caller` was kept: whose oldest answers have to go, and how many bytes; None: nobody's."""
        limit, mine = self._settings.max_stored_answers_per_caller, self._taken.get(caller, _Taken())
        if mine.size > limit:
            return caller, mine.size - limit + limit // _SPARE
        limit = self._settings.max_stored_answers
        if self._size > limit:
            most = max(self._taken, key=lambda each: self._taken[each].size)
            return most, min(self._taken[most].size, self._size - limit + limit // _SPARE)
        return None
