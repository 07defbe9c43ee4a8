"""What a service and a transport of gRPC say to each other, whichever transport it is: handler, call, outcome.

rpc/service.py makes handlers from tables. Two transports call them: calls.py here, and grpc.aio by way of that file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from tenfold_core.access.gate import Caller
    from tenfold_core.access.roles import Role

#: Something to be sent as it is; the transport keeps it until then, unchanged.
Buffer: TypeAlias = "bytes | bytearray | memoryview"
#: Names and values, which are bytes where the name ends with "-bin".
Metadata: TypeAlias = "Sequence[tuple[str, str | bytes]]"


@dataclass(frozen=True, slots=True)
class Failure:
    """A call's end without an answer: status code (those of tenfold_core.errors), text, metadata for the trailers."""

    code: int
    text: str
    metadata: Metadata = ()


#: A message's bytes, whole or in pieces that belong together in this order; or a failure.
Outcome: TypeAlias = "bytes | list[Buffer] | Failure"


class CallContext(Protocol):
    """The part of grpc.aio's ServicerContext that handlers use. Only on the loop's thread."""

    async def send_initial_metadata(self, initial_metadata: Any) -> None:
        """Sends headers ahead of the answer. At most once."""

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        """What goes along with the status of a call that went well."""

    def invocation_metadata(self) -> Any:
        """What the caller sent along, as (name, value)."""

    def time_remaining(self) -> float | None:
        """Seconds until the caller's deadline; None without one."""

    def peer(self) -> str:
        """The caller's address, "ipv4:127.0.0.1:1234"."""

    def caller(self) -> Caller:
        """Who it is, and what it may do: at least what the handler needs."""


class UnaryHandler(Protocol):
    """Serves one method: a message in, a message out."""

    #: Given the beginning of a large message, tells which byte of it should be aligned in memory; None for any.
    aligned: Callable[[memoryview], int] | None
    #: The least role that a caller needs.
    needs: Role
    #: What the audit log calls what it does.
    action: str

    def begin(self, request: Buffer, context: CallContext) -> Outcome | Coroutine[Any, Any, Outcome]:
        """The outcome, if it takes no waiting; else a coroutine of it. Raises nothing; does not block.

        `request` is the handler's own from now on. A coroutine is cancelled when the caller is gone or out of time.
        """
