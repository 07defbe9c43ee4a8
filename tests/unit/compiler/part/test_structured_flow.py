"""Guards, and loops cut in three: what runs when, and what cannot be written as structured code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.parts import PartBuilder
from tenfold_compiler.part.guards import ALIVE, ALWAYS, ANY, TRUTH, Literal, case_of, source_of, truth_of
from tenfold_compiler.part.loop_tree import Unstructured, nodes_of
from tenfold_compiler.part.read_part import read_part
from tenfold_compiler.part.structured_flow import ControlFlow, is_name, read_control_flow
from tenfold_core import dtypes
from tenfold_core.opdefs.runtime_ops import CONSTANT_OPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_compiler.part.part_graph import PartNode

TASK = "/job:localhost/replica:0/task:0"
FAR = "/job:worker/replica:0/task:0/device:CPU:0"
F32, I32, BOOL = dtypes.float32, dtypes.int32, dtypes.bool_


class Flow(PartBuilder):
    """A part of branches and loops; x is fed, p and q are fed predicates."""

    def __init__(self) -> None:
        super().__init__()
        self.feed("x")
        for name in "pq":
            self.feed(name, BOOL)
        self.blocking: tuple[str, ...] = ()

    def switch(self, name: str, source: str = "x", predicate: str = "p") -> None:
        self.node("Switch", name, [source, predicate], T=F32)

    def neg(self, name: str, *inputs: str) -> str:
        return self.node("Neg", name, inputs, T=F32)

    def merge(self, name: str, *inputs: str) -> None:
        self.node("Merge", name, inputs, T=F32, N=sum(not each.startswith("^") for each in inputs))

    def read(self) -> Read:
        return Read(self)


class Read:
    def __init__(self, flow: Flow) -> None:
        self.part = read_part(flow.graph_def, TASK, 1000)
        self.at: dict[str, PartNode] = {node.name: node for node in self.part.nodes}
        for name in flow.blocking:
            self.at[name].blocking = True
        constants = {node.index for node in self.part.nodes if node.op in CONSTANT_OPS}
        self.flow: ControlFlow = read_control_flow(self.part, constants)

    def guard(self, name: str) -> set[str]:
        """Of a node: "p" for a true predicate, "!p" for a false one, "name is 2 of 3", "name came", "any of name"."""
        found = set()
        for literal in self.flow.guards.of[self.at[name].index]:
            (index, port), value, values = literal
            of = self.part.nodes[index].name
            if port == ALIVE:
                found.add(f"{of} came")
            elif port == ANY:
                found.add(f"any of {of}")
            elif (TRUTH - port) % 2:
                found.add(f"{of} is {value} of {values}")
            else:
                found.add(of if value else f"!{of}")
        return found


def test_names_of_what_is_tested() -> None:
    assert truth_of((5, 0)) == (5, TRUTH)
    assert truth_of((5, 2)) == (5, TRUTH - 4)
    assert case_of((5, 2)) == (5, TRUTH - 5)
    for edge in ((5, 0), (5, 1), (7, 3)):
        assert source_of(truth_of(edge)) == source_of(case_of(edge)) == edge
    assert source_of((5, ALIVE)) == source_of((5, ANY)) == (5, 0)
    assert Literal((1, TRUTH), 1, 2).other == Literal((1, TRUTH), 0, 2)
    assert Literal((1, TRUTH), 0, 2).other.value == 1


def test_branches_and_their_merge() -> None:
    part = Flow()
    part.switch("s")
    part.neg("yes", "s:1")
    part.neg("no", "s:0")
    part.node("NoOp", "after", ["^yes"])
    part.switch("inner", "yes", "q")
    part.neg("both", "inner:1")
    part.merge("m", "inner:0", "both")
    part.merge("all", "no", "m")
    part.neg("free", "all")
    read = part.read()
    wanted = {
        "x": set(), "s": set(), "yes": {"p"}, "no": {"!p"}, "after": {"p"}, "inner": {"p"},
        "both": {"p", "q"}, "m": {"p"}, "all": set(), "free": set(),
    }  # fmt: skip
    assert {name: read.guard(name) for name in wanted} == wanted
    assert read.flow.guards.of[read.at["all"].index] is ALWAYS
    assert not read.flow.guards.flagged


def test_a_merge_of_some_cases_has_a_literal_of_its_own() -> None:
    part = Flow()
    part.switch("s")
    part.switch("t", "x", "q")
    part.merge("m", "s:1", "t:1")
    part.neg("n", "m")
    read = part.read()
    assert read.guard("m") == {"any of m"}
    assert read.guard("n") == {"any of m"}
    assert list(read.flow.guards.flagged) == [read.at["m"].index]


def test_what_the_cases_of_a_merge_have_in_common_stays() -> None:
    part = Flow()
    part.feed("r", BOOL)
    part.switch("s")
    part.switch("t", "s:1", "q")
    part.switch("u", "s:1", "r")
    part.merge("m", "t:1", "u:1")
    assert part.read().guard("m") == {"p", "any of m"}


def test_a_case_that_another_one_holds_counts_once() -> None:
    part = Flow()
    part.switch("s")
    part.switch("t", "s:1", "q")
    part.merge("m", "s:1", "t:1")
    assert part.read().guard("m") == {"p"}


def test_a_case_that_no_step_has_does_not_count() -> None:
    part = Flow()
    part.switch("s")
    part.switch("never", "s:1")
    part.merge("m", "never:0", "s:0")
    part.merge("none", "never:0", "never:0")
    read = part.read()
    assert read.guard("m") == {"!p"}
    assert read.guard("none") == {"p", "!p"}
    assert not read.flow.guards.flagged


def test_a_merge_that_is_always_alive() -> None:
    part = Flow()
    part.switch("s")
    part.merge("m", "x", "s:1")
    assert part.read().guard("m") == set()


def test_branches_by_number() -> None:
    part = Flow()
    part.feed("k", I32)
    part.node("_SwitchN", "s", ["x", "k"], T=F32, num_outs=3)
    for number in range(3):
        part.neg(f"n{number}", f"s:{number}")
    part.merge("all", "n0", "n1", "n2")
    part.merge("some", "n0", "n2")
    read = part.read()
    assert [read.guard(f"n{number}") for number in range(3)] == [{f"k is {number} of 3"} for number in range(3)]
    assert read.guard("all") == set()
    assert read.guard("some") == {"any of some"}


def test_what_comes_from_another_task_may_be_dead() -> None:
    part = Flow()
    part.recv("r", F32, FAR, 7)
    part.neg("n", "r")
    part.node("ControlTrigger", "trigger", ["^n"])
    part.switch("s")
    part.recv("late", F32, FAR, 7, ["^s"], "edge")
    read = part.read()
    assert read.guard("r") == read.guard("n") == {"r came"}
    assert read.guard("trigger") == set()
    assert read.guard("late") == {"late came"}
    assert read.guard("x") == set()


def test_what_the_master_knows_to_be_alive_is_not_tested() -> None:
    part = Flow()
    part.recv("r", F32, FAR, 7)
    next(node for node in part.graph_def.node if node.name == "r").attr["_alive"].b = True
    part.neg("n", "r")
    part.switch("s", "n")
    part.neg("in_branch", "s:1")
    read = part.read()

    assert read.guard("r") == read.guard("n") == set()
    assert read.guard("in_branch") == {"p"}


def test_a_predicate_is_looked_through_to_its_producer() -> None:
    part = Flow()
    part.node("Identity", "alias", ["p"], T=BOOL)
    part.switch("s", "x", "alias")
    part.neg("n", "s:1")
    read = part.read()
    assert read.guard("n") == {"p"}
    assert read.flow.origin[read.at["alias"].index, 0] == (read.at["p"].index, 0)
    assert read.flow.origin[read.at["s"].index, 1] == (read.at["x"].index, 0)
    assert read.flow.guards.predicate(read.at["s"]) == truth_of((read.at["p"].index, 0))


def test_a_reference_is_read_when_its_switch_runs() -> None:
    part = Flow()
    part.node("VariableV2", "v", dtype=BOOL, shape=[])
    part.switch("s", "x", "v")
    part.neg("n", "s:1")
    read = part.read()
    assert read.guard("n") == {"s"}


def loop(part: Flow, *, go_on: str = "1", leave: str = "0", inside: str = "", twice: bool = False) -> None:
    """while cond(v): v = -v, of x; the Exit is `exit`."""
    for name in ("v", "w")[: 1 + twice]:
        part.node("Enter", f"{name}_enter", ["x"], T=F32, frame_name="f")
        part.merge(name, f"{name}_enter", f"{name}_next")
    part.node("Less", "less", ["v", "v"], T=F32)
    part.node("LoopCond", "cond", ["less"])
    for name in ("v", "w")[: 1 + twice]:
        part.switch(f"{name}_switch", name, "cond")
        part.neg(f"{name}_more", f"{name}_switch:{go_on}")
        part.node("NextIteration", f"{name}_next", [inside or f"{name}_more"], T=F32)
        part.node("Exit", f"{name}_exit", [f"{name}_switch:{leave}"], T=F32)


def names(members: Any) -> set[str]:
    return {member.name for member in members}


@pytest.mark.parametrize(("go_on", "leave"), [("1", "0"), ("0", "1")])
def test_a_loop_is_cut_in_three(go_on: str, leave: str) -> None:
    part = Flow()
    loop(part, go_on=go_on, leave=leave)
    part.neg("over", f"v_switch:{leave}")
    part.node("NoOp", "after", ["^v_more"])
    part.neg("end", "v_exit")
    read = part.read()
    (only,) = read.flow.tree.loops
    sections = read.flow.sections[only]
    assert names(sections.head) == {"v", "less", "cond", "v_switch"}
    assert names(sections.body) == {"v_more", "v_next", "after"}
    assert names(sections.tail) == {"v_exit", "over"}
    assert sections.goes_on.edge == truth_of((read.at["less"].index, 0))
    assert sections.goes_on.value == int(go_on)
    assert read.flow.guards.of_member(only) == ALWAYS
    assert read.guard("end") == set()
    assert set(read.flow.entries(read.at["end"])) == {read.at["v_enter"]}
    assert list(read.flow.entries(read.at["v_more"])) == []
    assert read.flow.tested(read.at["v_more"]) == [read.at["less"].index]
    assert read.flow.tested(read.at["v"]) == []
    every = [node.name for node in nodes_of(read.flow.tree.members)]
    assert sorted(every) == sorted(read.at)
    assert every.index("v_enter") < every.index("v_next") < every.index("end")


def test_each_node_of_a_condition_is_followed_once() -> None:
    """Of forty sums of two each there are 2⁴⁰ ways back to what enters the loop."""
    part = Flow()
    part.node("Enter", "v_enter", ["x"], T=F32, frame_name="f")
    part.merge("v", "v_enter", "v_next")
    source = "v"
    for number in range(40):
        source = part.node("Add", f"sum{number}", [source, source], T=F32)
    part.node("Less", "less", [source, source], T=F32)
    part.switch("v_switch", "v", "less")
    part.node("NextIteration", "v_next", ["v_switch:1"], T=F32)
    part.node("Exit", "v_exit", ["v_switch:0"], T=F32)
    read = part.read()
    (only,) = read.flow.tree.loops
    assert read.flow.guards.goes_on[only] == Literal(truth_of((read.at["less"].index, 0)), 1, 2)


def test_a_loop_in_a_branch_runs_where_the_branch_does() -> None:
    part = Flow()
    part.switch("s")
    part.node("Identity", "x2", ["s:1"], T=F32)
    part.graph_def.node[-1].name = "x2"
    part.node("Enter", "v_enter", ["x2"], T=F32, frame_name="f")
    part.merge("v", "v_enter", "v_next")
    part.node("Less", "less", ["v", "v"], T=F32)
    part.switch("v_switch", "v", "less")
    part.node("NextIteration", "v_next", ["v_switch:1"], T=F32)
    part.node("Exit", "v_exit", ["v_switch:0"], T=F32)
    part.neg("end", "v_exit")
    read = part.read()
    (only,) = read.flow.tree.loops
    assert read.guard("end") == {"p"}
    assert read.flow.guards.of_member(only) == read.flow.guards.of[read.at["end"].index]
    assert read.guard("v") == set()


def test_places_tell_regions_loops_guards_and_parts_of_turns_apart() -> None:
    part = Flow()
    loop(part)
    part.switch("s")
    part.neg("yes", "s:1")
    part.neg("also", "s:1")
    part.neg("no", "s:0")
    read = part.read()
    regions = [0] * len(read.part.nodes)
    places = {name: read.flow.places(regions)[node.index] for name, node in read.at.items()}
    assert places["yes"] == places["also"] != places["no"]
    assert places["x"] == places["s"] != places["yes"]
    assert len({places[name] for name in ("v", "v_more", "v_exit", "x")}) == 4
    regions[read.at["also"].index] = 1
    split = read.flow.places(regions)
    assert split[read.at["also"].index] != split[read.at["yes"].index]


def test_a_merge_tests_what_its_inputs_hang_on() -> None:
    part = Flow()
    part.switch("s")
    part.merge("m", "s:0", "s:1")
    read = part.read()
    assert set(read.flow.tested(read.at["m"])) == {read.at["p"].index}
    assert read.flow.tested(read.at["s"]) == []


def test_what_is_nothing_but_a_name() -> None:
    part = Flow()
    part.switch("s")
    part.merge("m", "s:0", "s:1")
    part.neg("n", "m")
    part.node("VariableV2", "v", dtype=F32, shape=[])
    part.switch("read", "v")
    read = part.read()
    assert [name for name, node in read.at.items() if is_name(node)] == ["s"]


def waits_in_a_loop(part: Flow) -> None:
    loop(part)
    part.recv("r", F32, FAR, 7, ["^v"])


def blocks_in_a_loop(part: Flow) -> None:
    loop(part)
    part.blocking = ("v_more",)


def sends_in_a_loop(part: Flow) -> None:
    loop(part)
    part.send("v_more", F32, FAR, "edge")


def two_conditions(part: Flow) -> None:
    loop(part, twice=True)
    (node,) = (node for node in part.graph_def.node if node.name == "w_next")
    node.input[0] = "w"


def no_condition(part: Flow) -> None:
    loop(part, inside="v")
    (node,) = (node for node in part.graph_def.node if node.name == "v_exit")
    node.input[0] = "v"


def outer_condition(part: Flow) -> None:
    part.node("Enter", "p_in", ["p"], T=BOOL, frame_name="f", is_constant=True)
    part.node("Enter", "v_enter", ["x"], T=F32, frame_name="f")
    part.merge("v", "v_enter", "v_next")
    part.switch("v_switch", "v", "p_in")
    part.node("NextIteration", "v_next", ["v_switch:1"], T=F32)
    part.node("Exit", "v_exit", ["v_switch:0"], T=F32)


def leaves_anywhere(part: Flow) -> None:
    loop(part)
    part.node("Exit", "e", ["v"], T=F32)


def first_comes(part: Flow) -> None:
    part.merge("m", "x", "n")
    part.neg("n", "x")
    part.blocking = ("n",)


def received_after_another(part: Flow) -> None:
    part.switch("s")
    part.neg("n", "s:0")
    part.recv("r", F32, FAR, 7, ["^n"])
    part.merge("m", "n", "r")


def reads_a_reference(part: Flow) -> None:
    loop(part)
    part.node("VariableV2", "v2", dtype=F32, shape=[])
    part.node("RefEnter", "ref", ["v2"], T=F32, frame_name="f", is_constant=True)
    part.node("RefSwitch", "ref_switch", ["ref", "cond"], T=F32)
    part.node("Exit", "e", ["ref_switch:0"], T=F32)


def effect_of_another_turn(part: Flow) -> None:
    loop(part)
    part.node("VariableV2", "v2", dtype=F32, shape=[])
    part.node("RefEnter", "ref", ["v2"], T=F32, frame_name="f", is_constant=True)
    part.node("ControlTrigger", "trigger", ["^v_more"])
    part.node("AssignAdd", "add", ["ref", "v", "^trigger"], T=F32)


def head_after_tail(part: Flow) -> None:
    loop(part)
    part.neg("over", "v_switch:0")
    part.node("ControlTrigger", "trigger", ["^over"])


def body_after_tail(part: Flow) -> None:
    loop(part)
    part.neg("over", "v_switch:0")
    part.neg("both", "v_more", "^over")


def dead_inputs(part: Flow) -> None:
    part.switch("s")
    part.node("Enter", "v_enter", ["x"], T=F32, frame_name="f")
    part.node("Enter", "c", ["s:1"], T=F32, frame_name="f", is_constant=True)
    part.merge("v", "v_enter", "v_next")
    part.node("Less", "less", ["v", "v"], T=F32)
    part.switch("v_switch", "v", "less")
    part.node("Add", "more", ["v_switch:1", "c"], T=F32)
    part.node("NextIteration", "v_next", ["more"], T=F32)
    part.node("Exit", "v_exit", ["v_switch:0"], T=F32)


def cases_of_two_counts(part: Flow) -> None:
    part.feed("n", I32)
    for count in (2, 3):
        part.node("_SwitchN", f"s{count}", ["x", "n"], T=F32, num_outs=count)
        part.neg(f"a{count}", f"s{count}:1")


REFUSED: dict[str, tuple[Callable[[Flow], Any], str]] = {
    "a number of two counts of cases": (cases_of_two_counts, "'s3' looks at a number of which another one has more or"),
    "a Recv in a loop": (waits_in_a_loop, "'r' may have to wait in a loop"),
    "a Send in a loop": (sends_in_a_loop, "'send_edge' may have to wait in a loop"),
    "a kernel that waits in a loop": (blocks_in_a_loop, "'v_more' may have to wait in a loop"),
    "two conditions": (two_conditions, "the variables of 'f' go on under different conditions"),
    "no condition": (no_condition, "'f' goes on under 0 conditions"),
    "a condition from outside": (outer_condition, "the condition of 'f' does not change"),
    "an Exit of every turn": (leaves_anywhere, "'e' does not leave 'f' where it ends"),
    "a Merge of what comes first": (first_comes, "Merge 'm' takes what comes first, and some kernel may wait"),
    "a Merge of what is received late": (
        received_after_another,
        "Merge 'm' takes what is received after another of its inputs",
    ),
    "a reference that leaves a loop": (reads_a_reference, "'e' reads a reference"),
    "an effect that waits for the body": (effect_of_another_turn, "some node of 'f' waits for one of another turn"),
    "a head that waits for the tail": (head_after_tail, "some node of 'f' waits for one of the last turn"),
    "a body that waits for the tail": (body_after_tail, "some node of 'f' waits for one of the last turn"),
    "inputs that may be dead": (dead_inputs, "'f' would run while some of its inputs are dead"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    build, text = REFUSED[name]
    part = Flow()
    build(part)
    with pytest.raises(Unstructured, match=text) as caught:
        part.read()
    assert caught.value.nodes, "split_part needs to know what to cut out"


def test_what_has_no_effect_sinks_into_the_body_that_it_waits_for() -> None:
    part = Flow()
    loop(part)
    part.node("ControlTrigger", "trigger", ["^v_more"])
    part.neg("pure", "v", "^trigger")
    read = part.read()
    (sections,) = read.flow.sections.values()
    assert {"trigger", "pure"} <= names(sections.body)
