"""Steps across tasks, run on their caller's thread, which calls the other tasks, runs our own part and waits.

What caller_own_steps.py is for steps of one task, this is for those whose every edge between tasks is pushed
(arrangement.py). A step costs the round trip to the other tasks and no hop between threads. Each run is lent a set of
links (step_links.py). There is no event loop and no rendezvous: what a peer pushes comes by `_noticed` while the thread
waits. See docs/decisions/0008.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from tenfold_core import errors, telemetry
from tenfold_link.wire.calls import STEP, LinkCall
from tenfold_services import step_spans
from tenfold_services.exchange.plan import numbered
from tenfold_services.exchange.step_frames import push, read_answer, read_push, run_frame
from tenfold_services.interfaces import DEFAULT_EXEC_OPTIONS
from tenfold_services.master.caller_graph import CallerGraph, CallerRun, CallerStep
from tenfold_services.master.step_state import from_task, late, new_step_id
from tenfold_services.worker.part_run import DONE, PartRun
from tenfold_services.worker.rendezvous import read_now
from tenfold_services.worker.run_policy import CALLER, waits_for_links_only

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.trace import Span

    from tenfold_kernels.resources.state import Variable
    from tenfold_link.blocking.calls import PendingCall
    from tenfold_services.exchange.plan import ExchangePlan, Sent
    from tenfold_services.interfaces import Value
    from tenfold_services.master.arrangement import Arrangement, Part
    from tenfold_services.master.caller_graph import RunningSteps
    from tenfold_services.master.client_graph import ClientGraph
    from tenfold_services.master.step_links import StepLinkPool, StepLinks
    from tenfold_services.worker.loaded_program import LoadedProgram

#: Seconds. A step looks at its clock after each wait for its links, half a second at most; one whose time is shorter
#: than this takes the scheduled path, where a timer ends it to the millisecond.
SHORTEST_DEADLINE = 5.0
#: Seconds. A call that took longer than this to send took our core, too: the other task is on it.
_LONG_CALL = 30e-6


def cluster_graph(
    session: RunningSteps, graph: ClientGraph, pool: StepLinkPool, explain: Callable[[errors.OpError], Any]
) -> CallerClusterGraph | None:
    """None if some edge is not pushed, or some part is reached in another way."""
    pushes = graph.pushes
    if pushes is None or not pushes.forgetful.issuperset(graph.tasks):
        return None
    part, program, plan = None, None, pushes.plans.get(pushes.own_task)
    if plan is not None:
        program = pushes.local.program(session.handle, plan.graph_handle)
        if not waits_for_links_only(program.compiled, plan.expected):
            return None
        part = next(part for part in graph.parts if part.task == pushes.own_task)
    return CallerClusterGraph(session, part, program, pushes, pool, explain)


class CallerClusterGraph(CallerGraph):
    """A client graph whose every edge between tasks is pushed, over links, as far as this task sees it."""

    is_one_part = False

    def __init__(
        self,
        session: RunningSteps,
        part: Part | None,
        program: LoadedProgram | None,
        pushes: Arrangement,
        pool: StepLinkPool,
        explain: Callable[[errors.OpError], Any],
    ) -> None:
        """`part` and `program` are our own, if we have any. `explain` makes of an error the one that tells whether a
        task has restarted: a coroutine function."""
        super().__init__(session, CallerClusterStep, part, program)
        self.pool, self.explain, self.workers = pool, explain, pushes.workers
        #: How the other tasks' parts are run.
        self.plans = {task: plan for task, plan in pushes.plans.items() if task != pushes.own_task}
        #: Where what our own part sends goes, by rendezvous key.
        self.sends = {} if part is None else part.sends
        #: In which order the other tasks are called. Replaced as a whole.
        self.order = tuple(self.plans)

    def call_last(self, task: str) -> None:
        """Calls this one after the others from now on: it runs on our core, and begins before our call returns."""
        self.order = (*(other for other in self.order if other != task), task)


class CallerClusterStep(CallerStep):
    """It waits for other tasks."""

    __slots__ = ()

    _graph: CallerClusterGraph

    def _begin(self, step_id: int) -> CallerClusterRun | None:
        lines = self._graph.pool.take(self._graph.workers)
        return None if lines is None else CallerClusterRun(self._graph, lines, step_id or new_step_id())


class CallerClusterRun(CallerRun):
    """One step."""

    __slots__ = ("_calls", "_frames", "_graph", "_lines", "_out", "_span")

    def __init__(self, graph: CallerClusterGraph, lines: StepLinks, step_id: int) -> None:
        super().__init__(step_id)
        self._graph, self._lines = graph, lines
        #: The span of our part while it runs, if somebody listens.
        self._span: Span | None = None
        #: Calls that were not answered yet, and what they brought, in case it has to be said again.
        self._calls: dict[str, PendingCall] = {}
        self._frames: dict[str, list[tuple[int, Value, bool]]] = {}
        #: What our own part has sent and what has not gone yet, by consumer.
        self._out: dict[str, list[Sent]] = {}

    def release(self) -> None:
        self._graph.pool.give(self._lines)

    def pending_tasks(self) -> tuple[str, ...]:
        return tuple(self._calls)

    def interrupt(self) -> None:
        """The other tasks are told; the step hears of it from them."""
        own = self.part_run
        if own is not None:
            own.stop.append(True)
        for task, call in list(self._calls.items()):
            link = self._lines.links.get(task)
            if link is not None:
                link.abandon(call)

    def run(self, feeds: dict[str, Value]) -> dict[str, Value]:
        session = self._graph.session
        try:
            return self._run(feeds)
        except errors.OpError as error:
            self._give_up(error)
            raise (session.failure(error) if session.stop else self._explained(error)) from None
        except Exception as error:
            self._give_up(error)
            raise session.failure(error) from error
        except BaseException as error:
            self._give_up(error)
            raise
        finally:
            for link in self._lines.links.values():
                link.on_notice = None
            # what the step holds is freed now, not by the garbage collector: others may wait for that memory
            if self.part_run is not None:
                self.part_run.end()
                self.part_run = None
            self._frames.clear()
            self._out.clear()

    def _run(self, feeds: dict[str, Value]) -> dict[str, Value]:
        graph, links = self._graph, self._lines.links
        started = time.monotonic()
        own: PartRun | None = None
        own_runs = False
        try:
            if graph.program is not None:
                if telemetry.tracer is not None:
                    self._span = step_spans.part(graph.session.task, graph.session.handle, self.step_id)
                own = self.part_run = PartRun(graph.program, feeds, self._send)
            # `interrupt` comes after the session's stop and reaches the part that is there by now
            if graph.session.stop:
                raise graph.session.stop[0]
            for task in graph.plans:
                links[task].on_notice = self._noticed
            if own is not None:
                # our part first: what it sends at once goes with the calls
                own_runs = self._advance(own)
        except errors.OpError as error:
            raise from_task(error, graph.session.task) from None
        order = graph.order
        for task in order:
            plan = graph.plans[task]
            self._frames[task] = numbered(self._out.pop(task, ()), plan)
            begin = time.perf_counter()
            self._call(task, plan, known=True)
            if task != order[-1] and time.perf_counter() - begin > _LONG_CALL:
                graph.call_last(task)
        seconds = graph.session.seconds
        deadline = None if seconds is None else started + seconds
        while self._calls or own_runs:
            if deadline is not None and time.monotonic() > deadline:
                assert seconds is not None
                raise late(seconds, self._calls)
            if not self._calls:
                # what is pushed comes before the answer
                raise errors.internal(f"Step {self.step_id:x} waits for nothing and has not ended.")
            self._lines.receive()
            self._look_at_calls()
            if own is not None and own_runs and own.can_go_on:
                own_runs = self._turn(own)
        if own is None:
            return {}
        # it is over, and needs no `end`
        self.part_run = None
        return own.fetched()

    def _turn(self, own: PartRun) -> bool:
        """Takes our own part as far as it goes, and sends what it has sent. Whether it still runs; raises its error."""
        try:
            runs = self._advance(own)
        except errors.OpError as error:
            raise from_task(error, self._graph.session.task) from None
        if self._out:
            out, self._out = self._out, {}
            for task, tensors in out.items():
                push(self._lines.links[task], self.step_id, tensors)
        return runs

    def _advance(self, own: PartRun) -> bool:
        """Takes our own part as far as it goes; whether it still runs. Raises its error."""
        runs = own.turn(CALLER) != DONE
        if not runs and self._span is not None:
            self._end_span(None)
        return runs

    def _end_span(self, error: BaseException | None) -> None:
        opened, self._span = self._span, None
        if opened is not None:
            telemetry.end(opened, error)

    def _send(self, key: str, value: Value | Variable, is_dead: bool) -> None:
        """What our own part sends."""
        self._out.setdefault(self._graph.sends[key], []).append((key, read_now(value), is_dead))

    def _call(self, task: str, plan: ExchangePlan, *, known: bool) -> None:
        link = self._lines.links[task]
        frame = run_frame(link, plan, self.step_id, {}, self._frames[task], DEFAULT_EXEC_OPTIONS, known=known)
        try:
            self._calls[task] = link.start(*frame)
        except errors.OpError as error:
            raise from_task(error, task) from None

    def _look_at_calls(self) -> None:
        """Takes the answers that have come. Raises the first error."""
        stopped = bool(self._graph.session.stop)
        for task, call in list(self._calls.items()):
            if call.answer is not None:
                del self._calls[task]
                plan = self._graph.plans[task]
                if read_answer(plan, call.answer, self._arrived) is None:
                    self._call(task, plan, known=False)
            elif call.error is not None:
                del self._calls[task]
                raise from_task(call.error, task)
        if stopped:
            raise self._graph.session.stop[0]

    def _noticed(self, method: int, header: bytes, buffers: list[Any]) -> None:
        """The peer pushes."""
        if method == LinkCall.PUSH:
            read_push(header, buffers, self._pushed)

    def _pushed(self, step_id: int, key: str, value: Value, is_dead: bool) -> None:
        # what comes late, of a step that failed, is not for this one
        if step_id == self.step_id:
            self._arrived(key, value, is_dead)

    def _arrived(self, key: str, value: Value, is_dead: bool) -> None:
        if self.part_run is not None:
            self.part_run.arrived(key, value, is_dead)

    def _give_up(self, error: BaseException) -> None:
        """Tells the other tasks that the step is over. Never raises an OpError."""
        self._end_span(error)
        for task in self._graph.plans:
            link = self._lines.links.get(task)
            if link is None or link.closed:
                self._graph.pool.tell(partial(self._graph.workers[task].cleanup_graph, self.step_id))
                continue
            try:
                call = self._calls.pop(task, None)
                if call is not None:
                    link.abandon(call)
                link.notify_nowait(LinkCall.CLEANUP_GRAPH, STEP.pack(self.step_id))
            except errors.OpError:
                continue

    def _explained(self, error: errors.OpError) -> errors.OpError:
        if error.code not in (errors.ABORTED, errors.UNAVAILABLE):
            return error
        try:
            explained: errors.OpError = self._graph.pool.ask(partial(self._graph.explain, error))
        except errors.OpError:
            return error
        return explained
