"""A real TensorFlow client on a Tenfold server: sessions, errors, partial runs, callables, traces, every dtype.

One script per theme, since a TensorFlow process takes seconds to start; each prints what it saw, and the assertions are
here. The values that TensorFlow gives are known, so that no second server is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_HEAD = """
import json, sys
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
target = sys.argv[1]
def caught(call):
    try:
        call()
    except tf.errors.OpError as e:
        return [type(e).__name__, e.error_code, e.message, e.op.name if e.op is not None else None]
    return None
"""


@pytest.fixture
def target() -> Iterator[str]:
    """A server of one task, /job:localhost."""
    with BackgroundServer(TaskServer({"localhost": {0: "localhost:0"}}, "localhost", 0)) as server:
        yield server.target


@pytest.fixture
def two_tasks() -> Iterator[tuple[str, str]]:
    """Targets of a ps and a worker of one cluster."""
    spec = {"ps": {0: ""}, "worker": {0: ""}}
    with BackgroundServer(TaskServer(spec, "ps", 0)) as ps, BackgroundServer(TaskServer(spec, "worker", 0)) as worker:
        for server in (ps, worker):
            server.update_cluster({"ps": [f"localhost:{ps.port}"], "worker": [f"localhost:{worker.port}"]})
        yield ps.target, worker.target


_ERRORS = """
out = {}
with tf.Graph().as_default():
    x = tf.placeholder(tf.float32, [2], name="x")
    w = tf.get_variable("w", [2], use_resource=False)
    r = tf.get_variable("r", [2], use_resource=True)
    y = tf.identity(x + 1.0, name="y")
    bad_index = tf.gather([1.0, 2.0], tf.placeholder_with_default(7, []), name="bad_index")
    check = tf.debugging.assert_equal(tf.reduce_sum(x), 0.0, message="not zero")
    nan = tf.debugging.check_numerics(x / 0.0, "it is not a number", name="nan")
    shape = tf.matmul(tf.placeholder_with_default(np.ones([2, 3]), None), np.ones([2, 2]), name="shape")
    with tf.Session(target) as sess:
        out["feed"] = caught(lambda: sess.run(y))
        out["ref"] = caught(lambda: sess.run(w))
        out["resource"] = caught(lambda: sess.run(r))
        out["index"] = caught(lambda: sess.run(bad_index))
        out["assert"] = caught(lambda: sess.run(check, {x: [1.0, 2.0]}))
        out["nan"] = caught(lambda: sess.run(nan, {x: [1.0, 0.0]}))
        out["shape"] = caught(lambda: sess.run(shape))
        out["good"] = sess.run(y, {x: [1.0, 2.0]}).tolist()
        with tf.device("/job:nowhere/task:3"):
            tf.constant(1.0, name="lost")
        out["placement"] = caught(lambda: sess.run(y, {x: [1.0, 2.0]}))
with tf.Graph().as_default():
    q = tf.FIFOQueue(1, tf.float32)
    blocked = q.dequeue(name="blocked")
    with tf.Session(target) as sess:
        out["timeout"] = caught(lambda: sess.run(blocked, options=tf.RunOptions(timeout_in_ms=200)))
with tf.Graph().as_default():
    long = tf.debugging.Assert(tf.constant(False), ["z" * 30000], summarize=1, name="long")
    with tf.Session(target) as sess:
        out["long"] = caught(lambda: sess.run(long))
print(json.dumps(out))
"""


def test_errors_have_the_class_the_message_and_the_op(ask_tensorflow: Callable[..., Any], target: str) -> None:
    seen = ask_tensorflow(_HEAD + _ERRORS, target)
    assert seen["feed"][::3] == ["InvalidArgumentError", "x"]
    assert "You must feed a value for placeholder tensor 'x' with dtype float" in seen["feed"][2]
    assert seen["ref"][0] == "FailedPreconditionError"
    assert "Attempting to use uninitialized value w" in seen["ref"][2]
    assert seen["resource"][0] == "FailedPreconditionError"
    assert seen["index"][::3] == ["InvalidArgumentError", "bad_index"]
    assert seen["assert"][0] == "InvalidArgumentError"
    assert "not zero" in seen["assert"][2]
    assert seen["nan"][::3] == ["InvalidArgumentError", "nan"]
    assert seen["shape"][::3] == ["InvalidArgumentError", "shape"]
    assert seen["good"] == [2.0, 3.0]
    assert seen["placement"][0] == "InvalidArgumentError"
    assert "lost" in seen["placement"][2]
    assert seen["timeout"][0] == "DeadlineExceededError"
    assert seen["long"][::3] == ["InvalidArgumentError", "long/Assert"]


_STEPS = """
out = {}
with tf.Graph().as_default():
    a = tf.placeholder(tf.float32, [])
    b = tf.placeholder(tf.float32, [])
    c = tf.placeholder(tf.float32, [])
    r1 = a + b
    r2 = r1 * c
    with tf.Session(target) as sess:
        h = sess.partial_run_setup([r1, r2], [a, b, c])
        out["early"] = caught(lambda: sess.partial_run(h, r2, {a: 1.0, b: 2.0}))
        first = sess.partial_run(h, r1, {a: 1.0, b: 2.0})
        out["again"] = caught(lambda: sess.partial_run(h, r1, {a: 1.0}))
        out["partial"] = [float(first), float(sess.partial_run(h, r2, {c: first * 17}))]
        out["over"] = caught(lambda: sess.partial_run(h, r2, {c: 1.0}))
        h = sess.partial_run_setup([r1, r2], [a, b, c])
        out["unfinished"] = float(sess.partial_run(h, r1, {a: 5.0, b: 2.0}))
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        from tensorflow.core.protobuf import config_pb2
        callable_options = config_pb2.CallableOptions(feed=[a.name, b.name], fetch=[r1.name])
        call = sess._make_callable_from_options(callable_options)
        out["callable"] = [float(v) for v in call(np.float32(3), np.float32(4))]
        out["few"] = caught(lambda: call(np.float32(3)))
        del call
        out["devices"] = [[d.name, d.device_type, d.incarnation != 0] for d in sess.list_devices()]
        metadata = tf.RunMetadata()
        sess.run(r1, {a: 1.0, b: 2.0}, options=tf.RunOptions(output_partition_graphs=True), run_metadata=metadata)
        out["partitions"] = len(metadata.partition_graphs)
with tf.Graph().as_default():
    with tf.container("kept"):
        kept = tf.Variable(1.0, name="kept", use_resource=False)
    lost = tf.Variable(2.0, name="lost", use_resource=False)
    sess = tf.Session(target)
    sess.run(tf.global_variables_initializer())
    tf.Session.reset(target)
    out["after_reset"] = caught(lambda: sess.run(kept))
    with tf.Session(target) as again:
        out["kept"] = float(again.run(kept))
        out["lost"] = caught(lambda: again.run(lost))
print(json.dumps(out))
"""


def test_partial_runs_callables_devices_and_reset(ask_tensorflow: Callable[..., Any], target: str) -> None:
    seen = ask_tensorflow(_HEAD + _STEPS, target)
    assert seen["early"][0] == "InvalidArgumentError"
    assert "can't be computed from the feeds that have been fed so far" in seen["early"][2]
    assert "has already been fed" in seen["again"][2]
    assert seen["partial"] == [3.0, 153.0]
    assert "Must run PartialRunSetup before performing partial runs" in seen["over"][2]
    assert seen["unfinished"] == 7.0
    assert seen["callable"] == [7.0]
    assert seen["few"][0] == "InvalidArgumentError"
    assert seen["devices"] == [["/job:localhost/replica:0/task:0/device:CPU:0", "CPU", True]]
    assert seen["partitions"] == 1
    assert seen["after_reset"][:2] == ["AbortedError", 10]
    assert "is not found" in seen["after_reset"][2]
    assert seen["kept"] == 1.0
    assert seen["lost"][0] == "FailedPreconditionError"


#: A callable's connections, asked of TensorFlow's own server too; the matrix of what is refused is from its
#: direct_session_test.cc.
_CONNECTIONS = """
from tensorflow.core.protobuf import config_pb2
def answers(target):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        a = tf.constant([[3.0, 2.0], [-1.0, 0.0]], name="a")
        b = tf.constant(5.0, name="b")
        x = tf.placeholder(tf.float32, [2, 1], name="x")
        y = tf.matmul(a, x, name="y")
        tf.negative(y, name="y_neg")
        with tf.control_dependencies([x]):
            tf.constant(7.0, name="after_x")
        def call(fetch, *connections, feed=(), values=()):
            options = config_pb2.CallableOptions(feed=feed, fetch=fetch)
            for source, to in connections:
                options.tensor_connection.add(from_tensor=source, to_tensor=to)
            try:
                return [value.tolist() for value in sess._make_callable_from_options(options)(*values)]
            except tf.errors.OpError as error:
                return [type(error).__name__, error.message.split("\\n")[:2]]
        column = np.ones([2, 1], np.float32)
        return {
            "alone": call(["y_neg:0"], ("a:0", "y:0")),
            "fetched": call(["a:0", "y_neg:0"], ("a:0", "y:0")),
            "placeholder": call(["after_x:0"], ("a:0", "x:0")),
            "chain": call(["y_neg:0"], ("a:0", "y:0"), ("b:0", "a:0")),
            "source is a fed placeholder": call(["y_neg:0"], ("x:0", "y:0"), feed=["x:0"], values=[column]),
            "source is fed": call(["y_neg:0"], ("a:0", "y:0"), feed=["a:0"], values=[column]),
            "cycle": call(["y:0"], ("y:0", "a:0")),
            "unknown node": call(["y:0"], ("nobody:0", "y_neg:0")),
            "unknown edge": call(["y:0"], ("a:17", "y_neg:0")),
            "to nobody": call(["y:0"], ("a:0", "nobody:0")),
            "twice": call(["y:0"], ("a:0", "y_neg:0"), ("x:0", "y_neg:0")),
            "fed": call(["y_neg:0"], ("a:0", "y:0"), feed=["y:0"], values=[column]),
            "both": call(["y:0"], ("a:0", "y:0")),
        }
theirs = tf.train.Server.create_local_server()
print(json.dumps([answers(target), answers(theirs.target)]))
"""


def test_callables_with_connected_tensors_answer_as_tensorflow_does(
    ask_tensorflow: Callable[..., Any], target: str
) -> None:
    ours, theirs = ask_tensorflow(_HEAD + _CONNECTIONS, target)
    assert ours == theirs
    assert ours["alone"] == [[[-3.0, -2.0], [1.0, 0.0]]]
    assert ours["chain"] == [-5.0]
    assert "would create a cycle" in ours["cycle"][1][0]
    assert "You must feed a value for placeholder tensor 'x'" in ours["source is a fed placeholder"][1][1]


_TRACE = """
from tensorflow.python.client import timeline
with tf.Graph().as_default():
    with tf.device("/job:ps/task:0"):
        w = tf.Variable(np.ones([4, 4], np.float32), use_resource=False, name="w")
    with tf.device("/job:worker/task:0"):
        x = tf.placeholder(tf.float32, [4, 4], name="x")
        y = tf.matmul(x, w, name="y")
        z = tf.while_loop(lambda i: i < 5, lambda i: i + 1, [tf.constant(0)], name="loop")
    with tf.Session(target) as sess:
        sess.run(w.initializer)
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        metadata = tf.RunMetadata()
        sess.run([y, z], {x: np.ones([4, 4])}, options=options, run_metadata=metadata)
        bare = tf.RunMetadata()
        sess.run([y, z], {x: np.ones([4, 4])}, run_metadata=bare)
chrome = json.loads(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format(show_memory=True))
nodes = {s.node_name: [d.device, s.timeline_label, s.op_end_rel_micros, s.all_start_micros > 0, len(s.output)]
         for d in metadata.step_stats.dev_stats for s in d.node_stats}
print(json.dumps({
    "devices": sorted(d.device for d in metadata.step_stats.dev_stats),
    "nodes": nodes,
    "bare": len(bare.step_stats.dev_stats),
    "chrome": [[e.get("ph"), e.get("name"), e.get("args", {}).get("op")] for e in chrome["traceEvents"]],
}))
"""


def test_a_trace_of_two_tasks_makes_a_timeline(ask_tensorflow: Callable[..., Any], two_tasks: tuple[str, str]) -> None:
    seen = ask_tensorflow(_HEAD + _TRACE, two_tasks[1])
    assert seen["devices"] == ["/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"]
    device, label, took, started, outputs = seen["nodes"]["y"]
    assert device.startswith("/job:worker")
    assert label.startswith("y = MatMul(")
    assert took > 0
    assert started
    assert outputs == 1
    labels = [entry[1] for entry in seen["nodes"].values()]
    assert any(" = _Send(" in label and "@/job:worker" in label for label in labels)
    assert any(" = _Recv(" in label and "@/job:ps" in label for label in labels)
    assert any(phase == "X" and op == "MatMul" for phase, _, op in seen["chrome"])
    assert seen["bare"] == 0


_VALUES = """
out = {"wrong": []}
with tf.Graph().as_default(), tf.Session(target) as sess:
    names = ["float16", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
             "bool", "complex64", "complex128"]
    for name in names:
        dtype = tf.as_dtype(name)
        for value in ([], [[1, 0], [1, 1]], 1, [[[]]]):
            value = np.array(value).astype(dtype.as_numpy_dtype)
            p = tf.placeholder(dtype)
            got = sess.run([p, tf.identity(p), tf.constant(value, dtype)], {p: value})
            for g in got:
                if not (g.dtype == value.dtype and g.shape == value.shape and np.array_equal(g, value)):
                    out["wrong"].append([name, str(value), str(g)])
    s = tf.placeholder(tf.string)
    for value in ([b"a", b"", b"\\x00\\xff" * 100], b"one", [], [[b"x" * 70000]]):
        value = np.array(value, dtype=object)
        got = sess.run(tf.identity(s), {s: value})
        if not np.array_equal(np.asarray(got, object), value):
            out["wrong"].append(["string", str(value)[:80], str(got)[:80]])
    big = np.arange(25_000_000, dtype=np.float32)
    p = tf.placeholder(tf.float32)
    got = sess.run(p + 1.0, {p: big})
    out["big"] = [got.nbytes, bool((got == big + 1.0).all())]
print(json.dumps(out))
"""


def test_every_dtype_is_fed_and_fetched(ask_tensorflow: Callable[..., Any], target: str) -> None:
    seen = ask_tensorflow(_HEAD + _VALUES, target)
    assert seen["wrong"] == []
    assert seen["big"] == [100_000_000, True]


_MISSING = """
with tf.Graph().as_default():
    with tf.device("/job:worker/task:0"):
        one = tf.constant(1.0)
    config = tf.ConfigProto(operation_timeout_in_ms=1500)
    print(json.dumps({"missing": caught(lambda: tf.Session(target, config=config).run(one))}))
"""


def test_a_session_that_waits_in_vain_says_for_whom(ask_tensorflow: Callable[..., Any]) -> None:
    with BackgroundServer(TaskServer({"ps": {0: ""}, "worker": {0: "localhost:0"}}, "worker", 0)) as server:
        seen = ask_tensorflow(_HEAD + _MISSING, server.target)
    assert seen["missing"][0] == "DeadlineExceededError"
    assert "/job:ps/replica:0/task:0" in seen["missing"][2]
