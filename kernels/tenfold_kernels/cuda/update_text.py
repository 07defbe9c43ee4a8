"""The optimizers' kernels as text: their loop around a body of scalar.py, and what comes before it.

    def run(n, var, accum, grad, lr_at, momentum_at):
        lr = lr_at[0]
        momentum = momentum_at[0]
        s0 = lr
        s1 = momentum
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            var[i], accum[i] = body(var[i], accum[i], grad[i], s0, s1, True)

The scalars are read from the GPU's memory by every thread: some are computed there (Adam's powers are variables), and
to bring them to the host would make each step wait. What a rule makes of its scalars (`prepare`) it does here once with
symbols, and the text of that is what each thread computes. Used by state_apply.py.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold_kernels import scalar
from tenfold_kernels.cuda import _rows
from tenfold_kernels.cuda._launch import Kernel, pointer
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
    # Numba, whose import takes half a second
    from tenfold_kernels.cuda._code import bodies, elementwise

    layout = layout_of(update.op)
    body = getattr(scalar, layout.rule.loop)
    used = {"body": bodies.device_function(body), "adam_rate": bodies.device_function(scalar.adam_rate)}
    run = elementwise.function(write(update), used, bodies.text_of(body, scalar.adam_rate))
    arrays = [update.dtype] * (len(layout.variables) + 1) + list(update.scalars)
    if update.index is not None:
        return Kernel(run, _rows.types(0, update.index, arrays))
    return Kernel(run, ("int64", *map(pointer, arrays)))


def write(update: Update) -> str:
    """The text of `run`."""
    layout = layout_of(update.op)
    names = [name for name, _ in layout.scalars]
    prepared, arguments = _prepared(layout.rule, names, update)
    variables, parameters = layout.rule.variables, ["grad", *(f"{name}_at" for name in names)]
    if update.index is not None:
        elements = [f"x{i}" for i in range(len(variables))]
        step = f"{', '.join(elements)} = body({', '.join([*elements, 'grad[place]', *arguments])})"
        return _rows.text((), variables, parameters, prepared, step)
    elements = [f"{name}[i]" for name in variables]
    return "\n".join(
        (
            f"def run({', '.join(['n', *variables, *parameters])}):",
            *(f"    {line}" for line in prepared),
            "    for i in range(cuda.grid(1), n, cuda.gridsize(1)):",
            f"        {', '.join(elements)} = body({', '.join([*elements, 'grad[i]', *arguments])})",
            "",
        )
    )


def _prepared(rule: Rule, names: Sequence[str], update: Update) -> tuple[list[str], list[str]]:
    """(lines that work out the body's arguments, those arguments)."""
    lines = []
    for name, dtype in zip(names, update.scalars, strict=True):
        value = f"{name}_at[0]"
        lines.append(f"{name} = {value if dtype == update.dtype else expressions.cast(value, update.dtype)}")
    scalars = {name: Symbol(name) for name in names}
    made = rule.prepare(
        scalars, lambda value: Symbol(expressions.literal(value, update.dtype)), dict(update.flags)
    )
    texts = [str(each) if isinstance(each, bool) else each.text for each in made]
    texts = [form.format(*texts) for form in _IN_THE_LOOP.get(rule.loop, ())] or texts
    arguments = []
    for number, text in enumerate(texts):
        if text in ("True", "False"):
            arguments.append(text)
        else:
            lines.append(f"s{number} = {text}")
            arguments.append(f"s{number}")
    return lines, arguments
