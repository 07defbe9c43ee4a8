"""Steps of one part of this task, run on their caller's thread: no event loop, no lock, no rendezvous.

`CallerDirectStep.run` is a call of the compiled program (worker/direct_call.py), the fast path of a session in this
process and of the link's server for short programs. `CallerWaitingStep` is for programs with kernels that may have to
wait, or that are not compiled as a whole: a dequeue before a training step, an enqueue of a queue runner's thread, an
iterator. Its thread takes the run (worker/part_run.py) as far as it goes, sleeps while a kernel waits, and goes on when
it is woken. caller_steps.py chooses the graphs. See docs/decisions/0009 and 0108.
"""

from __future__ import annotations

from queue import SimpleQueue
from time import perf_counter_ns
from typing import TYPE_CHECKING

from tenfold_core import errors, telemetry
from tenfold_services.master.caller_graph import CallerGraph, CallerRun, CallerStep, RunningSteps
from tenfold_services.worker.direct_call import DirectCall
from tenfold_services.worker.execution import cancelled, no_send
from tenfold_services.worker.part_run import DONE, PartRun
from tenfold_services.worker.pools import on_callers_thread
from tenfold_services.worker.run_policy import CALLER, FAR_FROM_DEADLINE, clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_services.interfaces import Value


class CallerDirectStep(CallerStep):
    """Nothing in it waits for others."""

    __slots__ = ("_call", "_policy")

    may_wait = False

    def __init__(self, graph: CallerGraph, feeds: list[str | None], fetches: list[str], wanted: str) -> None:
        super().__init__(graph, feeds, fetches, wanted)
        assert graph.program is not None
        self._policy = graph.program.policy
        #: None once the graph or its session has ended.
        self._call: DirectCall | None = DirectCall(graph.program, feeds, fetches)

    def is_short(self, feeds: Sequence[Value]) -> bool:
        call = self._call
        return call is not None and self._policy.is_short(call.shapes(feeds))

    def run(self, feeds: Sequence[Value], step_id: int = 0) -> list[Value] | None:
        graph = self._graph
        session = graph.session
        # as `session.begin` and `session.over`, whose calls would be a twentieth of a null step
        number = next(session.numbers)
        session.running.add(number)
        try:
            call = self._call
            if call is None:
                return None
            graph.used = True
            if session.seconds is not None:
                return self._run_in_time(session, call, feeds, session.seconds)
            session.steps += 1
            return call(feeds, session.stop)
        except Exception as error:
            raise session.failure(error) from None if isinstance(error, errors.OpError) else error
        finally:
            session.running.discard(number)
            if session.watched:
                session.tell_watcher()

    def _run_in_time(
        self, session: RunningSteps, call: DirectCall, feeds: Sequence[Value], seconds: float
    ) -> list[Value] | None:
        """None for a program that may come near its deadline, which the event loop watches."""
        if not self._policy.is_far_from(seconds):
            return None
        session.steps += 1
        begin = perf_counter_ns()
        values = call(feeds, session.stop)
        took = (perf_counter_ns() - begin) / 1e9
        if took * FAR_FROM_DEADLINE > seconds:
            self._policy.forget_time()
            if took > seconds:
                # it used to be quick
                raise errors.deadline_exceeded(
                    f"The step did not finish within {seconds * 1000:.0f} ms; it took {took * 1000:.0f} ms."
                )
        return values

    def run_timed(self, feeds: Sequence[Value]) -> list[Value] | None:
        run = self.run if telemetry.tracer is None else self.run_in_spans
        policy = self._policy
        if not policy.times_next():
            return run(feeds)
        begin = clock()
        values = run(feeds)
        spent, call = clock() - begin, self._call
        policy.note(spent, () if call is None else (call.shapes(feeds),))
        return values

    def end(self) -> None:
        self._call = None


class WaitingRun(CallerRun):
    """One step."""

    __slots__ = ("_graph", "_woken")

    def __init__(self, graph: CallerGraph) -> None:
        # no other task hears of the step: its number need only be no other's that is under way in this process
        super().__init__(id(self))
        self._graph = graph
        #: An entry for each time that somebody else has something for the run.
        self._woken: SimpleQueue[None] = SimpleQueue()

    def _wake(self) -> None:
        self._woken.put(None)

    def interrupt(self) -> None:
        part = self.part_run
        if part is not None:
            part.stop.append(True)
            part.fail(cancelled())
        self._wake()

    def run(self, feeds: dict[str, Value]) -> dict[str, Value]:
        session, program = self._graph.session, self._graph.program
        assert program is not None
        part: PartRun | None = None
        try:
            part = self.part_run = PartRun(program, feeds, no_send)
            part.wake = self._wake
            while not session.stop:
                with on_callers_thread():
                    done = part.turn(CALLER) == DONE
                if done:
                    return part.fetched()
                self._woken.get()
            raise session.stop[0]
        except Exception as error:
            raise session.failure(error) from None if isinstance(error, errors.OpError) else error
        finally:
            if part is not None:
                part.wake = None
                part.end()


class CallerWaitingStep(CallerStep):
    """Of a part which gets nothing from elsewhere but from its own kernels. A deadline takes the scheduled path."""

    __slots__ = ()

    def _begin(self, step_id: int) -> WaitingRun:
        return WaitingRun(self._graph)
