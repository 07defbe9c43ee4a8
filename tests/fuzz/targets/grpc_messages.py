"""A gRPC call's message: what MessageReader makes of DATA, compressed or not, and RunStep's requests after that.

Byte 0 says how: pieces of which size, which encoding, whether prefix and compression are put on here (so that they are
right) or are among the bytes, and how often the content is repeated (so that little becomes much).
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf.message import DecodeError

from fuzz.harness import Fault
from fuzz.messages import changed_bytes, parsed
from fuzz.messages import mutated as message_mutated
from tenfold_core import tensor_util
from tenfold_protos import master_pb2
from tenfold_services.http2.message import PREFIX_BYTES, Budget, Inflation, MessageReader, Refused
from tenfold_services.rpc.large import first_content, parse_run_step

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

LIMIT, BUDGET = 1 << 20, 3 << 20
_ENCODINGS = (b"identity", b"gzip", b"deflate", b"br")
#: Many pieces of a long message only take long.
_MOST_PIECES = 500
_WINDOWS = (15, 31, 15, -15)


def one_input(data: bytes) -> None:
    if not data:
        return
    how, content = data[0], data[1:]
    piece, kind, framed = (1, 7, 1000, 1 << 20)[how & 3], how >> 2 & 3, how & 16
    content *= (1, 1, 8, 500)[how >> 5 & 3]
    message = _framed(content, kind) if framed else content
    piece = max(piece, len(message) // _MOST_PIECES)
    budget = Budget(BUDGET)
    reader = MessageReader(LIMIT, budget, _memory)
    try:
        got = _read(reader, budget, message, piece, _ENCODINGS[kind])
    except Refused:
        got = None
    else:
        if framed and bytes(got) != content:
            raise Fault("the message is not what was sent")
    if budget.taken > BUDGET:
        raise Fault(f"{budget.taken} bytes are taken of {BUDGET}")
    reader.close()
    if budget.taken:
        raise Fault(f"{budget.taken} bytes were not given back")
    if got is not None:
        _run_step(bytes(got))


def _framed(content: bytes, kind: int) -> bytes:
    """The message of a peer that means well, but for an encoding that we do not know."""
    if kind:
        packer = zlib.compressobj(wbits=_WINDOWS[kind])
        content = packer.compress(content) + packer.flush()
    return bytes((1 if kind else 0,)) + len(content).to_bytes(PREFIX_BYTES - 1, "big") + content


def _memory(size: int) -> np.ndarray[Any, Any]:
    if size > LIMIT + 1024:
        raise Fault(f"it asks for {size} bytes at once")
    return np.empty(size, np.uint8)


def _read(reader: MessageReader, budget: Budget, message: bytes, piece: int, encoding: bytes) -> Any:
    reader.aligned = first_content
    rest = memoryview(message)
    while rest:
        space = reader.space()
        count = min(piece, len(rest), len(space) if space is not None else len(rest))
        if space is not None and count:
            space[:count] = rest[:count]
            reader.filled(count)
        else:
            reader.take(rest[:piece])
            count = min(piece, len(rest))
        rest = rest[count:]
    got = reader.finish(encoding)
    if not isinstance(got, Inflation):
        return got
    while (text := got.text) is None:
        got.reserve()
        got.settle(got.inflate())
        if budget.taken > BUDGET:
            raise Fault(f"{budget.taken} bytes are taken of {BUDGET}")
    if len(text) > LIMIT:
        raise Fault(f"{len(text)} bytes came out, and {LIMIT} are allowed")
    return text


def _run_step(message: bytes) -> None:
    """Our own reading, which leaves large tensors where they are, is that of protocol buffers."""
    try:
        plain = master_pb2.RunStepRequest.FromString(message)
    except DecodeError:
        plain = None
    try:
        ours = parse_run_step(message)
    except DecodeError:
        return  # stricter than protocol buffers in what none of them writes
    if plain is None:
        raise Fault("a request was taken that does not parse")
    for place, content in ours.contents.items():
        ours.request.feed[place].tensor.tensor_content = bytes(content)
    if ours.request.SerializePartialToString(deterministic=True) != plain.SerializePartialToString(deterministic=True):
        raise Fault("the request means something else than to protocol buffers")


def mutated(data: bytes, chance: random.Random) -> bytes:
    how, content = data[:1] or b"\0", data[1:]
    if chance.random() < 0.2:
        return bytes((chance.randrange(128),)) + content
    if how[0] & 16 and not how[0] & 96 and chance.random() < 0.6:
        request = parsed(master_pb2.RunStepRequest, content)
        message_mutated(request, chance)
        return how + request.SerializePartialToString()
    return how + changed_bytes(content, chance)


def seeds() -> Iterator[bytes]:
    request = master_pb2.RunStepRequest(session_handle="s", fetch=["a:0"], target=["b"])
    request.feed.add(name="x").tensor.CopyFrom(tensor_util.tensor_to_proto(np.arange(3.0)))
    small = request.SerializeToString()
    request.feed.add(name="y").tensor.CopyFrom(tensor_util.tensor_to_proto(np.zeros(17_000, np.uint8)))
    request.feed.add(name="z").tensor.CopyFrom(tensor_util.tensor_to_proto(np.ones(8500, np.uint16)))
    for kind in range(4):
        for piece in (0, 2, 3):
            yield bytes((piece | kind << 2 | 16,)) + small
            yield bytes((piece | kind << 2,)) + _framed(small, kind)
        yield bytes((3 | kind << 2 | 16,)) + request.SerializeToString()
        yield bytes((3 | kind << 2 | 16 | 96,)) + bytes(4096)
    yield bytes((3 | 1 << 2,)) + _framed(bytes(4 << 20), 1)
