"""Loops that are compiled as a whole: against the same loops node by node."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.parts import PartBuilder
from support.programs import compile_program, node_by_node
from support.random_flow import BOOL, F32, I32, RandomGraph, draws, steps
from tenfold_compiler.fuse import groups
from tenfold_compiler.part.guards import ALIVE, ANY, Literal, case_of, truth_of
from tenfold_compiler.write import flow_writer, loop_writer
from tenfold_compiler.write.registers import name_of
from tenfold_core import dtypes, errors
from tenfold_kernels.fusion import expressions, loops
from tenfold_kernels.fusion.cache import FusionCache
from tenfold_kernels.fusion.compiler import FusionCompiler, FusionOptions
from tenfold_kernels.resources import tensor_arrays
from tenfold_kernels.resources.state import ResourceManager
from tenfold_services.worker import program_loader
from tenfold_services.worker.execution import StepIO

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_compiler.part.part_graph import PartNode
    from tenfold_compiler.program import Program
    from tenfold_services.worker.loaded_program import LoadedProgram

TASK = "/job:localhost/replica:0/task:0"
I64, F64, I8 = dtypes.int64, dtypes.float64, dtypes.int8


@pytest.fixture(autouse=True)
def _errors_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_loader, "attempt", lambda job: job())


def as_python(self: FusionCache, source: str, signature: str) -> Callable[..., Any]:
    """In the place of FusionCache.function: what would be compiled, as it is."""
    namespace: dict[str, Any] = {"math": math, "np": np}
    exec(source, namespace)
    run: Callable[..., Any] = namespace["run"]
    return run


def eager() -> FusionCompiler:
    return FusionCompiler(FusionOptions("eager"))


def started(program: LoadedProgram, io: StepIO) -> Any:
    return program.start(io)


@pytest.mark.parametrize("seed", range(120))
def test_random_loops_mean_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FusionCache, "function", as_python)
    monkeypatch.setattr(groups, "MIN_SCALAR_OPS", 1_000_000)
    graph = RandomGraph(seed)
    plain = compile_program(graph.part.graph_def, TASK, ResourceManager())
    fused = compile_program(graph.part.graph_def, TASK, ResourceManager(), compiler=eager())

    for feeds, received in draws(graph, seed, 6):
        expected = steps(plain, node_by_node, feeds, received)
        assert steps(fused, started, feeds, received) == expected


@pytest.mark.parametrize("seed", [0, 6, 97, 1207])
def test_random_loops_mean_the_same_compiled(seed: int) -> None:
    graph = RandomGraph(seed)
    plain = compile_program(graph.part.graph_def, TASK, ResourceManager())
    fused = compile_program(graph.part.graph_def, TASK, ResourceManager(), compiler=eager())

    for feeds, received in draws(graph, seed, 6):
        expected = steps(plain, node_by_node, feeds, received)
        assert steps(fused, started, feeds, received) == expected
    assert fused.compiled.fusion is not None
    assert any(group.loop is not None for group in fused.compiled.fusion.groups)


class Loop:
    """for i in range(n): x = body(x), with `n` and the first x fed."""

    def __init__(self, dtype: Any = I32, before: Callable[[PartBuilder], None] = lambda part: None) -> None:
        part = self.part = PartBuilder()
        self.n, self.x = part.feed("n", I32), part.feed("x", dtype)
        self.dtype = dtype
        before(part)
        for name, source, kind in (("i", "zero", I32), ("v", "x", dtype)):
            if name == "i":
                part.const("zero", np.int32(0))
            self.enter(source, kind, f"{name}_enter", False)
            part.node("Merge", name, [f"{name}_enter", f"{name}_next"], T=kind, N=2)
        self.enter("n", I32, "n_in")
        part.node("Less", "less", ["i", "n_in"], T=I32)
        part.node("LoopCond", "goes_on", ["less"])
        for name, kind in (("i", I32), ("v", dtype)):
            part.node("Switch", f"{name}_switch", [name, "goes_on"], T=kind)
            part.node("Identity", f"{name}_now", [f"{name}_switch:1"], T=kind)
        part.const("one", np.int32(1), inputs=["^i_now"])
        part.node("Add", "i_more", ["i_now", "one"], T=I32)
        part.node("NextIteration", "i_next", ["i_more"], T=I32)

    def enter(self, source: str, dtype: Any, name: str, is_constant: bool = True) -> str:
        return self.part.node("Enter", name, [source], T=dtype, frame_name="f", is_constant=is_constant)

    def closed(self, value: str) -> str:
        """With `value` as the next turn's; the key of the fetch."""
        self.part.node("NextIteration", "v_next", [value], T=self.dtype)
        self.part.node("Exit", "exit", ["v_switch:0"], T=self.dtype)
        return self.part.fetch("exit", self.dtype)


class Twice:
    """A graph as two programs, the one with compiled loops and the one without."""

    def __init__(self, part: PartBuilder) -> None:
        self.plain = compile_program(part.graph_def, TASK, ResourceManager())
        self.fused = compile_program(part.graph_def, TASK, ResourceManager(), compiler=eager())

    def run(self, program: LoadedProgram, feeds: dict[str, Any]) -> Any:
        execution = program.start(StepIO(feeds, lambda *_: None))
        execution.advance()
        return execution.fetched()

    def compile(self, feeds: dict[str, Any]) -> None:
        for _ in range(3):
            self.run(self.fused, feeds)
        assert self.fused.compiled.fusion is not None, "the program was not fused"
        assert any(group.loop is not None for group in self.fused.compiled.fusion.groups)

    def agree(self, feeds: dict[str, Any]) -> dict[str, Any]:
        """The fetched values, which both give."""
        got, expected = self.run(self.fused, feeds), self.run(self.plain, feeds)
        for key, value in expected.items():
            assert got[key].dtype == value.dtype
            assert np.array_equal(got[key], value, equal_nan=value.dtype.kind == "f")
        return got


def binary(op: str, dtype: Any, *, constant: Any = None) -> tuple[Loop, str]:
    """v = v op i, or v op constant."""
    loop = Loop(dtype)
    if constant is None:
        other = loop.part.node("Cast", "as_v", ["i_now"], SrcT=I32, DstT=dtype) if dtype is not I32 else "i_now"
    else:
        other = loop.part.const("c", np.array(constant, dtype.as_numpy_dtype), inputs=["^i_now"])
    loop.part.node(op, "body", ["v_now", other], T=dtype)
    return loop, loop.closed("body")


@pytest.mark.parametrize(
    ("op", "dtype", "constant"),
    [("Mul", I32, 7), ("Mul", I64, 77), ("Mul", I8, 3), ("Add", F64, 0.1), ("Sub", F32, 0.1), ("RealDiv", F32, -3.0)],
)
def test_numbers_wrap_and_round_as_kernels_do(op: str, dtype: Any, constant: Any) -> None:
    loop, _ = binary(op, dtype, constant=constant)
    both = Twice(loop.part)
    x = np.array(101, dtype.as_numpy_dtype)
    both.compile({loop.n: np.int32(3), loop.x: x})
    for turns in (0, 1, 2, 50, 200):
        both.agree({loop.n: np.array(turns, np.int32), loop.x: x})


@pytest.mark.parametrize("op", ["FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod"])
def test_divisions_of_integers(op: str) -> None:
    loop, _ = binary(op, I32, constant=-3)
    both = Twice(loop.part)
    both.compile({loop.n: np.int32(1), loop.x: np.int32(7)})
    for x in (7, -7, 6, -6, 0, 2**31 - 1, -(2**31)):
        both.agree({loop.n: np.array(1, np.int32), loop.x: np.array(x, np.int32)})


def test_a_division_by_zero_is_the_error_of_its_node() -> None:
    loop, _ = binary("FloorDiv", I32)
    both = Twice(loop.part)
    both.compile({loop.n: np.int32(0), loop.x: np.int32(7)})
    with pytest.raises(errors.InvalidArgumentError, match=r"{{node body}}"):
        both.run(both.fused, {loop.n: np.array(3, np.int32), loop.x: np.array(7, np.int32)})


def test_a_float_that_is_no_integer_is_cast_as_the_kernel_does() -> None:
    loop = Loop(F32)
    loop.part.node("Cast", "whole", ["v_now"], SrcT=F32, DstT=I32)
    loop.part.node("Cast", "back", ["whole"], SrcT=I32, DstT=F32)
    loop.closed("back")
    both = Twice(loop.part)
    one = np.array(1, np.int32)
    both.compile({loop.n: one, loop.x: np.float32(2.5)})
    for x in (2.5, -2.5, 2147483520.0, -2147483648.0, 1e20, -1e20):
        with np.errstate(invalid="ignore"):
            both.agree({loop.n: one, loop.x: np.array(x, np.float32)})


def test_arrays_run_node_by_node() -> None:
    loop, y = binary("Mul", F32, constant=2.0)
    both = Twice(loop.part)
    both.compile({loop.n: np.int32(2), loop.x: np.float32(1)})
    got = both.agree({loop.n: np.array(3, np.int32), loop.x: np.array([1, 2], np.float32)})
    assert got[y].tolist() == [8, 16]


def test_a_loop_that_never_ends_stops_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_OPS_OF_A_SLICE", 64)
    calls: list[int] = []
    io: list[StepIO] = []

    def counted(self: FusionCache, source: str, signature: str) -> Callable[..., Any]:
        run = as_python(self, source, signature)

        def call(*given: Any) -> Any:
            calls.append(1)
            if len(calls) == 10:
                io[0].stop.append(True)
            return run(*given)

        return call

    monkeypatch.setattr(FusionCache, "function", counted)
    loop, _ = binary("Mul", F32, constant=1.0)
    both = Twice(loop.part)
    x = np.array(1, np.float32)
    both.compile({loop.n: np.int32(1), loop.x: x})
    calls.clear()
    io.append(StepIO({loop.n: np.array(2**31 - 1, np.int32), loop.x: x}, lambda *_: None))
    with pytest.raises(errors.CancelledError):
        both.fused.start(io[0]).advance()
    assert len(calls) == 10


def with_stack(max_size: int = -1) -> tuple[Loop, str]:
    """A loop that squares and keeps all squares; another that takes as many as it is told, and subtracts them."""

    def stack(part: PartBuilder) -> None:
        part.const("max_size", np.int32(max_size))
        part.node("StackV2", "stack", ["max_size"], elem_type=F32, stack_name="s")

    loop = Loop(F32, stack)
    part = loop.part
    loop.enter("stack", dtypes.resource, "stack_in")
    part.node("Square", "body", ["v_now"], T=F32)
    part.node("StackPushV2", "push", ["stack_in", "body"], T=F32)
    loop.closed("push")
    second = {"T": F32, "frame_name": "g"}
    part.feed("m", I32)
    part.node("Enter", "m_enter", ["m"], **{**second, "T": I32})
    part.node("Enter", "e_enter", ["exit"], **second)
    part.node("Enter", "again", ["stack"], T=dtypes.resource, frame_name="g", is_constant=True)
    part.node("Merge", "j", ["m_enter", "j_next"], T=I32, N=2)
    part.node("Merge", "w", ["e_enter", "w_next"], T=F32, N=2)
    part.const("none", np.int32(0), inputs=["^j"])
    part.node("Greater", "more", ["j", "none"], T=I32)
    part.node("LoopCond", "on", ["more"])
    part.node("Switch", "j_switch", ["j", "on"], T=I32)
    part.node("Switch", "w_switch", ["w", "on"], T=F32)
    part.node("Identity", "j_now", ["j_switch:1"], T=I32)
    part.const("less_one", np.int32(1), inputs=["^j_now"])
    part.node("Sub", "j_less", ["j_now", "less_one"], T=I32)
    part.node("StackPopV2", "pop", ["again", "^j_now"], elem_type=F32)
    part.node("Sub", "w_less", ["w_switch:1", "pop"], T=F32)
    part.node("NextIteration", "j_next", ["j_less"], T=I32)
    part.node("NextIteration", "w_next", ["w_less"], T=F32)
    part.node("Exit", "last", ["w_switch:0"], T=F32)
    return loop, part.fetch("last")


def test_what_is_pushed_is_popped() -> None:
    loop, _ = with_stack()
    both = Twice(loop.part)
    (m,) = [feed.key for feed in both.plain.compiled.transfers.feeds if feed.key not in (loop.n, loop.x)]

    def feeds(pushed: int, popped: int) -> dict[str, Any]:
        numbers = {loop.n: np.array(pushed, np.int32), m: np.array(popped, np.int32)}
        return {**numbers, loop.x: np.array(0.999, np.float32)}

    both.compile(feeds(2, 1))
    # within the first vector, as long as it is, longer
    for pushed, popped in [(0, 0), (3, 3), (7, 2), (1024, 1024), (1025, 1000), (40_000, 40_000)]:
        both.agree(feeds(pushed, popped))
    with pytest.raises(errors.InvalidArgumentError, match=r"is empty(.|\n)*{{node pop}}"):
        both.run(both.fused, feeds(2, 3))


def test_a_stack_that_is_full_is_the_error_of_the_node_that_pushes() -> None:
    loop, _ = with_stack(max_size=5)
    both = Twice(loop.part)
    (m,) = [feed.key for feed in both.plain.compiled.transfers.feeds if feed.key not in (loop.n, loop.x)]
    feeds = {loop.n: np.array(5, np.int32), m: np.array(5, np.int32), loop.x: np.array(2, np.float32)}
    both.compile(feeds)
    both.agree(feeds)
    with pytest.raises(errors.InvalidArgumentError, match=r"overflowed(.|\n)*{{node push}}"):
        both.run(both.fused, {**feeds, loop.n: np.array(6, np.int32)})


def test_a_loop_looks_for_its_stacks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is pushed here is a vector, which no compiled loop takes."""
    loop, last = with_stack()
    program = compile_program(loop.part.graph_def, TASK, ResourceManager())
    assert program.compiled.generated is not None
    (m,) = [feed.key for feed in program.compiled.transfers.feeds if feed.key not in (loop.n, loop.x)]
    found: list[str] = []

    def counting(bind: Callable[[Any], Any], op: str) -> Callable[[Any], Any]:
        def counted(handle: Any) -> Any:
            found.append(op)
            return bind(handle)

        return counted

    for node in program.compiled.part.nodes:
        if node.op in ("StackPushV2", "StackPopV2"):
            namespace, name = program.compiled.generated.namespace, f"b{node.index}"
            namespace[name] = counting(namespace[name], node.op)

    def ran(pushed: int, popped: int) -> Any:
        feeds = {loop.n: np.array(pushed, np.int32), m: np.array(popped, np.int32), loop.x: np.full(2, 2, np.float32)}
        execution = program.start(StepIO(feeds, lambda *_: None))
        execution.advance()
        return execution.fetched()[last].tolist()

    assert ran(3, 3) == [256 - 256 - 16 - 4] * 2
    assert found == ["StackPushV2", "StackPopV2"]
    with pytest.raises(errors.InvalidArgumentError, match=r"is empty(.|\n)*{{node pop}}"):
        ran(2, 3)
    for module in (flow_writer, tensor_arrays):
        monkeypatch.setattr(module, "MAX_ELEMENTS", 4)
    ran(3, 1)
    with pytest.raises(errors.ResourceExhaustedError, match="A stack of a loop would have 5 elements; 4 is the limit"):
        ran(6, 1)


def test_a_branch_inside_and_a_predicate_from_outside() -> None:
    loop = Loop(F32, lambda part: part.feed("p", BOOL))
    part = loop.part
    loop.enter("p", BOOL, "p_in")
    part.node("Switch", "switch", ["v_now", "p_in"], T=F32)
    part.node("Neg", "no", ["switch:0"], T=F32)
    part.node("Square", "yes", ["switch:1"], T=F32)
    part.node("Merge", "merge", ["no", "yes"], T=F32, N=2)
    loop.closed("merge")
    both = Twice(part)
    (p,) = [feed.key for feed in both.plain.compiled.transfers.feeds if feed.key not in (loop.n, loop.x)]
    feeds = {loop.n: np.array(3, np.int32), loop.x: np.array(3, np.float32)}
    both.compile({**feeds, p: np.array(True)})
    for taken in (False, True):
        both.agree({**feeds, p: np.array(taken)})


# -- which loops are compiled ----------------------------------------------------------------------------------------


def read(part: PartBuilder) -> tuple[Program, dict[str, PartNode]]:
    program = compile_program(part.graph_def, TASK, ResourceManager()).compiled
    return program, {node.name: node for node in program.part.nodes}


def loops_of(program: Program) -> list[set[str]]:
    """The names of the variables of each loop that is compiled."""
    cache: Any = None
    found = [group.loop for group in loop_writer.find_loops(program, cache)]
    return [{node.name for node in loop.variables} for loop in found if loop is not None]


def test_a_loop_of_numbers_of_the_host_alone_is_compiled() -> None:
    program, at = read(binary("Mul", F32, constant=2.0)[0].part)
    body = at["body"]
    assert loops_of(program) == [{"i", "v"}]

    body.memory = (True, True), (True,)
    assert loops_of(program) == []
    body.memory, body.copy_of = None, body.node_def
    assert loops_of(program) == []
    body.copy_of, body.deref = None, [True, False]
    assert loops_of(program) == []
    body.deref = [False, False]
    assert loops_of(program) == [{"i", "v"}]


@pytest.mark.parametrize(("most", "is_compiled"), [(2, False), (3, True)])
def test_a_loop_of_many_arguments_is_not_compiled(
    most: int, is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two come in, `n` and `x`, one goes out."""
    program, _ = read(binary("Mul", F32, constant=2.0)[0].part)
    monkeypatch.setattr(loop_writer, "MAX_ARGUMENTS", most)
    assert loops_of(program) == ([{"i", "v"}] if is_compiled else [])


@pytest.mark.parametrize(("op", "attrs"), [("Relu6", {}), ("Reshape", {"Tshape": I32}), ("RandomUniformInt", {})])
def test_a_loop_of_an_op_that_is_no_expression_is_not_compiled(op: str, attrs: dict[str, Any]) -> None:
    loop = Loop(I32)
    part = loop.part
    if op == "Reshape":
        part.const("shape", np.zeros(0, np.int32), inputs=["^i_now"])
        part.node(op, "body", ["v_now", "shape"], T=I32, **attrs)
    elif op == "Relu6":
        part.node(op, "body", ["v_now"], T=I32)
    else:
        part.const("none", np.zeros(0, np.int32), inputs=["^i_now"])
        part.node(op, "body", ["none", "i_now", "v_now"], Tout=I32, T=I32)
    loop.closed("body")
    assert loops_of(read(part)[0]) == []


@pytest.mark.parametrize(("most", "is_compiled"), [(4, False), (5, True)])
def test_a_long_loop_is_not_compiled(most: int, is_compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a loop's nodes about a fourth compute: it may have four times as many as a group."""
    program, _ = read(binary("Mul", F32, constant=2.0)[0].part)
    assert program.flow is not None
    (loop,) = program.flow.tree.loops
    assert len(list(loop.nodes())) == 18
    monkeypatch.setattr(loop_writer, "MAX_OPS", most)
    assert loops_of(program) == ([{"i", "v"}] if is_compiled else [])


@pytest.mark.parametrize(("port", "is_compiled"), [(0, True), (1, False)])
def test_a_loop_in_which_a_merge_says_what_it_took_is_not_compiled(port: int, is_compiled: bool) -> None:
    loop = Loop(I32, lambda part: part.feed("p", BOOL))
    part = loop.part
    loop.enter("p", BOOL, "p_in")
    part.node("Switch", "switch", ["v_now", "p_in"], T=I32)
    part.node("Neg", "no", ["switch:0"], T=I32)
    part.node("Merge", "merge", ["no", "switch:1"], T=I32, N=2)
    part.node("Add", "body", ["v_now", f"merge:{port}" if port else "merge"], T=I32)
    loop.closed("body")
    assert loops_of(read(part)[0]) == ([{"i", "v"}] if is_compiled else [])


def test_a_loop_with_a_merge_that_may_be_dead_by_itself_is_not_compiled() -> None:
    text: Any = SimpleNamespace(reads=SimpleNamespace(guards=SimpleNamespace(flagged={9: []}), used=set()))
    node: Any = SimpleNamespace(index=9)
    with pytest.raises(loop_writer._Unfit):
        loop_writer._LoopText.merge(text, node)


def test_what_is_tested_in_a_compiled_loop_is_a_bool() -> None:
    """Not whether a node is alive, and no number of a case."""
    text: Any = None
    for port in (0, 3):
        assert loop_writer._LoopText.type_of(text, truth_of((5, port))) == np.dtype(bool)
    for edge in ((5, ALIVE), (5, ANY), case_of((5, 0)), case_of((5, 3))):
        with pytest.raises(loop_writer._Unfit):
            loop_writer._LoopText.type_of(text, edge)


def test_numbers_of_other_types_and_conditions_that_are_no_bool_make_a_loop_unfit() -> None:
    text = loop_writer._LoopText.__new__(loop_writer._LoopText)
    node = SimpleNamespace(output_types=(BOOL, F32, dtypes.string, dtypes.complex64))
    stub: Any = SimpleNamespace(part=SimpleNamespace(nodes=[node]))
    text.program = stub

    assert [text.type_of((0, port)) for port in (0, 1)] == [np.dtype(bool), np.dtype(np.float32)]
    for port in (2, 3):
        with pytest.raises(loop_writer._Unfit):
            text.type_of((0, port))
    assert text.condition(frozenset((Literal(truth_of((0, 0)), 0, 2),))) == "not b0_4"
    with pytest.raises(loop_writer._Unfit):
        text.condition(frozenset((Literal(truth_of((0, 1)), 1, 2),)))


# -- what is tested behind a compiled loop ---------------------------------------------------------------------------


def flipping() -> tuple[Loop, str]:
    """for i in range(n): x = not x, a condition on the last x; the key of y."""
    loop = Loop(BOOL)
    loop.part.node("LogicalNot", "flip", ["v_now"])
    loop.part.node("NextIteration", "v_next", ["flip"], T=BOOL)
    loop.part.node("Exit", "exit", ["v_switch:0"], T=BOOL)
    return loop, loop.part.feed("y")


def test_what_leaves_a_compiled_loop_may_be_a_condition() -> None:
    loop, y = flipping()
    loop.part.node("Switch", "s", ["y", "exit"], T=F32)
    loop.part.node("Neg", "no", ["s:0"], T=F32)
    loop.part.node("Square", "yes", ["s:1"], T=F32)
    loop.part.node("Merge", "m", ["no", "yes"], T=F32, N=2)
    key = loop.part.fetch("m")
    both = Twice(loop.part)
    feeds = {loop.x: np.array(True), y: np.array(3, np.float32)}
    both.compile({loop.n: np.array(0, np.int32), **feeds})
    found = [both.agree({loop.n: np.array(turns, np.int32), **feeds})[key] for turns in range(4)]
    assert found == [9, -3, 9, -3]


def test_what_leaves_a_compiled_loop_may_be_the_number_of_a_branch() -> None:
    loop = Loop(I32)
    loop.part.node("Add", "more", ["v_now", "one"], T=I32)
    loop.part.node("NextIteration", "v_next", ["more"], T=I32)
    loop.part.node("Exit", "exit", ["v_switch:0"], T=I32)
    y = loop.part.feed("y")
    loop.part.node("_SwitchN", "s", ["y", "exit"], T=F32, num_outs=3)
    for number, op in enumerate(("Neg", "Square", "Sqrt")):
        loop.part.node(op, f"branch{number}", [f"s:{number}"], T=F32)
    loop.part.node("Merge", "m", [f"branch{number}" for number in range(3)], T=F32, N=3)
    key = loop.part.fetch("m")
    both = Twice(loop.part)
    feeds = {loop.x: np.array(0, np.int32), y: np.array(9, np.float32)}
    both.compile({loop.n: np.array(0, np.int32), **feeds})
    found = [both.agree({loop.n: np.array(turns, np.int32), **feeds})[key] for turns in range(4)]
    assert found == [-9, 81, 3, 3]


def test_a_region_may_test_what_leaves_a_compiled_loop_of_another_one() -> None:
    """The condition stands where a tensor of another task has come; the loop does not wait for it."""
    loop, y = flipping()
    far = loop.part.recv("r", F32, "/job:worker/replica:0/task:0/device:CPU:0", 7)
    loop.part.node("Add", "sum", ["y", "r"], T=F32)
    loop.part.node("Switch", "s", ["sum", "exit"], T=F32)
    loop.part.node("Neg", "no", ["s:0"], T=F32)
    loop.part.node("Merge", "m", ["no", "s:1"], T=F32, N=2)
    key = loop.part.fetch("m")
    both = Twice(loop.part)

    def run(program: LoadedProgram, turns: int) -> float:
        feeds = {loop.n: np.array(turns, np.int32), loop.x: np.array(True), y: np.array(3, np.float32)}
        execution = program.start(StepIO(feeds, lambda *_: None))
        (wanted,) = execution.take_wanted()
        assert wanted.key == far
        execution.arrived(wanted.token, np.array(1, np.float32), False)
        execution.advance()
        return float(execution.fetched()[key])

    for _ in range(3):
        run(both.fused, 0)
    assert both.fused.compiled.fusion is not None
    assert any(group.loop is not None for group in both.fused.compiled.fusion.groups)
    for turns, expected in enumerate([4, -4, 4]):
        assert run(both.plain, turns) == run(both.fused, turns) == expected


def test_what_is_no_number_makes_a_loop_unfit() -> None:
    values = (np.array(2.5, np.float32), np.ones(2, np.float32), np.array("x", object), 3.0, np.array(7, np.int32))
    text: Any = SimpleNamespace(program=SimpleNamespace(constants={0: values}))
    for port, is_fit in enumerate((True, False, False, False, True)):
        if is_fit:
            value: Any = values[port]
            literal = expressions.literal(value[()], value.dtype)
            assert loop_writer._LoopText.operand(text, (0, port), None) == literal  # type: ignore[arg-type]
        else:
            with pytest.raises(loop_writer._Unfit):
                loop_writer._LoopText.operand(text, (0, port), None)  # type: ignore[arg-type]
    assert loop_writer._LoopText.operand(text, (4, 1), None) == name_of((4, 1))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("constants", "made_in", "is_fit"), [({}, False, True), ({3: ()}, False, False), ({}, True, False)]
)
def test_a_stack_comes_from_outside_of_a_loop(constants: dict[int, Any], made_in: bool, is_fit: bool) -> None:
    lines: list[str] = []
    text: Any = SimpleNamespace(
        reads=SimpleNamespace(resolve=lambda edge: (3, 0), is_made_in=lambda loop, edge: made_in),
        program=SimpleNamespace(constants=constants),
        _loop=None,
        stacks={},
        lines=SimpleNamespace(write=lines.append),
        type_of=lambda edge: np.dtype(np.float32),
        input=lambda node, position: "v5",
    )
    node: Any = SimpleNamespace(op="StackPushV2", index=9, inputs=[(8, 0)])
    if is_fit:
        loop_writer._LoopText._use_stack(text, node)
        assert (list(text.stacks), lines[0]) == ([(3, 0)], f"{name_of((9, 0))} = v5")
    else:
        with pytest.raises(loop_writer._Unfit):
            loop_writer._LoopText._use_stack(text, node)
