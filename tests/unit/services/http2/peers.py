"""What the tests of connections share: a connection whose requests are written down, and frames made by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenfold_services.http2 import frame_types as frames
from tenfold_services.http2.connection import Connection
from tenfold_services.http2.hpack import Field, FieldRun, encode
from tenfold_services.http2.http2_settings import Http2Settings

if TYPE_CHECKING:
    from tenfold_services.http2.frame_types import Code

POST = encode(
    [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/x/Y"),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
    ]
)
GREETING = frames.PREFACE + frames.settings({})


@dataclass
class Request:
    """A Receiver that keeps what comes. With `room`, payload is put there."""

    fields: list[Field] | None
    room: bytearray | None = None
    data: bytearray = field(default_factory=bytearray)
    complete: bool = False
    gone: bool = False

    def take(self, data: memoryview) -> None:
        assert not self.complete
        self.data += data

    def space(self) -> memoryview | None:
        return None if self.room is None else memoryview(self.room)[len(self.data) :]

    def filled(self, count: int) -> None:
        assert self.room is not None
        self.data += self.room[len(self.data) : len(self.data) + count]

    def ended(self) -> None:
        assert not self.complete
        self.complete = True

    def cancelled(self) -> None:
        assert not self.gone
        self.gone = True


class Peer:
    """The client's side of a Connection: `send` bytes, look at `requests` and at the frames that `pull` gives."""

    def __init__(self, settings: Http2Settings | None = None, *, greet: bool = True, room: int = 0) -> None:
        self.requests: dict[int, Request] = {}
        self.now = 0.0
        self._room = room
        self.connection = Connection(self._open, settings or Http2Settings(), lambda: self.now)
        #: How much went into the receiver's own memory.
        self.direct = 0
        if greet:
            self.send(GREETING)
            self.pull()

    def _open(self, number: int, run: FieldRun, fields: list[Field] | None) -> Request:
        made = Request(None if fields is None else [*run.fields, *fields])
        if self._room:
            made.room = bytearray(self._room)
        self.requests[number] = made
        return made

    def send(self, data: bytes, size: int = 1 << 30) -> None:
        """Lets the connection read `data`, `size` bytes at a time at most."""
        at = 0
        while at < len(data) and self.connection.fault is None:
            count = 0
            spaces = self.connection.spaces()
            for index, space in enumerate(spaces):
                part = data[at : at + min(len(space), size - count)]
                space[: len(part)] = part
                at += len(part)
                count += len(part)
                if len(spaces) > 1 and not index:
                    self.direct += len(part)
            assert count
            self.connection.received(count)

    def pull(self, budget: int = 1 << 30) -> list[tuple[int, int, int, bytes]]:
        """(type, flags, stream, payload) of what the connection sends now."""
        data = b""
        while part := b"".join(self.connection.out.pull(budget)):
            data += part
        return split(data)

    @property
    def code(self) -> Code | None:
        """Why the connection ended, as it was told to the peer."""
        fault = self.connection.fault
        if fault is not None:
            kind, _, _, payload = self.pull()[-1]
            assert kind == frames.GOAWAY
            assert int.from_bytes(payload[4:8], "big") == fault.code
        return None if fault is None else fault.code


def split(data: bytes) -> list[tuple[int, int, int, bytes]]:
    out = []
    while data:
        upper, lower, kind, flags, stream = frames.HEADER.unpack_from(data)
        end = frames.HEADER_BYTES + (upper << 8 | lower)
        assert len(data) >= end
        out.append((kind, flags, stream, data[frames.HEADER_BYTES : end]))
        data = data[end:]
    return out


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return frames.header(len(payload), kind, flags, stream) + payload


def request(stream: int, *, ends: bool = False, block: bytes = POST) -> bytes:
    return frame(frames.HEADERS, frames.END_HEADERS | (frames.END_STREAM if ends else 0), stream, block)


def data(stream: int, payload: bytes, *, ends: bool = False) -> bytes:
    return frame(frames.DATA, frames.END_STREAM if ends else 0, stream, payload)
