"""Tenfold's own services beside TensorFlow's on the same port, and the calls that other tasks make of them.

decode → call → encode. OpenLink is decided by tenfold_link/aio/listener.py, ExchangeFinished by ../finished.py for
../peers.py, GetPlacement by the master for tenfold/session/placement_call.py; Health, as grpc.health.v1 has it, by
../server.py for client/tenfold/cli/ping.py and orchestrators. examine_service.py is one more.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tenfold_core import errors
from tenfold_core.access.roles import Role
from tenfold_protos import health_pb2, link_pb2, peers_pb2, placement_pb2

from ..master.peer_use import peer_name
from .channels import ask, open_channel
from .service import Audited, Served, TableService

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from tenfold_core.access.credentials import Credentials
    from tenfold_link.aio.listener import LinkListener

    from ..finished import FinishedTasks
    from ..interfaces import Life, TaskName
    from ..master.master import Master

#: The services of this file.
LINKS = link_pb2.DESCRIPTOR.services_by_name["LinkService"]
PEERS = peers_pb2.DESCRIPTOR.services_by_name["PeerService"]
PLACEMENT = placement_pb2.DESCRIPTOR.services_by_name["PlacementService"]
HEALTH = health_pb2.DESCRIPTOR.services_by_name["Health"]

#: Tasks that one ExchangeFinished may name, and that a line of the audit log names.
_MAX_TASKS, _TOLD = 100_000, 20
#: The service name that asks whether the process answers at all; "" asks whether it takes new work.
LIVE = "tenfold.live"
#: The metadata beside an answer that it is not ready, which says why; quoted as in a URL where it is no plain text.
WHY_NOT = "tenfold-not-ready"
_PLAIN = " !#$&'()*+,/:;=?@[]"
#: Names that ask the same as "": what a client of one of these wants to know.
_READY = ("", "tenfold.ready", "tensorflow.MasterService", "tensorflow.WorkerService")


def link_service(listener: LinkListener, where: Callable[[], str]) -> TableService:
    """OpenLink of `listener`'s task."""

    async def open_link(request: link_pb2.OpenLinkRequest, context: Any) -> link_pb2.OpenLinkResponse:
        caller = context.caller()
        return listener.open_link(request, caller.role, peer_name(caller.name, context.peer()), caller)

    told = Audited("open link", lambda request, _: {"peer": request.task or f"pid {request.pid}"})
    table = {"OpenLink": Served(open_link, audited=told)}
    return TableService(LINKS, table, where, "tenfold", needs=Role.RUN_UNTRUSTED)


def asker(
    channel: Any, task: str, address: str, seconds: float
) -> Callable[[link_pb2.OpenLinkRequest], Awaitable[link_pb2.OpenLinkResponse]]:
    """The OpenLink call on `channel`, a grpc.aio channel to `task` at `address`, for LinkDialer.

    Raises UnimplementedError for a peer that is not Tenfold, and else what a call to a worker raises.
    """

    path, response = "/tenfold.LinkService/OpenLink", link_pb2.OpenLinkResponse
    return partial(ask, channel, path, response_class=response, task=task, address=address, seconds=seconds)


def peer_service(finished: FinishedTasks, incarnation: int, where: Callable[[], str]) -> TableService:
    """ExchangeFinished of a task that keeps its knowledge in `finished`, in its life of that `incarnation`."""
    me = peers_pb2.TaskLife(task=finished.task, incarnation=incarnation)

    async def exchange(request: peers_pb2.ExchangeFinishedRequest, context: Any) -> peers_pb2.ExchangeFinishedResponse:
        if len(request.task) > _MAX_TASKS:
            raise errors.invalid_argument(
                f"ExchangeFinished names {len(request.task)} tasks; {_MAX_TASKS} is the limit."
            )
        if request.HasField("caller"):
            finished.met(request.caller.task, request.caller.incarnation)
        finished.note(_lives(request.task))
        return peers_pb2.ExchangeFinishedResponse(task=_messages(finished.known), callee=me)

    def told(request: peers_pb2.ExchangeFinishedRequest, _: Any) -> dict[str, object]:
        return {"peer": request.caller.task, "finished": ",".join(each.task for each in request.task[:_TOLD])}

    table = {"ExchangeFinished": Served(exchange, audited=Audited("exchange finished", told))}
    return TableService(PEERS, table, where, "tenfold", needs=Role.REGISTER)


async def exchange_finished(
    task: TaskName,
    address: str,
    me: Life,
    known: Mapping[TaskName, int],
    seconds: float,
    credentials: Credentials,
) -> tuple[dict[TaskName, int], Life | None]:
    """Tells `task` at `address` what is `known`; what it knows, and the task that answered (None: it does not say).

    Over a connection of its own: one that broke would still be within its pause between attempts when the task is
    back. Raises UnimplementedError for a peer that is not Tenfold, UnavailableError or DeadlineExceededError for none.
    """
    caller = peers_pb2.TaskLife(task=me[0], incarnation=me[1])
    request = peers_pb2.ExchangeFinishedRequest(task=_messages(known), caller=caller)
    async with open_channel(address, credentials) as channel:
        path = "/tenfold.PeerService/ExchangeFinished"
        answer = await ask(channel, path, request, peers_pb2.ExchangeFinishedResponse, task, address, seconds)
    callee = (answer.callee.task, answer.callee.incarnation) if answer.HasField("callee") else None
    return _lives(answer.task[:_MAX_TASKS]), callee


def _messages(known: Mapping[TaskName, int]) -> list[peers_pb2.TaskLife]:
    return [peers_pb2.TaskLife(task=task, incarnation=number) for task, number in known.items()]


def _lives(messages: Iterable[peers_pb2.TaskLife]) -> dict[TaskName, int]:
    return {each.task: each.incarnation for each in messages}


def placement_service(master: Master, where: Callable[[], str]) -> TableService:
    """GetPlacement of a task's master: where a session's nodes are, and why."""

    async def get_placement(
        request: placement_pb2.GetPlacementRequest, context: Any
    ) -> placement_pb2.GetPlacementResponse:
        master.check_reader(request.session_handle, context.caller())
        return await master.placement(request.session_handle)

    return TableService(PLACEMENT, {"GetPlacement": Served(get_placement)}, where, "tenfold", needs=Role.READ)


def health_service(not_ready: Callable[[], str], where: Callable[[], str]) -> TableService:
    """Health of a task that takes new work as long as `not_ready()` says nothing."""
    answer = health_pb2.HealthCheckResponse

    async def check(request: health_pb2.HealthCheckRequest, context: Any) -> health_pb2.HealthCheckResponse:
        if request.service == LIVE:
            return answer(status=answer.SERVING)
        if request.service not in _READY:
            known = ", ".join(map(repr, (*_READY, LIVE)))
            raise errors.not_found(f"{where()} has no service {request.service!r} to check; it knows {known}.")
        why = not_ready()
        if why:
            # the message has no room for it, and metadata has printable ASCII alone
            context.set_trailing_metadata(((WHY_NOT, quote(why[:500], safe=_PLAIN)),))
        return answer(status=answer.NOT_SERVING if why else answer.SERVING)

    table: dict[str, Served | str] = {"Check": Served(check), "Watch": "a task answers Check alone; ask that again"}
    return TableService(HEALTH, table, where, "grpc.health.v1", needs=Role.READ)
