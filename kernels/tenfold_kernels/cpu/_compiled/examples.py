"""Serialized tf.train.Examples, read byte by byte: where each wanted feature's values stand, and the values.

`scan` reads whole records, `fill` takes a feature's values out of them. What protobuf would refuse, and what no writer
of Examples writes (fields in another order, a feature of two kinds, keys beyond ASCII), is left to protobuf's own
parser: `scan` answers with the number of that record. Used by _examples_at_once.py. Follows the wire format of
example.proto and feature.proto.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array

#: The kinds of a feature, as the fields of Feature are numbered; 0 is none.
BYTES, FLOATS, INTS = 1, 2, 3

# Tags are bytes: 8 is a varint in field 1, 13 four bytes in it, 10, 18 and 26 bytes in fields 1, 2 and 3.


@inline
def _piece(data_B, at, end):  # type: ignore[no-untyped-def]
    # Where the bytes begin and end whose length stands at `at`; -1, -1 where they do not all lie before `end`.
    length = 0
    shift = 0
    while at < end and shift < 35:
        byte = np.int64(data_B[at])
        at += 1
        length |= (byte & 127) << shift  # type: ignore[assignment]
        if byte < 128:
            if length > end - at:
                return -1, -1
            return at, at + length
        shift += 7
    return -1, -1


@inline
def _count(data_B, kind, at, end):  # type: ignore[no-untyped-def]
    # How many values a list of that kind has; -1 where it is not such a list.
    count = 0
    while at < end:
        tag = np.int64(data_B[at])
        at += 1
        if kind == 1:
            if tag != 10:
                return -1
            _begin, at = _piece(data_B, at, end)
            if at < 0:
                return -1
            count += 1
        elif kind == 2:
            if tag == 13:
                stop = at + 4
                if stop > end:
                    return -1
            elif tag == 10:
                at, stop = _piece(data_B, at, end)
                if stop < 0 or (stop - at) % 4 != 0:
                    return -1
            else:
                return -1
            count += (stop - at) // 4
            at = stop
        else:
            stop = end
            if tag == 10:
                at, stop = _piece(data_B, at, end)
            elif tag != 8 or at == end:
                return -1
            if stop < 0:
                return -1
            length = 0
            while at < stop:
                byte = np.int64(data_B[at])
                at += 1
                length += 1
                if byte < 128:
                    if length == 10 and byte > 1:
                        return -1
                    count += 1
                    length = 0
                    if tag == 8:
                        break
                elif length >= 10:
                    return -1
            if length > 0:
                return -1
    return count


@inline
def _is_key(data_B, begin, end, keys_C, first, last):  # type: ignore[no-untyped-def]
    if end - begin != last - first:
        return False
    for i in range(end - begin):  # noqa: SIM110 (a loop is what is compiled)
        if data_B[begin + i] != keys_C[first + i]:
            return False
    return True


def _scan(data_B, ends_R, keys_C, key_ends_K1, guesses_G, table_KR4):  # type: ignore[no-untyped-def]
    # R records, one behind the other in B bytes; K keys in C bytes, after a first end that is 0. The table gets kind,
    # begin and end of the list, and the number of its values. A guess is the key that an entry of that number had last.
    keys = key_ends_K1.size - 1
    begin = 0
    for r in range(ends_R.size):
        end = ends_R[r]
        at = begin
        begin = end
        entry = 0
        while at < end:
            if data_B[at] != 10:
                return r
            at, all_end = _piece(data_B, at + 1, end)
            if at < 0:
                return r
            while at < all_end:
                if data_B[at] != 10:
                    return r
                at, entry_end = _piece(data_B, at + 1, all_end)
                if at < 0 or at == entry_end or data_B[at] != 10:
                    return r
                key, at = _piece(data_B, at + 1, entry_end)
                if at < 0 or at == entry_end or data_B[at] != 18:
                    return r
                for i in range(key, at):
                    if data_B[i] > 127:
                        return r
                key_end = at
                at, stop = _piece(data_B, at + 1, entry_end)
                if at < 0 or stop != entry_end:
                    return r
                kind = 0
                count = 0
                if at < stop:
                    tag = np.int64(data_B[at])
                    if tag != 10 and tag != 18 and tag != 26:
                        return r
                    kind = tag >> 3  # type: ignore[assignment]
                    at, last = _piece(data_B, at + 1, stop)
                    if at < 0 or last != stop:
                        return r
                    count = _count(data_B, kind, at, stop)
                    if count < 0:
                        return r
                guess = entry % guesses_G.size
                entry += 1
                k = guesses_G[guess]
                if k >= keys or not _is_key(data_B, key, key_end, keys_C, key_ends_K1[k], key_ends_K1[k + 1]):
                    k = 0
                    while k < keys and not _is_key(data_B, key, key_end, keys_C, key_ends_K1[k], key_ends_K1[k + 1]):
                        k += 1
                    guesses_G[guess] = k
                if k < keys:
                    table_KR4[k, r, 0] = kind
                    table_KR4[k, r, 1] = at
                    table_KR4[k, r, 2] = stop
                    table_KR4[k, r, 3] = count
                at = stop
    return -1


def _fill(data_B, kind, table_R4, places_R, out_bytes_N, out_N):  # type: ignore[no-untyped-def]
    # A feature's rows of the table, which `scan` made; `places` says as which number a row's first value is put.
    # Floats go to the bytes; integers, and of each byte string where it begins and ends, to the other array.
    for r in range(places_R.size):
        at = table_R4[r, 1]
        end = table_R4[r, 2]
        place = places_R[r]
        while at < end:
            tag = np.int64(data_B[at])
            at += 1
            if kind == 1:
                begin, at = _piece(data_B, at, end)
                out_N[2 * place] = begin
                out_N[2 * place + 1] = at
                place += 1
            elif kind == 2:
                stop = at + 4
                if tag == 10:
                    at, stop = _piece(data_B, at, end)
                for i in range(stop - at):
                    out_bytes_N[4 * place + i] = data_B[at + i]
                place += (stop - at) // 4
                at = stop
            else:
                stop = end
                if tag == 10:
                    at, stop = _piece(data_B, at, end)
                while at < stop:
                    value = np.int64(0)
                    shift = 0
                    byte = np.int64(128)
                    while byte > 127:
                        byte = np.int64(data_B[at])
                        at += 1
                        value |= (byte & 127) << shift
                        shift += 7
                    out_N[place] = value
                    place += 1
                    if tag == 8:
                        break


def _scan_nothing(
    data_B: Array, ends_R: Array, keys_C: Array, key_ends_K1: Array, guesses_G: Array, table_KR4: Array
) -> int:
    """Leaves all to protobuf's parser, which is as fast as bytes are read without machine code."""
    return 0 if ends_R.size else -1


def scan() -> Callable[..., int]:
    """(data_B, ends_R, keys_C, key_ends_K1, guesses_G, table_KR4) → the first record that is left to another, or -1."""
    return compile_loop(_scan, "r1 i1 r1 i1 x1 x3", np.uint8, result="n", stand_in=_scan_nothing, heavy=True)


def fill() -> Callable[..., None]:
    """(data_B, kind, table_R4, places_R, out_bytes, out): values of a feature, of records that `scan` has read."""
    return compile_loop(_fill, "r1 n i2 i1 w1 x1", np.uint8, stand_in=_fill_in_python, heavy=True)


def _fill_in_python(*arguments: Any) -> None:
    _fill(*arguments)  # type: ignore[no-untyped-call]
