"""Tracing a run: its programs are asked in the answers to their reports, and send what they traced.

Called by routes/traces.py and, for each report, by routes/runs.py. trace_table.py decides, tenfold.profiler makes the
file. A trace lives in the service that was asked for it: with several replicas the programs must report to that one.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from tenfold.profiler.cluster_trace import cluster_trace
from tenfold_control_api.problems import ApiError
from tenfold_control_api.traces.trace_table import TraceTable
from tenfold_core.device import task_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_control_api.leases import Clock
    from tenfold_control_api.runs.models import TraceOrder
    from tenfold_control_api.runs.record import RunRecord
    from tenfold_control_api.runs.service import RunService
    from tenfold_control_api.service_settings import Settings
    from tenfold_control_api.traces.trace_table import Task, Trace
    from tenfold_protos.trace_pb2 import ProgramTrace


class RunTraces:
    """Used on one event loop."""

    def __init__(self, runs: RunService, settings: Settings, clock: Clock) -> None:
        self._runs, self._clock = runs, clock
        self._table = TraceTable(
            clock,
            limit=settings.max_traces,
            max_bytes=settings.max_program_trace - 4096,
            kept_bytes=settings.kept_trace_bytes,
        )
        #: What those wait for that have asked for a trace.
        self._waits: set[asyncio.Event] = set()
        self._stopping = False
        runs.listeners.append(self._run_changed)

    async def trace(
        self,
        run_id: str,
        steps: int,
        tasks: Sequence[str],
        seconds: float,
        check: Callable[[RunRecord], None] = lambda _: None,
    ) -> tuple[str, bytes]:
        """Traces the next `steps` steps of each program, or those of `tasks` ("worker/0"); the trace's name and its
        file. Blocks until all have answered, `seconds` at most; who did not is named in the file. `check` raises for a
        run that may not be traced.

        Raises DEADLINE_EXCEEDED if nobody has traced anything, and NOT_FOUND, FAILED_PRECONDITION, ABORTED,
        RESOURCE_EXHAUSTED.
        """
        run = await self._runs.get(run_id)
        check(run)
        run.require_active()
        wanted = _tasks(run, tasks)
        over = asyncio.Event()
        trace = self._table.begin(run_id, steps, seconds, wanted, over.set)
        self._waits.add(over)
        try:
            try:
                async with asyncio.timeout(seconds):
                    await over.wait()
            except TimeoutError:
                trace.give_up()
            if self._stopping:
                raise ApiError("stopping", "the control service is stopping; ask again.")
        finally:
            self._waits.discard(over)
            self._table.end(trace)
        if not trace.came:
            why = "; ".join(f"{job}/{index}: {reason}" for (job, index), reason in sorted(trace.missing.items()))
            missing = [task_name(*task) for task in sorted(trace.missing)]
            raise ApiError("nothing-traced", f"no program of run {run_id} was traced: {why}.", missing_tasks=missing)
        file = await asyncio.to_thread(_file, await self._runs.get(run_id), trace)
        self._table.keep(trace, file)
        return trace.id, file

    def order_for(self, run_id: str, job: str, index: int) -> TraceOrder | None:
        """What a program that reports is to trace, if anything. Never blocks."""
        return self._table.order_for(run_id, job, index)

    def add(self, run_id: str, trace_id: str, job: str, index: int, found: ProgramTrace) -> None:
        """What a program traced. Raises NOT_FOUND for a trace that does not wait for it."""
        self._table.add(run_id, trace_id, job, index, found)

    async def get(self, run_id: str, trace_id: str) -> bytes:
        """A file made before. Raises NOT_FOUND."""
        await self._runs.get(run_id)
        return self._table.get(run_id, trace_id)

    def begin_stop(self) -> None:
        """Ends every wait. Never blocks."""
        self._stopping = True
        for over in self._waits:
            over.set()

    def _run_changed(self, _: RunRecord | None, run: RunRecord) -> None:
        if run.state.final:
            self._table.end_run(run.id, f"the run has ended: it is {run.state}")


def _tasks(run: RunRecord, names: Sequence[str]) -> list[Task]:
    """The tasks named, or all but the parameter servers, whose programs run no steps. Raises NOT_FOUND."""
    sizes = run.submission["jobs"]
    if not names:
        return [(job, index) for job, size in sizes.items() if job != "ps" for index in range(size)]
    found: list[Task] = []
    for name in names:
        job, _, index = name.partition("/")
        if not index.isdecimal() or int(index) >= sizes.get(job, 0):
            raise ApiError("no-such-task", f"run {run.id} has no task {name!r}; one is called as in worker/0.")
        found.append((job, int(index)))
    return found


def _file(run: RunRecord, trace: Trace) -> bytes:
    """The trace as JSON. Takes long for many nodes."""
    hosts = {task_name(task["job"], task["index"]): task["host"] for task in run.tasks if task.get("host")}
    found = cluster_trace(
        [(task_name(*task), trace.came[task]) for task in sorted(trace.came)],
        clocks=hosts,
        missing=[(task_name(*task), why) for task, why in sorted(trace.missing.items())],
    )
    found["metadata"] |= {"run": run.id, "trace": trace.id}
    return json.dumps(found, separators=(",", ":")).encode()
