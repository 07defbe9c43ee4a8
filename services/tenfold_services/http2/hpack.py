"""HPACK: a decoder with its dynamic table, and an encoder that keeps no state. Source: RFC 7541. Used by connection.py.

gRPC's clients repeat themselves: nearly all of a call's fields are references to the table, and come first. Such a run
of references means the same fields until the table changes, so its fields are remembered by its bytes; metadata.py
keeps there what it has made of them, too. What we send refers to the static table or is literal.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from . import huffman

#: Name and value.
Field: TypeAlias = tuple[bytes, bytes]

#: Appendix A: a name and its values, as many entries as values; index 1 is the first.
_STATIC = """
:authority=
:method=GET;POST
:path=/;/index.html
:scheme=http;https
:status=200;204;206;304;400;404;500
accept-charset=
accept-encoding=gzip, deflate
accept-language= accept-ranges= accept= access-control-allow-origin= age= allow= authorization= cache-control=
content-disposition= content-encoding= content-language= content-length= content-location= content-range= content-type=
cookie= date= etag= expect= expires= from= host= if-match= if-modified-since= if-none-match= if-range=
if-unmodified-since= last-modified= link= location= max-forwards= proxy-authenticate= proxy-authorization= range=
referer= refresh= retry-after= server= set-cookie= strict-transport-security= transfer-encoding= user-agent= vary= via=
www-authenticate=
"""
STATIC_TABLE: tuple[Field, ...] = tuple(
    (name.encode(), value.encode())
    for name, values in re.findall(r"([:a-z-]+)=((?:gzip, deflate|[^ \n])*)", _STATIC)
    for value in values.split(";")
)

#: What an entry takes beside its text, in the table and in the size of a list.
OVERHEAD = 32
#: Runs of references remembered.
_RUNS = 64
#: The references that a block begins with; each one byte.
_LEADING_RUN = re.compile(rb"[\x81-\xfe]*")


class HpackError(ValueError):
    """The block cannot be decoded; nor can those that come after it."""


class FieldRun:
    """The fields that a block begins with, all of them references."""

    __slots__ = ("fields", "meaning", "size")

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self.fields = fields
        self.size = sum(len(name) + len(value) + OVERHEAD for name, value in fields)
        #: What the layer above has made of the fields.
        self.meaning: Any = None


_NO_RUN = FieldRun(())


class Decoder:
    """Decodes blocks in the order in which they come. After an HpackError it is of no more use."""

    def __init__(self, table_size: int = 4096, list_size: int = 16 << 10) -> None:
        """`table_size` is what we announced; lists beyond `list_size` bytes are not kept."""
        #: Oldest first: index 62 is the last one.
        self._table: list[Field] = []
        #: Bytes of the table, at most _capacity, which the peer may lower and raise up to _allowed.
        self._size = 0
        self._capacity = self._allowed = table_size
        self._list_size = list_size
        #: True to the present table.
        self._runs: dict[bytes, FieldRun] = {}

    def decode(self, block: bytes) -> tuple[FieldRun, list[Field] | None]:
        """The leading run, and the fields after it; None instead of them when the list is too large.

        Raises HpackError.
        """
        match = _LEADING_RUN.match(block)
        at = match.end() if match is not None else 0
        if not at:
            run = _NO_RUN
        else:
            known = self._runs.get(block[:at])
            run = known if known is not None else self._new_run(block[:at])
            if at == len(block):
                return run, [] if run.size <= self._list_size else None
        return run, self._rest(block, at, run.size)

    def _new_run(self, references: bytes) -> FieldRun:
        run = FieldRun(tuple(self._entry(byte & 0x7F) for byte in references))
        if len(references) <= _RUNS:
            if len(self._runs) >= _RUNS:
                self._runs.clear()
            self._runs[references] = run
        return run

    def _rest(self, block: bytes, at: int, size: int) -> list[Field] | None:
        fields: list[Field] = []
        end, limit = len(block), self._list_size
        may_resize = at == 0
        while at < end:
            first = block[at]
            if first & 0x80:
                index, at = _integer(block, at, 0x7F)
                name, value = self._entry(index)
            elif first & 0xE0 == 0x20:
                if not may_resize:
                    raise HpackError("a change of the table's size after a field")
                capacity, at = _integer(block, at, 0x1F)
                self._resize(capacity)
                continue
            else:
                indexed = first & 0x40
                index, at = _integer(block, at, 0x3F if indexed else 0x0F)
                if index:
                    name = self._entry(index)[0]
                else:
                    name, at = _string(block, at)
                value, at = _string(block, at)
                if indexed:
                    self._add(name, value)
            may_resize = False
            size += len(name) + len(value) + OVERHEAD
            if size <= limit:
                fields.append((name, value))
        return fields if size <= limit else None

    def _entry(self, index: int) -> Field:
        if index > 61:
            if index - 61 > len(self._table):
                raise HpackError(f"index {index} of a table of {61 + len(self._table)}")
            return self._table[61 - index]
        if not index:
            raise HpackError("index 0")
        return STATIC_TABLE[index - 1]

    def _resize(self, capacity: int) -> None:
        if capacity > self._allowed:
            raise HpackError(f"a table of {capacity} bytes; {self._allowed} is the limit")
        self._capacity = capacity
        self._runs.clear()
        self._evict(capacity)

    def _add(self, name: bytes, value: bytes) -> None:
        size = len(name) + len(value) + OVERHEAD
        self._runs.clear()
        self._evict(self._capacity - size)
        if size <= self._capacity:
            self._table.append((name, value))
            self._size += size

    def _evict(self, room: int) -> None:
        """Forgets the oldest until the table takes at most `room` bytes; a negative number empties it."""
        gone = 0
        while gone < len(self._table) and self._size > room:
            name, value = self._table[gone]
            self._size -= len(name) + len(value) + OVERHEAD
            gone += 1
        del self._table[:gone]


def _integer(block: bytes, at: int, mask: int) -> tuple[int, int]:
    """(the integer at `at`, where it ends). Five bytes at most."""
    value = block[at] & mask
    at += 1
    if value < mask:
        return value, at
    for shift in (0, 7, 14, 21):
        if at >= len(block):
            raise HpackError("an integer that does not end")
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise HpackError("an integer of more than 28 bits")


def _string(block: bytes, at: int) -> tuple[bytes, int]:
    if at >= len(block):
        raise HpackError("a field that does not end")
    coded = block[at] & 0x80
    length, at = _integer(block, at, 0x7F)
    text = block[at : at + length]
    if len(text) < length:
        raise HpackError("a string that does not end")
    if coded:
        try:
            text = huffman.decode(text)
        except huffman.HuffmanError as error:
            raise HpackError(str(error)) from None
    return text, at + length


# -- encoding ----------------------------------------------------------------------------------------------------------

_STATIC_FIELDS = {field: index for index, field in reversed(list(enumerate(STATIC_TABLE, 1)))}
_STATIC_NAMES = {name: index for index, (name, _) in reversed(list(enumerate(STATIC_TABLE, 1)))}


def encode_integer(value: int, mask: int, first: int) -> bytes:
    """`value` in a prefix of `mask`'s bits, the other bits of the first byte being `first`."""
    if value < mask:
        return bytes((first | value,))
    out = bytearray((first | mask,))
    value -= mask
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_field(name: bytes, value: bytes) -> bytes:
    """A field: a reference to the static table, else a literal that is not put into the peer's table."""
    index = _STATIC_FIELDS.get((name, value))
    if index is not None:
        return encode_integer(index, 0x7F, 0x80)
    index = _STATIC_NAMES.get(name, 0)
    begin = encode_integer(index, 0x0F, 0) if index else b"\0" + encode_integer(len(name), 0x7F, 0) + name
    return begin + encode_integer(len(value), 0x7F, 0) + value


def encode(fields: tuple[Field, ...] | list[Field]) -> bytes:
    """A block."""
    return b"".join([encode_field(name, value) for name, value in fields])
