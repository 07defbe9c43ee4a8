"""The blocking face of a TaskServer: an event loop on a thread of its own.

`tf.train.Server` and in-process sessions are made of it. Every method may be called from any thread but the loop's.
The loop is asyncio's own, but that it spins for a moment before it sleeps where that pays (tenfold_link.spin_wait): a
parameter server gets its next request some 50 µs after it has answered the last one.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import selectors
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tenfold_core import errors
from tenfold_link.spin_wait import SpinWait

from .figures import task_figures

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine

    from tenfold_core.cluster_spec import ClusterLike
    from tenfold_protos.why_pb2 import TaskAnswer
    from tenfold_services.master.master import Master

    from .interfaces import TaskName
    from .server import TaskServer

T = TypeVar("T")

#: Seconds for opening a port and starting a thread.
_START_SECONDS = 60.0


class SpinningSelector(selectors.DefaultSelector):
    """A selector that polls for a moment before it sleeps, as long as events come soon."""

    def __init__(self) -> None:
        super().__init__()
        self._spin, self._poll = SpinWait(), partial(super().select, 0)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """As `BaseSelector.select`."""
        if timeout is None or timeout > 0:
            ready = self._spin.wait(self._poll)
            if ready:
                return ready
        return super().select(timeout)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop for a task's server; the caller closes it."""
    return asyncio.SelectorEventLoop(SpinningSelector())


class BackgroundServer:
    """A TaskServer on its own thread.

    The thread is a daemon: for an orderly end call `stop`, or use `with`.
    """

    def __init__(self, server: TaskServer) -> None:
        """`server` was not started yet."""
        #: The server itself; its coroutines belong on its loop (`call`).
        self.server = server
        self.task, self.hold_lease = server.task, server.hold_lease
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        #: Guards start and stop.
        self._lock = threading.Lock()
        #: Whether `stop` was called: the server did not end, or not only, by itself.
        self.stopped_by_caller = False
        self._ended = threading.Event()

    @property
    def target(self) -> str:
        """ "grpc://localhost:PORT"; "" without a listener."""
        return self.server.target

    @property
    def port(self) -> int:
        return self.server.port

    @property
    def insecure(self) -> bool:
        """Whether anyone who reaches the port is accepted."""
        return self.server.insecure

    @property
    def master(self) -> Master:
        """The master; its coroutines belong on the server's loop (`call`)."""
        return self.server.master

    def start(self) -> None:
        """Starts serving; returns once the port is open. Raises what TaskServer.start raises. Twice is no error."""
        with self._lock:
            if self._thread is not None:
                return
            started: concurrent.futures.Future[None] = concurrent.futures.Future()
            self._thread = threading.Thread(
                target=self._serve, args=(started,), name=f"tenfold-server{self.task.replace('/', '-')}", daemon=True
            )
            self._thread.start()
            started.result(_START_SECONDS)

    def stop(self, grace: float = 0.0, *, finished: bool = False, why: str = "is shutting down") -> None:
        """Stops serving: running steps get `grace` seconds. Bounded; idempotent; no error before `start`.

        `finished` and `why` as in TaskServer.stop.
        """
        self.stopped_by_caller = True
        with self._lock:
            loop, thread = self._loop, self._thread
            if loop is None or thread is None or self._ended.is_set():
                self._ended.set()
                return
            bound = grace + 2 * self.server.limits.stop_seconds
            # a failure here does no harm: the loop waits for the server's end, which is bounded there
            with contextlib.suppress(TimeoutError, concurrent.futures.CancelledError, RuntimeError):
                asyncio.run_coroutine_threadsafe(self.server.stop(grace, finished=finished, why=why), loop).result(
                    bound
                )
            thread.join(bound)
            self._ended.set()

    def join(self, *, with_workers: bool = False) -> bool:
        """Blocks until the server has stopped. Raises FailedPreconditionError if it was never started.

        `with_workers`: it stops by itself once the tasks that it serves have finished. Whether it did.
        """
        if self._thread is None:
            raise errors.failed_precondition(f"The server of {self.task} was not started.")
        if with_workers:
            self.end_with_workers(True)
        self._ended.wait()
        return self.server.ended_with_workers and not self.stopped_by_caller

    def end_with_workers(self, wanted: bool) -> None:
        """Whether the server stops by itself once the tasks that it serves have finished. Never blocks."""
        self._soon(partial(self.server.end_with_workers, wanted))

    def figures(self) -> dict[str, Any]:
        """What this task counts, for its heartbeat; see figures.py. Never blocks, whatever the loop does. Raises
        FailedPreconditionError before `start`."""
        return task_figures(self.server)

    def why(self) -> TaskAnswer:
        """What this task knows of why nothing goes on, without the threads of this process; see why.py. Never blocks,
        whatever the loop does. Raises FailedPreconditionError before `start`."""
        return self.server.why(stacks=False)

    def answers(self, seconds: float) -> bool:
        """Whether the server's loop comes to something new within `seconds`; blocks until then at most."""
        came = threading.Event()
        self._soon(came.set)
        return came.wait(seconds)

    def step_waits(self, session_handle: str, seconds: float) -> list[str]:
        """What steps of a session wait for, on any task of its cluster. Blocks for `seconds` at most; raises
        TimeoutError after that, and what `call` raises."""
        return self.call(lambda: self.server.step_waits(session_handle), seconds)

    def declare_ended(self, finished: Collection[TaskName], lost: Collection[TaskName]) -> None:
        """Takes over which tasks have finished and which are lost by the word of a control service. Never blocks."""
        self._soon(partial(self.server.finished.declare, finished, lost))

    def _soon(self, act: Callable[[], None]) -> None:
        """Calls `act` on the server's loop, unless that has ended."""
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(act)

    def call(self, start: Callable[[], Coroutine[Any, Any, T]], timeout: float | None = None) -> T:
        """Runs `start()`, a coroutine, on the server's loop and blocks for its result.

        Raises what the coroutine raises, TimeoutError after `timeout` seconds, UnavailableError when the server does
        not run (any more). An interrupt and a timeout cancel the coroutine.
        """
        loop = self._loop
        if loop is None or self._ended.is_set():
            raise self._not_running()
        if threading.current_thread() is self._thread:
            raise errors.failed_precondition(
                f"The thread of {self.task}'s server cannot wait for itself; await the coroutine there."
            )
        coroutine = start()
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, loop)
        except RuntimeError:
            coroutine.close()
            raise self._not_running() from None
        try:
            return future.result(timeout)
        except concurrent.futures.CancelledError:
            raise self._not_running() from None
        except BaseException:
            future.cancel()
            raise

    def update_cluster(self, cluster: ClusterLike | None) -> None:
        """TaskServer.update_cluster, on its loop."""

        async def update() -> None:
            self.server.update_cluster(cluster)

        self.call(update, self.server.limits.setup_seconds)

    def __enter__(self) -> BackgroundServer:
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def _serve(self, started: concurrent.futures.Future[None]) -> None:
        """The thread: one event loop from start to end."""
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._main(started))
        except BaseException as error:
            if not started.done():
                started.set_exception(error)
        finally:
            self._loop = None
            self._ended.set()

    async def _main(self, started: concurrent.futures.Future[None]) -> None:
        try:
            await self.server.start()
        except BaseException as error:
            started.set_exception(error)
            return
        self._loop = asyncio.get_running_loop()
        started.set_result(None)
        await self.server.wait_stopped()

    def _not_running(self) -> errors.OpError:
        return errors.unavailable(f"The server of {self.task} in this process does not run.")
