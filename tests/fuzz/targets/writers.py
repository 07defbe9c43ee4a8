"""A writer beside a compiled loop: the bytes say which loop, what is written into what it indexes by, and where.

Byte 0 is a case of support/racing.py, byte 1 at which end of their pages its arrays lie; then come numbers that the
writer writes, each a place and a value of eight bytes. The arrays lie between pages that nobody may touch, so a loop
that believes what it has read before ends the process: the input that was tried last did it.
"""

from __future__ import annotations

import functools
import struct
import threading
from typing import TYPE_CHECKING

import numpy as np

from support import racing
from tenfold_kernels.cpu._compiled import compiling

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

_CASES = sorted(racing.CASES)
_WRITE = struct.Struct("<Iq")
#: Calls of the loop for an input, and how often the writer goes through its numbers.
_CALLS, _ROUNDS, _MOST = 3, 40, 16
_VALUES = (0, 1, -1, racing.ROWS - 1, racing.ROWS, 1 << 31, -(1 << 31), 1 << 40, (1 << 63) - 1, -(1 << 63))


@functools.cache
def _race(case: str, at_end: bool) -> racing.Race:
    """With the loop itself, not what stands in for it while it is compiled."""
    mode, compiling.loops.mode = compiling.loops.mode, "blocking"
    try:
        return racing.CASES[case](at_end)
    finally:
        compiling.loops.mode = mode


for _case in _CASES:  # now, not in the time of an input
    _race(_case, True)


def _as_number(value: int, dtype: np.dtype) -> object:
    """Of floats, the number that has these bytes."""
    if dtype.kind == "f":
        return np.frombuffer((value & 0xFFFFFFFF).to_bytes(4, "little"), np.float32)[0]
    bits = 8 * dtype.itemsize
    return ((value + (1 << bits - 1)) & ((1 << bits) - 1)) - (1 << bits - 1)


def one_input(data: bytes) -> None:
    if len(data) < 2 + _WRITE.size:
        return
    race = _race(_CASES[data[0] % len(_CASES)], bool(data[1] & 1))
    flat = race.written
    whole = len(data) - (len(data) - 2) % _WRITE.size
    writes = [(place % flat.size, _as_number(value, flat.dtype)) for place, value in _WRITE.iter_unpack(data[2:whole])][
        :_MOST
    ]
    before = flat.copy()

    def write() -> None:
        for _ in range(_ROUNDS):
            for place, value in writes:
                flat[place] = value
                flat[place] = before[place]

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(_CALLS):
            race.call()
    finally:
        writer.join()
        flat[...] = before


def mutated(data: bytes, chance: random.Random) -> bytes:
    head = data[:2] if len(data) > 2 and chance.random() < 0.7 else bytes(chance.randrange(256) for _ in range(2))
    writes = [data[at : at + _WRITE.size] for at in range(2, len(data) - _WRITE.size + 1, _WRITE.size)]
    made = _WRITE.pack(
        chance.choice((0, racing.N // 2, racing.N - 4, chance.randrange(racing.N))), chance.choice(_VALUES)
    )
    at = chance.randrange(len(writes) + 1)
    return head + b"".join(([*writes[:at], made, *writes[at + chance.randrange(2) :]])[:_MOST])


def seeds() -> Iterator[bytes]:
    for number in range(0, len(_CASES), 4):
        for value in (racing.ROWS, -1, 1 << 29):
            yield bytes((number, value & 1)) + _WRITE.pack(racing.N - 4, value)
