"""The traces of runs that are being made, and the finished ones that are kept. Pure: no I/O, no waiting.

run_traces.py drives it. A trace waits for its tasks until each has sent what it traced, or has a reason why it will
not.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs.models import TraceOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_protos.trace_pb2 import ProgramTrace

#: Seconds before the end of a trace at which its programs stop to wait for steps, so that what they have arrives.
_UPLOAD_S = 1.0

Task = tuple[str, int]


@dataclass(slots=True)
class Trace:
    """One trace of a run."""

    run: str
    steps: int
    #: By the clock of the service.
    deadline: float
    #: Those whose programs have not been heard yet.
    waiting: set[Task]
    done: Callable[[], None]
    id: str = field(default_factory=lambda: f"trace-{uuid.uuid4().hex[:12]}")
    #: Those that were told to trace, and for how many seconds.
    ordered: dict[Task, float] = field(default_factory=dict)
    came: dict[Task, ProgramTrace] = field(default_factory=dict)
    missing: dict[Task, str] = field(default_factory=dict)

    def add(self, task: Task, trace: ProgramTrace) -> None:
        """What a program traced."""
        if task not in self.waiting:
            return
        if trace.step:
            self.came[task] = trace
        else:
            self.missing[task] = f"it ran no step within {self.ordered.get(task, 0.0):.1f} s"
        self._heard(task)

    def give_up(self, why: str | None = None) -> None:
        """Nobody else is waited for: `why`, or because the time is over."""
        for task in sorted(self.waiting):
            asked = "was asked, and did not answer" if task in self.ordered else "did not report"
            self.missing[task] = why or f"it {asked} in time"
        self.waiting.clear()
        self.done()

    def _heard(self, task: Task) -> None:
        self.waiting.discard(task)
        if not self.waiting:
            self.done()


class TraceTable:
    """All traces of one service."""

    def __init__(self, clock: Callable[[], float], *, limit: int, max_bytes: int, kept_bytes: int) -> None:
        self._clock = clock
        self._limit, self._max_bytes, self._kept_bytes = limit, max_bytes, kept_bytes
        #: By run.
        self._active: dict[str, Trace] = {}
        #: Id → (run, file), the oldest first.
        self._kept: OrderedDict[str, tuple[str, bytes]] = OrderedDict()

    def begin(self, run: str, steps: int, seconds: float, tasks: Sequence[Task], done: Callable[[], None]) -> Trace:
        """A trace of `tasks`; `done` is called once nobody is waited for. Raises ABORTED while the run is traced, and
        RESOURCE_EXHAUSTED."""
        if run in self._active:
            raise ApiError("trace-active", f"run {run} is being traced: {self._active[run].id}. Ask again after it.")
        if len(self._active) >= self._limit:
            raise ApiError("too-many-traces", f"{len(self._active)} runs are being traced; that is the limit.")
        found = self._active[run] = Trace(run, steps, self._clock() + seconds, set(tasks), done)
        return found

    def order_for(self, run: str, job: str, index: int) -> TraceOrder | None:
        """What the program that reports is to trace, if anything."""
        trace = self._active.get(run)
        if trace is None or (job, index) not in trace.waiting:
            return None
        left = trace.deadline - self._clock() - _UPLOAD_S
        if left <= 0:
            return None
        trace.ordered.setdefault((job, index), left)
        return TraceOrder(id=trace.id, steps=trace.steps, seconds=left, max_bytes=self._max_bytes)

    def add(self, run: str, trace_id: str, job: str, index: int, found: ProgramTrace) -> None:
        """What a program traced. Raises NOT_FOUND for a trace that does not wait for it."""
        trace = self._active.get(run)
        if trace is None or trace.id != trace_id or (job, index) not in trace.waiting:
            raise ApiError("no-such-trace", f"trace {trace_id} of run {run} does not wait for {job}/{index}.")
        trace.add((job, index), found)

    def end_run(self, run: str, why: str) -> None:
        """The run has ended: nobody is waited for."""
        if (trace := self._active.get(run)) is not None:
            trace.give_up(why)

    def end(self, trace: Trace) -> None:
        """The trace is over; a later one of its run may begin."""
        if self._active.get(trace.run) is trace:
            del self._active[trace.run]

    def keep(self, trace: Trace, file: bytes) -> None:
        """Keeps the file for a while: until newer ones need the memory."""
        self._kept[trace.id] = trace.run, file
        while len(self._kept) > 1 and sum(len(each) for _, each in self._kept.values()) > self._kept_bytes:
            self._kept.popitem(last=False)

    def get(self, run: str, trace_id: str) -> bytes:
        """A file that is kept. Raises NOT_FOUND."""
        found = self._kept.get(trace_id)
        if found is None or found[0] != run:
            raise ApiError("no-such-trace", f"run {run} has no trace {trace_id}: it is not made yet, or forgotten.")
        return found[1]
