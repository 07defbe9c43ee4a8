"""Branches and loops as generated code: against the dynamic executor on random graphs, and what they are written as."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.parts import PartBuilder
from tenfold_core import dtypes, errors
from tenfold_kernels.resources.state import ResourceManager
from tenfold_services.worker import fusion_tiers, program_compiler
from tenfold_services.worker.dynamic_executor import DynamicExecution
from tenfold_services.worker.execution import Execution, StepIO
from tenfold_services.worker.fuse import groups
from tenfold_services.worker.program_compiler import compile_program
from tenfold_services.worker.static_executor import StaticExecution

if TYPE_CHECKING:
    from tenfold_services.worker.program import Program

TASK = "/job:localhost/replica:0/task:0"
OTHER = "/job:ps/replica:0/task:0/device:CPU:0"
F32, I32, BOOL = dtypes.float32, dtypes.int32, dtypes.bool_


@dataclass
class Context:
    """A branch or a loop while it is built: how a value from outside comes in, and what constants wait for."""

    parent: Context | None = None
    pivot: str = ""
    switch: tuple[str, int] | None = None
    frame: str = ""
    inside: dict[str, str] = field(default_factory=dict)


class RandomGraph:
    """Conditionals and loops in each other, as TensorFlow's client makes them, of float32 scalars."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.part = PartBuilder()
        self.count = 0
        self.root = Context()
        self.feeds = [self.part.feed(f"x{i}") for i in range(3)]
        self.received: list[str] = []
        #: A loop that only some of whose inputs are dead sends nothing at all on the dynamic executor.
        self.may_be_dead = self.random.random() < 0.5
        self.values: list[tuple[str, Context]] = [(f"x{i}", self.root) for i in range(3)]
        if self.random.random() < 0.5:
            self.received.append(self.part.recv("r", F32, OTHER, 1))
            self.values.append(("r", self.root))
        for _ in range(self.random.randint(1, 3)):
            value = self.expression(self.root, 3)
            if self.received:
                # may be dead
                self.part.send(value, F32, OTHER, self.name())
            else:
                self.part.fetch(self.node("Identity", [value]))

    def name(self) -> str:
        self.count += 1
        return f"n{self.count}"

    def node(self, op: str, inputs: list[str], dtype: Any = F32, **attrs: Any) -> str:
        return self.part.node(op, self.name(), inputs, T=dtype, **attrs)

    def const(self, context: Context, value: Any) -> str:
        return self.part.const(self.name(), value, inputs=[f"^{context.pivot}"] if context.pivot else [])

    def use(self, value: str, home: Context, context: Context) -> str:
        """The value of an outer context in an inner one."""
        if home is context:
            return value
        known = context.inside.get(value)
        if known is None:
            assert context.parent is not None
            outer = self.use(value, home, context.parent)
            if context.switch is not None:
                pred, branch = context.switch
                known = f"{self.node('Switch', [outer, pred])}:{branch}"
            else:
                known = self.node("Enter", [outer], frame_name=context.frame, is_constant=True)
            context.inside[value] = known
        return known

    def leaf(self, context: Context) -> str:
        visible = [(value, home) for value, home in self.values if self.sees(context, home)]
        if self.random.random() < 0.25:
            return self.const(context, self.random.choice([0.5, 1.0, -1.0, 2.0]))
        return self.use(*self.random.choice(visible), context)

    def sees(self, context: Context | None, home: Context) -> bool:
        while context is not None:
            if context is home:
                return True
            context = context.parent
        return False

    def expression(self, context: Context, depth: int) -> str:
        kind = self.random.random()
        if depth <= 0 or kind < 0.15:
            return self.leaf(context)
        if kind < 0.5:
            op = self.random.choice(["Add", "Sub", "Maximum", "Minimum"])
            inputs = [self.expression(context, depth - 1) for _ in range(2)]
            value = self.node(op, inputs)
        elif kind < 0.8 or (self.received and self.may_be_dead):
            value = self.cond(context, depth - 1)
        else:
            value = self.loop(context, depth - 1)
        self.values.append((value, context))
        return value

    def cond(self, context: Context, depth: int) -> str:
        pred = self.node("Less", [self.leaf(context), self.leaf(context)])
        ends = []
        for branch in (0, 1):
            switch = self.node("Switch", [pred, pred], BOOL)
            pivot = self.node("Identity", [f"{switch}:{branch}"], BOOL)
            inner = Context(context, pivot, (pred, branch))
            ends.append(self.expression(inner, depth))
            if context is self.root and self.random.random() < 0.3:
                self.part.send(ends[-1], F32, OTHER, self.name())
        merge = self.node("Merge", ends, N=2)
        return self.node("Identity", [merge]) if self.random.random() < 0.3 else merge

    def loop(self, context: Context, depth: int) -> str:
        name = f"{self.name()}_frame"
        starts = [self.const(context, 0.0), self.expression(context, depth - 1)]
        limit = self.const(context, float(self.random.randint(0, 4)))
        enters = [self.node("Enter", [start], frame_name=name, is_constant=False) for start in starts]
        nexts = [f"{name}_next{i}" for i in range(2)]
        i, x = [self.node("Merge", [a, b], N=2) for a, b in zip(enters, nexts, strict=True)]
        bound = self.node("Enter", [limit], frame_name=name, is_constant=True)
        goes_on = self.part.node("LoopCond", self.name(), [self.node("Less", [i, bound])])
        switches = [self.node("Switch", [v, goes_on]) for v in (i, x)]
        turn_i, turn_x = [self.node("Identity", [f"{switch}:1"]) for switch in switches]
        inner = Context(context, turn_i, None, name)
        self.values.append((turn_x, inner))
        self.values.append((turn_i, inner))
        one = self.const(inner, 1.0)
        half = self.const(inner, 0.5)
        body = self.node("Mul", [self.expression(inner, depth), half])
        for end, value in zip(nexts, (self.node("Add", [turn_i, one]), body), strict=True):
            self.part.node("NextIteration", end, [value], T=F32)
        return [self.node("Exit", [f"{switch}:0"]) for switch in switches][self.random.random() < 0.8]


def outcome(execution: Execution, received: tuple[Any, bool]) -> tuple[dict[str, Any], dict[str, Any]] | str:
    """What the client gets, or the error."""
    try:
        for wanted in execution.take_wanted():
            execution.arrived(wanted.token, *received)
        while execution.ready:
            execution.advance()
            for wanted in execution.take_wanted():
                execution.arrived(wanted.token, *received)
        assert execution.done
        values = execution.fetched()
    except errors.OpError as error:
        return f"{type(error).__name__}: {error.message}"
    return {key: np.asarray(value).item() for key, value in values.items()}, {}


def steps(program: Program, kind: Any, feeds: dict[str, Any], received: tuple[Any, bool]) -> Any:
    sent: dict[str, Any] = {}

    def send(key: str, value: Any, is_dead: bool) -> None:
        assert key not in sent
        sent[key] = "dead" if is_dead else np.asarray(value).item()

    io = StepIO(feeds, send)
    return outcome(kind(program, io), received), sent


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_mean_the_same_as_on_the_dynamic_executor(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = RandomGraph(seed)
    program = compile_program(graph.part.graph_def, TASK, ResourceManager())
    monkeypatch.setattr(program_compiler, "optimize", lambda *_: None)
    plain = compile_program(graph.part.graph_def, TASK, ResourceManager())
    assert program.generated is not None or not program.part.is_dynamic

    for number in range(4):
        draw = random.Random(seed * 10 + number)
        feeds = {key: np.array(draw.choice([-1.0, 0.0, 1.0, 3.0]), np.float32) for key in graph.feeds}
        received = (None, True) if number % 2 and graph.may_be_dead else (np.array(0.25, np.float32), False)
        expected = steps(plain, DynamicExecution, feeds, received)
        assert steps(program, DynamicExecution, feeds, received) == expected
        got = steps(program, lambda program, io: program.start(io), feeds, received)
        assert got == expected


@pytest.mark.parametrize("seed", range(40))
def test_groups_in_random_graphs_mean_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of one scalar and more, which run their nodes one by one: what is compiled is tested in test_fuse.py."""
    monkeypatch.setattr(groups, "MIN_SCALAR_OPS", 1)
    monkeypatch.setattr(groups.Group, "build", lambda self, fallback: fallback)
    monkeypatch.setattr(fusion_tiers, "_attempt", lambda job: job())
    graph = RandomGraph(seed)
    plain = compile_program(graph.part.graph_def, TASK, ResourceManager())
    compiler = fusion_tiers.FusionCompiler(fusion_tiers.FusionOptions("eager"))
    fused = compile_program(graph.part.graph_def, TASK, ResourceManager(), compiler=compiler)

    for number in range(6):
        draw = random.Random(seed * 10 + number)
        feeds = {key: np.array(draw.choice([-1.0, 0.0, 1.0, 3.0]), np.float32) for key in graph.feeds}
        received = (None, True) if number % 2 and graph.may_be_dead else (np.array(0.25, np.float32), False)
        expected = steps(plain, DynamicExecution, feeds, received)
        assert steps(fused, lambda program, io: program.start(io), feeds, received) == expected


def compiled(part: PartBuilder) -> Program:
    program = compile_program(part.graph_def, TASK, ResourceManager())
    assert program.flow is not None
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
    assert program.is_straight
    feeds = {feed.key: np.ones((), feed.numpy_dtype) for feed in program.feeds}
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
    io = StepIO({feed.key: np.ones((), np.float32) for feed in program.feeds}, lambda *_: None)
    generated = program.generated
    assert generated is not None
    (index,) = [node.index for node in program.part.nodes if node.name == "body"]
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
    generated = program.generated
    assert generated is not None
    ran: list[int] = []

    def stops(value: Any) -> Any:
        ran.append(1)
        io.stop.append(True)
        return value

    for node in program.part.nodes:
        if node.name.startswith("n"):
            generated.namespace[f"k{node.index}"] = stops
    with pytest.raises(errors.CancelledError):
        program.start(io).advance()
    assert len(ran) < 100
