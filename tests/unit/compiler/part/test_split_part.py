"""A part of which one piece cannot be written as structured code: the rest is, and every result stays the same."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.parts import PartBuilder
from support.programs import compile_program
from tenfold_compiler import build
from tenfold_compiler.part import split_part
from tenfold_compiler.part.loop_tree import Unstructured
from tenfold_compiler.part.read_part import read_part
from tenfold_compiler.part.structured_flow import read_control_flow
from tenfold_core import dtypes, errors
from tenfold_core.opdefs.runtime_ops import CONSTANT_OPS
from tenfold_kernels.resources.state import ResourceManager
from tenfold_services.worker import loaded_program
from tenfold_services.worker.dynamic_executor import DynamicExecution
from tenfold_services.worker.execution import StepIO
from tenfold_services.worker.loaded_program import SplitExecution
from tenfold_services.worker.static_executor import StaticExecution

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tenfold_compiler.part.part_graph import PartGraph
    from tenfold_compiler.part.structured_flow import ControlFlow
    from tenfold_services.worker.loaded_program import LoadedProgram

TASK = "/job:localhost/replica:0/task:0"
F32, I32 = dtypes.float32, dtypes.int32


@pytest.fixture
def always_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_part, "_LEAST_NODES", -1_000)


@pytest.fixture
def split_programs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The programs whose steps began in halves."""
    found: list[Any] = []

    class Noted(SplitExecution):
        def __init__(self, halves: Any, keys: Any, io: Any) -> None:
            found.append([start.__self__.compiled for start in halves])
            super().__init__(halves, keys, io)

    monkeypatch.setattr(loaded_program, "SplitExecution", Noted)
    return found


# -- which piece -----------------------------------------------------------------------------------------------------


def test_a_loop_that_waits_is_a_piece_of_its_own(split_programs: list[Any]) -> None:
    """Layers before and after a loop that takes from a queue are generated code."""
    with tf.Graph().as_default(), tf.Session() as session:
        queue = tf.FIFOQueue(10, tf.float32, shapes=[[]])
        x = tf.ones([4, 4])
        for _ in range(12):
            x = tf.tanh(tf.matmul(x, x) * 0.1 + 0.5)
        _, total = tf.while_loop(
            lambda i, total: i < 3, lambda i, total: (i + 1, total + queue.dequeue()), [0, tf.reduce_sum(x)]
        )
        y = total * x
        for _ in range(12):
            y = tf.tanh(y * 0.5) + 1.0
        session.run(queue.enqueue_many([[1.0, 10.0, 100.0]]))
        before, found, after = session.run([tf.reduce_sum(x), total, y])

    assert found == before + 111
    assert np.isfinite(after).all()
    rest, piece = split_programs[-1]
    assert rest.generated is not None
    assert piece.generated is None
    assert any(node.op == "QueueDequeueV2" for node in piece.part.nodes)
    ops = [node.op for node in rest.part.nodes]
    assert ops.count("MatMul") == 12
    assert not {"Enter", "Exit", "QueueDequeueV2"}.intersection(ops)


def test_too_small_a_rest_stays_with_the_piece(split_programs: list[Any]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        queue = tf.FIFOQueue(10, tf.float32, shapes=[[]])
        session.run(queue.enqueue_many([[1.0, 10.0]]))
        _, total = tf.while_loop(lambda i, t: i < 2, lambda i, t: (i + 1, t + queue.dequeue()), [0, 0.0])
        assert session.run(total) == 11
    assert not split_programs


# -- any piece -------------------------------------------------------------------------------------------------------


def branches_and_loops() -> tuple[dict[str, Any], Any]:
    """(fetches, feeds for three steps) of a graph with conditionals, nested loops, gradients and updates."""
    x = tf.placeholder(tf.float32, [3], name="x")
    w = tf.Variable(tf.constant([1.0, 2.0, 3.0]), use_resource=False)
    v = tf.Variable(tf.constant([0.5, 0.5, 0.5]), use_resource=True)
    step = tf.Variable(0, use_resource=False, trainable=False)

    def turn(i: Any, total: Any) -> Any:
        _, inner = tf.while_loop(lambda j, t: j < i, lambda j, t: (j + 1, t * v), [0, total])
        return i + 1, tf.cond(tf.reduce_sum(inner) > 1.0, lambda: inner - w, lambda: inner + w)

    _, looped = tf.while_loop(lambda i, total: i < 3, turn, [0, x * w])
    chosen = tf.cond(x[0] > 0, lambda: looped * 2.0, lambda: x - v)
    loss = tf.reduce_sum(tf.square(chosen) * 0.01) + tf.reduce_sum(w)
    gradients = tf.gradients(loss, [w, v])
    with tf.control_dependencies([loss]):
        count = tf.assign_add(step, 1)
    with tf.control_dependencies([*gradients, count]):
        updates = [w.assign_sub(0.1 * gradients[0]), v.assign_sub(0.1 * gradients[1])]
    with tf.control_dependencies(updates):
        after = tf.identity(w) + v.read_value()
    fetches = {"loss": loss, "chosen": chosen, "after": after, "step": count, "gradients": gradients}
    return fetches, [{x: np.array(each, np.float32)} for each in ([1, 2, 3], [-1, 2, 0.5], [0.5, -4, 3])]


def results_of_steps() -> list[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        fetches, feeds = branches_and_loops()
        session.run(tf.global_variables_initializer())
        return [session.run(fetches, feed) for feed in feeds]


@pytest.mark.parametrize("seed", range(12))
def test_a_step_is_the_same_wherever_it_is_cut(
    seed: int, monkeypatch: pytest.MonkeyPatch, split_programs: list[Any]
) -> None:
    expected = results_of_steps()
    choose = random.Random(seed)
    asked: Callable[..., ControlFlow] = read_control_flow

    def refuse(part: PartGraph, constants: Collection[int]) -> ControlFlow:
        if any("cut " in str(node.attrs.get("tensor_name", "")) for node in part.nodes):
            return asked(part, constants)
        raise Unstructured("by chance", choose.sample(part.nodes, choose.randint(1, max(1, len(part.nodes) // 4))))

    monkeypatch.setattr(split_part, "_LEAST_NODES", -1_000_000)
    monkeypatch.setattr(build, "read_control_flow", refuse)
    found = results_of_steps()

    assert split_programs
    for one, other in zip(found, expected, strict=True):
        for name, value in one.items():
            np.testing.assert_allclose(value, other[name], rtol=1e-6, err_msg=name)


# -- how it runs -----------------------------------------------------------------------------------------------------


def waiting_part(dead: bool) -> tuple[PartBuilder, str]:
    """A loop of three turns that receives in each, of which one input may be dead; what comes out of it is negated."""
    part = PartBuilder()
    part.const("pred", not dead)
    part.const("zero", 0, I32)
    part.const("start", 1.0)
    part.node("Switch", "choice", ["start", "pred"], T=F32)
    frame: dict[str, Any] = {"frame_name": "f", "parallel_iterations": 1, "is_constant": False}
    part.node("Enter", "i_enter", ["zero"], T=I32, **frame)
    part.node("Enter", "t_enter", ["choice:1"], T=F32, **frame)
    part.node("Merge", "i", ["i_enter", "i_next"], N=2, T=I32)
    part.node("Merge", "t", ["t_enter", "t_next"], N=2, T=F32)
    part.const("three", 3, I32, ["^i"])
    part.node("Less", "less", ["i", "three"], T=I32)
    part.node("LoopCond", "goes_on", ["less"])
    part.node("Switch", "i_switch", ["i", "goes_on"], T=I32)
    part.node("Switch", "t_switch", ["t", "goes_on"], T=F32)
    part.const("one", 1, I32, ["^i_switch"])
    part.node("AddV2", "i_more", ["i_switch:1", "one"], T=I32)
    part.recv("come", F32, "/job:ps/replica:0/task:0/device:CPU:0", 7, ["^i_more"])
    part.node("AddV2", "t_more", ["t_switch:1", "come"], T=F32)
    part.node("NextIteration", "i_next", ["i_more"], T=I32)
    part.node("NextIteration", "t_next", ["t_more"], T=F32)
    part.node("Exit", "t_exit", ["t_switch"], T=F32)
    part.node("Neg", "minus", ["t_exit"], T=F32)
    return part, part.fetch("minus")


def started(program: LoadedProgram, sent: list[Any]) -> Any:
    execution = program.start(StepIO({}, lambda key, value, is_dead: sent.append((key, value, is_dead))))
    assert isinstance(execution, SplitExecution)
    rest, piece = execution._halves
    assert isinstance(rest, StaticExecution)
    assert isinstance(piece, DynamicExecution)
    return execution


@pytest.mark.usefixtures("always_split")
def test_what_comes_from_elsewhere_goes_to_the_half_that_wants_it() -> None:
    part, fetch = waiting_part(dead=False)
    execution = started(compile_program(part.graph_def, TASK, ResourceManager()), [])

    keys = []
    # a Recv runs though it is dead, as it is in the last turn: its sender sends that
    for value in (10.0, 100.0, 1000.0, None):
        while execution.ready:
            execution.advance()
        (wanted,) = execution.take_wanted()
        assert not execution.done
        keys.append(wanted.key)
        execution.arrived(wanted.token, np.array(value or 0, np.float32), value is None)
    while execution.ready:
        execution.advance()

    assert len(set(keys)) == 4
    assert execution.done
    assert not execution.take_wanted()
    assert execution.fetched()[fetch] == -1111


@pytest.mark.usefixtures("always_split")
def test_a_half_that_gives_no_result_leaves_the_other_dead_not_waiting() -> None:
    part, _ = waiting_part(dead=True)
    execution = started(compile_program(part.graph_def, TASK, ResourceManager()), [])

    def run() -> None:
        for _ in range(100):
            for wanted in execution.take_wanted():
                execution.arrived(wanted.token, np.array(1.0, np.float32), False)
            if execution.ready:
                execution.advance()
            elif execution.done:
                execution.fetched()

    with pytest.raises(errors.InvalidArgumentError, match="was not valid"):
        run()
    assert not execution.take_wanted()


def halves(part: PartBuilder, *piece: str) -> tuple[set[str], set[str]] | None:
    """The names of the nodes of each half, without Sends and Recvs."""
    whole = read_part(part.graph_def, TASK, 1000)
    at = {node.name: node for node in whole.nodes}
    constants = {node.index for node in whole.nodes if node.op in CONSTANT_OPS}
    found = split_part.split_part(whole, constants, Unstructured("so", [at[name] for name in piece]))
    if found is None:
        return None
    rest, cut = found
    assert rest.keys.isdisjoint(cut.keys)
    one, other = ({whole.nodes[old].name for old in half.origin.values()} for half in found)
    return one, other


@pytest.mark.usefixtures("always_split")
def test_who_reads_a_reference_of_the_piece_belongs_to_it_however_many_steps_away() -> None:
    """A chain that leads against the order of the nodes: each look at all of them finds one more."""
    part = PartBuilder()
    part.node("VariableV2", "v", dtype=F32, shape=[])
    part.const("one", 1.0)
    part.node("AssignAdd", "a", ["v", "one"], T=F32)
    part.node("Identity", "of_a", ["a"], T=F32)
    part.node("AssignAdd", "b", ["a", "one"], T=F32)
    part.node("Identity", "of_b", ["b"], T=F32)
    part.node("AssignAdd", "c", ["b", "one"], T=F32)
    part.node("Neg", "of_v", ["v"], T=F32)
    part.node("Neg", "beyond", ["of_a"], T=F32)
    for name in ("of_b", "of_v", "beyond", "c"):
        part.fetch(name)

    found = halves(part, "c")

    assert found is not None
    rest, piece = found
    assert {"a", "of_a", "b", "of_b", "c", "v", "one"} <= piece
    assert {"of_v", "beyond", "v"} <= rest
    assert rest & piece == {"v"}


@pytest.mark.usefixtures("always_split")
def test_a_part_without_references_grows_by_none() -> None:
    part = PartBuilder()
    part.feed("x")
    for name, source in (("a", "x"), ("b", "a"), ("c", "b")):
        part.node("Neg", name, [source], T=F32)
    part.fetch("c")

    found = halves(part, "b")

    assert found is not None
    assert found[1] == {"b"}
    assert {"x", "a", "c"} <= found[0]


@pytest.mark.parametrize(
    ("inputs", "others", "is_split"), [(1, 13, False), (1, 14, True), (2, 15, False), (2, 16, True)]
)
def test_the_rest_must_be_worth_it(inputs: int, others: int, is_split: bool) -> None:
    """Ten nodes and two for each edge that is cut: those into the piece, and one out of it."""
    part = PartBuilder()
    names = ["x", "y"][:inputs]
    for name in names:
        part.feed(name)
    part.node("AddN", "cut", names, T=F32, N=inputs)
    source = "cut"
    for number in range(others - inputs - 1):
        part.node("Neg", f"n{number}", [source], T=F32)
        source = f"n{number}"
    part.fetch(source)

    found = halves(part, "cut")

    assert (found is not None) is is_split
    if found is not None:
        assert (len(found[0]), found[1]) == (others, {"cut"})


def test_nothing_new_to_cut_out_leaves_the_part_whole() -> None:
    part = PartBuilder()
    part.feed("x")
    part.fetch("x")

    assert halves(part) is None
