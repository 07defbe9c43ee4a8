"""Steps of one task that wait for queues and the like, run on the thread that asks for them.

What caller_steps.CallerStep is for programs of one call, this is for those with kernels that may have to wait, or that
are not compiled as a whole: a dequeue before a training step, an enqueue of a queue runner's thread, an iterator. The
thread takes the run (worker/part_run.py) as far as it goes, sleeps while a kernel waits, and goes on when it is woken,
so that no step crosses to the event loop and back. A step with a deadline takes the scheduled path, where a timer ends
it. Any number of threads may run steps at once. See docs/decisions/0108.
"""

from __future__ import annotations

from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_services.master.step_orders import StepOrders
from tenfold_services.master.step_that_waits import StepThatWaits
from tenfold_services.worker.part_run import DONE, PartRun
from tenfold_services.worker.pools import on_callers_thread
from tenfold_services.worker.run_policy import CALLER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_services.interfaces import Value
    from tenfold_services.master.running_steps import RunningSteps
    from tenfold_services.worker.loaded_program import LoadedProgram

    from .graph_part import Part


class CallerWaitingGraph(StepOrders["CallerWaitingStep"]):
    """A client graph that is one part of this task, which gets nothing from elsewhere but from its own kernels."""

    def __init__(self, session: RunningSteps, part: Part, program: LoadedProgram) -> None:
        super().__init__(session, part.feed_keys, part.fetch_keys)
        self.program = program

    def _make(self, feeds: list[str | None], fetches: list[str]) -> CallerWaitingStep:
        return CallerWaitingStep(self, feeds, fetches)


class _Run:
    """One step. On its caller's thread, but for `interrupt`."""

    __slots__ = ("_part", "_woken")

    def __init__(self, program: LoadedProgram, feeds: dict[str, Value]) -> None:
        #: An entry for each time that somebody else has something for the run.
        self._woken: SimpleQueue[None] = SimpleQueue()
        self._part = PartRun(program, feeds, _no_send)
        self._part.wake = self._wake

    def _wake(self) -> None:
        self._woken.put(None)

    @property
    def part_run(self) -> PartRun:
        """Our own part."""
        return self._part

    def interrupt(self) -> None:
        """The session ends. Any thread."""
        part = self._part
        part.stop.append(True)
        part.fail(errors.cancelled("Step was cancelled."))
        self._wake()

    def run(self, stop: list[errors.OpError]) -> dict[str, Value]:
        """The fetched values by key. Raises the step's error. `stop` has why the session ends, once it does."""
        part, woken = self._part, self._woken
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


class CallerWaitingStep(StepThatWaits):
    """One run signature with feeds and fetches in a given order. See caller_steps.CallerStep."""

    __slots__ = ("_feeds", "_fetches", "_graph")

    def __init__(self, graph: CallerWaitingGraph, feeds: list[str | None], fetches: list[str]) -> None:
        super().__init__()
        self._graph, self._feeds, self._fetches = graph, feeds, fetches

    def run_in_spans(self, feeds: Sequence[Value]) -> list[Value] | None:
        """See CallerStep."""
        return self._graph.in_spans(lambda step_id: self.run(feeds), self.wanted)

    def run(self, feeds: Sequence[Value]) -> list[Value] | None:
        """Runs the step; None if it did not and the scheduled path must. Blocks. Raises what a step raises."""
        graph = self._graph
        session = graph.session
        number = session.begin()
        try:
            if self._ended:
                return None
            graph.used = True
            session.steps += 1
            given = {key: value for key, value in zip(self._feeds, feeds, strict=True) if key is not None}
            run = _Run(graph.program, given)
            # whoever ends the session says so first, and then looks at what runs
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
