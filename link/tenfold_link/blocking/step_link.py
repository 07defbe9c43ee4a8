"""A blocking link for one thread at a time, which has several calls under way and takes what the peer pushes.

A step across tasks on its caller's thread (tenfold_services/master/caller_cluster_steps.py) talks to each task over one
of these (master/step_links.py). link.py has the rest.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from tenfold_core.access.credentials import NO_CREDENTIALS, Credentials
from tenfold_link.blocking.dial import connect
from tenfold_link.blocking.link import BlockingLink
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS, LinkSettings
from tenfold_link.wire.frames import Frame, FrameKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_link.blocking.calls import PendingCall
    from tenfold_link.wire.buffers import Outgoing
    from tenfold_protos.link_pb2 import OpenLinkResponse


class StepLink(BlockingLink):
    """One thread at a time, but for `abandon`, which any thread may call."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        #: Called with the peer's notifications: method, header, buffers.
        self.on_notice: Callable[[int, bytes, list[Any]], None] | None = None
        # the holder of the link is its reader: no other thread ever leads
        self._led = True

    def fileno(self) -> int:
        """The socket, to wait for several links at once."""
        return self._sock.fileno()

    def start(self, method: int, header: bytes = b"", buffers: Sequence[Outgoing] = ()) -> PendingCall:
        """Sends a call, whose `answer` or `error` is set by a later `receive`. Raises UnavailableError."""
        call, pieces = self._begin(method, header, buffers)
        self._send(pieces)
        return call

    def notify_nowait(self, method: int, header: bytes = b"", buffers: Sequence[Outgoing] = ()) -> None:
        """As `notify`."""
        self.notify(method, header, buffers)

    def receive(self) -> None:
        """Reads once what is there, and does not wait. The link may be closed afterwards."""
        if self.reason is None:
            self._receive(socket.MSG_DONTWAIT)

    def check_life(self) -> None:
        """Nothing came for half a second: asks a peer that is silent for long. The link may be closed afterwards."""
        if self.reason is None:
            self._check_life()

    def abandon(self, call: PendingCall) -> None:
        """Tells the peer that its answer is no longer wanted. An answer, most likely an error, still comes."""
        self._cancel(call)

    def end(self) -> None:
        """Closes the link, which is not in use."""
        self.close()
        self._sock.close()
        self._inbound.drop()

    def _take_frame(self, frame: Frame) -> None:
        if frame.kind is FrameKind.NOTIFY and self.on_notice is not None:
            self.on_notice(frame.method, frame.header, frame.buffers)
        else:
            super()._take_frame(frame)


def connect_for_steps(
    answer: OpenLinkResponse,
    address: str,
    peer: str,
    settings: LinkSettings = DEFAULT_LINK_SETTINGS,
    credentials: Credentials = NO_CREDENTIALS,
) -> StepLink:
    """A link to the task that gave `answer`. Blocks within bounds. Raises UnavailableError."""
    link = connect(answer, address, peer=peer, settings=settings, make=StepLink, credentials=credentials)
    assert isinstance(link, StepLink)
    return link
