"""OpenLink over gRPC: the handler that a server registers, and the call that another task makes.

Beside TensorFlow's services on the same port, so that gRPC's own authentication decides who may open a link.
decode → call → encode; decisions are in tenfold_link/aio/listener.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core.access.roles import Role
from tenfold_protos import link_pb2

from ..master.peer_use import peer_name
from .channels import ask
from .service import Audited, Method, TableService

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tenfold_link.aio.listener import LinkListener

DESCRIPTOR = link_pb2.DESCRIPTOR.services_by_name["LinkService"]
METHOD = "/tenfold.LinkService/OpenLink"


def link_service(listener: LinkListener, where: Callable[[], str]) -> TableService:
    """The service of `listener`'s task."""

    async def open_link(request: link_pb2.OpenLinkRequest, context: Any) -> link_pb2.OpenLinkResponse:
        caller = context.caller()
        return listener.open_link(request, caller.role, peer_name(caller.name, context.peer()), caller)

    table: dict[str, Method] = {"OpenLink": open_link}
    told = {"OpenLink": Audited("open link", lambda request, _: {"peer": request.task or f"pid {request.pid}"})}
    return TableService(DESCRIPTOR, table, {}, where, package="tenfold", needs=Role.RUN_UNTRUSTED, audited=told)


def asker(
    channel: Any, task: str, address: str, seconds: float
) -> Callable[[link_pb2.OpenLinkRequest], Awaitable[link_pb2.OpenLinkResponse]]:
    """The OpenLink call on `channel`, a grpc.aio channel to `task` at `address`, for LinkDialer.

    Raises UnimplementedError for a peer that is not Tenfold, and else what a call to a worker raises.
    """

    async def ask_link(request: link_pb2.OpenLinkRequest) -> link_pb2.OpenLinkResponse:
        return await ask(channel, METHOD, request, link_pb2.OpenLinkResponse, task, address, seconds)

    return ask_link
