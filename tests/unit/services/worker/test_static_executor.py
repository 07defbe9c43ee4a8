"""Parts that receive tensors: regions run in the order of arrival, no order deadlocks, deadness spreads."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.parts import PartBuilder
from support.programs import compile_program
from tenfold_compiler.part.regions import cut_regions
from tenfold_core import dtypes, errors
from tenfold_kernels.resources.state import ResourceManager, Variable
from tenfold_services.worker.execution import StepIO

if TYPE_CHECKING:
    from tenfold_services.worker.loaded_program import LoadedProgram

TASK = "/job:localhost/replica:0/task:0"
OTHER = "/job:ps/replica:0/task:0/device:CPU:0"
F32 = dtypes.float32


class Step:
    """One execution whose tensors the test hands in."""

    def __init__(self, program: LoadedProgram) -> None:
        self.sent: list[tuple[str, Any, bool]] = []
        self.execution = program.start(StepIO({}, lambda *edge: self.sent.append(edge)))
        self.wanted = {wanted.key: wanted.token for wanted in self.execution.take_wanted()}

    def arrive(self, key: str, value: float, is_dead: bool = False) -> None:
        self.execution.arrived(self.wanted[key], None if is_dead else np.float32([value]), is_dead)
        self.execution.advance()

    @property
    def edges(self) -> list[str]:
        return [key.split(";")[3] for key, _, _ in self.sent]


def compiled(part: PartBuilder) -> LoadedProgram:
    return compile_program(part.graph_def, TASK, ResourceManager())


def diamond() -> tuple[PartBuilder, str, str]:
    """recv a → f → h → send, recv b → g → h; f and g are sent as well."""
    part = PartBuilder()
    a = part.recv("a", F32, OTHER, 5)
    b = part.recv("b", F32, OTHER, 5)
    part.node("Neg", "f", ["a"], T=F32)
    part.node("Neg", "g", ["b"], T=F32)
    part.node("Add", "h", ["f", "g"], T=F32)
    for name in "fgh":
        part.send(name, F32, OTHER, name)
    return part, a, b


def test_nodes_with_the_same_received_ancestors_make_a_region() -> None:
    part, _, _ = diamond()
    regions, _ = cut_regions(compiled(part).compiled.part)
    names = {frozenset(node.name for node in region.nodes + region.recvs) for region in regions}
    assert names == {
        frozenset({"a", "f", "send_f"}),
        frozenset({"b", "g", "send_g"}),
        frozenset({"h", "send_h"}),
    }


def test_a_region_runs_as_soon_as_its_tensors_are_there() -> None:
    part, a, b = diamond()
    step = Step(compiled(part))
    step.execution.advance()
    assert step.sent == []
    step.arrive(b, 1)
    assert step.edges == ["g"]
    step.arrive(a, 2)
    assert step.edges == ["g", "f", "h"]
    assert step.sent[-1][1].tolist() == [-3]
    assert step.execution.done


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_every_order_of_arrival_ends(order: tuple[int, ...]) -> None:
    part = PartBuilder()
    keys = [part.recv(f"r{i}", F32, OTHER, 5) for i in range(4)]
    part.node("Add", "s0", ["r0", "r1"], T=F32)
    part.node("Add", "s1", ["r2", "s0"], T=F32)
    part.node("Add", "s2", ["r3", "r0"], T=F32)
    part.node("Add", "s3", ["s2", "s1"], T=F32)
    part.send("s3", F32, OTHER, "s3")
    step = Step(compiled(part))
    for index in order:
        step.arrive(keys[index], 10**index)
    assert step.execution.done
    assert step.sent[0][1].tolist() == [1112]


def test_work_that_receives_nothing_runs_at_once() -> None:
    part = PartBuilder()
    part.recv("a", F32, OTHER, 5)
    part.const("c", [1.0])
    part.node("Neg", "n", ["c"], T=F32)
    part.send("n", F32, OTHER, "n")
    part.node("Add", "sum", ["n", "a"], T=F32)
    step = Step(compiled(part))
    step.execution.advance()
    assert step.edges == ["n"]


def test_a_control_edge_orders_regions() -> None:
    part = PartBuilder()
    a = part.recv("a", F32, OTHER, 5)
    part.const("c", [1.0])
    part.node("Neg", "n", ["c", "^a"], T=F32)
    part.send("n", F32, OTHER, "n")
    step = Step(compiled(part))
    step.execution.advance()
    assert step.sent == []
    step.arrive(a, 0)
    assert step.edges == ["n"]


def read_after_a() -> tuple[PartBuilder, str, str]:
    """recv a → f → send; recv v is asked for once f has run, as another master cuts the read of a variable."""
    part = PartBuilder()
    a = part.recv("a", F32, OTHER, 5)
    part.node("Neg", "f", ["a"], T=F32)
    v = part.recv("v", F32, OTHER, 5, ["^f"])
    part.node("Add", "sum", ["v", "f"], T=F32)
    part.send("f", F32, OTHER, "f")
    part.send("sum", F32, OTHER, "sum")
    return part, a, v


def test_a_recv_that_waits_is_asked_for_late() -> None:
    part, a, v = read_after_a()
    step = Step(compiled(part))
    assert list(step.wanted) == [a]
    step.execution.advance()
    assert not step.execution.take_wanted()
    step.arrive(a, 1)
    assert step.edges == ["f"]
    (wanted,) = step.execution.take_wanted()
    assert wanted.key == v
    step.execution.arrived(wanted.token, np.float32([5]), False)
    step.execution.advance()
    assert step.sent[-1][1].tolist() == [4]
    assert step.execution.done


def test_a_recv_that_waits_for_a_dead_tensor_is_dead_and_not_asked_for() -> None:
    part, a, _ = read_after_a()
    step = Step(compiled(part))
    step.arrive(a, 0, is_dead=True)
    assert {(key.split(";")[3], is_dead) for key, _, is_dead in step.sent} == {("f", True), ("sum", True)}
    assert not step.execution.take_wanted()
    assert step.execution.done


def test_a_recv_that_waits_may_be_dead_itself() -> None:
    part, a, _ = read_after_a()
    step = Step(compiled(part))
    step.arrive(a, 1)
    (wanted,) = step.execution.take_wanted()
    step.execution.arrived(wanted.token, None, True)
    step.execution.advance()
    assert [(key.split(";")[3], is_dead) for key, _, is_dead in step.sent] == [("f", False), ("sum", True)]
    assert step.execution.done


def test_a_reference_is_sent_as_one() -> None:
    part, resources = PartBuilder(), ResourceManager()
    part.node("VariableV2", "v", dtype=F32, shape=[1])
    part.send("v", F32, OTHER, "v")
    program = compile_program(part.graph_def, TASK, resources)
    with pytest.raises(errors.FailedPreconditionError, match=r"(?s)uninitialized value v.*\{\{node send_v\}\}"):
        Step(program).execution.advance()
    variable = resources.lookup("", "v", Variable)
    variable.assign(np.float32([1]))
    step = Step(program)
    step.execution.advance()
    assert step.sent[0][1] is variable


def test_below_a_dead_tensor_everything_is_dead_and_nothing_runs() -> None:
    part, a, b = diamond()
    step = Step(compiled(part))
    step.arrive(a, 0, is_dead=True)
    step.arrive(b, 1)
    assert {(key.split(";")[3], is_dead) for key, _, is_dead in step.sent} == {("f", True), ("g", False), ("h", True)}
    assert step.execution.done


def test_fetching_a_dead_tensor_is_an_error() -> None:
    part = PartBuilder()
    a = part.recv("a", F32, OTHER, 5)
    part.fetch("a")
    step = Step(compiled(part))
    with pytest.raises(errors.InvalidArgumentError, match=r"The tensor returned for .* was not valid\."):
        step.arrive(a, 0, is_dead=True)


def test_what_was_sent_cannot_be_written_to() -> None:
    part, a, _ = diamond()
    step = Step(compiled(part))
    step.arrive(a, 1)
    assert not step.sent[0][1].flags.writeable


def test_an_empty_part_is_done_at_once() -> None:
    assert Step(compiled(PartBuilder())).execution.done


def test_regions_whose_tensors_came_together_run_as_one() -> None:
    part, a, b = diamond()
    step = Step(compiled(part))
    assert step.execution._generated.rest is not None  # type: ignore[attr-defined]
    step.execution.arrived(step.wanted[b], np.float32([1]), False)
    step.execution.arrived(step.wanted[a], np.float32([2]), False)
    step.execution.advance()
    assert {key.split(";")[3]: value.tolist() for key, value, _ in step.sent} == {"f": [-2], "g": [-1], "h": [-3]}
    assert step.execution.done
    assert not step.execution.ready


def test_a_dead_tensor_among_those_that_came_together() -> None:
    part, a, b = diamond()
    step = Step(compiled(part))
    step.execution.arrived(step.wanted[b], None, True)
    step.execution.arrived(step.wanted[a], np.float32([2]), False)
    step.execution.advance()
    assert {key.split(";")[3]: dead for key, _, dead in step.sent} == {"f": False, "g": True, "h": True}
    assert step.execution.done


def test_an_error_in_regions_that_run_as_one_names_its_node() -> None:
    part = PartBuilder()
    keys = [part.recv(name, F32, OTHER, 5) for name in "ab"]
    part.node("Neg", "f", ["a"], T=F32)
    part.node("MatMul", "g", ["b", "b"], T=F32)
    part.node("Add", "h", ["f", "g"], T=F32)
    part.send("h", F32, OTHER, "h")
    step = Step(compiled(part))
    for key in keys:
        step.execution.arrived(step.wanted[key], np.float32([1]), False)
    with pytest.raises(errors.InvalidArgumentError, match=r"node g") as raised:
        step.execution.advance()
    assert raised.value.node_def is not None
