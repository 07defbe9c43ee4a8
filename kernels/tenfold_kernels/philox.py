"""Philox 4x32-10 as TensorFlow counts it, so that the same seeds give the same numbers.

A `Philox` is a position in a stream of 128-bit blocks: the key is `seed`, the upper half of the counter `seed2`.
`blocks` gives four uint32 a block, vectorised; `single` gives them one at a time. Used by cpu/random*.py and by
the resources that shuffle. Follows philox_random.h, random_distributions.h and guarded_philox_random.cc.
"""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Iterator

Array = np.ndarray[Any, np.dtype[Any]]

_MASK32 = (1 << 32) - 1
_MASK64 = (1 << 64) - 1
_MASK128 = (1 << 128) - 1
_MULTIPLIER_A, _MULTIPLIER_B = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_A, _WEYL_B = 0x9E3779B9, 0xBB67AE85
_LOW32, _SHIFT32 = np.uint64(_MASK32), np.uint64(32)

#: Blocks that are made at a time.
PIECE = 1 << 14
#: Blocks that Python's own numbers make sooner than NumPy.
_FEW = 4
#: What machine code draws (philox_code.py), four of each a block: words; float32 in [0, 1); float32 normals.
WORDS, UNIFORM, NORMAL = "words", "uniform", "normal"
#: Blocks that one turn of its loops makes.
LANES = 8


def _signed(word: int) -> int:
    """The lower 64 bits, as an int64 has them."""
    word &= _MASK64
    return word - (1 << 64) if word >> 63 else word


class Philox:
    """A reading position. `blocks` does not move it; `single` does."""

    def __init__(self, key: int, counter: int) -> None:
        self.key = key
        #: 128 bits, the index of the next block.
        self.counter = counter

    @classmethod
    def of_signed(cls, key: int, low: int, high: int) -> Philox:
        """From the words that compiled loops take: signed int64, `low` and `high` the halves of the counter."""
        return cls(key & _MASK64, (high & _MASK64) << 64 | low & _MASK64)

    def as_signed(self) -> tuple[int, int, int]:
        """(key, low, high), as compiled loops take them."""
        low, high = self.counter, self.counter >> 64
        return _signed(self.key), _signed(low), _signed(high)

    def behind(self, blocks: int) -> Philox:
        """The position so many blocks further on."""
        return Philox(self.key, (self.counter + blocks) & _MASK128)

    def blocks(self, offsets: Array) -> Array:
        """The blocks at `offsets` (uint64 [G]) from here: uint32 [G, 4]."""
        count = offsets.size
        if count <= _FEW:
            return self._few(offsets)
        if count <= PIECE:
            return self._blocks(offsets)
        # Piece by piece, what lies between stays in the cache, and takes no memory to speak of.
        out = np.empty((count, 4), np.uint32)
        for at in range(0, count, PIECE):
            out[at : at + PIECE] = self._blocks(offsets[at : at + PIECE])
        return out

    def _few(self, offsets: Array) -> Array:
        """The same for a block or two: NumPy takes ten times as long for so few, and a step draws many scalars."""
        rows = []
        for offset in offsets.tolist():
            counter = (self.counter + offset) & _MASK128
            c0, c1, c2, c3 = (counter >> shift & _MASK32 for shift in (0, 32, 64, 96))
            k0, k1 = self.key & _MASK32, self.key >> 32
            for _ in range(10):
                p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
                c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & _MASK32, (p0 >> 32) ^ c3 ^ k1, p0 & _MASK32
                k0, k1 = (k0 + _WEYL_A) & _MASK32, (k1 + _WEYL_B) & _MASK32
            rows.append((c0, c1, c2, c3))
        return np.array(rows, np.uint32).reshape(-1, 4)

    def _blocks(self, offsets: Array) -> Array:
        low, high = np.uint64(self.counter & _MASK64), np.uint64(self.counter >> 64)
        lower = low + offsets
        upper = high + (lower < low).astype(np.uint64)
        c0, c1 = lower & _LOW32, lower >> _SHIFT32
        c2, c3 = upper & _LOW32, upper >> _SHIFT32
        k0, k1 = self.key & _MASK32, self.key >> 32
        for _ in range(10):
            p0, p1 = _MULTIPLIER_A * c0, _MULTIPLIER_B * c2
            c0, c1, c2, c3 = (
                (p1 >> _SHIFT32) ^ c1 ^ np.uint64(k0),
                p1 & _LOW32,
                (p0 >> _SHIFT32) ^ c3 ^ np.uint64(k1),
                p0 & _LOW32,
            )
            k0, k1 = (k0 + _WEYL_A) & _MASK32, (k1 + _WEYL_B) & _MASK32
        return np.stack((c0, c1, c2, c3), axis=-1).astype(np.uint32)

    def single(self) -> Iterator[int]:
        """One uint32 after the other, without end; reads ahead of `counter` by chunks."""
        at = 0
        while True:
            chunk = self.blocks(np.arange(at, at + 64, dtype=np.uint64))
            at += 64
            yield from chunk.reshape(-1).tolist()


class Generator:
    """A node's generator: hands out positions and moves on. Thread-safe.

    Without seeds (both 0) it starts anywhere, as TensorFlow's does.
    """

    def __init__(self, seed: int, seed2: int) -> None:
        if seed == 0 and seed2 == 0:
            seed, seed2 = secrets.randbits(64), secrets.randbits(64)
        self._key = seed & _MASK64
        self._lock = threading.Lock()
        #: The next block that was not given out.
        self._counter = (seed2 & _MASK64) << 64

    @property
    def place(self) -> int:
        """Where it is; may be set, to give the same numbers once more."""
        return self._counter

    @place.setter
    def place(self, counter: int) -> None:
        with self._lock:
            self._counter = counter

    def reserve(self, blocks: int) -> Philox:
        """A position with `blocks` 128-bit blocks to itself."""
        with self._lock:
            position = Philox(self._key, self._counter)
            self._counter = (self._counter + blocks) & _MASK128
        return position

    def reserve_outputs(self, count: int) -> Philox:
        """Room for `count` outputs: 256 blocks each, which is what TensorFlow sets aside."""
        return self.reserve(count * 256)


def to_float(x: Array) -> Array:
    """uint32 → float32 in [0, 1): 23 bits of mantissa."""
    bits = (x & np.uint32(0x7FFFFF)) | np.uint32(127 << 23)
    return bits.view(np.float32) - np.float32(1)


def to_double(x0: Array, x1: Array) -> Array:
    """Two uint32 → float64 in [0, 1): 20 bits of x0 over 32 bits of x1."""
    mantissa = ((x0 & np.uint32(0xFFFFF)).astype(np.uint64) << _SHIFT32) | x1.astype(np.uint64)
    return (mantissa | np.uint64(1023 << 52)).view(np.float64) - 1.0


def to_doubles(x: Array) -> Array:
    """uint32 [G, 4] → float64 [G, 2] in [0, 1)."""
    pairs = x.reshape(-1, 2)
    return to_double(pairs[:, 0], pairs[:, 1]).reshape(-1, 2)


def to_half(x: Array) -> Array:
    """uint32 → float16 in [0, 1): 10 bits of mantissa."""
    bits = (x.astype(np.uint16) & np.uint16(0x3FF)) | np.uint16(15 << 10)
    return bits.view(np.float16) - np.float16(1)


def to_bfloat16(x: Array) -> Array:
    """uint32 → bfloat16 in [0, 1): 7 bits of mantissa."""
    bits = (x.astype(np.uint16) & np.uint16(0x7F)) | np.uint16(127 << 7)
    bfloat16 = dtypes.bfloat16.as_numpy_dtype
    result: Array = bits.view(bfloat16) - bfloat16(1)
    return result


def normal_float(x: Array) -> Array:
    """uint32 [G, 4] → float32 normals [G, 4], by Box and Muller, pair after pair."""
    u1 = np.maximum(to_float(np.ascontiguousarray(x[:, 0::2])), np.float32(1e-7))
    angle = (2.0 * np.pi * to_float(np.ascontiguousarray(x[:, 1::2])).astype(np.float64)).astype(np.float32)
    # Logarithm, sine and cosine in double and then rounded: what a correctly rounded float function gives.
    log = np.log(u1.astype(np.float64)).astype(np.float32)
    radius = np.sqrt(np.float32(-2) * log)
    wide = angle.astype(np.float64)
    out = np.empty(x.shape, dtype=np.float32)
    out[:, 0::2] = np.sin(wide).astype(np.float32) * radius
    out[:, 1::2] = np.cos(wide).astype(np.float32) * radius
    return out


def normal_double(x: Array) -> Array:
    """uint32 [G, 4] → float64 normals [G, 2]."""
    u1 = np.maximum(to_double(x[:, 0], x[:, 1]), 1e-7)
    angle = 2 * np.pi * to_double(x[:, 2], x[:, 3])
    radius = np.sqrt(-2.0 * np.log(u1))
    return np.stack((np.sin(angle) * radius, np.cos(angle) * radius), axis=-1)
