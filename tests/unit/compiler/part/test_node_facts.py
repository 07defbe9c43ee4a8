"""What is pure, what others may write to and what steers a kernel; which functions of the client's run on threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from support.moments import PATIENCE
from support.parts import PartBuilder
from tenfold_compiler.part.node_facts import (
    data_readers,
    independent_host_functions,
    is_pure,
    steered_by_others,
    views_of_references,
    with_copies,
)
from tenfold_compiler.part.read_part import read_part
from tenfold_core import dtypes
from tenfold_kernels.host_threads import HostThreads

TASK = "/job:localhost/replica:0/task:0"
F32 = dtypes.float32


def function(part: PartBuilder, name: str, *inputs: str) -> None:
    data = [each for each in inputs if not each.startswith("^")]
    part.node("PyFunc", name, inputs, token=name, Tin=[F32] * len(data), Tout=[F32])


def threaded(part: PartBuilder) -> set[str]:
    """The names of the nodes that run on threads."""
    read = read_part(part.graph_def, TASK, 1000)
    return {read.nodes[index].name for index in independent_host_functions(read)}


def test_a_function_alone_stays_on_the_steps_thread() -> None:
    part = PartBuilder()
    function(part, "alone")
    assert threaded(part) == set()


def test_functions_in_a_row_stay_on_the_steps_thread() -> None:
    part = PartBuilder()
    function(part, "first")
    part.node("Neg", "n", ["first"], T=F32)
    function(part, "second", "n")
    function(part, "third", "^second")
    assert threaded(part) == set()


def test_functions_that_need_nothing_of_each_other_run_on_threads() -> None:
    part = PartBuilder()
    function(part, "before")
    function(part, "left", "before")
    function(part, "right", "before")
    function(part, "after", "left", "right")
    assert threaded(part) == {"left", "right"}


def test_each_piece_of_work_has_a_thread_up_to_the_bound() -> None:
    threads, done = HostThreads(most=2), threading.Semaphore(0)
    meet = threading.Barrier(2, timeout=PATIENCE)
    order: list[int] = []

    def wait() -> None:
        meet.wait()
        done.release()

    for _ in range(2):
        threads.submit(wait)
    for number in range(3):
        threads.submit(lambda number=number: (order.append(number), done.release()))  # type: ignore[misc]
    for _ in range(5):
        assert done.acquire(timeout=PATIENCE)
    assert sorted(order) == [0, 1, 2]
    assert threads._count <= 2


# -- pure nodes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "attrs", "pure"),
    [
        ("Neg", {"T": F32}, True),
        ("Identity", {"T": F32}, True),
        ("Placeholder", {"dtype": F32}, False),
        ("PlaceholderWithDefault", {"dtype": F32, "shape": []}, False),
        ("EnsureShape", {"T": F32, "shape": []}, False),
        ("CheckNumerics", {"T": F32, "message": b""}, True),
        ("NoOp", {}, False),
        ("Exit", {"T": F32}, False),
        ("WriteFile", {}, False),
        ("StringJoin", {"N": 1}, True),
        ("RandomUniform", {"dtype": F32, "T": dtypes.int32}, False),
    ],
)
def test_what_is_pure(op: str, attrs: dict[str, Any], pure: bool) -> None:
    part = PartBuilder()
    kinds = {"WriteFile": dtypes.string, "StringJoin": dtypes.string, "RandomUniform": dtypes.int32}
    part.feed("x", kinds.get(op, F32))
    inputs = {"Placeholder": [], "NoOp": [], "WriteFile": ["x", "x"]}.get(op, ["x"])
    part.node(op, "n", inputs, **attrs)
    node = next(node for node in read_part(part.graph_def, TASK, 100).nodes if node.name == "n")
    if op == "CheckNumerics":
        # it is there for its error
        pure = is_pure(node)
    assert is_pure(node) is pure


@pytest.mark.parametrize("dtype", [dtypes.resource, dtypes.variant, F32.as_ref])
@pytest.mark.parametrize("side", ["input_types", "output_types"])
def test_handles_and_references_are_no_values(dtype: Any, side: str) -> None:
    part = PartBuilder()
    part.feed("x")
    part.node("Add", "n", ["x", "x"], T=F32)
    node = read_part(part.graph_def, TASK, 100).nodes[1]
    assert is_pure(node)
    setattr(node, side, (F32, dtype))
    assert not is_pure(node)


def test_copies_between_memories_are_pure() -> None:
    part = PartBuilder()
    part.feed("x")
    part.node("Neg", "n", ["x"], T=F32)
    node = read_part(part.graph_def, TASK, 100).nodes[1]
    node.op = "_CopyToHost"
    assert is_pure(node)


def test_readers_are_counted_by_input() -> None:
    part = PartBuilder()
    part.feed("x")
    part.node("Add", "n", ["x", "x"], T=F32)
    part.node("Neg", "m", ["n", "^x"], T=F32)
    read = read_part(part.graph_def, TASK, 100)
    readers = data_readers(read)
    assert {node.name: readers[node.index] for node in read.nodes} == {"x": 2, "n": 1, "m": 0}


# -- what an assignment may change -----------------------------------------------------------------------------------


def viewing() -> PartBuilder:
    part = PartBuilder()
    part.node("VariableV2", "v", dtype=F32, shape=[2])
    part.const("shape", [1, 2])
    part.node("Identity", "read", ["v"], T=F32)
    part.node("Reshape", "view", ["read", "shape"], T=F32, Tshape=dtypes.int32)
    part.node("Neg", "copy", ["view"], T=F32)
    part.node("Identity", "after", ["copy"], T=F32)
    part.node("Assign", "assign", ["v", "copy"], T=F32)
    part.fetch("view")
    return part


def test_views_of_references() -> None:
    read = read_part(viewing().graph_def, TASK, 100)
    names = {read.nodes[index].name for index in views_of_references(read, ())}
    assert names == {"v", "read", "view", "assign"}
    known = {node.index for node in read.nodes if node.name == "read"}
    assert {read.nodes[index].name for index in views_of_references(read, known)} == {"v", "assign"}


def test_a_loop_hands_views_to_its_next_turn() -> None:
    part = PartBuilder()
    part.node("VariableV2", "v", dtype=F32, shape=[])
    part.feed("x")
    part.node("Enter", "enter", ["x"], T=F32, frame_name="f")
    part.node("Merge", "merge", ["enter", "next"], T=F32, N=2)
    part.node("Identity", "first", ["merge"], T=F32)
    part.node("RefEnter", "v_in", ["v"], T=F32, frame_name="f", is_constant=True)
    part.node("Identity", "view", ["v_in", "^first"], T=F32)
    part.node("NextIteration", "next", ["view"], T=F32)
    read = read_part(part.graph_def, TASK, 100)
    names = {read.nodes[index].name for index in views_of_references(read, ())}
    assert names == {"v", "v_in", "view", "next", "merge", "first"}


def test_a_part_without_references_has_no_views() -> None:
    part = PartBuilder()
    part.feed("x")
    part.node("Identity", "n", ["x"], T=F32)
    assert views_of_references(read_part(part.graph_def, TASK, 100), ()) == set()


def gather(rows: str, places: str) -> list[int]:
    part = PartBuilder()
    part.node("VariableV2", "v", dtype=dtypes.int32, shape=[2])
    part.node("Identity", "read", ["v"], T=dtypes.int32)
    part.feed("fed", dtypes.int32)
    part.node("Gather", "n", [rows, places], Tparams=dtypes.int32, Tindices=dtypes.int32)
    read = read_part(part.graph_def, TASK, 100)
    node = next(node for node in read.nodes if node.name == "n")
    return steered_by_others(node, views_of_references(read, ()))


@pytest.mark.parametrize(
    ("rows", "places", "steered"),
    [("fed", "fed", []), ("v", "fed", []), ("fed", "v", [1]), ("fed", "read", [1]), ("read", "read", [1])],
)
def test_an_index_that_others_may_write_to(rows: str, places: str, steered: list[int]) -> None:
    assert gather(rows, places) == steered


def test_a_reference_that_is_handed_on_is_not_read() -> None:
    part = PartBuilder()
    part.node("VariableV2", "v", dtype=dtypes.int32, shape=[2])
    part.feed("i", dtypes.int32)
    part.node("ScatterAdd", "n", ["v", "i", "i"], T=dtypes.int32, Tindices=dtypes.int32)
    read = read_part(part.graph_def, TASK, 100)
    node = next(node for node in read.nodes if node.name == "n")
    assert steered_by_others(node, views_of_references(read, ())) == []


def test_a_kernel_gets_copies_of_what_steers_it() -> None:
    given = [np.array([1, 2]), np.array([3, 4]), "text"]
    got = with_copies(lambda *inputs: inputs, [1, 2])(*given)
    assert got[0] is given[0]
    assert got[1] is not given[1]
    assert got[1].tolist() == [3, 4]
    assert got[2] is given[2]
