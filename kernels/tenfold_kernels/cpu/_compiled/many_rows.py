"""Rows of many arrays at once: gathered, told apart, and added up by id, in pieces that threads share (chunks.py).

A job is a block of int64s, the numbers of `Job`. Arrays are named by where their objects are, `id(array)`: the loops
read there what NumPy's C interface promises to keep there (`Object`), which costs less than to ask for it in Python. A
number that indexes memory is read once and checked then. What is wrong with an array or an index is not said here:
`Job.BAD` becomes 1, and the caller asks each kernel by itself. Used by cpu/_many_rows.py; of one array: rows.py.
"""

from __future__ import annotations

import ctypes
import enum
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.chunks import address_of
from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline
from tenfold_kernels.cpu._compiled.intrinsics import copy_bytes, floats, int32s, int64s, load, once, prefetch
from tenfold_kernels.cpu._compiled.loop_spec import CALLBACK

if TYPE_CHECKING:
    from collections.abc import Callable


class Job(enum.IntEnum):
    """Vectors have a number for each of `COUNT` members."""

    COUNT = 0
    #: Indices of a piece of a gather; of the others, members.
    STEP = 1
    #: Whether indices are int64s, and not int32s.
    WIDE = 2
    #: The vector of objects that are read by index, and their elements' size.
    DATA = 3
    ITEM = 4
    #: Vectors of objects: the indices, vectors but for a gather's; the results.
    IDS = 5
    OUT = 6
    #: Where each member's indices end in the count of all; those of the next one begin there.
    ENDS = 7
    #: Of distinct values: whether their places are int64s; where values are put before they are counted; how many
    #: there are. Of collected indices: how many rows there are for them.
    OUT_WIDE = 8
    FOUND = 9
    COUNTS = 10
    #: Tables of hashes, of int32s; how many slots each has: a power of two, twice as many as values and more.
    TABLE = 11
    SLOT_ENDS = 12
    BAD = 13


class Object(enum.IntEnum):
    """Where the object of an array has what, in bytes."""

    DATA = 16
    RANK = 24
    SHAPE = 32
    STRIDES = 40
    FLAGS = 64


#: Of `Object.FLAGS`: that an array lies in one piece, row by row, and that its elements do not straddle words.
_WHOLE, _ALIGNED = 0x1, 0x100
#: Indices between the one whose row is asked for and the one whose is copied.
_AHEAD = 8
# Their places in bytes: Numba reads no enum.
(
    _COUNT, _STEP, _WIDE, _DATA, _ITEM, _IDS, _OUT, _ENDS, _OUT_WIDE, _FOUND, _COUNTS, _TABLE, _SLOT_ENDS, _BAD,
) = (8 * int(cell) for cell in Job)  # fmt: skip
_O_DATA, _O_RANK, _O_SHAPE, _O_STRIDES, _O_FLAGS = map(int, Object)


@inline
def _at(job, vector, n):  # type: ignore[no-untyped-def]
    return load(load(job + vector) + 8 * n)


@inline
def _is_whole(array):  # type: ignore[no-untyped-def]
    return (load(array + _O_FLAGS) & (_WHOLE | _ALIGNED)) == (_WHOLE | _ALIGNED)


@inline
def _apart(job, array):  # type: ignore[no-untyped-def]
    # Bytes from one index to the next; 0 where they are not equally far apart.
    if _is_whole(array):
        return 8 if load(job + _WIDE) != 0 else 4
    is_vector = (load(array + _O_RANK) & 0xFFFFFFFF) == 1 and (load(array + _O_FLAGS) & _ALIGNED) != 0
    return load(load(array + _O_STRIDES)) if is_vector else 0


@inline
def _index(wide, place):  # type: ignore[no-untyped-def]
    # Read once, as an int64.
    if wide:
        return once(int64s(place, 1), 0)
    return np.int64(once(int32s(place, 1), 0))


@inline
def _row(array):  # type: ignore[no-untyped-def]
    # Elements of a row.
    size = 1
    for axis in range(1, load(array + _O_RANK) & 0xFFFFFFFF):
        size *= load(load(array + _O_SHAPE) + 8 * axis)
    return size


@inline
def _begin(job, vector, n):  # type: ignore[no-untyped-def]
    return 0 if n == 0 else load(load(job + vector) + 8 * (n - 1))


@inline
def _give_up(job):  # type: ignore[no-untyped-def]
    int64s(load(job + _BAD), 1)[0] = 1


def gather(job, piece):  # type: ignore[no-untyped-def]
    """Copies the rows of some indices."""
    count = load(job + _COUNT)
    ends_N = int64s(load(job + _ENDS), count)
    first = piece * load(job + _STEP)
    last = min(first + load(job + _STEP), ends_N[count - 1])
    n = 0
    while first < last:
        while ends_N[n] <= first:
            n += 1
        end, begin = min(last, ends_N[n]), _begin(job, _ENDS, n)
        if not _gather(job, n, first - begin, end - begin):
            _give_up(job)
            return
        first = end


@inline
def _gather(job, n, first, last):  # type: ignore[no-untyped-def]
    table, ids, wide = _at(job, _DATA, n), _at(job, _IDS, n), load(job + _WIDE) != 0
    apart, row_bytes = _apart(job, ids), load(job + _ITEM) * _row(table)
    if not _is_whole(table) or apart == 0:
        return False
    rows, limit, out = load(table + _O_DATA), load(load(table + _O_SHAPE)), load(_at(job, _OUT, n) + _O_DATA)
    ids = load(ids + _O_DATA)
    for i in range(first, last):
        if i + _AHEAD < last:
            prefetch(rows + row_bytes * _index(wide, ids + apart * (i + _AHEAD)))
        row = _index(wide, ids + apart * i)
        if row < 0 or row >= limit:
            return False
        _copy(rows + row_bytes * row, out + row_bytes * i, row_bytes)
    return True


@inline
def _copy(source, to, count):  # type: ignore[no-untyped-def]
    # so many bytes that are known beforehand are a few instructions, and no call
    if count == 4:
        copy_bytes(source, to, 4)
    elif count % 32 == 0:
        for place in range(0, count, 32):
            copy_bytes(source + place, to + place, 32)
    else:
        copy_bytes(source, to, count)


@inline
def _members(job, piece):  # type: ignore[no-untyped-def]
    first = piece * load(job + _STEP)
    return range(first, min(first + load(job + _STEP), load(job + _COUNT)))


def distinct(job, piece):  # type: ignore[no-untyped-def]
    """The distinct values of some vectors, in the order of their first places."""
    for n in _members(job, piece):
        ids, begin, slot = _at(job, _IDS, n), _begin(job, _ENDS, n), _begin(job, _SLOT_ENDS, n)
        size, apart = _at(job, _ENDS, n) - begin, _apart(job, ids)
        if apart == 0:
            _give_up(job)
            return
        found_K = int64s(load(job + _FOUND) + 8 * begin, size)
        table_T = int32s(load(job + _TABLE) + 4 * slot, _at(job, _SLOT_ENDS, n) - slot)
        known = _distinct(job, load(ids + _O_DATA), apart, found_K, load(_at(job, _OUT, n) + _O_DATA), table_T)
        int64s(load(job + _COUNTS), load(job + _COUNT))[n] = known


@inline
def _distinct(job, values, apart, found_K, places, table_T):  # type: ignore[no-untyped-def]
    table_T[:] = -1
    count, mask, wide, out_wide = 0, table_T.size - 1, load(job + _WIDE) != 0, load(job + _OUT_WIDE) != 0
    for i in range(found_K.size):
        value = _index(wide, values + apart * i)
        slot = np.int64((np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
        at = table_T[slot]
        while at >= 0 and found_K[at] != value:
            slot = (slot + 1) & mask
            at = table_T[slot]
        if at < 0:
            table_T[slot] = at = count
            found_K[count] = value
            count += 1
        if out_wide:
            int64s(places, found_K.size)[i] = at
        else:
            int32s(places, found_K.size)[i] = at
    return count


def add_up(job, piece):  # type: ignore[no-untyped-def]
    """The sums by id of some matrices' rows; a row whose id is negative belongs to none."""
    for n in _members(job, piece):
        if not _add_up(job, _at(job, _DATA, n), _at(job, _IDS, n), _at(job, _OUT, n)):
            _give_up(job)
            return


@inline
def _add_up(job, data, ids, out):  # type: ignore[no-untyped-def]
    width, apart, wide = _row(data), load(load(data + _O_STRIDES)), load(job + _WIDE) != 0
    between = _apart(job, ids)
    # rows in one piece, wherever they are
    good = _is_whole(data)
    if (load(data + _O_RANK) & 0xFFFFFFFF) == 2 and (load(data + _O_FLAGS) & _ALIGNED) != 0:
        good = good or width == 1 or load(load(data + _O_STRIDES) + 8) == 4
    if not good or between == 0:
        return False
    size, data, ids = load(load(ids + _O_SHAPE)), load(data + _O_DATA), load(ids + _O_DATA)
    out_CW = floats(load(out + _O_DATA), load(load(out + _O_SHAPE)), width)
    out_CW[:] = 0
    for i in range(size):
        row = _index(wide, ids + between * i)
        if row >= out_CW.shape[0]:
            return False
        if row >= 0:
            data_W = floats(data + i * apart, 1, width)
            for j in range(width):
                out_CW[row, j] += data_W[0, j]
    return True


def collect(job, piece):  # type: ignore[no-untyped-def]
    """Copies indices, all of them into one vector of int64s, `OUT`, and checks them: each member has `COUNTS` rows."""
    for n in _members(job, piece):
        ids, begin = _at(job, _IDS, n), _begin(job, _ENDS, n)
        rows_K = int64s(load(job + _OUT) + 8 * begin, _at(job, _ENDS, n) - begin)
        if not _collect(job, ids, rows_K, _at(job, _COUNTS, n)):
            _give_up(job)
            return


@inline
def _collect(job, ids, rows_K, limit):  # type: ignore[no-untyped-def]
    apart, wide, data, good = _apart(job, ids), load(job + _WIDE) != 0, load(ids + _O_DATA), True
    for i in range(rows_K.size):
        row = _index(wide, data + apart * i)
        rows_K[i] = row
        good = good and row >= 0 and row < limit
    return good and apart != 0


def find(job, piece):  # type: ignore[no-untyped-def]
    """Puts where each of the objects of `DATA` has its elements into `OUT`, a vector."""
    out_N = int64s(load(job + _OUT), load(job + _COUNT))
    for n in range(out_N.size):
        out_N[n] = load(_at(job, _DATA, n) + _O_DATA)


def _nothing(*_: Any) -> int:
    return 0


def _is_as_promised() -> bool:
    """Whether an array's object has what the loops read: not where objects begin with more than a count and a type."""
    array = np.zeros((3, 5), np.float32)[:2]
    words = np.ctypeslib.as_array((_Words).from_address(id(array)))
    shape_at, strides_at = (int(words[place // 8]) for place in (Object.SHAPE, Object.STRIDES))
    if words[Object.DATA // 8] != address_of(array) or int(words[Object.RANK // 8]) & 0xFFFFFFFF != 2:
        return False
    shape, strides = (tuple((_Pair).from_address(at)) for at in (shape_at, strides_at))
    is_whole = int(words[Object.FLAGS // 8]) & (_WHOLE | _ALIGNED) == _WHOLE | _ALIGNED
    return is_whole and shape == array.shape and strides == array.strides


_Words, _Pair = ctypes.c_int64 * 9, ctypes.c_int64 * 2
_LOOPS = {"gather": gather, "distinct": distinct, "add_up": add_up, "collect": collect, "find": find}


def loop(name: str) -> Callable[[], int]:
    """Gives the address of one of the above as a C function of (job, piece); 0 until it is loaded, and where it could
    not run."""
    return compile_loop(_LOOPS[name], CALLBACK, np.int64, stand_in=_nothing) if _is_as_promised() else _nothing
