"""One run of one registered graph, from its start to its answer. Made by graph_manager.py; the driver takes it along.

Callbacks and no asyncio task: a short program that waits for nothing has ended before `start` returns, and one that
waits for a pushed tensor ends in the read that brings it. The first error of a step on this task is the one that
everybody hears of.
"""

from __future__ import annotations

import logging
from time import perf_counter_ns
from typing import TYPE_CHECKING

from tenfold_core import errors

from ..interfaces import RunGraphResult
from .driver import StepDriver
from .execution import StepIO, kept
from .tracing import TracedExecution

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..exchange.plan import ExchangePlan, Push, Sent
    from ..interfaces import Done, Value
    from ..limits import Limits
    from .execution import Execution
    from .graph_manager import GraphManager
    from .outbox import Outbox
    from .program import Program
    from .rendezvous import Rendezvous
    from .sessions import WorkerSession

_log = logging.getLogger("tenfold.worker")

class GraphRun:
    """On the event loop's thread only."""

    __slots__ = (
        "_done",
        "_execution",
        "_fetches",
        "_kind",
        "_outbox",
        "_program",
        "_session",
        "_worker",
        "ended",
        "io",
        "plan",
        "rendezvous",
    )

    def __init__(
        self,
        worker: GraphManager,
        session: WorkerSession,
        program: Program,
        rendezvous: Rendezvous,
        fetches: Sequence[str],
        done: Done,
        plan: ExchangePlan | None = None,
        outbox: Outbox | None = None,
        kind: Callable[[Program, StepIO], Execution] | None = None,
    ) -> None:
        """`kind` makes the execution of a step that is not like others: traced, or partial."""
        self._kind = kind
        self._worker, self._session, self._program = worker, session, program
        self.rendezvous = rendezvous
        self._fetches = fetches
        self._done = done
        self.plan, self._outbox = plan, outbox
        self._execution: Execution | None = None
        self.io: StepIO | None = None
        #: `done` was called.
        self.ended = False

    def start(self, feeds: Mapping[str, Value]) -> None:
        """Runs as far as it goes; `done` may have been called when it returns."""
        rendezvous, outbox, program = self.rendezvous, self._outbox, self._program
        io = self.io = StepIO(feeds, rendezvous.send if outbox is None else outbox.send)
        self._worker.began(self._session, self)
        rendezvous.runs += 1
        try:
            if rendezvous.error is not None:
                raise rendezvous.error
            kind = self._kind
            execution = self._execution = program.start(io) if kind is None else kind(program, io)
            limits = self._worker.limits
            shapes, limit = execution.shapes, limits.inline_nanoseconds
            if kind is None and program.is_straight and program.runs_inline(shapes, limit):
                begin = perf_counter_ns()
                execution.advance()
                program.note_time(perf_counter_ns() - begin, (shapes,), limit)
            else:
                driver = StepDriver(
                    self._worker.task,
                    program,
                    rendezvous,
                    self._worker.recv_remote,
                    self._worker.pool,
                    limits,
                    ended=self._end,
                    expected=() if self.plan is None else self.plan.expected,
                    advanced=None if outbox is None else outbox.flush,
                    arrivals=self._worker.arrivals,
                    owner=self._session.handle,
                )
                driver.start(execution, io.stop)
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
            error = errors.CancelledError(
                None, None, f"Step {self.rendezvous.step_id} was cancelled on {self._worker.task}."
            )
        if self.io is not None:
            self.io.stop.append(True)
        self.rendezvous.abort(error)

    def _end(self, error: BaseException | None) -> None:
        result: RunGraphResult | None = None
        if error is None:
            try:
                result = self._result()
            except Exception as unfinished:
                error = unfinished
        if self.io is not None:
            self.io.stop.append(True)
        rendezvous = self.rendezvous
        rendezvous.runs -= 1
        self._worker.over(self._session, self)
        self.ended = True
        # what hangs on the run goes now, and not with the garbage collector: it may be memory that others wait for
        self._execution = self.io = None
        if error is None:
            if self._outbox is not None and not self._outbox.kept:
                # all that it sent has gone, all that it received is consumed: nobody will come for this step
                self._worker.forget_step(rendezvous)
            self._done(result, None)
            return
        failure = explained(error, self._worker.task, rendezvous.step_id)
        errors.forget_frames(failure)
        first = rendezvous.error
        # a copy: the step may be kept for a while, and must not keep the graph that the node belongs to
        rendezvous.abort(errors.from_code(failure.code, failure.message))
        self._done(None, first or failure)

    def _result(self) -> RunGraphResult:
        assert self._execution is not None
        result = RunGraphResult(_select(self._execution.fetched(), self._fetches))
        if self._kind is not None and isinstance(self._execution, TracedExecution):
            result.step_stats = self._execution.step_stats()
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
    failure = errors.InternalError(None, None, f"{task}: {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure


def run_at_once(
    program: Program,
    plan: ExchangePlan,
    step_id: int,
    feeds: Mapping[str, Value],
    brought: Mapping[str, tuple[Value, bool]],
    push: Push,
    limits: Limits,
) -> RunGraphResult | None:
    """A run that has all that it needs, as one call: nobody can come in between, so it needs no rendezvous.

    `brought` has the tensor, and whether it is dead, of each key that the plan expects. None, and nothing has run, for
    one that does not belong on the event loop's thread, has branches, or sends what is not pushed. Raises what the step
    raises.
    """
    limit = limits.inline_nanoseconds
    if (
        program.generated is None
        or program.blocks
        or not program.was_short(limit)
        or not plan.sent.issuperset(program.send_keys)
    ):
        return None
    sent: list[Sent] = []
    io = StepIO(feeds, lambda key, value, is_dead: sent.append((key, value, is_dead)))
    execution = program.start(io)
    for wanted in execution.take_wanted():
        found = brought.get(wanted.key)
        if found is None:
            return None  # it is not pushed
        execution.arrived(wanted.token, *found)
    shapes = execution.shapes
    if not program.runs_inline(shapes, limit):
        return None
    begin = perf_counter_ns()
    execution.advance()
    program.note_time(perf_counter_ns() - begin, (shapes,), limit)
    result = RunGraphResult(execution.fetched())
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
    if len(fetches) == len(values) and all(key in values for key in fetches):
        return values
    missing = [key for key in fetches if key not in values]
    if missing:
        raise errors.InvalidArgumentError(
            None, None, f"This graph has no fetch {missing[0]!r}; it has {', '.join(map(repr, values)) or 'none'}."
        )
    return {key: kept(values[key]) for key in fetches}
