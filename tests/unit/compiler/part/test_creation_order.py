"""Reads and updates that no edge orders run in the order of their creation, on each executor. No event loop."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.parts import PartBuilder
from support.programs import compile_program, node_by_node
from tenfold_compiler.part.creation_order import creation_order, keep_order, pairs
from tenfold_compiler.part.read_part import read_part
from tenfold_core import dtypes
from tenfold_kernels.resources.state import ResourceManager
from tenfold_services.worker.execution import StepIO

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_services.worker.loaded_program import LoadedProgram

TASK = "/job:localhost/replica:0/task:0"
OTHER = "/job:worker/replica:0/task:0/device:CPU:0"
F32, BOOL, RESOURCE = dtypes.float32, dtypes.bool_, dtypes.resource


def compiled(part: PartBuilder, resources: ResourceManager) -> LoadedProgram:
    return compile_program(part.graph_def, TASK, resources)


def run(program: LoadedProgram, feeds: dict[str, Any] | None = None, dynamic: bool = False) -> dict[str, Any]:
    """The fetched values by the name of what was fetched."""
    io = StepIO(feeds or {}, lambda *_: None)
    execution = node_by_node(program, io) if dynamic else program.start(io)
    while execution.ready:
        execution.advance()
    assert execution.done
    return {key.split(";")[3]: np.asarray(value).item() for key, value in execution.fetched().items()}


class Variables:
    """Of a part: `v` a reference, `r` a resource, each a scalar."""

    def __init__(self, part: PartBuilder, count: int = 1) -> None:
        self.part = part
        for number in range(count):
            part.node("VariableV2", f"v{number}", dtype=F32, shape=[])
            part.node("VarHandleOp", f"r{number}", dtype=F32, shape=[], shared_name=f"r{number}")

    def read(self, variable: str, name: str) -> str:
        """A node that has minus its value."""
        if variable.startswith("v"):
            return self.part.node("Neg", name, [variable], T=F32)
        self.part.node("ReadVariableOp", f"{name}/read", [variable], dtype=F32)
        return self.part.node("Neg", name, [f"{name}/read"], T=F32)

    def add(self, variable: str, value: str, name: str) -> str:
        if variable.startswith("v"):
            return self.part.node("AssignAdd", name, [variable, value], T=F32)
        return self.part.node("AssignAddVariableOp", name, [variable, value], dtype=F32)


def initialized(count: int = 1) -> ResourceManager:
    """Variables v0, r0, … with the values 1, 2, …."""
    part, resources = PartBuilder(), ResourceManager()
    Variables(part, count)
    for number in range(count):
        part.const(f"c{number}", np.float32(number + 1))
        part.node("Assign", f"init_v{number}", [f"v{number}", f"c{number}"], T=F32)
        part.node("AssignVariableOp", f"init_r{number}", [f"r{number}", f"c{number}"], dtype=F32)
    run(compiled(part, resources))
    return resources


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("variable", ["v0", "r0"])
@pytest.mark.parametrize("first", ["read", "update"])
def test_what_is_created_first_goes_first(first: str, variable: str, dynamic: bool) -> None:
    part = PartBuilder()
    variables = Variables(part)
    part.const("ten", np.float32(10))
    if first == "update":
        variables.add(variable, "ten", "up")
    variables.read(variable, "seen")
    part.fetch("seen")
    if first == "read":
        variables.add(variable, "ten", "up")
    variables.read(variable, "later")
    part.fetch("later")
    program = compiled(part, initialized())

    assert run(program, dynamic=dynamic) == {"fetch_seen": -11.0 if first == "update" else -1.0, "fetch_later": -11.0}
    assert run(program, dynamic=dynamic) == {"fetch_seen": -21.0 if first == "update" else -11.0, "fetch_later": -21.0}


@pytest.mark.parametrize("dynamic", [False, True])
def test_an_update_waits_for_an_earlier_read_that_is_not_ready(dynamic: bool) -> None:
    part = PartBuilder()
    variables = Variables(part)
    part.const("ten", np.float32(10))
    x = part.feed("x")
    part.node("Exp", "long", ["x"], T=F32)
    part.node("ReadVariableOp", "read", ["r0", "^long"], dtype=F32)
    part.fetch("read")
    variables.add("r0", "ten", "up")

    assert run(compiled(part, initialized()), {x: np.float32(0).reshape(())}, dynamic) == {"fetch_read": 1.0}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("way", ["up", "passed"])
def test_an_update_waits_for_a_read_through_what_an_assignment_gives(way: str, dynamic: bool) -> None:
    part = PartBuilder()
    variables = Variables(part)
    part.const("ten", np.float32(10))
    x = part.feed("x")
    part.node("Exp", "long", ["x"], T=F32)
    variables.add("v0", "ten", "up")
    part.node("RefIdentity", "passed", ["up"], T=F32)
    part.node("Neg", "seen", [way, "^long"], T=F32)
    part.fetch("seen")
    variables.add("v0", "ten", "more")

    assert run(compiled(part, initialized()), {x: np.float32(0).reshape(())}, dynamic) == {"fetch_seen": -11.0}


def test_what_is_made_of_a_value_stands_for_no_variable() -> None:
    part = PartBuilder()
    variables = Variables(part)
    part.const("ten", np.float32(10))
    part.node("Neg", "value", ["v0"], T=F32)
    part.recv("from", F32, OTHER, 1)
    part.node("Exp", "later", ["value", "^from"], T=F32)
    part.fetch("later")
    variables.add("v0", "ten", "up")
    nodes = read_part(part.graph_def, TASK, 1000).nodes

    assert [(nodes[one].name, nodes[other].name) for one, other in pairs(nodes, range(len(nodes)))] == [("value", "up")]


def test_it_does_not_wait_for_what_another_task_brings() -> None:
    part = PartBuilder()
    variables = Variables(part)
    part.const("ten", np.float32(10))
    part.recv("from", F32, OTHER, 1)
    part.node("ReadVariableOp", "read", ["r0", "^from"], dtype=F32)
    part.fetch("read")
    variables.add("r0", "ten", "up")
    program = compiled(part, initialized())
    execution = program.start(StepIO({}, lambda *_: None))
    (wanted,) = execution.take_wanted()
    execution.advance()
    execution.arrived(wanted.token, np.zeros((), np.float32), False)
    execution.advance()

    assert [np.asarray(value).item() for value in execution.fetched().values()] == [11.0]


def test_a_read_for_another_task_goes_before_a_later_update() -> None:
    part = PartBuilder()
    variables = Variables(part)
    part.const("ten", np.float32(10))
    part.node("ReadVariableOp", "read", ["r0"], dtype=F32)
    part.send("read", F32, OTHER, "r")
    part.send("v0", F32, OTHER, "v")
    variables.add("r0", "ten", "up r")
    variables.add("v0", "ten", "up v")
    sent = {}

    def send(key: str, value: Any, is_dead: bool) -> None:
        sent[key.split(";")[3]] = float(getattr(value, "value", value))

    execution = compiled(part, initialized()).start(StepIO({}, send))
    execution.advance()

    assert sent == {"r": 1.0, "v": 1.0}


@pytest.mark.parametrize("taken", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
def test_beside_a_conditional(taken: bool, dynamic: bool) -> None:
    """A read in a branch that is not taken does not keep an update from running."""
    part = PartBuilder()
    variables = Variables(part)
    p = part.feed("p", BOOL)
    part.const("ten", np.float32(10))
    part.node("Switch", "handle", ["r0", "p"], T=RESOURCE)
    part.node("ReadVariableOp", "in branch", ["handle:1"], dtype=F32)
    part.node("Switch", "else", ["ten", "p"], T=F32)
    part.node("Merge", "merge", ["else", "in branch"], T=F32, N=2)
    part.fetch("merge")
    variables.read("r0", "before")
    part.fetch("before")
    variables.add("r0", "ten", "up")
    variables.read("r0", "after")
    part.fetch("after")
    found = run(compiled(part, initialized()), {p: np.array(taken)}, dynamic)

    assert (found["fetch_before"], found["fetch_after"]) == (-1.0, -11.0)
    assert found["fetch_merge"] in ((1.0, 11.0) if taken else (10.0,))


def test_two_handles_of_one_variable_are_one() -> None:
    part = PartBuilder()
    variables = Variables(part)
    part.node("VarHandleOp", "again", dtype=F32, shape=[], shared_name="r0")
    part.const("ten", np.float32(10))
    variables.add("again", "ten", "up")
    part.node("ReadVariableOp", "read", ["r0"], dtype=F32)
    part.fetch("read")
    graph = part.graph_def
    add = next(node for node in graph.node if node.name == "up")
    add.op = "AssignAddVariableOp"

    assert run(compiled(part, initialized())) == {"fetch_read": 11.0}


def test_effects_beside_variables_keep_their_order() -> None:
    """Prints and checks run as they were created, and an update after a check that was created before it."""
    part = PartBuilder()
    variables = Variables(part)
    part.const("ten", np.float32(10))
    part.const("true", np.array(True))
    for number in range(3):
        part.node("Assert", f"check{number}", ["true", "ten"], T=[F32])
        variables.add("r0", "ten", f"up{number}")
    nodes = read_part(part.graph_def, TASK, 100).nodes

    effects = [node.name for node in nodes if node.name[:2] in ("ch", "up")]
    assert effects == ["check0", "up0", "check1", "up1", "check2", "up2"]


def test_a_graph_in_another_order_than_its_edges() -> None:
    part = PartBuilder()
    part.node("Neg", "b", ["a"], T=F32)
    part.node("Neg", "a", ["c"], T=F32)
    part.node("Neg", "d", ["c"], T=F32)
    part.const("c", np.float32(1))
    nodes = read_part(part.graph_def, TASK, 100).nodes
    by_index = [node.name for node in nodes]

    assert by_index.index("c") < by_index.index("a") < by_index.index("b")
    assert list(creation_order(nodes)) == list(range(4))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_random_programs_give_what_they_say(seed: int, dynamic: bool) -> None:
    """Read line by line, as Python would."""
    draw, part, count = random.Random(seed), PartBuilder(), 2
    variables = Variables(part, count)
    values = {f"{kind}{number}": float(number + 1) for number in range(count) for kind in "vr"}
    part.const("c", np.float32(0.5))
    known, fetched = {"c": 0.5}, {}
    for number in range(25):
        name, variable = f"n{number}", draw.choice(sorted(values))
        action = draw.random()
        if action < 0.35:
            known[variables.read(variable, name)] = -values[variable]
            part.fetch(name)
            fetched[f"fetch_{name}"] = -values[variable]
        elif action < 0.7:
            given = draw.choice(sorted(known))
            variables.add(variable, given, name)
            values[variable] += known[given]
        else:
            a, b = draw.choice(sorted(known)), draw.choice(sorted(known))
            part.node("Sub", name, [a, b], T=F32)
            known[name] = known[a] - known[b]
            part.fetch(name)
            fetched[f"fetch_{name}"] = known[name]
    program = compiled(part, initialized(count))

    assert run(program, dynamic=dynamic) == pytest.approx(fetched)


def test_readers_of_one_value_do_not_wait_for_each_other() -> None:
    part = PartBuilder()
    part.node("VariableV2", "v", dtype=F32, shape=[])
    part.node("Identity", "read", ["v"], T=F32)
    part.node("Neg", "a", ["read"], T=F32)
    part.node("Square", "b", ["read"], T=F32)
    part.node("Assign", "assign", ["v", "v"], T=F32)
    nodes = read_part(part.graph_def, TASK, 100).nodes
    names = {(nodes[one].name, nodes[other].name) for one, other in pairs(nodes, range(len(nodes)))}
    assert names == {("read", "assign"), ("a", "assign"), ("b", "assign")}


def kept(build: Callable[[PartBuilder], None], blocking: str = "") -> set[tuple[str, str]]:
    """(earlier, later) of the control edges that keep_order adds to a part with two variables, a constant `ten`, a feed
    `x` and Recvs `from` and `too`."""
    part = PartBuilder()
    Variables(part, 2)
    part.const("ten", np.float32(10))
    part.feed("x")
    part.recv("from", F32, OTHER, 1)
    part.recv("too", F32, OTHER, 1)
    build(part)
    found = read_part(part.graph_def, TASK, 1000)
    before = {node.name: list(node.controls) for node in found.nodes}
    for node in found.nodes:
        node.blocking = node.name == blocking
    keep_order(found)
    assert all(node.controls[: len(before[node.name])] == before[node.name] for node in found.nodes)
    names = [node.name for node in found.nodes]
    return {(names[each], node.name) for node in found.nodes for each in node.controls[len(before[node.name]) :]}


def read_and_add(part: PartBuilder, read: str = "", add: str = "", variable: str = "v0") -> None:
    part.node("Neg", "read", ["v0", *read.split()], T=F32)
    part.node("AssignAdd", "up", [variable, "ten", *add.split()], T=F32)


def in_a_branch(part: PartBuilder, which: str) -> None:
    part.feed("p", BOOL)
    part.node("Switch", "s", ["x", "p"], T=F32)
    part.node("Identity", "taken", ["s:1"], T=F32)
    read_and_add(part, **{which: "^taken"})


EDGES: dict[str, tuple[Callable[[PartBuilder], None], set[tuple[str, str]]]] = {
    "a read and an update": (read_and_add, {("read", "up")}),
    "of another variable": (lambda part: read_and_add(part, variable="v1"), set()),
    "a read that waits for what the update waits for": (
        lambda part: read_and_add(part, "^from", "^from"), {("read", "up")}
    ),
    "a read that waits": (lambda part: read_and_add(part, read="^from"), set()),
    "an update that waits": (lambda part: read_and_add(part, add="^from"), {("read", "up")}),
    "a read and an update that wait for others": (lambda part: read_and_add(part, "^too", "^from"), set()),
    "an update and a read that wait for others": (lambda part: read_and_add(part, "^from", "^too"), set()),
    "a read behind a feed": (lambda part: read_and_add(part, read="^x"), {("read", "up")}),
    "an edge that is there": (lambda part: read_and_add(part, add="^read"), set()),
    "a read that may not run": (lambda part: in_a_branch(part, "read"), set()),
    "an update that may not run": (lambda part: in_a_branch(part, "add"), set()),
}  # fmt: skip


@pytest.mark.parametrize("name", EDGES)
def test_an_edge_keeps_the_order_where_it_makes_nobody_wait(name: str) -> None:
    build, edges = EDGES[name]
    assert kept(build) == edges


@pytest.mark.parametrize("blocking", ["read", "up"])
def test_no_edge_leads_to_or_from_what_may_have_to_wait(blocking: str) -> None:
    assert kept(read_and_add, blocking) == set()


def test_what_is_sent_is_in_order_by_itself() -> None:
    def build(part: PartBuilder) -> None:
        part.send("v0", F32, OTHER, "v")
        part.node("AssignAdd", "up", ["v0", "ten"], T=F32)

    assert kept(build) == set()


def order_of(build: Callable[[PartBuilder], None]) -> list[tuple[str, str]]:
    part = PartBuilder()
    Variables(part, 2)
    part.const("ten", np.float32(10))
    part.const("true", np.array(True))
    build(part)
    nodes = read_part(part.graph_def, TASK, 1000).nodes
    return [(nodes[one].name, nodes[other].name) for one, other in pairs(nodes, range(len(nodes)))]


def test_which_pairs_see_each_other() -> None:
    """Readers and the writers next to them; what has effects elsewhere, and the writers since the last one of these."""

    def accesses(part: PartBuilder) -> None:
        for number, kind in enumerate("wrrwrw"):
            if kind == "w":
                part.node("AssignAdd", f"set{number}", ["v0", "ten"], T=F32)
            else:
                part.node("Neg", f"get{number}", ["v0"], T=F32)

    def effects(part: PartBuilder) -> None:
        for number in range(2):
            part.node("AssignAddVariableOp", f"a{number}", ["r0", "ten"], dtype=F32)
            part.node("ReadVariableOp", f"b{number}", ["r1"], dtype=F32)
            part.node("Assert", f"check{number}", ["true", "ten"], T=[F32])

    assert order_of(accesses) == [
        ("set0", "get1"), ("set0", "get2"), ("get1", "set3"), ("get2", "set3"), ("set0", "set3"), ("set3", "get4"),
        ("get4", "set5"), ("set3", "set5"),
    ]  # fmt: skip
    assert order_of(effects) == [
        ("a0", "check0"), ("a0", "a1"), ("check0", "a1"), ("a1", "check1"), ("check0", "check1")
    ]  # fmt: skip
