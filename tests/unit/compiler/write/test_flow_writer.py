"""Branches and loops as generated code: against the dynamic executor on random graphs, and what they are written as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.parts import PartBuilder
from support.programs import compile_program, node_by_node
from support.random_flow import BOOL, F32, I32, RandomGraph, draws, steps
from tenfold_compiler import build
from tenfold_compiler.fuse import groups
from tenfold_core import errors
from tenfold_kernels.fusion.compiler import FusionCompiler, FusionOptions
from tenfold_kernels.resources.state import ResourceManager
from tenfold_services.worker import program_loader
from tenfold_services.worker.execution import StepIO
from tenfold_services.worker.static_executor import StaticExecution

if TYPE_CHECKING:
    from tenfold_services.worker.loaded_program import LoadedProgram

TASK = "/job:localhost/replica:0/task:0"


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_mean_the_same_as_on_the_dynamic_executor(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = RandomGraph(seed)
    program = compile_program(graph.part.graph_def, TASK, ResourceManager())
    monkeypatch.setattr(build, "optimize", lambda *_: None)
    plain = compile_program(graph.part.graph_def, TASK, ResourceManager())
    assert program.compiled.generated is not None or not program.compiled.part.is_dynamic

    for feeds, received in draws(graph, seed, 4):
        expected = steps(plain, node_by_node, feeds, received)
        assert steps(program, node_by_node, feeds, received) == expected
        got = steps(program, lambda program, io: program.start(io), feeds, received)
        assert got == expected


@pytest.mark.parametrize("seed", range(40))
def test_groups_in_random_graphs_mean_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of one scalar and more, which run their nodes one by one: what is compiled is tested in test_fuse.py."""
    monkeypatch.setattr(groups, "MIN_SCALAR_OPS", 1)
    monkeypatch.setattr(groups.Group, "build", lambda self, fallback, most_turns: fallback)
    monkeypatch.setattr(program_loader, "attempt", lambda job: job())
    graph = RandomGraph(seed)
    plain = compile_program(graph.part.graph_def, TASK, ResourceManager())
    compiler = FusionCompiler(FusionOptions("eager"))
    fused = compile_program(graph.part.graph_def, TASK, ResourceManager(), compiler=compiler)

    for feeds, received in draws(graph, seed, 6):
        expected = steps(plain, node_by_node, feeds, received)
        assert steps(fused, lambda program, io: program.start(io), feeds, received) == expected


def compiled(part: PartBuilder) -> LoadedProgram:
    program = compile_program(part.graph_def, TASK, ResourceManager())
    assert program.compiled.flow is not None
    return program


def test_a_part_with_a_conditional_is_one_call() -> None:
    part = PartBuilder()
    part.feed("x")
    part.feed("p", BOOL)
    part.node("Switch", "switch", ["x", "p"], T=F32)
    part.node("Neg", "no", ["switch:0"], T=F32)
    part.node("Square", "yes", ["switch:1"], T=F32)
    part.node("Merge", "merge", ["no", "yes"], T=F32, N=2)
    part.fetch("merge")
    program = compiled(part)
    assert program.compiled.is_straight
    feeds = {feed.key: np.ones((), feed.numpy_dtype) for feed in program.compiled.transfers.feeds}
    assert isinstance(program.start(StepIO(feeds, lambda *_: None)), StaticExecution)


def test_a_kernel_that_waits_is_not_started_in_the_branch_not_taken() -> None:
    part = PartBuilder()
    x, p = part.feed("x"), part.feed("p", BOOL)
    part.node("FIFOQueueV2", "queue", [], component_types=[F32], shapes=[], capacity=1)
    part.node("Switch", "pivot", ["p", "p"], T=BOOL)
    part.node("Identity", "taken", ["pivot:1"], T=BOOL)
    part.node("QueueDequeueV2", "dequeued", ["queue", "^taken"], component_types=[F32])
    part.node("Switch", "switch", ["x", "p"], T=F32)
    part.node("Merge", "merge", ["switch:0", "dequeued"], T=F32, N=2)
    y = part.fetch("merge")
    program = compiled(part)
    feeds = {x: np.array(3, np.float32), p: np.array(False)}
    execution = program.start(StepIO(feeds, lambda *_: None))
    while execution.ready:
        execution.advance()
        assert not execution.take_wanted()
    assert execution.done
    assert execution.fetched()[y] == 3


def test_an_error_in_a_branch_names_its_node() -> None:
    part = PartBuilder()
    x, p = part.feed("x"), part.feed("p", BOOL)
    part.node("Switch", "switch", ["x", "p"], T=F32)
    part.node("CheckNumerics", "checked", ["switch:1"], T=F32, message="bad")
    part.node("Merge", "merge", ["switch:0", "checked"], T=F32, N=2)
    part.fetch("merge")
    program = compiled(part)
    execution = program.start(StepIO({x: np.array(np.nan, np.float32), p: np.array(True)}, lambda *_: None))
    with pytest.raises(errors.InvalidArgumentError, match=r"{{node checked}}"):
        execution.advance()


def test_a_loop_that_never_ends_stops_when_it_is_told_to() -> None:
    part = PartBuilder()
    part.feed("x")
    part.node("Enter", "enter", ["x"], T=F32, frame_name="f")
    part.node("Merge", "merge", ["enter", "next"], T=F32, N=2)
    part.node("Less", "less", ["merge", "merge"], T=F32)
    part.node("LogicalNot", "not", ["less"])
    part.node("LoopCond", "goes_on", ["not"])
    part.node("Switch", "switch", ["merge", "goes_on"], T=F32)
    part.node("Neg", "body", ["switch:1"], T=F32)
    part.node("NextIteration", "next", ["body"], T=F32)
    part.node("Exit", "exit", ["switch:0"], T=F32)
    part.fetch("exit")
    program = compiled(part)
    io = StepIO({feed.key: np.ones((), np.float32) for feed in program.compiled.transfers.feeds}, lambda *_: None)
    generated = program.compiled.generated
    assert generated is not None
    (index,) = [node.index for node in program.compiled.part.nodes if node.name == "body"]
    turns: list[int] = []

    def counted(x: Any) -> Any:
        turns.append(1)
        if len(turns) == 10:
            io.stop.append(True)
        return -x

    generated.namespace[f"k{index}"] = counted
    with pytest.raises(errors.CancelledError):
        program.start(io).advance()
    assert len(turns) == 10


@pytest.mark.parametrize("taken", [0, 7, 299])
def test_a_merge_of_very_many_cases(taken: int) -> None:
    part = PartBuilder()
    x, i = part.feed("x"), part.feed("i", I32)
    count = 300
    part.node("_SwitchN", "switch", ["x", "i"], T=F32, num_outs=count)
    part.node("Merge", "merge", [f"switch:{number}" for number in range(count)], T=F32, N=count)
    y, index = part.fetch("merge"), part.fetch("merge:1", I32)
    feeds = {x: np.array(5, np.float32), i: np.array(taken, np.int32)}
    execution = compiled(part).start(StepIO(feeds, lambda *_: None))
    execution.advance()
    assert execution.fetched()[y] == 5
    assert execution.fetched()[index] == taken


def test_a_long_branch_stops_when_it_is_told_to() -> None:
    part = PartBuilder()
    x, p = part.feed("x"), part.feed("p", BOOL)
    part.node("Switch", "switch", ["x", "p"], T=F32)
    source = "switch:1"
    for number in range(200):
        part.node("CheckNumerics", f"n{number}", [source], T=F32, message="")
        source = f"n{number}"
    part.node("Merge", "merge", ["switch:0", source], T=F32, N=2)
    part.fetch("merge")
    program = compiled(part)
    io = StepIO({x: np.ones((), np.float32), p: np.array(True)}, lambda *_: None)
    generated = program.compiled.generated
    assert generated is not None
    ran: list[int] = []

    def stops(value: Any) -> Any:
        ran.append(1)
        io.stop.append(True)
        return value

    for node in program.compiled.part.nodes:
        if node.name.startswith("n"):
            generated.namespace[f"k{node.index}"] = stops
    with pytest.raises(errors.CancelledError):
        program.start(io).advance()
    assert len(ran) < 100


@pytest.mark.parametrize("number", [-2, -1, 0, 1, 2, 3, 4, 7])
def test_switches_of_several_counts_look_at_one_number(number: int) -> None:
    part = PartBuilder()
    x, n = part.feed("x"), part.feed("n", I32)
    counts = (3, 2, 5, 1)
    for count in counts:
        part.node("_SwitchN", f"s{count}", ["x", "n"], T=F32, num_outs=count)
        for port in range(count):
            part.const(f"by{count}_{port}", float(10 * count + port))
            part.node("Mul", f"m{count}_{port}", [f"s{count}:{port}", f"by{count}_{port}"], T=F32)
        part.node("Merge", f"m{count}", [f"m{count}_{port}" for port in range(count)], T=F32, N=count)
    fetched = [part.fetch(f"m{count}") for count in counts]
    program = compile_program(part.graph_def, TASK, ResourceManager())
    feeds = {x: np.array(2, np.float32), n: np.array(number, np.int32)}
    execution: Any = program.start(StepIO(feeds, lambda *_: None))
    while execution.ready:
        execution.advance()

    taken = [number if 0 <= number < count else count - 1 for count in counts]
    assert [execution.fetched()[key] for key in fetched] == [
        2 * (10 * count + port) for count, port in zip(counts, taken, strict=True)
    ]


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17])
def test_a_merge_says_which_input_it_was_in_every_form_of_its_line(count: int) -> None:
    """Some sixteen cases are one expression; more of them are lines."""
    part = PartBuilder()
    x, n = part.feed("x"), part.feed("n", I32)
    part.node("_SwitchN", "s", ["x", "n"], T=F32, num_outs=count)
    for port in range(count):
        part.const(f"by{port}", float(port + 3))
        part.node("Mul", f"m{port}", [f"s:{port}", f"by{port}"], T=F32)
    part.node("Merge", "m", [f"m{port}" for port in range(count)], T=F32, N=count)
    part.node("Merge", "same", [f"s:{port}" for port in range(count)], T=F32, N=count)
    value, index = part.fetch("m"), part.fetch("m:1", I32)
    same, first = part.fetch("same"), part.fetch("same:1", I32)
    program = compiled(part)
    for number in (-1, 0, 1, count - 2, count - 1, count, count + 1):
        execution = program.start(StepIO({x: np.array(2, np.float32), n: np.array(number, np.int32)}, lambda *_: None))
        execution.advance()
        found = execution.fetched()
        taken = number if 0 <= number < count else count - 1
        assert (found[value], found[index]) == (2 * (taken + 3), taken)
        assert (found[same], found[first]) == (2, taken)
        assert found[index].dtype == np.int32


@pytest.mark.parametrize("taken", [True, False])
def test_a_loop_may_be_all_of_its_function_that_tests_its_branch(taken: bool) -> None:
    """if p: y = x² ⋯ until it is 100 or more, and what the branches give meets in a region that waits for r."""
    part = PartBuilder()
    x, p = part.feed("x"), part.feed("p", BOOL)
    far = part.recv("r", F32, "/job:worker/replica:0/task:0/device:CPU:0", 7)
    part.const("hundred", 100.0)
    part.node("Switch", "switch", ["x", "p"], T=F32)
    part.node("Enter", "enter", ["switch:1"], T=F32, frame_name="f")
    part.node("Enter", "limit", ["hundred"], T=F32, frame_name="f", is_constant=True)
    part.node("Merge", "v", ["enter", "next"], T=F32, N=2)
    part.node("Less", "less", ["v", "limit"], T=F32)
    part.node("LoopCond", "goes_on", ["less"])
    part.node("Switch", "turn", ["v", "goes_on"], T=F32)
    part.node("Square", "body", ["turn:1"], T=F32)
    part.node("NextIteration", "next", ["body"], T=F32)
    part.node("Exit", "exit", ["turn"], T=F32)
    part.node("Switch", "received", ["r", "p"], T=F32)
    part.node("Merge", "merge", ["received", "exit"], T=F32, N=2)
    y = part.fetch("merge")
    execution = compiled(part).start(StepIO({x: np.array(3, np.float32), p: np.array(taken)}, lambda *_: None))

    execution.advance()
    (wanted,) = execution.take_wanted()
    assert wanted.key == far
    execution.arrived(wanted.token, np.array(7, np.float32), False)
    execution.advance()

    assert execution.fetched()[y] == (6561 if taken else 7)
