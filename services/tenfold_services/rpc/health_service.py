"""Health over gRPC, as grpc.health.v1 has it: is the task alive, and does it take new work? decode → call → encode.

Beside TensorFlow's services on the same port. Asked by `tenfold ping` (client/tenfold/cli/ping.py),
by grpc_health_probe and by orchestrators. What is ready is decided by server.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tenfold_core import errors
from tenfold_core.access.roles import Role
from tenfold_protos import health_pb2

from .service import Method, TableService

if TYPE_CHECKING:
    from collections.abc import Callable

DESCRIPTOR = health_pb2.DESCRIPTOR.services_by_name["Health"]
#: The service name that asks whether the process answers at all; "" asks whether it takes new work.
LIVE = "tenfold.live"
#: The metadata beside an answer that it is not ready, which says why; quoted as in a URL where it is no plain text.
WHY_NOT = "tenfold-not-ready"
_PLAIN = " !#$&'()*+,/:;=?@[]"
#: Names that ask the same as "": what a client of one of these wants to know.
_READY = ("", "tenfold.ready", "tensorflow.MasterService", "tensorflow.WorkerService")


def health_service(not_ready: Callable[[], str], where: Callable[[], str]) -> TableService:
    """The service of a task that takes new work as long as `not_ready()` says nothing."""

    async def check(request: health_pb2.HealthCheckRequest, context: Any) -> health_pb2.HealthCheckResponse:
        if request.service == LIVE:
            return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)
        if request.service not in _READY:
            known = ", ".join(map(repr, (*_READY, LIVE)))
            raise errors.not_found(f"{where()} has no service {request.service!r} to check; it knows {known}.")
        why = not_ready()
        if why:
            # the message has no room for it, and metadata has printable ASCII alone
            context.set_trailing_metadata(((WHY_NOT, quote(why[:500], safe=_PLAIN)),))
        ready = health_pb2.HealthCheckResponse
        return ready(status=ready.NOT_SERVING if why else ready.SERVING)

    table: dict[str, Method] = {"Check": check}
    refused = {"Watch": "a task answers Check alone; ask that again"}
    return TableService(DESCRIPTOR, table, refused, where, package="grpc.health.v1", needs=Role.READ)
