"""Copies from the host beside the kernels: on a stream of their own, into blocks that nothing else uses.

    kernels   ── step 1, reads block A ──┬── step 2, reads block B ──┬── step 3, reads block A …
    copies     A ┘    into block B ──────┘          into block A ────┘
                                            once step 1, which read it, is over

A copy into memory of the pool would have to wait for all kernels that were launched before: the block may be one that
they still read. So blocks that are copied to are kept here, some of each size. One is free once no array holds it; an
event then says when all has run that was launched until then, and the next copy into it waits for that alone. What is
launched after a copy waits for the copy, so memory still needs no thought anywhere else, and a block that is given back
to the pool is one like all others: in the order of the kernels' stream, its copy is over.

Pure: streams and events are its user's. _driver.py gives it CuPy's, tests/cuda/test_feeds.py some that run in
any order that events allow.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

#: Free blocks of one size that are kept: one is read while the next is copied to.
_OF_A_SIZE = 2


class Event(Protocol):
    #: Whether it has happened. Never blocks.
    done: bool


class Stream(Protocol):
    """What is put on it runs in order. Never blocks."""

    def record(self) -> Event:
        """An event: all that is on it by now has run."""
        ...

    def wait_event(self, event: Event) -> None:
        """What is put on it from now on runs after the event."""
        ...


class FeedBlocks:
    """The blocks of one GPU. Any thread."""

    def __init__(self, kernels: Stream, copies: Stream, allocate: Callable[[int], Any], most_bytes: int) -> None:
        """`allocate` gives so many bytes of the pool, in the order of the kernels' stream; free blocks of at most
        `most_bytes` are kept.
        """
        self._kernels, self._copies, self._allocate, self._most_bytes = kernels, copies, allocate, most_bytes
        #: Re-entrant: a block may be collected, and come back, while another one is taken.
        self._lock = threading.RLock()
        #: (size, memory, event after all that read it), of the free ones, the longest free first.
        self._free: list[tuple[int, Any, Event]] = []

    def take(self, nbytes: int) -> Any:
        """Memory for a copy of so many bytes: what is put on the copies' stream from now on may write it."""
        with self._lock:
            places = self._of(nbytes)
            found = self._free.pop(places[0]) if places and self._may_have(places) else None
        memory = self._allocate(nbytes) if found is None else found[1]
        # one of the pool may be read by anything that was launched until now
        self._copies.wait_event(self._kernels.record() if found is None else found[2])
        return memory

    def copied(self) -> None:
        """What is put on the kernels' stream from now on runs after all that is on the copies' one."""
        self._kernels.wait_event(self._copies.record())

    def give_back(self, nbytes: int, memory: Any) -> None:
        """No array holds that memory any more: all that reads it was launched."""
        with self._lock:
            self._free.append((nbytes, memory, self._kernels.record()))
            places = self._of(nbytes)
            if len(places) > _OF_A_SIZE:
                del self._free[places[0]]
            while sum(size for size, _, _ in self._free) > self._most_bytes:
                del self._free[0]

    def _may_have(self, places: list[int]) -> bool:
        """Whether the one that is free for longest is the one to take: not while it is read, where another one may be
        made.
        """
        return len(places) >= _OF_A_SIZE or self._free[places[0]][2].done

    def _of(self, nbytes: int) -> list[int]:
        return [place for place, (size, _, _) in enumerate(self._free) if size == nbytes]

    def clear(self) -> bool:
        """Gives all free blocks to the pool; whether there were some."""
        with self._lock:
            had_some = bool(self._free)
            self._free.clear()
        return had_some
