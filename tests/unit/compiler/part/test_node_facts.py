"""Functions of the client's program: which ones run on threads of their own, and on how many."""

from __future__ import annotations

import threading

from support.moments import PATIENCE
from support.parts import PartBuilder
from tenfold_compiler.part.node_facts import independent_host_functions
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
