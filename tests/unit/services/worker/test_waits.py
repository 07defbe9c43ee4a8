"""Which nodes give to a resource and which take from it, by the names that resources have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tenfold_kernels.resources.mutexes import Mutex
from tenfold_kernels.resources.waiting import Waiting
from tenfold_services.worker.waits import StepRun, resource_uses, step_waits

TASK = "/job:ps/replica:0/task:0"


def program(*nodes: Any) -> Any:
    return SimpleNamespace(policy=object(), compiled=SimpleNamespace(part=SimpleNamespace(nodes=nodes)))


def node(op: str, name: str, *inputs: int, shared_name: bytes | str = b"") -> Any:
    return SimpleNamespace(op=op, name=name, inputs=[(each, 0) for each in inputs], attrs={"shared_name": shared_name})


@pytest.mark.parametrize(
    ("op", "resource", "gives"),
    [
        ("QueueEnqueueV2", "q", True),
        ("QueueEnqueueManyV2", "q", True),
        ("QueueDequeueV2", "q", False),
        ("QueueDequeueUpToV2", "q", False),
        ("AccumulatorApplyGradient", "q", True),
        ("SparseAccumulatorTakeGradient", "q", False),
        ("BarrierInsertMany", "q_queue", True),
        ("BarrierTakeMany", "q_queue", False),
        ("QueueSizeV2", "q", None),
        ("QueueCloseV2", "q", None),
        ("FIFOQueueV2", "q", None),
        ("MatMul", "q", None),
    ],
)
def test_what_an_op_does_to_its_resource(op: str, resource: str, gives: bool | None) -> None:
    made = program(node("FIFOQueueV2", "holder", shared_name=b"q"), node(op, "acts", 0))
    found = resource_uses({resource}, [("s", TASK, made)], [])
    expected = [] if gives is None else [("acts", gives, TASK)]
    assert [(each.node, each.gives, each.master) for each in found] == expected


def test_a_resource_without_a_shared_name_has_its_node_s() -> None:
    made = program(node("FIFOQueueV2", "queue"), node("QueueEnqueueV2", "put", 0))
    assert [each.node for each in resource_uses({"queue"}, [("s", TASK, made)], [])] == ["put"]
    assert resource_uses({"other"}, [("s", TASK, made)], []) == []


def test_a_reader_takes_from_its_second_input_and_an_area_is_named_by_its_ops() -> None:
    made = program(
        node("TextLineReaderV2", "reader"),
        node("FIFOQueueV2", "files"),
        node("ReaderReadV2", "read", 0, 1),
        node("Stage", "put", 0, shared_name="area"),
        node("OrderedMapUnstage", "get", 0, shared_name="area"),
    )
    wanted = {"files", "area", "ordered map area"}
    found = {each.node: (each.resource, each.gives) for each in resource_uses(wanted, [("s", TASK, made)], [])}
    assert found == {"read": ("files", False), "put": ("area", True), "get": ("ordered map area", False)}


class Run:
    """A PartRun whose node waits for a lock, or that holds it."""

    ended = False
    policy = None

    def __init__(self, waiting: Any = None, held: Any = None) -> None:
        self._waiting, self._held = waiting, held

    def waitings(self) -> dict[Any, Any]:
        return {} if self._waiting is None else {self._waiting: SimpleNamespace(name="wants", op="MutexLock")}

    def missing(self) -> list[str]:
        return []

    def holds(self, waiting: int) -> bool:
        return self._held is not None and id(self._held) == waiting


def test_a_lock_is_held_by_the_step_that_got_it() -> None:
    mutex = Mutex("m")
    held, wanted = mutex.ask(), mutex.ask()
    runs: list[Any] = [StepRun(TASK, Run(waiting=wanted), 1, "s", TASK), StepRun(TASK, Run(held=held), 2, "s", TASK)]  # type: ignore[arg-type]

    running, (wait,) = step_waits(runs)

    assert (wait.kind, wait.resource, wait.step, wait.holder) == ("lock", "m", 1, 2)
    assert [(each.step, each.computes) for each in running] == [(1, False), (2, True)]


def test_a_kernel_without_a_lack_computes_and_a_part_is_waited_for() -> None:
    waiting = Waiting()
    runs: list[Any] = [
        StepRun(TASK, Run(waiting=waiting), 1, "s", TASK),  # type: ignore[arg-type]
        StepRun(TASK, None, 2, "s", TASK, parts=("/job:worker/task:0",)),
    ]
    running, waits = step_waits(runs)
    assert [(each.kind, each.node, each.sender) for each in waits] == [
        ("kernel", "wants", ""),
        ("part", "", "/job:worker/task:0"),
    ]
    assert [each.computes for each in running] == [True, False]
