"""What an end of a link serves: its methods and their handlers, and the future that a reply may come by.

The types that link.py, serving.py and the handlers (rpc/link_worker_service.py, services/rpc/link_master_service.py)
share.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tenfold_core import errors
from tenfold_core.access import audit
from tenfold_core.access.gate import Caller
from tenfold_core.access.roles import Role
from tenfold_link.link_end import LinkEnd

if TYPE_CHECKING:
    from tenfold_link.wire.buffers import Answer, Incoming, Outgoing

#: What a handler answers: header and buffers; None is an empty answer.
Reply: TypeAlias = "tuple[bytes, Sequence[Outgoing]] | None"
#: Called on the loop with (link, header, buffers). Must not block. Returns the reply, or an awaitable of it: a
#: coroutine runs as a task that the link owns, a future is waited for. An OpError becomes the caller's error, of the
#: same class and text.
Handler: TypeAlias = "Callable[[PeerLink, bytes, list[Incoming]], Reply | Awaitable[Reply]]"


class PeerLink(LinkEnd):
    """A link, as its handlers see it; link.py has what it does."""

    #: What the peer may do, and who that is.
    peer_role: Role
    peer_caller: Caller

    async def call(self, method: int, header: bytes = b"", buffers: Sequence[Outgoing] = ()) -> Answer:
        """Calls a method of the peer's."""
        raise NotImplementedError

    def call_nowait(self, method: int, header: bytes = b"", buffers: Sequence[Outgoing] = ()) -> Deferred:
        """Calls it now; the answer comes later."""
        raise NotImplementedError

    async def notify(self, method: int, header: bytes = b"", buffers: Sequence[Outgoing] = ()) -> None:
        """Tells the peer something that is not answered; waits for room."""
        raise NotImplementedError

    def notify_nowait(self, method: int, header: bytes = b"", buffers: Sequence[Outgoing] = ()) -> None:
        """The same without waiting."""
        raise NotImplementedError

    def on_close(self, callback: Callable[[errors.OpError], None]) -> None:
        """`callback` is called once, with the reason, when the link has ended."""
        raise NotImplementedError

    def abort(self, reason: str) -> None:
        """Ends the link at once."""
        raise NotImplementedError

    async def close(self, reason: str = "it is no longer needed", seconds: float = 1.0) -> None:
        """Ends the link once what is queued has gone."""
        raise NotImplementedError


class LinkMethod(NamedTuple):
    """One method of a link's end: its name, for messages, what serves it, and the least role of a caller."""

    name: str
    handle: Handler
    needs: Role = Role.REGISTER


#: Method number → method.
Methods: TypeAlias = Mapping[int, LinkMethod]
#: Makes the methods of a new link, so that they can keep state per link.
OnLink: TypeAlias = "Callable[[PeerLink], Methods]"


def permitted(methods: Methods, role: Role, task: str) -> Methods:
    """`methods` for a peer of this `role`: those that it may not call say so."""
    return {
        number: method if role >= method.needs else LinkMethod(method.name, _refusing(method, role, task))
        for number, method in methods.items()
    }


def _refusing(method: LinkMethod, role: Role, task: str) -> Handler:
    def refuse(link: PeerLink, header: bytes, buffers: list[Incoming]) -> Reply:
        why = f"it needs the role {method.needs.word}"
        audit.refusals.note(Caller(role, link.peer), method.name, why, address="over a link")
        raise errors.permission_denied(
            f"{method.name} is refused by {task}: it needs the role {method.needs.word}, and the peer of this link has "
            f"{role.word}."
        )

    return refuse


class Deferred(asyncio.Future[Any]):
    """A future that tells its end at once, and not in the loop's next round as add_done_callback does.

    What a handler may return whose reply comes later, and what `call_nowait` returns.
    """

    #: Called once with the future when it has its result or error, or was cancelled.
    then: Callable[[asyncio.Future[Any]], None] | None = None

    def set_result(self, result: Any) -> None:
        """As Future.set_result."""
        super().set_result(result)
        self._tell()

    def set_exception(self, exception: type[BaseException] | BaseException) -> None:
        """As Future.set_exception."""
        super().set_exception(exception)
        self._tell()

    def cancel(self, msg: Any | None = None) -> bool:
        """As Future.cancel."""
        if not super().cancel(msg):
            return False
        self._tell()
        return True

    def _tell(self) -> None:
        # forgotten first, so that what hangs on it goes with the last reference and not with the garbage collector
        then, self.then = self.then, None
        if then is not None:
            then(self)
