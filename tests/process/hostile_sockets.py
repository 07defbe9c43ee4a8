"""Junk on the other doors: what a peer may send to a link's socket and to the control service. Used by hostile.py."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire import handshake
from tenfold_link.wire.calls import LinkCall
from tenfold_link.wire.frames import FrameKind, FrameReader, pack
from tenfold_protos import link_pb2

if TYPE_CHECKING:
    import random
    from typing import Any

    import grpc

OPEN = "/tenfold.LinkService/OpenLink"
_SIZES = (0, 1, 0xFFFF, 2**31 - 1, 2**32 - 1)


def open_link(channel: grpc.Channel, seconds: float) -> socket.socket:
    """A connection that has shaken hands, as a client's."""
    asked = handshake.ask(DEFAULT_LINK_SETTINGS).SerializeToString()
    answer = link_pb2.OpenLinkResponse.FromString(channel.unary_unary(OPEN)(asked, timeout=seconds))
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(seconds)
    sock.connect("\0" + answer.unix_name.decode())
    sock.send(handshake.hello(answer, None, always_reads=True))
    greeting = handshake.Greeting(FrameKind.WELCOME)
    while greeting.receive(sock) is None:
        pass
    greeting.close()
    return sock


def _frame(draw: random.Random) -> bytes:
    """A frame: well made but for what it carries, or not even that."""
    kind = draw.choice((*range(16), 255))
    number = draw.choice((0, 1, 2**32, 2**64 - 1))
    method = draw.choice((*LinkCall, 0, 99, 2**32 - 1))
    match draw.randrange(4):
        case 0:
            return draw.randbytes(draw.choice((1, 24, 100, 70_000)))
        case 1:
            return struct.pack(
                "<HBBIIIQ", 0x4C54, kind, draw.choice((0, 1)), method, draw.choice(_SIZES), draw.choice(_SIZES), number
            ) + draw.randbytes(draw.choice((0, 24, 500)))
        case 2:
            header = draw.randbytes(draw.choice((0, 3, 24, 60, 4000)))
            return struct.pack("<HBBIIIQ", 0x4C54, kind % 12, 0, method, len(header), 0, number) + header
        case _:
            table = struct.pack("<QQQ", draw.choice((0, 8, 2**40, 2**63)), draw.choice((0, 1, 2**63)), 2**50)
            return struct.pack("<HBBIIIQ", 0x4C54, kind % 12, 0, method, 0, 1, number) + table + b"12345678"


def attack_link(channel: grpc.Channel, draw: random.Random, seconds: float) -> str:
    """One connection, some frames, and then a question whose answer must come, or the connection's end."""
    asked: Any = handshake.ask(DEFAULT_LINK_SETTINGS)
    answer = link_pb2.OpenLinkResponse.FromString(channel.unary_unary(OPEN)(asked.SerializeToString(), timeout=seconds))
    if draw.random() < 0.3:
        # no handshake at all, or half of one
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(seconds)
            sock.connect("\0" + answer.unix_name.decode())
            whole = handshake.hello(answer, None, always_reads=True)
            with contextlib.suppress(OSError):
                sock.send(whole[: draw.randrange(len(whole))] + draw.randbytes(draw.choice((0, 9))))
        return "LINK_NO_HANDSHAKE"
    with open_link(channel, seconds) as sock, contextlib.suppress(ConnectionError):
        for _ in range(draw.randrange(1, 5)):
            sock.sendall(_frame(draw))
        if draw.random() < 0.5:
            return "LINK_LEFT"
        sock.sendall(pack(FrameKind.PING, call=7))
        sock.shutdown(socket.SHUT_WR)
        reader = FrameReader(DEFAULT_LINK_SETTINGS, _no_arena)
        while count := sock.recv_into(reader.buffer()):
            reader.received(count)
    return "LINK_ENDED"


def _no_arena(block: int, offset: int, size: int) -> Any:
    raise ProtocolError("a shared block without an arena")


# -- the control service -----------------------------------------------------------------------------------------------

_PATHS = (
    "/v1/sessions",
    "/v1/sessions/none",
    "/v1/sessions/none/steps",
    "/v1/sessions/none/graph:extend",
    "/v1/clusters",
    "/v1/clusters/default",
    "/v1/clusters/default/tasks",
    "/v1/leases",
    "/v1/" + "x" * 5000,
    "/../../etc/passwd",
    "/%00%ff",
    "/openapi.json",
    "/health",
)
_VALUES: tuple[Any, ...] = (None, True, -1, 2**70, 1e308, "", "x" * 5000, "\u0000", [], {}, [[[[]]]])
_KEYS = ("name", "jobs", "cluster", "job", "index", "graph_def", "config", "inputs", "outputs", "address", "ttl")


def attack_rest(address: str, draw: random.Random, seconds: float) -> str:
    """One request; its status as text. Raises URLError when the service is gone."""
    kind = draw.randrange(4)
    if kind == 0:
        body = draw.randbytes(draw.choice((0, 10, 5000)))
    elif kind == 1:
        body = (b"[" * draw.choice((10, 200_000))) + b"1"
    else:
        body = json.dumps({draw.choice(_KEYS): draw.choice(_VALUES) for _ in range(draw.randrange(6))}).encode()
    request = urllib.request.Request(
        address + draw.choice(_PATHS),
        body if kind else body or None,
        {
            "content-type": draw.choice(("application/json", "application/x-protobuf", "text/plain", "x" * 300)),
            "idempotency-key": draw.choice(("a", "b", "k" * 999)),
        },
        method=draw.choice(("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "JUNK")),
    )
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            answer.read()
            return f"HTTP_{answer.status}"
    except urllib.error.HTTPError as error:
        error.read()
        error.close()
        return f"HTTP_{error.code}"
    except (ConnectionError, TimeoutError) as error:
        if isinstance(error, TimeoutError):
            raise
        return "HTTP_CLOSED"
