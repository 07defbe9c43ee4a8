"""AdamAsync beside its formulas: dense and by rows, reference and resource variables, embedding variables, saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def by_hand(gradient: Any, steps: int, rmsprop: bool = False) -> Any:
    w, m, v = np.ones(3), np.zeros(3), np.zeros(3)
    for t in range(1, steps + 1):
        v = 0.99 * v + 0.01 * gradient**2
        if rmsprop:
            m = 0.8 * m + 0.1 * gradient / np.sqrt(v + 1e-6)
            w = w - m
        else:
            m = 0.8 * m + 0.2 * gradient
            w = w - 0.1 * np.sqrt(1 - 0.99**t) / (1 - 0.8**t) * m / (np.sqrt(v) + 1e-6)
    return w


def optimizer(**more: Any) -> tf.train.AdamAsyncOptimizer:
    return tf.train.AdamAsyncOptimizer(0.1, 0.8, lambda: 0.99, 1e-6, **more)


G = np.array([0.5, -2.0, 3.0])


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_dense_gradient(use_resource: bool) -> None:
    var = tf.get_variable("v", initializer=tf.ones([3]), use_resource=use_resource)
    train = optimizer().minimize(tf.reduce_sum(var * G.astype(np.float32)))
    names = [each.op.name for each in tf.global_variables()]
    assert names == ["v", "v/AdamAsync", "v/AdamAsync_1", "v/AdamAsync_2", "v/AdamAsync_3"]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(4):
            session.run(train)

        np.testing.assert_allclose(session.run(var), by_hand(G, 4), rtol=1e-5)
        powers = session.run(tf.global_variables()[3:])
        np.testing.assert_allclose(powers, [0.8**5, 0.99**5], rtol=1e-5)


@pytest.mark.parametrize("rmsprop", [False, True])
@pytest.mark.parametrize("kind", ["reference", "resource", "embedding", "embedding in parts"])
def test_rows_of_a_sparse_gradient(kind: str, rmsprop: bool, tmp_path: Path) -> None:
    if kind.startswith("embedding"):
        divide = tf.fixed_size_partitioner(2) if "parts" in kind else None
        var = tf.get_embedding_variable("v", 3, initializer=tf.ones_initializer(), partitioner=divide)
    else:
        var = tf.get_variable("v", initializer=tf.ones([4, 3]), use_resource=kind == "resource")
    rows = tf.nn.embedding_lookup(var, tf.constant([1, 3], tf.int64))
    train = optimizer(apply_sparse_rmsprop=rmsprop).minimize(tf.reduce_sum(rows * G.astype(np.float32)))
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            session.run(train)
        np.testing.assert_allclose(session.run(rows), [by_hand(G, 2, rmsprop)] * 2, rtol=1e-5)
        path = saver.save(session, str(tmp_path / "model"))
    with tf.Session() as session:
        saver.restore(session, path)
        for _ in range(2):
            session.run(train)

        np.testing.assert_allclose(session.run(rows), [by_hand(G, 4, rmsprop)] * 2, rtol=1e-5)


def test_what_it_refuses() -> None:
    raw = tf.raw_ops
    var, two = (
        tf.get_variable(name, initializer=tf.ones(shape), use_resource=True) for name, shape in (("v", [3]), ("w", [2]))
    )
    one = tf.get_variable("one", initializer=0.5, use_resource=True)
    rates = {name: tf.constant(0.5) for name in ("lr", "beta1", "beta2", "epsilon")}

    def dense(m: Any, power: Any, **more: Any) -> Any:
        slots = {"m": m.handle, "v": var.handle, "beta1_power": power.handle, "beta2_power": one.handle}
        return raw.ResourceApplyAdamAsync(var=var.handle, **slots, **{**rates, "grad": tf.ones([3]), **more})

    calls = (
        (dense(two, one), r"do not have the same shape: \[3\], \[2\], \[3\], \[3\]"),
        (dense(var, one, grad=tf.ones([2])), r"do not have the same shape: \[3\], \[3\], \[3\], \[2\]"),
        (dense(var, two), r"beta1_power is not one number: \[2\]"),
        (dense(var, one, lr=tf.ones([2])), r"lr is not a scalar: \[2\]"),
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for call, text in calls:
            with pytest.raises(tf.errors.InvalidArgumentError, match=text):
                session.run(call)
        assert session.run([var, one])[0].tolist() == [1, 1, 1]


@pytest.mark.parametrize("use_resource", [False, True])
def test_rows_of_bfloat16_are_refused_with_what_to_do(use_resource: bool) -> None:
    """In it beta2 is 1, and the rate 0."""
    with tf.Graph().as_default():
        low = tf.get_variable("low", [2, 1], tf.bfloat16, tf.zeros_initializer(), use_resource=use_resource)
        loss = tf.reduce_sum(tf.cast(tf.nn.embedding_lookup(low, [1]), tf.float32))
        with pytest.raises(ValueError, match=r"no rows of variables of tf\.bfloat16, as low:0 is: keep it as float32"):
            tf.train.AdamAsyncOptimizer().minimize(loss)


@pytest.mark.parametrize("use_resource", [False, True])
def test_weights_of_bfloat16_have_slots_and_rates_of_float(use_resource: bool, tmp_path: Path) -> None:
    found, states = {}, {}
    for dtype in (tf.float32, tf.bfloat16):
        with tf.Graph().as_default(), tf.Session() as session:
            var = tf.get_variable("v", [3], dtype, tf.ones_initializer(), use_resource=use_resource)
            optimizer = tf.train.AdamAsyncOptimizer(0.01, 0.9, 0.999)
            train = optimizer.minimize(tf.reduce_sum(tf.cast(var, tf.float32) ** 2 * [1.0, 2.0, 4.0]))
            slots = [optimizer.get_slot(var, name) for name in ("m", "v", "beta1_power", "beta2_power")]
            saver = tf.train.Saver()
            session.run(tf.global_variables_initializer())
            for _ in range(20):
                session.run(train)
            found[dtype], states[dtype] = session.run([tf.cast(var, tf.float32), slots])
            path = saver.save(session, str(tmp_path / "model"))
            session.run(train)
            saver.restore(session, path)
            np.testing.assert_array_equal(session.run(tf.cast(var, tf.float32)), found[dtype])

    assert (found[tf.float32] < 0.85).all()
    np.testing.assert_allclose(found[tf.bfloat16], found[tf.float32], rtol=0.02)
    for low, full in zip(states[tf.bfloat16], states[tf.float32], strict=True):
        assert low.dtype == np.float32
        np.testing.assert_allclose(low, full, rtol=0.05)
    np.testing.assert_allclose(states[tf.bfloat16][2:], [0.9**21, 0.999**21], rtol=1e-5)


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("make", "dtype", "precision"),
    [
        (tf.train.AdamAsyncOptimizer, tf.float16, 0.004),
        (None, tf.float16, 0.004),
        (None, tf.bfloat16, 0.03),
    ],
)
def test_weights_of_half_types_are_trained_in_float(
    make: Any, dtype: Any, precision: float, sparse: bool, use_resource: bool
) -> None:
    found = {}
    for each in (tf.float32, dtype):
        with tf.Graph().as_default(), tf.Session() as session:
            step = tf.train.get_or_create_global_step()
            optimizer = tf.train.AdagradDecayOptimizer(0.1, step) if make is None else make(0.1)
            var = tf.get_variable("v", [3, 2], each, tf.ones_initializer(), use_resource=use_resource)
            rows = tf.nn.embedding_lookup(var, [2, 0]) if sparse else var
            train = optimizer.minimize(tf.reduce_sum(tf.cast(rows, tf.float32) * [1.0, 2.0]), global_step=step)
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(train)
            found[each] = session.run(var).astype(np.float32)

    np.testing.assert_allclose(found[dtype], found[tf.float32], rtol=precision)
    assert (found[dtype][0] < 0.9).all()


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
@pytest.mark.parametrize("make", [tf.train.AdamOptimizer, tf.train.AdamAsyncOptimizer])
def test_half_rows_of_embedding_variables_have_rates_of_float(make: Any, dtype: Any) -> None:
    found = {}
    for each in (tf.float32, dtype):
        with tf.Graph().as_default(), tf.Session() as session:
            var = tf.get_embedding_variable("v", 2, value_dtype=each, initializer=tf.ones_initializer())
            rows = tf.nn.embedding_lookup(var, tf.constant([2, 7, 2], tf.int64))
            train = make(0.1).minimize(tf.reduce_sum(tf.cast(rows, tf.float32) * [1.0, 2.0]))
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(train)
            found[each] = session.run(rows).astype(np.float32)

    np.testing.assert_allclose(found[dtype], found[tf.float32], rtol=0.03)
    assert (found[dtype] < 0.8).all()
