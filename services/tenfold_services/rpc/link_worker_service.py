"""Serves the calls between workers over one link: decode → call → encode. The other end is link_worker.py.

A run of a graph that is short and waits for nothing is answered within the read that brought it; one that waits for
pushed tensors is answered within the read that brings the last of them. What a run sends to its caller rides with the
answer.
"""

from __future__ import annotations

import asyncio
import struct
from itertools import compress
from typing import TYPE_CHECKING, Any, TypeAlias

from google.protobuf.message import DecodeError

from tenfold_core import errors
from tenfold_link.aio.methods import Deferred, LinkMethod
from tenfold_link.wire.calls import HAS_NAMES, RUN_GRAPH, RUN_GRAPH_ANSWER, STEP, UNKNOWN_NUMBER, LinkCall
from tenfold_link.wire.short_ids import KnownIds
from tenfold_protos.link_calls_pb2 import LinkArrangeRequest, LinkArrangeResponse, LinkProducer, LinkRunPlan
from tenfold_services.exchange.plan import ExchangePlan
from tenfold_services.exchange.step_frames import (
    answer_frame,
    malformed,
    options_of,
    pack,
    push,
    read_numbered,
    read_push,
    reader,
)
from tenfold_services.interfaces import RunRequest
from tenfold_services.worker.execution import check_counts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from tenfold_link.aio.methods import PeerLink

    from ..exchange.plan import Sent
    from ..interfaces import ExecOptions, PushWorker, RunGraphResult, Value
    from ..worker.graph_run import GraphRun
    from ..worker.worker import Worker

    Reply: TypeAlias = tuple[bytes, Sequence[Any]]

_UNKNOWN: tuple[bytes, Sequence[Any]] = (RUN_GRAPH_ANSWER.pack(UNKNOWN_NUMBER, 0, 0, 0), ())
#: Name of the caller among the consumers of a run.
_CALLER = ""


class WorkerEndpoint:
    """One peer's link. On the event loop's thread only."""

    def __init__(self, link: PeerLink, worker: Worker) -> None:
        self._link, self._worker = link, worker
        self._plans: KnownIds[ExchangePlan] = KnownIds()
        #: The task that pushes over this link, once it said so.
        self._producer = ""

    def methods(self) -> dict[int, LinkMethod]:
        return {
            LinkCall.RUN_GRAPH: LinkMethod("RunGraph", self.run_graph),
            LinkCall.RECV_TENSOR: LinkMethod("RecvTensor", self.recv_tensor),
            LinkCall.CLEANUP_GRAPH: LinkMethod("CleanupGraph", self.cleanup_graph),
            LinkCall.PUSH: LinkMethod("Push", self.push),
            LinkCall.ARRANGE: LinkMethod("Arrange", self.arrange),
            LinkCall.PRODUCER: LinkMethod("Producer", self.producer),
        }

    # -- runs --------------------------------------------------------------------------------------------------------

    def run_graph(self, link: PeerLink, header: bytes, buffers: list[Any]) -> Reply | Awaitable[Reply]:
        """A run of a registered graph. Raises as WorkerInterface.run_graph, and for a malformed frame."""
        try:
            number, step_id, flags, record, feed_count, brought, length = RUN_GRAPH.unpack_from(header)
        except struct.error as error:
            raise malformed("RunGraph", error) from None
        offset = RUN_GRAPH.size + length
        if flags & HAS_NAMES:
            told = ExchangePlan.from_message(_parse(LinkRunPlan(), header[RUN_GRAPH.size : offset]))
            program = self._worker.program(told.session_handle, told.graph_handle)
            check_counts(program.compiled, len(told.feeds), len(told.fetches))
            self._plans.learn(number, told)
        plan = self._plans.find(number)
        if plan is None:
            return _UNKNOWN
        feeds: dict[str, Value] = {}
        tensors: dict[str, tuple[Value, bool]] = {}
        if feed_count or brought:
            if feed_count != len(plan.feeds):
                raise malformed("RunGraph", f"{feed_count} feeds for {len(plan.feeds)}")
            records = reader(header, offset, buffers)
            for key in plan.feeds:
                feeds[key] = records.read()[0]
            try:
                for key, value, is_dead in read_numbered(header, records, brought, plan.call_keys):
                    tensors[key] = value, is_dead
            except (struct.error, IndexError) as error:
                raise malformed("RunGraph", error) from None
        linked = not plan.consumers or all(self._link_of(task).is_linked for task in plan.consumers)
        if linked and not record:
            result = self._worker.run_at_once(step_id, feeds, tensors, plan, self._push_on)
            if result is not None:
                return answer_frame(result, plan.fetches, self._link)
        for key, (value, is_dead) in tensors.items():
            self._worker.pushed(step_id, key, value, is_dead)
        options = options_of(record)
        if not linked:
            return self._run_later(plan, step_id, feeds, options)
        return self._run(plan, step_id, feeds, options)

    def _run(
        self, plan: ExchangePlan, step_id: int, feeds: dict[str, Value], options: ExecOptions
    ) -> Reply | Awaitable[Reply]:
        pending = _Pending(self._link, plan.fetches)
        request = RunRequest(plan.session_handle, plan.graph_handle, step_id, feeds, plan.fetches, options)
        run = self._worker.start_run(request, pending.ended, plan, self._push_on)
        if pending.done():
            reply: Reply = pending.result()
            return reply
        pending.run = run
        return pending

    async def _run_later(
        self, plan: ExchangePlan, step_id: int, feeds: dict[str, Value], options: ExecOptions
    ) -> Reply:
        """A consumer has no link to us (any more): first that, then the run."""
        for task in plan.consumers:
            await self._link_of(task).connect()
        reply = self._run(plan, step_id, feeds, options)
        return reply if isinstance(reply, tuple) else await reply

    def _push_on(self, task: str, step_id: int, tensors: list[Sent]) -> None:
        """Takes what a run has sent to its consumers."""
        if task != _CALLER:
            self._link_of(task).push(step_id, tensors)
        elif not self._link.closed:
            push(self._link, step_id, tensors)

    def _link_of(self, task: str) -> PushWorker:
        """The worker as one that can be pushed to. Raises UnavailableError where there is no link to it."""
        workers = self._worker.workers
        if workers is None:
            raise errors.not_found(f"{self._worker.task} knows no other task; tensors are to go to {task}.")
        worker: Any = workers.worker(task)
        if not hasattr(worker, "connect"):
            raise errors.unavailable(f"{task} cannot be pushed to: there is no link to it.")
        found: PushWorker = worker
        return found

    # -- tensors -----------------------------------------------------------------------------------------------------

    def push(self, link: PeerLink, header: bytes, buffers: list[Any]) -> None:
        """Tensors that their producer brings."""
        with self._worker.arrivals:
            read_push(header, buffers, self._worker.pushed)

    async def recv_tensor(self, link: PeerLink, header: bytes, buffers: list[Any]) -> Reply:
        """Waits for one tensor. Raises as WorkerInterface.recv_tensor."""
        try:
            (step_id,) = STEP.unpack_from(header)
            key = header[STEP.size :].decode()
        except (struct.error, UnicodeDecodeError) as error:
            raise malformed("RecvTensor", error) from None
        value, is_dead = await self._worker.recv_tensor(step_id, key)
        parts: list[bytes] = []
        out: list[Any] = []
        pack(value, is_dead, parts, out, link)
        return b"".join(parts), out

    def cleanup_graph(self, link: PeerLink, header: bytes, buffers: list[Any]) -> None:
        """Forgets steps."""
        try:
            steps = [step_id for (step_id,) in STEP.iter_unpack(header)]
        except struct.error as error:
            raise malformed("CleanupGraph", error) from None
        for step_id in steps:
            self._worker.steps.finish(step_id)

    # -- which task pushes to which ------------------------------------------------------------------------------------

    async def arrange(self, link: PeerLink, header: bytes, buffers: list[Any]) -> Reply:
        """Opens links to these tasks; answers with those that can be pushed to."""
        tasks = list(_parse(LinkArrangeRequest(), header).task)

        async def is_reached(task: str) -> bool:
            try:
                return await self._link_of(task).connect()
            except errors.OpError:
                return False

        reachable = compress(tasks, await asyncio.gather(*map(is_reached, tasks)))
        return LinkArrangeResponse(task=reachable).SerializeToString(), ()

    def producer(self, link: PeerLink, header: bytes, buffers: list[Any]) -> Reply:
        """The task that pushes over this link: when it breaks, runs that wait for that task's tensors end."""
        message = _parse(LinkProducer(), header)
        known, self._producer = self._producer, message.task
        if not known:
            link.on_close(lambda error: self._worker.producer_lost(self._producer, error))
        return b"", ()


class _Pending(Deferred):
    """A run that a peer waits for. Cancelling it stops the run."""

    def __init__(self, link: PeerLink, fetches: Sequence[str]) -> None:
        super().__init__()
        self._link, self._fetches = link, fetches
        self.run: GraphRun | None = None

    def ended(self, result: RunGraphResult | None, error: errors.OpError | None) -> None:
        """The run's end; dropped for a run that was cancelled."""
        self.run = None
        if self.done():
            return
        if error is not None:
            self.set_exception(error)
            return
        assert result is not None
        try:
            self.set_result(answer_frame(result, self._fetches, self._link))
        except Exception as failure:
            self.set_exception(failure)

    def cancel(self, msg: Any | None = None) -> bool:
        """As Future.cancel."""
        if not super().cancel(msg):
            return False
        if self.run is not None:
            self.run.cancel()
        return True


def _parse(message: Any, content: bytes) -> Any:
    try:
        message.ParseFromString(content)
    except DecodeError as error:
        raise malformed(type(message).__name__, error) from None
    return message
