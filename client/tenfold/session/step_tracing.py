"""Traces the next steps of this process when somebody asks, whatever session runs them.

`start` makes a tracer `current`; base_session.py looks at it only on paths that are not taken while steps are prepared,
and prepared steps are dropped, so that nothing costs while nobody asks. What a tracer has becomes a ProgramTrace. Used
by tenfold.runs.program_trace. Any thread.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from tenfold.session import calls
from tenfold_protos import config_pb2, trace_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_protos.config_pb2 import RunMetadata, RunOptions
    from tenfold_protos.step_stats_pb2 import StepStats

#: Threads whose steps are traced, but not counted: they fill queues beside the training.
_BESIDE = "QueueRunnerThread"
#: Steps of those that one tracer records for each step that counts, and some more.
_BESIDE_STEPS = 4

#: The tracer that takes steps now.
current: StepTracer | None = None
_lock = threading.Lock()


class StepTracer:
    """Takes the next `steps` steps of the process, for `seconds` at most."""

    def __init__(self, steps: int, seconds: float, max_bytes: int) -> None:
        self._wanted = self._left = steps
        self._beside = _BESIDE_STEPS * (steps + 1)
        self._deadline = time.monotonic() + seconds
        self._max_bytes = max_bytes
        self._running = self._bytes = self._cut = 0
        self._lock = threading.Lock()
        self._trace = trace_pb2.ProgramTrace()
        #: Set once all steps that count have ended.
        self.done = threading.Event()

    @property
    def is_over(self) -> bool:
        """Whether it takes no more steps, or none that count."""
        return self.done.is_set() or time.monotonic() >= self._deadline

    def begins(self) -> bool:
        """Whether the step that is about to run is to be traced; then `run` runs it."""
        with self._lock:
            if self._left <= 0 or self.is_over:
                return False
            if threading.current_thread().name.startswith(_BESIDE):
                if self._beside <= 0:
                    return False
                self._beside -= 1
            else:
                self._left -= 1
                self._running += 1
            return True

    def run(
        self, step: Callable[[RunOptions], tuple[list[Any], RunMetadata]], options: RunOptions, names: Sequence[str]
    ) -> tuple[list[Any], RunMetadata]:
        """Runs `step` traced, whatever the program's `options` say of traces; what they did not ask for is not in the
        metadata. Raises what the step raises."""
        asked = options.trace_level >= config_pb2.RunOptions.SOFTWARE_TRACE
        traced = config_pb2.RunOptions()
        traced.CopyFrom(options)
        traced.trace_level = config_pb2.RunOptions.FULL_TRACE
        begin, metadata, error = time.time_ns(), None, ""
        try:
            values, metadata = step(traced)
            return values, metadata if asked else _without_stats(metadata)
        except BaseException as failure:
            error = f"{type(failure).__name__}: {failure}"[:1000]
            raise
        finally:
            self._note(begin, time.time_ns(), names, None if metadata is None else metadata.step_stats, error)

    def result(self) -> trace_pb2.ProgramTrace:
        """What was traced. Steps that still run are left out."""
        with self._lock:
            found = trace_pb2.ProgramTrace()
            found.CopyFrom(self._trace)
        counted = self._wanted - self._left - self._running
        notes = []
        if counted < self._wanted:
            notes.append(f"{counted} of {self._wanted} steps ended in time")
        if self._cut:
            notes.append(f"{self._cut} steps without their nodes: a trace takes {self._max_bytes} bytes")
        found.note = "; ".join(notes)
        return found

    def _note(self, begin: int, end: int, names: Sequence[str], stats: StepStats | None, error: str) -> None:
        step = trace_pb2.TracedStep(begin_nanos=begin, end_nanos=end, fetch=names[:100], error=error)
        if stats is not None:
            step.step_stats.CopyFrom(stats)
            for device in step.step_stats.dev_stats:
                for node in device.node_stats:
                    # the bytes are in `memory`, too
                    if node.memory:
                        del node.output[:]
        counts = not threading.current_thread().name.startswith(_BESIDE)
        with self._lock:
            size = step.ByteSize()
            if self._bytes + size > self._max_bytes:
                step.ClearField("step_stats")
                size = step.ByteSize()
                self._cut += 1
            self._bytes += size
            self._trace.step.append(step)
            self._running -= counts
            if self._left <= 0 and self._running <= 0:
                self.done.set()


def _without_stats(metadata: RunMetadata) -> RunMetadata:
    kept = config_pb2.RunMetadata()
    kept.CopyFrom(metadata)
    kept.ClearField("step_stats")
    return kept


def start(steps: int, seconds: float, max_bytes: int) -> StepTracer:
    """A tracer of the steps that begin from now on; it takes the place of the one before."""
    global current
    with _lock:
        found = current = StepTracer(steps, seconds, max_bytes)
    calls.drop_prepared()
    return found


def stop(tracer: StepTracer) -> None:
    """It takes no more steps; those that run end traced."""
    global current
    with _lock:
        if current is tracer:
            current = None


def is_wanted() -> bool:
    """Whether the next step may be traced, so that it must not be a prepared one."""
    tracer = current
    return tracer is not None and not tracer.is_over
