"""Frames of a link as a peer may send them: byte 0 says in which pieces they come, and whether the handshake is first.

FrameReader cuts them up as link/aio and link/blocking have it do; Greeting reads the first frame from a real socket.
"""

from __future__ import annotations

import dataclasses
import socket
from typing import TYPE_CHECKING, Any

import numpy as np

from fuzz.harness import Fault
from tenfold_core.errors import UnavailableError
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire import handshake
from tenfold_link.wire.frames import HELLO_BYTES, FrameKind, FrameReader, pack_ids, unpack_ids
from tenfold_link.wire.packing import Packer
from tenfold_protos import link_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_link.wire.frames import Frame

#: Tight, so that a claim that is believed shows.
SETTINGS = dataclasses.replace(
    DEFAULT_LINK_SETTINGS, header_bytes=1 << 16, frame_bytes=1 << 20, buffers_per_frame=64, arena_bytes=1 << 20
)

#: Many pieces of a long input only take long.
_MOST_PIECES = 500


def one_input(data: bytes) -> None:
    if not data:
        return
    how, data = data[0], data[1:]
    if how & 1:
        _greeting(data, FrameKind.HELLO if how & 2 else FrameKind.WELCOME)
    else:
        _frames(data, max(1 + (how >> 1) ** 2, len(data) // _MOST_PIECES))


def _frames(data: bytes, piece: int) -> None:
    whole, cut = _read(data, len(data) + 1), _read(data, piece)
    # what came together with the error is not told
    if cut != whole and (isinstance(whole[-1], tuple) or cut[-1] != whole[-1]):
        raise Fault(f"in pieces of {piece} bytes it means something else")


def _read(data: bytes, piece: int) -> list[Any]:
    """The frames, and at last why there are no more."""
    taken = 0

    def allocate(size: int) -> np.ndarray[Any, Any]:
        nonlocal taken
        taken += size
        if size > SETTINGS.frame_bytes:
            raise Fault(f"it asks for {size} bytes at once")
        return np.zeros(size, np.uint8)

    reader = FrameReader(SETTINGS, _block, allocate)
    found: list[Any] = []
    rest = memoryview(data)
    try:
        while rest:
            space = reader.buffer()
            count = min(piece, len(space), len(rest))
            if not count:
                raise Fault("there is no room for what comes next")
            space[:count] = rest[:count]
            rest = rest[count:]
            found += [_told(frame) for frame in reader.received(count)]
    except ProtocolError as error:
        found.append(str(error))
    reader.close()
    return found


def _block(block: int, offset: int, size: int) -> bytes:
    """As of a peer with an arena of SETTINGS' size."""
    if block > 1 << 32 or offset + size > SETTINGS.arena_bytes:
        raise ProtocolError(f"block {block} lies beyond the arena")
    return b"%d %d %d" % (block, offset, size)


def _told(frame: Frame) -> Any:
    if frame.kind is FrameKind.RELEASE:
        try:
            unpack_ids(frame.header)
        except ProtocolError as error:
            return str(error)
    return frame.kind, frame.method, frame.call, frame.header, [bytes(buffer) for buffer in frame.buffers]


def _greeting(data: bytes, kind: FrameKind) -> None:
    ours, theirs = socket.socketpair()
    greeting = handshake.Greeting(kind)
    with ours, theirs:
        theirs.send(data[: 2 * HELLO_BYTES])
        theirs.shutdown(socket.SHUT_WR)
        try:
            while (header := greeting.receive(ours)) is None:
                pass
            if kind is FrameKind.HELLO:
                handshake.parse_hello(header)
            else:
                handshake.parse_welcome(header)
        except (ProtocolError, UnavailableError):
            pass
        finally:
            greeting.close()


def seeds() -> Iterator[bytes]:
    packer = Packer(SETTINGS, None)

    def pack(kind: int, header: bytes = b"", *buffers: bytes) -> bytes:
        return b"".join(map(bytes, packer.pack(kind, 1, 7, header, buffers)))

    answer = link_pb2.OpenLinkResponse(token=b"t" * 16)
    yield b"\3" + handshake.hello(answer, None, always_reads=True)
    yield b"\1" + handshake.welcome("/job:ps/replica:0/task:0", None)
    yield b"\1" + pack(FrameKind.GOODBYE, b"no more links")
    calls = pack(FrameKind.REQUEST, b"header", b"a" * 100, b"") + pack(FrameKind.REPLY, b"", b"b" * 20_000)
    calls += pack(FrameKind.RELEASE, pack_ids([1, 2, 3])) + pack(FrameKind.PING) + pack(FrameKind.CANCEL)
    for how in (0, 2, 12, 200):
        yield bytes((how,)) + calls
    yield b"\x10" + pack(FrameKind.NOTIFY, b"h" * 5000, *[b"x"] * 40) + pack(FrameKind.ERROR, b"why")
