"""Updates of rows by number, on a GPU: several updates of one row are made in their order, by one thread a column.

    rows       4  1  4  9  1        `first` are the positions that no other position of the row precedes; from there
    first      x  x     x           `following` leads through all that have it. A thread takes a column of a first
    following  2  4 -1 -1 -1        position, reads the row's element, walks, and writes it once.

So the result is the CPU's, bit for bit where the arithmetic is, in whatever order threads run. Long lists are sorted
to be linked; in short ones, each position looks at all others. A row that is named by a large part of the list is the
work of few threads. Used by state_apply.py; updates that only meet each other are _scatter.py's.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cuda import _sorting
from tenfold_kernels.cuda._launch import Kernel, launch_over, pointer
from tenfold_kernels.cuda.narrow_text import narrowed, widened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_kernels.cuda._arrays import DeviceArray

#: Up to so many, a thread for each looks at all others: one launch, against a dozen of a sort. Not measured.
FEW = 4096
_BYTE, _INT64 = np.dtype(np.uint8), np.dtype(np.int64)


def update_rows(kernel: Kernel, rows: DeviceArray, limit: int, width: int, arrays: Sequence[DeviceArray]) -> None:
    """Launches a kernel of `text` over tables of `limit` rows of `width` elements; those of other rows are left out."""
    count, runtime = rows.size, rows.runtime
    if not count * width:
        return
    first, following = runtime.empty((count,), _BYTE), runtime.empty((count,), _INT64)
    if count <= FEW or max(count, limit) >= 1 << 31:
        launch_over(_link(rows.dtype.name), count, (limit,), (rows, first, following))
    else:
        launch_over(_link_sorted(), count, (limit,), (*_sorting.sort(rows, limit), first, following))
    launch_over(kernel, count * width, (width, limit), (first, following, rows, *arrays))


@functools.cache
def _link(index: str) -> Kernel:
    from tenfold_kernels.cuda._code import rows

    return Kernel(rows.link, ("int64", "int64", f"{index}*", "uint8*", "int64*"))


@functools.cache
def _link_sorted() -> Kernel:
    from tenfold_kernels.cuda._code import rows

    return Kernel(rows.link_sorted, ("int64", "int64", "int32*", "int32*", "uint8*", "int64*"))


def text(
    variables: Sequence[str], others: Sequence[str], prepared: Sequence[str], step: str, dtype: np.dtype[Any]
) -> str:
    """The text of `run`, whose arguments are (elements of the updates, width, rows of the tables, first, following,
    rows, `variables`, `others`).

    `prepared` are lines before the loop; `step` is one update of x0, x1…, the elements of the variables, by what is at
    `place`, the element's place in the updates. Elements of half are rounded after the last.
    """
    reads = [f"            x{i} = {widened(f'{name}[at]', dtype)}" for i, name in enumerate(variables)]
    writes = [f"            {name}[at] = {narrowed(f'x{i}', dtype)}" for i, name in enumerate(variables)]
    return "\n".join(
        (
            f"def run({', '.join(['n', 'width', 'limit', 'first', 'following', 'rows', *variables, *others])}):",
            *(f"    {line}" for line in prepared),
            "    for i in range(cuda.grid(1), n, cuda.gridsize(1)):",
            "        k = i // width",
            "        row = rows[k]",
            # looked at again: an assignment may have come since the list was linked
            "        if first[k] != 0 and 0 <= row < limit:",
            "            j = i - k * width",
            "            at = row * width + j",
            *reads,
            "            while k >= 0:",
            "                place = k * width + j",
            f"                {step}",
            "                k = following[k]",
            *writes,
            "",
        )
    )


def types(index: np.dtype[Any], arrays: Sequence[np.dtype[Any]]) -> tuple[str, ...]:
    """The types of the arguments of `text`'s function."""
    return ("int64", "int64", "int64", "uint8*", "int64*", pointer(index), *map(pointer, arrays))
