"""Any number in the place of one that an op takes: the bytes say which op, which input or attribute, and the number.

Bytes 0 and 1 are the op, 2 one of its calls that work, 3 which number of it is another one; eight bytes are that, as an
integer or a double. support/huge_numbers.py makes the calls; a tensor may take 8 MiB.
"""

from __future__ import annotations

import functools
import random
import struct
import sys
from typing import TYPE_CHECKING

from fuzz.harness import ROOT, refusals
from tenfold_core import memory_limits

sys.path.append(str(ROOT))  # what it draws calls from is a part of tests/interop
from support import huge_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPS = huge_numbers.names()
_INPUT = struct.Struct("<HBB8s")
memory_limits.limit_tensor(huge_numbers.TENSOR)


@functools.cache
def _calls(op: str) -> list[huge_numbers.Call]:
    return huge_numbers.good_calls(op, random.Random(op), 2)


def one_input(data: bytes) -> None:
    if len(data) < _INPUT.size:
        return
    op, which, place, number = _INPUT.unpack(data[: _INPUT.size])
    calls = _calls(_OPS[op % len(_OPS)])
    if not calls:
        return
    call = calls[which % len(calls)]
    places = list(call.steered())
    if not places:
        return
    kind, where = places[place % len(places)]
    form = "<d" if kind in ("f", "attr float") else "<q"
    changed = call.changed(kind, where, struct.unpack(form, number)[0])
    if changed is not None:
        with refusals():
            changed()


def mutated(data: bytes, chance: random.Random) -> bytes:
    head, number = data[:4].ljust(4, b"\0"), data[4:12].ljust(8, b"\0")
    if chance.random() < 0.6:
        head = bytes((chance.randrange(256), chance.randrange(4), chance.randrange(2), chance.randrange(24)))
    if chance.random() < 0.5:
        return head + struct.pack("<q", chance.choice(huge_numbers.INTEGERS) + chance.choice((0, 0, 1, -1)) % 2)
    return head + struct.pack("<d", chance.choice(huge_numbers.FLOATS)) if chance.random() < 0.5 else head + number


def seeds() -> Iterator[bytes]:
    for op in ("Fill", "OneHot", "Range", "AsString", "Conv2D", "ReverseSequence", "Pad"):
        yield _INPUT.pack(_OPS.index(op), 0, 0, struct.pack("<q", 1))
        yield _INPUT.pack(_OPS.index(op), 1, 1, struct.pack("<q", 2))
