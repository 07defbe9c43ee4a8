"""Branches and loops: dead tensors, Merge, frames and iterations. No event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.parts import PartBuilder
from support.programs import compile_program, node_by_node
from tenfold_compiler.part import split_part
from tenfold_compiler.part.frame_numbers import frame_id
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.state import ResourceManager, Variable
from tenfold_kernels.resources.waiting import Waiting
from tenfold_services.worker import dynamic_executor
from tenfold_services.worker.execution import StepIO

if TYPE_CHECKING:
    from tenfold_services.worker.dynamic_executor import DynamicExecution

TASK = "/job:localhost/replica:0/task:0"
OTHER = "/job:ps/replica:0/task:0/device:CPU:0"
F32, I32, BOOL = dtypes.float32, dtypes.int32, dtypes.bool_


def run(part: PartBuilder, feeds: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, Any, bool]]]:
    """As the part is run, and node by node: the same comes out."""
    found = []
    for by_node in (False, True):
        sent: list[tuple[str, Any, bool]] = []
        program = compile_program(part.graph_def, TASK, ResourceManager())
        io = StepIO(feeds, lambda *edge, sent=sent: sent.append(edge))
        execution = node_by_node(program, io) if by_node else program.start(io)
        while execution.ready:
            execution.advance()
        assert execution.done
        found.append((execution.fetched(), sent))
    (values, sent), (others, others_sent) = found
    assert {key: np.asarray(value).tolist() for key, value in values.items()} == {
        key: np.asarray(value).tolist() for key, value in others.items()
    }
    assert sorted((key, is_dead) for key, _, is_dead in sent) == sorted(
        (key, is_dead) for key, _, is_dead in others_sent
    )
    return others, others_sent


def cond() -> tuple[PartBuilder, str, str]:
    """-x if p else x + x."""
    part = PartBuilder()
    x, p = part.feed("x"), part.feed("p", BOOL)
    part.node("Switch", "switch", ["x", "p"], T=F32)
    part.node("Add", "no", ["switch:0", "switch:0"], T=F32)
    part.node("Neg", "yes", ["switch:1"], T=F32)
    part.node("Merge", "merge", ["no", "yes"], T=F32, N=2)
    return part, x, p


@pytest.mark.parametrize(("taken", "value", "index"), [(True, -3, 1), (False, 6, 0)])
def test_a_conditional_runs_one_branch(taken: bool, value: float, index: int) -> None:
    part, x, p = cond()
    y, i = part.fetch("merge"), part.fetch("merge:1", I32)
    values, _ = run(part, {x: np.float32(3).reshape(()), p: np.array(taken)})
    assert values[y] == value
    assert values[i] == index


def test_the_branch_not_taken_sends_dead() -> None:
    part, x, p = cond()
    part.send("no", F32, OTHER, "no")
    part.send("yes", F32, OTHER, "yes")
    _, sent = run(part, {x: np.ones((), np.float32), p: np.array(True)})
    assert {(key.split(";")[3], is_dead) for key, _, is_dead in sent} == {("no", True), ("yes", False)}


def test_fetching_from_the_branch_not_taken_is_an_error() -> None:
    part, x, p = cond()
    part.fetch("no")
    with pytest.raises(errors.InvalidArgumentError, match="was not valid"):
        run(part, {x: np.ones((), np.float32), p: np.array(True)})


def test_control_edges_carry_deadness() -> None:
    part, x, p = cond()
    part.const("a", 1.0, inputs=["^no"])
    part.const("b", 2.0, inputs=["^yes"])
    part.node("Merge", "which", ["a", "b"], T=F32, N=2)
    y = part.fetch("which")
    values, _ = run(part, {x: np.ones((), np.float32), p: np.array(False)})
    assert values[y] == 1


def test_a_merge_waits_for_its_control_inputs() -> None:
    part, x, p = cond()
    part.node("Merge", "late", ["no", "yes", "^merge"], T=F32, N=2)
    y = part.fetch("late")
    values, _ = run(part, {x: np.float32(3).reshape(()), p: np.array(True)})
    assert values[y] == -3


def test_a_received_dead_tensor_is_dead_for_a_merge() -> None:
    part = PartBuilder()
    a, b = part.recv("a", F32, OTHER, 5), part.recv("b", F32, OTHER, 5)
    part.node("Merge", "merge", ["a", "b"], T=F32, N=2)
    y = part.fetch("merge")
    execution = compile_program(part.graph_def, TASK, ResourceManager()).start(StepIO({}, lambda *_: None))
    execution.advance()
    wanted = {w.key: w.token for w in execution.take_wanted()}
    execution.arrived(wanted[a], None, True)
    execution.advance()
    assert not execution.done
    execution.arrived(wanted[b], np.float32([4]), False)
    execution.advance()
    assert execution.done
    assert execution.fetched()[y].tolist() == [4]


@pytest.mark.parametrize("least", [10, -1_000], ids=["whole", "split"])
def test_a_merge_takes_what_was_received_after_its_dead_input(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_part, "_LEAST_NODES", least)
    # TensorFlow's cut lets a Merge read a reference of another task: its _Recv waits for the Merge's other inputs.
    part = PartBuilder()
    x, p = part.feed("x"), part.feed("p", BOOL)
    part.node("Switch", "switch", ["x", "p"], T=F32)
    a = part.recv("a", F32, OTHER, 5)
    part.graph_def.node[-1].input.append("^switch_no")
    part.node("Identity", "switch_no", ["switch:0"], T=F32)
    part.node("Merge", "merge", ["switch_no", "a"], T=F32, N=2)
    y = part.fetch("merge")
    io = StepIO({x: np.zeros((), np.float32), p: np.array(True)}, lambda *_: None)
    execution = compile_program(part.graph_def, TASK, ResourceManager()).start(io)
    execution.advance()
    (wanted,) = execution.take_wanted()
    assert wanted.key == a
    execution.arrived(wanted.token, np.float32([4]), False)
    execution.advance()
    assert execution.done
    assert execution.fetched()[y].tolist() == [4]


def while_loop(part: PartBuilder, name: str, start: str, limit: str, body: Any, inputs: tuple[str, ...] = ()) -> str:
    """`i = start; while i < limit: i = body(i)` in frame `name`; the name of the result."""
    part.node("Enter", f"{name}/enter", [start, *inputs], T=I32, frame_name=name.encode())
    part.node("Enter", f"{name}/limit", [limit], T=I32, frame_name=name.encode(), is_constant=True)
    part.node("Merge", f"{name}/merge", [f"{name}/enter", f"{name}/next"], T=I32, N=2)
    part.node("Less", f"{name}/less", [f"{name}/merge", f"{name}/limit"], T=I32)
    part.node("LoopCond", f"{name}/cond", [f"{name}/less"])
    part.node("Switch", f"{name}/switch", [f"{name}/merge", f"{name}/cond"], T=I32)
    part.node("Identity", f"{name}/body", [f"{name}/switch:1"], T=I32)
    result = body(f"{name}/body")
    part.node("NextIteration", f"{name}/next", [result], T=I32)
    return part.node("Exit", f"{name}/exit", [f"{name}/switch:0"], T=I32)


def increment(part: PartBuilder, name: str) -> Any:
    def body(i: str) -> str:
        part.const(f"{name}/one", 1, inputs=[f"^{i}"])
        return part.node("Add", f"{name}/add", [i, f"{name}/one"], T=I32)

    return body


@pytest.mark.parametrize("limit", [0, 1, 7, 500])
def test_a_loop_runs_until_its_condition_is_false(limit: int) -> None:
    part = PartBuilder()
    n = part.feed("n", I32)
    part.const("zero", 0)
    y = part.fetch(while_loop(part, "loop", "zero", "n", increment(part, "loop")), I32)
    values, _ = run(part, {n: np.array(limit, np.int32)})
    assert values[y] == limit


def test_a_loop_in_a_loop() -> None:
    part = PartBuilder()
    n = part.feed("n", I32)
    part.const("zero", 0)

    def body(i: str) -> str:
        # the inner loop counts from i to i + 1, its limit made in the outer frame
        limit = increment(part, "outer")(i)
        return while_loop(part, "inner", i, limit, increment(part, "inner"))

    y = part.fetch(while_loop(part, "outer", "zero", "n", body), I32)
    values, _ = run(part, {n: np.array(5, np.int32)})
    assert values[y] == 5


@pytest.mark.parametrize("taken", [True, False])
def test_a_loop_in_a_branch_that_may_not_be_taken(taken: bool) -> None:
    part = PartBuilder()
    n, p = part.feed("n", I32), part.feed("p", BOOL)
    part.const("zero", 0)
    part.node("Switch", "start", ["zero", "p"], T=I32)
    part.node("Switch", "limit", ["n", "p"], T=I32)
    while_loop(part, "loop", "start:1", "limit:1", increment(part, "loop"))
    part.node("Merge", "merge", ["loop/exit", "start:0"], T=I32, N=2)
    y = part.fetch("merge", I32)
    values, _ = run(part, {n: np.array(4, np.int32), p: np.array(taken)})
    assert values[y] == (4 if taken else 0)


def test_an_error_in_a_loop_names_its_node() -> None:
    part = PartBuilder()
    part.const("zero", 0)
    part.const("n", 3)

    def body(i: str) -> str:
        part.const("bad", [0], inputs=[f"^{i}"])
        part.const("two", [1, 2], inputs=[f"^{i}"])
        part.const("three", [1, 2, 3], inputs=[f"^{i}"])
        part.node("Add", "clash", ["two", "three"], T=I32)
        return part.node("Add", "next", [i, "clash"], T=I32)

    while_loop(part, "loop", "zero", "n", body)
    with pytest.raises(errors.InvalidArgumentError, match=r"(?s)Incompatible shapes.*\{\{node clash\}\}"):
        run(part, {})


def test_the_number_of_a_frame_is_tensorflows() -> None:
    assert frame_id(0, 0, "while/while_context") == 18186195969791715286


def test_a_send_in_a_loop_names_frame_and_iteration() -> None:
    part = PartBuilder()
    part.const("zero", 0)
    part.const("n", 2)
    while_loop(part, "while/while_context", "zero", "n", increment(part, "loop"))
    part.send("loop/add", I32, OTHER, "edge")
    _, sent = run(part, {})
    live = [(key.rpartition(";")[2], int(value)) for key, value, is_dead in sent if not is_dead]
    assert live == [("18186195969791715286:0", 1), ("18186195969791715286:1", 2)]


def test_a_control_trigger_is_alive_whatever_it_waits_for() -> None:
    part, x, p = cond()
    part.node("ControlTrigger", "trigger", ["^no", "^yes"])
    part.const("after", 5.0, inputs=["^trigger"])
    y = part.fetch("after")
    values, _ = run(part, {x: np.ones((), np.float32), p: np.array(True)})
    assert values[y] == 5


@pytest.mark.parametrize(("index", "taken"), [(0, 0), (1, 1), (2, 2), (3, 2), (-1, 2)])
def test_a_switch_of_many_outputs(index: int, taken: int) -> None:
    part = PartBuilder()
    x, i = part.feed("x"), part.feed("i", I32)
    part.node("_SwitchN", "switch", ["x", "i"], T=F32, num_outs=3)
    part.node("Merge", "merge", ["switch:0", "switch:1", "switch:2"], T=F32, N=3)
    y, which = part.fetch("merge"), part.fetch("merge:1", I32)
    values, _ = run(part, {x: np.float32(7).reshape(()), i: np.array(index, np.int32)})
    assert (values[y], values[which]) == (7, taken)


def test_references_go_through_branches_and_loops() -> None:
    """What comes out is the variable itself: it is assigned in place."""
    part = PartBuilder()
    part.node("VariableV2", "v", shape=(), dtype=I32)
    p = part.feed("p", BOOL)
    part.node("RefSwitch", "switch", ["v", "p"], T=I32)
    part.node("RefIdentity", "same", ["switch:0"], T=I32)
    part.node("RefMerge", "merge", ["same", "switch:1"], T=I32, N=2)
    part.node("RefEnter", "enter", ["merge"], T=I32, frame_name=b"f")
    part.node("RefExit", "exit", ["enter"], T=I32)
    part.const("seven", 7)
    part.node("Assign", "assign", ["exit", "seven"], T=I32)
    y = part.fetch("v", I32, inputs=["^assign"])
    for taken in (True, False):
        values, _ = run(part, {p: np.array(taken)})
        assert values[y] == 7


def test_a_reference_is_selected_by_number() -> None:
    part = PartBuilder()
    for name in ("a", "b"):
        part.node("VariableV2", name, shape=(), dtype=I32)
        part.const(f"{name}_value", {"a": 1, "b": 2}[name])
        part.node("Assign", f"{name}_assign", [name, f"{name}_value"], T=I32)
    i = part.feed("i", I32)
    part.node("RefSelect", "chosen", ["i", "a_assign", "b_assign"], T=I32, N=2)
    y = part.fetch("chosen", I32)
    values, _ = run(part, {i: np.array(1, np.int32)})
    assert values[y] == 2
    with pytest.raises(errors.InvalidArgumentError, match="index is 2 but should be between 0 and 1"):
        run(part, {i: np.array(2, np.int32)})


# -- how far it goes at once -------------------------------------------------------------------------------------------


def chain(length: int, stop: list[Any] | None = None) -> tuple[DynamicExecution, list[None]]:
    """Node by node, so many kernels one after the other, and a mark for each that has run."""
    part = PartBuilder()
    x, name, ran = part.feed("x"), "x", []
    for number in range(length):
        name = part.node("Neg", f"n{number}", [name], T=F32)
    part.fetch(name)
    program = compile_program(part.graph_def, TASK, ResourceManager())
    kernels: Any = program.compiled.kernels
    for index, kernel in list(kernels.items()):
        kernels[index] = lambda *values, kernel=kernel: (ran.append(None), kernel(*values))[1]
    found = node_by_node(program, StepIO({x: np.float32([1])}, lambda *_: None, [] if stop is None else stop))
    return found, ran


@pytest.mark.parametrize("careful", [True, False])
def test_a_stopped_step_ends_within_so_many_nodes(careful: bool) -> None:
    execution, ran = chain(200, ["stop"])
    with pytest.raises(errors.CancelledError):
        execution.advance(careful)
    assert len(ran) == 62  # the feed is a node, too

    short, ran = chain(20, ["stop"])
    short.advance(careful)
    assert len(ran) == 20


def test_one_stretch_runs_so_many_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamic_executor, "_SLICE", 11)
    execution, ran = chain(20)
    execution.advance()
    assert (len(ran), execution.ready, execution.done) == (9, True, False)
    execution.advance()
    execution.advance()
    assert (len(ran), execution.ready, execution.done) == (20, False, True)


@pytest.mark.parametrize(
    ("took", "careful", "ran"), [(4_000_000, True, 200), (4_000_001, True, 62), (10**9, False, 200)]
)
def test_a_careful_stretch_takes_some_milliseconds(
    took: int, careful: bool, ran: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([0, *[took] * 100])
    monkeypatch.setattr(dynamic_executor, "perf_counter_ns", lambda: next(times))
    execution, marks = chain(200)
    execution.advance(careful)
    assert len(marks) == ran


def test_a_fetch_from_a_branch_that_was_not_taken_is_an_error_node_by_node() -> None:
    part, x, p = cond()
    key = part.fetch("no")
    program = compile_program(part.graph_def, TASK, ResourceManager())
    execution = node_by_node(program, StepIO({x: np.ones((), np.float32), p: np.array(True)}, lambda *_: None))
    with pytest.raises(errors.InvalidArgumentError, match=r"(?s)was not valid.*\{\{node send_fetch_no\}\}"):
        execution.advance()
    with pytest.raises(errors.InvalidArgumentError, match="was not valid"):
        execution.fetched()
    del key


def test_what_comes_from_outside_again_counts_once() -> None:
    part = PartBuilder()
    a, b = part.recv("a", F32, OTHER, 5), part.recv("b", F32, OTHER, 5)
    part.node("Add", "sum", ["a", "b"], T=F32)
    part.fetch("sum")
    execution = node_by_node(compile_program(part.graph_def, TASK, ResourceManager()), StepIO({}, lambda *_: None))
    assert execution.shapes == 0
    execution.advance()
    wanted = {each.key: each.token for each in execution.take_wanted()}
    assert execution.take_wanted() == []
    execution.arrived(wanted[a], np.zeros(2, np.float32), False)
    first = execution.shapes
    assert first != 0
    execution._note(wanted[a].node.index, np.ones(2, np.float32))
    assert execution.shapes == first
    execution.arrived(wanted[b], np.zeros(3, np.float32), False)
    assert execution.shapes not in (0, first)
    assert not wanted[b].values[0].flags.writeable


def test_what_is_sent_is_not_written_to_and_a_dead_one_is_none() -> None:
    for taken in (True, False):
        part, x, p = cond()
        part.send("yes", F32, OTHER, "yes")
        program = compile_program(part.graph_def, TASK, ResourceManager())
        sent: list[Any] = []
        io = StepIO({x: np.ones((), np.float32), p: np.array(taken)}, lambda *edge, sent=sent: sent.append(edge))
        node_by_node(program, io).advance()
        ((_, value, is_dead),) = sent
        assert is_dead != taken
        assert (value is None) != taken
        if taken:
            assert not value.flags.writeable


def blocking() -> tuple[DynamicExecution, Any, str]:
    part = PartBuilder()
    part.node("FIFOQueueV2", "queue", component_types=[F32, I32], shapes=[TensorShape([])] * 2)
    part.node("QueueDequeueV2", "element", ["queue"], component_types=[F32, I32])
    part.node("Neg", "n", ["element"], T=F32)
    key = part.fetch("n")
    program = compile_program(part.graph_def, TASK, ResourceManager())
    (index,) = [node.index for node in program.compiled.part.nodes if node.name == "element"]
    waiting = Waiting()
    kernels: Any = program.compiled.kernels
    kernels[index] = lambda *_: waiting
    return node_by_node(program, StepIO({}, lambda *_: None)), waiting, key


def test_a_kernel_that_waits_is_wanted_and_its_result_goes_on() -> None:
    execution, waiting, key = blocking()
    execution.advance()
    (wanted,) = execution.take_wanted()
    assert (wanted.waiting, wanted.key) == (waiting, "")
    assert wanted.node is not None
    assert wanted.node.name == "element"
    assert not execution.done
    before = execution.shapes

    execution.arrived(wanted.token, (np.float32(3), np.int32(4)), False)

    assert execution.shapes != before
    execution.advance()
    assert execution.done
    assert execution.fetched()[key] == -3


def test_a_careful_stretch_ends_with_what_came_from_a_queue() -> None:
    execution, _, _ = blocking()
    kernels: Any = execution._program.kernels
    for index in kernels:
        if execution._program.part.nodes[index].name == "element":
            kernels[index] = lambda *_: (np.float32(3), np.int32(4))
    execution.advance(careful=True)
    assert execution.ready
    execution.advance(careful=True)
    assert execution.done


# -- references, strings and what is dead, node by node ----------------------------------------------------------------


def switched_variable(value: float | None) -> tuple[PartBuilder, str, ResourceManager]:
    """A variable of that value, which comes out of a Switch by reference where p is true."""
    part, resources = PartBuilder(), ResourceManager()
    part.node("VariableV2", "v", shape=(), dtype=F32)
    p = part.feed("p", BOOL)
    part.node("RefSwitch", "switch", ["v", "p"], T=F32)
    if value is not None:
        made = Variable("v", F32, TensorShape([]))
        made.assign(np.float32(value).reshape(()))
        resources.lookup_or_create("", "v", Variable, lambda: made)
    return part, p, resources


def by_nodes(
    part: PartBuilder, feeds: dict[str, Any], resources: ResourceManager
) -> tuple[DynamicExecution, list[Any]]:
    sent: list[Any] = []
    program = compile_program(part.graph_def, TASK, resources)
    return node_by_node(program, StepIO(feeds, lambda *edge: sent.append(edge))), sent


@pytest.mark.parametrize(("value", "taken"), [(3.0, True), (None, True), (3.0, False), (None, False)])
def test_a_reference_is_sent_as_the_variable_and_only_with_a_value(value: float | None, taken: bool) -> None:
    part, p, resources = switched_variable(value)
    part.send("switch:1", F32, OTHER, "edge")
    execution, sent = by_nodes(part, {p: np.array(taken)}, resources)
    if taken and value is None:
        with pytest.raises(errors.FailedPreconditionError, match=r"(?s)uninitialized value v.*node send_edge"):
            execution.advance()
        return
    execution.advance()
    ((_, what, is_dead),) = sent
    assert is_dead is not taken
    assert what is (resources.lookup("", "v", Variable) if taken else None)


def test_a_fetched_reference_is_a_copy_of_its_value() -> None:
    part, p, resources = switched_variable(3.0)
    key = part.fetch("switch:1")
    execution, _ = by_nodes(part, {p: np.array(True)}, resources)
    execution.advance()
    found = execution.fetched()[key]
    assert found == 3
    found[...] = 9
    assert resources.lookup("", "v", Variable).value == 3


@pytest.mark.parametrize(("taken", "value", "index"), [(True, -2, 0), (False, 2, 1)])
def test_a_merge_of_values_reads_a_reference_among_its_inputs(taken: bool, value: float, index: int) -> None:
    part, p, resources = switched_variable(2.0)
    part.node("Neg", "minus", ["switch:1"], T=F32)
    part.node("Merge", "merge", ["minus", "switch:0"], T=F32, N=2)
    y, which = part.fetch("merge"), part.fetch("merge:1", I32)
    execution, _ = by_nodes(part, {p: np.array(taken)}, resources)
    execution.advance()
    assert execution.fetched()[y] == value
    assert execution.fetched()[which] == index
    assert execution.fetched()[which].dtype == np.int32


@pytest.mark.parametrize(("value", "fails"), [([b"text"], False), ([object()], True)])
def test_a_variant_of_its_own_does_not_leave_the_task_node_by_node(value: list[Any], fails: bool) -> None:
    part = PartBuilder()
    x = part.feed("x", dtypes.string)
    part.send("x", dtypes.string, OTHER, "edge")
    execution, sent = by_nodes(part, {x: np.array(value, object)}, ResourceManager())
    if fails:
        with pytest.raises(errors.UnimplementedError, match="A variant of type"):
            execution.advance()
        assert sent == []
    else:
        execution.advance()
        assert sent[0][1].tolist() == value


def test_what_waits_for_a_dead_tensor_is_asked_for_and_dead_all_the_same() -> None:
    """A Recv behind a control edge from a branch that was not taken."""
    for taken, expected in ((True, [False, False]), (False, [True, True])):
        part, x, p = cond()
        part.recv("a", F32, OTHER, 5, ["^yes"])
        part.node("Neg", "minus", ["a"], T=F32)
        part.send("minus", F32, OTHER, "minus")
        part.send("yes", F32, OTHER, "yes")
        execution, sent = by_nodes(part, {x: np.ones((), np.float32), p: np.array(taken)}, ResourceManager())
        execution.advance()
        (wanted,) = execution.take_wanted()
        assert not execution.done
        execution.arrived(wanted.token, np.float32(4), False)
        execution.advance()
        assert execution.done
        assert [is_dead for _, _, is_dead in sorted(sent, key=lambda edge: edge[0])] == expected


def test_a_kernel_of_no_outputs_that_waits_goes_on_too() -> None:
    part = PartBuilder()
    x = part.feed("x")
    part.node("FIFOQueueV2", "queue", component_types=[F32], shapes=[TensorShape([])])
    part.node("QueueEnqueueV2", "put", ["queue", "x"], Tcomponents=[F32])
    part.node("Neg", "n", ["x", "^put"], T=F32)
    key = part.fetch("n")
    program = compile_program(part.graph_def, TASK, ResourceManager())
    (index,) = [node.index for node in program.compiled.part.nodes if node.name == "put"]
    kernels: Any = program.compiled.kernels
    kernels[index] = lambda *_: Waiting()
    execution = node_by_node(program, StepIO({x: np.float32(2).reshape(())}, lambda *_: None))
    execution.advance()
    (wanted,) = execution.take_wanted()
    assert not execution.ready
    execution.arrived(wanted.token, None, False)
    execution.advance()
    assert execution.done
    assert execution.fetched()[key] == -2


@pytest.mark.parametrize(("size", "seen"), [(2, 1), (3, 1), (4, 2)])
def test_a_queues_elements_are_counted_by_shape(size: int, seen: int) -> None:
    part = PartBuilder()
    part.node("FIFOQueueV2", "queue", component_types=[F32], shapes=[TensorShape([None])])
    part.node("QueueDequeueV2", "one", ["queue"], component_types=[F32])
    part.fetch("one")
    program = compile_program(part.graph_def, TASK, ResourceManager())
    (node,) = [node for node in program.compiled.part.nodes if node.name == "one"]
    execution = node_by_node(program, StepIO({}, lambda *_: None))
    assert execution.shapes == 0
    execution._take(node, [np.zeros(2, np.float32)])
    first = execution.shapes
    assert first != 0
    execution._take(node, [np.zeros(size, np.float32)])
    assert len(execution._seen) == seen
    assert (execution.shapes == first) == (seen == 1)
