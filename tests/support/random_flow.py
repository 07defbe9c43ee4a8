"""Random graphs with conditionals and loops in each other, and what a step of a program of one gives."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from support.parts import PartBuilder
from tenfold_core import dtypes, errors
from tenfold_services.worker.execution import Execution, StepIO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_services.worker.loaded_program import LoadedProgram

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


def steps(program: LoadedProgram, kind: Any, feeds: dict[str, Any], received: tuple[Any, bool]) -> Any:
    sent: dict[str, Any] = {}

    def send(key: str, value: Any, is_dead: bool) -> None:
        assert key not in sent
        sent[key] = "dead" if is_dead else np.asarray(value).item()

    io = StepIO(feeds, send)
    return outcome(kind(program, io), received), sent


def draws(graph: RandomGraph, seed: int, count: int) -> Iterator[tuple[dict[str, Any], tuple[Any, bool]]]:
    """Feeds of `count` steps, and the tensor that comes from the other task."""
    for number in range(count):
        draw = random.Random(seed * 10 + number)
        feeds = {key: np.array(draw.choice([-1.0, 0.0, 1.0, 3.0]), np.float32) for key in graph.feeds}
        yield feeds, (None, True) if number % 2 and graph.may_be_dead else (np.array(0.25, np.float32), False)
