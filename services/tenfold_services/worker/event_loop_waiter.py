"""Waits on the event loop for one run of a part: receives what it wants, takes its turns, ends it with its step.

No asyncio task waits: each arrival, on the event loop's thread, takes the run (part_run.py) as far as it goes, so that
a tensor that comes over a link is computed with before the next frame is looked at. A stretch that may be long computes
in the pool. Made by graph_run.py. `receive` waits for one tensor alone: for other tasks, and for partial runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from tenfold_core import errors
from tenfold_core.rendezvous_key import parse_key

from .part_run import DONE, LONG
from .run_policy import EVENT_LOOP

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from concurrent.futures import Future

    from ..interfaces import Value
    from ..limits import Limits
    from .part_run import PartRun
    from .rendezvous import Rendezvous
    from .step_pool import Job, StepPool


class Arrivals:
    """Holds runs back while the tensors of one frame are handed out: a run goes on once, with all of its own.

    `with arrivals:` around the handing out. On the loop's thread only; never waits.
    """

    __slots__ = ("_depth", "_held")

    def __init__(self) -> None:
        self._held: dict[EventLoopWaiter, None] = {}
        self._depth = 0

    def hold(self, waiter: EventLoopWaiter) -> bool:
        """Whether the waiter goes on later."""
        if self._depth:
            self._held[waiter] = None
            return True
        return False

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if not self._depth and self._held:
            held, self._held = self._held, {}
            for waiter in held:
                waiter.go_on()


class RunsWorker(Protocol):
    """What a run and its waiter need of their task: graph_manager.py."""

    task: str
    limits: Limits
    #: Where long stretches compute.
    pool: StepPool
    arrivals: Arrivals

    async def recv_remote(self, task: str, step_id: int, key: str) -> tuple[Value, bool]:
        """Asks another task for a tensor."""

    def began(self) -> None:
        """A run starts."""

    def over(self) -> None:
        """A run has ended."""

    def forget_step(self, rendezvous: Rendezvous) -> None:
        """No task will ask for a tensor of this step any more."""


class EventLoopWaiter:
    """Waits for one run. One use each. On the loop's thread, but for the callbacks that say otherwise.

    `start` begins; `ended` is called once, on the loop's thread and maybe before `start` returns: with None once every
    node has run, else with the exception that ended the run. Nothing of the waiter stays behind then, but for a kernel
    in the pool that cannot be stopped.
    """

    __slots__ = (
        "_ended", "_expected", "_job", "_local", "_loop", "_owner", "_pumping", "_remote", "_rendezvous", "_run",
        "_thread", "_worker",
    )  # fmt: skip

    def __init__(
        self,
        worker: RunsWorker,
        run: PartRun,
        rendezvous: Rendezvous,
        owner: str,
        expected: Collection[str],
        ended: Callable[[BaseException | None], None],
    ) -> None:
        """`owner` is the session for which the pool counts the run. `expected` are keys that other tasks push: they are
        waited for, not asked for.
        """
        self._worker, self._rendezvous, self._owner = worker, rendezvous, owner
        self._expected, self._ended = expected, ended
        #: None at the end.
        self._run: PartRun | None = run
        run.receive, run.wake = self._receive, self._woken
        #: What the pool works on.
        self._job: Job | None = None
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        #: `_pump` is on the stack: arrivals are only noted.
        self._pumping = False
        #: Receives from other tasks, and local ones as (key, callback), that have not ended.
        self._remote: set[asyncio.Task[None]] = set()
        self._local: dict[str, Callable[..., None]] = {}

    def start(self) -> None:
        """Takes the run as far as it goes now."""
        self._pumping = True
        self._rendezvous.listen(self._step_aborted)
        self._pumping = False
        self.go_on()

    def go_on(self) -> None:
        """Takes the run as far as it goes. Not entered twice."""
        run = self._run
        if self._pumping or run is None:
            return
        if self._job is not None:
            if run.error is not None:
                # a kernel that computes is not waited for
                self._end(run.error)
            return
        self._pumping = True
        try:
            turn = run.turn(EVENT_LOOP)
            if turn == LONG:
                self._advance_in_pool(run)
        except Exception as error:
            self._end(error)
        else:
            if turn == DONE:
                self._end(None)
            self._pumping = False

    def _advance_in_pool(self, run: PartRun) -> None:
        self._job = self._worker.pool.submit(self._owner, run.advance)
        run.leave()

        def over(job: asyncio.Future[None]) -> None:
            self._job = None
            run.came_back(errors.cancelled("Step was cancelled.") if job.cancelled() else job.exception())
            self.go_on()

        asyncio.wrap_future(self._job.future).add_done_callback(over)

    def _end(self, error: BaseException | None) -> None:
        assert self._run is not None
        self._run = None
        if self._job is not None:
            self._worker.pool.let_go(self._job)
        self._rendezvous.unlisten(self._step_aborted)
        for key, done in self._local.items():
            self._rendezvous.cancel_recv(key, done)
        self._local.clear()
        for receiver in self._remote:
            receiver.cancel()
        self._ended(error)

    # -- arrivals ----------------------------------------------------------------------------------------------------

    def _receive(self, key: str) -> None:
        if key not in self._expected:
            parsed = parse_key(key)
            task = parsed.send_task
            if task != self._worker.task:
                receiver = self._loop.create_task(
                    self._receive_remote(key, task), name=f"recv:{task};{parsed.tensor_name}"
                )
                self._remote.add(receiver)
                receiver.add_done_callback(self._remote.discard)
                return
        done = self._local[key] = partial(self._local_done, key)
        self._rendezvous.recv(key, done)

    async def _receive_remote(self, key: str, task: str) -> None:
        try:
            value, is_dead = await self._worker.recv_remote(task, self._rendezvous.step_id, key)
        except errors.OpError as error:
            self._failed(_from_task(error, task))
        except Exception as error:  # a bug of ours must end the step, not hang it
            self._failed(errors.internal(f"Receiving {key} failed with {type(error).__name__}: {error}"))
        else:
            self._arrived(key, value, is_dead)

    def _local_done(self, key: str, value: Value, is_dead: bool, error: errors.OpError | None) -> None:
        """The rendezvous' callback; any thread."""
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self._local_done, key, value, is_dead, error)
            return
        self._local.pop(key, None)
        if error is not None:
            self._failed(error)
        else:
            self._arrived(key, value, is_dead)

    def _arrived(self, key: str, value: Value, is_dead: bool) -> None:
        if self._run is not None:
            self._run.arrived(key, value, is_dead)
            if not self._worker.arrivals.hold(self):
                self.go_on()

    def _woken(self) -> None:
        """A blocking kernel's result has come; any thread. Another step's kernel may have completed it and stands on
        the stack: the run goes on later, else a chain of steps that feed each other would nest without end.
        """
        if threading.get_ident() == self._thread:
            self._loop.call_soon(self.go_on)
        else:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and the step with it
                self._loop.call_soon_threadsafe(self.go_on)

    def _step_aborted(self, error: errors.OpError) -> None:
        """The rendezvous' callback; any thread."""
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self._failed, error)
        else:
            self._failed(error)

    def _failed(self, error: errors.OpError) -> None:
        if self._run is not None:
            self._run.fail(error)
            self.go_on()


def _from_task(error: errors.OpError, task: str) -> errors.OpError:
    """A producer's error as its consumer reports it: says where it comes from, once."""
    if error.message.startswith("From /job:") or task in error.message:
        return error
    return errors.from_code(error.code, f"From {task}:\n{error.message}", error.node_def, None)


def settle(future: asyncio.Future[Any] | Future[Any], result: Any, error: errors.OpError | None) -> None:
    """Ends a future with the error, else with the result, unless it has ended. An asyncio one: on its loop's thread."""
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


async def receive(rendezvous: Rendezvous, key: str) -> tuple[Value, bool]:
    """The tensor and whether it is dead. Raises what ends the step first; cancelling the caller withdraws its wish."""
    loop, thread = asyncio.get_running_loop(), threading.get_ident()
    future: asyncio.Future[tuple[Value, bool]] = loop.create_future()

    def done(value: Any, is_dead: bool, error: errors.OpError | None) -> None:
        if threading.get_ident() == thread:
            settle(future, (value, is_dead), error)
        else:
            loop.call_soon_threadsafe(settle, future, (value, is_dead), error)

    rendezvous.recv(key, done)
    try:
        return await future
    except asyncio.CancelledError:
        rendezvous.cancel_recv(key, done)
        raise
