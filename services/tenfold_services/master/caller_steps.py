"""Which steps their callers' threads run by themselves, and those that run so now: of a session, and of the whole task.

When a step has run on the scheduled path (master_session.py), the session *offers* its client graph here. If it is one
part of this task, or all that its parts exchange is pushed, `CallerSteps.find` gives a `CallerStep` for its signature
from then on. Used by in-process sessions (client/session/direct_master.py) and by the link's server for short programs.
What such a step cannot do (a near deadline, a closed session) it leaves to the scheduled path by returning None, so
every refusal is worded in one place. See docs/decisions/0009.

`offer`, `refuse`, `interrupt` and what waits belong to the event loop's thread; `find` and the steps to any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_services.master.caller_graph import CallerGraph, RunningSteps
from tenfold_services.master.caller_own_steps import CallerDirectStep, CallerWaitingStep
from tenfold_services.worker.run_policy import is_callable, waits_for_kernels_only
from tenfold_services.worker.waits import StepRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core import errors
    from tenfold_services.master.caller_graph import CallerStep
    from tenfold_services.master.client_graph import ClientGraph, RunSignature
    from tenfold_services.master.run_table import RunTable
    from tenfold_services.master.step_links import StepLinkPool


class SessionSteps(RunningSteps):
    """One session's share, and what may run. Made on the event loop's thread."""

    def __init__(self, owner: CallerSteps, handle: str, seconds: float | None, runs: RunTable) -> None:
        super().__init__(owner.task, handle, seconds)
        self._owner = owner
        #: All that the session knows of its runs.
        self.runs = runs

    @property
    def graphs(self) -> dict[RunSignature, CallerGraph]:
        """What was taken of what was offered."""
        return {graph.signature: graph.local for graph in self.runs.graphs if graph.local is not None}

    def offer(self, graph: ClientGraph, explain: Callable[[errors.OpError], Any]) -> None:
        """Takes the graph if it is one part of this task, or all that its parts exchange is pushed.

        `explain(error)` is a coroutine function: the error that tells whether a task has restarted.
        """
        lines = self._owner.lines
        if self._owner.refuses:
            return
        if graph.pushes is not None and lines is not None:
            from tenfold_services.master.caller_cluster_steps import SHORTEST_DEADLINE, cluster_graph

            if self.seconds is None or self.seconds >= SHORTEST_DEADLINE:
                graph.local = cluster_graph(self, graph, lines, explain)
            return
        part = graph.parts[0]
        # only a worker of this process can hand out what it has registered
        if len(graph.parts) != 1 or part.task != self.task or not hasattr(part.worker, "program"):
            return
        program = part.worker.program(self.handle, part.handle)
        if is_callable(program.compiled):
            graph.local = CallerGraph(self, CallerDirectStep, part, program)
        elif self.seconds is None and waits_for_kernels_only(program.compiled):
            graph.local = CallerGraph(self, CallerWaitingStep, part, program)

    def refuse(self) -> None:
        """No step starts here any more; those under way go on."""
        for graph in self.graphs.values():
            graph.end()

    def interrupt(self, error: errors.OpError) -> None:
        """`refuse`, and steps under way end with `error` as soon as they look."""
        self.refuse()
        self.stop.append(error)
        for run in list(self.linked):
            run.interrupt()
        self._owner.forget(self.handle)


class CallerSteps:
    """All of a task's."""

    def __init__(self, task: str, lines: StepLinkPool | None = None) -> None:
        """`lines` are for steps across tasks (step_links.py, caller_cluster_steps.py)."""
        self.task = task
        self.lines = lines
        #: No session may offer anything any more.
        self.refuses = False
        #: Read from any thread.
        self._sessions: dict[str, SessionSteps] = {}
        #: Of sessions that are over.
        self._steps_before = 0

    def open(self, handle: str, seconds: float | None, runs: RunTable) -> SessionSteps:
        """The share of a session with these `runs`; each of its steps may take so many `seconds`."""
        session = self._sessions[handle] = SessionSteps(self, handle, seconds, runs)
        return session

    def forget(self, handle: str) -> None:
        session = self._sessions.pop(handle, None)
        if session is not None:
            self._steps_before += session.steps

    def step_runs(self) -> list[StepRun]:
        """The steps that run on their callers' threads and may wait. Any thread."""
        return [
            StepRun(self.task, run.part_run, run.step_id, session.handle, self.task, parts=run.pending_tasks())
            for session in list(self._sessions.values())
            for run in list(session.linked)
        ]

    @property
    def steps(self) -> int:
        """Steps that began here, since the task started. Any thread."""
        return self._steps_before + sum(session.steps for session in list(self._sessions.values()))

    def find(
        self, handle: str, feeds: tuple[str, ...], fetches: tuple[str, ...], targets: tuple[str, ...]
    ) -> CallerStep | None:
        """What runs this step, with feeds and fetches in this order; None if only the scheduled path can. Any thread.

        Names are as in RunStep. Keep what you get: `find` costs some microseconds, `CallerStep.run` does not.
        """
        session = self._sessions.get(handle)
        if session is None:
            return None
        run = session.runs.find(feeds, fetches, targets)
        if run is None or run.graph.local is None:
            return None
        return run.graph.local.step(run.names.feeds, run.names.fetches, targets)

    def refuse(self) -> None:
        """The task stops: no step starts here any more."""
        self.refuses = True
        for session in list(self._sessions.values()):
            session.refuse()

    async def drained(self) -> None:
        """Returns once no step runs here; after `refuse`."""
        for session in list(self._sessions.values()):
            await session.idle()
