"""Small programs whose generated text test_generated_text.py keeps: between them, every kind of line.

Each is a function that builds its graph in the default one and returns (the steps to run after the initializers, the
feeds). A step is what `Session.run` takes; it is run three times, which is when eager fusion has swapped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable

#: What a program returns: fetches, and values of placeholders.
Steps = tuple[list[Any], dict[Any, Any]]
PROGRAMS: dict[str, Callable[[], Steps]] = {}


def program(build: Callable[[], Steps]) -> Callable[[], Steps]:
    PROGRAMS[build.__name__] = build
    return build


def _numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.linspace(-1.0, 2.0, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def _layer(x: Any, rows: int, columns: int, name: str) -> Any:
    weights = tf.get_variable(f"{name}_w", initializer=_numbers(rows, columns))
    bias = tf.get_variable(f"{name}_b", initializer=_numbers(columns))
    return tf.matmul(x, weights) + bias


def _trained(optimizer: Any) -> Steps:
    """A perceptron of one hidden layer and its update."""
    x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 2])
    hidden = tf.nn.relu(_layer(x, 4, 3, "hidden"))
    loss = tf.reduce_mean(tf.square(_layer(hidden, 3, 2, "out") - y))
    step = tf.train.get_or_create_global_step()
    return [[optimizer.minimize(loss, step), loss]], {x: _numbers(5, 4), y: _numbers(5, 2)}


@program
def arithmetic() -> Steps:
    x = tf.placeholder(tf.float32, [6])
    y = tf.constant(_numbers(6))
    return [[tf.exp(-x * x) * y + tf.tanh(x) / 3.0, tf.reduce_sum(tf.abs(x - y))]], {x: _numbers(6)}


@program
def scalars() -> Steps:
    x, n = tf.placeholder(tf.float32, []), tf.placeholder(tf.int32, [])
    rate = 0.1 * tf.pow(0.9, tf.floor(x / 3.0)) + tf.minimum(x, 1.0) - tf.sqrt(x)
    return [[rate, tf.floormod(n * 7 + 2, 5) // 2]], {x: 2.0, n: 9}


@program
def shared_subexpressions() -> Steps:
    x = tf.placeholder(tf.float32, [3, 3])
    twice = tf.matmul(x, x) + tf.matmul(x, x)
    return [[tf.identity(twice) * tf.identity(twice), tf.transpose(tf.transpose(x))]], {x: _numbers(3, 3)}


@program
def reductions() -> Steps:
    x = tf.placeholder(tf.float32, [4, 5])
    mean, variance = tf.nn.moments(x, [0])
    return [[tf.nn.softmax(x), (x - mean) * tf.rsqrt(variance + 1e-3), tf.reduce_max(x, 1)]], {x: _numbers(4, 5)}


@program
def gradient_descent() -> Steps:
    return _trained(tf.train.GradientDescentOptimizer(0.1))


@program
def momentum() -> Steps:
    return _trained(tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True))


@program
def adam() -> Steps:
    return _trained(tf.train.AdamOptimizer(0.01))


@program
def adagrad() -> Steps:
    return _trained(tf.train.AdagradOptimizer(0.1))


@program
def rmsprop() -> Steps:
    return _trained(tf.train.RMSPropOptimizer(0.01, momentum=0.5))


@program
def ftrl() -> Steps:
    return _trained(tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01))


@program
def clipped_gradients() -> Steps:
    x = tf.placeholder(tf.float32, [None, 4])
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=x, logits=_layer(x, 4, 4, "l")))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    clipped, norm = tf.clip_by_global_norm(gradients, 1.0)
    return [[optimizer.apply_gradients(zip(clipped, variables, strict=True)), norm]], {x: np.abs(_numbers(3, 4))}


@program
def convolution() -> Steps:
    images = tf.placeholder(tf.float32, [None, 8, 8, 1])
    filters = tf.get_variable("filters", initializer=_numbers(3, 3, 1, 2))
    pooled = tf.nn.max_pool(
        tf.nn.relu(tf.nn.conv2d(images, filters, [1, 1, 1, 1], "SAME")), [1, 2, 2, 1], [1, 2, 2, 1], "VALID"
    )
    loss = tf.reduce_mean(_layer(tf.reshape(pooled, [-1, 32]), 32, 2, "out"))
    return [[tf.train.GradientDescentOptimizer(0.1).minimize(loss), loss]], {images: _numbers(2, 8, 8, 1)}


@program
def batch_normalization() -> Steps:
    x = tf.placeholder(tf.float32, [4, 3])
    y = tf.layers.batch_normalization(x, training=True)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return [[tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y * y))]], {x: _numbers(4, 3)}


@program
def embeddings() -> Steps:
    ids = tf.placeholder(tf.int64, [None])
    table = tf.get_variable("table", initializer=_numbers(10, 3))
    loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids)))
    return [[tf.train.AdamOptimizer(0.1).minimize(loss), loss]], {ids: np.array([1, 3, 1])}


@program
def resource_variables() -> Steps:
    with tf.variable_scope("scope", use_resource=True):
        return _trained(tf.train.AdamOptimizer(0.01))


@program
def assignments_in_order() -> Steps:
    a = tf.get_variable("a", initializer=_numbers(3))
    more = tf.assign_add(a, [1.0, 1.0, 1.0])
    with tf.control_dependencies([more]):
        after = tf.identity(a.read_value()) * 2.0
    return [[after, tf.scatter_update(a, [0], [5.0])]], {}


@program
def conditional() -> Steps:
    x = tf.placeholder(tf.float32, [])
    small = tf.cond(x < 1.0, lambda: tf.sin(x) + 1.0, lambda: x - 1.0)
    nested = tf.cond(x > 0.0, lambda: tf.cond(x > 5.0, lambda: x * 2.0, lambda: x * 3.0), lambda: small)
    return [[nested, small]], {x: 3.0}


@program
def conditional_gradient() -> Steps:
    x = tf.placeholder(tf.float32, [3])
    y = tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * x, lambda: tf.exp(x))
    return [tf.gradients(y, x)], {x: _numbers(3)}


@program
def conditional_of_many_operations() -> Steps:
    """Long enough for a look at whether the step was told to stop."""
    x = tf.placeholder(tf.float32, [2])

    def many() -> Any:
        value = x
        for number in range(70):
            value = tf.cos(value) if number % 2 else tf.matmul([value], tf.eye(2))[0]
        return value

    return [[tf.cond(tf.reduce_sum(x) > 0.0, many, lambda: x)]], {x: [1.0, 2.0]}


@program
def conditional_on_a_variable() -> Steps:
    """A Switch reads a reference as its data, and another one as what it looks at."""
    flag = tf.Variable(True, name="flag")
    v = tf.Variable([1.0, 2.0], name="v")
    chosen = tf.cond(flag, lambda: tf.identity(v) * 2.0, lambda: v + 1.0)
    return [[chosen, tf.assign(flag, tf.logical_not(flag))]], {}


@program
def case() -> Steps:
    x = tf.placeholder(tf.int32, [])
    branches = [(tf.equal(x, n), lambda n=n: tf.constant(n * 10)) for n in range(3)]
    return [[tf.case(branches, default=lambda: x, exclusive=True)]], {x: 2}


@program
def loop() -> Steps:
    x = tf.placeholder(tf.float32, [])
    return [tf.while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, v * 0.5 + x), [0, x])], {x: 1.5}


@program
def nested_loops() -> Steps:
    def outer(i: Any, total: Any) -> Any:
        inner = tf.while_loop(lambda j, v: j < i, lambda j, v: (j + 1, v + tf.to_float(j)), [0, 0.0])
        return i + 1, total + inner[1]

    return [tf.while_loop(lambda i, total: i < 4, outer, [0, tf.constant(0.0)])], {}


@program
def loop_gradient() -> Steps:
    x = tf.placeholder(tf.float32, [2])
    y = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * x + tf.sin(v)), [0, x])[1]
    return [[y, *tf.gradients(y, x)]], {x: _numbers(2)}


@program
def loop_with_branch() -> Steps:
    def body(i: Any, v: Any) -> Any:
        return i + 1, tf.cond(tf.equal(tf.floormod(i, 2), 0), lambda: v * 2.0, lambda: v + 1.0)

    return [tf.while_loop(lambda i, v: i < 6, body, [0, tf.constant(1.0)])], {}


@program
def recurrent() -> Steps:
    x = tf.placeholder(tf.float32, [2, 4, 3])
    outputs, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(3), x, dtype=tf.float32)
    loss = tf.reduce_mean(outputs) + tf.reduce_sum(state.h)
    return [[tf.train.GradientDescentOptimizer(0.1).minimize(loss), loss]], {x: _numbers(2, 4, 3)}


@program
def recurrent_of_lengths() -> Steps:
    x, lengths = tf.placeholder(tf.float32, [2, 4, 3]), tf.placeholder(tf.int32, [2])
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(3), x, lengths, dtype=tf.float32)
    return [[outputs]], {x: _numbers(2, 4, 3), lengths: [2, 4]}


@program
def tensor_arrays() -> Steps:
    x = tf.placeholder(tf.float32, [3, 2])
    given = tf.TensorArray(tf.float32, 3).unstack(x)
    made = tf.TensorArray(tf.float32, 3)
    body = lambda i, out: (i + 1, out.write(i, given.read(2 - i) * 2.0))  # noqa: E731
    _, made = tf.while_loop(lambda i, out: i < 3, body, [0, made])
    stacked = made.stack()
    return [[stacked, *tf.gradients(stacked, x)]], {x: _numbers(3, 2)}


@program
def queue() -> Steps:
    line = tf.FIFOQueue(10, tf.float32, [2])
    x = tf.placeholder(tf.float32, [2])
    with tf.control_dependencies([line.enqueue(x * 2.0)]):
        return [[line.dequeue() + 1.0, line.size()]], {x: _numbers(2)}


@program
def two_devices() -> Steps:
    x = tf.placeholder(tf.float32, [3])
    with tf.device("/cpu:0"):
        a = tf.exp(x) + 1.0
        b = tf.sin(x)
    with tf.device("/cpu:1"):
        c = a * 2.0 - tf.cos(b)
        d = tf.reduce_sum(b * b + b)
    with tf.device("/cpu:0"):
        return [[c + tf.tanh(d), a]], {x: _numbers(3)}


@program
def loop_over_two_devices() -> Steps:
    def body(i: Any, v: Any) -> Any:
        with tf.device("/cpu:1"):
            half = v * 0.5
        with tf.device("/cpu:0"):
            return i + 1, half + 1.0

    with tf.device("/cpu:0"):
        x = tf.placeholder(tf.float32, [2])
        end = tf.while_loop(lambda i, v: i < 3, body, [0, x])[1]
        w = tf.get_variable("w", initializer=_numbers(2))
        return [[tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(w * w * tf.stop_gradient(end))), end]], {
            x: [1.0, 2.0]
        }


@program
def functions_and_strings() -> Steps:
    names = tf.placeholder(tf.string, [None])
    lengths = tf.map_fn(lambda text: tf.strings.length(text), names, dtype=tf.int32)
    return [[lengths, tf.strings.join([names, names], "-")]], {names: ["a", "bcd"]}


@program
def loops_and_branches() -> Steps:
    """A loop in a branch, a branch in its body that a loop stands in, values from all frames around, and tails."""
    x, p = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.bool, [])
    w = tf.Variable([1.0, 2.0], name="w")

    def inner(i: Any, v: Any) -> Any:
        return tf.while_loop(lambda j, u: j < i, lambda j, u: (j + 1, u * x + w), [0, v])[1]

    def body(i: Any, v: Any, kept: Any) -> Any:
        return i + 1, tf.cond(tf.reduce_sum(v) > 1.0, lambda: inner(i, v), lambda: v + x), kept

    def looped() -> Any:
        return list(tf.while_loop(lambda i, v, kept: i < 3, body, [0, x, x * 2.0])[1:])

    chosen, kept = tf.cond(p, looped, lambda: [x - 1.0, x])
    swapped = tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, b, a), [0, x, chosen])[1:]
    return [[chosen, kept, *swapped]], {x: [0.5, 1.0], p: True}


@program
def loop_of_a_changing_variable() -> Steps:
    """A loop that reads a reference in each turn, and one whose stacks a branch pushes on."""
    x = tf.placeholder(tf.float32, [2])
    v = tf.Variable([1.0, 2.0], name="v")

    def counted(i: Any, total: Any) -> Any:
        with tf.control_dependencies([tf.assign_add(v, [1.0, 1.0])]):
            return i + 1, total + tf.identity(v)

    total = tf.while_loop(lambda i, total: i < 3, counted, [0, x], parallel_iterations=1)[1]
    branching = tf.while_loop(
        lambda i, a: i < 4,
        lambda i, a: (i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.sin(a) * x, lambda: tf.exp(a) + x)),
        [0, x],
    )[1]
    return [[total], [branching, *tf.gradients(branching, x)]], {x: [0.25, 0.5]}
