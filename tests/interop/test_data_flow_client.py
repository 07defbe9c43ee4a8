"""TensorFlow's client keeps its queues, accumulators, TensorArrays, TensorLists and tables on our servers.

Each case of the first test runs twice, on our server and in TensorFlow's own process, and must give the same: values,
or the class and text of the error.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from support.task_processes import static_cluster

from .tensorflow_processes import tensorflow_servers

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.timeout(240)

_BEGIN = """
import json, re, sys
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
target = sys.argv[1]
"""

_CASES = (
    _BEGIN
    + """
cases = {}
def case(function):
    cases[function.__name__] = function

def plain(value):
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else repr(np.asarray(value).tolist())

def outcome(function, where):
    with tf.Graph().as_default() as graph, tf.Session(where) as session:
        try:
            return plain(function(session))
        except tf.errors.OpError as error:
            text = re.sub(r"^From /job:.*:\\n", "", error.message.split("\\n\\t [[")[0].split("Node: ")[-1])
            return [type(error).__name__, re.sub(r"_\\d+", "_N", text.strip().splitlines()[-1])]

X = np.arange(12, dtype=np.float32).reshape(4, 3) / 10

@case
def fifo(s):
    q = tf.FIFOQueue(3, [tf.float32, tf.string], shapes=[[], [2]], name="q")
    s.run(q.enqueue([1., ["a", "b"]]))
    s.run(q.enqueue_many([[2., 3.], [["c", "d"], ["e", "f"]]]))
    return s.run([q.size()]) + s.run(q.dequeue_many(2)) + s.run(q.dequeue()) + s.run([q.size(), q.is_closed()])

@case
def closed(s):
    q = tf.FIFOQueue(3, tf.int32, name="q")
    s.run(q.close())
    return s.run(q.dequeue())

@case
def shuffled_by_seed(s):
    q = tf.RandomShuffleQueue(50, 5, tf.int32, [[]], seed=7)
    s.run(q.enqueue_many([list(range(40))]))
    return [s.run(q.dequeue_many(11)), s.run(q.dequeue()), s.run(q.dequeue_many(9))]

@case
def padded(s):
    q = tf.PaddingFIFOQueue(9, [tf.int64, tf.string], [[None], [2, None]])
    s.run(q.enqueue([[1, 2], [["a"], ["b"]]]))
    s.run(q.enqueue([[3], [["c", "d"], ["e", "f"]]]))
    s.run(q.close())
    return s.run(q.dequeue_up_to(5))

@case
def prioritized(s):
    q = tf.PriorityQueue(9, tf.string, [[]])
    s.run(q.enqueue_many([tf.constant([3, 1, 2], tf.int64), ["c", "a", "b"]]))
    return s.run(q.dequeue_many(3))

@case
def accumulated(s):
    a = tf.ConditionalAccumulator(tf.float32, [2])
    b = tf.SparseConditionalAccumulator(tf.float32, [4, 1], reduction_type="SUM")
    s.run([a.apply_grad([1., 2.], 0), b.apply_indexed_slices_grad(tf.IndexedSlices([[1.], [2.]], [0, 3]), 0)])
    s.run([a.apply_grad([3., 5.], 0), b.apply_indexed_slices_grad(tf.IndexedSlices([[4.]], [3]), 0)])
    taken = b.take_indexed_slices_grad(2)
    return s.run([a.num_accumulated(), a.take_grad(2), taken.values, taken.indices])

def recurrent(s, x):
    w = tf.constant(np.full((3, 3), .1, np.float32))
    rows = tf.TensorArray(tf.float32, tf.shape(x)[0], clear_after_read=False).unstack(x)
    out = tf.TensorArray(tf.float32, tf.shape(x)[0], element_shape=[1, 3])
    def body(i, h, out):
        h = tf.square(tf.matmul(h, w) + rows.read(i))
        return i + 1, h, out.write(i, h)
    _, h, out = tf.while_loop(lambda i, *_: i < tf.shape(x)[0], body, [0, tf.zeros([1, 3]), out])
    y = out.stack()
    return [np.round(v, 4) for v in s.run([y, h, *tf.gradients(tf.reduce_sum(y * y), [x, w])])]

@case
def loop_v1(s):
    return recurrent(s, tf.constant(X))

@case
def loop_v2(s):
    tf.enable_control_flow_v2()
    try:
        return recurrent(s, tf.constant(X))
    finally:
        tf.disable_control_flow_v2()

@case
def split_and_joined(s):
    x = tf.constant(X)
    parts = tf.TensorArray(tf.float32, 2, infer_shape=False).split(x, [3, 1])
    whole = tf.TensorArray(tf.float32, 2, infer_shape=False).write(0, parts.read(0)).write(1, parts.read(1)).concat()
    mapped, summed = tf.map_fn(lambda r: r * 2, x), tf.scan(lambda a, r: a + r, x)
    return s.run([whole, *tf.gradients(whole * whole, x), mapped, summed])

@case
def written_twice(s):
    return s.run(tf.TensorArray(tf.float32, 2).write(0, 1.).write(0, 2.).flow)

@case
def tables(s):
    init = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
    words = tf.lookup.StaticHashTable(init, -1)
    counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)
    s.run(tf.tables_initializer())
    s.run(counts.insert(["x", "y"], tf.constant([5, 6], tf.int64)))
    s.run(counts.remove(tf.constant(["y"])))
    return s.run([words.lookup(tf.constant([["b", "z"]])), words.size(), counts.lookup(["x", "y"]), *counts.export()])

@case
def pipeline(s):
    numbers = tf.train.range_input_producer(10, num_epochs=2, shuffle=False, capacity=4).dequeue()
    batch = tf.train.batch([tf.cast(numbers, tf.float32) * 2], 6, num_threads=1, allow_smaller_final_batch=True)
    s.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(s, coordinator)
    seen = []
    try:
        while not coordinator.should_stop():
            seen.extend(s.run(batch).tolist())
    except tf.errors.OutOfRangeError:
        coordinator.request_stop()
    coordinator.join(threads, stop_grace_period_secs=10)
    return [seen, [thread.is_alive() for thread in threads]]

differing = {}
for name, function in cases.items():
    ours, theirs = outcome(function, target), outcome(function, "")
    if ours != theirs:
        differing[name] = [ours, theirs]
print(json.dumps({"cases": len(cases), "differing": differing}))
"""
)

_SYNC = (
    _BEGIN
    + """
index = int(sys.argv[2])
x, y = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 1])
with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{index}")):
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", [2, 1], initializer=tf.zeros_initializer())
    e = tf.get_variable("e", [3, 1], initializer=tf.zeros_initializer())
    rows = tf.nn.embedding_lookup(e, tf.cast(x[:, 0], tf.int32))
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + rows - y))
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(.05), 2, total_num_replicas=2)
    train = optimizer.minimize(loss, global_step=step)
hook = optimizer.make_session_run_hook(index == 0)
with tf.device("/job:ps/task:0"):
    gates = [tf.FIFOQueue(1, tf.int32, [[]], shared_name=name) for name in ("chief_is_up", "worker_is_up")]
mine, other = gates[index], gates[1 - index]
arrive, wait = mine.enqueue(0), other.dequeue()
if index:
    with tf.Session(target) as session:
        session.run(wait)
stop = tf.train.StopAtStepHook(last_step=30)
numbers = np.random.RandomState(index)
losses = []
with tf.train.MonitoredTrainingSession(target, index == 0, hooks=[hook, stop], stop_grace_period_secs=1) as session:
    session.run(arrive)
    if not index:
        session.run(wait)
    while not session.should_stop():
        inputs = numbers.randint(0, 3, (8, 2)).astype(np.float32)
        losses.append(float(session.run([loss, train], {x: inputs, y: inputs.sum(1, keepdims=True)})[0]))
print(json.dumps(losses))
"""
)

_CROSSING = (
    _BEGIN
    + """
from tensorflow.python.ops import list_ops
answers = []
with tf.Session(target) as session:
    for here, there in (("/job:worker", "/job:ps"), ("/job:ps", "/job:worker")):
        with tf.device(here):
            made = list_ops.tensor_list_reserve([2], 3, tf.float32)
            made = list_ops.tensor_list_set_item(made, 1, tf.constant([1., 2.]))
            strings = list_ops.tensor_list_from_tensor(tf.constant(["a", "b"]), element_shape=[])
        with tf.device(there):
            back = list_ops.tensor_list_stack(tf.identity(made), tf.float32)
            shape = list_ops.tensor_list_element_shape(tf.identity(made), tf.int32)
            letters = list_ops.tensor_list_stack(tf.identity(strings), tf.string)
        found = session.run([back, shape, letters])
        answers.append([found[0].tolist(), found[1].tolist(), [letter.decode() for letter in found[2]]])
print(json.dumps(answers))
"""
)


@pytest.mark.thorough
def test_every_case_gives_what_tensorflow_gives(ask_tensorflow: Callable[..., Any]) -> None:
    with static_cluster(ps=1, worker=1) as tasks:
        answer = ask_tensorflow(_CASES, tasks.target("worker", 0))
    assert answer["differing"] == {}
    assert answer["cases"] == 12


@pytest.mark.thorough
def test_two_replicas_train_in_step(ask_tensorflow: Callable[..., Any]) -> None:
    with static_cluster(ps=1, worker=2) as tasks, ThreadPoolExecutor(2) as clients:
        targets = [tasks.target("worker", index) for index in range(2)]
        losses = list(clients.map(ask_tensorflow, [_SYNC] * 2, targets, ["0", "1"]))
    # A step takes two gradients and gives two tokens, and the faster replica may take both: only the sum is fixed.
    assert sum(map(len, losses)) >= 2 * 30 - 2
    assert min(each[-1] for each in losses if each) < max(each[0] for each in losses if each) / 5


@pytest.mark.thorough
def test_lists_cross_between_our_tasks_and_tensorflows(ask_tensorflow: Callable[..., Any]) -> None:
    theirs = [("ps", 0)]
    with static_cluster(absent=theirs, ps=1, worker=1) as tasks, tensorflow_servers("2.21", tasks.addresses, theirs):
        answers = ask_tensorflow(_CROSSING, tasks.target("worker", 0))
    assert answers == [[[[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]], [2], ["a", "b"]]] * 2
