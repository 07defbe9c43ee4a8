"""Steps that never leave this task, run on their caller's thread: no event loop, no lock, no rendezvous.

When a step has run on the scheduled path (master_session.py) and its client graph turns out to be one straight part of
this task, the session *offers* the graph here. From then on `CallerSteps.find` gives a `CallerStep` for its signature,
and `CallerStep.run` is a call of the compiled program. Used by in-process sessions (client:
client/session/direct_master.py) and by the link's server for short programs. What a CallerStep cannot do (a near
deadline, a closed session) it leaves to the scheduled path by returning None; so every refusal is worded in one place.
See docs/decisions/0009.

Threads: `offer`, `refuse`, `interrupt` and what waits belong to the event loop; `find` and `run` to any thread. A step
puts its number into `running` and only then looks at its program; a session that closes takes the programs away and
only then looks at `running`. So no step slips through, though the way of a step has no lock.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from tenfold_core import errors, telemetry
from tenfold_services.master.running_steps import RunningSteps
from tenfold_services.master.step_orders import StepOrders
from tenfold_services.worker.direct_call import DirectCall
from tenfold_services.worker.part_run import wait_texts
from tenfold_services.worker.run_policy import clock, is_callable, waits_for_kernels_only

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_services.interfaces import Value
    from tenfold_services.master.caller_cluster_steps import CallerClusterStep
    from tenfold_services.master.caller_waiting_steps import CallerWaitingStep
    from tenfold_services.master.client_graph import ClientGraph, RunSignature
    from tenfold_services.master.run_table import RunTable
    from tenfold_services.master.step_links import StepLinkPool
    from tenfold_services.step_count import StepCount
    from tenfold_services.worker.loaded_program import LoadedProgram


@runtime_checkable
class HasPrograms(Protocol):
    """A worker of this process, which can hand out what it has registered."""

    def program(self, session_handle: str, graph_handle: str) -> LoadedProgram:
        """Raises AbortedError for an unknown handle."""
        ...


class CallerStep:
    """One run signature of one session, feeds and fetches in a given order. Any thread may run it, many at once."""

    __slots__ = ("_call", "_graph", "wanted")

    #: Nothing in it waits for others.
    may_wait = False

    def __init__(self, graph: CallerGraph, call: DirectCall) -> None:
        self._graph, self.wanted = graph, ""
        #: None once the graph or its session has ended.
        self._call: DirectCall | None = call

    def is_short(self, feeds: Sequence[Value]) -> bool:
        """Whether a run with these feeds is short enough for an event loop's thread."""
        call = self._call
        return call is not None and self._graph.program.policy.is_short(call.shapes(feeds))

    def run(self, feeds: Sequence[Value]) -> list[Value] | None:
        """Runs the step; the fetched values, a read-only array among them is not the caller's own.

        None: it is not ready to run any more and did not; ask the master, which runs it or says why not. Blocks while
        kernels compute. Raises what a step raises, the same error in the same words. `feeds` are in the order asked for
        and stay unchanged until this returns.
        """
        graph = self._graph
        session = graph.session
        number = session.begin()
        try:
            call = self._call
            if call is None:
                return None
            graph.used = True
            if session.seconds is not None:
                return graph.run_in_time(call, feeds, session.seconds)
            session.steps += 1
            return call(feeds, session.stop)
        except errors.OpError as error:
            raise session.failure(error) from None
        except Exception as error:
            raise session.unexpected(error) from error
        finally:
            session.over(number)

    def run_in_spans(self, feeds: Sequence[Value]) -> list[Value] | None:
        """`run` within spans; only while somebody listens."""
        return self._graph.in_spans(lambda step_id: self.run(feeds), self.wanted)

    def run_timed(self, feeds: Sequence[Value]) -> list[Value] | None:
        """`run` for an event loop's thread: remembers how long it took, which decides `is_short`."""
        run = self.run if telemetry.tracer is None else self.run_in_spans
        policy = self._graph.program.policy
        if not policy.times_next():
            return run(feeds)
        begin = clock()
        values = run(feeds)
        spent, call = clock() - begin, self._call
        policy.note(spent, () if call is None else (call.shapes(feeds),))
        return values

    def end(self) -> None:
        """From now on `run` returns None. Runs under way go on."""
        self._call = None


class CallerGraph(StepOrders[CallerStep]):
    """A client graph that is one straight part of this task."""

    def __init__(self, session: RunningSteps, graph: ClientGraph, program: LoadedProgram) -> None:
        super().__init__(session, graph.parts[0].feed_keys, graph.parts[0].fetch_keys)
        self.program = program

    def run_in_time(self, call: DirectCall, feeds: Sequence[Value], seconds: float) -> list[Value] | None:
        """Runs a step that has a deadline; None for a program that may come near it, which the event loop watches.

        Raises DeadlineExceededError when a program that used to be quick took longer all the same.
        """
        policy = self.program.policy
        if not policy.is_far_from(seconds):
            return None
        self.session.steps += 1
        begin = perf_counter_ns()
        values = call(feeds, self.session.stop)
        took = (perf_counter_ns() - begin) / 1e9
        policy.note_deadline(took, seconds)
        if took > seconds:
            raise errors.deadline_exceeded(
                f"The step did not finish within {seconds * 1000:.0f} ms; it took {took * 1000:.0f} ms."
            )
        return values

    def _make(self, feeds: list[str | None], fetches: list[str]) -> CallerStep:
        return CallerStep(self, DirectCall(self.program, feeds, fetches))


class SessionSteps(RunningSteps):
    """One session's share, and what may run. Made on the event loop's thread."""

    def __init__(self, owner: CallerSteps, handle: str, seconds: float | None, runs: RunTable) -> None:
        super().__init__(owner.task, seconds, handle)
        #: All that the session knows of its runs.
        self.runs = runs
        self._owner = owner

    @property
    def graphs(self) -> dict[RunSignature, StepOrders[Any]]:
        """What was taken of what was offered."""
        return {graph.signature: graph.local for graph in self.runs.graphs if graph.local is not None}

    def offer(self, graph: ClientGraph, explain: Callable[[errors.OpError], Any] | None = None) -> None:
        """Takes the graph if it is one part of this task, or all that its parts exchange is pushed.

        `explain(error)` is a coroutine function: the error that tells whether a task has restarted.
        """
        owner = self._owner
        if graph.pushes is not None and owner.lines is not None and not owner.refuses:
            from tenfold_services.master.caller_cluster_steps import SHORTEST_DEADLINE, CallerClusterGraph

            if self.seconds is not None and self.seconds < SHORTEST_DEADLINE:
                return
            linked = CallerClusterGraph.of(self, self.handle, graph, owner.lines, explain)
            if linked is not None:
                graph.local = linked
            return
        if owner.refuses or len(graph.parts) != 1 or graph.parts[0].task != self.task:
            return
        part = graph.parts[0]
        if not isinstance(part.worker, HasPrograms):
            return
        program = part.worker.program(self.handle, part.handle)
        if is_callable(program.compiled):
            graph.local = CallerGraph(self, graph, program)
        elif self.seconds is None and waits_for_kernels_only(program.compiled):
            from tenfold_services.master.caller_waiting_steps import CallerWaitingGraph

            graph.local = CallerWaitingGraph(self, part, program)

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

    def __init__(self, task: str, lines: StepLinkPool | None = None, step_count: StepCount | None = None) -> None:
        """`lines` are for steps across tasks (step_links.py, caller_cluster_steps.py); `step_count` is the task's."""
        self.task = task
        self.lines = lines
        #: No session may offer anything any more.
        self.refuses = False
        #: Read from any thread.
        self._sessions: dict[str, SessionSteps] = {}
        #: Of sessions that are over.
        self._steps_before = 0
        if step_count is not None:
            step_count.of_callers = self._steps

    def open(self, handle: str, seconds: float | None, runs: RunTable) -> SessionSteps:
        """The share of a session with these `runs`; each of its steps may take so many `seconds`."""
        session = self._sessions[handle] = SessionSteps(self, handle, seconds, runs)
        return session

    def forget(self, handle: str) -> None:
        session = self._sessions.pop(handle, None)
        if session is not None:
            self._steps_before += session.steps

    def waits(self, handle: str) -> list[str]:
        """What the session's steps that run on their callers' threads wait for. Any thread."""
        session = self._sessions.get(handle)
        runs = [run.part_run for run in list(session.linked)] if session is not None else []
        return wait_texts(self.task, [run for run in runs if run is not None])

    def _steps(self) -> int:
        return self._steps_before + sum(session.steps for session in list(self._sessions.values()))

    def find(
        self, handle: str, feeds: tuple[str, ...], fetches: tuple[str, ...], targets: tuple[str, ...]
    ) -> CallerStep | CallerClusterStep | CallerWaitingStep | None:
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
