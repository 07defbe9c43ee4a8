"""Reductions as text: a row each, and the two kernels that one is made into.

Arrays count as [outer, reduced, inner]; a result is for one `outer` and one `inner`, and for one of `chunks` parts of
the reduced dimension where a few results are of very many elements. One thread makes a result where there are many
(`write_by_thread`), one block where there are few and inner is 1 (`write_by_block`): its threads take every so many-th
element, and their results meet in a tree. Always in the same order, so the same result each time.

_reduce.py chooses and launches. {x} is an element, {y} that of a second array at the same place, {m} a number of the
element's channel; {a} and {b} are partial results, {n} counts what was reduced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tenfold_kernels.cuda.narrow_text import narrowed, wide, widened
from tenfold_kernels.fusion import expressions


@dataclass(frozen=True, slots=True)
class Row:
    """How one reduction is written. `neutral` is 0, 1, or "lowest" or "highest" of the type."""

    load: str
    combine: str
    neutral: int | str
    finish: str = "{a}"


_ADD = "{a} + {b}"
ROWS: dict[str, Row] = {
    "Sum": Row("{x}", _ADD, 0),
    "Mean": Row("{x}", _ADD, 0, "{a} / {n}"),
    "Prod": Row("{x}", "{a} * {b}", 1),
    # nan wins
    "Max": Row("{x}", "{a} if {a} >= {b} or {a} != {a} else {b}", "lowest"),
    "Min": Row("{x}", "{a} if {a} <= {b} or {a} != {a} else {b}", "highest"),
    "EuclideanNorm": Row("{x} * {x}", _ADD, 0, "sqrt({a})"),
    "L2Loss": Row("{x} * {x}", _ADD, 0, "{a} / {two}"),
    "All": Row("{x}", "{a} & {b}", 1),
    "Any": Row("{x}", "{a} | {b}", 0),
    # of a batch normalisation
    "Variance": Row("({x} - {m}) * ({x} - {m})", _ADD, 0, "{a} / {n}"),
    "CenteredProduct": Row("{x} * ({y} - {m})", _ADD, 0),
}
#: The mean of whole numbers loses its fraction towards zero, as in C.
_WHOLE_MEAN = {"i": "{a} // {n} if {a} >= {zero} else -(-{a} // {n})", "u": "{a} // {n}"}
#: What there is of complex numbers: what ends otherwise than of real ones, or does not.
COMPLEX = {"Sum": "{a}", "Prod": "{a}", "Mean": "complex({a}.real / {n}, {a}.imag / {n})"}


@dataclass(frozen=True, slots=True)
class Pass:
    """One launch of a reduction. The first one reads elements, later ones partial results; the last one finishes."""

    op: str
    #: Of the elements.
    dtype: np.dtype[Any]
    first: bool
    last: bool
    #: The result stays a partial one: of half, float32.
    as_wide: bool = False

    @property
    def partial(self) -> np.dtype[Any]:
        """The type of partial results: whole numbers have their mean taken in 64 bits, a bool is a byte, of half
        it is float32.
        """
        if self.dtype.kind == "b":
            return np.dtype(np.uint8)
        if self.op == "Mean" and self.dtype.kind in "iu":
            return np.dtype(np.int64 if self.dtype.kind == "i" else np.uint64)
        return wide(self.dtype)

    @property
    def count(self) -> np.dtype[Any]:
        """The type of {n}: that of partial results, of their parts where they are complex."""
        return np.zeros((), self.partial).real.dtype

    @property
    def given(self) -> np.dtype[Any]:
        return self.dtype if self.first else self.partial

    @property
    def result(self) -> np.dtype[Any]:
        return self.dtype if self.last and not self.as_wide else self.partial

    @property
    def operands(self) -> str:
        """Which arrays it reads: "x", and "y" and "m" where the row has them."""
        return "x" + "".join(name for name in "ym" if self.first and f"{{{name}}}" in ROWS[self.op].load)

    def neutral(self) -> str:
        start, dtype = ROWS[self.op].neutral, self.partial
        if not isinstance(start, str):
            return expressions.literal(start, dtype)
        is_low = start == "lowest"
        if dtype.kind == "f":
            return expressions.literal(-np.inf if is_low else np.inf, dtype)
        most = expressions.literal(np.iinfo(dtype).max, dtype)
        if not is_low:
            return most
        # The lowest has no literal of its own: that would be a number too large, negated.
        return expressions.cast(f"~{most}", dtype) if dtype.kind == "i" else expressions.literal(0, dtype)

    def load(self) -> str:
        if not self.first:
            return "x"
        if self.dtype.kind == "b":
            return "np.uint8(1) if x else np.uint8(0)"
        return self.loaded("x")

    def loaded(self, x: str) -> str:
        """What an element is added up as."""
        return expressions.cast(ROWS[self.op].load.format(x=x, y="y", m="m"), self.partial)

    def combine(self, a: str, b: str) -> str:
        return expressions.cast(ROWS[self.op].combine.format(a=a, b=b), self.partial)

    def finish(self, a: str, n: str = "n") -> str:
        if not self.last:
            return a
        if self.dtype.kind == "b":
            return f"{a} != np.uint8(0)"
        is_whole_mean = self.op == "Mean" and self.dtype.kind in "iu"
        text = _WHOLE_MEAN[self.dtype.kind] if is_whole_mean else ROWS[self.op].finish
        if self.dtype.kind == "c":
            text = COMPLEX[self.op]
        zero, two = (expressions.literal(number, self.partial) for number in (0, 2))
        return narrowed(expressions.cast(text.format(a=a, n=n, zero=zero, two=two), wide(self.dtype)), self.result)

    def read(self, at: str, channel: str, depth: int) -> tuple[list[str], list[str]]:
        """(lines before the loop over the reduced elements, lines in it), which make `b` of the element at `at`."""
        before = [f"m = am[({channel}) % channels]"] if "m" in self.operands else []
        inside = [f"{name} = {widened(f'a{name}[{at}]', self.given)}" for name in self.operands if name != "m"]
        inside.append(f"b = {self.load()}")
        inside.append(f"total = {self.combine('total', 'b')}")
        return [" " * 8 + line for line in before], [" " * depth + line for line in inside]


def write_by_thread(made: Pass) -> str:
    """run(count, inner, reduced, chunks, chunk, channels, n, arrays…, out), a thread a result of `count`."""
    before, inside = made.read("at", "o * inner + k", 12)
    arrays = ", ".join(f"a{name}" for name in made.operands)
    return f"""\
def run(count, inner, reduced, chunks, chunk, channels, n, {arrays}, out):
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        k = i % inner
        o = i // inner // chunks
        begin = (i // inner) % chunks * chunk
        at = (o * reduced + begin) * inner + k
{_text(before)}        total = {made.neutral()}
        for r in range(begin, min(begin + chunk, reduced)):
{_text(inside)}            at += inner
        out[i] = {made.finish("total")}
"""


def write_by_block(made: Pass) -> str:
    """The same arguments, inner being 1: a block a result, of a power of two of threads that share an element each."""
    before, inside = made.read("o * reduced + r", "o", 12)
    arrays = ", ".join(f"a{name}" for name in made.operands)
    return f"""\
def run(count, inner, reduced, chunks, chunk, channels, n, {arrays}, out):
    part = cuda.shared.array(0, types.{made.partial.name})
    t = cuda.threadIdx.x
    for i in range(cuda.blockIdx.x, count, cuda.gridDim.x):
        o = i // chunks
        begin = i % chunks * chunk
{_text(before)}        total = {made.neutral()}
        for r in range(begin + t, min(begin + chunk, reduced), cuda.blockDim.x):
{_text(inside)}        part[t] = total
        cuda.syncthreads()
        half = cuda.blockDim.x // 2
        while half > 0:
            if t < half:
                part[t] = {made.combine("part[t]", "part[t + half]")}
            cuda.syncthreads()
            half = half // 2
        if t == 0:
            out[i] = {made.finish("part[0]")}
        cuda.syncthreads()
"""


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
