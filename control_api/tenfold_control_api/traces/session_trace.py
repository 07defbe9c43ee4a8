"""Tracing a step of a session: the step runs as any other, with everything recorded, and its trace is the answer.

Called by routes/traces.py. What traces is put between the step and its master.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from tenfold.profiler.cluster_trace import cluster_trace
from tenfold_core import errors
from tenfold_core.address import split_address
from tenfold_protos import config_pb2, trace_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold.session.master_interface import MasterInterface
    from tenfold_control_api.cluster import Cluster
    from tenfold_control_api.steps import StepRequest

#: The process of the file that stands for this service, the client of the step.
CLIENT = "control service"


def traced(
    step: StepRequest, clocks: Mapping[str, str]
) -> Callable[[MasterInterface, str, float, Callable[[], None]], bytes]:
    """What runs `step` traced and gives the file, for `SessionService.run_step`. `clocks`: task → host. It blocks, and
    raises as the step does."""

    def work(master: MasterInterface, handle: str, left: float, acting: Callable[[], None]) -> bytes:
        between: Any = _Tracing(master)
        step.run(between, handle, left, acting)
        if between.error is not None:
            raise between.error
        found = cluster_trace([(CLIENT, trace_pb2.ProgramTrace(step=between.steps))], clocks=clocks)
        found["metadata"]["session"] = handle
        return json.dumps(found, separators=(",", ":")).encode()

    return work


def hosts_of(cluster: Cluster | None) -> dict[str, str]:
    """Task → the host of its address: tasks of one host share a clock."""
    if cluster is None:
        return {}
    return {task.name: split_address(task.address)[0] for task in cluster.tasks.values() if task.address}


class _Tracing:
    """The master, for one step that is traced."""

    def __init__(self, master: MasterInterface) -> None:
        self._master = master
        self.steps: list[trace_pb2.TracedStep] = []
        #: Of the step; it may have been told in the step's answer only.
        self.error: errors.OpError | None = None

    def run_step(
        self,
        handle: str,
        feeds: Mapping[str, Any],
        fetches: Sequence[str],
        targets: Sequence[str],
        options: config_pb2.RunOptions,
        timeout: float | None,
    ) -> tuple[list[Any], config_pb2.RunMetadata]:
        asked = config_pb2.RunOptions()
        asked.CopyFrom(options)
        asked.trace_level = config_pb2.RunOptions.FULL_TRACE
        begin = time.time_ns()
        try:
            values, metadata = self._master.run_step(handle, feeds, fetches, targets, asked, timeout)
        except errors.OpError as error:
            self.error = error
            raise
        self.steps.append(
            trace_pb2.TracedStep(
                begin_nanos=begin,
                end_nanos=time.time_ns(),
                fetch=[*fetches, *targets],
                step_stats=metadata.step_stats,
            )
        )
        return values, config_pb2.RunMetadata()
