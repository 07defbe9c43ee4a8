"""HPACK by the hpack package, and a memory of what gRPC's clients repeat. Used by connection.py. Source: RFC 7541.

Nearly all of a call's fields are references to the table, and come first. Such a run of references means the same
fields until the table changes, so its fields are remembered by its bytes, as are those of the rest, and those of a
block whose rest came before; metadata.py keeps there what it has made of them, too. What we send refers to the static
table or is literal, so the encoder keeps no state.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

import hpack

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Name and value.
Field: TypeAlias = tuple[bytes, bytes]

#: What an entry takes beside its text, in the table and in the size of a list.
OVERHEAD = 32
#: Runs of fields remembered, and bytes of the longest: a token and a deadline are within them.
_RUNS, _LONGEST_RUN = 64, 256
#: The references that a block begins with; each one byte.
_LEADING_RUN = re.compile(rb"[\x81-\xfe]*")


class HpackError(ValueError):
    """The block cannot be decoded; nor can those that come after it."""


class FieldRun:
    """The fields of a block, or of a part of it: the references that it begins with, or the rest."""

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
        # the package cannot go on after a list that is too large for it: ours are bounded by the bytes of their blocks
        self._decoder = hpack.Decoder(max_header_list_size=sys.maxsize)
        self._decoder.header_table_size = self._decoder.max_allowed_table_size = table_size
        self._list_size = list_size
        #: True to the present table.
        self._runs: dict[bytes, FieldRun] = {}

    def decode(self, block: bytes) -> tuple[FieldRun, list[Field] | None]:
        """The leading run, or all, and the fields after it; None instead of them when the list is too large.

        Raises HpackError.
        """
        whole = self._runs.get(block)
        if whole is not None:
            return whole, [] if whole.size <= self._list_size else None
        match = _LEADING_RUN.match(block)
        at = match.end() if match is not None else 0
        run = self._read(block[:at]) if at else _NO_RUN
        if at == len(block):
            return run, [] if run.size <= self._list_size else None
        if at and block[at] & 0xE0 == 0x20:
            raise HpackError("a change of the table's size after a field")
        part = block[at:]
        came_before = part in self._runs
        rest = self._read(part)
        if came_before and len(block) <= _LONGEST_RUN and len(self._runs) < _RUNS:
            self._runs[block] = FieldRun((*run.fields, *rest.fields))
        return run, list(rest.fields) if run.size + rest.size <= self._list_size else None

    def _read(self, part: bytes) -> FieldRun:
        """A part of a block: remembered, if it is short and changes nothing."""
        known = self._runs.get(part)
        if known is not None:
            return known
        table = self._decoder.header_table.dynamic_entries
        before = len(table), table[0] if table else None
        try:
            found = self._decoder.decode(part, raw=True)
        except hpack.HPACKError as error:
            raise HpackError(str(error)) from None
        run = FieldRun(tuple([(bytes(name), bytes(value)) for name, value in found]))
        if before[0] != len(table) or (table and before[1] is not table[0]) or part[0] & 0xE0 == 0x20:
            self._runs.clear()
        elif len(part) <= _LONGEST_RUN:
            if len(self._runs) >= _RUNS:
                self._runs.clear()
            self._runs[part] = run
        return run


_ENCODER = hpack.Encoder()


def encode(fields: Iterable[Field]) -> bytes:
    """A block: references to the static table, else literals that are not put into the peer's table."""
    return _ENCODER.encode([(name, value, True) for name, value in fields], huffman=False)
