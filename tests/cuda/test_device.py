"""A GPU as a device of a session: feeds, fetches, variables, control flow, traces, checkpoints, errors."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.functions import call, const, function, graph, node
from support.gpu_programs import ran_on, with_gpus
from tenfold_core import dtypes
from tenfold_kernels.cuda import _loops
from tenfold_kernels.cuda._launch import Kernel
from tenfold_kernels.cuda._runtime import runtime
from tenfold_protos.attr_value_pb2 import AttrValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
F32, I32, BOOL = dtypes.float32, dtypes.int32, dtypes.bool_
FULL_TRACE = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)


@pytest.fixture(autouse=True)
def gpu_session() -> Iterator[None]:
    with with_gpus(2), tf.Graph().as_default():
        yield


def traced(session: tf.Session, fetches: Any, feed: Any = None) -> tuple[Any, Any]:
    metadata = tf.RunMetadata()
    return session.run(fetches, feed, options=FULL_TRACE, run_metadata=metadata), metadata


# -- feeds, fetches, copies --------------------------------------------------------------------------------------------


def test_a_step_copies_what_it_is_fed_and_what_it_gives() -> None:
    x = tf.placeholder(tf.float32, [3], name="x")
    with tf.device("/gpu:0"):
        y = tf.multiply(x, 2.0, name="y")
        z = tf.add(y, 1.0, name="z")
    with tf.Session() as session:
        plain = session.run(z, {x: [1, 2, 3]})
        value, metadata = traced(session, [z, y, x], {x: [1, 2, 3]})

    assert plain.tolist() == [3, 5, 7]
    assert [each.tolist() for each in value] == [[3, 5, 7], [2, 4, 6], [1, 2, 3]]
    places = ran_on(metadata)
    copied = next(name for name in places if name.startswith("_recv_x_") and name.endswith("_CopyToDevice"))
    assert {places[name] for name in ("y", "z", copied, "z_CopyToHost", "y_CopyToHost")} == {"GPU:0"}
    stats = {n.node_name: n for device in metadata.step_stats.dev_stats for n in device.node_stats}
    described = stats["y"].output[0].tensor_description.allocation_description
    assert (described.allocator_name, described.allocated_bytes) == ("GPU_0_bfc", 12)
    assert [(m.allocator_name, m.total_bytes) for m in stats["y"].memory] == [("GPU_0_bfc", 12)]
    assert stats["z_CopyToHost"].output[0].tensor_description.allocation_description.allocator_name == "cpu"
    assert stats[copied].timeline_label == f"{copied} = _CopyToDevice({copied.removesuffix('_CopyToDevice')})"


def test_a_trace_has_the_times_of_a_gpus_streams_where_tools_look_for_them() -> None:
    with tf.device("/gpu:0"):
        x = tf.placeholder(tf.float32, [3], name="x")
        y = tf.multiply(x, 2.0, name="y")
        rows = tf.shape(y, name="rows")
    with tf.Session() as session:
        _, metadata = traced(session, [y, rows], {x: [1, 2, 3]})
        profile = tf.profiler.Profiler(session.graph)
        profile.add_step(0, metadata)
        options = tf.profiler.ProfileOptionBuilder.time_and_memory()
        found = profile.profile_name_scope(options)

    streams = {each.device: each for each in metadata.step_stats.dev_stats}[f"{GPU}/stream:all"]
    names = [each.node_name for each in streams.node_stats]
    assert "y:Mul@@Mul" in names
    assert "y_CopyToHost:_CopyToHost@@_CopyToHost" in names
    # what the host computes from a shape
    assert not any(name.startswith("rows:") for name in names)
    of_y = next(each for each in found.children if each.name == "y")
    assert of_y.accelerator_exec_micros > 0
    assert of_y.output_bytes == 12


def test_fetches_of_all_kinds_in_one_step() -> None:
    with tf.device("/gpu:0"):
        x = tf.constant([[1.5, -2.0], [0.0, 4.0]])
        y = tf.negative(x)
        shape = tf.shape(y) + 1
        less = y < x
    with tf.device("/cpu:0"):
        text = tf.as_string(y[0, 0])
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        found = session.run({"y": y, "shape": shape, "less": less, "text": text, "nothing": y.op})

    assert found["y"].tolist() == [[-1.5, 2.0], [0.0, -4.0]]
    assert found["shape"].tolist() == [3, 3]
    assert found["less"].tolist() == [[True, False], [False, True]]
    assert found["text"] == b"-1.500000"
    assert found["nothing"] is None


def test_a_tensor_of_a_gpu_is_fed_like_any_other() -> None:
    with tf.device("/gpu:0"):
        x = tf.constant([1.0, 2.0]) * 3.0
        y = x + 1.0
        given = tf.placeholder_with_default(x, [2])
        z = given * 2.0
    with tf.Session() as session:
        assert session.run(y, {x: [10, 20]}).tolist() == [11, 21]
        assert session.run(z).tolist() == [6, 12]
        assert session.run(z, {given: [1, 1]}).tolist() == [2, 2]
        call = session.make_callable(y, [x])
        assert [call([n, n]).tolist() for n in (1, 2, 3)] == [[2, 2], [3, 3], [4, 4]]


def test_a_fetched_array_is_the_callers_own() -> None:
    with tf.device("/gpu:0"):
        v = tf.Variable([1.0, 2.0])
        w = tf.get_variable("w", initializer=[3.0, 4.0], use_resource=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for variable in (v, w):
            first = session.run(variable)
            before = first.tolist()
            first[:] = 99
            assert session.run(variable).tolist() == before


def test_a_partial_run_feeds_and_fetches_in_several_calls() -> None:
    with tf.device("/gpu:0"):
        a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
        first = a * 2.0
        second = first + b
    with tf.Session() as session:
        handle = session.partial_run_setup([first, second], [a, b])
        assert session.partial_run(handle, first, {a: 3}) == 6
        assert session.partial_run(handle, second, {b: 1}) == 7


def test_a_handle_keeps_what_a_gpu_computed() -> None:
    with tf.device("/gpu:0"):
        x = tf.constant([1.0, 2.0]) * 2.0
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        handle = session.run(tf.get_session_handle(x))
        holder, kept = tf.get_session_tensor(handle.handle, tf.float32)
        with tf.device("/gpu:0"):
            y = kept * 10.0
        assert session.run(y, {holder: handle.handle}).tolist() == [20, 40]


def test_a_function_of_the_program_gets_arrays_of_the_host() -> None:
    seen: list[type] = []

    def double(value: Any) -> Any:
        seen.append(type(value))
        return value * 2

    with tf.device("/gpu:0"):
        x = tf.constant([1.0, 2.0]) + 1.0
    y = tf.py_func(double, [x], tf.float32)
    with tf.device("/gpu:0"):
        z = y + 1.0
    with tf.Session() as session:
        assert session.run(z).tolist() == [5, 7]
    assert seen == [np.ndarray]


def test_values_go_from_one_gpu_to_another() -> None:
    given = tf.placeholder(tf.float32, [2])
    with tf.device("/gpu:0"):
        x = tf.negative(given, name="x")
    with tf.device("/gpu:1"):
        y = tf.multiply(x, 10.0, name="y")
    with tf.device("/gpu:0"):
        z = tf.add(x, y, name="z")
    with tf.Session() as session:
        value, metadata = traced(session, z, {given: [1, 2]})

    assert value.tolist() == [-11, -22]
    places = ran_on(metadata)
    assert (places["x"], places["y"], places["z"]) == ("GPU:0", "GPU:1", "GPU:0")
    assert (places["x_CopyToDevice"], places["y_CopyToDevice"]) == ("GPU:1", "GPU:0")
    assert "x_CopyToHost" not in places


def test_partition_graphs_have_the_nodes_of_the_graph_only() -> None:
    with tf.device("/gpu:0"):
        y = tf.negative(tf.placeholder_with_default([1.0], [1]))
    with tf.Session() as session:
        metadata = tf.RunMetadata()
        session.run(y, options=tf.RunOptions(output_partition_graphs=True), run_metadata=metadata)

    ops = {node.op for graph in metadata.partition_graphs for node in graph.node}
    assert "Neg" in ops
    assert not {op for op in ops if op.startswith("_Copy")}


# -- variables -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_live_on_a_gpu(use_resource: bool) -> None:
    x = tf.placeholder(tf.float32, [2])
    with tf.device("/gpu:0"):
        v = tf.get_variable("v", initializer=tf.constant([1.0, 2.0]), use_resource=use_resource)
        with tf.control_dependencies([v.assign_add(x)]):
            after = v.read_value() * 1.5
        less = v.assign_sub(x)
        other = v.assign(x * 2.0)
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="v"):
            session.run(v)
        session.run(v.initializer)
        assert session.run(after, {x: [1, 1]}).tolist() == [3, 4.5]
        assert session.run(v).tolist() == [2, 3]
        session.run(less.op if hasattr(less, "op") else less, {x: [2, 2]})
        value, metadata = traced(session, [v, v + 1.0])
        assert [each.tolist() for each in value] == [[0, 1], [1, 2]]
        session.run(other.op if hasattr(other, "op") else other, {x: [5, 6]})
        assert session.run(v).tolist() == [10, 12]
    assert "GPU:0" in set(ran_on(metadata).values())


def test_a_snapshot_of_a_resource_variable_stays_as_it_was() -> None:
    with tf.device("/gpu:0"):
        v = tf.get_variable("v", initializer=[1.0], use_resource=True)
        before = v.read_value()
        with tf.control_dependencies([before]), tf.control_dependencies([v.assign_add([1.0])]):
            both = before + v.read_value()
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(both).tolist() == [3]


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_of_a_gpu_are_saved_and_restored(tmp_path: Path, use_resource: bool) -> None:
    with tf.device("/gpu:0"):
        v = tf.get_variable("v", initializer=[[1.0, 2.0]], use_resource=use_resource)
        zero = v.assign([[0.0, 0.0]])
    step = tf.train.create_global_step()
    saver = tf.train.Saver()
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "model"))
        session.run(zero)
        assert session.run(v).tolist() == [[0, 0]]
        saver.restore(session, path)
        assert session.run(v).tolist() == [[1, 2]]
        assert session.run(step) == 0
    # what is written knows no device
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        w = tf.get_variable("v", shape=[1, 2])
        with tf.Session() as session:
            tf.train.Saver().restore(session, path)
            assert session.run(w).tolist() == [[1, 2]]


# -- control flow --------------------------------------------------------------------------------------------------


def branches() -> dict[str, Callable[[Any], Any]]:
    return {
        "cond": lambda x: tf.cond(x[0] < 2.0, lambda: x * 10.0, lambda: x),
        "case": lambda x: tf.case([(x[0] < 0.0, lambda: x - 1.0), (x[0] < 2.0, lambda: -x)], default=lambda: x * x),
        "while": lambda x: tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y * x + 1.0), [0, x])[1],
        "while on values": lambda x: tf.while_loop(lambda y: y[0] < 50.0, lambda y: y * 2.0 + 1.0, [x]),
        "while in a while": lambda x: tf.while_loop(
            lambda i, y: i < 3,
            lambda i, y: (i + 1, tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z + x), [0, y])[1]),
            [0, x],
        )[1],
        "cond in a while": lambda x: tf.while_loop(
            lambda i, y: i < 4,
            lambda i, y: (i + 1, tf.cond(tf.equal(i % 2, 0), lambda: y + x, lambda: y * 0.5)),
            [0, x],
        )[1],
    }


@pytest.mark.parametrize("kind", sorted(branches()))
def test_control_flow_gives_what_it_gives_on_the_cpu(kind: str) -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    build = branches()[kind]
    with tf.device("/gpu:0"):
        on_gpu = build(x)
    with tf.device("/cpu:0"):
        on_cpu = build(x)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        for value in ([1.0, 2.0], [3.0, -1.0], [-5.0, 0.5]):
            if kind == "while on values" and value[0] < 0:
                continue  # it would go on for ever
            found, wanted = session.run([on_gpu, on_cpu], {x: value})
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
        found, metadata = traced(session, on_gpu, {x: [1.0, 2.0]})
        np.testing.assert_allclose(found, session.run(on_cpu, {x: [1.0, 2.0]}), rtol=1e-6)
    assert "GPU:0" in set(ran_on(metadata).values())


@pytest.mark.parametrize("lowered", [True, False])
def test_functions_of_version_2_are_branches_and_loops_of_a_gpu(lowered: bool) -> None:
    """While and If of TensorFlow 2's graphs; without lowering they call their functions on the host."""
    gpu = "/gpu:0" if lowered else ""
    four, is_less = const("n", 4), node("l", "Less", "i", "n:output:0", T=I32)
    less = function("less", ["i: int32", "a: float"], ["r: bool"], [four, is_less], r="l:z:0")
    more = node("more", "Mul", "a", "a", T=F32, device=gpu)
    step = function(
        "step",
        ["i: int32", "a: float"],
        ["o: int32", "b: float"],
        [const("one", 1), node("add", "Add", "i", "one:output:0", T=I32), more],
        o="add:z:0",
        b="more:z:0",
    )
    double = function("double", ["a: float"], ["b: float"], [node("y", "Add", "a", "a", T=F32, device=gpu)], b="y:z:0")
    minus = function("minus", ["a: float"], ["b: float"], [node("y", "Neg", "a", T=F32, device=gpu)], b="y:y:0")
    cases = {"then_branch": call("double"), "else_branch": call("minus")}
    nodes = [
        node("x", "Placeholder", dtype=F32),
        node("p", "Placeholder", dtype=BOOL),
        const("zero", 0),
        node("w", "While", "zero", "x", T=[I32, F32], cond=call("less"), body=call("step"), device=gpu),
        node("if", "If", "p", "w:1", Tcond=BOOL, Tin=[F32], Tout=[F32], **cases),
        node("end", "Neg", "if", T=F32, device="/gpu:0"),
    ]
    tf.import_graph_def(graph(nodes, less, step, double, minus), name="")
    config = tf.ConfigProto(allow_soft_placement=True)
    if not lowered:
        config.experimental.executor_type = "SINGLE_THREADED_EXECUTOR"
    with tf.Session(config=config) as session:
        assert session.run("end:0", {"x:0": [2.0], "p:0": True}).tolist() == [-2 * 2.0**16]
        assert session.run("end:0", {"x:0": [1.0], "p:0": False}).tolist() == [1]


def test_a_gradient_goes_back_through_a_loop() -> None:
    x = tf.placeholder(tf.float32, [2])
    found = []
    for device in ("/gpu:0", "/cpu:0"):
        with tf.device(device):
            y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.sin(y) * x), [0, x])[1]
            found.append(tf.gradients(y, x)[0])
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        ours, theirs = session.run(found, {x: [0.5, -1.5]})

    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_a_loop_that_takes_from_a_queue_uses_a_gpu() -> None:
    """Its part is split: the loop runs node by node, with values of the GPU that cross."""
    queue = tf.FIFOQueue(10, tf.float32, shapes=[[2]])
    with tf.device("/gpu:0"):
        x = tf.ones([2]) * 2.0
        for _ in range(8):
            x = tf.tanh(x * 0.5 + 0.1)
        _, total = tf.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t + queue.dequeue() * x), [0, x])
        y = total * 2.0
        for _ in range(8):
            y = y * 0.5 + 1.0
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        session.run(queue.enqueue_many([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]]))
        base, sums, end = session.run([x, total, y])

    np.testing.assert_allclose(sums, base + base * [9.0, 12.0], rtol=1e-6)
    assert np.isfinite(end).all()


# -- placement -----------------------------------------------------------------------------------------------------


def test_what_has_no_kernel_there_is_refused_or_placed_on_the_cpu(capfd: pytest.CaptureFixture[str]) -> None:
    with tf.device("/gpu:0"):
        x = tf.constant([1.0], name="x")
        y = tf.negative(x, name="y")
        text = tf.as_string(y, name="text")
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="text") as caught:
        session.run(text)
    assert "AsString" in caught.value.message
    soft = tf.ConfigProto(allow_soft_placement=True, log_device_placement=True)
    with tf.Session(config=soft) as session:
        assert session.run(text).tolist() == [b"-1.000000"]
    lines = capfd.readouterr().err.splitlines()
    assert f"y: (Neg): {GPU}" in lines
    assert lines.index("Device mapping:") < lines.index(f"y: (Neg): {GPU}")
    assert any(line.startswith(f"{GPU} -> device: 0, name: ") for line in lines)
    assert f"text: (AsString): {GPU.replace('GPU', 'CPU')}" in lines


def test_without_a_device_a_gpu_is_taken() -> None:
    x = tf.negative(tf.constant([1.0, 2.0]), name="x")
    n = tf.add(tf.constant([1, 2]), 1, name="n")
    with tf.Session() as session:
        (value, count), metadata = traced(session, [x, n])

    assert (value.tolist(), count.tolist()) == ([-1, -2], [2, 3])
    stats = {n.node_name: n for device in metadata.step_stats.dev_stats for n in device.node_stats}
    assert ran_on(metadata)["x"] == ran_on(metadata).get("n", "GPU:0") == "GPU:0"
    # int32 is on the host, as in TensorFlow
    if "n" in stats:
        assert stats["n"].output[0].tensor_description.allocation_description.allocator_name == "cpu"


def test_a_gpu_that_is_not_there_is_named() -> None:
    with tf.device("/gpu:7"):
        x = tf.constant(1.0, name="x")
    found = pytest.raises(tf.errors.InvalidArgumentError, match=r"Cannot place 'x'.*GPU:0, GPU:1")
    with tf.Session() as session, found:
        session.run(x)


# -- faults --------------------------------------------------------------------------------------------------------


def test_an_error_of_what_a_kernel_is_given_is_that_of_the_cpu() -> None:
    x, y = tf.placeholder(tf.float32, name="x"), tf.placeholder(tf.float32, name="y")
    texts = []
    for device in ("/gpu:0", "/cpu:0"):
        with tf.device(device):
            z = tf.add(x, y, name="z")
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(z, {x: [1, 2], y: [1, 2, 3]})
        texts.append(caught.value.message.replace("z_1", "z"))
    assert texts[0] == texts[1]


def test_out_of_memory_names_node_and_gpu_and_the_task_goes_on() -> None:
    with with_gpus(1, memory=4096):
        x = tf.placeholder(tf.float32, [None], name="x")
        with tf.device("/gpu:0"):
            y = tf.multiply(x, 2.0, name="y")
            z = tf.negative(y, name="z")
        with tf.Session() as session:
            errors = []
            for _ in range(3):
                with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
                    session.run(z, {x: np.ones(600, np.float32)})
                errors.append(caught.value)
            assert session.run(z, {x: [1.0, 2.0]}).tolist() == [-2, -4]
            # an error that is kept keeps no memory
            assert session.run(z, {x: np.ones(450, np.float32)}).sum() == -900
            with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
                session.run(y, {x: np.ones(2000, np.float32)})
        assert f"(on {GPU})" in errors[0].message
        assert "OOM when allocating tensor with shape[600]" in errors[0].message
        assert errors[0].op.name in ("y", "z")
        # of what is fed, the copy has no room
        assert f"(on {GPU})" in caught.value.message
        assert "{{node _recv_x_" in caught.value.message
        # two programs have the constant
        assert runtime(0).memory_info()[0] <= 8


def test_out_of_memory_says_what_holds_it() -> None:
    with with_gpus(1, memory=8192):
        with tf.device("/gpu:0"):
            small = tf.get_variable("small", initializer=tf.ones([8]))
            large = tf.get_variable("model/large", initializer=tf.ones([1000]), use_resource=True)
            x = tf.placeholder(tf.float32, [None], name="x")
            y = tf.multiply(tf.negative(x), 2.0, name="y")
        with tf.Session() as session:
            session.run([small.initializer, large.initializer])
            with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
                session.run(y, {x: np.ones(400, np.float32)})
    message = caught.value.message
    assert "and type float: 1600 bytes are asked for on simulated GPU 0, " in message
    held = message.partition(" are in use: ")[2]
    assert held.startswith("4000 by ")
    assert "4000 by variable model/large, " in held
    assert "32 by variable small, " in held
    # what the initializers assign is a constant
    assert "4000 by a tensor of shape [1000] and type float32, " in held


def test_a_kernel_that_does_not_compile_names_node_and_gpu() -> None:
    def broken(*arguments: Any) -> None:
        raise TypeError("no such type")

    with tf.device("/gpu:0"):
        y = tf.negative(tf.placeholder_with_default([1.0], [1]), name="y")
    sound = _loops.compiled
    with tf.Session() as session:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_loops, "compiled", lambda loop: Kernel(broken, sound(loop).types))
            with pytest.raises(tf.errors.InternalError) as caught:
                session.run(y)
        assert "{{node y}}" in caught.value.message
        assert f"(on {GPU})" in caught.value.message
        assert session.run(y).tolist() == [-1]


def test_a_nan_under_check_numerics_names_the_node_and_the_task_goes_on() -> None:
    x = tf.placeholder(tf.float32, [2])
    with tf.device("/gpu:0"):
        checked = tf.check_numerics(tf.log(x), "the logarithm", name="checked")
        y = checked + 1.0
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"the logarithm : Tensor had NaN") as caught:
            session.run(y, {x: [1.0, -1.0]})
        assert session.run(y, {x: [1.0, 1.0]}).tolist() == [1, 1]
    assert caught.value.op.name == "checked"


def test_a_handle_that_is_handed_on_keeps_its_variable_on_the_gpu() -> None:
    with tf.device("/gpu:0"):
        v = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
        handle = tf.identity(v.handle)
        graph = tf.get_default_graph()
        dtype = AttrValue(type=tf.float32.as_datatype_enum)
        given = [handle, tf.constant([1.0, 1.0])]
        more = graph.create_op("AssignAddVariableOp", given, [], attrs={"dtype": dtype})
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(more)
        value, metadata = traced(session, v)
    assert value.tolist() == [2, 3]
    assert ran_on(metadata)["v"] == "GPU:0"


# -- without a GPU -------------------------------------------------------------------------------------------------


def test_a_session_without_a_gpu_imports_nothing_of_one() -> None:
    program = """
import sys, tenfold as tf
with tf.Session() as session:
    assert session.run(tf.constant(1.0) + 1.0) == 2
    v = tf.Variable([1.0])
    session.run(v.initializer)
    session.run(tf.train.GradientDescentOptimizer(0.1).minimize(v * v))
found = [name for name in sys.modules if name.startswith(("numba.cuda", "cupy", "tenfold_kernels.cuda."))]
lazy = {"_arrays", "_runtime", "copies", "absences"}
assert {name.rpartition(".")[2] for name in found} <= lazy, found
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
