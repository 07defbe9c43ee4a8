"""Programs that update rows of embeddings, loop with TensorArrays and stacks, draw and check numbers on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.gpu_programs import ran_on, same_training, with_gpus

if TYPE_CHECKING:
    from collections.abc import Iterator

F = np.float32


@pytest.fixture(autouse=True)
def gpus() -> Iterator[None]:
    with with_gpus(1), tf.Graph().as_default():
        yield


@pytest.mark.parametrize("use_resource", [False, True])
def test_rows_of_an_embedding(use_resource: bool) -> None:
    def build() -> tuple[Any, Any]:
        ids = tf.placeholder(tf.int64, [4], name="ids")
        with tf.variable_scope("model", use_resource=use_resource):
            table = tf.get_variable("table", initializer=np.ones((5, 2), F))
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids) - 0.5))
        return [tf.train.AdagradOptimizer(0.1).minimize(loss), loss], [table]

    *steps, _ = same_training(build, [{"ids": np.array([1, 3, 1, 0])}] * 2)

    assert steps[-1][1] < steps[0][1]


def test_a_loop_and_its_gradient() -> None:
    def build() -> tuple[Any, Any]:
        x, w = tf.placeholder(tf.float32, [3], name="x"), tf.Variable(0.5)
        out = tf.scan(lambda before, each: before * w + each, x, initializer=tf.constant(1.0))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_sum(out))
        return [train, out], [w]

    same_training(build, [{"x": np.arange(3, dtype=F)}] * 2)


def test_dropout_and_noise() -> None:
    def build() -> tuple[Any, Any]:
        x, w = tf.placeholder(tf.float32, [3, 4], name="x"), tf.Variable(np.ones(4, F))
        y = tf.nn.dropout(x * w, keep_prob=0.5, seed=5) + tf.random_normal([3, 4], seed=2)
        loss = tf.reduce_sum(tf.square(tf.check_numerics(y, "y")))
        return [tf.train.AdamOptimizer(0.01).minimize(loss), loss, y], [w]

    *steps, _ = same_training(build, [{"x": np.ones((3, 4), F)}] * 3)

    assert not np.array_equal(steps[0][2], steps[1][2])


def test_what_runs_on_the_gpu() -> None:
    with tf.device("/gpu:0"):
        drawn = tf.random_uniform([3], name="drawn")
        array = tf.TensorArray(tf.float32, 3, name="array").unstack(tf.check_numerics(drawn, "no", name="checked"))
        packed = array.stack(name="packed")
    options, metadata = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata()
    with tf.Session() as session:
        session.run(packed, options=options, run_metadata=metadata)

    places = ran_on(metadata)
    kernels = [name for name in places if name.startswith(("drawn", "array/", "checked", "packed"))]
    assert kernels
    assert {places[name] for name in kernels} == {"GPU:0"}
