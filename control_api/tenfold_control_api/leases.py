"""The lease table: when each live lease ends, by this process's monotonic clock. Pure: no event loop, no database.

Used by cluster_table.py, which persists that a lease exists; *when* it ends is never persisted, because no clock is
shared between processes. A restarted service, or a replica that sees a lease for the first time, therefore grants it a
whole ttl. Replicas learn of each other's renewals by a counter that only grows (`observe`). Beside the deadline stands
what the holder last said of itself: its figures live as long as the lease, in this process alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenfold_control_api.figures import NewestFigures

Clock = Callable[[], float]


@dataclass(slots=True)
class _Entry:
    ttl: float
    deadline: float
    renewed: float
    #: The renewal counter last seen in the database; only replicas that share one need it.
    renewals: int
    #: What came with a renewal here, and when.
    figures: NewestFigures | None = None
    noted: float = 0.0


class LeaseTable:
    """Live leases and their deadlines. All times are those of `clock`. Not thread-safe; never blocks."""

    def __init__(self, clock: Clock, *, stall: float) -> None:
        """`stall`: if `expired` was not called for longer than this, the service itself was stopped (SIGSTOP, a
        suspended machine); every lease then gets that time in addition, as no renewal could arrive in it, but none
        more than its time to live: some were renewed since."""
        self._clock = clock
        self._stall = stall
        self._entries: dict[str, _Entry] = {}
        #: (deadline, id), lazily cleaned: an item is stale when the entry's deadline differs.
        self._heap: list[tuple[float, str]] = []
        self._looked = clock()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, lease_id: str) -> bool:
        return lease_id in self._entries

    def grant(self, lease_id: str, ttl: float, renewals: int = 0) -> None:
        """Starts a lease, or restarts it with another time to live."""
        now = self._clock()
        self._entries[lease_id] = _Entry(ttl, now + ttl, now, renewals)
        heapq.heappush(self._heap, (now + ttl, lease_id))

    def renew(self, lease_id: str) -> bool:
        """Moves the deadline to now + ttl. False when there is no such live lease; never revives one."""
        entry = self._entries.get(lease_id)
        if entry is None:
            return False
        entry.renewed = self._clock()
        entry.deadline = entry.renewed + entry.ttl
        heapq.heappush(self._heap, (entry.deadline, lease_id))
        if len(self._heap) > 64 + 8 * len(self._entries):
            self._heap = [(e.deadline, i) for i, e in self._entries.items()]
            heapq.heapify(self._heap)
        return True

    def note(self, lease_id: str, figures: NewestFigures) -> None:
        """Keeps the holder's newest figures until the lease ends; nothing for one that is not live."""
        entry = self._entries.get(lease_id)
        if entry is not None:
            entry.figures, entry.noted = figures, self._clock()

    def figures(self, lease_id: str | None) -> NewestFigures | None:
        """The holder's newest figures. None where none came for a whole ttl: it renews at another replica now."""
        entry = None if lease_id is None else self._entries.get(lease_id)
        if entry is None or self._clock() - entry.noted > entry.ttl:
            return None
        return entry.figures

    def observe(self, lease_id: str, ttl: float, renewals: int) -> None:
        """Applies the counter in the shared database: one that moved is a renewal made through another replica."""
        entry = self._entries.get(lease_id)
        if entry is None:
            self.grant(lease_id, ttl, renewals)
        elif renewals > entry.renewals:
            entry.renewals = renewals
            self.renew(lease_id)

    def renewals(self, lease_id: str) -> int:
        """The counter last observed; 0 for an unknown lease."""
        entry = self._entries.get(lease_id)
        return 0 if entry is None else entry.renewals

    def end(self, lease_id: str) -> None:
        """Forgets a lease; one that is not there is no error."""
        self._entries.pop(lease_id, None)

    def expired(self) -> list[str]:
        """The leases whose deadline has passed, earliest first. They stay in the table until `end`."""
        now = self._clock()
        gap, self._looked = now - self._looked, now
        if gap > self._stall:
            for lease_id, entry in self._entries.items():
                entry.deadline = min(entry.deadline + gap, now + entry.ttl)
                heapq.heappush(self._heap, (entry.deadline, lease_id))
        over: list[str] = []
        while self._heap and self._heap[0][0] <= now:
            deadline, lease_id = heapq.heappop(self._heap)
            held = self._entries.get(lease_id)
            # a lease that was renewed twice at one time is in the heap twice
            if held is not None and held.deadline == deadline and over[-1:] != [lease_id]:
                over.append(lease_id)
        for lease_id in over:
            # Left in the heap too: if the caller fails to end it (database away), the next call finds it again.
            heapq.heappush(self._heap, (self._entries[lease_id].deadline, lease_id))
        return over

    def next_look(self) -> float:
        """Seconds until the next deadline, 0 when one has passed; at most half of `stall`, so that
        `expired` is called regularly."""
        while self._heap:
            deadline, lease_id = self._heap[0]
            entry = self._entries.get(lease_id)
            if entry is not None and entry.deadline == deadline:
                return min(max(0.0, deadline - self._clock()), self._stall / 2)
            heapq.heappop(self._heap)
        return self._stall / 2

    def age(self, lease_id: str) -> float | None:
        """Seconds since the last renewal; None for a lease that is not live."""
        entry = self._entries.get(lease_id)
        return None if entry is None else max(0.0, self._clock() - entry.renewed)

    def remaining(self, lease_id: str) -> float | None:
        """Seconds until the deadline, never below 0; None for a lease that is not live."""
        entry = self._entries.get(lease_id)
        return None if entry is None else max(0.0, entry.deadline - self._clock())
