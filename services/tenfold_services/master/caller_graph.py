"""What outlives a step on its caller's thread: the client graph, and a step ready for each order of feeds and fetches;
and which steps of a session run so now.

`CallerStep` has what all kinds share; caller_own_steps.py and caller_cluster_steps.py have the kinds, of which
caller_steps.py chooses one for each graph.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from functools import partial
from typing import TYPE_CHECKING

from tenfold_core import errors, telemetry
from tenfold_services import step_spans
from tenfold_services.master.step_state import from_task, new_step_id
from tenfold_services.worker.graph_run import explained

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_services.interfaces import Value
    from tenfold_services.master.arrangement import Part
    from tenfold_services.worker.loaded_program import LoadedProgram
    from tenfold_services.worker.part_run import PartRun

#: Orders that one graph keeps ready; a program has one or two.
_ORDERS = 64


class CallerRun:
    """One run of a step that may wait: across tasks, or for kernels. On its caller's thread, but for `interrupt`."""

    __slots__ = ("part_run", "step_id")

    def __init__(self, step_id: int) -> None:
        self.step_id = step_id
        #: Our own part of the step, if it has one, once it runs.
        self.part_run: PartRun | None = None

    def run(self, feeds: dict[str, Value]) -> dict[str, Value]:
        """The fetched values by key. Raises the step's error as the client sees it."""
        raise NotImplementedError

    def release(self) -> None:
        """It is over: gives back what it has from others."""

    def pending_tasks(self) -> tuple[str, ...]:
        """The other tasks whose parts have not answered. Any thread."""
        return ()

    def interrupt(self) -> None:
        """The session ends, and `RunningSteps.stop` says why. On the event loop's thread."""
        raise NotImplementedError


class RunningSteps:
    """Of one session. Made on the event loop's thread; `begin` and `over` on any.

    A step puts its number into `running` and only then looks whether its graph has ended; a session that closes ends
    its graphs and only then looks at `running`. So no step slips through, though the way of a step has no lock.
    """

    def __init__(self, task: str, handle: str, seconds: float | None) -> None:
        self.task, self.handle = task, handle
        #: The session's own deadline for each step.
        self.seconds = seconds
        #: Steps that began here. Any thread adds to it; counts as StepCount does.
        self.steps = 0
        #: Numbers of the steps that run now. Changed by single operations only, which are atomic.
        self.running: set[int] = set()
        #: Why all steps have to end; empty while they need not.
        self.stop: list[errors.OpError] = []
        #: `idle` waits for `running` to be empty.
        self.watched = False
        #: Steps that run now and may wait: across tasks, or for kernels.
        self.linked: set[CallerRun] = set()
        #: Whence a step takes its number.
        self.numbers = itertools.count()
        self._loop = asyncio.get_running_loop()
        self._idle = asyncio.Event()

    def begin(self) -> int:
        """A step begins; the number by which it is over. Any thread."""
        number = next(self.numbers)
        self.running.add(number)
        return number

    def over(self, number: int) -> None:
        """The step has ended. Any thread."""
        self.running.discard(number)
        if self.watched:
            self.tell_watcher()

    def failure(self, error: Exception) -> errors.OpError:
        """A step's error, or a defect, as the client sees it."""
        if self.stop:
            why: errors.OpError = self.stop[0]
            return errors.from_code(why.code, why.message)
        return from_task(explained(error, self.task, "A step"), self.task)

    async def idle(self) -> None:
        """Returns once nothing runs; once no step begins any more."""
        self.watched = True
        while self.running:
            self._idle.clear()
            if self.running:
                await self._idle.wait()

    def tell_watcher(self) -> None:
        """A step is over; any thread."""
        try:
            self._loop.call_soon_threadsafe(self._idle.set)
        except RuntimeError:
            return  # the loop has ended, and `idle` with it


class CallerStep:
    """One run signature of one session, feeds and fetches in a given order. Any thread may run it, many at once.

    As it is here: one that waits, and so is not for an event loop's thread; `_begin` makes its run.
    """

    __slots__ = ("_ended", "_feeds", "_fetches", "_graph", "wanted")

    may_wait = True

    def __init__(self, graph: CallerGraph, feeds: list[str | None], fetches: list[str], wanted: str) -> None:
        """Feeds and fetches by rendezvous key; None stands for a feed that nothing needs, whose value is dropped.
        `wanted` is what its spans show."""
        self._graph, self._feeds, self._fetches, self.wanted = graph, feeds, fetches, wanted
        self._ended = False

    def run(self, feeds: Sequence[Value], step_id: int = 0) -> list[Value] | None:
        """Runs the step; the fetched values, a read-only array among them is not the caller's own.

        None: it is not ready to run any more and did not; ask the master, which runs it or says why not. Blocks while
        kernels compute, or others do. Raises what a step raises, the same error in the same words. `feeds` are in the
        order asked for and stay unchanged until this returns. `step_id` is its number, unless it may be any.
        """
        graph = self._graph
        session = graph.session
        number = session.begin()
        try:
            run = None if self._ended else self._begin(step_id)
            if run is None:
                return None
            graph.used = True
            if graph.program is not None:
                session.steps += 1
            try:
                # the end of a session is said first; then what runs is looked at
                session.linked.add(run)
                given = {key: value for key, value in zip(self._feeds, feeds, strict=True) if key is not None}
                fetched = run.run(given)
            finally:
                session.linked.discard(run)
                run.release()
            return [fetched[key] for key in self._fetches]
        finally:
            session.over(number)

    def _begin(self, step_id: int) -> CallerRun | None:
        """A new run; None where there can be none now."""
        raise NotImplementedError

    def run_in_spans(self, feeds: Sequence[Value]) -> list[Value] | None:
        """`run` within spans; only while somebody listens."""
        graph, step_id = self._graph, new_step_id()
        task, handle, part_id = graph.session.task, graph.session.handle, step_id if graph.is_one_part else 0
        return step_spans.on_callers_thread(partial(self.run, feeds, step_id), task, handle, self.wanted, part_id)

    def is_short(self, feeds: Sequence[Value]) -> bool:
        """Whether a run with these feeds is short enough for an event loop's thread."""
        return False

    def run_timed(self, feeds: Sequence[Value]) -> list[Value] | None:
        """`run` for an event loop's thread: remembers how long it took, which decides `is_short`."""
        return None

    def end(self) -> None:
        """From now on `run` returns None. Runs under way go on."""
        self._ended = True


class CallerGraph:
    """A client graph whose steps run on their callers' threads. Any thread; its lock is not held while a step runs."""

    #: Whether a step is one part of this task and nothing else.
    is_one_part = True

    def __init__(
        self, session: RunningSteps, kind: type[CallerStep], part: Part | None, program: LoadedProgram | None
    ) -> None:
        """`part` and `program` are this task's own. What is fed and needed by nothing that runs has no key there."""
        self.session, self._kind, self.program = session, kind, program
        self._feed_keys = {} if part is None else part.feed_keys
        self._fetch_keys = {} if part is None else part.fetch_keys
        #: A step ran it since the cache of client graphs last asked.
        self.used = False
        #: Guards the two below.
        self._lock = threading.Lock()
        self._steps: dict[tuple[tuple[str, ...], tuple[str, ...]], CallerStep] = {}
        self._ended = False

    def step(self, feeds: tuple[str, ...], fetches: tuple[str, ...], targets: Sequence[str] = ()) -> CallerStep | None:
        """The step with this order of canonical names; None once ended. `targets` are for its spans."""
        with self._lock:
            if self._ended:
                return None
            found = self._steps.get((feeds, fetches))
            if found is None:
                if len(self._steps) >= _ORDERS:
                    self._steps.pop(next(iter(self._steps))).end()
                keys = [self._feed_keys.get(name) for name in feeds], [self._fetch_keys[name] for name in fetches]
                found = self._steps[feeds, fetches] = self._kind(self, *keys, telemetry.wanted_names(fetches, targets))
            return found

    def end(self) -> None:
        """No step starts any more, and the program can be freed once those under way are over."""
        with self._lock:
            self._ended = True
            for step in self._steps.values():
                step.end()
            self._steps.clear()
