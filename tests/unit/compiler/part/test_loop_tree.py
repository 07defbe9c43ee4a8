"""Frames as a tree of loops: what stands in which, in which order, and what does not nest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.parts import PartBuilder
from tenfold_compiler.part import loop_tree as module
from tenfold_compiler.part.loop_tree import Loop, LoopTree, Unstructured, loop_tree, nodes_of, waits
from tenfold_compiler.part.read_part import read_part
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_compiler.part.part_graph import PartGraph

TASK = "/job:localhost/replica:0/task:0"
F32 = dtypes.float32


class Loops(PartBuilder):
    def enter(self, name: str, source: str, frame: str, **attrs: Any) -> None:
        self.node("Enter", name, [source], T=F32, frame_name=frame, **attrs)

    def loop(self, frame: str, source: str, body: Callable[[str], str] | None = None, *also: str) -> str:
        """A loop over one variable; the name of its Exit."""
        self.enter(f"{frame}_enter", source, frame)
        self.node("Merge", f"{frame}_merge", [f"{frame}_enter", f"{frame}_next", *also], T=F32, N=2)
        self.feed_condition(frame)
        self.node("Switch", f"{frame}_switch", [f"{frame}_merge", f"{frame}_cond"], T=F32)
        value = f"{frame}_switch:1"
        self.node("NextIteration", f"{frame}_next", [body(value) if body else value], T=F32)
        self.node("Exit", f"{frame}_exit", [f"{frame}_switch:0"], T=F32)
        return f"{frame}_exit"

    def feed_condition(self, frame: str) -> None:
        self.node("Less", f"{frame}_less", [f"{frame}_merge", f"{frame}_merge"], T=F32)
        self.node("LoopCond", f"{frame}_cond", [f"{frame}_less"])

    def tree(self, constants: tuple[str, ...] = ()) -> tuple[PartGraph, LoopTree]:
        part = read_part(self.graph_def, TASK, 1000)
        return part, loop_tree(part, {node.index for node in part.nodes if node.name in constants})


def names(members: Any) -> list[str]:
    return [member.name for member in members]


def test_nested_loops() -> None:
    part = Loops()
    part.feed("x")
    part.node("Neg", "before", ["x"], T=F32)
    end = part.loop("outer", "before", lambda value: part.loop("inner", value))
    part.node("Neg", "after", [end], T=F32)
    read, tree = part.tree()

    outer, inner = tree.loops
    assert (outer.name, outer.parent, outer.around) == ("outer", None, ())
    assert (inner.name, inner.parent, inner.around) == ("inner", outer, (outer,))
    assert names(tree.members) == ["x", "before", "outer", "after"]
    assert [member for member in outer.members if isinstance(member, Loop)] == [inner]
    assert names(outer.members)[0] == "outer_merge"
    assert names(inner.members)[0] == "inner_merge"
    assert names(outer.variables) == ["outer_merge"]
    assert names(inner.exits) == ["inner_exit"]
    assert names(inner.enters) == ["inner_enter"]
    assert inner.index == inner.enters[0].index
    frames = {node.name: tree.frame_of[node.index] for node in read.nodes}
    assert frames["before"] is frames["after"] is frames["outer_enter"] is None
    assert frames["outer_exit"] is frames["inner_enter"] is outer
    assert frames["inner_exit"] is frames["inner_merge"] is inner
    assert {tree.entered[node.index] for node in read.nodes if node.op == "Enter"} == {outer, inner}
    every = names(nodes_of(tree.members))
    assert sorted(every) == sorted(names(read.nodes))
    assert every.index("inner_exit") < every.index("outer_next") < every.index("after")
    at = {node.name: node for node in read.nodes}
    assert set(waits(read, tree, None, at["after"])) == {outer}
    assert set(waits(read, tree, None, outer)) == {at["before"]}
    assert set(waits(read, tree, outer, at["outer_next"])) == {inner}
    assert set(waits(read, tree, outer, inner)) == {at["outer_switch"]}
    assert set(waits(read, tree, outer, at["outer_merge"])) == set()


def test_enters_of_one_name_in_one_frame_lead_into_one_loop() -> None:
    part = Loops()
    part.feed("x")
    part.loop("f", "x")
    part.enter("other", "f_exit", "f")
    read, tree = part.tree()
    assert len(tree.loops) == 1
    assert tree.entered[next(n.index for n in read.nodes if n.name == "other")] is tree.loops[0]


def test_a_constant_stands_everywhere() -> None:
    part = Loops()
    part.feed("x")
    part.const("two", 2.0)

    def body(value: str) -> str:
        return part.node("Mul", "twice", [value, "two"], T=F32)

    part.loop("f", "x", body)
    read, tree = part.tree(("two",))
    assert tree.frame_of[next(n.index for n in read.nodes if n.name == "twice")] is tree.loops[0]
    with pytest.raises(Unstructured, match="'twice' has inputs from several frames"):
        part.tree()


def outside(op: str) -> Callable[[Loops], Any]:
    return lambda part: part.node(op, "n", ["x"], T=F32)


def mixed(part: Loops) -> None:
    part.loop("f", "x")
    part.node("Add", "n", ["f_exit", "f_merge"], T=F32)


def once(part: Loops) -> None:
    part.loop("f", "x")
    part.enter("again", "x", "f")
    part.node("Neg", "n", ["again"], T=F32)


def once_by_control(part: Loops) -> None:
    part.enter("again", "x", "f")
    part.loop("f", "x", lambda value: part.node("Neg", "n", [value, "^again"], T=F32))


def no_enter(part: Loops) -> None:
    part.loop("f", "x")
    part.node("Merge", "n", ["f_switch:1", "m_next"], T=F32, N=2)
    part.node("NextIteration", "m_next", ["n"], T=F32)


def turned(part: Loops) -> None:
    part.enter("enter", "x", "f")
    part.node("Merge", "n", ["next", "enter"], T=F32, N=2)
    part.node("NextIteration", "next", ["n"], T=F32)


def waiting_merge(part: Loops) -> None:
    part.node("NoOp", "first")
    part.enter("o", "x", "f", is_constant=True)
    part.loop("f", "x", None, "^o")


REFUSED: dict[str, tuple[Callable[[Loops], Any], str]] = {
    "an Exit of no loop": (outside("Exit"), "'n' stands outside of a loop"),
    "a NextIteration of no loop": (outside("NextIteration"), "'n' stands outside of a loop"),
    "inputs of two frames": (mixed, "'n' has inputs from several frames"),
    "what enters once": (once, "'n' runs in the first turn of 'f' only"),
    "what waits for what enters once": (once_by_control, "'n' runs in the first turn of 'f' only"),
    "a Merge of no Enter": (no_enter, "'n' is no Merge of an Enter and a NextIteration"),
    "a Merge the other way round": (turned, "'n' is no Merge of an Enter and a NextIteration"),
    "a Merge that waits": (waiting_merge, "'f_merge' is no Merge of an Enter and a NextIteration"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_nest(name: str) -> None:
    build, text = REFUSED[name]
    part = Loops()
    part.feed("x")
    build(part)
    with pytest.raises(Unstructured, match=text):
        part.tree()


def test_a_constant_of_a_loop_may_be_read_in_every_turn() -> None:
    part = Loops()
    part.feed("x")
    part.enter("again", "x", "f", is_constant=True)
    part.loop("f", "x", lambda value: part.node("Add", "n", [value, "again"], T=F32))
    _, tree = part.tree()
    assert sorted(names(tree.loops[0].enters)) == ["again", "f_enter"]


@pytest.mark.parametrize(("depth", "fits"), [(2, True), (1, False)])
def test_how_deep_loops_nest(depth: int, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_DEPTH", depth)
    part = Loops()
    part.feed("x")
    part.loop("outer", "x", lambda value: part.loop("inner", value))
    if fits:
        part.tree()
        return
    with pytest.raises(Unstructured, match="loop 'inner' stands in 1 others"):
        part.tree()


def test_a_loop_that_waits_for_itself() -> None:
    part = Loops()
    part.feed("x")
    part.loop("f", "x")
    part.enter("late", "f_exit", "f", is_constant=True)
    part.node("Neg", "n", ["late"], T=F32)
    # as one thing, the loop comes before the Enter that leads into it
    _, tree = part.tree()
    assert names(tree.members) == ["x", "f"]


def test_what_unstructured_says() -> None:
    error = Unstructured("why")
    assert (str(error), list(error.nodes)) == ("why", [])
