"""Edges as the executor walks them: of each output, with the counts that its nodes start with."""

from __future__ import annotations

import pytest

from support.parts import PartBuilder
from tenfold_compiler.part import edges as kinds
from tenfold_compiler.part.edges import edges_of, frame_name
from tenfold_compiler.part.read_part import read_part
from tenfold_core import dtypes

TASK = "/job:localhost/replica:0/task:0"
FAR = "/job:worker/replica:0/task:0/device:CPU:0"
F32, I32 = dtypes.float32, dtypes.int32


def test_edges_counts_and_roots() -> None:
    part = PartBuilder()
    part.feed("p", dtypes.bool_)
    part.recv("r", F32, FAR, 7)
    part.node("VariableV2", "v", dtype=F32, shape=[])
    part.node("Switch", "s", ["r", "p"], T=F32)
    part.node("Neg", "n", ["s:1"], T=F32)
    part.node("Neg", "read", ["v", "^n"], T=F32)
    part.node("Merge", "m", ["s:0", "n", "^read"], T=F32, N=2)
    part.node("Enter", "e", ["m"], T=F32, frame_name="f")
    part.node("Enter", "e2", ["m"], T=F32, frame_name="f")
    part.node("Enter", "e3", ["m"], T=F32, frame_name="g")
    part.node("NoOp", "o", ["^e"])
    part.fetch("m")
    read = read_part(part.graph_def, TASK, 100)
    at = {node.name: node.index for node in read.nodes}
    edges = edges_of(read)

    assert edges.outputs[at["r"]] == [(0, at["s"], 0)]
    assert edges.outputs[at["p"]] == [(0, at["s"], 1)]
    assert sorted(edges.outputs[at["s"]]) == sorted([(1, at["n"], 0), (0, at["m"], 0)])
    assert sorted(edges.outputs[at["n"]]) == sorted([(0, at["m"], 1), (-1, at["read"], -1)])
    assert edges.outputs[at["read"]] == [(-1, at["m"], -1)]
    assert edges.enters == {"f": 2, "g": 1}
    assert sorted(edges.roots) == sorted([at["p"], at["r"], at["v"]])
    wanted = {"p": 0, "s": 2, "n": 1, "read": 2, "m": 3, "e": 1, "o": 1}
    assert {name: edges.pending[at[name]] for name in wanted} == wanted
    assert [name for name, index in at.items() if edges.derefs[index]] == ["read"]
    wanted = {
        "p": kinds.RECV,
        "s": kinds.SWITCH,
        "n": kinds.KERNEL,
        "m": kinds.MERGE,
        "e": kinds.ENTER,
        "o": kinds.ORDER,
    }
    assert {name: edges.kinds[at[name]] for name in wanted} == wanted
    assert edges.kinds[at["send_fetch_m"]] == kinds.SEND


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("RefSwitch", "SWITCH"),
        ("_SwitchN", "SWITCH_N"),
        ("RefMerge", "MERGE"),
        ("RefEnter", "ENTER"),
        ("Exit", "EXIT"),
        ("NextIteration", "NEXT_ITERATION"),
        ("Identity", "ALIAS"),
        ("ControlTrigger", "TRIGGER"),
        ("Neg", "KERNEL"),
    ],
)
def test_the_kind_of_a_node(op: str, kind: str) -> None:
    part = PartBuilder()
    part.feed("x")
    part.node("Neg", "n", ["x"], T=F32)
    read = read_part(part.graph_def, TASK, 100)
    node = read.nodes[1]
    node.op = op
    assert edges_of(read).kinds[1] == getattr(kinds, kind)
    node.blocking = True
    assert edges_of(read).kinds[1] == kinds.BLOCKING


def test_an_alias_that_was_folded_gives_its_constant() -> None:
    part = PartBuilder()
    part.feed("x")
    part.node("Identity", "n", ["x"], T=F32)
    read = read_part(part.graph_def, TASK, 100)
    assert edges_of(read).kinds[1] == kinds.ALIAS
    read.nodes[1].inputs = []
    assert edges_of(read).kinds[1] == kinds.KERNEL


@pytest.mark.parametrize(("given", "name"), [(b"f\xff", "f�"), ("g", "g"), (None, "")])
def test_the_name_of_a_frame(given: object, name: str) -> None:
    part = PartBuilder()
    part.feed("x")
    node = read_part(part.graph_def, TASK, 100).nodes[0]
    node.attrs = {} if given is None else {"frame_name": given}
    assert frame_name(node) == name
