"""The door to the compiled loops: one loop for one element type, with an explicit signature, so that no call compiles.

Used by the other modules here, from kernel builders, that is while a partition is registered. Nothing here imports
Numba, which takes half a second until its first loop runs: a loop that has a stand-in, NumPy code of the same meaning,
runs as that until its machine code has been loaded beside the steps (loading.py); one without is compiled at once
(machine_code.py). `TENFOLD_COMPILE=blocking` compiles every loop at once, for tests and for measuring.
"""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import invalid

from . import objects
from .loading import LoopLoader
from .loop_spec import Inlined, LoopSpec
from .shells import Heavy, StandIn

if TYPE_CHECKING:
    from collections.abc import Callable

MODES = ("background", "blocking")
MODE_NAME = "TENFOLD_COMPILE"


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a body for inlining into the loops of this package."""
    return Inlined(function)


def _mode_of(text: str | None) -> str:
    mode = text or MODES[0]
    if mode not in MODES:
        raise invalid(f"{MODE_NAME} is {mode!r}; it can be {', '.join(map(repr, MODES))}.")
    return mode


def _with_private_indices(stand_in: Callable[..., Any], codes: str) -> Callable[..., Any]:
    """`stand_in` with copies of the index arrays that it reads: NumPy checks all of them first and then reads them
    again, and another step may write to them meanwhile. The loop needs none: it checks what it has read (reading.py).
    """
    places = [place for place, code in enumerate(codes.split()) if code.startswith("i")]
    if not places:
        return stand_in

    def call(*arguments: Any) -> Any:
        given = list(arguments)
        for place in places:
            given[place] = given[place].copy()
        return stand_in(*given)

    return call


class Loops:
    """The loops of this process. Thread-safe."""

    def __init__(self, mode: str | None = None) -> None:
        """`mode` None: what TENFOLD_COMPILE says when the first loop is asked for."""
        self.mode = mode
        self.loader = LoopLoader()
        #: One compilation at a time: two builders of one loop must not compile it twice.
        self._lock = threading.Lock()
        self._loops: dict[LoopSpec, Callable[..., Any]] = {}

    def get(self, spec: LoopSpec, stand_in: Callable[..., Any] | None, *, heavy: bool = False) -> Callable[..., Any]:
        """The loop, or its stand-in in a shell that will call the loop. Blocks without one, while LLVM works.

        Raises InvalidArgumentError for a TENFOLD_COMPILE that there is not.
        """
        with self._lock:
            loop = self._loops.get(spec)
            if loop is None:
                if self.mode is None:
                    self.mode = _mode_of(os.environ.get(MODE_NAME))
                loop = self._loops[spec] = self._make(spec, stand_in, heavy)
            return loop

    def _make(self, spec: LoopSpec, stand_in: Callable[..., Any] | None, heavy: bool) -> Callable[..., Any]:
        if stand_in is None or self.mode == "blocking":
            return objects.compile_spec(spec)
        stand_in = _with_private_indices(stand_in, spec.codes)
        # a partial of nothing costs 30 ns a call, and can be given another function while it is in use
        shell: partial[Any] = partial((Heavy if heavy else StandIn)(stand_in))
        self.loader.add(spec, shell)
        return shell


#: Of this process.
loops = Loops()


def compile_loop(
    function: Callable[..., Any],
    codes: str,
    element: Any,
    index: Any = np.int64,
    *,
    result: str = "",
    fastmath: frozenset[str] = frozenset(),
    stand_in: Callable[..., Any] | None = None,
    heavy: bool = False,
) -> Callable[..., Any]:
    """`function` compiled for arguments described by `codes`: r2 read-only array of rank 2, w1 writable vector, i1
    read-only index vector, x1 writable index vector, s element, n int64, b bool; v2 as r2, in any strides. CALLBACK
    in their place: a function that gives the address of `function` as a C function of two int64s.

    `stand_in` does the same in NumPy: it is what runs until the loop has been loaded in the background, and must stay
    referenced by its module. It is `heavy` where it takes many times as long as the loop: a call then waits for machine
    code that is on disk (loading.py). Without one the call blocks while it compiles, once a type. Calls take
    C-contiguous arrays only, but for v; a writable array is accepted where a read-only one is declared.
    """
    return loops.get(
        LoopSpec(function, codes, np.dtype(element), np.dtype(index), result, fastmath), stand_in, heavy=heavy
    )
