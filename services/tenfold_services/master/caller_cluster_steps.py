"""Steps across tasks, run on their caller's thread, which calls the other tasks, runs our own part and waits.

What caller_steps.py is for steps of one task, this is for those whose every edge between tasks is pushed
(arrangement.py). A step costs the round trip to the other tasks and no hop between threads. What outlives a step is
here: the graph and the orders of its feeds and fetches. One step is in caller_cluster_run.py, its links are in
step_links.py. A step that cannot run here returns None and takes the scheduled path. Any number of threads may run
steps at once. See docs/decisions/0008.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tenfold_services.master.caller_cluster_run import CallerClusterRun, LinkedParts
from tenfold_services.master.running_steps import new_step_id
from tenfold_services.master.step_orders import StepOrders
from tenfold_services.master.step_that_waits import StepThatWaits
from tenfold_services.worker.run_policy import waits_for_links_only

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_core import errors
    from tenfold_services.exchange.plan import ExchangePlan
    from tenfold_services.interfaces import PushWorker, Value
    from tenfold_services.master.running_steps import RunningSteps
    from tenfold_services.master.step_links import StepLinkPool
    from tenfold_services.worker.loaded_program import LoadedProgram

    from .client_graph import ClientGraph
    from .graph_part import Part

#: Seconds. A step looks at its clock after each wait for its links, half a second at most; one whose time is shorter
#: than this takes the scheduled path, where a timer ends it to the millisecond.
SHORTEST_DEADLINE = 5.0


class CallerClusterGraph(StepOrders["CallerClusterStep"]):
    """A client graph whose every edge between tasks is pushed, over links, as far as this task sees it."""

    is_one_part = False

    def __init__(
        self,
        session: RunningSteps,
        pool: StepLinkPool,
        own: tuple[Part, LoadedProgram] | None,
        plans: dict[str, ExchangePlan],
        workers: dict[str, PushWorker],
        explain: Callable[[errors.OpError], Any] | None,
    ) -> None:
        part = None if own is None else own[0]
        super().__init__(session, {} if part is None else part.feed_keys, {} if part is None else part.fetch_keys)
        self.pool = pool
        program, sends = (None, {}) if own is None else (own[1], own[0].sends)
        #: What each run of it is given.
        self.linked = LinkedParts(session, pool, program, sends, plans, workers, explain)

    @classmethod
    def of(
        cls, session: RunningSteps, session_handle: str, graph: ClientGraph, pool: StepLinkPool, explain: Any = None
    ) -> CallerClusterGraph | None:
        """None if some edge is not pushed, or some part is reached in another way."""
        pushes = graph.pushes
        if pushes is None or not pushes.forgetful.issuperset(graph.tasks):
            return None
        plans = dict(pushes.plans)
        own: tuple[Part, LoadedProgram] | None = None
        own_plan = plans.pop(pushes.own_task, None)
        if own_plan is not None:
            program = pushes.local.program(session_handle, own_plan.graph_handle)
            if not waits_for_links_only(program.compiled, own_plan.expected):
                return None
            own = next(part for part in graph.parts if part.task == pushes.own_task), program
        return cls(session, pool, own, plans, pushes.workers, explain)

    def _make(self, feeds: list[str | None], fetches: list[str]) -> CallerClusterStep:
        return CallerClusterStep(self, feeds, fetches)


class CallerClusterStep(StepThatWaits):
    """One run signature with feeds and fetches in a given order. See caller_steps.CallerStep."""

    __slots__ = ("_feeds", "_fetches", "_graph")

    def __init__(self, graph: CallerClusterGraph, feeds: list[str | None], fetches: list[str]) -> None:
        super().__init__()
        self._graph, self._feeds, self._fetches = graph, feeds, fetches

    def run_in_spans(self, feeds: Sequence[Value]) -> list[Value] | None:
        """See CallerStep."""
        return self._graph.in_spans(partial(self.run, feeds), self.wanted)

    def run(self, feeds: Sequence[Value], step_id: int = 0) -> list[Value] | None:
        """Runs the step; None if it did not and the scheduled path must. Blocks. Raises what a step raises. `step_id`
        is its number, unless it may be any."""
        graph = self._graph
        session = graph.session
        number = session.begin()
        try:
            if self._ended:
                return None
            lines = graph.pool.take(graph.linked.workers)
            if lines is None:
                return None
            graph.used = True
            if graph.linked.own is not None:
                session.steps += 1
            given = {key: value for key, value in zip(self._feeds, feeds, strict=True) if key is not None}
            run = CallerClusterRun(graph.linked, lines, step_id or new_step_id())
            try:
                session.linked.add(run)
                fetched = run.run(given)
            finally:
                session.linked.discard(run)
                graph.pool.give(lines)
            return [fetched[key] for key in self._fetches]
        finally:
            session.over(number)
