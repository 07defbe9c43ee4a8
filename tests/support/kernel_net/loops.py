"""Loops of kernels without their compiler: as the Python that they are written in, or as their stand-ins.

Small cases need no machine code, and no type of a loop has to be compiled for them. Where Python raises an error that
machine code does not, of a number outside a function's domain, the loop is compiled after all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled import compiling, intrinsics
from tenfold_kernels.cpu._compiled.loop_spec import CALLBACK

if TYPE_CHECKING:
    import pytest

    from tenfold_kernels.cpu._compiled.loop_spec import LoopSpec


class StandIns(compiling.Loops):
    """Each loop is its stand-in, where it has one."""

    def __init__(self) -> None:
        super().__init__("blocking")
        #: Whether a loop with a stand-in was asked for.
        self.found = False

    def get(self, spec: LoopSpec, stand_in: Any, *, heavy: bool = False) -> Any:
        self.found |= stand_in is not None
        return stand_in if stand_in is not None else self.other(spec)

    def other(self, spec: LoopSpec) -> Any:
        """What a loop is that has no stand-in."""
        return self.in_python(spec)

    def in_python(self, spec: LoopSpec) -> Any:
        if spec.codes == CALLBACK:
            return super().get(spec, None)

        def run(*arguments: Any) -> Any:
            before = [each.copy() if type(each) is np.ndarray else each for each in arguments]
            try:
                return spec.function(*arguments)
            except (ValueError, ArithmeticError):
                for now, old in zip(arguments, before, strict=True):
                    if type(now) is np.ndarray and now.flags.writeable:
                        now[...] = old
                return super(StandIns, self).get(spec, None)(*arguments)

        return run


class InPython(StandIns):
    """Each loop is what it is written as."""

    def get(self, spec: LoopSpec, stand_in: Any, *, heavy: bool = False) -> Any:
        self.found |= stand_in is not None
        return self.in_python(spec)


def _tile(
    rows: int, vectors: int, a: Any, a_at: int, a_row: int, a_out: int, a_in: int,
    b: Any, b_at: int, b_out: int, b_in: int, outer: int, inner: int, c: Any, c_at: int, c_row: int, add: bool,
) -> None:  # fmt: skip
    """What tiles.tile does in registers."""
    width = vectors * intrinsics.lanes(c.dtype)
    for r in range(rows):
        line = c[c_at + r * c_row :][:width]
        if not add:
            line[:] = 0
        for i in range(outer):
            for j in range(inner):
                line += a[a_at + r * a_row + i * a_out + j * a_in] * b[b_at + i * b_out + j * b_in :][:width]


def _window_tile(
    rows: int, channels: int, a: Any, a_at: int, a_row: int, a_out: int, a_in: int,
    b: Any, b_at: int, b_out: int, b_in: int, outer: int, inner: int, c: Any, c_at: int, c_row: int, add: bool,
) -> None:  # fmt: skip
    """What tiles.window_tile does in registers."""
    for r in range(rows):
        line = c[c_at + r * c_row :][:channels]
        if not add:
            line[:] = 0
        for i in range(outer):
            for j in range(inner):
                read = a[a_at + r * a_row + i * a_out + j * a_in :][:channels]
                line += read * b[b_at + i * b_out + j * b_in :][:channels]


_PLAIN = {
    "once": lambda array, i: array[i],
    "once_2": lambda array, i, j: array[i, j],
    "fetch_ahead": lambda table, row: None,
    "sigmoid_single": lambda x: 1 / (np.exp(-x) + 1),
    "tanh_single": np.tanh,
    "tile": _tile,
    "window_tile": _window_tile,
}


def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the intrinsics that small cases reach a meaning in Python."""

    def call(self: Any, *arguments: Any) -> Any:
        return _PLAIN[self._name](*arguments)

    monkeypatch.setattr(intrinsics.Intrinsic, "__call__", call, raising=False)
