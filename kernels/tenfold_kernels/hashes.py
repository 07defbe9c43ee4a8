"""The hash functions of TensorFlow's string ops, bit for bit: a bucket number is part of a trained model.

`hash64` is the one of StringToHashBucket (a MurmurHash64A), `fingerprint64` FarmHash's for StringToHashBucketFast,
`siphash` the keyed one of StringToHashBucketStrong. These give unsigned 64 bits, `fingerprint128` two such words. Used
by string_hash.py and sdca.py; follows hash.cc, FarmHash's farmhashna and farmhashcc, and SipHash-2-4.
"""

from __future__ import annotations

import struct
from functools import lru_cache

_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F

#: Texts whose fingerprint is remembered: a few MiB at most.
_REMEMBERED = 1 << 14

_U64, _U32 = struct.Struct("<Q"), struct.Struct("<I")


def hash64(data: bytes, seed: int = 0xDECAFCAFFE) -> int:
    """MurmurHash64A; the seed is TensorFlow's."""
    m = 0xC6A4A7935BD1E995
    h = (seed ^ len(data) * m) & _MASK
    whole = len(data) & ~7
    for (k,) in _U64.iter_unpack(data[:whole]):
        k = k * m & _MASK
        k = (k ^ k >> 47) * m & _MASK
        h = (h ^ k) * m & _MASK
    if whole != len(data):
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & _MASK
    h = (h ^ h >> 47) * m & _MASK
    return h ^ h >> 47


def _fetch(data: bytes, at: int) -> int:
    return int(_U64.unpack_from(data, at)[0])


def _rotate(value: int, shift: int) -> int:
    value &= _MASK
    return (value >> shift | value << (64 - shift)) & _MASK


def _shift_mix(value: int) -> int:
    return value ^ value >> 47


def _mix(u: int, v: int, mul: int) -> int:
    a = ((u ^ v) & _MASK) * mul & _MASK
    a ^= a >> 47
    b = ((v ^ a) & _MASK) * mul & _MASK
    b ^= b >> 47
    return b * mul & _MASK


def fingerprint64(data: bytes) -> int:
    """FarmHash's Fingerprint64, which never changes."""
    return _fingerprint_long(data) if len(data) > 64 else _fingerprint_short(data)


@lru_cache(_REMEMBERED)
def _fingerprint_short(data: bytes) -> int:
    """Of 64 bytes at most: the words of a vocabulary come again and again."""
    size = len(data)
    mul = _K2 + size * 2 & _MASK
    if size <= 16:
        if size >= 8:
            a, b = _fetch(data, 0) + _K2 & _MASK, _fetch(data, size - 8)
            c = _rotate(b, 37) * mul + a
            d = (_rotate(a, 25) + b) * mul
            return _mix(c & _MASK, d & _MASK, mul)
        if size >= 4:
            a = int(_U32.unpack_from(data, 0)[0])
            return _mix(size + (a << 3), int(_U32.unpack_from(data, size - 4)[0]), mul)
        if size:
            y = data[0] + (data[size >> 1] << 8)
            z = size + (data[size - 1] << 2)
            return _shift_mix((y * _K2 ^ z * _K0) & _MASK) * _K2 & _MASK
        return _K2
    if size <= 32:
        a, b = _fetch(data, 0) * _K1 & _MASK, _fetch(data, 8)
        c, d = _fetch(data, size - 8) * mul & _MASK, _fetch(data, size - 16) * _K2 & _MASK
        u = _rotate(a + b, 43) + _rotate(c, 30) + d
        v = a + _rotate(b + _K2, 18) + c
        return _mix(u & _MASK, v & _MASK, mul)
    a, b = _fetch(data, 0) * _K2 & _MASK, _fetch(data, 8)
    c, d = _fetch(data, size - 8) * mul & _MASK, _fetch(data, size - 16) * _K2 & _MASK
    y = _rotate(a + b, 43) + _rotate(c, 30) + d & _MASK
    z = _mix(y, a + _rotate(b + _K2, 18) + c & _MASK, mul)
    e, f = _fetch(data, 16) * mul & _MASK, _fetch(data, 24)
    g = (y + _fetch(data, size - 32)) * mul & _MASK
    h = (z + _fetch(data, size - 24)) * mul & _MASK
    return _mix(_rotate(e + f, 43) + _rotate(g, 30) + h & _MASK, e + _rotate(f + a, 18) + g & _MASK, mul)


def concatenated(first: int, second: int) -> int:
    """FingerprintCat64: one fingerprint of two. A loop of cpu/_compiled/sparse_places.py says the same."""
    multiplier = 0xC6A4A7935BD1E995
    mixed = second * multiplier & _MASK
    result = first ^ multiplier ^ ((mixed ^ mixed >> 47) * multiplier & _MASK)
    result = result * multiplier & _MASK
    result = (result ^ result >> 47) * multiplier & _MASK
    return result ^ result >> 47


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    """Four words and two seeds to two words."""
    w, x, y, z = struct.unpack_from("<4Q", data, at)
    a = a + w & _MASK
    b = _rotate(b + a + z, 21)
    c = a
    a = a + x + y & _MASK
    return a + z & _MASK, b + _rotate(a, 44) + c & _MASK


def _fingerprint_long(data: bytes) -> int:
    x = 81
    y = 81 * _K1 + 113 & _MASK
    z = _shift_mix(y * _K2 + 113 & _MASK) * _K2 & _MASK
    v = w = (0, 0)
    x = x * _K2 + _fetch(data, 0) & _MASK
    rest = (len(data) - 1) & 63
    for at in range(0, (len(data) - 1) // 64 * 64, 64):
        x = _rotate(x + y + v[0] + _fetch(data, at + 8), 37) * _K1 & _MASK
        y = _rotate(y + v[1] + _fetch(data, at + 48), 42) * _K1 & _MASK
        x ^= w[1]
        y = y + v[0] + _fetch(data, at + 40) & _MASK
        z = _rotate(z + w[0], 33) * _K1 & _MASK
        v = _weak(data, at, v[1] * _K1 & _MASK, x + w[0])
        w = _weak(data, at + 32, z + w[1], y + _fetch(data, at + 16))
        z, x = x, z
    mul = _K1 + ((z & 0xFF) << 1) & _MASK
    at = len(data) - 64
    w = (w[0] + rest & _MASK, w[1])
    v = (v[0] + w[0] & _MASK, v[1])
    w = (w[0] + v[0] & _MASK, w[1])
    x = _rotate(x + y + v[0] + _fetch(data, at + 8), 37) * mul & _MASK
    y = _rotate(y + v[1] + _fetch(data, at + 48), 42) * mul & _MASK
    x ^= w[1] * 9 & _MASK
    y = y + v[0] * 9 + _fetch(data, at + 40) & _MASK
    z = _rotate(z + w[0], 33) * mul & _MASK
    v = _weak(data, at, v[1] * mul & _MASK, x + w[0])
    w = _weak(data, at + 32, z + w[1], y + _fetch(data, at + 16))
    z, x = x, z
    first = _mix(v[0], w[0], mul) + _shift_mix(y) * _K0 + z
    return _mix(first & _MASK, _mix(v[1], w[1], mul) + x & _MASK, mul)


def _mix16(u: int, v: int) -> int:
    """Two words to one, as in CityHash."""
    return _mix(u & _MASK, v & _MASK, 0x9DDFEA08EB382D69)


def fingerprint128(data: bytes) -> tuple[int, int]:
    """FarmHash's Fingerprint128 (CityHash128): the lower word and the higher one."""
    if len(data) >= 16:
        return _seeded128(data[16:], _fetch(data, 0), _fetch(data, 8) + _K0 & _MASK)
    return _seeded128(data, _K0, _K1)


def _seeded128(data: bytes, x: int, y: int) -> tuple[int, int]:
    size = len(data)
    if size < 128:
        return _murmur128(data, x, y)
    z = size * _K1 & _MASK
    first = _rotate(y ^ _K1, 49) * _K1 + _fetch(data, 0) & _MASK
    v = first, _rotate(first, 42) * _K1 + _fetch(data, 8) & _MASK
    w = _rotate(y + z, 35) * _K1 + x & _MASK, _rotate(x + _fetch(data, 88), 53) * _K1 & _MASK
    for at in range(0, size // 128 * 128, 64):
        x = _rotate(x + y + v[0] + _fetch(data, at + 8), 37) * _K1 & _MASK
        y = _rotate(y + v[1] + _fetch(data, at + 48), 42) * _K1 & _MASK
        x ^= w[1]
        y = y + v[0] + _fetch(data, at + 40) & _MASK
        z = _rotate(z + w[0], 33) * _K1 & _MASK
        v = _weak(data, at, v[1] * _K1 & _MASK, x + w[0])
        w = _weak(data, at + 32, z + w[1], y + _fetch(data, at + 16))
        z, x = x, z
    x = x + _rotate(v[0] + z, 49) * _K0 & _MASK
    y = y * _K0 + _rotate(w[1], 37) & _MASK
    z = z * _K0 + _rotate(w[0], 27) & _MASK
    v, w = (v[0] * _K0 & _MASK, v[1]), (w[0] * 9 & _MASK, w[1])
    for at in range(size - 32, size - size % 128 - 32, -32):
        y = _rotate(x + y, 42) * _K0 + v[1] & _MASK
        w = w[0] + _fetch(data, at + 16) & _MASK, w[1]
        x = x * _K0 + w[0] & _MASK
        z = z + w[1] + _fetch(data, at) & _MASK
        w = w[0], w[1] + v[0] & _MASK
        v = _weak(data, at, v[0] + z & _MASK, v[1])
        v = v[0] * _K0 & _MASK, v[1]
    x, y = _mix16(x, v[0]), _mix16(y + z, w[0])
    return _mix16(x + v[1], w[1]) + y & _MASK, _mix16(x + w[1], y + v[1])


def _murmur128(data: bytes, a: int, b: int) -> tuple[int, int]:
    size = len(data)
    if size <= 16:
        a = _shift_mix(a * _K1 & _MASK) * _K1 & _MASK
        c = b * _K1 + fingerprint64(data) & _MASK
        d = _shift_mix(a + (_fetch(data, 0) if size >= 8 else c) & _MASK)
    else:
        c = _mix16(_fetch(data, size - 8) + _K1, a)
        d = _mix16(b + size, c + _fetch(data, size - 16))
        a = a + d & _MASK
        for at in range(0, size - 16, 16):
            a = (a ^ _shift_mix(_fetch(data, at) * _K1 & _MASK) * _K1 & _MASK) * _K1 & _MASK
            b ^= a
            c = (c ^ _shift_mix(_fetch(data, at + 8) * _K1 & _MASK) * _K1 & _MASK) * _K1 & _MASK
            d ^= c
    a, b = _mix16(a, c), _mix16(d, b)
    return a ^ b, _mix16(b, a)


def siphash(key: tuple[int, int], data: bytes) -> int:
    """SipHash-2-4 with a key of two words."""
    k0, k1 = key[0] & _MASK, key[1] & _MASK
    state = (k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573)
    last = data[len(data) & ~7 :].ljust(7, b"\x00") + bytes((len(data) & 0xFF,))
    for (word,) in _U64.iter_unpack(data[: len(data) & ~7] + last):
        v0, v1, v2, v3 = state
        v0, v1, v2, v3 = _sip_rounds(v0, v1, v2, v3 ^ word, 2)
        state = v0 ^ word, v1, v2, v3
    v0, v1, v2, v3 = state
    v0, v1, v2, v3 = _sip_rounds(v0, v1, v2 ^ 0xFF, v3, 4)
    return v0 ^ v1 ^ v2 ^ v3


def _sip_rounds(v0: int, v1: int, v2: int, v3: int, count: int) -> tuple[int, int, int, int]:
    for _ in range(count):
        v0 = v0 + v1 & _MASK
        v2 = v2 + v3 & _MASK
        v1 = _rotate(v1, 51) ^ v0
        v3 = _rotate(v3, 48) ^ v2
        v0 = _rotate(v0, 32)
        v2 = v2 + v1 & _MASK
        v0 = v0 + v3 & _MASK
        v1 = _rotate(v1, 47) ^ v2
        v3 = _rotate(v3, 43) ^ v0
        v2 = _rotate(v2, 32)
    return v0, v1, v2, v3
