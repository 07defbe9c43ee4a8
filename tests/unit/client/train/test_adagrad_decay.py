"""AdagradDecay beside its formula: dense and by rows, each kind of variable, saved; what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

G = np.array([0.5, -2.0, 3.0])


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def by_hand(steps: int) -> Any:
    """Every two steps the accumulator loses half, and is 0.5 at least."""
    w, accum, times = np.ones(3), np.full(3, 0.5), 0
    for step in range(1, steps + 1):
        if step // 2 > times:
            accum, times = np.maximum(accum * 0.5, 0.5), times + 1
        accum = accum + G * G
        w = w - 0.1 * G / np.sqrt(accum)
    return w


def minimized(loss: Any, version: str = "") -> Any:
    step = tf.train.get_or_create_global_step()
    make = getattr(tf.train, "AdagradDecayOptimizer" + version)
    optimizer = make(0.1, step, 0.5, accumulator_decay_step=2, accumulator_decay_rate=0.5)
    return optimizer.minimize(loss, global_step=step)


@pytest.mark.parametrize("version", ["", "V2"])
@pytest.mark.parametrize("use_resource", [False, True])
def test_a_dense_gradient(use_resource: bool, version: str) -> None:
    var = tf.get_variable("v", initializer=tf.ones([3]), use_resource=use_resource)
    train = minimized(tf.reduce_sum(var * G.astype(np.float32)), version)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(7):
            session.run(train)

        np.testing.assert_allclose(session.run(var), by_hand(7), rtol=1e-5)


@pytest.mark.parametrize("version", ["", "V2"])
@pytest.mark.parametrize("kind", ["reference", "resource", "embedding", "embedding in parts"])
def test_rows_of_a_sparse_gradient(kind: str, version: str, tmp_path: Path) -> None:
    if kind.startswith("embedding"):
        divide = tf.fixed_size_partitioner(2) if "parts" in kind else None
        var = tf.get_embedding_variable("v", 3, initializer=tf.ones_initializer(), partitioner=divide)
    else:
        var = tf.get_variable("v", initializer=tf.ones([4, 3]), use_resource=kind == "resource")
    rows = tf.nn.embedding_lookup(var, tf.constant([1, 3, 1], tf.int64))
    weights = tf.constant([[0.25], [1.0], [0.75]])
    train = minimized(tf.reduce_sum(rows * G.astype(np.float32) * weights), version)
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train)
        path = saver.save(session, str(tmp_path / "model"))
    shapes = dict(tf.train.list_variables(path))
    counts = {
        name: shape for name, shape in shapes.items() if name.endswith(("AdagradDecay_1", "AdagradDecay_1-values"))
    }
    assert counts
    if version:
        assert all(shape[1:] in ([], [1]) for shape in counts.values()), "a number for each row"
    with tf.Session() as session:
        saver.restore(session, path)
        for _ in range(4):
            session.run(train)

        np.testing.assert_allclose(session.run(rows), [by_hand(7)] * 3, rtol=1e-5)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"initial_accumulator_value": 0.0}, "initial_accumulator_value must be positive: 0.0"),
        ({"accumulator_decay_step": 0}, "accumulator_decay_step must be positive: 0"),
        ({"accumulator_decay_rate": 1.0}, r"accumulator_decay_rate must be in \(0.0, 1.0\): 1.0"),
    ],
)
def test_arguments_without_a_meaning(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        tf.train.AdagradDecayOptimizer(0.1, tf.train.get_or_create_global_step(), **given)


def test_what_the_kernels_refuse() -> None:
    var, two, table = (
        tf.get_variable(name, initializer=tf.ones(shape), use_resource=True)
        for name, shape in (("v", [3]), ("w", [2]), ("t", [4, 3]))
    )
    times, of_rows = (
        tf.get_variable(name, shape, tf.int64, tf.zeros_initializer(), use_resource=True)
        for name, shape in (("n", [3]), ("r", [4, 3]))
    )
    scalars = {name: tf.constant(0.5) for name in ("lr", "accum_decay_rate", "accum_baseline")}
    scalars |= {name: tf.constant(1, tf.int64) for name in ("accum_decay_step", "global_step")}

    def dense(accum: Any, **more: Any) -> Any:
        given = {**scalars, "grad": tf.ones([3]), **more}
        variables = {"var": var.handle, "accum": accum.handle, "accum_decay_power": times.handle}
        return tf.raw_ops.ResourceApplyAdagradDecay(**variables, **given)

    sparse = tf.raw_ops.ResourceSparseApplyAdagradDecay(
        var=table.handle,
        accum=table.handle,
        accum_decay_power=of_rows.handle,
        grad=tf.ones([1, 3]),
        indices=[4],
        **scalars,
    )
    calls = (
        (dense(two), r"var, accum, grad do not have the same shape: \[3\], \[2\], \[3\]"),
        (dense(var, lr=tf.ones([2])), r"lr is not a scalar: \[2\]"),
        (dense(var, accum_decay_step=tf.constant(0, tf.int64)), "accum_decay_step must be positive, not 0"),
        (sparse, "Index 4 at offset 0 in indices is out of range"),
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for call, text in calls:
            with pytest.raises(tf.errors.InvalidArgumentError, match=text):
                session.run(call)
