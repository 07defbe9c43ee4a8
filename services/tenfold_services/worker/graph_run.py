"""One run of one registered graph, from its start to its answer: what it means to its session, step and caller.

Made by graph_manager.py. No asyncio task waits: each arrival, on the event loop's thread, takes the run (part_run.py)
as far as it goes. So a short program that waits for nothing has ended before `start` returns, and a tensor that comes
over a link is computed with before the next frame is looked at. A stretch that may be long computes in the pool.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from functools import partial
from typing import TYPE_CHECKING, Protocol

from tenfold_core import errors
from tenfold_core.rendezvous_key import parse_key

from ..interfaces import RunGraphResult
from .execution import kept
from .part_run import DONE, LONG, PartRun
from .run_policy import EVENT_LOOP
from .tracing import TracedExecution

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold_compiler.part.edges import Edges
    from tenfold_compiler.program import Program

    from ..exchange.plan import ExchangePlan
    from ..interfaces import Done, Value
    from ..limits import Limits
    from .arrivals import Arrivals
    from .execution import Execution, StepIO
    from .loaded_program import LoadedProgram
    from .outbox import Outbox
    from .rendezvous import Rendezvous, StepTable
    from .sessions import WorkerSession
    from .step_pool import Job, StepPool

_log = logging.getLogger("tenfold.worker")


class RunsWorker(Protocol):
    """What a run needs of its task: graph_manager.py."""

    task: str
    limits: Limits
    #: Partitions that run now: a run that starts is added.
    running: int
    #: Where long stretches compute.
    pool: StepPool
    arrivals: Arrivals
    steps: StepTable

    async def recv_remote(self, task: str, step_id: int, key: str) -> tuple[Value, bool]:
        """Asks another task for a tensor."""

    def over(self) -> None:
        """A run has ended."""


class GraphRun:
    """One use each, on the event loop's thread, but for the callbacks that say otherwise.

    `done` is called once, maybe before `start` returns. Nothing of the run stays behind then, but for a kernel in the
    pool that cannot be stopped. `executor` as in PartRun.
    """

    __slots__ = (
        "_done", "_executor", "_fetches", "_job", "_local", "_loop", "_outbox", "_program", "_pumping", "_remote",
        "_session", "_thread", "_waits", "_worker", "ended", "part_run", "plan", "rendezvous",
    )  # fmt: skip

    def __init__(
        self,
        worker: RunsWorker,
        session: WorkerSession,
        program: LoadedProgram,
        rendezvous: Rendezvous,
        fetches: Sequence[str],
        done: Done,
        plan: ExchangePlan | None = None,
        outbox: Outbox | None = None,
        executor: Callable[[Program, Edges, StepIO], Execution] | None = None,
    ) -> None:
        self._worker, self._session, self._program, self.rendezvous = worker, session, program, rendezvous
        self._fetches, self._done = fetches, done
        self.plan, self._outbox, self._executor = plan, outbox, executor
        #: What runs, from `start` to the end.
        self.part_run: PartRun | None = None
        #: `_wait` was called, and has set what it needs.
        self._waits = False
        #: `done` was called.
        self.ended = False

    def start(self, feeds: Mapping[str, Value]) -> None:
        """Runs as far as it goes; `done` may have been called when it returns."""
        rendezvous, outbox, program, executor = self.rendezvous, self._outbox, self._program, self._executor
        self._session.running[self] = None
        self._worker.running += 1
        rendezvous.runs += 1
        try:
            if rendezvous.error is not None:
                raise rendezvous.error
            send = rendezvous.send if outbox is None else outbox.send
            run = self.part_run = PartRun(program, feeds, send, executor)
            # a straight program wants nothing: a short one waits for nothing
            if executor is not None or not program.compiled.is_straight or run.turn(EVENT_LOOP) != DONE:
                if outbox is not None:
                    run.advanced = outbox.flush
                self._wait(run)
                return
        except Exception as error:
            self._end(error)
        else:
            self._end(None)

    def _wait(self, run: PartRun) -> None:
        """From now on the run goes on with each arrival."""
        self._waits, self._loop, self._thread = True, asyncio.get_running_loop(), threading.get_ident()
        #: What the pool works on.
        self._job: Job | None = None
        #: Receives from other tasks, and local ones as (key, callback), that have not ended.
        self._remote: set[asyncio.Task[None]] = set()
        self._local: dict[str, Callable[..., None]] = {}
        run.receive, run.wake = self._receive, self._woken
        #: `go_on` is on the stack, or this is: arrivals are only noted.
        self._pumping = True
        self.rendezvous.listen(self._failed)
        self._pumping = False
        self.go_on()

    def cancel(self, error: errors.OpError | None = None) -> None:
        """Ends the run with `error`, unless it has ended. A kernel that computes is told to stop, not waited for."""
        if self.ended:
            return
        if error is None:
            error = errors.cancelled(f"Step {self.rendezvous.step_id} was cancelled on {self._worker.task}.")
        self.stop()
        self.rendezvous.abort(error)

    def stop(self) -> None:
        """Tells the program to stop, if it computes."""
        if self.part_run is not None:
            self.part_run.stop.append(True)

    def go_on(self) -> None:
        """Takes the run as far as it goes. Not entered twice."""
        run = self.part_run
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
        self._job = self._worker.pool.submit(self._session.handle, run.advance)
        run.leave()

        def over(job: asyncio.Future[None]) -> None:
            self._job = None
            run.came_back(errors.cancelled("Step was cancelled.") if job.cancelled() else job.exception())
            self.go_on()

        asyncio.wrap_future(self._job.future).add_done_callback(over)

    def _end(self, error: BaseException | None) -> None:
        run, self.part_run = self.part_run, None
        rendezvous = self.rendezvous
        if self._waits:
            if self._job is not None:
                self._worker.pool.let_go(self._job)
            rendezvous.unlisten(self._failed)
            for key, done in self._local.items():
                rendezvous.cancel_recv(key, done)
            self._local.clear()
            for receiver in self._remote:
                receiver.cancel()
        result: RunGraphResult | None = None
        if error is None:
            try:
                assert run is not None
                result = self._result(run)
            except Exception as unfinished:
                error = unfinished
        if run is not None:
            # what hangs on the run goes now, and not with the garbage collector: others may wait for the memory
            run.end()
        rendezvous.runs -= 1
        self._session.running.pop(self, None)
        self._worker.over()
        self.ended = True
        if error is None:
            if self._outbox is not None and not self._outbox.kept and not rendezvous.runs:
                # all that it sent has gone and all that it received is consumed: no task will ask for a tensor of it
                self._worker.steps.forget(rendezvous.step_id)
            self._done(result, None)
            return
        failure = explained(error, self._worker.task, f"Step {rendezvous.step_id}")
        errors.forget_frames(failure)
        # the first error of a step on this task is the one that every part of the step reports
        first = rendezvous.error
        # a copy: the step may be kept for a while, and must not keep the graph that the node belongs to
        rendezvous.abort(errors.from_code(failure.code, failure.message))
        self._done(None, first or failure)

    def _result(self, run: PartRun) -> RunGraphResult:
        result = RunGraphResult(_select(run.fetched(), self._fetches))
        if self._executor is not None and isinstance(run.execution, TracedExecution):
            result.step_stats = run.execution.step_stats
        if self._outbox is not None:
            result.answered = self._outbox.finish()
        return result

    # -- arrivals ----------------------------------------------------------------------------------------------------

    def _receive(self, key: str) -> None:
        if self.plan is None or key not in self.plan.expected:
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
        self.rendezvous.recv(key, done)

    async def _receive_remote(self, key: str, task: str) -> None:
        try:
            value, is_dead = await self._worker.recv_remote(task, self.rendezvous.step_id, key)
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
        if self.part_run is not None:
            self.part_run.arrived(key, value, is_dead)
            if not self._worker.arrivals.hold(self.go_on):
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

    def _failed(self, error: errors.OpError) -> None:
        """Also the rendezvous' callback; any thread."""
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self._failed, error)
        elif self.part_run is not None:
            self.part_run.fail(error)
            self.go_on()


def explained(error: BaseException, task: str, step: str) -> errors.OpError:
    """The error of a `step` on `task` as an OpError; a bug of ours is logged, because its cause does not travel."""
    if isinstance(error, errors.OpError):
        if error.code == errors.INTERNAL:
            _log.error("%s on %s: %s", step, task, error.message, exc_info=error.__cause__ or error)
        return error
    _log.error("%s on %s failed with an unexpected exception", step, task, exc_info=error)
    failure = errors.internal(f"{task}: {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure


def _from_task(error: errors.OpError, task: str) -> errors.OpError:
    """A producer's error as its consumer reports it: says where it comes from, once."""
    if error.message.startswith("From /job:") or task in error.message:
        return error
    return errors.from_code(error.code, f"From {task}:\n{error.message}", error.node_def, None)


def _select(values: dict[str, Value], fetches: Sequence[str]) -> dict[str, Value]:
    """The fetches that were asked for, as the caller's own. Raises InvalidArgumentError for one that is not there."""
    if len(fetches) == len(values) and all(map(values.__contains__, fetches)):
        return values
    missing = [key for key in fetches if key not in values]
    if missing:
        raise errors.invalid_argument(
            f"This graph has no fetch {missing[0]!r}; it has {', '.join(map(repr, values)) or 'none'}."
        )
    return {key: kept(values[key]) for key in fetches}
