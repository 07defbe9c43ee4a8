"""HPACK: pieces are the blocks of one connection. Our decoder, which remembers runs of references, says what the hpack
package says without a memory; and what the fields mean to gRPC is asked, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import hpack

from fuzz import pieces
from fuzz.harness import Fault
from tenfold_services.http2 import metadata
from tenfold_services.http2.frame_types import StreamFault
from tenfold_services.http2.hpack import OVERHEAD, Decoder, HpackError, encode

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

_LIST_BYTES = 4096


def one_input(data: bytes) -> None:
    ours, plain = Decoder(list_size=_LIST_BYTES), hpack.Decoder(max_header_list_size=1 << 62)
    plain.max_allowed_table_size = 4096
    for block in pieces.split(data):
        try:
            run, rest = ours.decode(block)
        except HpackError as error:
            if "after a field" not in str(error):
                _must_fail(plain, block)
            return
        try:
            expected = [(bytes(name), bytes(value)) for name, value in plain.decode(block, raw=True)]
        except hpack.HPACKError as error:
            raise Fault(f"{block!r} was taken; it is none: {error}") from None
        size = sum(len(name) + len(value) + OVERHEAD for name, value in expected)
        if (rest is None) != (size > _LIST_BYTES):
            raise Fault(f"a list of {size} bytes, and {_LIST_BYTES} are allowed")
        if rest is None:
            continue
        if [*run.fields, *rest] != expected:
            raise Fault(f"{block!r} gives {[*run.fields, *rest]}, it should be {expected}")
        try:
            metadata.readable(metadata.head_of(run, rest).metadata)
        except StreamFault:
            continue


def _must_fail(plain: hpack.Decoder, block: bytes) -> None:
    try:
        plain.decode(block, raw=True)
    except hpack.HPACKError:
        return
    raise Fault(f"{block!r} was refused")


def mutated(data: bytes, chance: random.Random) -> bytes:
    return pieces.join(pieces.mutated(pieces.split(data), chance))


def seeds() -> Iterator[bytes]:
    common = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/tensorflow.MasterService/RunStep")]
    common += [(b"te", b"trailers"), (b"content-type", b"application/grpc"), (b"grpc-timeout", b"10S")]
    client = hpack.Encoder()
    blocks = [client.encode([*common, (b"x-request", str(number).encode())]) for number in range(3)]
    yield pieces.join(blocks)
    blocks.append(client.encode([*common, (b"authorization", b"Bearer t"), (b"trace-bin", b"AAEC,!")], huffman=False))
    client.header_table_size = 128
    yield pieces.join([*blocks, client.encode(common)])
    yield pieces.join([encode(common), b"\x20" + encode(common), encode([(b"a" * 60, b"b" * 5000)])])
