"""HTTP/2 as a peer may send it: a connection, with gRPC's calls on it, is given frames in pieces of some size.

Byte 0 says how long the pieces are, and whether a greeting comes first. The calls are real ones (calls.py), with a
handler that answers at once and one that waits; nothing is sent.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from fuzz import pieces
from fuzz.harness import Fault
from fuzz.messages import changed_bytes
from tenfold_core.access.gate import Caller, Gate
from tenfold_core.access.roles import Role
from tenfold_core.access.tokens import TokenSet
from tenfold_services.http2 import frame_types as frames
from tenfold_services.http2.calls import GrpcCall
from tenfold_services.http2.connection import Connection
from tenfold_services.http2.hpack import encode
from tenfold_services.http2.http2_settings import Http2Settings
from tenfold_services.http2.open_calls import OpenCalls

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from tenfold_services.http2.hpack import Field, FieldRun

_BUDGET = 1 << 20
SETTINGS = Http2Settings(
    buffered_bytes=_BUDGET,
    keep_bytes=0,
    streams=8, calls=16, stream_window=1 << 20, connection_window=1 << 21, message_bytes=1 << 18, control_burst=200,
    header_list_bytes=4096, header_block_bytes=8192, continuations=4, control_bytes=1 << 14,
)  # fmt: skip
#: Many pieces of a long input only take long.
_MOST_PIECES = 500
#: Frames' worth of answers that a pull takes.
_PULLED = 1 << 16
_GREETING = frames.PREFACE + frames.settings({})
_LOOP = asyncio.new_event_loop()


class _Handler:
    """`slow` ones wait for a turn of the loop."""

    aligned = None
    needs = Role.READ

    def __init__(self, slow: bool) -> None:
        self._slow = slow

    def begin(self, request: Any, context: GrpcCall) -> Any:
        context.invocation_metadata()
        if not self._slow:
            return bytes(request)
        return self._later(bytes(request), context)

    async def _later(self, request: bytes, context: GrpcCall) -> bytes:
        await context.send_initial_metadata([("seen-bin", b"\0")])
        await asyncio.sleep(0)
        return request


_HANDLERS = {"/x/Now": _Handler(False), "/x/Later": _Handler(True)}


class _Wire:
    """The connection's socket, which is none."""

    name, host, caller = "ipv4:127.0.0.1:1", "", Caller(Role.READ, "nobody")

    def __init__(self, calls: OpenCalls) -> None:
        self._calls, self.turns = calls, 0
        self.connection = Connection(self._open, SETTINGS, lambda: 0.0)

    def _open(self, number: int, run: FieldRun, fields: list[Field] | None) -> GrpcCall:
        return GrpcCall(self._calls, self, number, run, fields)

    def flush(self) -> None:
        self.turns += 1

    def has_time(self) -> bool:
        return self.turns < 3


def one_input(data: bytes) -> None:
    if data:
        _LOOP.run_until_complete(_connection(data[0], data[1:]))


async def _connection(how: int, data: bytes) -> None:
    calls = OpenCalls(_HANDLERS.get, SETTINGS, Gate("the fuzzer's task", TokenSet, open_to_all=False))
    budget = calls.budget
    wire = _Wire(calls)
    connection = wire.connection
    rest = memoryview(_GREETING + data if how & 1 else data)
    piece = max((1, 3, 100, 1 << 20)[how >> 1 & 3], len(rest) // _MOST_PIECES)
    while rest and connection.fault is None:
        count = 0
        for space in connection.spaces():
            part = rest[: min(len(space), piece - count)]
            space[: len(part)] = part
            count += len(part)
            rest = rest[len(part) :]
        if not count:
            raise Fault("there is no room for what comes next")
        connection.received(count)
        if how & 8:
            await asyncio.sleep(0)
            connection.out.pull(_PULLED)
    for _ in range(8):
        await asyncio.sleep(0)
        connection.out.pull(_PULLED)
    if budget.taken > _BUDGET:
        raise Fault(f"{budget.taken} bytes are taken of {_BUDGET}")
    connection.lost()
    await calls.drained(10)
    if calls.open:
        raise Fault(f"{len(calls.open)} calls are not over")
    if budget.taken:
        raise Fault(f"{budget.taken} bytes were not given back")


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Changes whole frames, so that they go on to begin where they should."""
    how, rest, cut = data[:1] or b"\1", data[1:], []
    while len(rest) >= frames.HEADER_BYTES:
        end = frames.HEADER_BYTES + int.from_bytes(rest[:3], "big")
        cut.append(rest[:end])
        rest = rest[end:]
    if chance.random() < 0.05:
        how = bytes((chance.randrange(16),))
    return how + b"".join(pieces.mutated(cut, chance, _changed_frame)) + rest


def _changed_frame(frame: bytes, chance: random.Random) -> bytes:
    if len(frame) < frames.HEADER_BYTES:
        return frames.header(0, chance.randrange(12), chance.randrange(64), chance.randrange(8))
    kind, flags, stream = frame[3], frame[4], int.from_bytes(frame[5:9], "big")
    payload = frame[frames.HEADER_BYTES :]
    match chance.randrange(6):
        case 0:
            kind = chance.randrange(12)
        case 1:
            flags ^= 1 << chance.randrange(8)
        case 2:
            stream = chance.choice((0, 1, 2, 3, 5, 7, 99, frames.STREAM_MASK))
        case 3:
            payload = payload * chance.choice((2, 3, 40))
        case _:
            payload = changed_bytes(payload, chance)
    return frames.header(len(payload), kind, flags, stream) + payload


def seeds() -> Iterator[bytes]:
    def request(stream: int, path: bytes, message: bytes, **fields: bytes) -> bytes:
        named = [(name.replace("_", "-").encode(), value) for name, value in fields.items()]
        head = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b"te", b"trailers")]
        block = encode([*head, (b"content-type", b"application/grpc"), *named])
        body = b"\0" + len(message).to_bytes(4, "big") + message
        return (
            frames.header(len(block), frames.HEADERS, frames.END_HEADERS, stream)
            + block
            + frames.header(len(body), frames.DATA, frames.END_STREAM, stream)
            + body
        )

    calls = request(1, b"/x/Now", b"abc") + request(3, b"/x/Later", b"d" * 300, grpc_timeout=b"1S")
    calls += request(5, b"/x/None", b"") + request(7, b"/x/Now", b"", authorization=b"Bearer x", grpc_encoding=b"gzip")
    control = frames.window_update(0, 1000) + frames.window_update(1, 5) + frames.rst_stream(3, frames.Code.CANCEL)
    control += frames.settings({frames.INITIAL_WINDOW: 10, frames.FRAME_SIZE: 1 << 20})
    control += frames.header(8, frames.PING, 0, 0) + b"12345678" + frames.goaway(0, frames.Code.NO_ERROR, "bye")
    for how in (1, 7, 9, 15):
        yield bytes((how,)) + calls + control
        yield bytes((how,)) + control + calls
    yield b"\x06" + _GREETING + calls
    block = encode([(b":method", b"POST"), (b":path", b"/x/Now"), (b":scheme", b"http")])
    first = frames.header(5, frames.HEADERS, 0, 1) + block[:5]
    yield b"\1" + first + frames.header(len(block) - 5, frames.CONTINUATION, frames.END_HEADERS, 1) + block[5:]
    yield b"\1" + request(1, b"/x/Later", b"e" * 10_000) + frames.header(0, frames.DATA, 0, 1)
