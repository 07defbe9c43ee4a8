"""Drives one execution: receives what it wants, runs it inline or in the pool, ends it with its step.

The asyncio rim of the pure machines (static_executor.py, dynamic_executor.py). Everything here runs on the event
loop's thread, but for `advance` of long programs, which runs in the pool; an execution is in one place at a time.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tenfold.framework import errors

from ..interfaces import Value
from .rendezvous import Rendezvous, parse_key

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from ..limits import Limits
    from .execution import Execution, Wanted
    from .program import Program

#: Receives a tensor from another task: (task, step_id, key) → (value, is_dead).
RemoteRecv = Callable[[str, int, str], Awaitable[tuple[Value, bool]]]


class StepDriver:
    """Runs one partition of one step. One use each.

    `run` ends in one of three ways: it returns once every node has run, it raises the step's first error, or it is
    cancelled; in all three no task of it stays behind.
    """

    def __init__(
        self,
        task: str,
        program: Program,
        rendezvous: Rendezvous,
        remote_recv: RemoteRecv,
        pool: ThreadPoolExecutor,
        limits: Limits,
    ) -> None:
        self._task, self._program, self._rendezvous = task, program, rendezvous
        self._remote_recv, self._pool, self._limits = remote_recv, pool, limits
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        #: Set while `run` waits for an arrival.
        self._wake: asyncio.Future[None] | None = None
        #: Arrived and not yet handed to the execution. Touched on the loop's thread only.
        self._inbox: deque[tuple[Any, Value, bool]] = deque()
        self._error: errors.OpError | None = None
        #: Nanoseconds that this step has spent in `advance`.
        self._spent = 0
        #: Receives from other tasks, and local ones as (key, callback), that have not ended.
        self._remote: set[asyncio.Task[None]] = set()
        self._local: dict[str, Callable[..., None]] = {}

    async def run(self, execution: Execution, stop: list[Any]) -> None:
        """Runs the execution to its end. Raises the OpError that ended the step on this task."""
        self._rendezvous.listen(self._step_aborted)
        try:
            while True:
                for wanted in execution.take_wanted():
                    self._receive(wanted)
                while self._inbox:
                    execution.arrived(*self._inbox.popleft())
                if self._error is not None:
                    raise self._error
                if execution.ready:
                    await self._advance(execution)
                elif execution.done:
                    self._program.note_time(self._spent)
                    return
                else:
                    await self._woken()
        finally:
            stop.append(True)
            self._rendezvous.unlisten(self._step_aborted)
            self._forget_receivers()

    async def _advance(self, execution: Execution) -> None:
        """One `advance`, inline or in the pool. Ends early, with the thread still running, when the step fails."""
        begin = perf_counter_ns()
        if self._spent < self._limits.inline_nanoseconds and self.runs_inline(self._program, self._limits):
            execution.advance()
        else:
            job = self._loop.run_in_executor(self._pool, execution.advance)
            job.add_done_callback(lambda _: self._notify())
            while not job.done() and self._error is None:
                await self._woken()
            if not job.done():
                job.add_done_callback(_ignore)
                return
            job.result()
        self._spent += perf_counter_ns() - begin

    @staticmethod
    def runs_inline(program: Program, limits: Limits) -> bool:
        """Whether the next run of the program belongs on the event loop's thread: the last ones were short."""
        return program.nanoseconds is not None and program.nanoseconds < limits.inline_nanoseconds

    async def _woken(self) -> None:
        """Returns once something arrives, fails or ends. The caller has looked at all three without awaiting since."""
        self._wake = self._loop.create_future()
        try:
            await self._wake
        finally:
            self._wake = None

    def _receive(self, wanted: Wanted) -> None:
        task = parse_key(wanted.key).send_task
        if task == self._task:
            done = partial(self._local_done, wanted)
            self._local[wanted.key] = done
            self._rendezvous.recv(wanted.key, done)
            return
        receiver = self._loop.create_task(
            self._receive_remote(wanted, task), name=f"recv:{task};{parse_key(wanted.key).tensor_name}"
        )
        self._remote.add(receiver)
        receiver.add_done_callback(self._remote.discard)

    async def _receive_remote(self, wanted: Wanted, task: str) -> None:
        try:
            value, is_dead = await self._remote_recv(task, self._rendezvous.step_id, wanted.key)
        except errors.OpError as error:
            self._failed(_from_task(error, task))
        except Exception as error:  # a bug of ours must end the step, not hang it
            self._failed(
                errors.InternalError(None, None, f"Receiving {wanted.key} failed with {type(error).__name__}: {error}")
            )
        else:
            self._arrived(wanted.token, value, is_dead)

    def _local_done(self, wanted: Wanted, value: Value, is_dead: bool, error: errors.OpError | None) -> None:
        """The rendezvous' callback; any thread."""
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self._local_done, wanted, value, is_dead, error)
            return
        self._local.pop(wanted.key, None)
        if error is not None:
            self._failed(error)
        else:
            self._arrived(wanted.token, value, is_dead)

    def _step_aborted(self, error: errors.OpError) -> None:
        """The rendezvous' callback; any thread."""
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self._failed, error)
        else:
            self._failed(error)

    def _arrived(self, token: Any, value: Value, is_dead: bool) -> None:
        self._inbox.append((token, value, is_dead))
        self._notify()

    def _failed(self, error: errors.OpError) -> None:
        if self._error is None:
            self._error = error
        self._notify()

    def _notify(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _forget_receivers(self) -> None:
        for key, done in self._local.items():
            self._rendezvous.cancel_recv(key, done)
        self._local.clear()
        for receiver in self._remote:
            receiver.cancel()


def _from_task(error: errors.OpError, task: str) -> errors.OpError:
    """A producer's error as its consumer reports it: says where it comes from, once."""
    if error.message.startswith("From /job:") or task in error.message:
        return error
    return errors.from_code(error.code, f"From {task}:\n{error.message}", error.node_def, None)


def _ignore(job: asyncio.Future[None]) -> None:
    """Looks at the result of a job that nobody waits for, so that asyncio does not report it as lost."""
    if not job.cancelled():
        job.exception()
