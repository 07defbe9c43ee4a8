"""TensorFlow's MasterService over a master: decode → call → encode, no decisions. Table at the end.

RunStep answers errors in the response body where the client asks for it (TensorFlow 1.15 and later), else as status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.framework import errors
from tenfold_protos import master_pb2, master_service_pb2

from .service import Method, TableService
from .tensors import decode, encode_into

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..interfaces import MasterInterface

DESCRIPTOR = master_service_pb2.DESCRIPTOR.services_by_name["MasterService"]

#: Served by nobody yet, and why.
REFUSED = {"PartialRunSetup": "partial runs are not implemented; feed everything in one RunStep"}


def master_service(master: MasterInterface, task: str, where: Callable[[], str]) -> TableService:
    """The service of `task`'s master."""
    methods = _MasterMethods(master, task)
    table: dict[str, Method] = {
        "CreateSession": methods.create_session,
        "ExtendSession": methods.extend_session,
        "RunStep": methods.run_step,
        "CloseSession": methods.close_session,
        "ListDevices": methods.list_devices,
        "Reset": methods.reset,
        "MakeCallable": methods.make_callable,
        "RunCallable": methods.run_callable,
        "ReleaseCallable": methods.release_callable,
    }
    return TableService(DESCRIPTOR, table, REFUSED, where)


class _MasterMethods:
    def __init__(self, master: MasterInterface, task: str) -> None:
        self._master, self._task = master, task

    async def create_session(
        self, request: master_pb2.CreateSessionRequest, context: Any
    ) -> master_pb2.CreateSessionResponse:
        # tells clients of ours which task they talk to, for their error messages
        await context.send_initial_metadata((("tenfold-task", self._task),))
        handle, version = await self._master.create_session(request.graph_def, request.config)
        return master_pb2.CreateSessionResponse(session_handle=handle, graph_version=version)

    async def extend_session(
        self, request: master_pb2.ExtendSessionRequest, context: Any
    ) -> master_pb2.ExtendSessionResponse:
        version = await self._master.extend_session(
            request.session_handle, request.graph_def, request.current_graph_version
        )
        return master_pb2.ExtendSessionResponse(new_graph_version=version)

    async def run_step(self, request: master_pb2.RunStepRequest, context: Any) -> master_pb2.RunStepResponse:
        try:
            return await self._run_step(request)
        except errors.OpError as error:
            if not request.store_errors_in_response_body:
                raise
            return master_pb2.RunStepResponse(status_code=error.code, status_error_message=error.message)  # type: ignore[arg-type]

    async def _run_step(self, request: master_pb2.RunStepRequest) -> master_pb2.RunStepResponse:
        if request.partial_run_handle:
            raise errors.UnimplementedError(None, None, REFUSED["PartialRunSetup"])
        feeds = {feed.name: decode(feed.tensor, f"The value fed for '{feed.name}'") for feed in request.feed}
        if len(feeds) < len(request.feed):
            names = [feed.name for feed in request.feed]
            twice = next(name for name in names if names.count(name) > 1)
            raise errors.InvalidArgumentError(None, None, f'Endpoint "{twice}" fed more than once.')
        values, metadata = await self._master.run_step(
            request.session_handle,
            feeds,
            list(request.fetch),
            list(request.target),
            request.options,
            request.request_id,
        )
        response = master_pb2.RunStepResponse(metadata=metadata)
        for name, value in zip(request.fetch, values, strict=True):
            encode_into(response.tensor.add(name=name).tensor, value)
        return response

    async def close_session(
        self, request: master_pb2.CloseSessionRequest, context: Any
    ) -> master_pb2.CloseSessionResponse:
        await self._master.close_session(request.session_handle)
        return master_pb2.CloseSessionResponse()

    async def list_devices(
        self, request: master_pb2.ListDevicesRequest, context: Any
    ) -> master_pb2.ListDevicesResponse:
        response = master_pb2.ListDevicesResponse()
        for device in await self._master.list_devices(request.session_handle):
            mine = device.name.startswith(f"{self._task}/")
            (response.local_device if mine else response.remote_device).append(device)
        return response

    async def reset(self, request: master_pb2.ResetRequest, context: Any) -> master_pb2.ResetResponse:
        await self._master.reset(list(request.container))
        return master_pb2.ResetResponse()

    async def make_callable(
        self, request: master_pb2.MakeCallableRequest, context: Any
    ) -> master_pb2.MakeCallableResponse:
        handle = await self._master.make_callable(request.session_handle, request.options)
        return master_pb2.MakeCallableResponse(handle=handle)

    async def run_callable(
        self, request: master_pb2.RunCallableRequest, context: Any
    ) -> master_pb2.RunCallableResponse:
        feeds = [decode(tensor, f"Feed {index} of the callable") for index, tensor in enumerate(request.feed)]
        values, metadata = await self._master.run_callable(request.session_handle, request.handle, feeds)
        response = master_pb2.RunCallableResponse(metadata=metadata)
        for value in values:
            encode_into(response.fetch.add(), value)
        return response

    async def release_callable(
        self, request: master_pb2.ReleaseCallableRequest, context: Any
    ) -> master_pb2.ReleaseCallableResponse:
        await self._master.release_callable(request.session_handle, request.handle)
        return master_pb2.ReleaseCallableResponse()
