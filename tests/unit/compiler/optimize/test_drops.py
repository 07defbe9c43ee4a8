"""Nodes that hand on their input, and nodes whose values nobody reads: which go, and which must stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.optimized import TASK, Optimized, run
from support.parts import PartBuilder
from support.programs import compile_program
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.state import ResourceManager, Variable

F32, I32 = dtypes.float32, dtypes.int32


@pytest.mark.parametrize(
    ("op", "inputs", "constant", "gone"),
    [
        ("Mul", ["x", "c"], 1.0, True),
        ("Mul", ["c", "x"], 1.0, True),
        ("Mul", ["x", "c"], [1.0], False),  # it may broadcast x
        ("RealDiv", ["x", "c"], 1.0, True),
        ("RealDiv", ["c", "x"], 1.0, False),
        ("Sub", ["x", "c"], 0.0, True),
        ("Pow", ["x", "c"], 1.0, True),
        ("Pow", ["c", "x"], 1.0, False),
        ("Pow", ["x", "c"], 2.0, False),
        ("Add", ["x", "c"], 0.0, False),  # −0 + 0 is 0
    ],
)
def test_neutral_scalars(op: str, inputs: list[str], constant: Any, gone: bool) -> None:
    part = PartBuilder()
    part.feed("x")
    part.const("c", constant)
    part.node(op, "y", inputs, T=F32)
    part.node("Neg", "z", ["y"], T=F32)
    part.fetch("z")
    optimized = Optimized(part)
    assert optimized.op("y") == ("NoOp" if gone else op)
    assert optimized.sources("z") == (["x"] if gone else ["y"])


def test_a_product_with_one_stays_the_copy_that_an_assignment_does_not_change() -> None:
    part = PartBuilder()
    part.node("VariableV2", "v", dtype=F32, shape=[])
    part.node("Identity", "read", ["v"], T=F32)
    part.const("one", 1.0)
    part.node("Mul", "copy", ["read", "one"], T=F32)
    part.const("seven", 7.0)
    part.node("Assign", "assign", ["v", "seven", "^copy"], T=F32)
    fetch = part.fetch("copy", inputs=["^assign"])
    resources = ResourceManager()
    variable = resources.lookup_or_create("", "v", Variable, lambda: Variable("v", F32, TensorShape([])))
    variable.assign(np.float32(5).reshape(()))
    assert run(compile_program(part.graph_def, TASK, resources))[fetch] == 5
    assert variable.value == 7


def test_what_read_past_an_identity_still_waits_for_its_controls() -> None:
    part = PartBuilder()
    part.node("VariableV2", "v", dtype=F32, shape=[])
    part.const("seven", 7.0)
    part.feed("x")
    part.node("Assign", "assign", ["v", "seven"], T=F32)
    part.node("Identity", "after", ["x", "^assign"], T=F32)
    part.node("Assign", "last", ["v", "after"], T=F32)
    part.fetch("last")
    optimized = Optimized(part)
    last = next(n for n in optimized.part.nodes if n.name == "last")
    assert "after" in [optimized.part.nodes[c].name for c in last.controls]


def test_a_gradient_that_only_a_group_waits_for_is_not_computed() -> None:
    part = PartBuilder()
    part.feed("x")
    part.feed("g")
    part.node("MatMul", "unused", ["g", "x"], T=F32, transpose_b=True)
    part.node("MatMul", "used", ["x", "g"], T=F32, transpose_a=True)
    part.node("NoOp", "group", ["^unused", "^used"])
    part.node("Identity", "gradient", ["used", "^group"], T=F32)
    part.fetch("gradient")
    optimized = Optimized(part)
    assert optimized.op("unused") == "NoOp"
    assert optimized.op("used") == "MatMul"


def test_what_the_client_asked_for_runs_though_nobody_reads_it() -> None:
    part = PartBuilder()
    part.feed("x")
    part.node("Neg", "target", ["x"], T=F32)
    assert Optimized(part).op("target") == "Neg"


@pytest.mark.parametrize("op", ["CheckNumerics", "EnsureShape"])
def test_guards_stay(op: str) -> None:
    part = PartBuilder()
    part.feed("x")
    attrs: dict[str, Any] = {"message": b"bad"} if op == "CheckNumerics" else {"shape": [1]}
    part.node(op, "guard", ["x"], T=F32, **attrs)
    part.node("Neg", "y", ["x", "^guard"], T=F32)
    part.fetch("y")
    assert Optimized(part).op("guard") == op
