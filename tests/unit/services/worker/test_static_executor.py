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
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.state import ResourceManager, Variable
from tenfold_kernels.resources.waiting import Waiting
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


# -- nodes that may have to wait, careful stretches and stops ----------------------------------------------------------


class Dequeues:
    """recv a → f; two dequeues that wait for it → their sum → fetch. The kernels are the test's."""

    def __init__(self, first: Any, second: Any, stop: list[Any] | None = None) -> None:
        part = PartBuilder()
        part.node("FIFOQueueV2", "queue", component_types=[F32], shapes=[TensorShape([])])
        for name in ("one", "two"):
            part.node("QueueDequeueV2", name, ["queue"], component_types=[F32])
        part.node("Add", "sum", ["one", "two"], T=F32)
        self.fetch = part.fetch("sum")
        program = compiled(part)
        generated = program.compiled.generated
        assert generated is not None
        for node in program.compiled.part.nodes:
            if node.name in ("one", "two"):
                found = first if node.name == "one" else second
                generated.namespace[f"k{node.index}"] = found if callable(found) else lambda *_, found=found: found
        self.stop = [] if stop is None else stop
        self.execution = program.start(StepIO({}, lambda *_: None, self.stop))

    def value(self) -> float:
        assert self.execution.done
        return float(self.execution.fetched()[self.fetch])


def test_results_that_are_there_are_taken_at_once_and_settle_the_shapes() -> None:
    step = Dequeues(np.float32(2), np.float32(3))
    assert step.execution.shapes == 0
    while step.execution.ready:
        step.execution.advance()
    assert step.value() == 5
    assert step.execution.shapes != 0
    assert not step.execution.take_wanted()


def test_a_careful_stretch_ends_where_something_of_any_size_has_come() -> None:
    step, bold = Dequeues(np.float32(2), np.float32(3)), Dequeues(np.float32(2), np.float32(3))
    step.execution.advance(careful=True)
    assert not step.execution.done
    assert step.execution.ready
    step.execution.advance(careful=True)
    assert step.value() == 5
    bold.execution.advance()
    assert bold.value() == 5


def test_results_that_come_later_are_wanted_and_taken_in_any_order() -> None:
    one, two = Waiting(), Waiting()
    step = Dequeues(one, two)
    step.execution.advance()
    wanted = {each.waiting: each for each in step.execution.take_wanted()}
    assert set(wanted) == {one, two}
    assert {each.node.name for each in wanted.values() if each.node} == {"one", "two"}
    assert not step.execution.ready
    step.execution.arrived(wanted[two].token, np.float32(3), False)
    step.execution.advance()
    assert not step.execution.done
    step.execution.arrived(wanted[one].token, np.float32(2), False)
    assert step.execution.ready
    step.execution.advance()
    assert step.value() == 5


def test_a_region_that_fails_leaves_nothing_waiting() -> None:
    left: list[str] = []
    waiting = Waiting(lambda: left.append("one"))

    def fails(*_: Any) -> Any:
        raise errors.internal("the second")

    step = Dequeues(waiting, fails)
    with pytest.raises(errors.InternalError, match="the second"):
        step.execution.advance()
    assert left == ["one"]
    assert not step.execution.take_wanted()


def test_a_step_that_is_stopped_meanwhile_leaves_nothing_waiting() -> None:
    left: list[str] = []
    stop: list[Any] = []

    def stops(*_: Any) -> Any:
        stop.append("stop")
        return Waiting(lambda: left.append("two"))

    step = Dequeues(Waiting(lambda: left.append("one")), stops, stop)
    with pytest.raises(errors.CancelledError):
        step.execution.advance()
    assert left == ["one", "two"]


def test_a_step_that_was_stopped_ends_after_a_region_and_after_all_of_them() -> None:
    part, a, b = diamond()
    step = Step(compiled(part))
    step.execution.io.stop.append("stop")  # type: ignore[attr-defined]
    step.execution.arrived(step.wanted[a], np.float32([1]), False)
    with pytest.raises(errors.CancelledError):
        step.execution.advance()

    whole = Step(compiled(part))
    whole.execution.io.stop.append("stop")  # type: ignore[attr-defined]
    for key in (a, b):
        whole.execution.arrived(whole.wanted[key], np.float32([1]), False)
    with pytest.raises(errors.CancelledError):
        whole.execution.advance()


def test_shapes_count_what_came_and_not_what_was_dead() -> None:
    part, a, b = diamond()
    one, other, dead = (Step(compiled(part)) for _ in range(3))
    for step, keys in ((one, (a, b)), (other, (b, a))):
        for key in keys:
            step.execution.arrived(step.wanted[key], np.zeros(2 if key == a else 3, np.float32), False)
    dead.execution.arrived(dead.wanted[a], None, True)

    assert one.execution.shapes == other.execution.shapes != 0
    assert dead.execution.shapes == 0


def test_what_was_received_is_not_written_to() -> None:
    part, a, _ = diamond()
    step, value = Step(compiled(part)), np.float32([1])
    step.execution.arrived(step.wanted[a], value, False)
    (slot,) = [each for each in step.execution._slots if each is not None]  # type: ignore[attr-defined]
    assert not slot.flags.writeable
    assert value.flags.writeable


def test_fetches_are_numbered_as_the_program_has_them() -> None:
    part = PartBuilder()
    part.const("c", [1.0])
    for name in ("n1", "n2"):
        part.node("Neg" if name == "n1" else "Square", name, ["c"], T=F32)
    keys = [part.fetch(name) for name in ("n2", "n1")]
    execution = compiled(part).start(StepIO({}, lambda *_: None))
    execution.advance()
    assert [execution.fetched()[key].tolist() for key in keys] == [[1.0], [-1.0]]


def test_a_variant_of_its_own_does_not_leave_the_task() -> None:
    part = PartBuilder()
    part.const("c", [b"text"])
    part.send("c", dtypes.string, OTHER, "edge_1_c")
    step = Step(compiled(part))
    send = step.execution._send  # type: ignore[attr-defined]
    with pytest.raises(errors.UnimplementedError, match="A variant of type"):
        send(0, np.array([object()], object))
    send(0, np.array([b"text"], object))
    assert step.edges == ["edge_1_c"]


# -- as one, or region by region ---------------------------------------------------------------------------------------


class Calls:
    """Notes which functions of the generated code are called, and calls them."""

    def __init__(self, step: Step) -> None:
        execution: Any = step.execution
        self.rest, self.functions = execution._rest, execution._generated.functions
        self.log: list[str] = []
        self._call = execution._generated.call
        execution._generated = self

    def call(self, function: Any, *more: Any) -> None:
        self.log.append("rest" if function is self.rest else f"region {self.functions.index(function)}")
        self._call(function, *more)


def test_what_is_all_there_runs_as_one_function() -> None:
    part, a, b = diamond()
    step = Step(compiled(part))
    calls = Calls(step)
    for key in (a, b):
        step.execution.arrived(step.wanted[key], np.float32([1]), False)
    step.execution.advance()
    assert calls.log == ["rest"]
    assert step.execution.done
    assert sorted(step.edges) == ["f", "g", "h"]
    step.execution.advance()
    assert calls.log == ["rest"]


def test_once_a_region_ran_by_itself_the_others_do_too() -> None:
    part, a, b = diamond()
    step = Step(compiled(part))
    calls = Calls(step)
    step.arrive(a, 1)
    assert len(calls.log) == 1
    step.arrive(b, 1)
    assert "rest" not in calls.log
    assert len(set(calls.log)) == 3
    assert step.execution.done


@pytest.mark.parametrize("dead", ["a", "b"])
def test_what_is_dead_does_not_run_as_one(dead: str) -> None:
    part, a, b = diamond()
    step = Step(compiled(part))
    calls = Calls(step)
    for name, key in (("a", a), ("b", b)):
        step.execution.arrived(step.wanted[key], None if name == dead else np.float32([1]), name == dead)
    step.execution.advance()
    assert len(calls.log) == 1
    assert "rest" not in calls.log
    assert step.execution.done


def test_a_step_that_is_stopped_while_all_runs_as_one_ends_as_cancelled() -> None:
    part, a, b = diamond()
    step = Step(compiled(part))
    stop: list[Any] = step.execution.io.stop  # type: ignore[attr-defined]
    calls = Calls(step)
    calls._call = lambda *_: stop.append("stop")
    for key in (a, b):
        step.execution.arrived(step.wanted[key], np.float32([1]), False)
    with pytest.raises(errors.CancelledError):
        step.execution.advance()
    assert step.execution.done


def test_a_dequeue_behind_a_dead_tensor_is_dead_and_not_begun() -> None:
    part = PartBuilder()
    a = part.recv("a", F32, OTHER, 5)
    part.node("FIFOQueueV2", "queue", component_types=[F32], shapes=[TensorShape([])])
    part.node("QueueDequeueV2", "one", ["queue", "^a"], component_types=[F32])
    part.node("Neg", "minus", ["one"], T=F32)
    part.send("minus", F32, OTHER, "minus")
    step = Step(compiled(part))
    step.execution.advance()
    step.arrive(a, 0, is_dead=True)
    assert [(key.split(";")[3], value, is_dead) for key, value, is_dead in step.sent] == [("minus", None, True)]
    assert not step.execution.take_wanted()
    assert step.execution.done


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("count", [0, 2])
def test_a_node_that_waits_may_have_any_number_of_outputs(count: int, waits: bool) -> None:
    part = PartBuilder()
    types: list[Any] = [F32, dtypes.int32]
    part.node("FIFOQueueV2", "queue", component_types=types, shapes=[TensorShape([])] * 2)
    part.const("x", 1.0)
    part.const("i", 2)
    if count:
        part.node("QueueDequeueV2", "node", ["queue"], component_types=types)
        key = part.fetch("node:1", dtypes.int32)
    else:
        part.node("QueueEnqueueV2", "node", ["queue", "x", "i"], Tcomponents=types)
        part.node("Neg", "after", ["x", "^node"], T=F32)
        key = part.fetch("after")
    program = compiled(part)
    (node,) = [node for node in program.compiled.part.nodes if node.name == "node"]
    result = (np.float32(3), np.int32(4)) if count else None
    waiting = Waiting()
    assert program.compiled.generated is not None
    program.compiled.generated.namespace[f"k{node.index}"] = lambda *_: waiting if waits else result
    step = Step(program)
    step.execution.advance()
    if waits:
        (wanted,) = step.execution.take_wanted()
        assert (wanted.waiting, wanted.key, wanted.node) == (waiting, "", node)
        assert not step.execution.done
        step.execution.arrived(wanted.token, result, False)
    while step.execution.ready:
        step.execution.advance()
    assert step.execution.done
    assert step.execution.fetched()[key] == (4 if count else -1)
    assert (step.execution.shapes != 0) == bool(count)


def test_what_a_branch_that_was_not_taken_would_have_sent_is_dead() -> None:
    for taken in (True, False):
        part = PartBuilder()
        p = part.feed("p", dtypes.bool_)
        part.const("x", [1.0])
        part.node("Switch", "switch", ["x", "p"], T=F32)
        part.node("Neg", "yes", ["switch:1"], T=F32)
        part.node("Merge", "merge", ["switch:0", "yes"], T=F32, N=2)
        part.send("yes", F32, OTHER, "yes")
        key = part.fetch("merge")
        program = compiled(part)
        assert program.compiled.flow is not None
        sent: list[Any] = []
        execution = program.start(StepIO({p: np.array(taken)}, lambda *edge, sent=sent: sent.append(edge)))
        execution.advance()
        ((_, value, is_dead),) = sent
        assert is_dead is not taken
        assert (None if value is None else value.tolist()) == ([-1.0] if taken else None)
        assert execution.fetched()[key].tolist() == [-1.0 if taken else 1.0]
        assert execution.done


def test_feeds_settle_the_shapes_and_each_has_its_own_place() -> None:
    part = PartBuilder()
    x, y = part.feed("x"), part.feed("y")
    part.node("Add", "sum", ["x", "y"], T=F32)
    part.fetch("sum")
    program = compiled(part)

    def shapes(of_x: Any, of_y: Any) -> int:
        feeds = {x: np.zeros(of_x, np.float32), y: np.zeros(of_y, np.float32)}
        return program.start(StepIO(feeds, lambda *_: None)).shapes

    assert shapes(2, 1) == shapes(2, 1)
    assert len({shapes(2, 1), shapes(1, 2), shapes(1, 1), shapes(2, 2)}) == 4
