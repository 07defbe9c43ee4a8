"""Where nodes go: on fake devices, with kernels as each test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from support.fake_cluster import fake_device
from support.graph_text import parse_text
from support.verify_graph import verify
from tenfold_compiler.graph.colocation import class_names
from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_compiler.graph.place import place
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_core import errors

if TYPE_CHECKING:
    from tenfold_protos.graph_pb2 import GraphDef

PS0, PS1, W0, W1 = "/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0", "/job:worker/task:1"
#: The master is worker 0; only worker 1 has a GPU.
CLUSTER = [fake_device(PS0), fake_device(PS1), fake_device(W0), fake_device(W1), fake_device(W1, "GPU")]

Kernels = Callable[[str, Mapping[str, Any]], tuple[str, ...]]


def cpu_only(op: str, attrs: Mapping[str, Any]) -> tuple[str, ...]:
    return ("CPU",)


#: A CPU is enough for everything.
HARD: dict[str, Any] = {"devices_with_kernel": cpu_only}


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


def refusal_of(graph_def: GraphDef) -> str:
    with pytest.raises(errors.InvalidArgumentError) as caught:
        place(RuntimeGraph.from_graph_def(graph_def), devices(), **HARD)
    return caught.value.message


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


@pytest.mark.parametrize("soft", [False, True])
def test_nodes_that_have_devices_of_their_own_cannot_be_joined_later(soft: bool) -> None:
    graph = place(RuntimeGraph.from_graph_def(parse_text(f"a = NoOp() @{PS0}\nb = NoOp() @{PS1}")), devices(), **HARD)
    graph = graph.extend(parse_text("c = NoOp() colocate=a colocate=b"))

    if soft:
        assert place(graph, devices(), soft=True, **HARD).nodes["c"].device == full(PS0)
        return
    with pytest.raises(errors.InvalidArgumentError) as caught:
        place(graph, devices(), **HARD)
    assert f"'b' asks for {full(PS1)} and 'a' is on or asks for {full(PS0)}." in caught.value.message
    assert caught.value.node_name == "b"


def test_references_that_lie_apart_cannot_be_joined_later_however_soft() -> None:
    text = f"w = VariableV2() dtype=float shape=[] @{PS0}\nslot = VariableV2() dtype=float shape=[] @{PS1}"
    graph = place(RuntimeGraph.from_graph_def(parse_text(text)), devices(), **HARD)
    graph = graph.extend(
        parse_text("lr = Const() dtype=float value=0.1\napply = ApplyAdagrad(w, slot, lr, lr) T=float")
    )

    with pytest.raises(errors.InvalidArgumentError, match="Cannot colocate nodes 'slot' and 'w'"):
        place(graph, devices(), soft=True, **HARD)


def test_a_new_node_must_fit_where_its_group_is_or_softly_into_its_task() -> None:
    graph = place(RuntimeGraph.from_graph_def(parse_text(f"a = NoOp() @{W1}")), devices(), **HARD)
    graph = graph.extend(parse_text(f"b = NoOp() colocate=a @{W1}/device:GPU:0\nc = NoOp() colocate=a @/job:worker"))

    assert {node.device for node in place(graph, devices(), soft=True, **HARD).nodes.values()} == {full(W1)}
    with pytest.raises(errors.InvalidArgumentError, match="'b' asks for /job:worker/task:1/device:GPU:0 and 'a' is on"):
        place(graph, devices(), **HARD)


def test_what_was_placed_softly_keeps_its_device_whatever_it_asked_for() -> None:
    graph = place(RuntimeGraph.from_graph_def(parse_text("a = NoOp() @/gpu:7")), devices(), soft=True, **HARD)
    graph = graph.extend(parse_text("b = NoOp() colocate=a"))

    assert {node.device for node in place(graph, devices(), **HARD).nodes.values()} == {full(W0)}


def test_who_follows_a_reference_may_stand_before_it_in_the_graph() -> None:
    result = placed(
        f"set = Assign(w, v) T=float @{W0}\nv = Const() dtype=float value=1.0\n"
        f"w = VariableV2() dtype=float shape=[] @{PS1}"
    )

    assert result["set"] == full(PS1)


def test_only_a_list_of_names_with_their_prefix_names_groups() -> None:
    graph_def = parse_text("a = NoOp() colocate=x\nb = NoOp()\nc = NoOp()\nd = NoOp()")
    graph_def.node[0].attr["_class"].list.s.extend([b"loc:@y", b"z", b"xloc:@w"])
    graph_def.node[1].attr["_class"].s = b"loc:@x"
    graph_def.node[2].attr["_class"].list.i.append(7)
    nodes = RuntimeGraph.from_graph_def(graph_def).nodes

    assert [class_names(node) for node in nodes.values()] == [["x", "y"], [], [], []]


def test_what_stands_for_the_outputs_of_a_call_may_gather_resources_of_several_tasks() -> None:
    graph_def = parse_text(
        f"a = VarHandleOp() dtype=float shape=[] @{PS0}\nb = VarHandleOp() dtype=float shape=[] @{PS1}\n"
        "both = IdentityN(a, b) T=[resource,resource]"
    )
    assert "Cannot colocate" in refusal_of(graph_def)
    graph_def.node[2].attr["_lowered"].b = True

    graph = place(RuntimeGraph.from_graph_def(graph_def), devices(), **HARD)

    assert [node.device for node in graph.nodes.values()] == [full(PS0), full(PS1), full(W0)]


def test_a_group_of_no_common_type_of_device_names_its_first_five_members() -> None:
    def kernels(op: str, attrs: Mapping[str, Any]) -> tuple[str, ...]:
        return {"NoOp": ("CPU",), "Placeholder": ("GPU",)}.get(op, ())

    lines = ["a0 = Placeholder() dtype=float", *(f"a{n} = NoOp() colocate=a0" for n in range(1, 7))]

    message = refusal("\n".join(lines), kernels=kernels).message

    others = ", ".join(f"NoOp ('a{n}') ['CPU']" for n in range(1, 5))
    why = f"its colocation group has no device type in common: Placeholder ('a0') ['GPU'], {others}."
    assert f"Cannot place 'a0' on any device: {why}" in message


def test_where_no_device_of_the_types_with_kernels_is_within_the_request_it_is_said() -> None:
    message = refusal(f"y = NoOp() @{PS0}", kernels=lambda op, attrs: ("GPU", "TPU")).message

    assert f"on {PS0}: there are kernels for GPU, TPU only, and no such device there." in message


def test_soft_placement_tells_of_kernels_where_the_device_is_there_and_of_the_task_where_it_is_not() -> None:
    def gpus(op: str, attrs: Mapping[str, Any]) -> tuple[str, ...]:
        return ("GPU",)

    there = refusal("y = NoOp() @/job:ps/task:0/cpu:0", kernels=gpus, soft=True).message
    away = refusal("y = NoOp() @/job:ps/task:0/device:TPU:0", kernels=gpus, soft=True).message

    assert "on /job:ps/task:0/device:CPU:0: NoOp ('y') has kernels for GPU only." in there
    assert "on /job:ps/task:0/device:TPU:0: there are kernels for GPU only, and no such device there." in away


def test_kernels_are_asked_for_once_for_each_op_and_choice_of_types() -> None:
    asked: list[tuple[str, Any]] = []

    def kernels(op: str, attrs: Mapping[str, Any]) -> tuple[str, ...]:
        asked.append((op, attrs.get("T") or attrs.get("Tout") or attrs.get("dtype")))
        return ("CPU",)

    placed(
        "a = Placeholder() dtype=float\nb = Placeholder() dtype=double\nc = Neg(a)\nd = Neg(b)\ne = Neg(c)\n"
        "f = MatMul(a, a)\ng = MatMul(a, a) transpose_a=true",
        kernels=kernels,
    )

    assert sorted(f"{op} {getattr(kind, 'name', kind)}" for op, kind in asked) == [
        "MatMul float32", "Neg float32", "Neg float64", "Placeholder float32", "Placeholder float64"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "device"),
    [
        ("s = Shape(x) @/job:worker", W0),
        ("s = Shape(x) @/job:ps", PS1),
        ("s = Neg(x)", W0),
        ("s = Rank(x)", PS1),
    ],
)
def test_metadata_is_read_at_the_data_where_the_request_permits(line: str, device: str) -> None:
    assert placed(f"x = Placeholder() dtype=float @{PS1}\n{line}")["s"] == full(device)


@pytest.mark.parametrize(
    ("line", "device"),
    [
        ("c = Const() dtype=float value=1.0 @/job:ps", PS1),
        ("c = Const() dtype=float value=1.0 @/job:worker", W0),
        ("c = Const() dtype=float value=1.0 colocate=d\nd = NoOp()", W0),
        ("c = Placeholder() dtype=float", PS1),
        ("v = Placeholder() dtype=float\nc = Identity(v)", W0),
    ],
)
def test_a_source_goes_to_its_only_consumer_where_it_may(line: str, device: str) -> None:
    assert placed(f"{line}\ny = Neg(c) @{PS1}\nz = Neg(c) @{PS1}")["c"] == full(device)


def test_a_source_that_nobody_takes_stays_with_the_master() -> None:
    assert placed(f"c = Const() dtype=float value=1.0\ny = NoOp() @{PS1}")["c"] == full(W0)


@pytest.mark.parametrize(
    ("line", "shared"),
    [
        ("q = FIFOQueueV2() component_types=[float] shared_name='q'", True),
        ("q = FIFOQueueV2() component_types=[float]", False),
        ("q = HashTableV2() key_dtype=string value_dtype=int64 use_node_name_sharing=true", True),
        ("q = HashTableV2() key_dtype=string value_dtype=int64", False),
        ("q = VarHandleOp() dtype=float shape=[]", True),
        ("q = NoOp()", False),
    ],
)
def test_what_has_a_name_of_its_own_is_shared(line: str, shared: bool) -> None:
    assert placed(line)["q"] == full(PS0 if shared else W0)
