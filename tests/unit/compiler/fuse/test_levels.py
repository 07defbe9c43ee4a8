"""Which nodes may run as one without waiting for themselves: places, levels, and what control edges hold back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from support.parts import PartBuilder
from tenfold_compiler.fuse.levels import OF_SHAPES, Levels
from tenfold_compiler.fuse.nodes import fusible_nodes, nodes_of_shapes
from tenfold_compiler.node_kernels import Target
from tenfold_compiler.part.read_part import read_part
from tenfold_compiler.part.structured_flow import read_control_flow
from tenfold_core import dtypes
from tenfold_kernels.resources.state import ResourceManager

TASK = "/job:localhost/replica:0/task:0"
F32, I32 = dtypes.float32, dtypes.int32


class Part(PartBuilder):
    """x, y and z are fed; all values have the shape (4,) but for those in `shapes`."""

    def __init__(self) -> None:
        super().__init__()
        for name in "xyz":
            self.feed(name)
        self.shapes: dict[str, Any] = {}
        self.regions: dict[str, int] = {}

    def neg(self, name: str, *inputs: str) -> str:
        return self.node("Neg", name, inputs, T=F32)

    def add(self, name: str, *inputs: str) -> str:
        return self.node("Add", name, inputs, T=F32)

    def other(self, name: str, *inputs: str) -> str:
        """One that is never fused."""
        if not any(node.name == "axis" for node in self.graph_def.node):
            self.const("axis", 0)
        return self.node("Cumsum", name, [inputs[0], "axis", *inputs[1:]], T=F32, Tidx=I32)

    def read(self, has_flow: bool = False) -> Read:
        return Read(self, has_flow)


class Read:
    def __init__(self, builder: Part, has_flow: bool) -> None:
        part = read_part(builder.graph_def, TASK, 1000)
        constants = Target(TASK, ResourceManager(), 1000).constants(part)
        self.at = {node.name: node for node in part.nodes}
        self.names = [node.name for node in part.nodes]
        nodes = fusible_nodes(part, constants)

        def of(index: int) -> Any:
            return constants[index][0].shape if index in constants else builder.shapes.get(self.names[index], (4,))

        shapes = {node.index: (tuple(of(s) for s, _ in node.inputs), of(node.index)) for node in nodes}
        regions = [builder.regions.get(node.name, 0) for node in part.nodes]
        flow = read_control_flow(part, constants) if has_flow else None
        program: Any = SimpleNamespace(part=part, region_of=regions, constants=constants, flow=flow)
        self.levels = Levels(program, nodes, shapes, nodes_of_shapes(part, constants))

    def level(self, names: str) -> list[int]:
        return [self.levels.level[self.at[name].index] for name in names.split()]

    def components(self) -> list[str]:
        return sorted(" ".join(node.name for node in members) for members, _ in self.levels.components())

    def before(self, name: str) -> set[str]:
        return {self.names[index] for index in self.levels.before(self.at[name])}


def test_levels_grow_where_a_path_leaves_a_group_or_enters_one() -> None:
    part = Part()
    part.neg("a", "x")
    part.neg("b", "a")
    part.other("o", "b")
    part.neg("c", "o")
    part.add("d", "b", "c")
    part.other("p", "o")
    read = part.read()
    assert read.level("x a b o c d p") == [0, 0, 0, 1, 1, 1, 1]
    assert read.components() == ["a b", "c d"]
    assert read.levels.joins(read.at["a"].index, read.at["b"].index)
    assert not read.levels.joins(read.at["b"].index, read.at["o"].index)
    assert not read.levels.joins(read.at["x"].index, read.at["o"].index)


def test_nodes_of_other_shapes_or_places_are_no_group() -> None:
    part = Part()
    part.neg("a", "x")
    part.neg("b", "a")
    part.regions = {"b": 1}
    assert part.read().components() == ["a", "b"]
    part.regions = {}
    assert part.read().components() == ["a b"]
    read = part.read()
    read.at["b"].memory = (True,), (True,)
    part.shapes = {"y": (5,), "e": (5,)}
    part.neg("e", "y")
    assert part.read().components() == ["a b", "e"]


def test_scalars_of_one_level_belong_together() -> None:
    part = Part()
    part.shapes = dict.fromkeys(("x", "y", "a", "b", "c", "o"), ())
    part.neg("a", "x")
    part.neg("b", "y")
    part.other("o", "b")
    part.neg("c", "o")
    assert part.read().components() == ["a b", "c"]


def test_a_loop_ends_in_its_reduction() -> None:
    part = Part()
    part.const("axes", [0])
    part.neg("a", "x")
    part.node("Sum", "total", ["a", "axes"], T=F32, Tidx=I32)
    part.add("after", "total", "x")
    part.shapes = {"total": ()}
    read = part.read()
    assert read.components() == ["a total", "after"]
    assert read.level("a total after") == [0, 0, 1]


def test_what_depends_on_shapes_is_a_space_of_its_own() -> None:
    part = Part()
    part.node("Shape", "s", ["x"], T=F32, out_type=I32)
    part.node("Neg", "n", ["s"], T=I32)
    part.neg("a", "x")
    read = part.read()
    assert sorted((len(members), space is OF_SHAPES) for members, space in read.levels.components()) == [
        (1, False),
        (2, True),
    ]
    assert read.levels.is_of_shapes(read.at["n"].index)
    assert not read.levels.is_of_shapes(read.at["a"].index)
    assert not read.levels.is_of_shapes(read.at["x"].index)


def test_aliases_are_looked_through_and_read_nothing() -> None:
    part = Part()
    part.neg("a", "x")
    part.node("Identity", "i", ["a"], T=F32)
    part.node("Identity", "j", ["i"], T=F32)
    part.neg("b", "j")
    part.fetch("i")
    read = part.read()
    a = read.at["a"].index
    assert read.levels.resolve((read.at["j"].index, 0)) == (a, 0)
    assert sorted(read.names[index] for index in read.levels.readers[a]) == ["b", "send_fetch_i"]
    assert read.levels.edges_read_outside({a}) == [(a, 0)]
    assert read.levels.edges_read_outside({a, read.at["b"].index, read.at["send_fetch_i"].index}) == []
    assert read.components() == ["a b"]


def test_pure_nodes_hand_on_what_they_wait_for() -> None:
    part = Part()
    part.node("VariableV2", "v", dtype=F32, shape=[4])
    part.node("Assign", "assign", ["v", "x"], T=F32)
    part.neg("pure", "x", "^assign")
    part.neg("reader", "pure")
    part.node("NoOp", "order", ["^reader"])
    part.node("AssignAdd", "add", ["v", "y", "^order"], T=F32)
    part.node("Neg", "volatile", ["v", "^add"], T=F32)
    part.node("AssignAdd", "by_data", ["v", "reader"], T=F32)
    read = part.read()
    assert read.before("pure") == {"x"}
    assert read.before("reader") == {"pure"}
    assert read.before("add") == {"v", "x", "y", "assign"}
    assert read.before("volatile") == {"v", "add"}
    assert read.before("by_data") == {"v", "reader", "assign"}


def test_what_waits_for_a_pure_node_waits_for_its_data() -> None:
    part = Part()
    part.node("VariableV2", "v", dtype=F32, shape=[4])
    part.node("AssignAdd", "first", ["v", "x"], T=F32)
    part.node("Identity", "read", ["v", "^first"], T=F32)
    part.neg("copy", "read")
    part.node("AssignAdd", "second", ["v", "x", "^copy"], T=F32)
    read = part.read()
    assert read.before("read") == {"v", "first"}
    assert read.before("second") == {"v", "x", "copy"}


def test_items_of_a_schedule_wait_by_their_members() -> None:
    part = Part()
    part.neg("a", "x")
    part.neg("b", "a")
    part.neg("c", "b")
    part.neg("d", "x")
    read = part.read()
    group: Any = SimpleNamespace(members=[read.at["b"], read.at["d"]])
    order = [read.at["a"], group, read.at["c"]]
    before = read.levels.between(cast("Any", order))
    assert [before(place) for place in range(3)] == [set(), {0}, {1}]


def test_in_branches_nodes_wait_for_what_is_tested() -> None:
    part = Part()
    part.feed("p", dtypes.bool_)
    part.node("Switch", "s", ["x", "p"], T=F32)
    part.neg("yes", "s:1")
    part.neg("also", "yes")
    part.neg("no", "s:0")
    part.node("Merge", "m", ["also", "no"], T=F32, N=2)
    read = part.read(has_flow=True)
    assert read.before("yes") == {"x", "p"}
    assert read.before("m") == {"also", "no", "p"}
    assert read.components() == ["no", "yes also"]
    assert read.levels.always_runs(read.at["x"])
    assert not read.levels.always_runs(read.at["yes"])
    assert read.levels.places[read.at["yes"].index] != read.levels.places[read.at["no"].index]


def test_behind_a_loop_nodes_wait_for_all_that_enters_it() -> None:
    part = Part()
    part.node("Enter", "enter", ["x"], T=F32, frame_name="f")
    part.node("Enter", "also", ["y"], T=F32, frame_name="f", is_constant=True)
    part.node("Merge", "v", ["enter", "next"], T=F32, N=2)
    part.node("Less", "less", ["v", "also"], T=F32)
    part.node("Switch", "s", ["v", "less"], T=F32)
    part.neg("more", "s:1")
    part.node("NextIteration", "next", ["more"], T=F32)
    part.node("Exit", "exit", ["s:0"], T=F32)
    part.neg("after", "exit")
    read = part.read(has_flow=True)
    assert {"enter", "also", "x", "y"} <= read.before("after")
    assert "next" not in read.before("v")
    assert not read.levels.always_runs(read.at["more"])
    assert read.levels.always_runs(read.at["after"])


@pytest.mark.parametrize("flow", [False, True])
def test_without_branches_all_always_runs(flow: bool) -> None:
    part = Part()
    part.neg("a", "x")
    read = part.read(has_flow=flow)
    assert read.levels.always_runs(read.at["a"])


def test_what_depends_on_shapes_alone_has_the_shape_of_no_loop() -> None:
    assert min(OF_SHAPES) < 0
