"""The frames of HTTP/2: numbers, headers and the two kinds of errors. Source: RFC 9113. Used by connection.py."""

from __future__ import annotations

import struct
from enum import IntEnum

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

#: Length (its upper 16 bits, its lower 8 bits), type, flags, stream.
HEADER = struct.Struct(">HBBBL")
HEADER_BYTES = 9
#: A stream's number without the reserved bit.
STREAM_MASK = MAX_WINDOW = (1 << 31) - 1
#: What applies until the peer says something else.
DEFAULT_WINDOW, DEFAULT_FRAME = 65_535, 16_384
MAX_FRAME = (1 << 24) - 1

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
WITH_PRIORITY = 0x20

#: Settings.
TABLE_SIZE, ENABLE_PUSH, MAX_STREAMS, INITIAL_WINDOW, FRAME_SIZE, LIST_SIZE = range(1, 7)


class Code(IntEnum):
    """Why a stream or a connection ends."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class _Fault(Exception):
    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


class ConnectionFault(_Fault):
    """The peer did what ends the connection, with GOAWAY."""


class StreamFault(_Fault):
    """The peer did what ends one stream, with RST_STREAM."""


def header(length: int, kind: int, flags: int = 0, stream: int = 0) -> bytes:
    """The nine bytes before a payload of `length` bytes."""
    return HEADER.pack(length >> 8, length & 0xFF, kind, flags, stream)


def settings(values: dict[int, int]) -> bytes:
    payload = b"".join(struct.pack(">HL", name, value) for name, value in values.items())
    return header(len(payload), SETTINGS) + payload


def parse_settings(payload: bytes) -> list[tuple[int, int]]:
    """(name, value) in their order. The length is a multiple of six."""
    return list(struct.iter_unpack(">HL", payload))


def window_update(stream: int, increment: int) -> bytes:
    return header(4, WINDOW_UPDATE, 0, stream) + increment.to_bytes(4, "big")


def rst_stream(stream: int, code: Code) -> bytes:
    return header(4, RST_STREAM, 0, stream) + code.to_bytes(4, "big")


def goaway(last: int, code: Code, text: str = "") -> bytes:
    payload = struct.pack(">LL", last, code) + text.encode(errors="replace")[:500]
    return header(len(payload), GOAWAY) + payload


def header_block(stream: int, block: bytes, flags: int, frame_size: int) -> bytes:
    """HEADERS, and as many CONTINUATIONs as the peer's frame size asks for."""
    if len(block) <= frame_size:
        return header(len(block), HEADERS, flags | END_HEADERS, stream) + block
    out = [header(frame_size, HEADERS, flags, stream), block[:frame_size]]
    for at in range(frame_size, len(block), frame_size):
        part = block[at : at + frame_size]
        out += (header(len(part), CONTINUATION, END_HEADERS if at + frame_size >= len(block) else 0, stream), part)
    return b"".join(out)
