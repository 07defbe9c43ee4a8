"""Requests that come twice: a client that lost its connection sends the same RunStep again, with the same number.

What is asked (a step, a callable's run, setting up a partial run or a callable) is done at most once for each number.
The second request waits for the first or gets its answer; where the answer was too large to keep, or the first was
cancelled, it gets AbortedError and nothing runs. Used by master.py.
TensorFlow's request_id.h only refuses the second request.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
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


class RecentRequests(Generic[T]):
    """Bounded in every direction: how many numbers, how many answers, how many bytes of answers."""

    def __init__(self, max_requests: int, max_answers: int, max_bytes: int, size_of: Callable[[T], int]) -> None:
        self._max_requests = max_requests
        self._max_answers = max_answers
        self._max_bytes = max_bytes
        self._size_of = size_of
        self._entries: OrderedDict[Hashable, _Entry[T]] = OrderedDict()
        #: Keys of entries with an answer, oldest first; a subset of _entries.
        self._answered: OrderedDict[Hashable, None] = OrderedDict()
        self._bytes = 0

    async def run(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """The outcome of `work`, or of the earlier work with the same key."""
        earlier = self._entries.get(key)
        if earlier is not None:
            return await self._again(key, earlier)
        entry = self._entries[key] = _Entry(asyncio.get_running_loop().create_future())
        try:
            answer = await work()
        except errors.OpError as e:
            # a copy: the exception itself keeps all that the step held
            entry.error = errors.from_code(e.code, e.message)
            raise
        else:
            self._keep(key, entry, answer)
            return answer
        finally:
            if entry.pending is not None and not entry.pending.done():
                entry.pending.set_result(None)
            entry.pending = None
            self._forget_oldest()

    def knows(self, key: Hashable) -> bool:
        """Whether a request with this key came before."""
        return key in self._entries

    def note(self, key: Hashable, answer: T | None, error: errors.OpError | None = None) -> None:
        """A new request was served at once: with `answer`, or `error`."""
        entry = self._entries[key] = _Entry()
        if error is not None:
            entry.error = errors.from_code(error.code, error.message)
        elif answer is not None:
            self._keep(key, entry, answer)
        self._forget_oldest()

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

    def _keep(self, key: Hashable, entry: _Entry[T], answer: T) -> None:
        entry.size = self._size_of(answer)
        if entry.size > self._max_bytes // 4:
            return
        entry.answer = answer
        self._answered[key] = None
        self._bytes += entry.size
        while len(self._answered) > self._max_answers or self._bytes > self._max_bytes:
            oldest, _ = self._answered.popitem(last=False)
            self._bytes -= self._entries[oldest].size
            self._entries[oldest].answer = None

    def _forget_oldest(self) -> None:
        """Those that run stay, as if they had come last: one that waits for hours must not keep all that come after."""
        for _ in range(_LOOKS):
            if len(self._entries) <= self._max_requests:
                return
            key, entry = next(iter(self._entries.items()))
            if entry.pending is not None:
                self._entries.move_to_end(key)
                continue
            del self._entries[key]
            if key in self._answered:
                del self._answered[key]
                self._bytes -= entry.size
