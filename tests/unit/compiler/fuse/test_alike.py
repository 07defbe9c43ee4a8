"""Which nodes of many tables become one call: of one kind, one level and one set of scalars; never around a wait."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.parts import PartBuilder
from support.programs import compile_program
from tenfold_compiler.fuse.alike import FEWEST, are_alike
from tenfold_compiler.fuse.groups import find_groups
from tenfold_core import dtypes
from tenfold_kernels.cpu._many_rows import ManyRows
from tenfold_kernels.cpu._many_updates import ManyUpdates
from tenfold_kernels.resources.state import ResourceManager

TASK = "/job:localhost/replica:0/task:0"
F32, I64, I32 = dtypes.float32, dtypes.int64, dtypes.int32
CACHE: Any = object()


class Tables(PartBuilder):
    """Gathers of tables t0, t1, … by ids i0, i1, …, which are fed."""

    def __init__(self) -> None:
        super().__init__()
        self.const("axis", np.array(0, np.int32))
        self.const("second", np.array(1, np.int32))
        self.feed("rate")

    def gather(self, number: int, axis: str = "axis", after: str = "") -> str:
        self.node("VariableV2", f"t{number}", dtype=F32, shape=[4, 2])
        self.node("Identity", f"read{number}", [f"t{number}"], T=F32)
        self.feed(f"i{number}", I64)
        inputs = [f"read{number}", f"i{number}", axis, *([f"^{after}"] if after else [])]
        self.node("GatherV2", f"g{number}", inputs, Tparams=F32, Tindices=I64, Taxis=I32)
        self.fetch(f"g{number}")
        return f"g{number}"

    def update(self, number: int, rate: str = "rate") -> None:
        self.node("VariableV2", f"slot{number}", dtype=F32, shape=[4, 2])
        inputs = [f"t{number}", f"slot{number}", rate, f"g{number}", f"i{number}"]
        self.node("SparseApplyAdagrad", f"u{number}", inputs, T=F32, Tindices=I64)

    def groups(self, *, in_use: bool = True) -> list[list[str]]:
        program = compile_program(self.graph_def, TASK, ResourceManager()).compiled
        fusion = find_groups(program, [], {}, CACHE, resources=ResourceManager() if in_use else None)
        assert are_alike(program.part, program.constants) or not fusion.groups
        found = [group for group in fusion.groups if isinstance(group.run, (ManyRows, ManyUpdates))]
        return [[node.name for node in group.members] for group in found]


def test_gathers_of_one_level_are_one_call() -> None:
    tables = Tables()
    names = [tables.gather(number) for number in range(FEWEST)]
    assert tables.groups() == [names]
    assert tables.groups(in_use=False) == []


def test_few_are_left_alone() -> None:
    tables = Tables()
    for number in range(FEWEST - 1):
        tables.gather(number)
    assert tables.groups() == []


def test_what_waits_for_another_is_of_another_level() -> None:
    tables = Tables()
    first = [tables.gather(number) for number in range(FEWEST)]
    tables.node("VariableV2", "changed", dtype=F32, shape=[4, 2])
    tables.node("AssignAdd", "between", ["changed", "g0"], T=F32)
    second = [tables.gather(number, after="between") for number in range(FEWEST, 2 * FEWEST)]
    found = tables.groups()
    assert first in found
    assert all(set(names) <= set(first) or set(names) <= set(second) for names in found)


def test_columns_that_are_gathered_are_not_rows() -> None:
    tables = Tables()
    for number in range(FEWEST):
        tables.gather(number, axis="second")
    assert tables.groups() == []


def test_updates_by_other_rates_are_other_calls() -> None:
    tables = Tables()
    tables.feed("other")
    for number in range(2 * FEWEST):
        tables.gather(number)
        tables.update(number, "rate" if number % 2 else "other")
    updates = [names for names in tables.groups() if names[0].startswith("u")]
    assert sorted(updates) == [[f"u{number}" for number in range(odd, 2 * FEWEST, 2)] for odd in (0, 1)]
