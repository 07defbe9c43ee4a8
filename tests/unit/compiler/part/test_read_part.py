"""A partition is checked edge by edge; what is refused says why, and nodes come in an order that keeps all waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.parts import PartBuilder
from tenfold_compiler.part import read_part as module
from tenfold_compiler.part.read_part import read_part
from tenfold_core import dtypes, errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_compiler.part.part_graph import PartNode

TASK = "/job:localhost/replica:0/task:0"
FAR = "/job:worker/replica:0/task:0/device:CPU:0"
F32, I32 = dtypes.float32, dtypes.int32


def small() -> PartBuilder:
    part = PartBuilder()
    part.feed("x")
    part.feed("k", I32)
    part.node("VariableV2", "v", dtype=F32, shape=[])
    return part


def read(part: PartBuilder) -> dict[str, PartNode]:
    return {node.name: node for node in read_part(part.graph_def, TASK, 100).nodes}


def with_placeholder(part: PartBuilder, op: str, inputs: list[str], name: str, **attrs: Any) -> None:
    """Node n, whose attribute `name` stands for one of a function, as in a function's body."""
    part.node(op, "n", inputs, **attrs)
    part.graph_def.node[-1].attr[name].placeholder = "of_function"


REFUSED: dict[str, tuple[Callable[[PartBuilder], Any], str]] = {
    "twice": (lambda p: p.node("Neg", "x", ["k"], T=F32), r"^Node 'x' is there twice\."),
    "placeholder": (
        lambda p: with_placeholder(p, "Neg", ["x"], "T"),
        r"^The attributes of node 'n' \(Neg\) are wrong: attr 'T' is the placeholder 'of_function'(.|\n)*{{node n}}",
    ),
    "placeholder of a number": (
        lambda p: with_placeholder(p, "AddN", ["x"], "N", T=F32),
        r"^The attributes of node 'n' \(AddN\) are wrong:",
    ),
    "placeholder of a reference": (
        lambda p: with_placeholder(p, "Assign", ["v", "x"], "T"),
        r"^The attributes of node 'n' \(Assign\) are wrong:",
    ),
    "no source": (
        lambda p: p.node("Neg", "n", ["y:1"], T=F32),
        r"^Node 'n': there is no node 'y' for its input 'y:1' in this partition\.\n\t \[\[{{node n}}\]\]",
    ),
    "no control": (lambda p: p.node("NoOp", "n", ["^y"]), r"there is no node 'y' for its input '\^y'"),
    "port": (
        lambda p: p.node("Add", "n", ["x", "x:1"], T=F32),
        r"^Node 'n': input 1 is 'x:1', but 'x' \(_Recv\) has 1 outputs\.",
    ),
    "late data": (
        lambda p: p.node("Add", "n", ["x", "^k", "x"], T=F32),
        r"^Node 'n': data input 'x' stands after a control input\.",
    ),
    "too many": (
        lambda p: p.node("Neg", "n", ["x", "x"], T=F32),
        r"^Node 'n' \(Neg\) has 2 inputs; its attributes ask for 1\.",
    ),
    "too few": (lambda p: p.node("Add", "n", ["x"], T=F32), r"^Node 'n' \(Add\) has 1 inputs; .* ask for 2\."),
    "type": (
        lambda p: p.node("Add", "n", ["x", "k"], T=F32),
        r"^Input 1 of node n was passed int32 from k:0 incompatible with expected float\.",
    ),
    "a value for a reference": (
        lambda p: p.node("Assign", "n", ["x", "x"], T=F32),
        r"^Input 0 of node n was passed float from x:0 incompatible with expected float_ref\.",
    ),
    "a circle": (
        lambda p: (p.node("Neg", "a", ["b"], T=F32), p.node("Neg", "b", ["a"], T=F32)),
        r"^The partition has a cycle through node 'a' that is no loop of Enter and NextIteration\.",
    ),
    "itself": (
        lambda p: p.node("Neg", "a", ["a"], T=F32),
        r"^The partition has a cycle through node 'a' that is no loop of Enter and NextIteration\.",
    ),
    "attributes": (
        lambda p: p.node("Neg", "n", ["x"]),
        r"\[\[{{node n}}\]\]",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    add, text = REFUSED[name]
    part = small()
    add(part)
    with pytest.raises(errors.InvalidArgumentError, match=text):
        read_part(part.graph_def, TASK, 100)


def test_an_op_that_there_is_not() -> None:
    part = small()
    part.graph_def.node.add(name="n", op="NoSuchOp")
    with pytest.raises(errors.NotFoundError, match=r"NoSuchOp(.|\n)*{{node n}}"):
        read_part(part.graph_def, TASK, 100)


def test_as_many_nodes_as_the_limit_allows() -> None:
    part = small()
    assert len(read_part(part.graph_def, TASK, 3).nodes) == 3
    with pytest.raises(errors.ResourceExhaustedError, match=r"A graph of 3 nodes at /job.*NODES_PER_GRAPH"):
        read_part(part.graph_def, TASK, 2)


def test_references_are_read_where_a_value_is_wanted() -> None:
    part = small()
    part.node("Assign", "assign", ["v", "x"], T=F32)
    part.node("Add", "sum", ["v", "x"], T=F32)
    part.node("Add", "twice", ["x", "assign", "^k", "^sum", "^k"], T=F32)
    nodes = read(part)
    assert nodes["assign"].deref == [False, False]
    assert nodes["sum"].deref == [True, False]
    assert nodes["twice"].deref == [False, True]
    assert nodes["twice"].inputs == [(nodes["x"].index, 0), (nodes["assign"].index, 0)]
    assert nodes["twice"].controls == [nodes["k"].index, nodes["sum"].index]


def test_values_die_young_and_sends_come_first() -> None:
    part = PartBuilder()
    for name in "ab":
        part.feed(name)
        part.node("Neg", f"{name}1", [name], T=F32)
    for name in "ab":
        part.node("Neg", f"{name}2", [f"{name}1"], T=F32)
        part.send(f"{name}1", F32, FAR, f"edge_{name}")
    nodes = read(part)
    assert list(nodes) == ["a", "a1", "send_edge_a", "a2", "b", "b1", "send_edge_b", "b2"]
    assert [node.index for node in nodes.values()] == list(range(8))
    assert nodes["b2"].inputs == [(5, 0)]


def test_nodes_that_come_late_in_the_graph_move_with_their_controls() -> None:
    part = PartBuilder()
    part.node("Neg", "late", ["x", "^o"], T=F32)
    part.node("NoOp", "o")
    part.feed("x")
    nodes = read(part)
    assert set(nodes) == {"late", "o", "x"}
    assert list(nodes)[-1] == "late"
    assert nodes["late"].controls == [nodes["o"].index]
    assert nodes["late"].inputs == [(nodes["x"].index, 0)]


@pytest.mark.parametrize(("op", "is_dynamic"), [("Switch", True), ("Add", False)])
def test_a_part_with_branches_says_so(op: str, is_dynamic: bool) -> None:
    part = small()
    part.feed("p", dtypes.bool_)
    part.node(op, "n", ["x", "p" if is_dynamic else "x"], T=F32)
    assert read_part(part.graph_def, TASK, 100).is_dynamic is is_dynamic


def test_old_frames_are_noted() -> None:
    part = small()
    assert not read_part(part.graph_def, TASK, 100).old_frames
    part.graph_def.versions.producer = 38
    assert read_part(part.graph_def, TASK, 100).old_frames


def test_the_size_counts_nodes_inputs_and_the_message() -> None:
    part = small()
    part.node("Add", "n", ["x", "x", "^k"], T=F32)
    assert read_part(part.graph_def, TASK, 100).size == 4 * 1280 + 3 * 56 + 2 * part.graph_def.ByteSize()


def test_large_constants_are_counted_by_their_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL_BYTES", 40)
    part = PartBuilder()
    part.const("small", [1.0] * 9)
    part.const("large", [1.0] * 10)
    rest = part.graph_def.node[0].ByteSize()
    assert read_part(part.graph_def, TASK, 100).size == 2 * 1280 + 2 * (40 + rest)
