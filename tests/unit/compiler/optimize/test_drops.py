"""Nodes that hand on their input, and nodes whose values nobody reads: which go, and which must stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.optimized import TASK, Optimized, run
from support.parts import PartBuilder
from support.programs import compile_program
from tenfold_compiler.optimize.drops import drop_identities
from tenfold_compiler.part.read_part import read_part
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


@pytest.mark.parametrize(
    ("op", "attrs", "gone"),
    [
        ("Identity", {"T": F32}, True),
        ("StopGradient", {"T": F32}, True),
        ("Snapshot", {"T": F32}, True),
        ("Cast", {"SrcT": F32, "DstT": F32}, True),
        ("Cast", {"SrcT": F32, "DstT": dtypes.float64}, False),
        ("Neg", {"T": F32}, False),
    ],
)
def test_what_hands_on_its_input(op: str, attrs: dict[str, Any], gone: bool) -> None:
    part = PartBuilder()
    part.feed("x")
    part.node(op, "y", ["x"], **attrs)
    dtype = attrs.get("DstT", F32)
    part.node("Neg", "z", ["y"], T=dtype)
    part.fetch("z", dtype)
    optimized = Optimized(part)
    assert optimized.op("y") == ("NoOp" if gone else op)
    assert optimized.counts["drop_identities"] == int(gone)
    if gone:
        assert optimized.controls("y") == ["x"]


@pytest.mark.parametrize("constant", [np.bool_(True), np.float32(1), np.int64(1)])
def test_only_numbers_are_neutral(constant: Any) -> None:
    part = PartBuilder()
    part.feed("x", dtypes.as_dtype(constant.dtype))
    part.const("c", constant)
    dtype = dtypes.as_dtype(constant.dtype)
    if constant.dtype == bool:
        return
    part.node("Mul", "y", ["x", "c"], T=dtype)
    part.fetch("y", dtype)
    assert Optimized(part).op("y") == "NoOp"


def test_division_by_one_and_by_two() -> None:
    part = PartBuilder()
    part.feed("x")
    part.const("one", 1.0)
    part.const("two", 2.0)
    for name in ("one", "two"):
        part.node("Div", f"by_{name}", ["x", name], T=F32)
        part.fetch(f"by_{name}")
    optimized = Optimized(part)
    assert (optimized.op("by_one"), optimized.op("by_two")) == ("NoOp", "Div")


def test_an_identity_of_a_branch_or_of_a_reference_stays() -> None:
    part = PartBuilder()
    part.feed("x")
    part.feed("p", dtypes.bool_)
    part.node("Switch", "s", ["x", "p"], T=F32)
    part.node("Identity", "in_branch", ["s:1"], T=F32)
    part.node("Neg", "n", ["in_branch"], T=F32)
    part.node("VariableV2", "v", dtype=F32, shape=[])
    part.node("Identity", "read", ["v"], T=F32)
    part.node("Neg", "m", ["read"], T=F32)
    for name in ("n", "m"):
        part.send(name, F32, "/job:worker/replica:0/task:0/device:CPU:0", name)
    optimized = Optimized(part)
    assert (optimized.op("in_branch"), optimized.op("read")) == ("Identity", "Identity")


def test_a_chain_of_dead_nodes_goes_to_its_end() -> None:
    part = PartBuilder()
    part.feed("x")
    part.node("Neg", "a", ["x"], T=F32)
    part.node("Square", "b", ["a"], T=F32)
    part.node("Neg", "c", ["a"], T=F32)
    part.node("NoOp", "group", ["^b"])
    part.fetch("c")
    part.fetch("x", inputs=["^group"])
    optimized = Optimized(part)
    assert [optimized.op(name) for name in "abc"] == ["Neg", "NoOp", "Neg"]
    assert optimized.controls("b") == ["a"]
    assert optimized.counts["drop_dead_code"] == 1

    part = PartBuilder()
    part.feed("x")
    part.node("Neg", "a", ["x"], T=F32)
    part.node("Square", "b", ["a"], T=F32)
    part.node("NoOp", "group", ["^b"])
    part.fetch("x", inputs=["^group"])
    optimized = Optimized(part)
    assert [optimized.op(name) for name in "ab"] == ["NoOp", "NoOp"]
    assert optimized.counts["drop_dead_code"] == 2
    assert optimized.controls("a") == ["x"]


def test_a_dead_node_of_a_branch_stays() -> None:
    part = PartBuilder()
    part.feed("x")
    part.feed("p", dtypes.bool_)
    part.node("Switch", "s", ["x", "p"], T=F32)
    part.node("Neg", "n", ["s:1"], T=F32)
    part.node("NoOp", "group", ["^n"])
    part.send("x", F32, "/job:worker/replica:0/task:0/device:CPU:0", "x", ["^group"])
    assert Optimized(part).op("n") == "Neg"


@pytest.mark.parametrize("op", ["RandomUniform", "Const"])
def test_what_has_an_effect_or_is_known_is_not_dropped(op: str) -> None:
    part = PartBuilder()
    part.feed("x")
    part.const("shape", [2])
    if op == "Const":
        part.const("n", 1.0)
    else:
        part.node(op, "n", ["shape"], dtype=F32, T=I32)
    part.node("NoOp", "group", ["^n"])
    part.fetch("x", inputs=["^group"])
    assert Optimized(part).op("n") == ("constant" if op == "Const" else op)


def test_what_is_led_past_is_gone_by_the_same_pass() -> None:
    """A target of the client's is no dead code: it stays a node, that hands on nothing."""
    builder = PartBuilder()
    builder.feed("x")
    builder.node("Identity", "target", ["x"], T=F32)
    part = read_part(builder.graph_def, TASK, 100)
    at = {node.name: node for node in part.nodes}
    assert drop_identities(part, {}) == 1
    assert (at["target"].op, at["target"].inputs, at["target"].controls) == ("NoOp", [], [at["x"].index])
