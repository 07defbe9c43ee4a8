"""Calls of a gRPC service without a transport: what a handler needs of a call, and its outcome once it has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core.access.gate import Caller
from tenfold_core.access.roles import Role
from tenfold_services.http2.handler import Failure

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from tenfold_services.rpc.service import TableService

CALLER = Caller(Role.RUN, "token ci", itself=Role.RUN)


class FakeCall:
    """The context of one call."""

    def __init__(self, caller: Caller = CALLER, metadata: Any = (), remaining: float | None = None) -> None:
        self._caller, self._metadata, self._remaining = caller, metadata, remaining
        self.initial: Any = None
        self.trailing: Any = None

    def caller(self) -> Caller:
        return self._caller

    def peer(self) -> str:
        return "ipv4:127.0.0.1:1234"

    def invocation_metadata(self) -> Any:
        return self._metadata

    def time_remaining(self) -> float | None:
        return self._remaining

    async def send_initial_metadata(self, metadata: Any) -> None:
        self.initial = metadata

    def set_trailing_metadata(self, metadata: Any) -> None:
        self.trailing = metadata


async def ask_bytes(service: TableService, path: str, request: bytes, call: Any = None) -> Any:
    """The outcome of a call of "/service/method"."""
    handler = service.find(path)
    assert handler is not None, path
    outcome: Any = handler.begin(request, call or FakeCall())
    return outcome if isinstance(outcome, (bytes, list, Failure)) else await outcome


async def ask(service: TableService, path: str, request: Message, response: type[Any], call: Any = None) -> Any:
    """The response of a call, or its Failure."""
    outcome = await ask_bytes(service, path, request.SerializeToString(), call)
    if isinstance(outcome, Failure):
        return outcome
    return response.FromString(b"".join(outcome) if isinstance(outcome, list) else outcome)
