"""Two workers train one partitioned table at the same time: no update of a row is lost, locked or not.

TensorFlow promises that for `use_locking=True` and for resource variables; our updates always hold the variable's lock.
The gradient of each looked-up number is one, so that what a row has become is known from how often it was named,
whatever the order.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.background_cluster import background_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

JOBS = {"ps": 2, "worker": 2}
ROWS, WIDTH, STEPS = 500, 16, 60
#: Seconds within which the workers of a test must have ended.
DEADLINE_S = 60.0
RATE = 1 / 64


@pytest.fixture(scope="module")
def targets() -> Iterator[list[str]]:
    """The workers of a cluster with two parameter servers."""
    with background_cluster(JOBS) as servers:
        yield [servers["worker", index].target for index in range(JOBS["worker"])]


class Trainer:
    """One worker's graph and session."""

    def __init__(self, target: str, index: int, name: str, optimizer: Callable[[], Any], use_resource: bool) -> None:
        with tf.Graph().as_default() as graph:
            setter = tf.train.replica_device_setter(ps_tasks=2, worker_device=f"/job:worker/task:{index}")
            with tf.device(setter), tf.variable_scope(name, use_resource=use_resource):
                table = tf.get_variable(
                    "table", [ROWS, WIDTH], initializer=tf.zeros_initializer(), partitioner=tf.fixed_size_partitioner(2)
                )
                self.ids = tf.placeholder(tf.int64, [None])
                looked_up = tf.nn.embedding_lookup(list(table), self.ids, partition_strategy="div")
                chosen = optimizer()
                self.train = chosen.minimize(tf.reduce_sum(looked_up))
            self.table = tf.concat(list(table), 0)
            slots = [chosen.get_slot(part, slot) for slot in chosen.get_slot_names() for part in table]
            self.slots = tf.concat(slots, 0) if slots else tf.no_op()
            self.init = tf.global_variables_initializer()
        self.session = tf.Session(target, graph=graph)

    def run(self, batches: list[Any], together: threading.Barrier) -> None:
        together.wait(DEADLINE_S)
        for ids in batches:
            self.session.run(self.train, {self.ids: ids})


def train_together(targets: list[str], name: str, optimizer: Callable[[], Any], use_resource: bool, ids: Any) -> Any:
    """Both workers go through their batches, int64 [workers, steps, ids]: (the table, the slots)."""
    trainers = [Trainer(target, i, name, optimizer, use_resource) for i, target in enumerate(targets)]
    with contextlib.ExitStack() as stack:
        for trainer in trainers:
            stack.enter_context(trainer.session)
        trainers[0].session.run(trainers[0].init)
        failures: list[BaseException] = []
        together = threading.Barrier(len(trainers))

        def work(trainer: Trainer, batches: Any) -> None:
            try:
                trainer.run(list(batches), together)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=each) for each in zip(trainers, ids, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
        assert not failures, failures[0]
        assert not any(thread.is_alive() for thread in threads)
        return trainers[0].session.run([trainers[0].table, trainers[0].slots])


def batches(rows: str) -> Any:
    """Of each worker: the same few rows over and over, or rows of its own; none twice in a step."""
    choose = np.random.default_rng(4)
    found = np.empty((2, STEPS, 40), np.int64)
    for worker in range(2):
        pool = np.arange(200, 260) if rows == "same" else np.arange(worker, ROWS, 2)
        for step in range(STEPS):
            found[worker, step] = choose.choice(pool, 40, replace=False)
    return found


@pytest.mark.parametrize("rows", ["same", "disjoint"])
@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("use_locking", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_gradient_descent_loses_no_update(targets: list[str], rows: str, use_resource: bool, use_locking: bool) -> None:
    ids = batches(rows)
    name = f"sgd_{rows}_{use_resource}_{use_locking}"

    table, _ = train_together(
        targets, name, lambda: tf.train.GradientDescentOptimizer(RATE, use_locking), use_resource, ids
    )

    counts = np.bincount(ids.reshape(-1), minlength=ROWS)
    np.testing.assert_array_equal(table, np.repeat(-RATE * counts[:, None], WIDTH, 1))


@pytest.mark.parametrize("rows", ["same", "disjoint"])
@pytest.mark.parametrize("use_resource", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_adagrad_loses_no_update(targets: list[str], rows: str, use_resource: bool) -> None:
    ids = batches(rows)

    table, accumulator = train_together(
        targets, f"adagrad_{rows}_{use_resource}", lambda: tf.train.AdagradOptimizer(RATE, 1.0), use_resource, ids
    )

    counts = np.bincount(ids.reshape(-1), minlength=ROWS)
    np.testing.assert_array_equal(accumulator, np.repeat(1.0 + counts[:, None], WIDTH, 1))
    steps = np.cumsum(np.concatenate(([0], RATE / np.sqrt(1.0 + np.arange(1, counts.max() + 1)))))
    np.testing.assert_allclose(table, np.repeat(-steps[counts][:, None], WIDTH, 1), rtol=1e-5)


def test_a_row_named_twice_in_a_step_gets_both(targets: list[str]) -> None:
    """Summed beforehand for Adagrad, which squares the sum, and added one after the other by gradient descent."""
    ids = np.tile(np.int64([3, 3, 9]), (2, 10, 1))

    summed, accumulator = train_together(targets, "twice_a", lambda: tf.train.AdagradOptimizer(RATE, 1.0), False, ids)
    added, _ = train_together(targets, "twice_s", lambda: tf.train.GradientDescentOptimizer(RATE), False, ids)

    assert accumulator[3, 0] == 1 + 20 * 2**2
    assert accumulator[9, 0] == 1 + 20
    assert added[[3, 9], 0].tolist() == [-RATE * 40, -RATE * 20]
    assert np.count_nonzero(summed.any(axis=1)) == np.count_nonzero(added.any(axis=1)) == 2
