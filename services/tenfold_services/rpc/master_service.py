"""TensorFlow's MasterService over a master: decode → call → encode, no decisions. Table at the top.

RunStep answers errors in the response body where the client asks for it (TensorFlow 1.15 and later), else as status.
"""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from tenfold_core import errors, graph_wire
from tenfold_core.access.channel import AS_ROLE
from tenfold_core.access.roles import Role
from tenfold_kernels.resources.messages import decode, encode_into
from tenfold_protos import master_pb2, master_service_pb2
from tenfold_protos.config_pb2 import RunOptions

from ..master.client_graph import check_counts
from ..worker.execution import kept
from .large import RUN_STEP, RunStep, decoded, is_large, pieces
from .service import TENFOLD_TASK, Audited, Served, TableService, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from tenfold_core.access.gate import Caller
    from tenfold_protos.config_pb2 import RunMetadata
    from tenfold_services.master.master import Master

    from ..http2.handler import Buffer
    from ..interfaces import Value

    Answer: TypeAlias = master_pb2.RunStepResponse | list[Buffer]

#: How messages name a node, and how they did when clients had no other way to get errors than as a status (TensorFlow
#: 1.4); they look for the latter, and later ones for both.
_NODE, _OLD_NODE = re.compile(r"\[\[\{\{node ([^}]+)\}\}\]\]"), r"[[Node: \1 = ]]"

DESCRIPTOR = master_service_pb2.DESCRIPTOR.services_by_name["MasterService"]


def master_service(master: Master, task: str, where: Callable[[], str]) -> TableService:
    """The service of `task`'s master."""
    methods = _MasterMethods(master, task)
    # what a caller that may only compute does in sessions that it opened, or such a one as it
    in_own_session = partial(Served, needs=Role.RUN_UNTRUSTED, check=methods.check_caller)
    table: dict[str, Served | str] = {
        "CreateSession": Served(methods.create_session, Role.RUN_UNTRUSTED, audited=Audited("create session")),
        "ExtendSession": in_own_session(
            plain(
                lambda r: master.extend_session(r.session_handle, r.graph_def, r.current_graph_version),
                master_pb2.ExtendSessionResponse,
                "new_graph_version",
            )
        ),
        "PartialRunSetup": in_own_session(
            plain(
                lambda r: master.partial_run_setup(
                    r.session_handle, list(r.feed), list(r.fetch), list(r.target), r.request_id
                ),
                master_pb2.PartialRunSetupResponse,
                "partial_run_handle",
            )
        ),
        "RunStep": in_own_session(methods.run_step, at_once=methods.run_step_at_once, parser=RUN_STEP),
        "CloseSession": in_own_session(
            plain(lambda r: master.close_session(r.session_handle), master_pb2.CloseSessionResponse),
            audited=Audited("close session"),
        ),
        "ListDevices": Served(methods.list_devices, Role.READ),
        "Reset": Served(
            plain(lambda r: master.reset(list(r.container)), master_pb2.ResetResponse),
            audited=Audited("reset containers", lambda request, _: {"containers": ",".join(request.container)}),
        ),
        "MakeCallable": in_own_session(
            plain(
                lambda r: master.make_callable(r.session_handle, r.options, r.request_id),
                master_pb2.MakeCallableResponse,
                "handle",
            )
        ),
        "RunCallable": in_own_session(methods.run_callable),
        "ReleaseCallable": in_own_session(
            plain(lambda r: master.release_callable(r.session_handle, r.handle), master_pb2.ReleaseCallableResponse)
        ),
    }
    return TableService(DESCRIPTOR, table, where, graphs=master.most_nodes, needs=Role.RUN)


class _MasterMethods:
    """Those of several lines."""

    def __init__(self, master: Master, task: str) -> None:
        self._master, self._task = master, task

    def check_caller(self, request: Any, caller: Caller) -> None:
        """Raises PermissionDeniedError for a session that is not for that caller."""
        message = request.request if isinstance(request, RunStep) else request
        self._master.check_caller(message.session_handle, caller)

    async def create_session(
        self, request: master_pb2.CreateSessionRequest, context: Any
    ) -> master_pb2.CreateSessionResponse:
        # tells clients of ours which task they talk to, for their error messages, and what their session may do
        await context.send_initial_metadata(((TENFOLD_TASK, self._task), (AS_ROLE, context.caller().role.word)))
        handle, version = await self._master.create_session(
            request.graph_def,
            request.config,
            request.target,
            context.time_remaining(),
            context.peer(),
            context.caller(),
        )
        return master_pb2.CreateSessionResponse(session_handle=handle, graph_version=version)

    def run_step_at_once(self, step: RunStep) -> Answer | None:
        """A step that is short and needs no other task, as most are."""
        request = step.request
        timeout = request.options.timeout_in_ms
        if request.partial_run_handle or (
            request.options.ByteSize() and request.options != RunOptions(timeout_in_ms=timeout)
        ):
            return None
        try:
            values = self._master.run_at_once(
                request.session_handle, _feeds(step), request.fetch, request.target, request.request_id, timeout
            )
        except errors.OpError as error:
            return _failed(request, error)
        return None if values is None else _response(request.fetch, values, None)

    async def run_step(self, step: RunStep, context: Any) -> Answer:
        request = step.request
        try:
            values, metadata = await self._master.run_step(
                request.session_handle,
                _feeds(step),
                list(request.fetch),
                list(request.target),
                request.options,
                request.request_id,
                request.partial_run_handle,
            )
            return _response(request.fetch, values, metadata)
        except errors.OpError as error:
            return _failed(request, error)

    async def list_devices(
        self, request: master_pb2.ListDevicesRequest, context: Any
    ) -> master_pb2.ListDevicesResponse:
        response = master_pb2.ListDevicesResponse()
        for device in await self._master.list_devices(request.session_handle):
            mine = device.name.startswith(f"{self._task}/")
            (response.local_device if mine else response.remote_device).append(device)
        return response

    async def run_callable(
        self, request: master_pb2.RunCallableRequest, context: Any
    ) -> master_pb2.RunCallableResponse:
        check_counts(len(request.feed), 0, 0)

        def decoded_feeds() -> list[Value]:
            return [decode(tensor, f"Feed {index} of the callable") for index, tensor in enumerate(request.feed)]

        large = request.ByteSize() >= graph_wire.LARGE
        feeds = await asyncio.wrap_future(graph_wire.apart(decoded_feeds)) if large else decoded_feeds()
        values, metadata = await self._master.run_callable(
            request.session_handle, request.handle, feeds, request.request_id
        )
        response = master_pb2.RunCallableResponse(metadata=metadata)
        for value in values:
            encode_into(response.fetch.add(), value)
        return response


def _feeds(step: RunStep) -> dict[str, Value]:
    """As large.decoded."""
    return decoded(step.request, step.contents) if step.feeds is None else step.feeds


def _failed(request: master_pb2.RunStepRequest, error: errors.OpError) -> master_pb2.RunStepResponse:
    """The answer that says so; raises the error where the client looks for it in the status."""
    if not request.store_errors_in_response_body:
        raise errors.from_code(error.code, _NODE.sub(_OLD_NODE, error.message)) from None
    errors.forget_frames(error)
    return master_pb2.RunStepResponse(status_code=error.code, status_error_message=error.message)  # type: ignore[arg-type]


def _response(fetches: Sequence[str], values: Sequence[Value], metadata: RunMetadata | None) -> Answer:
    response = master_pb2.RunStepResponse() if metadata is None else master_pb2.RunStepResponse(metadata=metadata)
    large: list[Buffer] = []
    for name, value in zip(fetches, values, strict=True):
        if is_large(value):
            # `kept`: until it has been sent it must not be written to
            large += pieces(name, kept(value))
        else:
            encode_into(response.tensor.add(name=name).tensor, value)
    return [response.SerializeToString(), *large] if large else response
