"""Requests that come twice: a client that lost its connection sends the same RunStep again, with the same number.

What is asked (a step, a callable's run, setting up a partial run or a callable) is done at most once for each number.
The second request waits for the first or gets its answer; where the answer was too large to keep, or the first was
cancelled, it gets AbortedError and nothing runs. Used by master.py.
Where a bound is reached, the principal with most entries loses its oldest, so one principal cannot push out another's.
TensorFlow's request_id.h only refuses the second request.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

T = TypeVar("T")

#: Entries that are looked at for each one that comes: enough, though many run, to forget faster than new ones come.
_LOOKS = 64


@dataclass(slots=True)
class _Entry(Generic[T]):
    """Either `pending` is set, or exactly one of the others; none of them means that the answer was not kept."""

    pending: asyncio.Future[None] | None = None
    answer: T | None = None
    error: errors.OpError | None = None
    size: int = 0


@dataclass(slots=True)
class _Group(Generic[T]):
    """What one principal asked for."""

    entries: OrderedDict[Hashable, _Entry[T]] = field(default_factory=OrderedDict)
    #: Keys of entries with an answer, oldest first; a subset of entries.
    answered: OrderedDict[Hashable, None] = field(default_factory=OrderedDict)
    bytes: int = 0


class RecentRequests(Generic[T]):
    """Bounded in every direction: how many numbers, how many answers, how many bytes of answers.

    A request is known by its principal, `by`, and its key.
    """

    def __init__(self, max_requests: int, max_answers: int, max_bytes: int, size_of: Callable[[T], int]) -> None:
        self._max_requests, self._max_answers, self._max_bytes = max_requests, max_answers, max_bytes
        self._size_of = size_of
        #: By principal; none of them is empty.
        self._groups: dict[str, _Group[T]] = {}
        #: Over all groups.
        self._requests = self._answers = self._bytes = 0

    async def run(self, key: Hashable, work: Callable[[], Awaitable[T]], by: str = "") -> T:
        """The outcome of `work`, or of the earlier work with the same key."""
        group = self._groups.get(by)
        earlier = None if group is None else group.entries.get(key)
        if earlier is not None:
            return await self._again(key, earlier)
        pending = asyncio.get_running_loop().create_future()
        entry = self._add(key, by, pending)
        try:
            answer = await work()
        except errors.OpError as e:
            # a copy: the exception itself keeps all that the step held
            entry.error = errors.from_code(e.code, e.message)
            raise
        else:
            self._keep(key, entry, answer, by)
            return answer
        finally:
            pending.set_result(None)
            entry.pending = None
            self._forget_oldest()

    def knows(self, key: Hashable, by: str = "") -> bool:
        """Whether a request with this key came before."""
        group = self._groups.get(by)
        return group is not None and key in group.entries

    def note(self, key: Hashable, answer: T | None, error: errors.OpError | None = None, by: str = "") -> None:
        """A new request was served at once: with `answer`, or `error`."""
        entry = self._add(key, by)
        if error is not None:
            entry.error = errors.from_code(error.code, error.message)
        elif answer is not None:
            self._keep(key, entry, answer, by)
        self._forget_oldest()

    def _add(self, key: Hashable, by: str, pending: asyncio.Future[None] | None = None) -> _Entry[T]:
        entry: _Entry[T] = _Entry(pending)
        self._groups.setdefault(by, _Group()).entries[key] = entry
        self._requests += 1
        return entry

    async def _again(self, key: Hashable, entry: _Entry[T]) -> T:
        if entry.pending is not None:
            await asyncio.shield(entry.pending)
        if entry.error is not None:
            raise errors.from_code(entry.error.code, entry.error.message)
        if entry.answer is not None:
            return entry.answer
        raise errors.aborted(
            f"The same request was received twice ({key}). It is not run again, and the answer to the first one is no "
            "longer there."
        )

    def _keep(self, key: Hashable, entry: _Entry[T], answer: T, by: str) -> None:
        entry.size = self._size_of(answer)
        if entry.size > self._max_bytes // 4:
            return
        entry.answer = answer
        group = self._groups[by]  # it holds the entry, which is kept while it is pending
        group.answered[key] = None
        group.bytes += entry.size
        self._answers += 1
        self._bytes += entry.size
        while self._answers > self._max_answers:
            most = max(self._groups.values(), key=lambda group: len(group.answered))
            self._forget_answer(most, next(iter(most.answered)))
        while self._bytes > self._max_bytes:
            most = max(self._groups.values(), key=lambda group: group.bytes)
            self._forget_answer(most, next(iter(most.answered)))

    def _forget_answer(self, group: _Group[T], key: Hashable) -> None:
        del group.answered[key]
        entry = group.entries[key]
        entry.answer = None
        group.bytes -= entry.size
        self._bytes -= entry.size
        self._answers -= 1

    def _forget_oldest(self) -> None:
        """Those that run stay, as if they had come last: one that waits for hours must not keep all that come after."""
        for _ in range(_LOOKS):
            if self._requests <= self._max_requests:
                return
            by, most = max(self._groups.items(), key=lambda named: len(named[1].entries))
            key, entry = next(iter(most.entries.items()))
            if entry.pending is not None:
                most.entries.move_to_end(key)
                continue
            if key in most.answered:
                self._forget_answer(most, key)
            del most.entries[key]
            self._requests -= 1
            if not most.entries:
                del self._groups[by]
