"""Many numbers of a Philox stream at once, by machine code (philox_code.py); few of them are NumPy's work (philox.py).

The code takes some 50 ms to make, so it is made when a process has drawn as many numbers as take NumPy half as long.
Used by cpu/random.py.
"""

from __future__ import annotations

import ctypes
import logging
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.parallel import in_parts
from tenfold_kernels.philox import LANES, NORMAL, UNIFORM, WORDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array
    from tenfold_kernels.philox import Philox

_log = logging.getLogger(__name__)

#: Numbers of a kind that a process draws before there is code for them.
_MANY = {WORDS: 1 << 19, UNIFORM: 1 << 19, NORMAL: 1 << 18}
#: Blocks that are worth handing to another thread.
_LEAST = {WORDS: 1 << 16, UNIFORM: 1 << 16, NORMAL: 1 << 14}
#: Turns of truncated normals that are made at a time.
_PIECE = 1 << 11

_Functions = dict[str, "Callable[..., None]"]


class Draws:
    """The code of one process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Kind → numbers drawn so far, about: threads may count at once. Empty where no code of ours can run.
        self._drawn = dict.fromkeys(_MANY, 0)
        #: Kind → its functions, by name.
        self._made: dict[str, _Functions] = {}

    def functions(self, kind: str, numbers: int) -> _Functions | None:
        """The code for one more call of so many numbers; None while it is not worth it. Blocks once for each kind."""
        made, drawn = self._made.get(kind), self._drawn
        if made is not None or kind not in drawn:
            return made
        drawn[kind] += numbers
        if drawn[kind] < _MANY[kind]:
            return None
        with self._lock:
            if kind not in self._made and kind in self._drawn:
                self._make(kind)
        return self._made.get(kind)

    def _make(self, kind: str) -> None:
        try:
            from tenfold_kernels import philox_code

            addresses, engine = philox_code.compile_draw(kind)
        except Exception as error:
            # a machine that runs no code of ours: as before, with NumPy
            _log.info("Random numbers are drawn with NumPy: %s: %s", type(error).__name__, error)
            self._drawn = {}
            return
        # the code stays until the process has gone: a thread may be in it when the interpreter ends
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
        self._made[kind] = {name: _c_function(name, address) for name, address in addresses.items()}


def _c_function(name: str, address: int) -> Callable[..., None]:
    # the GIL is released
    arguments = 5 if name == "tenfold_take_inside" else 9
    function: Any = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * arguments)(address)
    return function  # type: ignore[no-any-return]


draws = Draws()


def draw(kind: str, position: Philox, blocks: int) -> Array | None:
    """The four numbers of each block from the position on: [blocks, 4], uint32 for WORDS, else float32.

    None where NumPy should do it.
    """
    functions = draws.functions(kind, 4 * blocks)
    if functions is None:
        return None
    stream = _Stream(functions, kind, position)
    out = stream.rows_for(blocks)
    in_parts(partial(stream.fill, out), len(out) // LANES, _LEAST[kind] // LANES)
    return out[:blocks]


def draw_truncated(position: Philox, groups: int, stride: int) -> Array | None:
    """float32 [groups, 4]: normals inside ±2, of as many blocks as that takes, for group g from `stride`·g on.

    None where NumPy should do it.
    """
    functions = draws.functions(NORMAL, 4 * groups)
    if functions is None:
        return None
    stream = _Stream(functions, NORMAL, position, stride)
    out = stream.rows_for(groups)
    full = np.empty(len(out), np.bool_)

    def part(first: int, last: int) -> None:
        # piece by piece, what lies between needs no fresh memory
        for begin in range(first, last, _PIECE):
            stream.fill_truncated(out, full, begin, min(begin + _PIECE, last))

    in_parts(part, len(out) // LANES, _LEAST[NORMAL] // LANES)
    return out[:groups]


class _Stream:
    """The blocks from a position on, or every `stride`-th of them. Their numbers are written by turns of LANES."""

    def __init__(self, functions: _Functions, kind: str, position: Philox, stride: int = 1) -> None:
        self._draw, self._take = functions[f"tenfold_draw_{kind}"], functions.get("tenfold_take_inside")
        self._dtype = np.uint32 if kind == WORDS else np.float32
        words = (position.key, position.counter, position.counter >> 64)
        self._position = [ctypes.c_int64(word & (1 << 64) - 1).value for word in words]
        self._stride = stride

    def rows_for(self, blocks: int) -> Array:
        """Room for so many blocks, and for what fills the last turn."""
        return np.empty((-(-blocks // LANES) * LANES, 4), self._dtype)

    def fill(self, out: Array, first: int, last: int, full: Array | None = None) -> None:
        """Writes these turns. `full` is given, of normals, where all four of a block lie inside ±2."""
        flags = 0 if full is None else full.ctypes.data
        self._draw(*self._position, self._stride, 0, first, last, out.ctypes.data, flags)

    def _at(self, starts: Array) -> Array:
        """The numbers of the blocks at these offsets: uint64 [n] → [n, 4]."""
        out = self.rows_for(starts.size)
        padded = np.concatenate((starts, np.zeros(len(out) - starts.size, np.uint64)))
        self._draw(*self._position, 0, padded.ctypes.data, 0, len(out) // LANES, out.ctypes.data, 0)
        return out

    def fill_truncated(self, out: Array, full: Array, first: int, last: int) -> None:
        """Writes these turns, of normals inside ±2: each row takes from further blocks until it has four."""
        assert self._take is not None
        self.fill(out, first, last, full)
        # most rows are full after one block
        still_open = np.flatnonzero(~full[first * LANES : last * LANES]) + first * LANES
        filled = np.zeros(still_open.size, np.uint8)
        starts = still_open.astype(np.uint64) * np.uint64(self._stride)
        candidates = out[still_open]
        while still_open.size:
            arrays = candidates, still_open, filled, out
            self._take(still_open.size, *(each.ctypes.data for each in arrays))
            chosen = filled < 4
            still_open, starts, filled = still_open[chosen], starts[chosen] + np.uint64(1), filled[chosen]
            candidates = self._at(starts)
