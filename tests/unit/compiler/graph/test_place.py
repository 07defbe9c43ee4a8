"""Where nodes go: on fake devices, with kernels as each test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from support.fake_cluster import fake_device
from support.graph_text import parse_text
from support.verify_graph import verify
from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_compiler.graph.place import place
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_core import errors

PS0, PS1, W0, W1 = "/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0", "/job:worker/task:1"
#: The master is worker 0; only worker 1 has a GPU.
CLUSTER = [fake_device(PS0), fake_device(PS1), fake_device(W0), fake_device(W1), fake_device(W1, "GPU")]

Kernels = Callable[[str, Mapping[str, Any]], tuple[str, ...]]


def cpu_only(op: str, attrs: Mapping[str, Any]) -> tuple[str, ...]:
    return ("CPU",)


def gpu_for_matmul(op: str, attrs: Mapping[str, Any]) -> tuple[str, ...]:
    return ("GPU", "CPU") if op in ("MatMul", "Const", "Placeholder") else ("CPU",)


def devices(excluded: tuple[str, ...] = ()) -> DeviceSet:
    return DeviceSet(CLUSTER, full(W0), excluded)


def full(task: str, kind: str = "CPU:0") -> str:
    return f"{task.replace('/task:', '/replica:0/task:')}/device:{kind}"


def placed(
    text: str, *, kernels: Kernels = cpu_only, soft: bool = False, on: DeviceSet | None = None
) -> dict[str, str]:
    graph = RuntimeGraph.from_graph_def(parse_text(text))
    result = verify(place(graph, on or devices(), devices_with_kernel=kernels, soft=soft), after="place")
    return {name: node.device for name, node in result.nodes.items()}


def refusal(text: str, **kwargs: Any) -> errors.OpError:
    with pytest.raises(errors.InvalidArgumentError) as caught:
        placed(text, **kwargs)
    return caught.value


X = "x = Placeholder() dtype=float"


def test_nodes_that_ask_for_nothing_go_to_the_masters_task() -> None:
    assert placed(f"{X}\ny = Neg(x)") == {"x": full(W0), "y": full(W0)}


def test_a_full_request_is_met() -> None:
    assert placed(f"{X} @/job:ps/replica:0/task:1/device:CPU:0")["x"] == full(PS1)


@pytest.mark.parametrize(
    ("spec", "task"), [("/job:ps", PS0), ("/job:ps/task:1", PS1), ("/task:1", PS1), ("/cpu:0", W0), ("/job:worker", W0)]
)
def test_a_partial_request_takes_the_best_device_within(spec: str, task: str) -> None:
    assert placed(f"y = NoOp() @{spec}")["y"] == full(task)


@pytest.mark.parametrize("spec", ["", " @/cpu:0"])
def test_what_sessions_share_goes_where_every_master_looks_for_it(spec: str) -> None:
    text = f"w = VariableV2() dtype=float shape=[2]{spec}\nread = Identity(w) colocate=w\ny = Neg(read)\nz = Neg(y)"

    for master in (W0, W1):
        found = placed(text, on=DeviceSet(CLUSTER, full(master)))
        assert found == {"w": full(PS0), "read": full(PS0), "y": full(master), "z": full(master)}


def test_what_sessions_share_goes_to_the_better_device_of_any_task() -> None:
    found = placed("w = VarHandleOp() dtype=float shape=[2]", kernels=lambda op, attrs: ("GPU", "CPU"))

    assert found["w"] == full(W1, "GPU:0")


def test_filters_leave_what_sessions_share_among_the_tasks_that_pass() -> None:
    on = DeviceSet([fake_device(W0), fake_device(W1)], full(W1), (PS0, PS1))

    assert placed("q = FIFOQueueV2() component_types=[float] shared_name='q'", on=on)["q"] == full(W0)


def test_a_queue_without_a_name_is_the_sessions_own() -> None:
    assert placed("q = FIFOQueueV2() component_types=[float]\nn = QueueSizeV2(q)")["q"] == full(W0)


def test_a_table_that_a_dataset_captures_stays_with_the_iterator() -> None:
    found = placed(
        "t = HashTableV2() key_dtype=string value_dtype=int64 shared_name='t'\n"
        "m = TensorDataset(t) Toutput_types=[resource] output_shapes=[None]\n"
        "n = LookupTableSizeV2(t)"
    )

    assert set(found.values()) == {full(W0)}


def test_a_better_device_elsewhere_does_not_draw_nodes_away_from_the_master() -> None:
    assert placed(f"{X}\ny = MatMul(x, x)", kernels=gpu_for_matmul)["y"] == full(W0)


def test_within_the_task_asked_for_the_better_device_wins() -> None:
    assert placed(f"{X}\ny = MatMul(x, x) @/job:worker/task:1", kernels=gpu_for_matmul)["y"] == full(W1, "GPU:0")


def test_a_device_type_alone_finds_the_task_that_has_it() -> None:
    assert placed(f"{X}\ny = MatMul(x, x) @/gpu:0", kernels=gpu_for_matmul)["y"] == full(W1, "GPU:0")


@pytest.mark.parametrize("job", ["local", "localhost"])
def test_local_and_localhost_are_one_job(job: str) -> None:
    for own in ("localhost", "local"):
        alone = DeviceSet([fake_device(f"/job:{own}/task:0")], full(f"/job:{own}/task:0"))
        assert placed(f"a = NoOp() @/job:{job}/task:0", on=alone)["a"] == full(f"/job:{own}/task:0")


def test_a_job_named_local_is_itself_where_both_exist() -> None:
    both = DeviceSet(
        [fake_device("/job:local/task:0"), fake_device("/job:localhost/task:0")], full("/job:localhost/task:0")
    )

    assert placed("a = NoOp() @/job:local/task:0", on=both)["a"] == full("/job:local/task:0")


# -- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            "/job:ps/task:0/device:GPU:0",
            "Cannot place 'train/w' on /job:ps/task:0/device:GPU:0: that task has CPU:0 only.",
        ),
        ("/job:ps/device:GPU:0", "on /job:ps/device:GPU:0: the tasks of job 'ps' have CPU:0 only."),
        ("/device:TPU:0", "on /device:TPU:0: the tasks of this cluster have CPU:0, GPU:0 only."),
        ("/cpu:7", "on /device:CPU:7: the tasks of this cluster have CPU:0, GPU:0 only."),
        ("/job:chief", "on /job:chief: there is no job 'chief'; the cluster has ps (tasks 0-1), worker (tasks 0-1)."),
        ("/job:ps/task:2", "on /job:ps/task:2: job 'ps' has tasks 0-1 only."),
        ("/task:9", "on /task:9: no job has a task 9; the cluster has ps (tasks 0-1), worker (tasks 0-1)."),
        ("/job:ps/replica:1/task:0", "there is no replica 1"),
    ],
)
def test_a_request_that_cannot_be_met_says_what_there_is(spec: str, text: str) -> None:
    error = refusal(f"train/w = NoOp() @{spec}")

    assert text in error.message
    assert error.node_name == "train/w"


def test_a_task_left_out_by_device_filters_is_said_to_be() -> None:
    only = DeviceSet([fake_device(W0)], full(W0), ["/job:ps/replica:0/task:0"])

    error = refusal("w = NoOp() @/job:ps/task:0", on=only)

    assert "/job:ps/replica:0/task:0 is excluded by the session's device_filters" in error.message


def test_a_kernel_that_does_not_exist_for_the_device_is_named() -> None:
    error = refusal(f"{X}\ny = Neg(x) @/job:worker/task:1/gpu:0", kernels=gpu_for_matmul)

    assert "Cannot place 'y' on /job:worker/task:1/device:GPU:0: Neg ('y') has kernels for CPU only." in error.message


def test_an_op_without_any_known_kernel_is_placed_all_the_same() -> None:
    """Another task, e.g. a TensorFlow server, may have it; ours says so when the part is registered."""
    assert placed("y = NoOp() @/job:ps", kernels=lambda op, attrs: ())["y"] == full(PS0)


# -- soft placement --------------------------------------------------------------------------------------------------


def test_soft_placement_gives_up_the_device_and_keeps_the_task() -> None:
    assert placed("w = NoOp() @/job:ps/task:1/gpu:0", soft=True)["w"] == full(PS1)
    assert placed("w = NoOp() @/gpu:3", soft=True)["w"] == full(W0)


def test_soft_placement_does_not_invent_a_task() -> None:
    assert "job 'ps' has tasks 0-1 only" in refusal("w = NoOp() @/job:ps/task:5/gpu:0", soft=True).message


# -- colocation ------------------------------------------------------------------------------------------------------


def test_a_colocated_node_follows() -> None:
    result = placed(f"w = VariableV2() dtype=float shape=[] @{PS1}\nr = Identity(w) colocate=w")

    assert result["r"] == full(PS1)


def test_nodes_of_one_class_share_a_device_though_it_names_no_node() -> None:
    result = placed(f"a = NoOp() colocate=gone\nb = NoOp() colocate=gone @{PS1}")

    assert result == {"a": full(PS1), "b": full(PS1)}


def test_colocation_chains_meet() -> None:
    result = placed(f"a = NoOp()\nb = NoOp() colocate=a\nc = NoOp() colocate=b\nd = NoOp() colocate=c @{PS0}")

    assert set(result.values()) == {full(PS0)}


def test_two_partial_requests_add_up() -> None:
    result = placed("a = NoOp() @/job:ps\nb = NoOp() colocate=a @/task:1")

    assert set(result.values()) == {full(PS1)}


def test_a_colocation_conflict_names_both_nodes_and_both_devices() -> None:
    error = refusal(f"a = NoOp() @{PS0}\nb = NoOp() colocate=a @{PS1}")

    assert "Cannot colocate nodes 'b' and 'a': 'b' asks for /job:ps/task:1 and 'a'" in error.message
    assert "/job:ps/task:0" in error.message
    assert error.node_name == "b"


def test_colocated_nodes_of_different_types_conflict_unless_soft() -> None:
    text = "a = NoOp() @/cpu:0\nb = NoOp() colocate=a @/gpu:0"

    assert "'b' asks for /device:GPU:0" in refusal(text).message
    assert set(placed(text, soft=True).values()) == {full(W0)}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (PS0, PS1, (PS0, PS1)),
        (PS0, W0, (PS0, W0)),
        ("/job:ps", W0, (PS0, W0)),
        ("/job:ps", PS1, (PS1, PS1)),
        ("/cpu:0", PS1, (PS1, PS1)),
    ],
)
@pytest.mark.parametrize("is_last", [False, True])
def test_with_soft_placement_colocated_nodes_that_ask_for_other_tasks_stay_there(
    first: str, second: str, expected: tuple[str, str], is_last: bool
) -> None:
    lines = [f"a = NoOp() @{first}", f"b = NoOp() colocate=a @{second}", "c = NoOp() colocate=a"]
    text = "\n".join(reversed(lines) if is_last else lines)

    result = placed(text, soft=True)

    assert (result["a"], result["b"], result["c"]) == (full(expected[0]), full(expected[1]), full(expected[0]))


def test_with_soft_placement_a_node_joins_the_first_group_that_it_can() -> None:
    text = f"a = NoOp() @{PS0}\nb = NoOp() @{PS1}\nc = NoOp() colocate=a colocate=b\nd = NoOp() colocate=b @/job:ps"

    result = placed(text, soft=True)

    assert (result["c"], result["d"]) == (full(PS0), full(PS1))
    assert "Cannot colocate" in refusal(text).message


def test_with_soft_placement_a_reference_is_followed_all_the_same() -> None:
    text = f"""
        w = VariableV2() dtype=float shape=[] @{PS1}
        v = Const() dtype=float value=1.0
        set = Assign(w, v) colocate=w @{W0}
        z = NoOp() colocate=set @{W0}
    """

    result = placed(text, soft=True)

    assert (result["set"], result["z"]) == (full(PS1), full(W0))


def test_who_writes_through_a_reference_is_with_the_variable_whatever_it_asks_for() -> None:
    result = placed(
        f"w = VariableV2() dtype=float shape=[] @{PS1}\nv = Const() dtype=float value=1.0\nset = Assign(w, v) @{W0}"
    )

    assert result["set"] == full(PS1)


def test_who_uses_a_resource_is_with_it() -> None:
    result = placed(
        f"h = VarHandleOp() dtype=float shape=[] @{PS1}\nr = ReadVariableOp(h) dtype=float @{W0}\ny = Neg(r) @{W0}"
    )

    assert (result["r"], result["y"]) == (full(PS1), full(W0))


def test_a_consumer_decides_for_a_resource_that_asks_for_nothing() -> None:
    result = placed(f"h = VarHandleOp() dtype=float shape=[]\nr = ReadVariableOp(h) dtype=float @{PS1}")

    assert result["h"] == full(PS1)


def test_two_references_on_different_tasks_cannot_be_joined() -> None:
    error = refusal(
        f"""
        w = VariableV2() dtype=float shape=[] @{PS0}
        slot = VariableV2() dtype=float shape=[] @{PS1}
        lr = Const() dtype=float value=0.1
        apply = ApplyAdagrad(w, slot, lr, lr)
        """
    )

    assert "'slot' asks for /job:ps/task:1" in error.message
    assert "'w'" in error.message


# -- heuristics ------------------------------------------------------------------------------------------------------


def test_a_constant_goes_where_it_is_used() -> None:
    result = placed(f"c = Const() dtype=float value=1.0\ny = Neg(c) @{PS1}")

    assert result["c"] == full(PS1)


def test_a_constant_that_is_used_in_two_places_stays_with_the_master() -> None:
    result = placed(f"c = Const() dtype=float value=1.0\na = Neg(c) @{PS0}\nb = Neg(c) @{PS1}")

    assert result["c"] == full(W0)


def test_metadata_is_read_where_the_data_is() -> None:
    assert placed(f"x = Placeholder() dtype=float @{PS1}\ns = Shape(x)")["s"] == full(PS1)


# -- extend ----------------------------------------------------------------------------------------------------------


def extended(first: str, second: str) -> dict[str, str]:
    on = devices()
    graph = place(RuntimeGraph.from_graph_def(parse_text(first)), on, devices_with_kernel=cpu_only)
    graph = graph.extend(parse_text(second))
    return {n: node.device for n, node in place(graph, on, devices_with_kernel=cpu_only).nodes.items()}


def test_placed_nodes_stay_and_new_ones_follow_them() -> None:
    result = extended(
        f"c = Const() dtype=float value=1.0\ny = Neg(c) @{PS1}", f"z = NoOp(^c) colocate=c\nq = NoOp() @{PS0}"
    )

    assert result["c"] == result["z"] == full(PS1)


def test_a_new_node_cannot_pull_a_placed_one_away() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Cannot colocate nodes 'b' and 'a'"):
        extended(f"a = NoOp() @{PS0}", f"b = NoOp() colocate=a @{PS1}")


def test_every_new_placement_is_logged_once() -> None:
    lines: list[str] = []
    graph = RuntimeGraph.from_graph_def(parse_text(f"a = NoOp() @{PS0}"))
    graph = place(graph, devices(), devices_with_kernel=cpu_only, log=lines.append)
    graph = graph.extend(parse_text("b = NoOp()"))

    place(graph, devices(), devices_with_kernel=cpu_only, log=lines.append)

    assert lines == [f"a: (NoOp): {full(PS0)}", f"b: (NoOp): {full(W0)}"]


def test_the_masters_device_must_be_among_the_devices() -> None:
    with pytest.raises(ValueError, match="is not among"):
        DeviceSet(CLUSTER, "/job:chief/replica:0/task:0/device:CPU:0")
