"""A loop cut over two tasks, both parts run side by side: no sockets, no event loop.

The parts come from the graph passes; their executions hand each other tensors by rendezvous key, as workers would.
Each runs whole, node by node, and split into the loop and the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.fake_cluster import fake_device
from support.graph_text import parse_text
from support.programs import compile_program
from support.verify_graph import verify_parts
from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_compiler.graph.partition import partition
from tenfold_compiler.graph.place import place
from tenfold_compiler.graph.prune import prune
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_compiler.part import split_part
from tenfold_core import errors
from tenfold_kernels.resources.state import ResourceManager
from tenfold_services.worker.dynamic_executor import DynamicExecution
from tenfold_services.worker.execution import StepIO
from tenfold_services.worker.loaded_program import SplitExecution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_compiler.write.region_schedule import Wanted
    from tenfold_services.worker.execution import Execution

TASKS = ("/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0")
DEVICES = DeviceSet([fake_device(task, incarnation=i) for i, task in enumerate(TASKS, 5)], f"{TASKS[0]}/device:CPU:0")


@pytest.fixture(autouse=True, params=[False, True], ids=["whole", "split"])
def is_split(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param:
        monkeypatch.setattr(split_part, "_LEAST_NODES", -1_000)
    return bool(request.param)


def dynamic_executions(execution: Any) -> list[DynamicExecution]:
    """Those that run node by node."""
    if isinstance(execution, SplitExecution):
        return [each for half in execution._halves for each in dynamic_executions(half)]
    return [execution] if isinstance(execution, DynamicExecution) else []


class Cluster:
    """Two tasks that run one step of a graph."""

    def __init__(self, text: str, fetches: Sequence[str], feeds: dict[str, Any]) -> None:
        graph = place(
            RuntimeGraph.from_graph_def(parse_text(text)), DEVICES, devices_with_kernel=lambda op, attrs: ("CPU",)
        )
        client = DEVICES.device(DEVICES.client_device)
        graph = prune(graph, list(feeds), fetches, (), client_device=client)
        parts = partition(graph, incarnation=DEVICES.incarnation).parts
        verify_parts(parts)
        #: key → (value, is_dead), sent and not yet received.
        self.sent: dict[str, tuple[Any, bool]] = {}
        self.keys: list[str] = []
        self.waiting: list[tuple[Execution, Wanted]] = []
        self.executions: list[Execution] = []
        for task, part in parts.items():
            program = compile_program(part, task, ResourceManager())
            fed = {feed.key: np.asarray(feeds[feed.key.split(";")[3]]) for feed in program.compiled.transfers.feeds}
            execution = program.start(StepIO(fed, self._send))
            assert dynamic_executions(execution)
            self.executions.append(execution)

    def _send(self, key: str, value: Any, is_dead: bool) -> None:
        assert key not in self.keys, f"{key} is sent twice"
        self.keys.append(key)
        self.sent[key] = (value, is_dead)

    def run(self) -> dict[str, Any]:
        """Runs until nothing moves; checks that nothing is left over."""
        moved = True
        while moved:
            moved = False
            for execution in self.executions:
                while execution.ready:
                    execution.advance()
                    moved = True
                self.waiting.extend((execution, wanted) for wanted in execution.take_wanted())
            for pair in list(self.waiting):
                execution, wanted = pair
                if wanted.key in self.sent:
                    execution.arrived(wanted.token, *self.sent.pop(wanted.key))
                    self.waiting.remove(pair)
                    moved = True
        assert not self.waiting, [wanted.key for _, wanted in self.waiting]
        assert not self.sent, list(self.sent)
        values: dict[str, Any] = {}
        for execution in self.executions:
            assert execution.done
            for dynamic in dynamic_executions(execution):
                assert not dynamic._propagator._frames, "a frame is left over"
            values.update((key.split(";")[3], value) for key, value in execution.fetched().items())
        return values


LOOP = """
    n = Placeholder() dtype=int32
    start = Const() dtype=int32 value=1
    zero = Const() dtype=int32 value=0
    i_enter = Enter(zero) frame_name='loop' parallel_iterations=PARALLEL
    enter = Enter(start) frame_name='loop' parallel_iterations=PARALLEL
    n_enter = Enter(n) frame_name='loop' is_constant=true parallel_iterations=PARALLEL
    i_merge = Merge(i_enter, i_next) T=int32 N=2
    merge = Merge(enter, next) T=int32 N=2
    less = Less(i_merge, n_enter)
    cond = LoopCond(less)
    i_switch = Switch(i_merge, cond)
    switch = Switch(merge, cond)
    one = Const(^i_switch) dtype=int32 value=1
    add = Add(i_switch:1, one)
    i_next = NextIteration(add)
    body = Add(switch:1, switch:1) @/job:ps/task:0
    next = NextIteration(body)
    exit = Exit(switch)
"""


@pytest.mark.parametrize("parallel", [1, 2, 10])
@pytest.mark.parametrize("count", [0, 1, 20])
def test_the_body_runs_on_the_other_task(count: int, parallel: int, is_split: bool) -> None:
    cluster = Cluster(LOOP.replace("PARALLEL", str(parallel)), ["exit:0"], {"n:0": np.int32(count)})

    assert any(isinstance(execution, SplitExecution) for execution in cluster.executions) == is_split
    assert cluster.run()["exit:0"] == 2**count
    # the condition, the variable and the result of the body, each dead in the last iteration
    assert len(cluster.keys) == 3 * (count + 1)
    assert {int(key.rpartition(":")[2]) for key in cluster.keys} == set(range(count + 1))


NESTED = """
    zero = Const() dtype=int32 value=0
    o_enter = Enter(zero) frame_name='outer'
    t_enter = Enter(zero) frame_name='outer'
    o_merge = Merge(o_enter, o_next) T=int32 N=2
    t_merge = Merge(t_enter, t_next) T=int32 N=2
    limit = Const(^o_merge) dtype=int32 value=5
    o_less = Less(o_merge, limit)
    o_cond = LoopCond(o_less)
    o_switch = Switch(o_merge, o_cond)
    t_switch = Switch(t_merge, o_cond)
    outer_i = Identity(o_switch:1)
    one = Const(^outer_i) dtype=int32 value=1
    o_add = Add(outer_i, one)
    o_next = NextIteration(o_add)

    none = Const(^outer_i) dtype=int32 value=0
    i_enter = Enter(none) frame_name='inner'
    u_enter = Enter(t_switch:1) frame_name='inner'
    bound = Enter(outer_i) frame_name='inner' is_constant=true
    i_merge = Merge(i_enter, i_next) T=int32 N=2
    u_merge = Merge(u_enter, u_next) T=int32 N=2
    i_less = Less(i_merge, bound)
    i_cond = LoopCond(i_less)
    i_switch = Switch(i_merge, i_cond)
    u_switch = Switch(u_merge, i_cond)
    inner_i = Identity(i_switch:1)
    i_one = Const(^inner_i) dtype=int32 value=1
    i_add = Add(inner_i, i_one)
    i_next = NextIteration(i_add)
    sum = Add(u_switch:1, inner_i) @/job:ps/task:0
    u_next = NextIteration(sum)
    u_exit = Exit(u_switch)
    t_next = NextIteration(u_exit)
    t_exit = Exit(t_switch)
"""


def test_an_inner_loop_over_two_tasks() -> None:
    """Also where the outer loop is over: the inner one is dead then, here as there."""
    cluster = Cluster(NESTED, ["t_exit:0"], {})

    assert cluster.run()["t_exit:0"] == sum(j for i in range(5) for j in range(i))


@pytest.mark.parametrize(("taken", "expected"), [(True, 8), (False, 3)])
def test_a_loop_over_two_tasks_in_a_branch(taken: bool, expected: int) -> None:
    text = """
    pred = Placeholder() dtype=bool
    three = Const() dtype=int32 value=3
    choice = Switch(three, pred)
    pivot = Identity(choice:1)
    n = Const(^pivot) dtype=int32 value=3
    start = Const(^pivot) dtype=int32 value=1
    zero = Const(^pivot) dtype=int32 value=0
    result = Merge(exit, choice)
    """
    loop = LOOP.replace("PARALLEL", "10").splitlines()[4:]
    cluster = Cluster(
        "\n".join([*text.splitlines()[:-2], *loop, text.splitlines()[-2]]), ["result:0"], {"pred:0": taken}
    )

    assert cluster.run()["result:0"] == expected


def test_an_error_in_the_body_names_its_node() -> None:
    text = LOOP.replace("PARALLEL", "10").replace("Add(switch:1, switch:1)", "FloorMod(switch:1, i_switch:1)")
    cluster = Cluster(text, ["exit:0"], {"n:0": np.int32(3)})

    with pytest.raises(errors.InvalidArgumentError, match=r"\{\{node body\}\}"):
        cluster.run()
