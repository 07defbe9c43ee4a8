"""A small straight program, compiled, for the tests of what runs it without an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from support.parts import PartBuilder
from tenfold_core import dtypes
from tenfold_kernels.resources.state import ResourceManager
from tenfold_services.worker.program_compiler import compile_program

if TYPE_CHECKING:
    from tenfold_services.worker.program import Program

TASK = "/job:localhost/replica:0/task:0"


def compiled(part: PartBuilder) -> Program:
    return compile_program(part.graph_def, TASK, ResourceManager())


class Sums(NamedTuple):
    """x + y and x - y, as a program."""

    program: Program
    x: str
    y: str
    plus: str
    minus: str


def sums() -> Sums:
    part = PartBuilder()
    x, y = part.feed("x"), part.feed("y")
    part.node("Add", "plus", ["x", "y"], T=dtypes.float32)
    part.node("Sub", "minus", ["x", "y"], T=dtypes.float32)
    plus, minus = part.fetch("plus"), part.fetch("minus")
    return Sums(compiled(part), x, y, plus, minus)


def numbers(*values: float) -> list[np.ndarray]:
    return [np.float32(value) + np.zeros(1, np.float32) for value in values]
