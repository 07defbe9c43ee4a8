"""Training gives the same losses and the same weights whether programs are fused or not, on one task and on two.

Bit for bit: the models use no function of the C library in a fused run, and no sum of a whole array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.background_cluster import background_cluster

if TYPE_CHECKING:
    from pathlib import Path

STEPS = 8


def train(target: str, optimizer: tf.train.Optimizer, ps: str) -> tuple[list[float], list[np.ndarray[Any, Any]]]:
    """(losses, final weights) of two dense layers over 32 points, weights on `ps`."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((32, 6)).astype(np.float32)
    classes = (points[:, 0] > points[:, 1]).astype(np.int64)
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.float32, [None, 6]), tf.placeholder(tf.int64, [None])
        hidden, width, variables = x, 6, []
        with tf.device(ps):
            for layer, size in enumerate((8, 8, 2)):
                initial = rng.standard_normal((width, size)).astype(np.float32)
                variables.append(tf.get_variable(f"w{layer}", initializer=initial))
                variables.append(tf.get_variable(f"b{layer}", initializer=np.zeros(size, np.float32)))
                width = size
        for layer in range(3):
            hidden = tf.nn.bias_add(tf.matmul(hidden, variables[2 * layer]), variables[2 * layer + 1])
            if layer < 2:
                hidden = tf.nn.relu(hidden * 2.0 - hidden)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=hidden)
        loss = tf.reduce_mean(losses)
        train_op = optimizer.minimize(loss)
        with tf.Session(target) as session:
            session.run(tf.global_variables_initializer())
            # the loss of before the step: the train op changes what a loss fetched beside it would read
            history = []
            for _ in range(STEPS):
                history.append(float(session.run(loss, {x: points, y: classes})))
                session.run(train_op, {x: points, y: classes})
            return history, [np.asarray(value) for value in session.run(variables)]


OPTIMIZERS = {
    "GradientDescent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "Momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "Adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "Adam": lambda: tf.train.AdamOptimizer(0.01),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(
    ("jobs", "ps"),
    [({"worker": 1}, "/job:worker/task:0"), ({"ps": 1, "worker": 1}, "/job:ps/task:0")],
    ids=["one task", "with a parameter server"],
)
def test_fused_training_is_the_same_training(
    jobs: dict[str, int],
    ps: str,
    optimizer: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    # one folder for all tests of this file: what one test compiled the next one loads
    monkeypatch.setenv("TENFOLD_CACHE_DIR", str(_cache(tmp_path_factory)))
    results = []
    for mode in ("off", "eager"):
        monkeypatch.setenv("TENFOLD_FUSION", mode)
        with background_cluster(jobs) as servers:
            results.append(train(servers["worker", 0].target, OPTIMIZERS[optimizer](), ps))
    (plain_losses, plain_weights), (fused_losses, fused_weights) = results
    assert plain_losses[0] > plain_losses[-1]
    assert fused_losses == plain_losses
    for plain, fused in zip(plain_weights, fused_weights, strict=True):
        np.testing.assert_array_equal(fused, plain)


def _cache(factory: pytest.TempPathFactory) -> Path:
    folder = factory.getbasetemp() / "fused"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
