"""Which nodes become a group, how long one is and how many arguments it has, and where it stands among the others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from support.parts import PartBuilder
from support.programs import compile_program
from tenfold_compiler.fuse import captures, groups, updates
from tenfold_compiler.fuse import fusion as fusion_module
from tenfold_compiler.fuse.groups import Fusion, Group, find_groups
from tenfold_compiler.fuse.nodes import fusible_nodes
from tenfold_compiler.part.loop_tree import Loop as LoopOfPart
from tenfold_compiler.part.part_graph import PartNode
from tenfold_core import dtypes
from tenfold_kernels.fusion.loops import ScalarLoop
from tenfold_kernels.fusion.remembered import Remembered
from tenfold_kernels.fusion.runs import FusedRun, source_and_signature
from tenfold_kernels.resources.state import ResourceManager

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_services.worker.loaded_program import LoadedProgram

TASK = "/job:localhost/replica:0/task:0"
F32, I32 = dtypes.float32, dtypes.int32
CACHE: Any = object()

Shape = tuple[int, ...]


def compiled(part: PartBuilder) -> LoadedProgram:
    return compile_program(part.graph_def, TASK, ResourceManager())


def node_of(program: LoadedProgram, name: str) -> PartNode:
    return next(node for node in program.compiled.part.nodes if node.name == name)


def grouped(program: LoadedProgram, shapes: Mapping[str, Shape], **more: Any) -> Fusion:
    """The groups for a step in which the outputs of these nodes had these shapes."""
    part, constants = program.compiled.part, program.compiled.constants
    by_index: dict[int, Shape] = {node.index: shapes[node.name] for node in part.nodes if node.name in shapes}
    by_index.update({index: value[0].shape for index, value in constants.items()})
    nodes = fusible_nodes(part, constants)
    known = {
        node.index: (tuple(by_index[source] for source, _ in node.inputs), by_index[node.index])
        for node in nodes
        if node.index in by_index and all(source in by_index for source, _ in node.inputs)
    }
    return find_groups(program.compiled, nodes, known, CACHE, **more)


def names(fusion: Fusion) -> list[list[str]]:
    return [[node.name for node in group.members] for group in fusion.groups]


def chain(part: PartBuilder, source: str, text: str) -> str:
    for name in text.split():
        part.node("Neg", name, [source], T=F32)
        source = name
    return source


def numbered(count: int) -> str:
    return " ".join(f"n{number}" for number in range(count))


def of_chain(count: int, shape: Shape) -> Fusion:
    part = PartBuilder()
    part.feed("x")
    part.fetch(chain(part, "x", numbered(count)))
    return grouped(compiled(part), dict.fromkeys(("x", *numbered(count).split()), shape))


# -- how many ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "shape", "found"),
    [
        *((1, (4,), 0), (2, (4,), 1), (2, (), 0), (3, (), 1)),
        # a loop on all cores beats a function of NumPy's on one
        *((1, (1 << 18,), 1), (1, (64, 64, 8, 8), 1), (1, (512, 511), 0)),
    ],
)
def test_a_group_is_worth_its_call(count: int, shape: Shape, found: int) -> None:
    fusion = of_chain(count, shape)
    assert names(fusion) == [numbered(count).split()] * found
    if found:
        (group,) = fusion.groups
        assert (group.number, group.key) == (0, -1)
        assert isinstance(group.run, FusedRun)
        assert group.source == source_and_signature(group.run)


@pytest.mark.parametrize(("size", "found"), [((1 << 14) - 1, 0), (1 << 14, 1)])
def test_an_op_of_several_passes_alone_is_a_group_of_less(size: int, found: int) -> None:
    part = PartBuilder()
    part.feed("x")
    part.node("Relu6", "six", ["x"], T=F32)
    part.fetch("six")
    assert names(grouped(compiled(part), {"x": (size,), "six": (size,)})) == [["six"]] * found


def test_a_large_sum_alone_is_no_group() -> None:
    part = PartBuilder()
    part.feed("x")
    part.node("L2Loss", "loss", ["x"], T=F32)
    part.fetch("loss")
    assert names(grouped(compiled(part), {"x": (1024, 1024), "loss": ()})) == []


@pytest.mark.parametrize(
    ("count", "sizes"), [(4, [4]), (5, [3, 2]), (7, [4, 3]), (8, [4, 4]), (9, [3, 3, 3]), (10, [4, 4, 2])]
)
def test_a_long_row_is_cut_into_groups_of_about_one_length(
    monkeypatch: pytest.MonkeyPatch, count: int, sizes: list[int]
) -> None:
    monkeypatch.setattr(groups, "MAX_OPS", 4)
    fusion = of_chain(count, (5,))
    assert [len(group.members) for group in fusion.groups] == sizes
    assert [node.name for group in fusion.groups for node in group.members] == numbered(count).split()
    assert [group.number for group in fusion.groups] == list(range(len(sizes)))
    assert [group.key for group in fusion.groups] == [-1 - number for number in range(len(sizes))]


def sum_of(terms: int) -> LoadedProgram:
    """A sum of so many feeds, whose last two partial sums are fetched."""
    part = PartBuilder()
    for number in range(terms):
        part.feed(f"x{number}")
    source = "x0"
    for number in range(1, terms):
        part.node("Add", f"s{number}", [source, f"x{number}"], T=F32)
        source = f"s{number}"
    part.fetch(f"s{terms - 1}")
    part.fetch(f"s{terms - 2}")
    return compiled(part)


@pytest.mark.parametrize(("most", "found"), [(6, True), (5, False)])
def test_a_group_has_so_many_arguments(monkeypatch: pytest.MonkeyPatch, most: int, found: bool) -> None:
    monkeypatch.setattr(groups, "MAX_ARGUMENTS", most)  # four inputs and two results
    program = sum_of(4)
    fusion = grouped(program, {node.name: (7,) for node in program.compiled.part.nodes})
    assert bool(fusion.groups) == found
    if found:
        (group,) = fusion.groups
        assert sorted(group.inputs) == sorted((node_of(program, f"x{number}").index, 0) for number in range(4))
        assert group.outputs == [(node_of(program, name).index, 0) for name in ("s2", "s3")]


def test_what_nobody_reads_is_no_group() -> None:
    part = PartBuilder()
    part.feed("x")
    chain(part, "x", "a b c")
    part.fetch("x")
    assert grouped(compiled(part), dict.fromkeys("xabc", (3,))).groups == []


def test_what_is_read_within_alone_is_no_result() -> None:
    part = PartBuilder()
    part.feed("x")
    part.fetch(chain(part, "x", "a b c"))
    part.fetch("b")
    program = compiled(part)
    (group,) = grouped(program, dict.fromkeys("xabc", (3,))).groups
    assert group.outputs == [(node_of(program, name).index, 0) for name in "bc"]
    assert group.inputs == [(node_of(program, "x").index, 0)]


def test_rows_columns_and_scalars_go_along_in_a_loop() -> None:
    part = PartBuilder()
    shapes: dict[str, Shape] = {"x": (3, 4), "row": (4,), "column": (3, 1), "scalar": (), "other": (1, 4)}
    source = "x"
    for name in shapes:
        part.feed(name)
        if name != "x":
            source = part.node("Add", f"and_{name}", [source, name], T=F32)
    part.fetch(source)
    program = compiled(part)
    (group,) = grouped(program, {**shapes, **{f"and_{name}": (3, 4) for name in shapes}}).groups
    assert [node.name for node in group.members] == ["and_row", "and_column", "and_scalar"]
    assert isinstance(group.run, FusedRun)
    assert sorted(given.role for given in group.run.inputs) == ["column", "full", "row", "scalar"]


# -- what depends on shapes --------------------------------------------------------------------------------------------


def of_shapes(outside: str = "Shape") -> LoadedProgram:
    """x ─► Shape ─► one, two (of constants) ─► Reshape(y)."""
    part = PartBuilder()
    part.feed("x")
    part.feed("y")
    part.const("k", [2, 3], I32)
    part.node("Shape", "of_x", ["x"], T=F32, out_type=I32)
    part.node(outside, "of_y", ["y"], **({"T": F32, "out_type": I32} if outside == "Shape" else {}))
    part.node("Mul", "one", ["of_x", "k"], T=I32)
    part.node("Add", "two", ["one", "of_y"], T=I32)
    part.fetch("two", I32)
    part.fetch("one", I32)
    return compiled(part)


def test_what_depends_on_shapes_alone_is_remembered() -> None:
    program = of_shapes()
    (group,) = grouped(program, {}).groups
    assert {node.name for node in group.members} == {"of_x", "of_y", "one", "two"}
    assert isinstance(group.run, Remembered)
    assert (group.run.inputs, group.run.outputs) == (2, 2)
    assert sorted(group.inputs) == sorted((node_of(program, name).index, 0) for name in "xy")
    assert sorted(group.outputs) == sorted((node_of(program, name).index, 0) for name in ("one", "two"))
    assert group.source is None


@pytest.mark.parametrize(("most", "found"), [(2, True), (1, False)])
def test_what_looks_at_too_many_shapes_is_not(monkeypatch: pytest.MonkeyPatch, most: int, found: bool) -> None:
    monkeypatch.setattr(groups, "MAX_ARGUMENTS", most)
    assert bool(grouped(of_shapes(), {}).groups) == found


# -- where groups stand ------------------------------------------------------------------------------------------------


def order_of(fusion: Fusion, region: int = 0) -> list[str]:
    return [
        "+".join(node.name for node in item.members) if isinstance(item, Group) else item.name
        for item in fusion.schedule[region]
    ]


def test_all_runs_after_what_it_waits_for_and_a_group_where_its_last_member_was() -> None:
    part = PartBuilder()
    part.feed("x")
    chain(part, "x", "a b")
    part.const("axis", 0)
    part.node("Cumsum", "cumsum", ["b", "axis"], T=F32, Tidx=I32)
    part.node("Add", "sum", ["b", "cumsum"], T=F32)
    part.fetch(chain(part, "sum", "d"))
    program = compiled(part)
    fusion = grouped(program, dict.fromkeys(("x", "a", "b", "cumsum", "sum", "d"), (3,)))
    order = [name for name in order_of(fusion) if name in ("a+b", "cumsum", "sum+d")]
    assert order == ["a+b", "cumsum", "sum+d"]
    assert len(order_of(fusion)) == len(program.compiled.regions[0].nodes) - 2
    assert fusion.before == []
    (send,) = [item for item in fusion.schedule[0] if not isinstance(item, Group) and item.op == "_Send"]
    assert fusion.schedule[0].index(send) > order_of(fusion).index("sum+d")


def test_what_reads_a_group_waits_for_all_of_it() -> None:
    part = PartBuilder()
    part.const("axis", 0)
    part.feed("x")
    part.node("Neg", "a", ["x"], T=F32)
    part.node("Cumsum", "reader", ["a", "axis"], T=F32, Tidx=I32)
    part.node("Neg", "b", ["a"], T=F32)
    part.fetch("reader")
    part.fetch("b")
    program = compiled(part)
    indices = [node_of(program, name).index for name in ("a", "reader", "b")]
    assert indices == sorted(indices), "the reader stands between the two"
    order = order_of(grouped(program, dict.fromkeys(("x", "a", "b", "reader"), (3,))))
    assert [name for name in order if name in ("a+b", "reader")] == ["a+b", "reader"]


def test_without_groups_the_schedule_is_the_order_of_the_nodes() -> None:
    program = sum_of(4)
    fusion = grouped(program, {})
    assert fusion.groups == []
    assert [[item] for item in fusion.schedule[0]] == [[node] for node in program.compiled.regions[0].nodes]


def test_each_region_has_its_schedule() -> None:
    part = PartBuilder()
    other = "/job:ps/replica:0/task:0/device:CPU:0"
    for name in "ab":
        part.recv(name, F32, other, 5)
        part.send(chain(part, name, f"{name}1 {name}2"), F32, other, name)
    program = compiled(part)
    fusion = grouped(program, {name: (3,) for name in ("a", "a1", "a2", "b", "b1", "b2")})
    assert names(fusion) == [["a1", "a2"], ["b1", "b2"]]
    assert sorted(map(tuple, (order_of(fusion, region)[:1] for region in range(len(fusion.schedule))))) == [
        ("a1+a2",),
        ("b1+b2",),
    ]


def test_loops_that_are_compiled_already_come_first_and_keep_their_nodes() -> None:
    part = PartBuilder()
    part.feed("x")
    part.fetch(chain(part, "x", "a b c d"))
    program = compiled(part)
    loop = Group(0, [], cast("Any", object()), [], [], CACHE)
    loop.loop = cast("Any", SimpleNamespace(nodes=lambda: iter([node_of(program, "b")])))
    fusion = grouped(program, dict.fromkeys("xabcd", (3,)), loops=[loop])
    assert fusion.groups[0] is loop
    assert names(fusion)[1:] == [["c", "d"]]
    assert fusion.groups[1].number == 1


def test_a_part_with_branches_gets_what_each_node_waits_for(gpu: OnGpu) -> None:
    part = PartBuilder()
    part.feed("x")
    part.feed("p", dtypes.as_dtype("bool"))
    part.node("Switch", "switch", ["x", "p"], T=F32)
    part.node("Merge", "merge", [chain(part, "switch:0", "a b"), chain(part, "switch:1", "c d")], T=F32, N=2)
    part.fetch("merge")
    program = compiled(part)
    assert program.compiled.flow is not None
    shapes = dict.fromkeys(("x", "p", "switch", *"abcd", "merge"), (3,))
    fusion = grouped(program, shapes, resources=ResourceManager())
    assert gpu.orders == [], "nothing is on a GPU"
    assert fusion.schedule == []
    assert sorted(map(tuple, names(fusion))) == [("a", "b"), ("c", "d")]
    assert len(fusion.before) == len(program.compiled.part.nodes)
    a, b = node_of(program, "a"), node_of(program, "b")
    assert a.index in fusion.before[b.index]


# -- how a group is called ---------------------------------------------------------------------------------------------


def test_a_group_is_built_by_what_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def fallback() -> None:
        pass

    class Run:
        source = ("text", "signature")

        def build(self, *arguments: Any) -> tuple[Any, ...]:
            return arguments

    class Loop(ScalarLoop):
        source = ("loop", "signature")

        def __init__(self) -> None:
            pass

        def build(self, *arguments: Any) -> Any:
            return arguments

    def group(run: Any) -> Group:
        return Group(0, [], run, [], [], CACHE)

    assert group(Run()).source == ("text", "signature")
    assert group(Run()).build(fallback, 7) == cast("Any", (fallback, CACHE))
    assert group(Loop()).build(fallback, 7) == cast("Any", (fallback, CACHE, 7))
    fused_run = of_chain(2, (4,)).groups[0].run
    monkeypatch.setattr(fusion_module, "fused", lambda *arguments: arguments)
    assert group(fused_run).build(fallback, 7) == cast("Any", (fused_run, fallback, CACHE))


# -- on a GPU ----------------------------------------------------------------------------------------------------------


class OnGpu:
    """In place of what looks for updates and stretches on a GPU: takes the items that a test names."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.updates: set[str] = set()
        self.recorded: list[tuple[set[str], bool]] = []
        self.orders: list[list[Any]] = []
        monkeypatch.setattr(updates, "join_updates", self._join)
        monkeypatch.setattr(updates, "updates_of", lambda item, levels, resources: ("updates", [(1, 0)], [(2, 0)]))
        monkeypatch.setattr(captures, "stretches", self._stretches)
        monkeypatch.setattr(captures.Stretch, "is_worth_it", property(lambda stretch: stretch.device == "worth it"))

    def _join(self, order: Sequence[Any], levels: Any) -> list[Any]:
        self.orders.append(list(order))
        found: list[Any] = []
        joined = [item for item in order if getattr(item, "name", "") in self.updates]
        for item in order:
            if item not in joined:
                found.append(item)
            elif item is joined[-1]:
                found.append(joined)
        return found

    def _stretches(self, order: Sequence[Any], levels: Any) -> list[Any]:
        found: list[Any] = list(order)
        for wanted, worth in self.recorded:
            items = [item for item in found if getattr(item, "name", "") in wanted]
            if items:
                found[found.index(items[0])] = captures.Stretch("worth it" if worth else "", items)
                found = [item for item in found if item not in items]
        return found


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> OnGpu:
    return OnGpu(monkeypatch)


def with_memory(program: LoadedProgram, name: str) -> LoadedProgram:
    """Lets a node that cannot be fused look like one of a GPU."""
    node_of(program, name).memory = cast("Any", ((True,), (True,)))
    return program


def four_sums() -> LoadedProgram:
    """x ─► Cumsum ─► … four times, of which no two are fused."""
    part = PartBuilder()
    part.feed("x")
    part.const("axis", 0)
    source = "x"
    for name in "pqrs":
        part.node("Cumsum", name, [source, "axis"], T=F32, Tidx=I32)
        source = name
    part.fetch("s")
    part.fetch("q")
    return compiled(part)


def test_nothing_is_looked_for_where_no_node_is_on_a_gpu(gpu: OnGpu) -> None:
    grouped(four_sums(), {}, resources=ResourceManager())
    grouped(with_memory(four_sums(), "q"), {})
    assert gpu.orders == []


def test_updates_that_run_as_one_are_a_group(gpu: OnGpu) -> None:
    gpu.updates = {"p", "q"}
    fusion = grouped(with_memory(four_sums(), "q"), {}, resources=ResourceManager())
    (group,) = fusion.groups
    assert [node.name for node in group.members] == ["p", "q"]
    assert (group.number, group.run, group.inputs, group.outputs) == (0, "updates", [(1, 0)], [(2, 0)])
    order = order_of(fusion)
    assert [name for name in order if name[0] in "pqrs" and "send" not in name] == ["p+q", "r", "s"]
    assert group in fusion.schedule[0]


def test_a_stretch_that_is_worth_it_is_recorded_and_another_one_left(gpu: OnGpu) -> None:
    gpu.recorded = [({"q", "r"}, True), ({"p"}, False)]
    program = with_memory(four_sums(), "q")
    resources = ResourceManager()
    fusion = grouped(program, {}, resources=resources)
    (group,) = fusion.groups
    assert [node.name for node in group.members] == ["q", "r"]
    assert list(group.items) == group.members
    p, q, r = (node_of(program, name) for name in "pqr")
    assert group.inputs == [(p.index, 0)], "once, and no constant"
    assert sorted(group.outputs) == sorted([(q.index, 0), (r.index, 0)])
    assert isinstance(group.run, captures.Capture)
    order = order_of(fusion)
    assert [name for name in order if name[0] in "pqrs" and "send" not in name] == ["p", "q+r", "s"]


def test_a_group_in_a_stretch_brings_its_members_and_its_inputs(gpu: OnGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    part = PartBuilder()
    part.feed("x")
    part.const("axis", 0)
    part.node("Cumsum", "p", ["x", "axis"], T=F32, Tidx=I32)
    part.fetch(chain(part, "p", "a b"))
    program = with_memory(compiled(part), "p")
    monkeypatch.setattr(
        captures,
        "stretches",
        lambda order, levels: [
            captures.Stretch("worth it", [item for item in order if isinstance(item, Group) or item.name == "p"])
        ],
    )
    fusion = grouped(program, dict.fromkeys(("x", "p", "a", "b"), (3,)), resources=ResourceManager())
    inner, outer = fusion.groups
    assert [node.name for node in inner.members] == ["a", "b"]
    assert [node.name for node in outer.members] == ["p", "a", "b"]
    assert outer.number == 1
    assert outer.inputs == [(node_of(program, "x").index, 0)]
    assert outer.outputs == [(node_of(program, "b").index, 0)]
    assert fusion.schedule == [[outer]]


def test_of_a_part_with_loops_updates_are_sought_outside_of_them(gpu: OnGpu) -> None:
    part = PartBuilder()
    part.feed("x")
    part.const("axis", 0)
    part.node("Cumsum", "p", ["x", "axis"], T=F32, Tidx=I32)
    part.node("Cumsum", "q", ["p", "axis"], T=F32, Tidx=I32)
    frames: list[str] = []
    source = "q"
    for frame in ("outer", "inner"):
        part.node("Enter", f"enter_{frame}", [source], T=F32, frame_name=frame, is_constant=False)
        part.node("Merge", f"merge_{frame}", [f"enter_{frame}", f"next_{frame}"], T=F32, N=2)
        part.node("Less", f"less_{frame}", [f"merge_{frame}", f"merge_{frame}"], T=F32)
        part.node("LoopCond", f"cond_{frame}", [f"less_{frame}"])
        part.node("Switch", f"switch_{frame}", [f"merge_{frame}", f"cond_{frame}"], T=F32)
        source = f"switch_{frame}:1"
        frames.append(frame)
    part.node("Neg", "body", [source], T=F32)
    part.node("NextIteration", "next_inner", ["body"], T=F32)
    part.node("Exit", "exit_inner", ["switch_inner:0"], T=F32)
    part.node("NextIteration", "next_outer", ["exit_inner"], T=F32)
    part.node("Exit", "exit_outer", ["switch_outer:0"], T=F32)
    part.node("Cumsum", "r", ["exit_outer", "axis"], T=F32, Tidx=I32)
    part.fetch("r")
    program = with_memory(compiled(part), "q")
    assert program.compiled.flow is not None
    gpu.updates = {"p", "q"}
    fusion = grouped(program, {}, resources=ResourceManager())
    assert [[node.name for node in group.members] for group in fusion.groups] == [["p", "q"]]
    (order,) = gpu.orders
    (loop,) = [item for item in order if isinstance(item, LoopOfPart)]
    inside = {node.name for node in loop.nodes()}
    assert {"body", "enter_outer", "enter_inner", "exit_outer", "merge_inner", "next_outer"} <= inside
    outside = {item.name for item in order if isinstance(item, PartNode)}
    assert {"x", "axis", "p", "q", "r"} <= outside
    assert not inside & outside
    assert len(inside | outside) == len(program.compiled.part.nodes)
    assert fusion.schedule == []


def test_a_part_with_branches_consists_of_nodes_groups_and_loops() -> None:
    part = PartBuilder()
    for number in range(5):
        part.feed(f"x{number}")
    nodes = compiled(part).compiled.part.nodes
    loop = LoopOfPart("f", (), enters=[nodes[2]])
    stands_for = {2: loop, 3: loop}
    tree = SimpleNamespace(standing_in=lambda frame, node: stands_for.get(node.index, node))
    whole, flow = cast("Any", SimpleNamespace(nodes=nodes)), cast("Any", SimpleNamespace(tree=tree))
    group: Any = object()
    assert groups._outermost(whole, flow, {0: group, 1: group}) == [group, loop, nodes[4]]
