"""Graphs of some nodes each, as a client makes them: what the fuzzer's graphs begin as. One for each kind of node that
is treated in its own way on the way from a GraphDef to a step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tenfold as tf
from tenfold_core import tensor_util
from tenfold_protos.master_pb2 import RunStepRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenfold_protos.graph_pb2 import GraphDef

#: What to fetch, what to run, what to feed.
_Step = tuple[list[Any], list[Any], dict[Any, Any]]


def _arithmetic() -> _Step:
    x = tf.placeholder(tf.float32, [2, None], name="x")
    y = tf.nn.relu(tf.matmul(x, tf.constant([[1.0], [2.0]]))) + 1.0
    return [y, tf.reduce_mean(y), tf.shape(x)], [], {x: np.ones((2, 2), np.float32)}


def _training() -> _Step:
    w, slot = tf.Variable(tf.ones([2, 1]), name="w"), tf.Variable(tf.zeros([2, 1]), name="slot")
    value = w.initialized_value()
    loss = tf.reduce_sum((tf.matmul([[1.0, 2.0]], value) - 1.0) ** 2)
    grad = tf.gradients(loss, value)[0]
    with tf.control_dependencies([tf.global_variables_initializer()]):
        train = tf.raw_ops.ApplyMomentum(var=w._ref(), accum=slot._ref(), lr=0.1, grad=grad, momentum=0.9)
    return [loss, train], [train.op], {}


def _resources() -> _Step:
    w = tf.get_variable("w", [3], use_resource=True, initializer=tf.zeros_initializer())
    with tf.control_dependencies([w.initializer]):
        add = w.assign_add([1.0, 2.0, 3.0])
    with tf.control_dependencies([add]):
        return [tf.gather(w.read_value(), [0, 2])], [add], {}


def _branches() -> _Step:
    a = tf.placeholder_with_default(3.0, [], name="a")
    chosen = tf.cond(a > 2.0, lambda: a * 2.0, lambda: tf.reduce_sum(tf.fill([2], a)))
    return [chosen, tf.case([(a < 1.0, lambda: a), (a < 5.0, lambda: -a)], default=lambda: a + 1.0)], [], {a: 1.0}


def _loop() -> _Step:
    total = tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s + tf.cast(i, tf.float32)), [0, tf.constant(1.0)])
    nested = tf.while_loop(lambda i: i < 3, lambda i: tf.while_loop(lambda j: j < i, lambda j: j + 1, [i]) + 1, [0])
    return [total[1], nested], [], {}


def _gradient_of_a_loop() -> _Step:
    x = tf.constant([1.0, 2.0])
    y = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * x), [0, x])[1]
    return [tf.gradients(y, x)[0]], [], {}


def _arrays() -> _Step:
    array = tf.TensorArray(tf.float32, size=3, dynamic_size=True)
    array = array.unstack([1.0, 2.0, 3.0]).write(3, 4.0)
    mapped = tf.map_fn(lambda v: v * v, array.stack())
    raw = tf.raw_ops
    held = raw.TensorListFromTensor(tensor=tf.ones([2, 2]), element_shape=[2])
    item = raw.TensorListGetItem(input_handle=held, index=1, element_shape=[2], element_dtype=tf.float32)
    return [mapped, array.read(0), item], [], {}


def _queues() -> _Step:
    queue = tf.FIFOQueue(2, [tf.float32, tf.string], shapes=[(), ()])
    with tf.control_dependencies([queue.enqueue([1.0, "a"])]):
        out = queue.dequeue()
    accumulator = tf.ConditionalAccumulator(tf.float32, shape=())
    with tf.control_dependencies([accumulator.apply_grad(2.0, local_step=9)]):
        taken = accumulator.take_grad(1)
    return [*out, taken, queue.size()], [], {}


def _tables() -> _Step:
    keys = tf.constant(["a", "b"])
    table = tf.contrib.lookup.HashTable(tf.contrib.lookup.KeyValueTensorInitializer(keys, tf.constant([1, 2])), -1)
    with tf.control_dependencies([table.init]):
        return [table.lookup(tf.constant(["b", "c"]))], [], {}


def _strings() -> _Step:
    text = tf.placeholder(tf.string, [None], name="text")
    parts = tf.string_split(text, ",")
    numbers = tf.string_to_number(parts.values)
    joined = tf.reduce_join(tf.as_string(numbers), 0, separator="+")
    return [numbers, joined, tf.regex_replace(text, "(a)", r"\1b")], [], {text: np.array([b"1,2", b"3"], object)}


def _pictures() -> _Step:
    image = tf.reshape(tf.range(48.0), [1, 4, 4, 3])
    filters = tf.ones([2, 2, 3, 2])
    y = tf.nn.max_pool(tf.nn.conv2d(image, filters, [1, 1, 1, 1], "SAME"), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    return [y, tf.image.resize_bilinear(image, [2, 2])], [], {}


def _shapes() -> _Step:
    x = tf.range(24)
    y = tf.transpose(tf.reshape(x, [2, 3, 4]), [2, 0, 1])[1:, ::-1, tf.newaxis]
    a, b = tf.split(tf.concat([y, y], 1), 2, axis=1)
    s = tf.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 2])
    stitched = tf.dynamic_stitch([[0, 2], [1]], [[1, 3], [2]])
    return [tf.stack([a, b]), tf.unique(x % 3)[0], tf.sparse_tensor_to_dense(s), stitched, tf.where(x > 20)], [], {}


def _randoms() -> _Step:
    drawn = tf.multinomial([[0.0, 1.0]], 3)
    return [tf.random_normal([3], seed=1), tf.random_shuffle([1, 2, 3], seed=2), drawn], [], {}


def _two_devices() -> _Step:
    with tf.device("/job:ps/task:0/cpu:0"):
        w = tf.Variable(1.0, name="w")
    with tf.device("/job:worker/task:0"):
        grown = w.assign_add(tf.cond(tf.constant(True), lambda: 1.0, lambda: 2.0))
    return [grown + 1.0], [w.initializer], {}


def _function() -> GraphDef:
    """A graph with a function, which TensorFlow 2's clients send: PartitionedCall, If and While of bodies."""
    graph = tf.GraphDef()
    graph.versions.producer = 134
    for name, op in (("square", "Mul"), ("less", "Less")):
        function = graph.library.function.add()
        function.signature.name = name
        function.signature.input_arg.add(name="x", type=tf.float32.as_datatype_enum)
        result = tf.bool if op == "Less" else tf.float32
        function.signature.output_arg.add(name="y", type=result.as_datatype_enum)
        body = function.node_def.add(name="body", op=op, input=["x", "limit:output:0" if op == "Less" else "x"])
        body.attr["T"].type = tf.float32.as_datatype_enum
        if op == "Less":
            limit = function.node_def.add(name="limit", op="Const")
            limit.attr["dtype"].type = tf.float32.as_datatype_enum
            limit.attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(50.0))
        function.ret["y"] = "body:z:0"
    start = graph.node.add(name="start", op="Const")
    start.attr["dtype"].type = tf.float32.as_datatype_enum
    start.attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(2.0))
    yes = graph.node.add(name="yes", op="Const")
    yes.attr["dtype"].type = tf.bool.as_datatype_enum
    yes.attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(True))
    call = graph.node.add(name="call", op="PartitionedCall", input=["start"])
    call.attr["f"].func.name = "square"
    branch = graph.node.add(name="branch", op="If", input=["yes", "start"])
    branch.attr["then_branch"].func.name = branch.attr["else_branch"].func.name = "square"
    branch.attr["Tcond"].type = tf.bool.as_datatype_enum
    loop = graph.node.add(name="loop", op="While", input=["start"])
    loop.attr["cond"].func.name, loop.attr["body"].func.name = "less", "square"
    loop.attr["T"].list.type.append(tf.float32.as_datatype_enum)
    for node in (call, branch):
        node.attr["Tin"].list.type.append(tf.float32.as_datatype_enum)
        node.attr["Tout"].list.type.append(tf.float32.as_datatype_enum)
    direct = graph.node.add(name="direct", op="square", input=["loop"])
    direct.attr["_noise"].i = 1
    return graph


_BUILDERS: tuple[Callable[[], _Step], ...] = (
    _arithmetic, _training, _resources, _branches, _loop, _gradient_of_a_loop, _arrays, _queues, _tables, _strings,
    _pictures, _shapes, _randoms, _two_devices,
)  # fmt: skip


def small_graphs() -> Iterator[tuple[GraphDef, RunStepRequest]]:
    """Each graph with a step of it that can be run."""
    for build in _BUILDERS:
        with tf.Graph().as_default() as graph:
            fetches, targets, feeds = build()
            step = RunStepRequest(
                fetch=[tensor.name for tensor in fetches], target=[operation.name for operation in targets]
            )
            for placeholder, value in feeds.items():
                proto = tensor_util.make_tensor_proto(value, placeholder.dtype)
                step.feed.add(name=placeholder.name).tensor.CopyFrom(proto)
            yield graph.as_graph_def(), step
    yield _function(), RunStepRequest(fetch=["call:0", "branch:0", "loop:0", "direct:0"])
