"""A fused run over large arrays in parts that helper threads may take: some of the rows of each array.

No element depends on another one, so that the parts change no bit. What does not lie in one piece, such as a slice of a
gradient, is copied block by block, each of which the run then finds in the second cache. Sums run on one thread: their
order would hang on how many threads there are. Used by runs.py; helpers: tenfold_kernels/parallel.py.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.parallel import in_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Elements of a run of one op that are worth a part of their own, 50–100 µs; and of a run of many.
_OF_ONE_OP, _OF_MANY = 1 << 17, 1 << 14
#: Elements from which even one op is worth a run: a compiled loop on all cores beats a NumPy function on one; and one
#: pass of it, on one, what is several of NumPy's.
LARGE, LARGE_OF_SEVERAL = 2 * _OF_ONE_OP, 1 << 14
#: Elements of a block, of each array that is copied.
_BLOCK = 1 << 15


class Shares:
    """How a run is cut."""

    def __init__(self, native: Callable[..., bool], roles: Sequence[str], ops: int, outputs: int) -> None:
        """`roles` are those of the inputs that `native` gets, as runs.py has them."""
        self._native = native
        #: Which of the arguments have rows, inputs and then outputs; the first array of all elements.
        self._cut = [role in ("full", "column") for role in roles] + [True] * outputs
        self._full = [place for place, role in enumerate(roles) if role == "full"]
        self._columns = [place for place, role in enumerate(roles) if role == "column"]
        self._least = max(_OF_ONE_OP // ops, _OF_MANY)
        #: Elements from which the run is cut.
        self.least = 2 * self._least

    def __call__(self, *arguments: Any) -> bool:
        """What `native` gives: True where the arguments do not fit. Raises TypeError where it does, but not of arrays
        with rows that do not lie in one piece.
        """
        # `native` compares what it gets, and parts of arrays that differ may be alike
        shape = arguments[self._full[0]].shape
        if any(arguments[place].shape != shape for place in self._full):
            return True
        if any(arguments[place].shape[:-1] != shape[:-1] for place in self._columns):
            return True
        wrong: list[bool] = []
        in_pieces = [i for i, x in enumerate(arguments) if self._cut[i] and not x.flags.c_contiguous]
        each = math.prod(shape[1:])
        step = max(1, _BLOCK // each) if in_pieces else shape[0]

        def part(first: int, last: int) -> None:
            for begin in range(first, last, step):
                rows = slice(begin, min(begin + step, last))
                given = [x[rows] if cut else x for x, cut in zip(arguments, self._cut, strict=True)]
                for i in in_pieces:
                    given[i] = np.ascontiguousarray(given[i])
                if self._native(*given):
                    wrong.append(True)

        in_parts(part, shape[0], -(-self._least // each))
        return bool(wrong)
