"""A master over the network: TensorFlow's MasterService on a blocking gRPC channel.

Every call encodes, sends, waits and decodes; decisions are in base_session.py, the text of errors in grpc_errors.py.
The server may be Tenfold's or TensorFlow's. Only CreateSession waits for a server that is not there yet; all other
calls fail at once when the connection is lost. Fields and order of calls: TensorFlow's master_service.proto.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import traceback
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
import numpy as np

from tenfold.session import client_spans
from tenfold.session.grpc_errors import from_rpc_error, why_silent
from tenfold.session.master_interface import (
    ANSWER_GRACE_SECONDS,
    CLOSE_SECONDS,
    SESSION_CLOSED,
    SETUP_SECONDS,
    seconds_to_set_up,
)
from tenfold.session.waiting import WaitNotice, waits_of, why_no_tls, why_waiting
from tenfold_core import errors
from tenfold_core.access.channel import AS_ROLE, TokenChannel, open_channel
from tenfold_core.access.credentials import AccessSettings, Credentials
from tenfold_core.access.roles import Role, role_named
from tenfold_core.request_id import new_request_id
from tenfold_core.tensor_util import make_ndarray, tensor_to_proto
from tenfold_protos import master_pb2, tensor_pb2, types_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from google.protobuf.message import Message

    from tenfold_protos.config_pb2 import ConfigProto, RunMetadata, RunOptions
    from tenfold_protos.device_attributes_pb2 import DeviceAttributes
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_protos.placement_pb2 import GetPlacementResponse
    from tenfold_protos.why_pb2 import TaskAnswer

    Reply = TypeVar("Reply", bound=Message)

_SERVICE = "/tensorflow.MasterService/"
#: Initial metadata in which a Tenfold server sends its task's name, e.g. "/job:worker/replica:0/task:1".
TASK_METADATA = "tenfold-task"

_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # An error's text is in trailing metadata; the default limit of 16 KB would replace it by another error.
    ("grpc.max_metadata_size", 1 << 20),
    # Tasks of a cluster are reached directly, even if the environment names an HTTP proxy.
    ("grpc.enable_http_proxy", 0),
    # Two sessions do not share a connection: large tensors of one would delay the other.
    ("grpc.use_local_subchannel_pool", 1),
    # A server that starts late is found soon; an attempt to connect ends before a step counts as hanging.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 4000),
    ("grpc.max_reconnect_backoff_ms", 1000),
]


#: HTTP/2 pings while a step runs, and only then: a host that loses power or network closes no connection, and a process
#: that stands still closes none either. The answer waits behind what was sent before, so it has as long as P1 of
#: docs/promises.md leaves. TensorFlow's servers treat frequent pings as abuse and close the connection, so only
#: Tenfold's servers get them.
_PINGS: list[tuple[str, Any]] = [
    ("grpc.keepalive_time_ms", 2_500),
    ("grpc.keepalive_timeout_ms", 10_000),
    # The deadline of the ping itself is a separate setting; its default is a minute.
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
]


class GrpcMaster:
    """The master service at `target` ("grpc://host:port"). Connects on first use. See MasterInterface."""

    def __init__(
        self,
        target: str,
        access: AccessSettings | Credentials | None = None,
        as_role: Role | None = None,
        shown: str = "",
    ) -> None:
        """`access` says what the calls show; by default the environment does (TENFOLD_TOKEN, TENFOLD_TLS_CERT). With
        `as_role` they are for somebody who may do less than this process may. `shown` is the target's name in spans."""
        self._as_role = as_role
        if not isinstance(access, Credentials):
            access = (access or AccessSettings.from_environment()).credentials()
        self._credentials = access
        self.target, self._shown = target, shown or target
        self._address = target.removeprefix("grpc://")
        #: The server's task, once the server has sent it.
        self.task: str | None = None
        self._lock = threading.Lock()
        self._channel: TokenChannel | None = None
        self._stubs: dict[str, Any] = {}
        self._closed = False
        self._pings = False

    def create_session(self, graph_def: GraphDef, config: ConfigProto, timeout: float | None) -> tuple[str, int]:
        """See MasterInterface. Waits for the server to come up, within the timeout (60 s if None)."""
        with client_spans.opening(self._shown):
            return self._create_session(graph_def, config, timeout)

    def _create_session(self, graph_def: GraphDef, config: ConfigProto, timeout: float | None) -> tuple[str, int]:
        request = master_pb2.CreateSessionRequest(graph_def=graph_def, config=config, target=self.target)
        seconds = timeout or seconds_to_set_up(graph_def)
        with WaitNotice(lambda: why_waiting(self.target, self.channel, self._credentials.of(self._address))):
            reply, told = self._called(
                "CreateSession", request, master_pb2.CreateSessionResponse, seconds, wait_for_ready=True
            )
        self._check_role(reply.session_handle, told)
        if self.task is not None and not self._pings:
            self._reconnect_with_pings()
        return reply.session_handle, reply.graph_version

    def _check_role(self, handle: str, told: Mapping[str, Any]) -> None:
        """Raises PermissionDeniedError, and closes the session, where the server has not understood for whom it is."""
        if self._as_role is None:
            return
        with contextlib.suppress(KeyError, ValueError):
            if role_named(told[AS_ROLE]) <= self._as_role:
                return
        self.close_session(handle, None)
        raise errors.PermissionDeniedError(
            None,
            None,
            f"The server at {self._server()} opens no sessions of the role {self._as_role.word}: it is TensorFlow's, "
            "or of an older version.",
        )

    def step_waits(self, handle: str, timeout: float) -> list[str]:
        """See WaitTellingMaster."""
        return waits_of(self.channel(), handle, timeout)

    def why(self, timeout: float) -> TaskAnswer:
        """See WhyTellingMaster."""
        from tenfold.session.why_call import ask_why

        return ask_why(self.channel(), self.target, self.task, timeout)

    def _server(self) -> str:
        """The server in an error's text: its target and, if it has sent it, its task."""
        return f"{self.target} ({self.task})" if self.task else self.target

    def extend_session(self, handle: str, graph_def: GraphDef, current_version: int, timeout: float | None) -> int:
        """See MasterInterface."""
        request = master_pb2.ExtendSessionRequest(
            session_handle=handle, graph_def=graph_def, current_graph_version=current_version
        )
        seconds = timeout or seconds_to_set_up(graph_def)
        reply = self._call("ExtendSession", request, master_pb2.ExtendSessionResponse, seconds)
        return reply.new_graph_version

    def run_step(
        self,
        handle: str,
        feeds: Mapping[str, np.ndarray],
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions,
        timeout: float | None,
    ) -> tuple[list[np.ndarray], RunMetadata]:
        """See MasterInterface."""
        with client_spans.step(self._shown, handle, fetches, targets):
            return self._run_step(handle, feeds, fetches, targets, options, timeout)

    def _run_step(
        self,
        handle: str,
        feeds: Mapping[str, np.ndarray],
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions,
        timeout: float | None,
    ) -> tuple[list[np.ndarray], RunMetadata]:
        """`run_step`, by whatever way there is."""
        request = master_pb2.RunStepRequest(session_handle=handle, fetch=fetches, target=targets, options=options)
        return self._run(request, feeds, fetches, timeout)

    def partial_run_setup(
        self, handle: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], timeout: float | None
    ) -> str:
        """See PartialRunMaster. Raises UnimplementedError if the server does not run steps in parts."""
        request = master_pb2.PartialRunSetupRequest(
            session_handle=handle, feed=feeds, fetch=fetches, target=targets, request_id=new_request_id()
        )
        reply = self._call("PartialRunSetup", request, master_pb2.PartialRunSetupResponse, timeout or SETUP_SECONDS)
        return reply.partial_run_handle

    def partial_run(
        self,
        handle: str,
        partial_run_handle: str,
        feeds: Mapping[str, np.ndarray],
        fetches: Sequence[str],
        timeout: float | None,
    ) -> list[np.ndarray]:
        """See PartialRunMaster."""
        request = master_pb2.RunStepRequest(session_handle=handle, fetch=fetches, partial_run_handle=partial_run_handle)
        return self._run(request, feeds, fetches, timeout)[0]

    def close_session(self, handle: str, timeout: float | None) -> None:
        """See MasterInterface."""
        request = master_pb2.CloseSessionRequest(session_handle=handle)
        self._call("CloseSession", request, master_pb2.CloseSessionResponse, timeout or CLOSE_SECONDS)

    def list_devices(self, handle: str, timeout: float | None) -> list[DeviceAttributes]:
        """See MasterInterface."""
        request = master_pb2.ListDevicesRequest(session_handle=handle)
        reply = self._call("ListDevices", request, master_pb2.ListDevicesResponse, timeout or SETUP_SECONDS)
        return [*reply.local_device, *reply.remote_device]

    def placement(self, handle: str, timeout: float | None) -> GetPlacementResponse:
        """See ExplainingMaster."""
        from tenfold.session.placement_call import get_placement

        return get_placement(self.channel(), self.target, self.task, handle, timeout or SETUP_SECONDS)

    def reset(self, containers: Sequence[str], timeout: float | None) -> None:
        """See MasterInterface."""
        request = master_pb2.ResetRequest(container=containers)
        with WaitNotice(lambda: why_waiting(self.target, self.channel, self._credentials.of(self._address), "reset")):
            self._call("Reset", request, master_pb2.ResetResponse, timeout or SETUP_SECONDS, wait_for_ready=True)

    def close(self) -> None:
        """See MasterInterface."""
        with self._lock:
            channel, self._channel, self._closed = self._channel, None, True
            self._stubs.clear()
        if channel is not None:
            channel.close()

    def _run(
        self,
        request: master_pb2.RunStepRequest,
        feeds: Mapping[str, np.ndarray],
        fetches: Sequence[str],
        timeout: float | None,
    ) -> tuple[list[np.ndarray], RunMetadata]:
        request.store_errors_in_response_body = True
        request.request_id = new_request_id()
        for name, value in feeds.items():
            request.feed.add(name=name, tensor=tensor_to_proto(value))
        reply = self._call("RunStep", request, master_pb2.RunStepResponse, timeout)
        if reply.status_code != errors.OK:
            raise errors.from_code(reply.status_code, reply.status_error_message)
        by_name = {named.name: named.tensor for named in reply.tensor}
        missing = [name for name in fetches if name not in by_name]
        if missing:
            raise errors.InternalError(
                None, None, f"The server at {self.target} did not return {missing}; it returned {sorted(by_name)}"
            )
        return [_value(by_name[name]) for name in fetches], reply.metadata

    def _call(
        self,
        method: str,
        request: Message,
        reply_type: type[Reply],
        timeout: float | None,
        *,
        wait_for_ready: bool = False,
    ) -> Reply:
        """One unary call. Ctrl-C ends it and cancels it at the server."""
        return self._called(method, request, reply_type, timeout, wait_for_ready=wait_for_ready)[0]

    def _called(
        self,
        method: str,
        request: Message,
        reply_type: type[Reply],
        timeout: float | None,
        *,
        wait_for_ready: bool = False,
    ) -> tuple[Reply, dict[str, Any]]:
        """The same, and the server's initial metadata where something is wanted of it."""
        stub = self._stub(method, reply_type)
        deadline = None if timeout is None else timeout + ANSWER_GRACE_SECONDS
        try:
            reply, call = stub.with_call(request, timeout=deadline, wait_for_ready=wait_for_ready)
        except grpc.RpcError as error:
            raise from_rpc_error(error, method, self.target, self.task, timeout, self._why_silent) from None
        except ValueError:
            # gRPC raises "Cannot invoke RPC on closed channel!" if close() ran between the look-up and the call.
            if self._closed:
                raise errors.CancelledError(None, None, SESSION_CLOSED) from None
            raise
        except KeyboardInterrupt as interrupt:
            # gRPC cancels a call when nothing refers to it any more, and the traceback's frames do, and maybe a cycle.
            # Who has pressed Ctrl-C learns nothing from gRPC's frames: they are left out of what Python prints.
            traceback.clear_frames(interrupt.__traceback__)
            interrupt.__traceback__ = None
            gc.collect()
            raise interrupt from None
        told: dict[str, Any] = {}
        if self.task is None or self._as_role is not None:
            told = dict(call.initial_metadata())
            self.task = told.get(TASK_METADATA, self.task)
        return reply, told

    def _why_silent(self, target: str) -> str:
        certificates = self._credentials.of(self._address)
        return (certificates and why_no_tls(target, certificates)) or why_silent(target)

    def _stub(self, method: str, reply_type: type[Message]) -> Any:
        with self._lock:
            stub = self._stubs.get(method)
            if stub is None:
                stub = self._stubs[method] = self._open_channel().unary_unary(
                    _SERVICE + method,
                    request_serializer=_serialize,
                    response_deserializer=reply_type.FromString,
                )
            return stub

    def channel(self) -> TokenChannel:
        """The channel of all calls, opened if there is none. Raises CancelledError once closed."""
        with self._lock:
            return self._open_channel()

    def _open_channel(self) -> TokenChannel:
        """Under the lock."""
        if self._closed:
            raise errors.CancelledError(None, None, SESSION_CLOSED)
        if self._channel is None:
            options = _OPTIONS + _PINGS if self._pings else _OPTIONS
            self._channel = open_channel(grpc, self._address, options, self._credentials, self._as_role)
        return self._channel

    def _reconnect_with_pings(self) -> None:
        """Makes the next call open a channel with pings. What other threads have under way on the first one goes on: it
        ends when nothing refers to it any more."""
        with self._lock:
            self._channel, self._pings = None, True
            self._stubs.clear()


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()


def _value(proto: tensor_pb2.TensorProto) -> np.ndarray:
    """The fetched array, writable; a resource handle, which has no array form, comes as its proto in a 0-d array."""
    if proto.dtype == types_pb2.DT_RESOURCE:
        handles = np.empty(len(proto.resource_handle_val), dtype=object)
        handles[:] = list(proto.resource_handle_val)
        return handles.reshape([dim.size for dim in proto.tensor_shape.dim])
    return make_ndarray(proto)
