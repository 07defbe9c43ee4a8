"""Blocking calls to masters from the event loop: a bounded pool of threads, one connection per target,
loss of a task noticed at once.

Called by session_service.py. A `MasterInterface` blocks, and each call has its deadline, which begins before it waits
for a thread; the pool bounds how many run, the backlog how many wait. Closing a session has threads of its own. When a
task is lost while a call to it runs, the caller gets the error at once, and the thread ends by its deadline.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from tenfold_control_api.problems import ApiError, from_op_error
from tenfold_core import errors, telemetry
from tenfold_core.access.credentials import Credentials
from tenfold_core.access.task_tokens import service_token
from tenfold_core.access.tokens import Token, TokenSet, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.session.master_interface import MasterInterface
    from tenfold_control_api.cluster import Task
    from tenfold_core.access.credentials import AccessSettings
    from tenfold_core.access.roles import Role

    class MasterFactory(Protocol):
        """Makes the connection to a target, for callers of that role, which shows what `known` says."""

        def __call__(
            self, target: str, as_role: Role | None = None, known: Registered | None = None, /
        ) -> MasterInterface: ...


class Registered(NamedTuple):
    """What the service may show to a task: what nobody else can use, or what the task has shown itself."""

    #: The lease that the task made up itself.
    lease: str | None
    #: Who registered a task that made up none: the digest of a token, in hexadecimal digits.
    registrar: str | None

    @classmethod
    def of(cls, task: Task) -> Registered:
        return cls(task.lease_id if task.own_lease else None, None if task.own_lease else task.registrar)

    def shown(self, tokens: TokenSet) -> TokenSet:
        """The token to show, of the service's `tokens`; an empty set: none. Never one that could be used elsewhere by
        who registered the task and could not have used it before."""
        if self.lease is not None:
            text = service_token(self.lease)
            return TokenSet([(text, Token(digest_of(text)))])
        return TokenSet(line for line in tokens.lines if line[0] is not None and line[1].digest.hex() == self.registrar)


T = TypeVar("T")
#: A connection: its target, the role that it asks with, if that is a lesser one, and what it shows.
Where: TypeAlias = "tuple[str, Role | None, Registered | None]"

#: Unused connections are kept up to this many.
_KEPT = 64
#: Threads for closing sessions.
_CLOSERS = 4
#: A call that was started gets so long beyond its limit for its own error; LinkMaster takes a second of it.
_OVERTIME = 2.0
#: Seconds that a call is given at least: one that starts at the last moment ends by its own time-out.
_LEAST = 0.001


def link_masters(access: AccessSettings, tokens: Callable[[], TokenSet] | None = None) -> MasterFactory:
    """What gives the master at `grpc://host:port`, to whom the certificate of `access` is shown, and of its tokens (by
    default `tokens`) what `Registered` says: never one that opens anything else, for anybody may have registered there.
    It connects on the first call; steps go over a link where there can be one."""
    own = access.credentials()
    good = tokens or own.tokens

    def link_master(target: str, as_role: Role | None = None, known: Registered | None = None, /) -> MasterInterface:
        from tenfold.session.link_master import LinkMaster

        shown = Credentials(TokenSet if known is None else lambda: known.shown(good()), own.certificates)
        return LinkMaster(target, access=shown, as_role=as_role)

    return link_master


class Masters:
    """The connections and the threads. Used from one event loop."""

    def __init__(self, factory: MasterFactory, *, threads: int, backlog: int) -> None:
        self._factory = factory
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="control-master-call")
        #: Closing a session ends the steps that hold the other threads, so it never waits for one of them.
        self._closing = ThreadPoolExecutor(_CLOSERS, thread_name_prefix="control-master-close")
        self._threads = threads
        self._limit = threads + backlog
        self._open: dict[Where, MasterInterface] = {}
        #: Calls in a pool by connection, including those whose caller already got the error of a lost task.
        self._busy: Counter[Where] = Counter()
        #: Those of them that close a session; the limit does not count them.
        self._closers = 0
        self._calls: set[asyncio.Future[Any]] = set()

    @property
    def running(self) -> int:
        return self._busy.total()

    async def call(
        self,
        target: str,
        work: Callable[[MasterInterface, float], T],
        *,
        limit: float,
        task: str,
        lost: asyncio.Future[str] | None = None,
        closing: bool = False,
        as_role: Role | None = None,
        known: Registered | None = None,
    ) -> T:
        """Runs `work(master, seconds left)` in a thread; ends after `limit` seconds, time in the queue included.
        `as_role` has a connection of its own, over which the master is asked for somebody of that role; `known` says
        what is shown there.

        Raises the ApiError of the OpError that it raised; UNAVAILABLE as soon as `lost` is set; RESOURCE_EXHAUSTED
        without having run anything when too many calls wait; DEADLINE_EXCEEDED that says whether it was started.
        """
        if not closing and self.running - self._closers >= self._limit:
            raise ApiError(
                "too-many-calls",
                f"{self.running} calls to masters are running or waiting: the limit is {self._limit}. Send the "
                f"request later.",
                extra={"outcome": "not-run"},
                headers={"Retry-After": "1"},
            )
        deadline = time.monotonic() + limit
        where = (target, as_role, known)
        master = self._master(where)
        self._busy[where] += 1
        self._closers += closing
        # The thread's own future: cancelling it tells for certain whether the call was started.
        submitted = (self._closing if closing else self._pool).submit(
            telemetry.bound(lambda: work(master, max(_LEAST, deadline - time.monotonic())))
        )
        future = asyncio.wrap_future(submitted)
        self._calls.add(future)
        future.add_done_callback(lambda done: self._finished(where, done, closing))
        waiting: set[asyncio.Future[Any]] = {future} if lost is None else {future, lost}
        done, _ = await asyncio.wait(waiting, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        if not done and not submitted.cancel():
            # started: the master's own error, about to come, names what it waited for
            done, _ = await asyncio.wait(waiting, timeout=_OVERTIME, return_when=asyncio.FIRST_COMPLETED)
        if submitted.cancelled() and lost not in done:
            raise ApiError(
                "call-not-started",
                f"the call to {task} waited {limit:g} s for one of {_CLOSERS if closing else self._threads} threads "
                "and was not started.",
                task=task,
                extra={"outcome": "not-run"},
            )
        if lost is not None and lost.done() and not future.done():
            begun = not submitted.cancel()
            if begun:
                self.forget(where)  # frees the thread, which would wait for the lost task until its deadline
            raise ApiError(
                "task-lost",
                f"{lost.result()} while a call to its master was {'running' if begun else 'waiting for its turn'}.",
                task=task,
                retryable=not begun,
                missing_tasks=[task],
                extra={} if begun else {"outcome": "not-run"},
            )
        if not future.done():
            raise ApiError("call-unanswered", f"{task} did not answer within {limit:g} s.", task=task)
        try:
            return future.result()
        except errors.OpError as error:
            raise from_op_error(error, task=task) from error

    def _master(self, where: Where) -> MasterInterface:
        if where not in self._open:
            for idle in [t for t in self._open if not self._busy[t]][: max(0, len(self._open) - _KEPT + 1)]:
                self._open.pop(idle).close()
            self._open[where] = self._factory(*where) if where[2] is not None else self._factory(*where[:2])
        return self._open[where]

    def _finished(self, where: Where, done: asyncio.Future[T], closing: bool) -> None:
        self._calls.discard(done)
        self._closers -= closing
        self._busy[where] -= 1
        if not self._busy[where]:
            del self._busy[where]
        if not done.cancelled():
            done.exception()  # read, so that asyncio does not log the exception of a call whose caller has gone

    def forget(self, where: Where) -> None:
        """Closes the connection to a task that is gone; its calls end with CancelledError."""
        if (master := self._open.pop(where, None)) is not None:
            master.close()

    async def close(self, grace: float) -> None:
        """1 closes every connection, which ends the calls · 2 waits at most `grace` for their threads."""
        for where in list(self._open):
            self.forget(where)
        if self._calls:
            await asyncio.wait(self._calls, timeout=grace)
        for pool in (self._pool, self._closing):
            pool.shutdown(wait=False, cancel_futures=True)
