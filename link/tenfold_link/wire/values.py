"""Tensors as they travel over a link: a few bytes of description in the header, large contents in buffers beside it.

Used by both ends: session/link_master.py and tenfold_services/rpc/. One record a tensor, little-endian:

    kind u8 · dtype u8 (DataType number) · rank u8 · 0 u8 · length u32 · dim i64 × rank · content if it is inline

Strings and resource handles have no memory of a fixed form and travel as a TensorProto. Content under `INLINE_BYTES`
stands in the header, because a buffer of its own costs more than copying it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes, errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_protos.tensor_pb2 import TensorProto

#: Contents up to this size are copied into the header.
INLINE_BYTES = 4096
#: Dimensions a tensor may have, as in TensorFlow.
MAX_RANK = 254

#: kinds: what follows the description
_INLINE, _BUFFER, _PROTO, _PROTO_BUFFER, _DEAD = range(5)

_HEADS = tuple(struct.Struct(f"<BBBxI{rank}q") for rank in range(9))
_HEAD = _HEADS[0]
#: Types with memory of a fixed form: number → NumPy type, and back.
_DTYPE_OF = dtypes.FIXED_SIZE
_NUMBER_OF = {dtype: number for number, dtype in _DTYPE_OF.items()}
_DEAD_RECORD = _HEAD.pack(_DEAD, 0, 0, 0)


def pack_dead(parts: list[bytes]) -> None:
    """Appends the record of a dead tensor."""
    parts.append(_DEAD_RECORD)


def pack_value(value: Any, parts: list[bytes], buffers: list[Any], to_proto: Callable[[Any], TensorProto]) -> None:
    """Appends one value's record to `parts` and, if it is large, its memory to `buffers`: not copied, flat, uint8.

    `to_proto` makes the TensorProto of a value without fixed memory. The caller leaves the value unchanged until the
    link has taken the buffers.
    """
    if type(value) is not np.ndarray:
        value = np.asarray(value)
    number = _NUMBER_OF.get(value.dtype)
    if number is None and value.dtype != object:
        value = value.astype(value.dtype.newbyteorder("="))
        number = _NUMBER_OF.get(value.dtype)
    if number is None:
        content = to_proto(value).SerializeToString()
        if len(content) <= INLINE_BYTES:
            parts.append(_HEAD.pack(_PROTO, 0, 0, len(content)))
            parts.append(content)
        else:
            parts.append(_HEAD.pack(_PROTO_BUFFER, 0, 0, 0))
            buffers.append(np.frombuffer(content, np.uint8))
        return
    rank, size = value.ndim, value.nbytes
    head = _HEADS[rank] if rank < len(_HEADS) else struct.Struct(f"<BBBxI{rank}q")
    if size <= INLINE_BYTES:
        parts.append(head.pack(_INLINE, number, rank, size, *value.shape))
        parts.append(value.tobytes())
    else:
        parts.append(head.pack(_BUFFER, number, rank, 0, *value.shape))
        buffers.append(np.ascontiguousarray(value).reshape(-1).view(np.uint8))


class ValueReader:
    """Reads records from a header, in order; contents that are not inline come from `buffers`, in order."""

    __slots__ = ("_buffers", "_from_proto", "_header", "_next", "offset")

    def __init__(
        self, header: bytes | memoryview, offset: int, buffers: Sequence[Any], from_proto: Callable[[bytes], Any]
    ) -> None:
        """`from_proto` gives the value of a serialised TensorProto."""
        self._header = header
        self._buffers = buffers
        self._from_proto = from_proto
        self._next = 0
        #: Where the next record begins.
        self.offset = offset

    def read(self) -> tuple[Any, bool]:
        """(value, is_dead) of the next record.

        A value that was inline is an array of its own; one from a buffer is that memory itself, read-only if the
        buffer is. Raises InvalidArgumentError for a record that is cut off or does not fit its content.
        """
        begin = self.offset
        try:
            return self._read()
        except (struct.error, IndexError, TypeError, ValueError, OverflowError) as error:
            raise errors.InvalidArgumentError(
                None, None, f"A link's frame holds a malformed tensor at byte {begin}: {error}"
            ) from error

    def _read(self) -> tuple[Any, bool]:
        header, offset = self._header, self.offset
        kind, number, rank, length = _HEAD.unpack_from(header, offset)
        if kind == _DEAD:
            self.offset = offset + _HEAD.size
            return None, True
        if kind == _PROTO:
            begin = offset + _HEAD.size
            self.offset = begin + length
            content = bytes(header[begin : self.offset])
            if len(content) != length:
                raise ValueError(f"{length} bytes of content, but only {len(content)} are there")
            return self._from_proto(content), False
        if kind == _PROTO_BUFFER:
            self.offset = offset + _HEAD.size
            return self._from_proto(bytes(self._take())), False
        head = _HEADS[rank] if rank < len(_HEADS) else struct.Struct(f"<BBBxI{rank}q")
        shape = head.unpack_from(header, offset)[4:]
        dtype = _DTYPE_OF.get(number)
        # NumPy refuses negative dimensions, but takes a single -1 for "as many as there are"
        if dtype is None or rank > MAX_RANK:
            raise ValueError(f"data type {number}, shape {list(shape)}")
        begin = offset + head.size
        if kind == _INLINE:
            self.offset = begin + length
            value: Any = np.ndarray(shape, dtype, header, begin)
            if value.nbytes != length or value.shape != shape:
                raise ValueError(f"{length} bytes of content for shape {list(shape)} of {dtype}")
            # a copy: aligned, and does not keep the frame
            return value.copy(), False
        if kind != _BUFFER:
            raise ValueError(f"a record of kind {kind}")
        self.offset = begin
        memory = self._take()
        value = np.ndarray(shape, dtype, memory)
        if value.nbytes != len(memory) or value.shape != shape:
            raise ValueError(f"{len(memory)} bytes of content for shape {list(shape)} of {dtype}")
        return value, False

    def _take(self) -> Any:
        found = self._buffers[self._next]
        self._next += 1
        return found
