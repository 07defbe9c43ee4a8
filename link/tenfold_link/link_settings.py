"""What a link may do and how much it may take: one frozen dataclass, read from the environment once, at the edge.

Servers and sessions take a `LinkSettings` and pass it down; nothing below reads the environment. Every size, count and
time that a peer controls has its bound here. Used by both ends: tenfold_link.aio and tenfold_link.blocking.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tenfold_core import env_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Of the variables that set a field, `TENFOLD_LINK_FRAME_BYTES` and so on, but for these.
PREFIX = "TENFOLD_LINK_"
NAMES = {
    "mode": "TENFOLD_LINK",
    "shared_memory": "TENFOLD_SHARED_MEMORY",
    "shared_threshold": "TENFOLD_SHARED_MEMORY_THRESHOLD",
}

LARGEST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """Sizes are bytes, times are seconds. The defaults suit a task; tests make tighter ones."""

    #: "auto": a Unix socket where both ends share a host, else TCP; "tcp": TCP always; "off": gRPC only.
    mode: Literal["auto", "tcp", "off"] = "auto"
    #: Large buffers go through shared memory where the link is a Unix socket.
    shared_memory: bool = sys.platform == "linux"
    #: Buffers from this size on go through shared memory. Below, the socket is as fast (docs/link.md).
    shared_threshold: int = 128 << 10
    #: Where a task listens for links over TCP, so that a firewall can let them through; 0: any free port.
    port: int = 0
    #: TCP connections that large buffers are spread over where the peer is far, beside the link's own; 1: none.
    streams: int = 4
    #: A peer is far from this round trip on.
    far_seconds: float = 0.001
    #: Address space of one direction's arena; memory is taken only as blocks are used.
    arena_bytes: int = 1 << 30
    #: Free memory of an arena beyond this goes back to the system when the link is idle.
    arena_keep_bytes: int = 256 << 20

    #: Memory of received buffers that are no longer used, kept for the next ones.
    receive_keep_bytes: int = 256 << 20

    #: One frame's buffers that travel in the socket, together.
    frame_bytes: int = 16 << 30
    #: One frame's header. What may be larger (a GraphDef with constants) travels as a buffer.
    header_bytes: int = 64 << 20
    #: Buffers of one frame.
    buffers_per_frame: int = 65_536
    #: Calls of one peer that are worked on at the same time; more are refused with ResourceExhaustedError.
    calls_in_flight: int = 16_384
    #: Bytes that wait for the socket before `Link.call` and `Link.notify` wait too.
    outbound_high_water: int = 4 << 20
    #: Bytes that wait for the socket before the peer is given up as one that does not read.
    outbound_bytes: int = 4 << 30
    #: The same for all links together that one peer has opened (who it was accepted as, and from where); 0: what one
    #: tensor may take. A link that waits for nothing else sends what it has in any case.
    peer_outbound_bytes: int = 0
    #: Bytes of frames that are received or worked on, of one peer and of all, where they may only run graphs: a call
    #: beyond that is refused with ResourceExhaustedError. 0: what one tensor may take; half as much again.
    peer_inbound_bytes: int = 0
    inbound_bytes: int = 0
    #: Bytes of a peer's memory that are mapped at most; 0: half of the machine's memory, or as many as `arena_bytes`.
    mapping_bytes: int = 0

    #: Time from connecting to the end of the handshake.
    hello_seconds: float = 5.0
    #: Connections that have not shown their token yet, and tokens that have not been shown yet.
    handshakes: int = 256
    tokens: int = 4096
    #: Links that a task has open, those agreed on among them; more are refused, and gRPC serves.
    links: int = 4096
    #: Of them, those of one peer.
    links_per_peer: int = 2048
    #: Time for which a token is good.
    token_seconds: float = 30.0
    #: While calls wait for a peer that says nothing, it is asked for a sign of life this often …
    ping_every_seconds: float = 2.5
    #: … and is taken for dead when nothing at all comes for so long after that.
    ping_answer_seconds: float = 7.0
    #: After a failed attempt to open a link, gRPC serves for this long before the next attempt.
    retry_seconds: float = 30.0

    @staticmethod
    def from_environment(environment: Mapping[str, str] = os.environ) -> LinkSettings:
        """TENFOLD_LINK=auto|off|tcp, TENFOLD_SHARED_MEMORY=auto|off, and a variable for each other field.

        Raises InvalidArgumentError naming the variable and what it may be.
        """
        shared = environment.get("TENFOLD_SHARED_MEMORY", "") or "auto"
        if shared not in ("auto", "off"):
            raise env_settings.invalid("TENFOLD_SHARED_MEMORY", shared, "auto or off")
        defaults = LinkSettings(shared_memory=shared == "auto" and sys.platform == "linux")
        others = {name: value for name, value in environment.items() if name != NAMES["shared_memory"]}
        found = env_settings.read(defaults, PREFIX, others, NAMES)
        if found.port > LARGEST_PORT:
            raise env_settings.invalid("TENFOLD_LINK_PORT", str(found.port), f"a port from 1 to {LARGEST_PORT}, or 0")
        return found


DEFAULT_LINK_SETTINGS = LinkSettings()
