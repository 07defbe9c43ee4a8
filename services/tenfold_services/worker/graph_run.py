"""One run of one registered graph, from its start to its answer: what it means to its session, step and caller.

Made by graph_manager.py. No asyncio task: a short program that waits for nothing has ended before `start` returns, and
one that waits for a pushed tensor ends in the read that brings it. The run itself is a PartRun, waited for by
event_loop_waiter.py.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tenfold_core import errors

from ..interfaces import RunGraphResult
from .event_loop_waiter import EventLoopWaiter
from .execution import kept
from .part_run import DONE, LONG, WAITS, PartRun
from .rendezvous import read_now
from .run_policy import EVENT_LOOP
from .tracing import TracedExecution

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold_compiler.part.edges import Edges
    from tenfold_compiler.program import Program
    from tenfold_kernels.resources.state import Variable

    from ..exchange.plan import ExchangePlan, Push, Sent
    from ..interfaces import Done, Value
    from .event_loop_waiter import RunsWorker
    from .execution import Execution, StepIO
    from .loaded_program import LoadedProgram
    from .outbox import Outbox
    from .rendezvous import Rendezvous
    from .sessions import WorkerSession

_log = logging.getLogger("tenfold.worker")


class GraphRun:
    """On the event loop's thread only. `executor` as in PartRun."""

    __slots__ = (
        "_done", "_executor", "_fetches", "_outbox", "_program", "_session", "_worker", "ended", "part_run", "plan",
        "rendezvous",
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
        #: `done` was called.
        self.ended = False

    def start(self, feeds: Mapping[str, Value]) -> None:
        """Runs as far as it goes; `done` may have been called when it returns."""
        rendezvous, outbox, program, executor = self.rendezvous, self._outbox, self._program, self._executor
        self._session.running[self] = None
        self._worker.began()
        rendezvous.runs += 1
        try:
            if rendezvous.error is not None:
                raise rendezvous.error
            send = rendezvous.send if outbox is None else outbox.send
            run = self.part_run = PartRun(program, feeds, send, executor)
            # a straight program wants nothing: a short one needs no waiter
            if executor is not None or not program.compiled.is_straight or run.turn(EVENT_LOOP) != DONE:
                if outbox is not None:
                    run.advanced = outbox.flush
                expected = () if self.plan is None else self.plan.expected
                EventLoopWaiter(self._worker, run, rendezvous, self._session.handle, expected, self._end).start()
                return
        except Exception as error:
            self._end(error)
        else:
            self._end(None)

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

    def _end(self, error: BaseException | None) -> None:
        result: RunGraphResult | None = None
        if error is None:
            try:
                result = self._result()
            except Exception as unfinished:
                error = unfinished
        if self.part_run is not None:
            # what hangs on the run goes now, and not with the garbage collector: others may wait for the memory
            self.part_run.end()
            self.part_run = None
        rendezvous = self.rendezvous
        rendezvous.runs -= 1
        self._session.running.pop(self, None)
        self._worker.over()
        self.ended = True
        if error is None:
            if self._outbox is not None and not self._outbox.kept:
                # all that it sent has gone and all that it received is consumed: no task will ask for a tensor of it
                self._worker.forget_step(rendezvous)
            self._done(result, None)
            return
        failure = explained(error, self._worker.task, rendezvous.step_id)
        errors.forget_frames(failure)
        # the first error of a step on this task is the one that every part of the step reports
        first = rendezvous.error
        # a copy: the step may be kept for a while, and must not keep the graph that the node belongs to
        rendezvous.abort(errors.from_code(failure.code, failure.message))
        self._done(None, first or failure)

    def _result(self) -> RunGraphResult:
        run = self.part_run
        assert run is not None
        result = RunGraphResult(_select(run.fetched(), self._fetches))
        if self._executor is not None and isinstance(run.execution, TracedExecution):
            result.step_stats = run.execution.step_stats()
        if self._outbox is not None:
            result.answered = self._outbox.finish()
        return result


def explained(error: BaseException, task: str, step_id: int) -> errors.OpError:
    """The error as an OpError; a bug of ours is logged, because its cause does not travel."""
    if isinstance(error, errors.OpError):
        if error.code == errors.INTERNAL:
            _log.error("Step %d on %s: %s", step_id, task, error.message, exc_info=error.__cause__ or error)
        return error
    _log.error("Step %d on %s failed with an unexpected exception", step_id, task, exc_info=error)
    failure = errors.internal(f"{task}: {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure


def run_at_once(
    program: LoadedProgram,
    plan: ExchangePlan,
    step_id: int,
    feeds: Mapping[str, Value],
    brought: Mapping[str, tuple[Value, bool]],
    push: Push,
) -> RunGraphResult | None:
    """A run that has all that it needs, as one turn: nothing can come in between, so it needs no rendezvous.

    `brought` has the tensor, and whether it is dead, of each key that the plan expects. None, and nothing has run, for
    one that does not belong on the event loop's thread, has branches, or sends what is not pushed. Raises what the step
    raises.
    """
    compiled = program.compiled
    transfers = compiled.transfers
    if (
        compiled.generated is None
        or compiled.blocks
        or not plan.sent.issuperset(transfers.send_keys)
        or (transfers.recv_keys and not transfers.recv_keys <= brought.keys())
    ):
        return None
    sent: list[Sent] = []

    def send(key: str, value: Value | Variable, is_dead: bool) -> None:
        sent.append((key, read_now(value), is_dead))

    run = PartRun(program, feeds, send, brought=brought)
    turn = run.turn(EVENT_LOOP)
    if turn == LONG:
        return None
    if turn == WAITS:
        raise errors.internal(f"Step {step_id}: two receivers wait for the same tensor.")
    result = RunGraphResult(run.fetched())
    others: dict[str, list[Sent]] = {}
    for one in sent:
        number = plan.answered.get(one[0])
        if number is None:
            others.setdefault(plan.pushed[one[0]], []).append(one)
        else:
            result.answered.append((number, one[1], one[2]))
    for task, tensors in others.items():
        push(task, step_id, tensors)
    return result


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
