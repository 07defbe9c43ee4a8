"""Takes the message of a unary call out of the bytes of DATA frames: a flag, four bytes of length, the message. No I/O.

A large message is received where it stays: its memory is asked for when its length is known, and its bytes go there
straight from the socket (`space`, `filled`). Used by calls.py. Source: gRPC's PROTOCOL-HTTP2.md.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from tenfold_core.errors import INTERNAL, RESOURCE_EXHAUSTED, UNIMPLEMENTED

from .handler import Failure

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from .handler import Buffer

PREFIX_BYTES = 5
#: Only so much is taken for a message before its bytes have come.
_AT_FIRST = 64 << 20
#: What any kernel asks of an array's address.
_ALIGNMENT = 64
#: How compressed messages can be read, as zlib's window bits.
ENCODINGS = {b"gzip": 31, b"deflate": 15}
ACCEPTED = b"identity, deflate, gzip"
#: Bytes inflated at a time, between two looks at the budget; and of the compressed message given to zlib at a time.
_PORTION, _SLICE = 1 << 20, 256 << 10


class Refused(Exception):
    """The call ends with this failure, whatever else comes."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.failure = Failure(code, text)


class Budget:
    """Bytes that all requests of a server may take together."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0

    def take(self, count: int) -> None:
        """Raises Refused."""
        if self.taken + count > self.limit:
            raise Refused(RESOURCE_EXHAUSTED, f"Requests take {self.limit} bytes, the server's limit.")
        self.taken += count

    def give(self, count: int) -> None:
        self.taken -= count


class MessageReader:
    """One message. All methods raise Refused; then, and after `finish`, only `close` may follow."""

    __slots__ = (
        "_allocate", "_array", "_budget", "_filled", "_flag", "_length", "_limit", "_message", "_prefix", "_view",
        "aligned",
    )  # fmt: skip

    def __init__(self, limit: int, budget: Budget, allocate: Callable[[int], np.ndarray[Any, Any]]) -> None:
        """`allocate` gives memory for a large message."""
        #: Has the byte at `aligned(the beginning of a large message)` put where the memory is aligned.
        self.aligned: Callable[[memoryview], int] | None = None
        self._limit, self._budget, self._allocate = limit, budget, allocate
        self._prefix = b""
        self._flag = 0
        #: -1 while it is not known.
        self._length = -1
        #: Bytes of the message that have come; all that `_budget` knows of.
        self._filled = 0
        #: Where they are, until `_message` is there.
        self._array: Any = None
        self._view: memoryview | None = None
        self._message: Buffer | None = None

    def take(self, data: memoryview) -> None:
        """Bytes that came; they are copied."""
        if self._length < 0 and not self._prefix and len(data) >= PREFIX_BYTES:
            length = int.from_bytes(data[1:PREFIX_BYTES], "big")
            if len(data) == length + PREFIX_BYTES and length <= self._limit:
                # the common case: one frame has it all
                self._budget.take(length)
                self._flag, self._length, self._filled = data[0], length, length
                self._message = bytes(data[PREFIX_BYTES:])
                return
        while len(data):
            if self._length < 0:
                need = PREFIX_BYTES - len(self._prefix)
                self._prefix += data[:need]
                data = data[need:]
                if len(self._prefix) == PREFIX_BYTES:
                    self._begin(data)
                continue
            space = self.space()
            if space is None:
                raise Refused(INTERNAL, "More than one message was sent in a unary call.")
            count = min(len(space), len(data))
            space[:count] = data[:count]
            self.filled(count)
            data = data[count:]

    def space(self) -> memoryview | None:
        """Where the next bytes go; None where they have to go through `take`."""
        return None if self._view is None else self._view[self._filled :]

    def filled(self, count: int) -> None:
        """So many bytes were written to `space`."""
        self._budget.take(count)
        self._filled += count
        assert self._view is not None
        if self._filled == self._length:
            self._message, self._array, self._view = self._view, None, None
        elif self._filled == len(self._view):
            whole = self._new(self._length, 0)
            whole[: self._filled] = self._array
            self._use(whole)

    def finish(self, encoding: bytes) -> Buffer | Inflation:
        """The message, once all has come; where it is compressed, what gets it out."""
        message = self._message
        if message is None:
            if not self._prefix:
                raise Refused(UNIMPLEMENTED, "A unary call without a message.")
            raise Refused(INTERNAL, "The request ended inside its message.")
        if not self._flag:
            return message
        bits = ENCODINGS.get(encoding)
        if self._flag != 1 or bits is None:
            raise Refused(INTERNAL, f"A message with flag {self._flag} in the encoding {encoding.decode('latin-1')!r}.")
        return Inflation(memoryview(message), bits, self._limit, self._charge)

    def close(self) -> None:
        """Gives back what was taken. Twice is no error."""
        self._budget.give(self._filled)
        self._filled = 0
        self._array = self._view = self._message = None

    def _begin(self, first: memoryview) -> None:
        """The length is known, and some of the first bytes."""
        self._flag, self._length = self._prefix[0], int.from_bytes(self._prefix[1:], "big")
        if self._length > self._limit:
            raise Refused(RESOURCE_EXHAUSTED, f"Received message larger than max ({self._length} vs. {self._limit}).")
        if self._length:
            aligned = self.aligned(first) if self.aligned is not None and self._length > len(first) else 0
            self._use(self._new(min(self._length, _AT_FIRST), -aligned % _ALIGNMENT))
        else:
            self._message = b""

    def _new(self, size: int, shift: int) -> np.ndarray[Any, Any]:
        """Memory that begins `shift` bytes after an aligned address."""
        try:
            array = self._allocate(size + 2 * _ALIGNMENT)
            begin = (shift - array.ctypes.data) % _ALIGNMENT
            return array[begin : begin + size]
        except MemoryError:
            raise Refused(RESOURCE_EXHAUSTED, f"There is no memory for a message of {self._length} bytes.") from None

    def _use(self, array: np.ndarray[Any, Any]) -> None:
        self._array, self._view = array, array.data

    def _charge(self, count: int) -> int:
        """Takes up to `count` bytes, as many as the budget leaves (if negative: gives back); how many that were."""
        count = min(count, max(0, self._budget.limit - self._budget.taken))
        self._budget.take(count)
        self._filled += count
        return count


class Inflation:
    """A compressed message on its way. A few bytes can become a thousand times as many, so it is inflated in portions,
    each charged beforehand. `reserve` and `settle` are for the loop's thread, `inflate` between them for any."""

    def __init__(self, message: memoryview, bits: int, limit: int, charge: Callable[[int], int]) -> None:
        self._message, self._limit, self._charge = message, limit, charge
        self._inflater = zlib.decompressobj(bits)
        self._text = bytearray()
        self._tail: Buffer = b""
        self._reserved = 0

    @property
    def text(self) -> memoryview | None:
        """The message, once it is whole."""
        return memoryview(self._text) if self._inflater.eof else None

    def reserve(self) -> None:
        """Takes what the next portion may need from the budget."""
        self._reserved = self._charge(min(_PORTION, self._limit - len(self._text)))

    def inflate(self) -> int:
        """The next portion, one byte more than is reserved at most; its size. Takes milliseconds. Raises Refused."""
        inflater, most, before = self._inflater, self._reserved + 1, len(self._text)
        try:
            while not inflater.eof and (room := most - (len(self._text) - before)) > 0:
                compressed = self._tail or self._message[:_SLICE]
                if not len(compressed):
                    raise Refused(INTERNAL, "The request's compressed message is cut off.")
                if not self._tail:
                    self._message = self._message[_SLICE:]
                self._text += inflater.decompress(compressed, room)
                self._tail = inflater.unconsumed_tail
        except zlib.error as error:
            raise Refused(INTERNAL, f"The request cannot be decompressed: {error}.") from None
        except MemoryError:
            raise Refused(RESOURCE_EXHAUSTED, "There is no memory for the decompressed request.") from None
        return len(self._text) - before

    def settle(self, size: int) -> None:
        """`inflate` made so many bytes. Raises Refused where that is more than the budget leaves or a message takes."""
        if size > self._reserved:
            if len(self._text) > self._limit:
                raise Refused(RESOURCE_EXHAUSTED, f"Received message larger than max (decompressed, {self._limit}).")
            if not self._charge(size - self._reserved):
                raise Refused(RESOURCE_EXHAUSTED, "Requests take all bytes of the server's limit (decompressed).")
        else:
            self._charge(size - self._reserved)
        self._reserved = 0
