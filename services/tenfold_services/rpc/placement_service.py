"""GetPlacement over gRPC: where a session's nodes are, and why. decode → call → encode.

Beside TensorFlow's services on the same port, whether links are on or off: it is asked by people, not by steps. The
other end is tenfold/session/placement_call.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core.access.roles import Role
from tenfold_protos import placement_pb2

from .service import Method, TableService

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..master.master import Master

DESCRIPTOR = placement_pb2.DESCRIPTOR.services_by_name["PlacementService"]


def placement_service(master: Master, where: Callable[[], str]) -> TableService:
    """The service of a task's master."""

    async def get_placement(
        request: placement_pb2.GetPlacementRequest, context: Any
    ) -> placement_pb2.GetPlacementResponse:
        master.check_reader(request.session_handle, context.caller())
        return await master.placement(request.session_handle)

    table: dict[str, Method] = {"GetPlacement": get_placement}
    return TableService(DESCRIPTOR, table, {}, where, package="tenfold", needs=Role.READ)
