"""What a loop is before anything is compiled: its function, its types, and the bodies that it inlines.

Used by compiling.py, which is asked for loops, by loading.py and by machine_code.py, which compiles them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np


#: In the place of a loop's argument codes: a C function of two int64s, of which the address is wanted.
CALLBACK = "callback"


class Inlined:
    """A function of numbers that LLVM inlines into every loop that calls it. As it is, it runs in Python."""

    __slots__ = ("dispatcher", "py_func")

    def __init__(self, py_func: Callable[..., Any]) -> None:
        self.py_func = py_func
        #: Numba's, once a loop that calls it is compiled; machine_code.py puts it here.
        self.dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)


@dataclass(frozen=True, slots=True)
class LoopSpec:
    """One loop for one choice of types. Equal ones are the same machine code."""

    function: Callable[..., Any]
    codes: str
    element: np.dtype[Any]
    index: np.dtype[Any]
    result: str = ""
    fastmath: frozenset[str] = frozenset()
