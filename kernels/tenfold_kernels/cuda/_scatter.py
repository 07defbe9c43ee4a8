"""Rows brought together by number, in the order in which they come: what scatters and segment sums are made of.

    for k in order: target[ids[k]] = meet(target[ids[k]], rows[k])

One thread has one column of one row of the target and goes through its updates in their order, so that results are the
same in every run. Which updates are of one row, it finds by looking through all numbers where they are few; where they
are many they are sorted first (_sorting.py), and the first of a run of equal numbers does the run. Of a long run pieces
of PIECE numbers meet each other before. Only rows that are named are touched. A number of no row is passed over, as on
TensorFlow's GPUs.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_kernels.cuda import _moves, _picks
from tenfold_kernels.cuda._launch import Kernel, launch_over, pointer
from tenfold_kernels.cuda._sorting import sort
from tenfold_kernels.cuda.loop_text import expression
from tenfold_kernels.cuda.narrow_text import narrowed, wide, widened
from tenfold_kernels.fusion import expressions

if TYPE_CHECKING:
    from tenfold_kernels.cuda._arrays import DeviceArray

#: Up to so many numbers are looked through by every thread: loads of some cache lines, against the dozen launches of a
#: sort. Not measured.
FEW = 512
#: Numbers of a long run that one thread brings together. Not measured.
PIECE = 256


@dataclass(frozen=True, slots=True)
class Meeting:
    """What becomes of rows of one number."""

    #: The expression that an update meets what there is by; "" lets the update replace it.
    op: str
    #: The sum begins with what the target holds; else it begins with nothing, and the target is written only.
    keeps: bool = True
    #: What the whole is divided by: nothing, the number of updates ("mean"), or its root ("sqrtn").
    divide: str = ""

    def nothing(self, dtype: np.dtype[Any]) -> float:
        """What leaves an update as it is."""
        if self.op in ("Maximum", "Minimum"):
            least, greatest = (-math.inf, math.inf) if dtype.kind == "f" else ends(dtype)
            return least if self.op == "Maximum" else greatest
        return 1 if self.op == "Mul" else 0

    @property
    def by_pieces(self) -> bool:
        """Whether updates may meet each other before they meet what there is."""
        return "Div" not in self.op

    def of_pieces(self) -> Meeting:
        """What updates meet each other by then."""
        return Meeting("Add" if self.op == "Sub" else self.op, keeps=False)


def ends(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def scatter(
    meeting: Meeting, target: DeviceArray, ids: DeviceArray, rows: DeviceArray, picks: DeviceArray | None = None
) -> None:
    """Changes target [S, W…] in place by ids [N] and rows [N, W…], or [L, W…] of which `picks` [N] chooses; rows of one
    element, of shape (), are that element for every update.

    Elements have a type that expressions know, of half what they make together is rounded once; or any type if updates
    replace. Raises UnimplementedError for 2³¹ rows.
    """
    count, width = ids.size, math.prod(target.shape[1:])
    if not count or not width or not target.shape[0]:
        return
    if max(count, target.shape[0]) >= 1 << 31:
        raise errors.unimplemented("scatters on a GPU are of less than 2147483648 rows and updates")
    if not meeting.op and not rows.ndim:
        target, rows = _picks.as_whole(target), _picks.as_whole(rows)
    elif not meeting.op:
        unit = math.gcd(8, width * target.dtype.itemsize, target.offset, rows.offset)
        width = width * target.dtype.itemsize // unit
        target, rows = (_moves.in_units(each, unit) for each in (target, rows))
        target, rows = (each.reshape((each.size // width, width)) for each in (target, rows))
    if count <= FEW:
        _bring(meeting, False, target, ids, None, rows, picks)
    else:
        _bring(meeting, True, target, *sort(ids, target.shape[0]), rows, picks)


def scatter_sorted(
    meeting: Meeting, target: DeviceArray, ids: DeviceArray, rows: DeviceArray, picks: DeviceArray | None = None
) -> None:
    """As `scatter`, of numbers that do not fall. Of others, one of the runs of a number is what its row becomes."""
    if ids.size and target.size:
        _bring(meeting, True, target, ids, None, rows, picks)


def _bring(
    meeting: Meeting,
    is_sorted: bool,
    target: DeviceArray,
    keys: DeviceArray,
    order: DeviceArray | None,
    rows: DeviceArray,
    picks: DeviceArray | None,
) -> None:
    width = math.prod(target.shape[1:])
    numbers = (width, keys.size, target.shape[0], rows.size // width)
    read = [each for each in (order, picks) if each is not None]
    how = _How(is_sorted, order is not None, picks is not None, not rows.ndim)
    pieces: list[DeviceArray] = []
    if is_sorted and keys.size > PIECE and meeting.by_pieces:
        count = -(-keys.size // PIECE)
        pieces = [target.runtime.empty((count * width,), wide(target.dtype))]
        pieces.append(target.runtime.empty((count,), np.dtype(np.int32)))
        arrays = (keys, *read, rows, *pieces)
        kernel = _pieces(meeting.of_pieces(), how, PIECE, *[each.dtype for each in arrays])
        launch_over(kernel, count * width, numbers, arrays)
    arrays = (keys, *read, rows, *pieces, target)
    kernel = _whole(meeting, how, PIECE if pieces else 0, *[each.dtype for each in arrays])
    launch_over(kernel, keys.size * width, numbers, arrays)


@dataclass(frozen=True, slots=True)
class _How:
    """Where a kernel finds the updates of a row."""

    #: Numbers do not fall: the updates of a row are a run.
    is_sorted: bool
    #: Numbers were sorted: `order` says where each was.
    ordered: bool
    #: `picks` says which of the rows each update is.
    picked: bool
    #: One element is the update of every element.
    one: bool


def _names(how: _How) -> str:
    """(elements, W, N, S, L, keys, [order], [picks], rows), as both kernels begin."""
    return "n, width, count, limit, chosen, keys, " + "order, " * how.ordered + "picks, " * how.picked + "rows"


@functools.cache
def _whole(meeting: Meeting, how: _How, piece: int, *types: np.dtype[Any]) -> Kernel:
    """The kernel that changes the target; after `_pieces`, where runs may be longer than `piece`."""
    dtype = types[-1]
    number = wide(dtype)
    begin = widened("o[at]", dtype) if meeting.keeps else expressions.literal(meeting.nothing(number), number)
    end = f"(k // {piece} + 1) * {piece}" if piece else "count"
    lines = [
        f"def run({_names(how)}{', pieces, sizes' if piece else ''}, o):",
        "    for i in range(cuda.grid(1), n, cuda.gridsize(1)):",
        "        k, w = i // width, i % width",
        "        key = keys[k]",
        "        first = 0 <= key < limit",
        *(_first_of_run() if how.is_sorted else _first_of_all()),
        "        if first:",
        "            at = key * width + w",
        f"            total = {begin}",
        "            number = 0",
        "            j = k",
        f"            end = {end}",
        "            end = end if end < count else count",
        *(f"            {line}" for line in _updates(meeting, how, dtype)),
    ]
    if piece:
        lines += [
            f"            p = k // {piece} + 1",
            f"            while p * {piece} < count and j == end and keys[p * {piece}] == key:",
            "                x = pieces[p * width + w]",
            f"                total = {_met(meeting, number)}",
            "                number += sizes[p]",
            "                p += 1",
        ]
    lines += [*(f"            {line}" for line in _division(meeting, number))]
    lines.append(f"            o[at] = {narrowed('total', dtype)}")
    return Kernel(_moves.function_of(lines), (*("int64",) * 5, *map(pointer, types)))


@functools.cache
def _pieces(meeting: Meeting, how: _How, piece: int, *types: np.dtype[Any]) -> Kernel:
    """The kernel that gives, of each piece that begins inside of a run, what its updates of that run make together, and
    how many they are.
    """
    number = types[-2]
    lines = [
        f"def run({_names(how)}, o, sizes):",
        "    for i in range(cuda.grid(1), n, cuda.gridsize(1)):",
        "        p, w = i // width, i % width",
        f"        k = p * {piece}",
        "        key = keys[k]",
        "        if p > 0 and 0 <= key < limit and keys[k - 1] == key:",
        f"            total = {expressions.literal(meeting.nothing(number), number)}",
        "            number = 0",
        "            j = k",
        f"            end = k + {piece} if k + {piece} < count else count",
        *(f"            {line}" for line in _updates(meeting, how, types[-3])),
        "            o[i] = total",
        "            if w == 0:",
        "                sizes[p] = number",
    ]
    return Kernel(_moves.function_of(lines), (*("int64",) * 5, *map(pointer, types)))


def _first_of_run() -> list[str]:
    return ["        if first and k > 0:", "            first = keys[k - 1] != key"]


def _first_of_all() -> list[str]:
    return [
        "        if first:",
        "            for j in range(k):",
        "                if keys[j] == key:",
        "                    first = False",
        "                    break",
    ]


def _met(meeting: Meeting, dtype: np.dtype[Any]) -> str:
    return "x" if not meeting.op else expression(meeting.op, {}, ["total", "x"], [dtype, dtype], dtype)


def _updates(meeting: Meeting, how: _How, dtype: np.dtype[Any]) -> list[str]:
    """Lines that go from number j to `end`, of sorted ones to the end of the run, and work updates into `total`."""
    row = "order[j]" if how.ordered else "j"
    element = "rows[0]" if how.one else "rows[row * width + w]"
    update = [f"x = {widened(element, dtype)}", f"total = {_met(meeting, wide(dtype))}"]
    if how.picked:
        update = ["if 0 <= row < chosen:", *(f"    {line}" for line in update)]
    lines = [f"row = picks[{row}]" if how.picked else f"row = {row}", *update, "number += 1"]
    if not how.is_sorted:
        lines = ["if keys[j] == key:", *(f"    {line}" for line in lines)]
    condition = "j < end and keys[j] == key" if how.is_sorted else "j < end"
    return [f"while {condition}:", *(f"    {line}" for line in (*lines, "j += 1"))]


def _division(meeting: Meeting, dtype: np.dtype[Any]) -> list[str]:
    if not meeting.divide:
        return []
    by = expressions.cast("number", dtype)
    return [f"total = total / {by if meeting.divide == 'mean' else f'sqrt({by})'}"]


def share(gradient: DeviceArray, ids: DeviceArray, divide: str) -> DeviceArray:
    """gradient [S, W…] with every row divided by the number of the sorted `ids` that name it ("mean"), or its root
    ("sqrtn"); by 1 where none does.
    """
    out = gradient.runtime.empty(gradient.shape, gradient.dtype)
    kernel = _sharing(divide, ids.dtype, out.dtype, out.dtype)
    launch_over(kernel, out.size, (math.prod(out.shape[1:]), ids.size), (ids, gradient, out))
    return out


@functools.cache
def _sharing(divide: str, *types: np.dtype[Any]) -> Kernel:
    def search(compare: str) -> list[str]:
        """Lines that move `low` on past all ids that compare so with the segment."""
        return [
            "        high = count",
            "        while low < high:",
            "            middle = (low + high) // 2",
            f"            if ids[middle] {compare} segment:",
            "                low = middle + 1",
            "            else:",
            "                high = middle",
        ]

    lines = [
        "def run(n, width, count, ids, a, o):",
        "    for i in range(cuda.grid(1), n, cuda.gridsize(1)):",
        "        segment = i // width",
        "        low = 0",
        *search("<"),
        "        first = low",
        *search("<="),
        "        number = low - first if low > first else 1",
        f"        total = {widened('a[i]', types[-1])}",
        *(f"        {line}" for line in _division(Meeting("Add", divide=divide), wide(types[-1]))),
        f"        o[i] = {narrowed('total', types[-1])}",
    ]
    return Kernel(_moves.function_of(lines), (*("int64",) * 3, *map(pointer, types)))
