"""Carries out what step_state.py decides: calls the workers, keeps the clocks, hands the machine its events.

One StepRunner is one step of one client graph. Made by master_session.py, which also sees to clean-up afterwards. A
step of a single part without a deadline is awaited right where it is: no task, no timer, no hop of the event loop.
Parts that push (arrangement.py) are started by calls that report by callback; the others are asyncio tasks.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_services.exchange.plan import numbered
from tenfold_services.interfaces import RunRequest
from tenfold_services.master.step_state import ArmGrace, Cancel, Decision, Finish, StepState, from_task

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from tenfold_protos.step_stats_pb2 import StepStats
    from tenfold_services.exchange.plan import Sent
    from tenfold_services.interfaces import ExecOptions, RunGraphResult, RunningPart, Value
    from tenfold_services.master.arrangement import Arrangement, Part
    from tenfold_services.master.client_graph import ClientGraph
    from tenfold_services.master.env import SessionEnv

_log = logging.getLogger("tenfold.master")


class StepRunner:
    """Runs once. `interrupt` may be called at any time from the event loop's thread; nothing here is thread-safe."""

    def __init__(
        self, graph: ClientGraph, step_id: int, session: SessionEnv, feeds: Mapping[str, Value], options: ExecOptions
    ) -> None:
        """`feeds` by canonical tensor name; the caller leaves the arrays unchanged until the step is over."""
        self.graph = graph
        self.step_id = step_id
        self._session, self._feeds, self._options = session, feeds, options
        self._interrupted: errors.OpError | None = None
        #: The task that awaits a single part in place; None in the other mode and outside of the call.
        self._awaiting: asyncio.Task[object] | None = None
        self._state: StepState | None = None
        self._finished: asyncio.Future[None] | None = None
        #: What runs, by task: an asyncio task, or a call that reports to `_on_end` by itself.
        self._calls: dict[str, asyncio.Task[RunGraphResult] | RunningPart] = {}
        self._pushes = graph.pushes
        #: Until all parts are started: what our own part has sent, by consumer. It goes with the call.
        self._held: dict[str, list[Sent]] | None = None
        self._grace: asyncio.TimerHandle | None = None
        self.results: dict[str, RunGraphResult] = {}

    @property
    def unfinished_calls(self) -> list[asyncio.Task[RunGraphResult]]:
        """Calls that were cancelled and have not ended in time; the session must see to their end."""
        return [call for call in self._calls.values() if isinstance(call, asyncio.Task) and not call.done()]

    @property
    def pending_tasks(self) -> tuple[str, ...]:
        """The tasks whose parts have not ended. Any thread."""
        return tuple(self.graph.tasks) if self._state is None else tuple(self._state.pending)

    @property
    def unforgotten(self) -> list[Part]:
        """Parts whose task does not forget a step that went well until it is told to."""
        pushes = self._pushes
        return self.graph.parts if pushes is None else [p for p in self.graph.parts if p.task not in pushes.forgetful]

    def interrupt(self, error: errors.OpError) -> None:
        """Ends the step with `error`, unless it is over. Never blocks."""
        if self._interrupted is not None:
            return
        self._interrupted = error
        if self._awaiting is not None:
            self._awaiting.cancel()
        elif self._state is not None:
            self._apply(self._state.interrupt(error))

    async def run(self, seconds: float | None, waited: float = 0.0) -> dict[str, Value]:
        """The fetched values by canonical name.

        Raises the step's error, with the task that it came from; DeadlineExceededError naming the pending tasks after
        so many `seconds`, of which `waited` are over. Cancelling the caller stops all parts.
        """
        if self._interrupted is not None:
            raise self._interrupted
        if len(self.graph.parts) == 1 and seconds is None and self._pushes is None:
            await self._run_in_place(self.graph.parts[0])
        else:
            await self._run_parts(seconds, waited)
        return self._fetched()

    def step_stats(self) -> list[StepStats]:
        return [result.step_stats for result in self.results.values() if result.step_stats is not None]

    async def _run_in_place(self, part: Part) -> None:
        caller = asyncio.current_task()
        if caller is None:
            raise errors.internal("A step must be run from an asyncio task.")
        before = caller.cancelling()
        self._awaiting = caller
        try:
            self.results[part.task] = await self._call(part)
        except errors.OpError as e:
            raise self._interrupted or from_task(e, part.task) from None
        except asyncio.CancelledError:
            # As asyncio.timeout does it: only a cancellation that was ours alone becomes an error.
            if self._interrupted is None or caller.cancelling() > before + 1:
                raise
            raise self._interrupted from None
        except Exception as e:
            raise _unexpected(e, self.step_id, part.task) from e
        finally:
            self._awaiting = None
            if self._interrupted is not None:
                caller.uncancel()

    async def _run_parts(self, seconds: float | None, waited: float) -> None:
        loop = asyncio.get_running_loop()
        state = self._state = StepState(self.graph.tasks)
        self._finished = loop.create_future()
        deadline = None
        if seconds is not None:
            deadline = loop.call_later(max(0.0, seconds - waited), lambda: self._apply(state.deadline(seconds)))
        try:
            self._start(state)
            try:
                if not state.finished:
                    await self._finished
            except asyncio.CancelledError:
                self._finished = loop.create_future()
                self._apply(state.interrupt(errors.cancelled("The client gave up the step.")))
                if not state.finished:
                    await self._finished
                raise
        finally:
            if deadline is not None:
                deadline.cancel()
            if self._grace is not None:
                self._grace.cancel()
            for call in self.unfinished_calls:
                call.cancel()
            self._calls = {task: call for task, call in self._calls.items() if isinstance(call, asyncio.Task)}
        if state.error is not None:
            raise state.error if state.failed_task is None else from_task(state.error, state.failed_task)

    def _call(self, part: Part) -> Coroutine[Any, Any, RunGraphResult]:
        session, fetches = self._session.handle, list(part.fetch_keys.values())
        request = RunRequest(session, part.handle, self.step_id, self._feeds_of(part), fetches, self._options)
        return part.worker.run_graph(request)

    def _start(self, state: StepState) -> None:
        """Starts all parts: one may wait for what another sends. Our own goes first if it is short and sends at once,
        for that travels with the calls."""
        parts, pushes = self.graph.parts, self._pushes
        if pushes is not None and pushes.own_first():
            self._held, parts = {}, parts[::-1]
        for part in parts:
            self._start_part(state, part)
        self._held = None

    def _apply(self, decisions: list[Decision]) -> None:
        state = self._state
        assert state is not None
        for decision in decisions:
            match decision:
                case Cancel(task):
                    call = self._calls.get(task)
                    if call is not None:
                        call.cancel()
                case ArmGrace():
                    if self._grace is None:
                        loop, seconds = asyncio.get_running_loop(), self._session.limits.abort_seconds
                        self._grace = loop.call_later(seconds, lambda: self._apply(state.grace_over()))
                case Finish():
                    if self._finished is not None and not self._finished.done():
                        self._finished.set_result(None)

    def _start_part(self, state: StepState, part: Part) -> None:
        task, pushes = part.task, self._pushes
        if state.error is not None:
            # another part failed before this one was started
            if not state.finished:
                self._apply(state.part_done(task))
            return
        if pushes is not None and task in pushes.plans:
            try:
                self._calls[task] = self._start_plan(pushes, part)
            except errors.OpError as error:
                self._on_end(task, None, error)
            return
        call = asyncio.create_task(self._call(part), name=f"run_graph:{task};{self.step_id:x}")
        self._calls[task] = call
        call.add_done_callback(partial(self._on_task_end, task))

    def _start_plan(self, pushes: Arrangement, part: Part) -> RunningPart:
        """Runs a part that has a plan. Another task gets what is held for it along with the call."""
        task, step_id, options = part.task, self.step_id, self._options
        plan, done = pushes.plans[task], partial(self._on_end, task)
        if task != pushes.own_task:
            held = self._held.pop(task, ()) if self._held is not None else ()
            return pushes.workers[task].start_plan(plan, step_id, numbered(held, plan), options, done)
        feeds, session, graph = self._feeds_of(part), plan.session_handle, plan.graph_handle
        request = RunRequest(session, graph, step_id, feeds, plan.fetches, options)
        return pushes.local.start_run(request, done, plan, self._push)

    def _push(self, task: str, step_id: int, tensors: list[Sent]) -> None:
        """Takes what our own part has sent to `task`. Raises UnavailableError."""
        if self._held is not None:
            self._held.setdefault(task, []).extend(tensors)
        else:
            assert self._pushes is not None
            self._pushes.workers[task].push(step_id, tensors)

    def _feeds_of(self, part: Part) -> dict[str, Value]:
        """What the client feeds into a part, by rendezvous key."""
        return {key: self._feeds[name] for name, key in part.feed_keys.items()}

    def _on_task_end(self, task: str, call: asyncio.Task[RunGraphResult]) -> None:
        """A part's task is over. Reads its exception in any case, so that asyncio does not report it as lost."""
        if call.cancelled():
            self._on_end(task, None, errors.cancelled(f"The call to {task} was cancelled, though not by its step."))
        else:
            error = call.exception()
            self._on_end(task, None if error is not None else call.result(), error)

    def _on_end(self, task: str, result: RunGraphResult | None, error: BaseException | None) -> None:
        """A part is over."""
        state = self._state
        if state is None or state.finished:
            return
        if error is None:
            assert result is not None
            self.results[task] = result
            self._apply(state.part_done(task))
        elif not isinstance(error, errors.OpError):
            self._apply(state.part_failed(task, _unexpected(error, self.step_id, task)))
        elif error.code == errors.CANCELLED and state.error is not None:
            self._apply(state.part_done(task))
        else:
            self._apply(state.part_failed(task, error))

    def _fetched(self) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for part in self.graph.parts:
            if part.fetch_keys:
                result = self.results[part.task].values
                for name, key in part.fetch_keys.items():
                    if key not in result:
                        raise errors.invalid_argument(f"The tensor returned for {name} was not valid.")
                    values[name] = result[key]
        return values


def _unexpected(error: BaseException, step_id: int, task: str) -> errors.OpError:
    """A worker broke its contract of raising OpError only."""
    _log.error("Step %x on %s failed with an unexpected exception", step_id, task, exc_info=error)
    return from_task(errors.internal(f"{type(error).__name__}: {error}"), task)
