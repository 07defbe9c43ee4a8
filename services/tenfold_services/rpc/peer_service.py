"""ExchangeFinished over gRPC: the handler that a server registers, and the call that another task makes.

Beside TensorFlow's services on the same port. decode → call → encode; what the news mean is ../finished.py's, and which
task tells which is ../peers.py's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_core.access.roles import Role
from tenfold_protos import peers_pb2

from .channels import ask, open_channel
from .service import Audited, Method, TableService

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tenfold_core.access.credentials import Credentials

    from ..finished import FinishedTasks
    from ..interfaces import Life, TaskName

DESCRIPTOR = peers_pb2.DESCRIPTOR.services_by_name["PeerService"]
_METHOD = "/tenfold.PeerService/ExchangeFinished"
#: Tasks that one message may name.
_MAX_TASKS = 100_000
#: Tasks that a line of the audit log names.
_TOLD = 20


def peer_service(finished: FinishedTasks, incarnation: int, where: Callable[[], str]) -> TableService:
    """The service of a task that keeps its knowledge in `finished`, in its life of that `incarnation`."""
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

    table: dict[str, Method] = {"ExchangeFinished": exchange}
    told = {"ExchangeFinished": Audited("exchange finished", _finished)}
    return TableService(DESCRIPTOR, table, {}, where, package="tenfold", needs=Role.REGISTER, audited=told)


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
    request = peers_pb2.ExchangeFinishedRequest(
        task=_messages(known), caller=peers_pb2.TaskLife(task=me[0], incarnation=me[1])
    )
    async with open_channel(address, credentials) as channel:
        answer = await ask(channel, _METHOD, request, peers_pb2.ExchangeFinishedResponse, task, address, seconds)
    callee = (answer.callee.task, answer.callee.incarnation) if answer.HasField("callee") else None
    return _lives(answer.task[:_MAX_TASKS]), callee


def _finished(request: peers_pb2.ExchangeFinishedRequest, _: Any) -> dict[str, object]:
    return {"peer": request.caller.task, "finished": ",".join(each.task for each in request.task[:_TOLD])}


def _messages(known: Mapping[TaskName, int]) -> list[peers_pb2.TaskLife]:
    return [peers_pb2.TaskLife(task=task, incarnation=number) for task, number in known.items()]


def _lives(messages: Iterable[peers_pb2.TaskLife]) -> dict[TaskName, int]:
    return {each.task: each.incarnation for each in messages}
