"""TensorFlow's WorkerService over a worker: decode → call → encode, no decisions. Table at the top.

RecvTensor waits without a deadline until the tensor is there, as TensorFlow's consumers expect; the caller's
cancellation ends it. RunGraph answers errors in the response body where the master asks for it.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors, graph_wire
from tenfold_core.access.roles import Role
from tenfold_kernels.resources.messages import decode, encode_into
from tenfold_protos import worker_pb2, worker_service_pb2
from tenfold_services.worker.execution import check_counts

from ..interfaces import ExecOptions, RunRequest
from .service import TENFOLD_TASK, Audited, Served, TableService, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..worker.worker import Worker

DESCRIPTOR = worker_service_pb2.DESCRIPTOR.services_by_name["WorkerService"]

_COLLECTIVE = "collective operations are not implemented"
#: Not served, and why.
REFUSED: dict[str, str] = {
    "Tracing": "tracing is not implemented",
    **dict.fromkeys(("RecvBuf", "CompleteGroup", "CompleteInstance", "GetStepSequence"), _COLLECTIVE),
}
#: Numbers of requests that are remembered, as in TensorFlow.
REMEMBERED = 100_000


def worker_service(worker: Worker, where: Callable[[], str]) -> TableService:
    """The service of a task's worker."""
    methods = _WorkerMethods(worker)
    table: dict[str, Served | str] = {
        "GetStatus": Served(methods.get_status, Role.READ),
        "CreateWorkerSession": Served(
            plain(
                lambda r: worker.create_worker_session(
                    r.session_handle, r.server_def, r.isolate_session_state, (r.master_task, r.master_incarnation)
                ),
                worker_pb2.CreateWorkerSessionResponse,
            ),
            audited=Audited("join session"),
        ),
        "DeleteWorkerSession": Served(
            plain(lambda r: worker.delete_worker_session(r.session_handle), worker_pb2.DeleteWorkerSessionResponse),
            audited=Audited("leave session"),
        ),
        "RegisterGraph": Served(
            plain(
                lambda r: worker.register_graph(_session(r), r.graph_def, r.config_proto),
                worker_pb2.RegisterGraphResponse,
                "graph_handle",
            )
        ),
        "DeregisterGraph": Served(
            plain(lambda r: worker.deregister_graph(_session(r), r.graph_handle), worker_pb2.DeregisterGraphResponse)
        ),
        "RunGraph": Served(methods.run_graph),
        "RecvTensor": Served(methods.recv_tensor),
        "CleanupGraph": Served(plain(lambda r: worker.cleanup_graph(r.step_id), worker_pb2.CleanupGraphResponse)),
        "CleanupAll": Served(plain(lambda r: worker.cleanup_all(list(r.container)), worker_pb2.CleanupAllResponse)),
        "MarkRecvFinished": Served(methods.mark_recv_finished),
        "Logging": Served(methods.logging),
        **REFUSED,
    }
    return TableService(DESCRIPTOR, table, where, needs=Role.REGISTER)


class RequestIds:
    """The last numbers of requests that must not be served twice: a run of a graph, a tensor that can be taken once.

    gRPC may send a request again when a connection breaks; a master numbers what must not happen twice. In TensorFlow:
    recent_request_ids.cc.
    """

    def __init__(self, remembered: int = REMEMBERED) -> None:
        #: Oldest first.
        self._known: OrderedDict[int, None] = OrderedDict()
        self._remembered = remembered

    def check(self, request_id: int, what: str) -> None:
        """Notes the number; 0 stands for none. Raises AbortedError for one that came before."""
        if not request_id:
            return
        if request_id in self._known:
            raise errors.aborted(f"The same {what} request was received twice: request_id {request_id}.")
        self._known[request_id] = None
        if len(self._known) > self._remembered:
            self._known.popitem(last=False)


class _WorkerMethods:
    """Those of several lines."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._requests = RequestIds()

    async def get_status(self, request: worker_pb2.GetStatusRequest, context: Any) -> worker_pb2.GetStatusResponse:
        context.set_trailing_metadata(((TENFOLD_TASK, self._worker.task),))
        return worker_pb2.GetStatusResponse(device_attributes=await self._worker.get_status())

    async def run_graph(self, request: worker_pb2.RunGraphRequest, context: Any) -> worker_pb2.RunGraphResponse:
        try:
            self._requests.check(request.request_id, "RunGraph (Worker)")
            return await self._run_graph(request)
        except errors.OpError as error:
            if not request.store_errors_in_response_body:
                raise
            errors.forget_frames(error)
            return worker_pb2.RunGraphResponse(status_code=error.code, status_error_message=error.message)  # type: ignore[arg-type]

    async def _run_graph(self, request: worker_pb2.RunGraphRequest) -> worker_pb2.RunGraphResponse:
        session = _session(request)
        program = self._worker.program(session, request.graph_handle)
        check_counts(program.compiled, len(request.send), len(request.recv_key))

        def decoded() -> dict[str, Any]:
            return {feed.name: decode(feed.tensor, f"The value sent for '{feed.name}'") for feed in request.send}

        large = request.ByteSize() >= graph_wire.LARGE
        feeds = await asyncio.wrap_future(graph_wire.apart(decoded)) if large else decoded()
        options = ExecOptions(
            record_timeline=request.exec_opts.record_timeline,
            record_costs=request.exec_opts.record_costs,
            record_partition_graphs=request.exec_opts.record_partition_graphs,
            is_partial=request.is_partial,
            is_last_partial_run=request.is_last_partial_run,
        )
        fetches = list(request.recv_key)
        asked = RunRequest(session, request.graph_handle, request.step_id, feeds, fetches, options)
        result = await self._worker.run_graph(asked)
        response = worker_pb2.RunGraphResponse(step_stats=result.step_stats, partition_graph=result.partition_graphs)
        for key, fetched in result.values.items():
            encode_into(response.recv.add(name=key).tensor, fetched)
        return response

    async def recv_tensor(self, request: worker_pb2.RecvTensorRequest, context: Any) -> worker_pb2.RecvTensorResponse:
        self._requests.check(request.request_id, "RecvTensor (Worker)")
        value, is_dead = await self._worker.recv_tensor(request.step_id, request.rendezvous_key)
        response = worker_pb2.RecvTensorResponse(is_dead=is_dead, send_start_micros=int(time.time() * 1e6))
        encode_into(response.tensor, _DEAD if is_dead else value)
        return response

    async def mark_recv_finished(
        self, request: worker_pb2.MarkRecvFinishedRequest, context: Any
    ) -> worker_pb2.MarkRecvFinishedResponse:
        return worker_pb2.MarkRecvFinishedResponse()  # nothing is kept for a re-send

    async def logging(self, request: worker_pb2.LoggingRequest, context: Any) -> worker_pb2.LoggingResponse:
        transfers = self._worker.transfers
        if request.enable_rpc_logging:
            transfers.enabled = True
        if request.disable_rpc_logging:
            transfers.enabled = False
        response = worker_pb2.LoggingResponse()
        for step_id in request.fetch_step_id:
            response.step.add(step_id=step_id, step_stats=transfers.take(step_id))
        if request.clear:
            transfers.clear()
        return response


#: What TensorFlow sends for a dead tensor: a float vector without elements.
_DEAD = np.empty(0, np.float32)


def _session(request: Any) -> str:
    """The worker session that a request means: the shared one unless the master made one of its own."""
    return str(request.session_handle) if request.create_worker_session_called else ""
