"""Drives one execution: receives what it wants, runs it inline or in the pool, ends it with its step.

The rim of the pure machines (static_executor.py, dynamic_executor.py). No asyncio task drives a step: each arrival, on
the event loop's thread, takes the execution as far as it goes, so that a tensor that comes over a link is computed with
before the next frame is looked at. Everything here runs on that thread, but for `advance` of long programs, which runs
in the pool; an execution is in one place at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from time import thread_time_ns
from typing import TYPE_CHECKING, Any

from tenfold_core import errors

from ..interfaces import Value
from .part import node_error
from .rendezvous import Rendezvous, parse_key

if TYPE_CHECKING:
    from tenfold_kernels.resources.waiting import Waiting

    from ..limits import Limits
    from .execution import Execution, Wanted
    from .program import Program
    from .step_pool import Job, StepPool

#: Receives a tensor from another task: (task, step_id, key) → (value, is_dead).
RemoteRecv = Callable[[str, int, str], Awaitable[tuple[Value, bool]]]


class Arrivals:
    """Holds runs back while the tensors of one frame are handed out: a run goes on once, with all of its own.

    `with arrivals:` around the handing out. On the loop's thread only; never waits.
    """

    __slots__ = ("_depth", "_held")

    def __init__(self) -> None:
        self._held: dict[StepDriver, None] = {}
        self._depth = 0

    def hold(self, driver: StepDriver) -> bool:
        """Whether the driver goes on later."""
        if self._depth:
            self._held[driver] = None
            return True
        return False

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if not self._depth and self._held:
            held, self._held = self._held, {}
            for driver in held:
                driver.go_on()


class StepDriver:
    """Runs one partition of one step. One use each.

    `start` begins; `ended` is called once, on the loop's thread and maybe before `start` returns: with None once every
    node has run, else with the exception that ended the step. Nothing of the driver stays behind then, but for a
    kernel in the pool that cannot be stopped.
    """

    def __init__(
        self,
        task: str,
        program: Program,
        rendezvous: Rendezvous,
        remote_recv: RemoteRecv,
        pool: StepPool,
        limits: Limits,
        *,
        ended: Callable[[BaseException | None], None],
        expected: Collection[str] = (),
        advanced: Callable[[], None] | None = None,
        arrivals: Arrivals | None = None,
        owner: str = "",
    ) -> None:
        """`expected` are keys that other tasks push: they are waited for, not asked for; `arrivals` may hold them back.

        `advanced` is called after each stretch of the program but the last: what it sent may go. `owner` is the session
        for which the pool counts the step.
        """
        self._task, self._program, self._rendezvous = task, program, rendezvous
        self._remote_recv, self._pool, self._limits = remote_recv, pool, limits
        self._ended, self._expected, self._advanced = ended, expected, advanced
        self._arrivals, self._owner = arrivals, owner
        #: What the pool works on.
        self._job: Job | None = None
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        #: Set by `start`, and None again at the end.
        self._execution: Execution | None = None
        self._stop: list[Any] = []
        #: An arrival is only noted while `_pump` is on the stack, or while `advance` runs in the pool.
        self._pumping = False
        #: Arrived and not yet handed to the execution. Touched on the loop's thread only.
        self._inbox: deque[tuple[Any, Value, bool]] = deque()
        self._error: BaseException | None = None
        #: Nanoseconds of processor time spent in `advance`, and Execution.shapes at each turn.
        self._spent = 0
        self._shapes: list[int] = []
        #: Receives from other tasks, and local ones as (key, callback), that have not ended.
        self._remote: set[asyncio.Task[None]] = set()
        self._local: dict[str, Callable[..., None]] = {}
        #: Results of blocking kernels that have not come.
        self._waiting: set[Waiting] = set()

    def start(self, execution: Execution, stop: list[Any]) -> None:
        """Runs the execution as far as it goes now."""
        self._execution, self._stop = execution, stop
        self._pumping = True
        self._rendezvous.listen(self._step_aborted)
        self._pumping = False
        self._pump()

    def go_on(self) -> None:
        """What was held back has come."""
        self._pump()

    def _pump(self) -> None:
        """Takes the execution as far as it goes. On the loop's thread; not entered twice."""
        execution = self._execution
        if self._pumping or self._job is not None or execution is None:
            return
        self._pumping = True
        try:
            while True:
                for wanted in execution.take_wanted():
                    self._receive(wanted)
                while self._inbox:
                    execution.arrived(*self._inbox.popleft())
                if self._error is not None:
                    self._end(self._error)
                    return
                if execution.ready:
                    if not self._shapes or self._shapes[-1] != execution.shapes:
                        self._shapes.append(execution.shapes)
                    limit = self._limits.inline_nanoseconds
                    if self._spent >= limit or not self._program.runs_inline(execution.shapes, limit):
                        self._advance_in_pool(execution)
                        self._pumping = False
                        return
                    begin = thread_time_ns()
                    execution.advance(careful=True)
                    self._spent += thread_time_ns() - begin
                    if self._advanced is not None and not execution.done:
                        self._advanced()
                elif execution.done:
                    # a program that only hands on what it was given was never ready
                    shapes = self._shapes or (execution.shapes,)
                    self._program.note_time(self._spent, shapes, self._limits.inline_nanoseconds)
                    break
                else:
                    self._pumping = False
                    return
        except Exception as error:
            self._end(error)
        else:
            self._end(None)

    def _advance_in_pool(self, execution: Execution) -> None:
        self._job = self._pool.submit(self._owner, partial(self._advance_timed, execution))

        def over(job: asyncio.Future[None]) -> None:
            error = job.exception() if not job.cancelled() else errors.CancelledError(None, None, "Step was cancelled.")
            self._job = None
            if self._execution is None:
                _give_up(execution)
                return
            if self._error is None:
                self._error = error
            if self._advanced is not None and self._error is None and not execution.done:
                self._advanced()
            self._pump()

        asyncio.wrap_future(self._job.future).add_done_callback(over)

    def _advance_timed(self, execution: Execution) -> None:
        """In the pool: what waiting for a thread takes does not make a program long."""
        begin = thread_time_ns()
        execution.advance()
        self._spent += thread_time_ns() - begin

    def _end(self, error: BaseException | None) -> None:
        execution, self._execution = self._execution, None
        self._stop.append(True)
        if self._job is not None:
            self._pool.let_go(self._job)
        elif execution is not None:
            _give_up(execution)
        for waiting in self._waiting:
            waiting.cancel()
        self._waiting.clear()
        self._rendezvous.unlisten(self._step_aborted)
        for key, done in self._local.items():
            self._rendezvous.cancel_recv(key, done)
        self._local.clear()
        for receiver in self._remote:
            receiver.cancel()
        self._ended(error)

    # -- arrivals ----------------------------------------------------------------------------------------------------

    def _receive(self, wanted: Wanted) -> None:
        if wanted.waiting is not None:
            self._waiting.add(wanted.waiting)
            wanted.waiting.listen(partial(self._settled, wanted))
            return
        if wanted.key not in self._expected:
            task = parse_key(wanted.key).send_task
            if task != self._task:
                receiver = self._loop.create_task(
                    self._receive_remote(wanted, task), name=f"recv:{task};{parse_key(wanted.key).tensor_name}"
                )
                self._remote.add(receiver)
                receiver.add_done_callback(self._remote.discard)
                return
        done = partial(self._local_done, wanted)
        self._local[wanted.key] = done
        self._rendezvous.recv(wanted.key, done)

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

    def _settled(self, wanted: Wanted, outputs: Any, error: errors.OpError | None) -> None:
        """A Waiting's listener; any thread. Another step's kernel may have completed it and stands on the stack: our
        own turn comes later, else a chain of steps that feed each other would nest without end."""
        if threading.get_ident() == self._thread:
            self._loop.call_soon(self._settle, wanted, outputs, error)
        else:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and the step with it
                self._loop.call_soon_threadsafe(self._settle, wanted, outputs, error)

    def _settle(self, wanted: Wanted, outputs: Any, error: errors.OpError | None) -> None:
        assert wanted.waiting is not None
        assert wanted.node is not None
        if self._execution is None:
            return
        self._waiting.discard(wanted.waiting)
        if error is not None:
            self._failed(node_error(wanted.node, error))
        else:
            self._arrived(wanted.token, outputs, False)

    def _step_aborted(self, error: errors.OpError) -> None:
        """The rendezvous' callback; any thread."""
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self._failed, error)
        else:
            self._failed(error)

    def _arrived(self, token: Any, value: Value, is_dead: bool) -> None:
        self._inbox.append((token, value, is_dead))
        if self._arrivals is None or not self._arrivals.hold(self):
            self._pump()

    def _failed(self, error: errors.OpError) -> None:
        if self._execution is None:
            return
        if self._error is None:
            self._error = error
        if self._job is not None:
            # a kernel that computes is not waited for
            self._end(self._error)
        else:
            self._pump()


def _give_up(execution: Execution) -> None:
    """Nobody waits any more for what the execution has asked for and not been given."""
    for wanted in execution.take_wanted():
        if wanted.waiting is not None:
            wanted.waiting.cancel()


def _from_task(error: errors.OpError, task: str) -> errors.OpError:
    """A producer's error as its consumer reports it: says where it comes from, once."""
    if error.message.startswith("From /job:") or task in error.message:
        return error
    return errors.from_code(error.code, f"From {task}:\n{error.message}", error.node_def, None)
