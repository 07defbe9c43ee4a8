"""What both kinds of end of a link have: the agreed memory, what comes in, and the frames that belong to no call.

aio/link.py and blocking/link.py add their calls, their way to wait and their end.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_core.traffic import traffic_with
from tenfold_link.memory.arena_reader import weakly
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire.frames import FrameKind, pack, unpack_ids
from tenfold_link.wire.inbound import Inbound, why_ended
from tenfold_link.wire.moving import Moving
from tenfold_link.wire.packing import Packer
from tenfold_link.wire.streams import connections

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from tenfold_link.link_settings import LinkSettings
    from tenfold_link.memory.arena import SharedBlock
    from tenfold_link.wire.buffers import Outgoing
    from tenfold_link.wire.frames import Frame
    from tenfold_link.wire.handshake import Agreed


class LinkEnd:
    """One end of an open link."""

    #: Of the end's way out: sends a frame's pieces, by the blocking end until a deadline; says why the link ends.
    _send: Callable[..., None]
    _say_goodbye: Callable[[str], None]

    def __init__(
        self,
        sock: socket.socket,
        peer: str,
        settings: LinkSettings,
        agreed: Agreed,
        give_back: Callable[[int], None],
    ) -> None:
        """`give_back(block)` sends the peer's block back."""
        #: Who is at the other end, for messages: a task, or "the client with pid 17".
        self.peer = peer
        #: How it is reached: "unix+shm", "unix" or "tcp".
        self.path = agreed.path
        #: Its TCP connections; 1 for a Unix socket.
        self.connections = len(connections(sock))
        #: What both ends speak, and can do besides.
        self.version, self.can = agreed.version, agreed.can
        #: No call can be made any more; and why.
        self.closed = False
        self.reason: errors.OpError | None = None
        #: For the link's users: what they registered with this peer. Dies with the link.
        self.state: dict[Any, Any] = {}
        self._sock = sock
        self._settings = settings
        self._arena = agreed.arena
        reader = agreed.peer_arena(weakly(give_back)) if agreed.peer_arena is not None else None
        traffic = traffic_with(peer)
        self._inbound = Inbound(sock, settings, reader.open if reader is not None else None, traffic)
        several = self.connections > 1
        self._packer = Packer(
            settings, agreed.arena, traffic, lends_variables=agreed.lends_variables, spreads=several
        )
        self._numbers = count(1)
        #: Before a peer is taken for dead: whether something is on its way, slowly.
        self._moving = Moving(sock)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to {self.peer} by {self.path}{', closed' if self.closed else ''}>"

    def stage(self, buffer: Outgoing) -> Outgoing:
        """A private copy of `buffer` for sending, in shared memory if it is large: the source may change afterwards."""
        return self._packer.stage(buffer)

    def allocate(self, nbytes: int) -> SharedBlock | None:
        """Shared memory to produce a tensor in and then send without a copy; None where there is none now."""
        return self._packer.allocate(nbytes)

    def reserve(self, nbytes: int) -> None:
        """Makes `nbytes` of shared memory ready. Blocks for it; for set-up and measurements, not for steps."""
        if self._arena is not None:
            self._arena.reserve(nbytes)

    def _lost(self, reason: str) -> None:
        """Ends the link with UnavailableError(peer, reason) for all calls."""
        raise NotImplementedError

    def _ended(self, reason: str) -> errors.OpError:
        return errors.UnavailableError(None, None, f"The link to {self.peer} ended: {reason}.")

    def _receiving_failed(self, error: Exception) -> None:
        """Ends the link for one of RECEIVE_ERRORS."""
        if isinstance(error, ProtocolError):
            self._say_goodbye(f"you sent {error}")
        self._lost(why_ended(error))

    def _silent(self, seconds: float) -> None:
        """Ends the link to a peer that did not answer a PING, and says so, in case that it is only slow."""
        self._say_goodbye(f"you have not said anything for {seconds:.0f} s")
        self._lost(f"it has not said anything for {seconds:.0f} s, it hangs or its host is gone")

    def _take_control(self, frame: Frame) -> None:
        """Deals with a frame of no call. Raises ProtocolError for a kind that only a handshake has."""
        kind = frame.kind
        if kind is FrameKind.RELEASE:
            if self._arena is None:
                raise ProtocolError("a release without an arena")
            self._arena.release(unpack_ids(frame.header))
        elif kind is FrameKind.PING:
            self._send([pack(FrameKind.PONG)])
        elif kind is FrameKind.GOODBYE:
            self._lost(f"it closed the link: {frame.header[:1000].decode(errors='replace')}")
        elif kind is not FrameKind.PONG:
            raise ProtocolError(f"{kind.name} after the handshake")
