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
from typing import TYPE_CHECKING, Any

from tenfold_core import errors, telemetry
from tenfold_services.master.caller_graph import CallerGraph, CallerStep, RunningSteps
from tenfold_services.worker.direct_call import DirectCall
from tenfold_services.worker.part_run import DONE, PartRun
from tenfold_services.worker.pools import on_callers_thread
from tenfold_services.worker.run_policy import CALLER, FAR_FROM_DEADLINE, clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_services.interfaces import Value
    from tenfold_services.worker.loaded_program import LoadedProgram


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
        except errors.OpError as error:
            raise session.failure(error) from None
        except Exception as error:
            raise session.unexpected(error) from error
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


class WaitingRun:
    """One step. On its caller's thread, but for `interrupt`."""

    __slots__ = ("_woken", "part_run")

    def __init__(self, program: LoadedProgram, feeds: dict[str, Value]) -> None:
        #: An entry for each time that somebody else has something for the run.
        self._woken: SimpleQueue[None] = SimpleQueue()
        self.part_run = PartRun(program, feeds, _no_send)
        self.part_run.wake = self._wake

    def _wake(self) -> None:
        self._woken.put(None)

    @property
    def step_id(self) -> int:
        """A number that no other step under way in this process has: no other task hears of this one."""
        return id(self)

    def pending_tasks(self) -> tuple[str, ...]:
        return ()

    def interrupt(self) -> None:
        """The session ends, and its `stop` says why. Any thread."""
        part = self.part_run
        part.stop.append(True)
        part.fail(errors.cancelled("Step was cancelled."))
        self._wake()

    def run(self, stop: list[errors.OpError]) -> dict[str, Value]:
        """The fetched values by key. Raises the step's error. `stop` has why the session ends, once it does."""
        part, woken = self.part_run, self._woken
        try:
            while not stop:
                with on_callers_thread():
                    done = part.turn(CALLER) == DONE
                if done:
                    return part.fetched()
                woken.get()
            raise stop[0]
        finally:
            part.wake = None
            part.end()


class CallerWaitingStep(CallerStep):
    """Of a part which gets nothing from elsewhere but from its own kernels. A deadline takes the scheduled path."""

    __slots__ = ()

    def run(self, feeds: Sequence[Value], step_id: int = 0) -> list[Value] | None:
        graph = self._graph
        session = graph.session
        number = session.begin()
        try:
            if self._ended:
                return None
            graph.used = True
            session.steps += 1
            given = {key: value for key, value in zip(self._feeds, feeds, strict=True) if key is not None}
            assert graph.program is not None
            run = WaitingRun(graph.program, given)
            # the end of a session is said first; then what runs is looked at
            session.linked.add(run)
            try:
                fetched = run.run(session.stop)
            finally:
                session.linked.discard(run)
            return [fetched[key] for key in self._fetches]
        except errors.OpError as error:
            raise session.failure(error) from None
        except Exception as error:
            raise session.unexpected(error) from error
        finally:
            session.over(number)


def _no_send(key: str, value: Any, is_dead: bool) -> None:
    raise AssertionError(f"a program that sends ({key}) is not run by its caller")
