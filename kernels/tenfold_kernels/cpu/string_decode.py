"""Strings unpacked: DecodeCompressed and DecodeJSONExample. Outputs are fresh.

Follows decode_compressed_op.cc; a JSON example goes through protobuf's own parser.
"""

from __future__ import annotations

import zlib

from tenfold_core import errors
from tenfold_core.memory_limits import tensor_limit
from tenfold_kernels.arrays import Array, invalid, text_attr
from tenfold_kernels.cpu._strings import Room, elementwise
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_protos import example_pb2

#: Bytes that one packed string may unpack to: TensorFlow's limit. Less, where a tensor may not take so much.
_MAX_UNPACKED = (1 << 31) - 1


@kernel("DecodeCompressed")
def build_decode_compressed(node: KernelNode) -> Compute:
    """Unpacks ZLIB and GZIP strings."""
    kind = text_attr(node, "compression_type")
    if kind not in ("", "ZLIB", "GZIP", "ZSTD"):
        raise invalid("Only ZLIB, ZSTD, GZIP or NONE are supported compressions")
    if kind == "ZSTD":
        raise errors.unimplemented("ZSTD strings are not unpacked here; ZLIB and GZIP are")
    if not kind:
        return lambda x: x.copy()
    window = 31 if kind == "GZIP" else 15

    def one(value: bytes, room: Room) -> bytes:
        unpacker, most = zlib.decompressobj(window), min(_MAX_UNPACKED, tensor_limit())
        try:
            data = unpacker.decompress(value, most)
        except zlib.error as error:
            raise errors.data_loss(f"inflate() failed: {error}") from None
        if unpacker.unconsumed_tail:
            raise errors.resource_exhausted(
                f"a packed string holds more than the {most} bytes that a tensor takes here"
            )
        room.take(len(data))
        return data

    def compute(x: Array) -> Array:
        room = Room(node.op)
        return elementwise(x, lambda value: one(value, room))

    return compute


@kernel("DecodeJSONExample")
def build_decode_json_example(node: KernelNode) -> Compute:
    """Examples in protobuf's JSON form to their serialized form."""

    def one(value: bytes) -> bytes:
        from google.protobuf import json_format

        example = example_pb2.Example()
        try:
            json_format.Parse(value, example)
        except (json_format.ParseError, UnicodeDecodeError) as error:
            raise invalid(f"Error while parsing JSON: {error}") from None
        return example.SerializeToString()

    return lambda x: elementwise(x, one)
