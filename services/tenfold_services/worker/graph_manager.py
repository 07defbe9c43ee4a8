"""The graphs and steps of a worker: starts runs of registered graphs, keeps their tensors' meeting points, ends them.

Nothing here waits for a run: graph_run.py calls back. worker.py puts the waiting interface over it; links and the
master of the same task call it directly. In TensorFlow: graph_mgr.cc.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from tenfold_core import errors, telemetry
from tenfold_core.rendezvous_key import parse_key
from tenfold_kernels.resources.quota import StateQuota
from tenfold_kernels.resources.state import ResourceManager

from .. import step_spans
from ..step_spans import StepCount
from .arrivals import Arrivals
from .graph_run import GraphRun, explained
from .lost_producers import LostProducers
from .outbox import Outbox, run_at_once
from .rendezvous import StepTable
from .sessions import SessionTable, WorkerSession
from .tracing import TracedExecution, TransferLog
from .waits import StepRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tenfold_protos.device_attributes_pb2 import DeviceAttributes

    from ..cluster import ClusterWorkers
    from ..exchange.plan import ExchangePlan, Push
    from ..interfaces import Done, RunGraphResult, RunRequest, Value
    from ..limits import Limits
    from .loaded_program import LoadedProgram
    from .pools import MakePools
    from .rendezvous import Rendezvous


class GraphManager:
    """Of the worker of `task`. On the event loop's thread only."""

    def __init__(self, task: str, limits: Limits, devices: list[DeviceAttributes], pools: MakePools) -> None:
        """`pools` makes what runs long programs, works on large graphs and waits for files."""
        #: Shared by all sessions that are not isolated.
        self.resources = ResourceManager(quota=StateQuota(limits.most_state_bytes, limits.queues))
        self.limits = limits
        #: Those that run or are not cleaned up yet. A key does not say in which session's names it is.
        self.steps = StepTable(limits)
        #: For the Logging RPC.
        self.transfers = TransferLog()
        #: The steps that had a part here.
        self.step_count = StepCount()
        #: Runs long programs and compiles graphs; the large ones are compiled, and cut by the master, in the other one.
        self.pools = pools(task, limits)
        self.pool, self.graph_pool, self.file_pool = self.pools
        #: Entered while several tensors are handed out at once.
        self.arrivals = Arrivals()
        #: Set once: why no new work is taken.
        self._refusal: errors.OpError | None = None
        self._begin_as(task, devices)

    def _begin_as(self, task: str, devices: list[DeviceAttributes]) -> None:
        """What each name of this worker has to itself; guests share the rest."""
        self.task = task
        #: The workers that can be asked for tensors; set by the server once there is a cluster.
        self.workers: ClusterWorkers | None = None
        self.devices = devices
        self._incarnations = {device.name: device.incarnation for device in devices}
        #: CPU:0's, which stands for the task's.
        self.incarnation = devices[0].incarnation
        #: This worker under other names, for sessions that bring a cluster of their own (session_cluster.py).
        self.guests: list[GraphManager] = []
        self._sessions = SessionTable(task, self.resources, self.limits)
        self._lost = LostProducers(self.limits.probe_answer_seconds)
        #: Partitions that run here now, and what `drained` waits for.
        self.running = 0
        self._drained: asyncio.Event | None = None

    # -- runs ----------------------------------------------------------------------------------------------------------

    def start_run(
        self, request: RunRequest, done: Done, plan: ExchangePlan | None = None, push: Push | None = None
    ) -> GraphRun:
        """`run_graph` without waiting: `done` is called once, maybe before this returns.

        Raises what keeps it from starting.
        With a `plan`, what it says goes out through `push`, and what it expects is waited for. The step is forgotten
        at its end unless a task may still ask for a tensor of it.
        """
        opened = None
        if telemetry.tracer is not None:
            opened = step_spans.part(self.task, request.session_handle, request.step_id)
            done = step_spans.ending(opened, done)
            push = push and step_spans.noting(opened, push)
        try:
            session, program, rendezvous = self._begin(request)
            outbox = None if plan is None or push is None else Outbox(plan, rendezvous, push)
            executor = TracedExecution if request.options.record_timeline else None
            run = GraphRun(self, session, program, rendezvous, request.fetches, done, plan, outbox, executor)
            run.start(request.feeds)
        except BaseException as error:
            if opened is not None:
                telemetry.end(opened, error)
            raise
        if self._lost.recent and not run.ended:
            self._lost.began(run)
        return run

    def _begin(self, request: RunRequest) -> tuple[WorkerSession, LoadedProgram, Rendezvous]:
        """What a run needs. Raises what keeps it from starting."""
        self._check_open()
        session = self._sessions.get(request.session_handle)
        found = session, session.graph(request.graph_handle), self.steps.get(request.step_id, time.monotonic())
        self.step_count.steps += 1
        return found

    def run_at_once(
        self,
        step_id: int,
        feeds: Mapping[str, Value],
        brought: Mapping[str, tuple[Value, bool]],
        plan: ExchangePlan,
        push: Push,
    ) -> RunGraphResult | None:
        """The run within this call if it is short and has all it needs, else None; use `start_run` then."""
        opened = None
        if telemetry.tracer is not None:
            opened = step_spans.part(self.task, plan.session_handle, step_id)
            push = step_spans.noting(opened, push)
        try:
            self._check_open()
            program = self._sessions.get(plan.session_handle).graph(plan.graph_handle)
            if not plan.expected <= brought.keys() or self.steps.find(step_id) is not None:
                return None  # something of it is missing, or is here already
            self.step_count.steps += 1
            result = run_at_once(program, plan, step_id, feeds, brought, push)
        except Exception as error:
            failure = explained(error, self.task, f"Step {step_id}")
            if opened is not None:
                telemetry.end(opened, failure)
            raise failure from None if isinstance(error, errors.OpError) else error
        if opened is not None and result is not None:
            telemetry.end(opened, None)
        return result

    def runs_inline(self, session_handle: str, graph_handle: str) -> bool:
        """Whether the graph's last runs were short. False for an unknown one. A run may go to the pool all the same."""
        try:
            program = self._sessions.get(session_handle).graph(graph_handle)
        except errors.OpError:
            return False
        return program.policy.was_short()

    def every_resources(self) -> list[ResourceManager]:
        """The resources of all sessions, isolated ones and guests' among them; some may come twice. Any thread."""
        return [self.resources, *(session.resources for _, session in self._every_session())]

    def step_runs(self) -> list[StepRun]:
        """The parts of steps that run here, of all sessions. Any thread."""
        return [
            StepRun(task, part, step.step_id, session.handle, session.master_task or task, step.created)
            for task, session in self._every_session()
            for run in list(session.running)
            if (step := run.rendezvous) and (part := run.part_run) is not None
        ]

    def programs(self) -> list[tuple[str, str, LoadedProgram]]:
        """The registered graphs, each with its session and the task of its master. Any thread."""
        return [
            (session.handle, session.master_task or task, program)
            for task, session in self._every_session()
            for program in list(session.graphs.values())
        ]

    def _every_session(self) -> Iterator[tuple[str, WorkerSession]]:
        """The sessions under each name of this worker, with that name."""
        return ((worker.task, session) for worker in (self, *self.guests) for session in worker._sessions)

    def over(self) -> None:
        """A run has ended."""
        self.running -= 1
        if self._drained is not None and not self.running:
            self._drained.set()
            self._drained = None

    # -- tensors -------------------------------------------------------------------------------------------------------

    def pushed(self, step_id: int, key: str, value: Value, is_dead: bool) -> None:
        """A tensor that its producer brought. Never blocks. Late ones, of steps that are over, are dropped."""
        try:
            rendezvous = self.steps.get(step_id, time.monotonic())
        except errors.AbortedError:
            return
        if rendezvous.error is not None:
            return
        try:
            rendezvous.send(key, value, is_dead)
        except errors.OpError as error:
            rendezvous.abort(error)

    def producer_lost(self, task: str, error: errors.OpError) -> None:
        """The link over which `task` pushed is gone: steps that wait for its tensors end with `error`, now or later."""
        self._lost.lost(task, error, [run for session in self._sessions for run in session.running])

    async def recv_remote(self, task: str, step_id: int, key: str) -> tuple[Value, bool]:
        """Asks another task for a tensor."""
        if self.workers is None:
            raise errors.not_found(f"{self.task} knows no other task; {task} was asked for {key}.")
        if not self.transfers.enabled:
            return await self.workers.worker(task).recv_tensor(step_id, key)
        begin = time.time_ns()
        value, is_dead = await self.workers.worker(task).recv_tensor(step_id, key)
        self.transfers.note(step_id, key, begin, value)
        return value, is_dead

    def _check_key(self, key: str) -> None:
        """Raises InvalidArgumentError for a device of another task, AbortedError for an earlier life of this one."""
        parsed = parse_key(key)
        incarnation = self._incarnations.get(parsed.send_device)
        for guest in self.guests if incarnation is None else ():
            incarnation = incarnation or guest._incarnations.get(parsed.send_device)
        if incarnation is None:
            raise errors.invalid_argument(
                f"{self.task} was asked for a tensor of {parsed.send_device}; its devices are "
                f"{', '.join(self._incarnations)}. The key was {key!r}."
            )
        if incarnation != parsed.send_incarnation:
            raise errors.aborted(
                f"RecvTensor expects a different device incarnation: {parsed.send_incarnation} vs. {incarnation}. "
                f'Your worker job ("{self.task}") was probably restarted. '
                "Check your worker job for the reason why it was restarted."
            )

    # -- stopping ------------------------------------------------------------------------------------------------------

    def refuse(self, error: errors.OpError) -> None:
        """From now on new work gets `error`, also under other names. First step of stopping."""
        for worker in (self, *self.guests):
            worker._refusal = error

    def _check_open(self) -> None:
        if self._refusal is not None:
            raise self._refusal

    async def drained(self) -> None:
        """Returns once no partition runs here, under whatever name. To be called after `refuse`."""
        for guest in list(self.guests):
            await guest.drained()
        if self.running:
            if self._drained is None:
                self._drained = asyncio.Event()
            await self._drained.wait()

    def abort_steps(self, error: errors.OpError) -> None:
        """Ends every step on this task with `error`."""
        for _, session in self._every_session():
            for running in session.running:
                running.stop()
        self.steps.abort_all(error)
