"""Sessions as values, and which of them are over: the pure half of session_service.py.

A record is what the database keeps. `OpenSessions` keeps the last use of each, by the service's monotonic clock: a
restarted service counts every session's idle time from its own start.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tenfold_control_api.cluster import Cluster, TaskState
from tenfold_control_api.problems import ApiError
from tenfold_core.device import task_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_control_api.leases import Clock


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session on one task's master. Bound to that task's incarnation: a restarted master does not have it."""

    id: str
    cluster: str
    job: str
    index: int
    incarnation: str
    target: str
    handle: str
    graph_version: int
    created: float
    #: The principal that opened it; None where that was not kept.
    owner: str | None = None

    @property
    def master(self) -> str:
        return task_name(self.job, self.index)

    def standing(self, cluster: Cluster | None) -> tuple[str, str]:
        """(ready | lost, why), from the state of the master's task in the registry now."""
        task = None if cluster is None else cluster.tasks.get((self.job, self.index))
        if task is None:
            return "lost", f"{self.master} is no longer part of cluster {self.cluster!r}"
        if task.incarnation != self.incarnation:
            return "lost", f"{self.master} was restarted (incarnation {task.incarnation}); its sessions ended with it"
        if task.state is not TaskState.READY:
            return "lost", f"{self.master} is {task.state}: {task.reason}"
        return "ready", f"{self.master} is ready"

    def require_ready(self, cluster: Cluster | None) -> None:
        """Raises UNAVAILABLE (the task may come back) or ABORTED (this session cannot)."""
        state, why = self.standing(cluster)
        if state == "ready":
            return
        task = None if cluster is None else cluster.tasks.get((self.job, self.index))
        gone = task is None or task.incarnation != self.incarnation
        raise ApiError(
            "session-gone" if gone else "session-lost",
            f"session {self.id} cannot be used: {why}." + (" Create a new session." if gone else ""),
            task=self.master,
            missing_tasks=cluster.missing if cluster is not None else (),
        )


@dataclass(slots=True)
class _Use:
    record: SessionRecord
    started: float
    used: float
    #: Calls in flight; a session with one is never idle.
    running: int = 0


class OpenSessions:
    """The open sessions, their last use, the limit on their number. Never blocks."""

    def __init__(
        self, clock: Clock, *, limit: int, idle_timeout: float, ttl: float, limit_per_caller: int | None = None
    ) -> None:
        """`limit_per_caller` is `limit` where it is not given."""
        self._clock = clock
        self._limit, self._limit_per_caller = limit, limit if limit_per_caller is None else limit_per_caller
        self._idle = idle_timeout
        self._ttl = ttl
        self._open: dict[str, _Use] = {}
        #: Places taken by sessions that are being created, by their owner.
        self._reserved: Counter[str | None] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[SessionRecord]:
        return (use.record for use in self._open.values())

    def has_room(self, owner: str | None = None) -> bool:
        """Whether there may be another session of that principal, those that are being created counted."""
        return not self._full(owner)

    def reserve(self, owner: str | None = None) -> None:
        """Reserves a place for a session of that principal; `unreserve` ends the reservation, after `add` or without.
        Raises RESOURCE_EXHAUSTED."""
        if why := self._full(owner):
            raise ApiError("too-many-sessions", f"{why}. DELETE sessions that are not needed.")
        self._reserved[owner] += 1

    def _full(self, owner: str | None) -> str:
        """Why there is no room; "" where there is."""
        mine = sum(use.record.owner == owner for use in self._open.values())
        for count, coming, limit, whose in (
            (len(self._open), self._reserved.total(), self._limit, ""),
            (mine, self._reserved[owner], self._limit_per_caller, " of this caller"),
        ):
            if count + coming >= limit:
                return f"{count} sessions{whose} are open and {coming} are being created: the limit is {limit}"
        return ""

    def unreserve(self, owner: str | None = None) -> None:
        self._reserved[owner] -= 1
        if not self._reserved[owner]:
            del self._reserved[owner]

    def add(self, record: SessionRecord) -> None:
        now = self._clock()
        self._open[record.id] = _Use(record, now, now)

    def get(self, session_id: str) -> SessionRecord:
        """Raises NOT_FOUND."""
        use = self._open.get(session_id)
        if use is None:
            raise ApiError(
                "no-such-session",
                f"there is no session {session_id!r}: it was never created, was closed, or expired after "
                f"{self._idle:g} s without use.",
            )
        return use.record

    def replace(self, session_id: str, *, graph_version: int) -> SessionRecord:
        """Records the graph's new version."""
        use = self._open[session_id]
        use.record = replace(use.record, graph_version=graph_version)
        return use.record

    def begin(self, session_id: str) -> None:
        """A call starts. Raises NOT_FOUND."""
        self.get(session_id)
        self._open[session_id].running += 1

    def end(self, session_id: str) -> None:
        """A call is over. The session may be gone meanwhile."""
        if (use := self._open.get(session_id)) is not None:
            use.running -= 1
            use.used = self._clock()

    def remove(self, session_id: str) -> SessionRecord | None:
        use = self._open.pop(session_id, None)
        return None if use is None else use.record

    def idle_for(self, session_id: str) -> float:
        use = self._open[session_id]
        return 0.0 if use.running else max(0.0, self._clock() - use.used)

    def expired(self) -> list[tuple[SessionRecord, str]]:
        """Sessions to close now, each with the reason. They stay until `remove`."""
        now = self._clock()
        over: list[tuple[SessionRecord, str]] = []
        for use in self._open.values():
            if now - use.started >= self._ttl:
                over.append((use.record, f"the session is older than {self._ttl:g} s"))
            elif not use.running and now - use.used >= self._idle:
                over.append((use.record, f"the session was not used for {self._idle:g} s"))
        return over
