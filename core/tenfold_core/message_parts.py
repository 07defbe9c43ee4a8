"""Makes a large protocol buffer message portion by portion, and counts what it holds before it is made.

A message of 32 MiB can hold 16 million empty strings, which take seconds and half a gigabyte to make, in one call that
lets no other thread run. What repeated fields of one message mean is that its parts may be joined: so here the fields
are gone through, also those of large messages within, and merged some hundred KiB at a time. For any message; used by
graph_wire.py and a task's services. Source: protobuf's encoding.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.protobuf.message import Message

M = TypeVar("M", bound="Message")

#: Bytes merged at a time.
PORTION = 256 << 10
#: Fields, and elements of packed ones, that a message without a graph may have.
MOST = 4_000_000
#: As protocol buffers themselves bound it.
_DEPTH = 100
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
#: Bytes of one element of a packed field; of the others it differs.
_FIXED = {
    **dict.fromkeys((FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FIXED64, FieldDescriptor.TYPE_SFIXED64), 8),
    **dict.fromkeys((FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_FIXED32, FieldDescriptor.TYPE_SFIXED32), 4),
}
_WHOLE = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)


class TooLargeError(ValueError):
    """The message has more than it may have; the text says of what."""


def parse(cls: type[M], data: bytes | bytearray | memoryview) -> M:
    """The message in `data`, of MOST parts. Takes as long as it takes, and lets other threads run. Raises DecodeError,
    TooLargeError."""
    if len(data) <= PORTION:
        return cls.FromString(bytes(data))
    message = cls()
    Parts().merge(message, memoryview(data).cast("B"))
    return message


class Parts:
    """Merges into messages, and counts what they have together. Any thread, one at a time; lets others run."""

    def __init__(self, most: int | None = None) -> None:
        """`most` is how many fields and elements there may be, by default MOST."""
        self._most = self._left = MOST if most is None else most

    def merge(self, into: Message, view: memoryview, depth: int = 0) -> None:
        """`into.MergeFromString(view)`. Raises DecodeError, TooLargeError."""
        if len(view) <= PORTION:
            return _merge(into, view)
        if depth > _DEPTH:
            raise DecodeError("messages within messages, too deep")
        known, start = into.DESCRIPTOR.fields_by_number, 0
        for number, key, begin, end in fields(view, 0, len(view)):
            self._count(1)
            if end - begin > PORTION and (field := known.get(number)) is not None and field.type not in _WHOLE:
                _merge(into, view[start:key])
                self._large(into, field, view, key, begin, end, depth)
                start = end
            elif end - start >= PORTION:
                _merge(into, view[start:end])
                start = end
        _merge(into, view[start:])

    def _large(self, into: Any, field: Any, view: memoryview, key: int, begin: int, end: int, depth: int) -> None:
        """One field of more than a portion: a message, or a packed list."""
        value = view[begin:end]
        if field.message_type is None:
            self._packed(into, field, value)
        elif not field.message_type.GetOptions().map_entry:
            its = getattr(into, field.name)
            self.merge(its.add() if field.is_repeated else its, value, depth + 1)
        elif field.message_type.fields_by_number[2].message_type is not None:
            self._entry(getattr(into, field.name), value, depth)
        else:
            _merge(into, view[key:end])

    def _entry(self, its: Any, entry: memoryview, depth: int) -> None:
        """One entry of a map of texts to messages. The last of one key counts."""
        name, values = "", []
        for number, _, begin, end in fields(entry, 0, len(entry)):
            if number == 1:
                try:
                    name = str(entry[begin:end], "utf-8")
                except UnicodeDecodeError as error:
                    raise DecodeError(f"a key that is not text: {error}") from None
            elif number == 2:
                values.append(entry[begin:end])
        if name in its:
            del its[name]
        for value in values:
            self.merge(its[name], value, depth + 1)

    def _packed(self, into: Message, field: Any, values: memoryview) -> None:
        data, size = np.frombuffer(values, np.uint8), _FIXED.get(field.type, 0)
        self._count(len(data) // size if size else int(np.count_nonzero(data < 0x80)))
        tag, at = _varint_bytes(field.number << 3 | _BYTES), 0
        step = max(PORTION - PORTION % 8, 8)  # whole elements
        while at < len(data):
            end = min(at + step, len(data))
            while not size and end < len(data) and data[end - 1] >= 0x80:
                end += 1  # to the end of a number
            piece = values[at:end]
            into.MergeFromString(tag + _varint_bytes(len(piece)) + bytes(piece))
            time.sleep(0)
            at = end

    def _count(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise TooLargeError(f"the message has more than {self._most} fields and elements of lists")


def _merge(into: Message, portion: memoryview) -> None:
    if len(portion):
        into.MergeFromString(bytes(portion))
        time.sleep(0)  # others have their turn


def fields(view: memoryview, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Of each field: its number, and where its key, its value and what follows begin. Raises DecodeError."""
    while at < end:
        key = at
        tag, at = _varint(view, at, end)
        kind = tag & 7
        if kind == _BYTES:
            size, at = _varint(view, at, end)
        elif kind == _VARINT:
            size = _varint(view, at, end)[1] - at
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise DecodeError(f"a field of kind {kind}")
        if size > end - at:
            raise DecodeError("a field that goes on behind its message")
        yield tag >> 3, key, at, at + size
        at += size


def _varint(view: memoryview, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise DecodeError("a number that is cut off")


def _varint_bytes(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
