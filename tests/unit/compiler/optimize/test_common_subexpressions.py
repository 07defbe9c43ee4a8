"""Which nodes are computed once: by what they read, by what they wait for, and how far the pass looks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.optimized import TASK, Optimized, run
from support.parts import PartBuilder
from support.programs import compile_program
from tenfold_compiler.node_kernels import Target
from tenfold_compiler.optimize.common_subexpressions import merge_common_subexpressions
from tenfold_compiler.part.read_part import read_part
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.state import ResourceManager, Variable

FAR = "/job:worker/replica:0/task:0/device:CPU:0"
F32 = dtypes.float32


class Merged:
    """A part after the pass alone."""

    def __init__(self, builder: PartBuilder) -> None:
        self.part = read_part(builder.graph_def, TASK, 10_000)
        constants = Target(TASK, ResourceManager(), 10_000).constants(self.part)
        self.count = merge_common_subexpressions(self.part, constants)

    def source(self, reader: str) -> str:
        """What a node's first input is now."""
        node = next(n for n in self.part.nodes if n.name == reader)
        return self.part.nodes[node.inputs[0][0]].name


def waiting(*controls: list[str], late: int = 0) -> PartBuilder:
    """The same op of the same input, n0, n1, …, each after its controls; `late` receives are called r0, r1, …"""
    part = PartBuilder()
    part.feed("x")
    for number in range(late):
        part.recv(f"r{number}", F32, FAR, 7)
    read(part, *controls)
    return part


def read(part: PartBuilder, *controls: list[str], first: int = 0) -> None:
    for number, some in enumerate(controls, first):
        part.node("Neg", f"n{number}", ["x", *(f"^{each}" for each in some)], T=F32)
        part.const(f"c{number}", float(number))  # readers that differ
        part.node("Mul", f"use{number}", [f"n{number}", f"c{number}"], T=F32)
        part.fetch(f"use{number}")


@pytest.mark.parametrize(
    ("first", "second", "is_merged"),
    [
        ([], [], True),
        (["r0"], ["r0"], True),
        ([], ["r0"], True),
        (["r0"], ["r1", "r0"], True),
        (["r0"], ["r1"], False),
        (["r0", "r1"], ["r1"], False),
    ],
)
def test_the_later_one_must_have_waited_for_all_that_the_earlier_one_waits_for(
    first: list[str], second: list[str], is_merged: bool
) -> None:
    found = Merged(waiting(first, second, late=2))

    assert found.source("use0") == "n0"
    assert found.source("use1") == ("n0" if is_merged else "n1")


def test_what_waits_reads_what_need_not() -> None:
    found = Merged(waiting(["r0"], [], late=1))

    assert (found.source("use0"), found.source("use1")) == ("n1", "n1")


def test_to_wait_for_a_group_is_to_wait_for_its_members() -> None:
    part = waiting(["r0"], late=2)
    part.node("NoOp", "group", ["^r0", "^r1"])
    read(part, ["group"], first=1)

    assert Merged(part).source("use1") == "n0"


def test_to_wait_for_a_computation_is_not_to_wait_only_for_what_it_waits_for() -> None:
    part = waiting(["r0"], late=1)
    part.node("Square", "computes", ["x", "^r0"], T=F32)
    read(part, ["computes"], first=1)

    assert Merged(part).source("use1") == "n1"


@pytest.mark.parametrize(("members", "is_merged"), [(64, True), (65, False)])
def test_a_large_group_is_not_looked_into(members: int, is_merged: bool) -> None:
    part = waiting(["r0"], late=members)
    part.node("NoOp", "group", [f"^r{number}" for number in range(members)])
    read(part, ["group"], first=1)

    assert Merged(part).source("use1") == ("n0" if is_merged else "n1")


def test_so_many_that_waited_for_other_things_are_compared() -> None:
    part = waiting(*([f"r{number}"] for number in range(18)), ["r15"], ["r16"], late=18)

    found = Merged(part)

    assert (found.source("use18"), found.source("use19"), found.count) == ("n15", "n19", 1)


def test_what_waits_for_nodes_that_became_one_becomes_one_too() -> None:
    part = PartBuilder()
    part.feed("x")
    part.feed("y")
    for name in "ab":
        part.node("Square", name, ["y"], T=F32)
    read(part, ["a"], ["b"])

    found = Merged(part)

    assert found.source("use1") == "n0"
    assert found.count == 2, "the squares, then what waits for them"


@pytest.mark.parametrize(
    ("op", "dtype", "merged"),
    [("Mul", F32, 1), ("AddN", F32, 1), ("Sub", F32, 0), ("RealDiv", F32, 0), ("Add", dtypes.string, 0)],
)
def test_two_inputs_in_another_order_are_the_same_where_the_op_is_commutative(op: str, dtype: Any, merged: int) -> None:
    part = PartBuilder()
    part.feed("x", dtype)
    part.feed("y", dtype)
    for name, inputs in (("a", ["x", "y"]), ("b", ["y", "x"])):
        part.node(op, name, inputs, T=dtype, **({"N": 2} if op == "AddN" else {}))
        part.fetch(name, dtype)
    assert Merged(part).count == merged


def test_a_sum_of_three_in_another_order_is_another_sum() -> None:
    part = PartBuilder()
    for name in "xyz":
        part.feed(name)
    for name, inputs in (("a", ["x", "y", "z"]), ("b", ["x", "z", "y"]), ("c", ["x", "y", "z"])):
        part.node("AddN", name, inputs, T=F32, N=3)
        part.fetch(name)
    assert Merged(part).count == 1


CONSTANTS: list[tuple[Any, Any, bool]] = [
    (np.float32(2), np.float32(2), True),
    (np.float32(2), np.float32(3), False),
    (np.float32(2), np.full(1, 2, np.float32), False),
    (np.zeros(2, np.float32), np.zeros(2, np.int32), False),
    (np.ones(1024, np.float32), np.ones(1024, np.float32), True),
    (np.ones(1025, np.float32), np.ones(1025, np.float32), False),
    (np.array(b"text", object), np.array(b"text", object), False),
]


@pytest.mark.parametrize(("one", "other", "is_merged"), CONSTANTS)
def test_constants_are_one_if_they_are_small_and_alike_in_all(one: Any, other: Any, is_merged: bool) -> None:
    part = PartBuilder()
    for name, value, kind in (("a", one, dtypes.int32), ("b", other, dtypes.int64)):
        part.const(name, value)
        part.node("Shape", f"shape_{name}", [name], T=dtypes.as_dtype(value.dtype), out_type=kind)
        part.fetch(f"shape_{name}", kind)

    assert Merged(part).source("shape_b") == ("a" if is_merged else "b")


def test_names_that_begin_with_a_line_are_no_attributes_of_the_op() -> None:
    part = waiting([], [])
    for node in part.graph_def.node:
        node.attr["_of"].s = node.name.encode()

    assert Merged(part).source("use1") == "n0"


# -- among all passes ------------------------------------------------------------------------------------------------


def test_the_same_op_of_the_same_inputs_runs_once() -> None:
    part = PartBuilder()
    part.feed("x")
    for name in ("a", "b"):
        part.node("Square", f"square_{name}", ["x"], T=F32)
        part.node("Neg", f"neg_{name}", [f"square_{name}"], T=F32)
    part.node("Add", "sum", ["neg_a", "neg_b"], T=F32)
    part.fetch("sum")
    optimized = Optimized(part)
    assert optimized.counts["merge_common_subexpressions"] == 2
    assert len(set(optimized.sources("sum"))) == 1


def test_other_attributes_are_another_expression() -> None:
    part = PartBuilder()
    part.feed("a")
    part.node("MatMul", "ab", ["a", "a"], T=F32)
    part.node("MatMul", "abt", ["a", "a"], T=F32, transpose_b=True)
    part.fetch("ab")
    part.fetch("abt")
    assert Optimized(part).counts["merge_common_subexpressions"] == 0


def test_equal_constants_are_one() -> None:
    part = PartBuilder()
    part.feed("x")
    for name in ("a", "b"):
        part.const(name, 2.0)
        part.node("Mul", f"x{name}", ["x", name], T=F32)
        part.fetch(f"x{name}")
    assert Optimized(part).counts["merge_common_subexpressions"] == 2


def test_reads_of_a_variable_before_and_after_an_assignment_are_not_the_same() -> None:
    part = PartBuilder()
    part.node("VariableV2", "v", dtype=F32, shape=[])
    part.node("Identity", "read", ["v"], T=F32)
    part.node("Neg", "before", ["read"], T=F32)
    part.const("one", 1.0)
    part.node("AssignAdd", "add", ["v", "one", "^before"], T=F32)
    part.node("Neg", "after", ["read", "^add"], T=F32)
    before, after = part.fetch("before"), part.fetch("after")
    resources = ResourceManager()
    variable = resources.lookup_or_create("", "v", Variable, lambda: Variable("v", F32, TensorShape([])))
    variable.assign(np.float32(5).reshape(()))
    assert Optimized(part).counts["merge_common_subexpressions"] == 0
    values = run(compile_program(part.graph_def, TASK, resources))
    assert (values[before], values[after]) == (-5, -6)


def test_an_expression_that_waits_for_another_task_does_not_stand_in_for_one_that_does_not() -> None:
    part = PartBuilder()
    part.feed("x")
    part.recv("late", F32, "/job:worker/replica:0/task:0/device:CPU:0", 7)
    part.node("Neg", "waiting", ["x", "^late"], T=F32)
    part.node("Neg", "free", ["x"], T=F32)
    part.node("Square", "use", ["free"], T=F32)
    part.fetch("waiting")
    part.fetch("use")
    optimized = Optimized(part)
    assert optimized.sources("use") == ["free"]


@pytest.mark.parametrize(
    ("op", "has_branches", "is_merged"),
    [("Const", False, True), ("Const", True, False), ("Neg", False, True), ("Neg", True, True)],
)
def test_where_there_are_branches_a_constant_stands_where_what_it_waits_for_does(
    op: str, has_branches: bool, is_merged: bool
) -> None:
    """A loop's constant waits for something of its frame; one that waits for nothing stands outside."""
    part = PartBuilder()
    if op == "Const":
        part.const("early", 7.0)
    part.feed("x")
    if op != "Const":
        part.node(op, "early", ["x"], T=F32)
    part.feed("p", dtypes.bool_)
    part.node("Log", "of_early", ["early"], T=F32)
    part.node("Square", "before", ["x"], T=F32)
    if op == "Const":
        part.const("late", 7.0, inputs=["^before"])
    else:
        part.node(op, "late", ["x", "^before"], T=F32)
    part.node("Exp", "of_late", ["late"], T=F32)
    for name in ("of_early", "of_late"):
        part.fetch(name)
    if has_branches:
        part.node("Switch", "switch", ["x", "p"], T=F32)
        part.fetch("switch")

    assert Merged(part).source("of_late") == ("early" if is_merged else "late")
