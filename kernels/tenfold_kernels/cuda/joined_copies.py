"""Copies of many small arrays of one GPU as few launches: what goes into a recording, and what comes out of it.

    def run(n, e0, e1, e2, a0, b0, a1, b1, a2, b2, a3, b3):        the elements of a0, then those of a1, …
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            if i < e0:
                b0[i] = a0[i]
            elif i < e1:
                b1[i - e0] = a1[i - e0]
            …

A copy costs the host microseconds, whatever its size. The kernel's arguments are the table of pointers, as in
fused_updates.py; there is one for each of a few numbers of arrays, and what is left of it copies nothing.
"""

from __future__ import annotations

import functools
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.cuda._launch import Kernel, launch_over, pointer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_kernels.cuda._runtime import Runtime

#: Bytes of an array above which its copy is one of its own. Not measured.
SMALL = 64 << 10
#: Arrays of one launch: the kernels that there are, of which the smallest that has room is used.
_ROOM = (4, 8, 16, 32)
#: Fewer copies than this are made one by one.
_LEAST = 3
_WORD = np.dtype(np.uint32)


def copy_all(runtime: Runtime, pairs: Sequence[tuple[DeviceArray, DeviceArray]]) -> None:
    """Copies each first into its second; all are of that GPU, and the two of a pair of one size. Does not wait."""
    small = [pair for pair in pairs if _is_small(*pair)]
    if len(small) < _LEAST:
        small = []
    joined = set(map(id, small))
    for pair in pairs:
        if id(pair) not in joined:
            runtime.copy(*pair)
    for begin in range(0, len(small), _ROOM[-1]):
        _copy(small[begin : begin + _ROOM[-1]])


def _is_small(source: DeviceArray, target: DeviceArray) -> bool:
    """Whether it is joined with others, as words."""
    return 0 < source.nbytes <= SMALL and not (source.nbytes | source.offset | target.offset) % _WORD.itemsize


def _copy(pairs: list[tuple[DeviceArray, DeviceArray]]) -> None:
    room = next(count for count in _ROOM if count >= len(pairs))
    words = [(_words(source), _words(target)) for source, target in pairs]
    ends = list(accumulate(source.size for source, _ in words))
    spare = room - len(words)
    # in place of those that it has room for yet, some that nothing is written to
    arrays = [array for pair in words for array in pair] + [words[0][0]] * (2 * spare)
    launch_over(_compiled(room), ends[-1], [*ends, *ends[-1:] * spare][: room - 1], arrays)


def _words(array: DeviceArray) -> DeviceArray:
    return DeviceArray(array.runtime, array.buffer, (array.nbytes // _WORD.itemsize,), _WORD, array.offset)


@functools.cache
def _compiled(room: int) -> Kernel:
    # Numba, whose import takes half a second
    from tenfold_kernels.cuda._code import elementwise

    return Kernel(elementwise.function(write(room)), (*("int64",) * room, *(pointer(_WORD),) * (2 * room)))


def write(room: int) -> str:
    """The text of `run` for so many arrays."""
    ends = [f"e{number}" for number in range(room - 1)]
    lines = []
    for number in range(room):
        at = f"i - e{number - 1}" if number else "i"
        test = f"i < e{number}:" if number < room - 1 else ""
        lines.append(f"{'elif' if number else 'if'} {test}" if test else "else:")
        lines.append(f"    b{number}[{at}] = a{number}[{at}]")
    arrays = [f"{name}{number}" for number in range(room) for name in "ab"]
    return "\n".join(
        (
            f"def run({', '.join(['n', *ends, *arrays])}):",
            "    for i in range(cuda.grid(1), n, cuda.gridsize(1)):",
            *(f"        {line}" for line in lines),
            "",
        )
    )
