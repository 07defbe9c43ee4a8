"""Steps across tasks, run on their caller's thread, which calls the other tasks, runs our own part and waits.

What caller_own_steps.py is for steps of one task, this is for those whose every edge between tasks is pushed
(arrangement.py). A step costs the round trip to the other tasks and no hop between threads. One step is in
caller_cluster_run.py, its links are in step_links.py. See docs/decisions/0008.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_services.master.caller_cluster_run import CallerClusterGraph, CallerClusterRun
from tenfold_services.master.caller_graph import CallerStep
from tenfold_services.master.step_state import new_step_id
from tenfold_services.worker.run_policy import waits_for_links_only

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core import errors
    from tenfold_services.master.caller_graph import RunningSteps
    from tenfold_services.master.client_graph import ClientGraph
    from tenfold_services.master.step_links import StepLinkPool

#: Seconds. A step looks at its clock after each wait for its links, half a second at most; one whose time is shorter
#: than this takes the scheduled path, where a timer ends it to the millisecond.
SHORTEST_DEADLINE = 5.0


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
    return CallerClusterGraph(session, CallerClusterStep, part, program, pushes, pool, explain)


class CallerClusterStep(CallerStep):
    """It waits for other tasks."""

    __slots__ = ()

    _graph: CallerClusterGraph

    def _begin(self, step_id: int) -> CallerClusterRun | None:
        lines = self._graph.pool.take(self._graph.workers)
        return None if lines is None else CallerClusterRun(self._graph, lines, step_id or new_step_id())
