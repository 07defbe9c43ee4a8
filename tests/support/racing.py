"""A loop that indexes memory, and a thread that changes what it indexes by: `python racing.py seconds case …`.

Started by tests/kernels/test_loops_and_writers.py as a process of its own, because a loop that trusts what it has read
before ends it by a signal: every array lies between two pages that nobody may touch. The writer puts a bad number in
one place and takes it back, as fast as it can. A case's name is written when it begins. Any answer is right but a
signal, or memory of others changed.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tenfold_kernels.cpu._compiled import (
    losses,
    merging,
    rows,
    sampling,
    sparse_places,
    sparse_products,
    sparse_updates,
    word_vectors,
)

if TYPE_CHECKING:
    from collections.abc import Callable

#: Indices of a case: a loop takes some tenths of a millisecond, which a writer on another core changes often.
N, WIDTH, ROWS = 20_000, 3, 50
_PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
#: The mappings, which must outlive the arrays.
_kept: list[mmap.mmap] = []


def guarded(value: Any, at_end: bool = True) -> Any:
    """A copy of an array that ends (or begins) where a page begins (or ends) that may not be read or written."""
    value = np.asarray(value)
    pages = -(-max(value.nbytes, 1) // _PAGE)
    memory = mmap.mmap(-1, (pages + 2) * _PAGE)
    _kept.append(memory)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (start, start + (pages + 1) * _PAGE):
        if _libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(_PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = _PAGE + (pages * _PAGE - value.nbytes if at_end else 0)
    array = np.frombuffer(memory, value.dtype, value.size, offset).reshape(value.shape)
    array[...] = value
    return array


class Race(NamedTuple):
    """What is called, and where the writer writes."""

    call: Callable[[], Any]
    written: Any
    bad: tuple[Any, ...]


def _table(at_end: bool) -> Any:
    return guarded(np.zeros((ROWS, WIDTH), np.float32), at_end)


def _indices(dtype: Any = np.int32) -> Any:
    return guarded(np.full(N, ROWS - 1, dtype))


#: Beyond the last row, before the first one, far away.
_BAD = (ROWS, -1, 1 << 29, -(1 << 29))


def _gather(at_end: bool) -> Race:
    index, table, out = _indices(), _table(at_end), guarded(np.zeros((N, WIDTH), np.float32))
    loop = rows.gather_rows(np.float32, np.int32)
    return Race(lambda: loop(table, index, out), index, _BAD)


def _scatter_add(at_end: bool) -> Race:
    index, table, new = _indices(), _table(at_end), guarded(np.zeros((N, WIDTH), np.float32))
    loop = rows.scatter_add(np.float32, np.int32)
    return Race(lambda: loop(table, index, new, np.float32(1)), index, _BAD)


def _scatter_update(at_end: bool) -> Race:
    index, table, new = _indices(np.int64), _table(at_end), guarded(np.zeros((N, WIDTH), np.float32))
    loop = rows.scatter_update(np.float32, np.int64)
    return Race(lambda: loop(table, index, new), index, _BAD)


def _add_rows(at_end: bool) -> Race:
    index, out, data = _indices(), _table(at_end), guarded(np.zeros((N, WIDTH), np.float32))
    loop = rows.add_rows(np.float32, np.int32)
    return Race(lambda: loop(data, index, out), index, _BAD)


def _segments(at_end: bool, write_places: bool) -> Race:
    places, ids = _indices(np.int64), _indices(np.int64)
    data, out = _table(at_end), _table(at_end)
    fit, add = rows.fit_segments(np.int64), rows.add_chosen_rows(np.float32, np.int64)

    def call() -> None:
        if fit(places, ids, ROWS, ROWS, True) < 0:
            add(data, places, ids, out)

    return Race(call, places if write_places else ids, _BAD)


def _split(at_end: bool) -> Race:
    parts, data = guarded(np.zeros(N, np.int32)), guarded(np.zeros((N, WIDTH), np.float32))
    ends, out = guarded(np.zeros(4, np.int32), at_end), guarded(np.zeros((N, WIDTH), np.float32), at_end)
    loop = rows.split_rows(np.float32)
    return Race(lambda: loop(data, parts, ends, out), parts, (3, 4, -1, 1 << 29, 2))


def _labels(at_end: bool) -> Race:
    labels = guarded(np.full(N, WIDTH - 1, np.int32))
    shifted, powers = (guarded(np.ones((N, WIDTH), np.float32), at_end) for _ in range(2))
    loss, loop = guarded(np.zeros(N, np.float32)), losses.sparse_xent(np.float32, np.int32)
    return Race(lambda: loop(shifted, labels, loss, powers), labels, (1 << 29, -(1 << 29)))


def _walk(at_end: bool) -> Race:
    ours, theirs = guarded(np.arange(N)), guarded(np.arange(N))
    values = guarded(np.zeros((N, 1), np.float32))
    found, sums, times = (guarded(np.zeros(shape, kind), at_end) for shape, kind in (
        (2 * N, np.int64), ((2 * N, 1), np.float32), (2 * N, np.int64)))  # fmt: skip
    counts, loop = np.ones(N, np.int64), merging.walk(np.float32)
    return Race(lambda: loop(ours, values, counts, theirs, values, found, sums, times), theirs, (-1, N, N // 2))


def _crop(at_end: bool, what: str) -> Race:
    boxes = guarded(np.tile(np.array([0, 0, 1, 1], np.float32), (N // 8, 1)))
    index = guarded(np.zeros(N // 8, np.int32))
    image = guarded(np.zeros((1, 5, 5, 1), np.float32), at_end)
    crops = guarded(np.zeros((N // 8, 2, 2, 1), np.float32))
    loop, back = sampling.crop(), sampling.crop_gradient()
    far = (1e3, -1e3, 1e9, -1e9) if "boxes" in what else (1, -1, 1 << 24, -(1 << 24))
    written = boxes.reshape(-1) if "boxes" in what else index
    if "gradient" in what:
        return Race(lambda: back(crops, boxes, index, "nearest" in what, image), written, far)
    return Race(lambda: loop(image, boxes, index, "nearest" in what, np.float32(0), 0, N // 8, crops), written, far)


def _places(last: int) -> Any:
    return guarded(np.tile(np.array([last, 0]), (N, 1)))


def _fill_rows(at_end: bool) -> Race:
    places, dims = _places(ROWS - 1), np.array([ROWS, 2])
    begin, fill = sparse_places.begin_rows(), sparse_places.fill_rows()
    ends = guarded(np.zeros(ROWS, np.int64), at_end)
    back = guarded(np.zeros(N, np.int64))

    def call() -> None:
        ends[:] = 0
        total = begin(places, dims, ends)
        if total >= 0:
            out, source = room[total]
            fill(places, ends, out, source, back)

    # the loop sees the writer's places change while it reads: each of them may be another row that needs no filling up
    room = {
        total: (guarded(np.zeros((total, 2), np.int64), at_end), guarded(np.zeros(total, np.int64), at_end))
        for total in range(N, N + ROWS)
    }
    return Race(call, places.reshape(-1), (0, 3, *_BAD))


def _end_rows(at_end: bool) -> Race:
    places, ends, loop = _places(ROWS - 1), guarded(np.zeros(ROWS, np.int64), at_end), sparse_places.end_rows()
    return Race(lambda: loop(places, ends), places.reshape(-1), _BAD)


def _begin_rows(at_end: bool) -> Race:
    places, dims = _places(ROWS - 1), np.array([ROWS, 2])
    begins, loop = guarded(np.zeros(ROWS, np.int64), at_end), sparse_places.begin_rows()
    return Race(lambda: loop(places, dims, begins), places.reshape(-1), _BAD)


def _number_places(at_end: bool) -> Race:
    """What takes rows by the numbers: all of them name one."""
    places, dims = guarded(np.tile(np.array([ROWS - 1, WIDTH - 1]), (N, 1))), np.array([ROWS, WIDTH])
    numbers, loop = guarded(np.zeros(N, np.int64), at_end), sparse_places.number_places(np.int64)

    def call() -> None:
        if loop(places, dims, numbers, False) < 0 and not 0 <= numbers.min() <= numbers.max() < ROWS * WIDTH:
            raise AssertionError("a place outside has a number")

    return Race(call, places.reshape(-1), _BAD)


def _sparse_product(loop: str, written: str) -> Callable[[bool], Race]:
    """`written`: what the writer changes, an entry's row or its column."""

    def build(at_end: bool) -> Race:
        column = 0 if written == "row" else 1
        ones, width = guarded(np.ones(N, np.float32)), 1 if loop == "vector" else WIDTH
        left, right = (guarded(np.ones((ROWS, width), np.float32), at_end) for _ in range(2))
        if loop == "rows":
            picked = [guarded(np.full(N, ROWS - 1)) for _ in range(2)]
            call = sparse_products.multiply_rows(np.float32, np.int64)
            return Race(
                lambda: call(left, picked[0], right, picked[1], np.float32(0), 0, N, ones), picked[column], _BAD
            )
        places = guarded(np.full((N, 2), ROWS - 1))
        # the writer takes places that four divide: they are of the first column
        if loop == "vector":
            vector = sparse_products.multiply_vector(np.float32, np.int64)
            return Race(
                lambda: vector(places, ones, left.reshape(-1), column, 0, right.reshape(-1)), places.reshape(-1), _BAD
            )
        matrix = sparse_products.multiply(np.float32, np.int64)
        return Race(lambda: matrix(places, ones, left, column, 0, 0, WIDTH, right), places.reshape(-1), _BAD)

    return build


def _update(name: str) -> Callable[[bool], Race]:
    def build(at_end: bool) -> Race:
        index, codes = _indices(), sparse_updates._LOOPS[name][1].split()
        loop = sparse_updates.loop(name, np.float32, np.int32)
        gradient = guarded(np.ones((N, WIDTH), np.float32))
        given = {"w2": lambda: _table(at_end), "r2": lambda: gradient, "i1": lambda: index, "b": lambda: False}
        arguments = [given[code]() if code in given else np.float32(0.5) for code in codes]
        return Race(lambda: loop(*arguments), index, _BAD)

    return build


def _word_vectors(at_end: bool, written: str) -> Race:
    count = N // 8
    index = {name: guarded(np.full(count, ROWS - 1, np.int32)) for name in ("examples", "labels", "samples")}
    tables, room = [_table(at_end) for _ in range(2)], guarded(np.zeros(WIDTH, np.float32), at_end)
    loop = word_vectors.negative_sampling()
    return Race(lambda: loop(*tables, *index.values(), np.float32(0.1), room), index[written], _BAD)


#: Case → (whether its arrays lie at the end of their pages) → the race.
CASES: dict[str, Callable[[bool], Race]] = {
    "_gather_rows": _gather,
    "_scatter_add": _scatter_add,
    "_scatter_update": _scatter_update,
    "_add_rows": _add_rows,
    "_add_chosen_rows by places": lambda at_end: _segments(at_end, True),
    "_add_chosen_rows by ids": lambda at_end: _segments(at_end, False),
    "_split_rows": _split,
    "_sparse": _labels,
    "_walk": _walk,
    "_crop by index": lambda at_end: _crop(at_end, "index"),
    "_crop by boxes": lambda at_end: _crop(at_end, "boxes"),
    "_crop by boxes, nearest": lambda at_end: _crop(at_end, "boxes nearest"),
    "_crop_gradient by index": lambda at_end: _crop(at_end, "gradient index"),
    "_crop_gradient by boxes": lambda at_end: _crop(at_end, "gradient boxes"),
    "_crop_gradient by boxes, nearest": lambda at_end: _crop(at_end, "gradient boxes nearest"),
    "_negative_sampling by examples": lambda at_end: _word_vectors(at_end, "examples"),
    "_negative_sampling by labels": lambda at_end: _word_vectors(at_end, "labels"),
    "_negative_sampling by samples": lambda at_end: _word_vectors(at_end, "samples"),
    "_fill_rows": _fill_rows,
    "_begin_rows": _begin_rows,
    "_end_rows": _end_rows,
    "_number_places": _number_places,
    **{
        f"_multiply_{loop} by {written}": _sparse_product(loop, written)
        for loop in ("matrix", "vector", "rows")
        for written in ("row", "column")
    },
    **{f"{name} by rows": _update(name) for name in sparse_updates._LOOPS},
}  # fmt: skip


def _write(race: Race, over: threading.Event) -> None:
    """Bad numbers in one place after the other, near the end: a loop that checks first has checked most by then."""
    flat, size = race.written, race.written.size
    places = (size - 4, size // 2, size - 4, size - size // 8)
    while not over.is_set():
        for place in places:
            place -= place % 4
            good = flat[place]
            for bad in race.bad:
                for _ in range(50):
                    flat[place] = bad
                    flat[place] = good


def run(case: str, seconds: float) -> None:
    """Calls the case's loop for so long, half of the time with its arrays at either end of their pages."""
    for at_end in (True, False):
        race, over = CASES[case](at_end), threading.Event()
        race.call()  # compiled now
        writer = threading.Thread(target=_write, args=(race, over))
        writer.start()
        until = time.monotonic() + seconds / 2
        try:
            while time.monotonic() < until:
                race.call()
        finally:
            over.set()
            writer.join()


if __name__ == "__main__":
    sys.setswitchinterval(1e-5)
    for each in sys.argv[2:]:
        print(each, flush=True)
        run(each, float(sys.argv[1]))
