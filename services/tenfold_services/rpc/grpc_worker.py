"""Another task's worker, reached by gRPC. Implements interfaces.WorkerInterface.

Calls fail fast: a peer that cannot be reached is an UnavailableError that names task, address and reason. Set-up calls
have deadlines; so have those that end something, which are made once more where the connection breaks. RunGraph and
RecvTensor have none, as in TensorFlow; while one of them waits, a probe asks the peer for a sign of life, because a
host that lost power closes no connection. In TensorFlow: grpc_remote_worker.cc.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from grpc import aio

from tenfold_compiler.graph.send_recv import signed
from tenfold_core import errors
from tenfold_core.access.credentials import NO_CREDENTIALS, Credentials
from tenfold_core.attr_compat import Dialect
from tenfold_core.request_id import new_request_id
from tenfold_core.traffic import traffic_with
from tenfold_kernels.resources.messages import decode, encode_into
from tenfold_protos import worker_pb2

from ..interfaces import Life, RunGraphResult, RunRequest, Value
from ..limits import DEFAULT_LIMITS, Limits
from .channels import open_channel
from .peer_life import PeerLife
from .service import TENFOLD_TASK
from .status import from_rpc_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from google.protobuf.message import Message

    from tenfold_protos.config_pb2 import ConfigProto
    from tenfold_protos.device_attributes_pb2 import DeviceAttributes
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_protos.tensorflow_server_pb2 import ServerDef

#: Until what ends something is told again.
_AGAIN_SECONDS = 0.1


class GrpcWorker:
    """The worker of `task` at `address` ("host:port"; "" while it has none, which every call says). Close it.

    Calls still waiting then end with UnavailableError.
    """

    def __init__(
        self,
        task: str,
        address: str,
        limits: Limits = DEFAULT_LIMITS,
        credentials: Credentials = NO_CREDENTIALS,
    ) -> None:
        """`credentials` are shown to the task, by default none."""
        self.task, self.address = task, address
        self._limits, self._credentials = limits, credentials
        self._channel = open_channel(address, credentials)
        self._methods: dict[str, Any] = {}
        #: Calls without a deadline that wait for the peer now; the probe runs while there are any.
        self._waiting: set[asyncio.Future[Any]] = set()
        self._probe: asyncio.Task[None] | None = None
        #: Sessions opened here by CreateWorkerSession; requests of others say so ("" at the peer).
        self._sessions: set[str] = set()
        #: Whether the peer is one of ours; it says so with GetStatus.
        self._is_tenfold = True
        #: Graphs of sessions that were not opened at the peer, by session: the peer would keep them for ever.
        self._unowned: dict[str, set[str]] = {}
        self._dialect = Dialect()
        self._traffic = traffic_with(task)

    async def get_status(self, timeout: float | None = None) -> list[DeviceAttributes]:  # noqa: ASYNC109 - passed on to the RPC as its deadline
        told: list[tuple[str, str]] = []
        seconds = timeout or self._limits.setup_seconds
        response = await self._call("GetStatus", worker_pb2.GetStatusRequest(), seconds, told)
        self._is_tenfold = any(key == TENFOLD_TASK for key, _ in told)
        return list(response.device_attributes)

    async def create_worker_session(
        self, session_handle: str, server_def: ServerDef | None, isolate: bool, master: Life
    ) -> None:
        if not self._is_tenfold and not isolate and server_def is None:
            # A TensorFlow 1.4 server dies of this request, and later ones need it for isolated state only.
            self._unowned[session_handle] = set()
            return
        request = worker_pb2.CreateWorkerSessionRequest(
            session_handle=session_handle,
            server_def=server_def,
            isolate_session_state=isolate,
            master_task=master[0],
            master_incarnation=signed(master[1]),
        )
        await self._call("CreateWorkerSession", request, self._limits.setup_seconds)
        self._sessions.add(session_handle)

    async def delete_worker_session(self, session_handle: str) -> None:
        self._sessions.discard(session_handle)
        unowned = self._unowned.pop(session_handle, None)
        if unowned is not None:
            for graph_handle in unowned:
                await self.deregister_graph(session_handle, graph_handle)
            return
        await self._end("DeleteWorkerSession", worker_pb2.DeleteWorkerSessionRequest(session_handle=session_handle))

    async def register_graph(self, session_handle: str, graph_def: GraphDef, config: ConfigProto) -> str:
        request = worker_pb2.RegisterGraphRequest(
            **self._session(session_handle),
            graph_def=self._dialect.translate(graph_def),
            config_proto=config,
            graph_options=config.graph_options,
        )
        while True:
            try:
                # compiling kernels may take long: no deadline, but signs of life
                response = await self._wait("RegisterGraph", request)
                break
            except errors.InvalidArgumentError as error:
                # Bounded: each time round it has learned one more attribute of an op.
                if not self._dialect.learn(error):
                    raise
                request.graph_def.CopyFrom(self._dialect.translate(graph_def))
        if session_handle in self._unowned:
            self._unowned[session_handle].add(response.graph_handle)
        return str(response.graph_handle)

    def _session(self, session_handle: str) -> dict[str, Any]:
        """How requests name the session: "" stands at the peer for those that were never opened there."""
        known = "" if session_handle in self._unowned else session_handle
        return {"session_handle": known, "create_worker_session_called": session_handle in self._sessions}

    async def deregister_graph(self, session_handle: str, graph_handle: str) -> None:
        if session_handle in self._unowned:
            self._unowned[session_handle].discard(graph_handle)
        request = worker_pb2.DeregisterGraphRequest(**self._session(session_handle), graph_handle=graph_handle)
        await self._end("DeregisterGraph", request)

    async def run_graph(self, request: RunRequest) -> RunGraphResult:
        options = request.options
        message = worker_pb2.RunGraphRequest(
            **self._session(request.session_handle),
            graph_handle=request.graph_handle,
            step_id=request.step_id,
            recv_key=request.fetches,
            is_partial=options.is_partial,
            is_last_partial_run=options.is_last_partial_run,
            store_errors_in_response_body=True,
            # each call of a partial run brings other feeds, and is a request of its own
            request_id=new_request_id(),
        )
        message.exec_opts.record_timeline = options.record_timeline
        message.exec_opts.record_costs = options.record_costs
        message.exec_opts.record_partition_graphs = options.record_partition_graphs
        for key, value in request.feeds.items():
            encode_into(message.send.add(name=key).tensor, value)
        response = await self._wait("RunGraph", message)
        if response.status_code:
            raise errors.from_code(int(response.status_code), response.status_error_message)
        # a fetched array belongs to the receiver; the message's bytes do not
        values = {item.name: decode(item.tensor, f"{item.name} from {self.task}").copy() for item in response.recv}
        return RunGraphResult(values, response.step_stats if response.HasField("step_stats") else None)

    async def recv_tensor(self, step_id: int, key: str) -> tuple[Value, bool]:
        request = worker_pb2.RecvTensorRequest(step_id=step_id, rendezvous_key=key, request_id=new_request_id())
        response = await self._wait("RecvTensor", request)
        if response.is_dead:
            return None, True
        return decode(response.tensor, f"{key} from {self.task}"), False

    async def cleanup_graph(self, step_id: int) -> None:
        await self._end("CleanupGraph", worker_pb2.CleanupGraphRequest(step_id=step_id))

    async def cleanup_all(self, containers: Sequence[str]) -> None:
        await self._end("CleanupAll", worker_pb2.CleanupAllRequest(container=containers))

    async def close(self) -> None:
        """Ends the connection. Bounded; idempotent."""
        self._give_up(f"the connection to {self.task} was closed")
        if self._probe is not None:
            self._probe.cancel()
        await self._channel.close()

    # -- the three kinds of calls ------------------------------------------------------------------------------------

    async def _end(self, method: str, request: Message) -> None:
        """A call that ends something, which may be done twice: once more where the connection broke, over a new one.

        A peer that is gone refuses that at once.
        """
        try:
            await self._call(method, request, self._limits.cleanup_seconds)
        except errors.UnavailableError:
            # gRPC may still take the connection for one that works
            await asyncio.sleep(_AGAIN_SECONDS)
            await self._call(method, request, self._limits.cleanup_seconds)

    async def _call(
        self,
        method: str,
        request: Message,
        timeout: float | None,  # noqa: ASYNC109 - the RPC's own deadline
        told: list[tuple[str, str]] | None = None,
    ) -> Any:
        """The response; `told` takes the metadata that came with it."""
        if not self.address:
            raise errors.unavailable(f"{self.task} cannot be reached: it has not registered yet.")
        try:
            call = self._method(method)(request, timeout=timeout, wait_for_ready=False)
            response = await call
            if told is not None:
                told.extend(await call.trailing_metadata() or ())
        except aio.AioRpcError as error:
            raise from_rpc_error(error, self.task, self.address, method) from None
        except aio.UsageError as error:
            raise errors.unavailable(f"{self.task} at {self.address} cannot be reached: {error} ({method}).") from None
        return response

    async def _wait(self, method: str, request: Message) -> Any:
        """A call without a deadline. Raises UnavailableError also when the peer gives no sign of life."""
        call = asyncio.ensure_future(self._call(method, request, None))
        # looked at however it ends, so that asyncio does not report an error that is never retrieved
        call.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        lost: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.add(lost)
        if self._probe is None or self._probe.done():
            self._probe = asyncio.create_task(self._probe_peer(), name=f"probe:{self.task}")
        try:
            await asyncio.wait((call, lost), return_when=asyncio.FIRST_COMPLETED)
            return call.result() if call.done() else lost.result()
        finally:
            call.cancel()
            self._waiting.discard(lost)
            if lost.done():
                lost.exception()

    async def _probe_peer(self) -> None:
        """Asks for a sign of life now and then; ends when no call waits any more or the peer gave none."""
        life = PeerLife(self.task, self.address, self._limits, self._credentials, self.get_status)
        try:
            while True:
                await asyncio.sleep(self._limits.probe_every_seconds)
                if not self._waiting:
                    return
                try:
                    await life.check()
                except errors.DeadlineExceededError:
                    self._give_up(f"it gave no sign of life for {self._limits.probe_answer_seconds:g} s")
                    return
                except errors.UnavailableError as error:
                    self._give_up(error.message)
                    return
                except errors.OpError:
                    continue  # any other answer is a sign of life
        finally:
            await life.close()

    def _give_up(self, why: str) -> None:
        text = why if self.task in why else f"{self.task} at {self.address} cannot be reached: {why}."
        for lost in list(self._waiting):
            if not lost.done():
                lost.set_exception(errors.unavailable(text))

    def _method(self, method: str) -> Callable[..., Any]:
        found = self._methods.get(method)
        if found is None:
            found = self._methods[method] = self._channel.unary_unary(
                f"/tensorflow.WorkerService/{method}",
                request_serializer=self._serialize,
                response_deserializer=partial(self._parse, getattr(worker_pb2, f"{method}Response")),
            )
        return found  # type: ignore[no-any-return]

    def _serialize(self, message: Message) -> bytes:
        data = message.SerializeToString()
        self._traffic.sent += len(data)
        return data

    def _parse(self, response_class: type[Message], data: bytes) -> Message:
        self._traffic.received += len(data)
        return response_class.FromString(data)
