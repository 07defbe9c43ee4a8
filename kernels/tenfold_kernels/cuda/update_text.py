"""The optimizers' kernels as text: their loop around a body of scalar.py, and what comes before it.

    def run(n, var, accum, grad, lr_at, momentum_at):
        lr = lr_at[0]
        momentum = momentum_at[0]
        s0 = lr
        s1 = momentum
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            x0, x1 = body(var[i], accum[i], grad[i], s0, s1, True)
            var[i] = x0
            accum[i] = x1

The scalars are read from the GPU's memory by every thread: some are computed there (Adam's powers are variables), and
to bring them to the host would make each step wait. What a rule makes of its scalars (`prepare`) it does here once with
symbols, and the text of that is what each thread computes. Used by state_apply.py.

Several variables that share their scalars may be updated by one kernel, fused_updates.py: its arguments are a table of
where they end and where they are, in which each thread looks its element up.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold_kernels import scalar
from tenfold_kernels.cuda import _rows
from tenfold_kernels.cuda._launch import Kernel, pointer
from tenfold_kernels.cuda.narrow_text import narrowed, wide, widened
from tenfold_kernels.fusion import expressions
from tenfold_kernels.optimizer_rules import layout_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from tenfold_kernels.optimizer_rules import Rule

#: What the CPU's loop works out of its arguments before its elements: body → its scalar arguments.
_IN_THE_LOOP = {"adam": ("adam_rate({2}, {0}, {1}, {6})", "{3}", "{6} - {3}", "{6} - {4}", "{5}", "{7}")}


class Symbol:
    """A number by the text that computes it; arithmetic with it writes more text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: Symbol) -> Symbol:
        return Symbol(f"({self.text} + {other.text})")

    def __sub__(self, other: Symbol) -> Symbol:
        return Symbol(f"({self.text} - {other.text})")

    def __mul__(self, other: Symbol) -> Symbol:
        return Symbol(f"({self.text} * {other.text})")

    def __truediv__(self, other: Symbol) -> Symbol:
        return Symbol(f"({self.text} / {other.text})")

    def __neg__(self) -> Symbol:
        return Symbol(f"(-{self.text})")


@dataclass(frozen=True, slots=True)
class Update:
    """What is compiled into a kernel."""

    op: str
    #: The bool attributes.
    flags: tuple[tuple[str, bool], ...]
    dtype: np.dtype[Any]
    #: Of the scalars, in the order of the op's inputs.
    scalars: tuple[np.dtype[Any], ...]
    #: Of the indices; None for a dense op.
    index: np.dtype[Any] | None


@functools.lru_cache(1024)
def compiled(update: Update) -> Kernel:
    """The kernel: (n, variables…, grad, scalars…) of a dense op, see _rows.text for what a sparse one takes."""
    arrays = [update.dtype] * (len(layout_of(update.op).variables) + 1) + list(update.scalars)
    run = _function(update, write(update))
    if update.index is not None:
        return Kernel(run, _rows.types(update.index, arrays))
    return Kernel(run, ("int64", *map(pointer, arrays)))


@functools.lru_cache(256)
def compiled_many(update: Update, count: int) -> Kernel:
    """The kernel of so many dense updates: (n, where each but the last ends, variables… and grad of each, scalars…)."""
    arrays = [update.dtype] * (len(layout_of(update.op).variables) + 1) * count + list(update.scalars)
    return Kernel(_function(update, write_many(update, count)), (*("int64",) * count, *map(pointer, arrays)))


def _function(update: Update, text: str) -> Any:
    # Numba, whose import takes half a second
    from tenfold_kernels.cuda._code import bodies, elementwise

    body = getattr(scalar, layout_of(update.op).rule.loop)
    used = {"body": bodies.device_function(body), "adam_rate": bodies.device_function(scalar.adam_rate)}
    return elementwise.function(text, used, bodies.text_of(body, scalar.adam_rate))


def write(update: Update) -> str:
    """The text of `run`."""
    layout = layout_of(update.op)
    names = [name for name, _ in layout.scalars]
    prepared, arguments = _prepared(layout.rule, names, update)
    variables, parameters = layout.rule.variables, ["grad", *(f"{name}_at" for name in names)]
    if update.index is not None:
        made = ", ".join(f"x{i}" for i in range(len(variables)))
        step = f"{made} = body({', '.join([made, widened('grad[place]', update.dtype), *arguments])})"
        return _rows.text(variables, parameters, prepared, step, update.dtype)
    return "\n".join(
        (
            f"def run({', '.join(['n', *variables, *parameters])}):",
            *(f"    {line}" for line in prepared),
            "    for i in range(cuda.grid(1), n, cuda.gridsize(1)):",
            *(f"        {line}" for line in _element(variables, "i", arguments, update)),
            "",
        )
    )


def write_many(update: Update, count: int) -> str:
    """The text of `run` for so many updates: their elements are counted on from one to the next."""
    layout = layout_of(update.op)
    names = [name for name, _ in layout.scalars]
    prepared, arguments = _prepared(layout.rule, names, update)
    arrays = (*layout.rule.variables, "grad")
    ends = [f"e{number}" for number in range(count - 1)]
    parameters = [f"{name}{number}" for number in range(count) for name in arrays]
    chosen = []
    for number in range(count):
        begin = f" - e{number - 1}" if number else ""
        values = ", ".join(f"{name}{number}" for name in arrays)
        chosen.append(f"{'elif' if number else 'if'} i < e{number}:" if number < count - 1 else "else:")
        chosen.append(f"    {', '.join(arrays)}, at = {values}, i{begin}")
    return "\n".join(
        (
            f"def run({', '.join(['n', *ends, *parameters, *(f'{name}_at' for name in names)])}):",
            *(f"    {line}" for line in prepared),
            "    for i in range(cuda.grid(1), n, cuda.gridsize(1)):",
            *(f"        {line}" for line in chosen),
            *(f"        {line}" for line in _element(layout.rule.variables, "at", arguments, update)),
            "",
        )
    )


def _element(variables: Sequence[str], at: str, arguments: Sequence[str], update: Update) -> list[str]:
    """The lines of one update of the element at `at`."""
    elements = [widened(f"{name}[{at}]", update.dtype) for name in (*variables, "grad")]
    made = [f"x{i}" for i in range(len(variables))]
    return [
        f"{', '.join(made)} = body({', '.join([*elements, *arguments])})",
        *(f"{name}[{at}] = {narrowed(x, update.dtype)}" for name, x in zip(variables, made, strict=True)),
    ]


def _prepared(rule: Rule, names: Sequence[str], update: Update) -> tuple[list[str], list[str]]:
    """(lines that work out the body's arguments, those arguments)."""
    lines, number = [], wide(update.dtype)
    for name, dtype in zip(names, update.scalars, strict=True):
        value = widened(f"{name}_at[0]", dtype)
        lines.append(f"{name} = {value if dtype == update.dtype else expressions.cast(value, number)}")
    scalars = {name: Symbol(name) for name in names}
    made = rule.prepare(scalars, lambda value: Symbol(expressions.literal(value, number)), dict(update.flags))
    texts = [str(each) if isinstance(each, bool) else each.text for each in made]
    texts = [form.format(*texts) for form in _IN_THE_LOOP.get(rule.loop, ())] or texts
    arguments = []
    for place, text in enumerate(texts):
        if text in ("True", "False"):
            arguments.append(text)
        else:
            lines.append(f"s{place} = {text}")
            arguments.append(f"s{place}")
    return lines, arguments
