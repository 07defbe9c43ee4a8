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
from tenfold_kernels.cuda import _moves
from tenfold_kernels.cuda._launch import Kernel, launch_over, pointer
from tenfold_kernels.cuda._sorting import sort
from tenfold_kernels.cuda.loop_text import expression
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

    def of_pieces(self) -> Meeting:
        """What updates meet each other by, before they meet what there is."""
        return Meeting("Add" if self.op == "Sub" else self.op, keeps=False)


def ends(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def scatter(
    meeting: Meeting, target: DeviceArray, ids: DeviceArray, rows: DeviceArray, picks: DeviceArray | None = None
) -> None:
    """Changes target [S, W…] in place by ids [N] and rows [N, W…], or [L, W…] of which `picks` [N] chooses.

    Elements have a type that expressions know, or any type if updates replace. Raises UnimplementedError for 2³¹ rows.
    """
    count, width = ids.size, math.prod(target.shape[1:])
    if not count or not width or not target.shape[0]:
        return
    if max(count, target.shape[0]) >= 1 << 31:
        raise errors.UnimplementedError(None, None, "scatters on a GPU are of less than 2147483648 rows and updates")
    if not meeting.op:
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
    how = order is not None, picks is not None
    pieces: list[DeviceArray] = []
    if is_sorted and keys.size > PIECE:
        count = -(-keys.size // PIECE)
        pieces = [target.runtime.empty((count * width,), target.dtype)]
        pieces.append(target.runtime.empty((count,), np.dtype(np.int32)))
        arrays = (keys, *read, rows, *pieces)
        kernel = _pieces(meeting.of_pieces(), *how, PIECE, *[each.dtype for each in arrays])
        launch_over(kernel, count * width, numbers, arrays)
    arrays = (keys, *read, rows, *pieces, target)
    kernel = _whole(meeting, is_sorted, *how, PIECE if pieces else 0, *[each.dtype for each in arrays])
    launch_over(kernel, keys.size * width, numbers, arrays)


def _names(ordered: bool, picked: bool) -> str:
    """(elements, W, N, S, L, keys, [order], [picks], rows), as both kernels begin."""
    return "n, width, count, limit, chosen, keys, " + "order, " * ordered + "picks, " * picked + "rows"


@functools.cache
def _whole(
    meeting: Meeting, is_sorted: bool, ordered: bool, picked: bool, piece: int, *types: np.dtype[Any]
) -> Kernel:
    """The kernel that changes the target; after `_pieces`, where runs may be longer than `piece`."""
    dtype = types[-1]
    end = f"(k // {piece} + 1) * {piece}" if piece else "count"
    lines = [
        f"def run({_names(ordered, picked)}{', pieces, sizes' if piece else ''}, o):",
        "    for i in range(cuda.grid(1), n, cuda.gridsize(1)):",
        "        k, w = i // width, i % width",
        "        key = keys[k]",
        "        first = 0 <= key < limit",
        *(_first_of_run() if is_sorted else _first_of_all()),
        "        if first:",
        "            at = key * width + w",
        f"            total = {'o[at]' if meeting.keeps else expressions.literal(meeting.nothing(dtype), dtype)}",
        "            number = 0",
        "            j = k",
        f"            end = {end}",
        "            end = end if end < count else count",
        *(f"            {line}" for line in _updates(meeting, is_sorted, ordered, picked, dtype)),
    ]
    if piece:
        lines += [
            f"            p = k // {piece} + 1",
            f"            while p * {piece} < count and j == end and keys[p * {piece}] == key:",
            "                x = pieces[p * width + w]",
            f"                total = {_met(meeting, dtype)}",
            "                number += sizes[p]",
            "                p += 1",
        ]
    lines += [*(f"            {line}" for line in _division(meeting, dtype)), "            o[at] = total"]
    return Kernel(_moves.function_of(lines), (*("int64",) * 5, *map(pointer, types)))


@functools.cache
def _pieces(meeting: Meeting, ordered: bool, picked: bool, piece: int, *types: np.dtype[Any]) -> Kernel:
    """The kernel that gives, of each piece that begins inside of a run, what its updates of that run make together, and
    how many they are.
    """
    dtype = types[-2]
    lines = [
        f"def run({_names(ordered, picked)}, o, sizes):",
        "    for i in range(cuda.grid(1), n, cuda.gridsize(1)):",
        "        p, w = i // width, i % width",
        f"        k = p * {piece}",
        "        key = keys[k]",
        "        if p > 0 and 0 <= key < limit and keys[k - 1] == key:",
        f"            total = {expressions.literal(meeting.nothing(dtype), dtype)}",
        "            number = 0",
        "            j = k",
        f"            end = k + {piece} if k + {piece} < count else count",
        *(f"            {line}" for line in _updates(meeting, True, ordered, picked, dtype)),
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


def _updates(meeting: Meeting, is_sorted: bool, ordered: bool, picked: bool, dtype: np.dtype[Any]) -> list[str]:
    """Lines that go from number j to `end`, of sorted ones to the end of the run, and work updates into `total`."""
    row = "order[j]" if ordered else "j"
    update = ["x = rows[row * width + w]", f"total = {_met(meeting, dtype)}"]
    if picked:
        update = ["if 0 <= row < chosen:", *(f"    {line}" for line in update)]
    lines = [f"row = picks[{row}]" if picked else f"row = {row}", *update, "number += 1"]
    if not is_sorted:
        lines = ["if keys[j] == key:", *(f"    {line}" for line in lines)]
    condition = "j < end and keys[j] == key" if is_sorted else "j < end"
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
        "        total = a[i]",
        *(f"        {line}" for line in _division(Meeting("Add", divide=divide), types[-1])),
        "        o[i] = total",
    ]
    return Kernel(_moves.function_of(lines), (*("int64",) * 3, *map(pointer, types)))
