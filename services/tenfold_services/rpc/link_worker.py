"""Another Tenfold task's worker, reached over a link for what steps need, and over gRPC for the rest.

Extends rpc/grpc_worker.py: as long as there is a link, RunGraph, RecvTensor and CleanupGraph go over it; where there is
none (TensorFlow's servers, links switched off, a link that cannot be opened) nothing changes. cluster.py makes one for
each other task. The other end of the link is link_worker_service.py. Implements interfaces.PushWorker.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_core.access.credentials import NO_CREDENTIALS, Credentials
from tenfold_link.aio.dial import LinkDialer
from tenfold_link.wire import handshake
from tenfold_link.wire.calls import STEP, LinkCall
from tenfold_protos.link_calls_pb2 import LinkArrangeRequest, LinkArrangeResponse, LinkProducer
from tenfold_services.exchange.plan import ExchangePlan
from tenfold_services.exchange.step_frames import malformed, push, read_answer, reader, run_frame
from tenfold_services.rpc.own_services import asker

from ..limits import DEFAULT_LIMITS, Limits
from ..rpc.grpc_worker import GrpcWorker
from ..worker.execution import kept

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold_link.aio.link import Link
    from tenfold_link.aio.methods import OnLink
    from tenfold_link.link_settings import LinkSettings
    from tenfold_link.wire.buffers import Answer
    from tenfold_protos.link_pb2 import OpenLinkResponse

    from ..exchange.plan import Sent
    from ..interfaces import Brought, Done, ExecOptions, Life, RunGraphResult, RunRequest, Value

#: Key of Link.state: the peer knows which task pushes over it.
_INTRODUCED = "producer"


class LinkWorker(GrpcWorker):
    """The worker of `task` at `address`. Close it; calls still waiting end with UnavailableError."""

    def __init__(
        self,
        task: str,
        address: str,
        limits: Limits = DEFAULT_LIMITS,
        *,
        own: Life,
        on_link: OnLink,
        settings: LinkSettings,
        deliver: Callable[[int, str, Value, bool], None],
        credentials: Credentials = NO_CREDENTIALS,
    ) -> None:
        """`own` is our task; `on_link` says what the peer may call back over a link that we open.

        `deliver(step_id, key, value, is_dead)` takes what the peer sends along with its answers.
        """
        super().__init__(task, address, limits, credentials)
        self._tls = credentials.of(address) is not None
        self._own, self._deliver = own, deliver
        self._ask = asker(self._channel, task, address, limits.probe_answer_seconds)
        self._dialer = LinkDialer(
            self._ask,
            address,
            task=own[0],
            peer=task,
            on_link=on_link,
            settings=settings,
            credentials=credentials,
        )

    # -- the link ----------------------------------------------------------------------------------------------------

    @property
    def is_linked(self) -> bool:
        link = self._dialer.link
        return link is not None and _INTRODUCED in link.state

    async def connect(self) -> bool:
        link = await self._dialer.get()
        if link is None:
            return False
        if _INTRODUCED not in link.state:
            message = LinkProducer(task=self._own[0], incarnation=self._own[1])
            link.state[_INTRODUCED] = await link.call(LinkCall.PRODUCER, message.SerializeToString())
        return True

    def can(self, ability: str) -> bool:
        link = self._dialer.link
        return link is not None and ability in link.can

    async def ask_link(self, settings: LinkSettings) -> OpenLinkResponse:
        return await self._ask(handshake.ask(settings, self._own[0], tls=self._tls))

    async def close(self) -> None:
        """Ends the connection and the link. Bounded; idempotent."""
        await self._dialer.close()
        await super().close()

    # -- steps -------------------------------------------------------------------------------------------------------

    async def run_graph(self, request: RunRequest) -> RunGraphResult:
        link = self._dialer.link or await self._dialer.get()
        session_handle, graph_handle, step_id, feeds, fetches, options = request
        if link is None or options.is_partial:
            return await super().run_graph(request)
        plan = ExchangePlan(session_handle, graph_handle, tuple(feeds), tuple(fetches))
        return await self._run_over(link, plan, step_id, feeds, (), options)

    def start_plan(
        self, plan: ExchangePlan, step_id: int, brought: Brought, options: ExecOptions, done: Done
    ) -> PlanCall:
        return PlanCall(self, plan, step_id, brought, options, done)

    async def _run_over(
        self,
        link: Link,
        plan: ExchangePlan,
        step_id: int,
        feeds: Mapping[str, Value],
        brought: Brought,
        options: ExecOptions,
    ) -> RunGraphResult:
        known = True
        while True:
            answer = await link.call(*run_frame(link, plan, step_id, feeds, brought, options, known=known))
            result = self.read_answer(plan, step_id, answer)
            if result is not None:
                return result
            if not known:
                raise malformed("RunGraph's answer", "it does not know the plan that came with the call")
            known = False

    def read_answer(self, plan: ExchangePlan, step_id: int, answer: Answer) -> RunGraphResult | None:
        """The result of a run, once what came along is delivered; None when the peer does not know the plan."""
        result = read_answer(plan, answer, partial(self._deliver, step_id))
        if result is not None:
            for key, value in result.values.items():
                result.values[key] = kept(value)
        return result

    async def recv_tensor(self, step_id: int, key: str) -> tuple[Value, bool]:
        link = self._dialer.link or await self._dialer.get()
        if link is None:
            return await super().recv_tensor(step_id, key)
        header, buffers = await link.call(LinkCall.RECV_TENSOR, STEP.pack(step_id) + key.encode())
        return reader(header, 0, buffers).read()

    async def cleanup_graph(self, step_id: int) -> None:
        link = self._dialer.link
        if link is None:
            await super().cleanup_graph(step_id)
        else:
            await link.notify(LinkCall.CLEANUP_GRAPH, STEP.pack(step_id))

    # -- push --------------------------------------------------------------------------------------------------------

    def push(self, step_id: int, tensors: Sequence[Sent]) -> None:
        link = self._dialer.link
        if link is None:
            raise errors.unavailable(f"{self.task} at {self.address} cannot be reached: the link to it broke.")
        push(link, step_id, tensors)

    async def arrange(self, tasks: Sequence[str]) -> list[str]:
        link = await self._dialer.get()
        if link is None:
            return []
        header, _ = await link.call(LinkCall.ARRANGE, LinkArrangeRequest(task=tasks).SerializeToString())
        return list(LinkArrangeResponse.FromString(header).task)


class PlanCall:
    """One run under way at a peer."""

    def __init__(
        self, worker: LinkWorker, plan: ExchangePlan, step_id: int, brought: Brought, options: ExecOptions, done: Done
    ) -> None:
        self._worker, self._plan, self._step_id, self._done = worker, plan, step_id, done
        self._brought, self._options = brought, options
        #: None before and after.
        self._call: asyncio.Future[Any] | None = None
        link = worker._dialer.link
        if link is None:
            self._reconnect()
            return
        try:
            call = link.call_nowait(*run_frame(link, plan, step_id, {}, brought, options))
        except errors.OpError as error:
            done(None, error)
            return
        self._call = call
        call.then = self._answered

    def cancel(self) -> None:
        """Stops the run; `done` hears of its end as usual."""
        if self._call is not None:
            self._call.cancel()

    def _reconnect(self) -> None:
        """The slow way: there is no link now, or the peer does not know the plan."""
        task = asyncio.get_running_loop().create_task(self._run(), name=f"run_graph:{self._worker.task}")
        self._call = task
        task.add_done_callback(self._ended)

    async def _run(self) -> RunGraphResult:
        worker = self._worker
        link = worker._dialer.link
        if link is None and await worker.connect():
            link = worker._dialer.link
        if link is None:
            why = "the link to it broke and cannot be opened again"
            raise errors.unavailable(f"{worker.task} at {worker.address} cannot be reached: {why}.")
        return await worker._run_over(link, self._plan, self._step_id, {}, self._brought, self._options)

    def _answered(self, call: asyncio.Future[Answer]) -> None:
        self._call = None
        if call.cancelled() or call.exception() is not None:
            self._ended(call)
            return
        try:
            result = self._worker.read_answer(self._plan, self._step_id, call.result())
        except Exception as error:
            self._done(None, errors.as_op_error(error))
            return
        if result is None:
            self._reconnect()
        else:
            self._done(result, None)

    def _ended(self, call: asyncio.Future[Any]) -> None:
        self._call = None
        if call.cancelled():
            self._done(None, errors.cancelled(f"The call to {self._worker.task} was cancelled."))
        elif (error := call.exception()) is not None:
            self._done(None, errors.as_op_error(error))
        else:
            self._done(call.result(), None)
