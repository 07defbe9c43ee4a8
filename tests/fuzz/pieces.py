"""Inputs that are made of pieces: the fuzzer changes, doubles, swaps and leaves out whole ones, and the target puts
them together with the lengths and checksums that a reader wants. So what lies behind a checksum is reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fuzz.messages import changed_bytes

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

#: Bytes of a length.
_SIZE = 3


def join(pieces: Iterable[bytes]) -> bytes:
    """The pieces, each behind its length."""
    return b"".join(len(piece).to_bytes(_SIZE, "little") + piece for piece in pieces)


def split(data: bytes) -> list[bytes]:
    """What `join` has joined; the last piece may be shorter than it says."""
    found, at = [], 0
    while at + _SIZE <= len(data):
        end = at + _SIZE + int.from_bytes(data[at : at + _SIZE], "little")
        found.append(data[at + _SIZE : end])
        at = end
    return found


def mutated(
    pieces: list[bytes],
    chance: random.Random,
    change: Callable[[bytes, random.Random], bytes] = changed_bytes,
) -> list[bytes]:
    """Other pieces: one is changed by `change`, doubled, put elsewhere, or left out."""
    if not pieces:
        return [change(b"", chance)]
    found, at = list(pieces), chance.randrange(len(pieces))
    what = chance.random()
    if what < 0.6:
        found[at] = change(found[at], chance)
    elif what < 0.75:
        found.insert(chance.randrange(len(found) + 1), found[at])
    elif what < 0.9:
        found.insert(chance.randrange(len(found)), found.pop(at))
    else:
        del found[at]
    return found
