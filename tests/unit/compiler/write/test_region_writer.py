"""Lines of straight code: a node's, a group's, what is stored for other regions, cleared, and where a stop is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from support.parts import PartBuilder
from tenfold_compiler.build import structured, written
from tenfold_compiler.fuse.fusion import Group
from tenfold_compiler.node_kernels import Target
from tenfold_compiler.part.read_part import read_part
from tenfold_compiler.write import region_writer
from tenfold_compiler.write.lines import Lines
from tenfold_compiler.write.region_writer import RegionWriter
from tenfold_compiler.write.slots import straight_slots
from tenfold_core import dtypes
from tenfold_core.opdefs.runtime_ops import ALIAS_OPS, CONSTANT_OPS, RECV_OPS, SEND_OPS
from tenfold_kernels.resources.state import ResourceManager

if TYPE_CHECKING:
    import pytest

TASK = "/job:localhost/replica:0/task:0"
FAR = "/job:worker/replica:0/task:0/device:CPU:0"
F32 = dtypes.float32
NO_KERNEL = RECV_OPS | SEND_OPS | ALIAS_OPS | CONSTANT_OPS | {"NoOp"}


class Written:
    """The lines of a part's regions, node by node."""

    def __init__(self, builder: PartBuilder, blocking: str = "") -> None:
        part = read_part(builder.graph_def, TASK, 1000)
        self.at: dict[str, Any] = {node.name: node for node in part.nodes}
        for name in blocking.split():
            self.at[name].blocking = True
        constants = Target(TASK, ResourceManager(), 100).constants(part)
        kernels: Any = {node.index: lambda *inputs: inputs[0] for node in part.nodes if node.op not in NO_KERNEL}
        self.program = written(structured(part, kernels, constants, 100), fuses=False)
        self.lines = Lines()
        self.writer = RegionWriter(self.program, self.lines, straight_slots(self.program))

    def regions(self) -> list[str | None]:
        return [self.writer.region(region, region.nodes) for region in self.program.regions]


def chain(part: PartBuilder, names: str, source: str = "x") -> None:
    for name in names.split():
        part.node("Neg", name, [source], T=F32)
        source = name


def test_values_are_fetched_once_freed_at_their_last_use_and_errors_have_a_node() -> None:
    part = PartBuilder()
    part.feed("x")
    part.const("c", 2.0)
    part.node("Mul", "a", ["x", "c"], T=F32)
    part.node("Add", "b", ["a", "x"], T=F32)
    part.fetch("b")
    written = Written(part)
    a, b, c = (written.at[name].index for name in "abc")
    assert written.regions() == ["r0"]
    slot = written.writer.slots.numbers[written.at["x"].index, 0]
    assert written.lines.text == [
        "def r0(s, send, fetch, stop):",
        f" v0 = s[{slot}]",
        f" v1 = k{a}(v0, c{c}_0)",
        f" v0 = k{b}(v1, v0)",
        " v1 = None",
        " fetch(0, v0)",
        " v0 = None",
    ]
    assert written.lines.node_at_line[3] == a


def test_what_nobody_reads_has_no_variable() -> None:
    part = PartBuilder()
    part.feed("x")
    part.node("Neg", "a", ["x"], T=F32)
    part.const("axis", 0)
    part.node("Split", "two", ["axis", "x"], T=F32, num_split=2)
    part.fetch("two:1")
    written = Written(part)
    written.regions()
    text = "\n".join(written.lines.text)
    assert f"\n k{written.at['a'].index}(v0)" in text
    assert f" _, v0 = k{written.at['two'].index}(" in text


def test_references_are_read_for_values_and_kept_on_their_way_to_another_task() -> None:
    part = PartBuilder()
    part.node("VariableV2", "v", dtype=F32, shape=[])
    part.node("Neg", "n", ["v"], T=F32)
    part.send("v", F32, FAR, "edge")
    part.fetch("v")
    part.fetch("n")
    written = Written(part)
    written.regions()
    text = written.lines.text
    assert any(f"= k{written.at['n'].index}(v0.value)" in line for line in text)
    assert " send(0, v0)" in text
    assert " fetch(0, v0.value)" in text


def test_a_name_for_a_reference_reads_it_where_it_stands() -> None:
    part = PartBuilder()
    part.node("VariableV2", "v", dtype=F32, shape=[])
    part.node("Identity", "now", ["v"], T=F32)
    part.fetch("now")
    written = Written(part)
    written.regions()
    assert written.lines.text[1:] == [
        f" v0 = k{written.at['v'].index}()",
        " v0 = v0.value",
        " fetch(0, v0)",
        " v0 = None",
    ]


def test_a_stop_is_seen_every_so_many_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(region_writer, "STOP_EVERY", 2)
    part = PartBuilder()
    part.feed("x")
    chain(part, "a b c d")
    part.fetch("d")
    written = Written(part)
    written.regions()
    lines = [line.strip() for line in written.lines.text[2:]]
    kinds = ["stop" if line == "if stop: return" else "call" for line in lines if not line.endswith("None")]
    assert kinds == ["call", "stop", "call", "call", "stop", "call", "call"]


def test_what_other_regions_read_is_stored_and_what_waits_is_started() -> None:
    part = PartBuilder()
    part.feed("x")
    part.recv("r", F32, FAR, 7)
    chain(part, "a")
    part.node("Add", "late", ["a", "r"], T=F32)
    part.node("Square", "waits", ["x"], T=F32)
    part.fetch("late")
    part.fetch("waits")
    written = Written(part, "waits")
    written.regions()
    numbers = written.writer.slots.numbers
    a, waits = written.at["a"].index, written.at["waits"].index
    text = "\n".join(written.lines.text)
    assert f"= k{a}(v0); s[{numbers[a, 0]}] = v" in text
    assert f"\n s[{numbers[waits, -1]}] = k{waits}(v0)" in text


def test_a_region_that_has_nothing_to_do_has_no_function() -> None:
    part = PartBuilder()
    part.feed("x")
    part.node("NoOp", "order", ["^x"])
    written = Written(part)
    assert written.regions() == [None]
    assert written.lines.text == []


def test_a_group_is_a_line_and_its_nodes_a_function() -> None:
    part = PartBuilder()
    part.feed("x")
    part.recv("r", F32, FAR, 7)
    chain(part, "a b")
    part.node("Add", "late", ["b", "r"], T=F32)
    part.fetch("late")
    written = Written(part)
    x, a, b = (written.at[name].index for name in "xab")
    group = Group(3, [written.at["a"], written.at["b"]], cast("Any", None), [(x, 0)], [(b, 0)], cast("Any", None))
    (region,) = (region for region in written.program.regions if written.at["a"] in region.nodes)
    written.writer.region(region, [group], "name")
    written.writer.unfused(group)
    numbers = written.writer.slots.numbers
    assert written.lines.text == [
        "def name(s, send, fetch, stop):",
        f" v0 = s[{numbers[x, 0]}]",
        f" v0 = g3(v0); s[{numbers[b, 0]}] = v0",
        "def f3(v0):",
        f" v1 = k{a}(v0)",
        f" v1 = k{b}(v1)",
        " return v1",
    ]
