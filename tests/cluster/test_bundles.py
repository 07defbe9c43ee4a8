"""Tensors of many variables that cross together give the bits of those that cross alone, and nothing waits for more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.background_cluster import background_cluster
from tenfold_compiler.graph.bundles import LEAST
from tenfold_services.master import client_graph
from tenfold_services.rpc.link_worker import LinkWorker

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS = 5
COLUMNS = LEAST + 1
WORKER = "/job:worker/task:0"
WITH_GRAPHS = tf.RunOptions(output_partition_graphs=True)


@pytest.fixture(scope="module")
def master() -> Iterator[str]:
    """The target of a worker with two parameter servers."""
    with background_cluster({"ps": 2, "worker": 1}) as servers:
        yield servers["worker", 0].target


def bundles_of(metadata: Any) -> dict[str, int]:
    """Task → how many bundles it makes."""
    made = [node.device for part in metadata.partition_graphs for node in part.node if node.op == "_Bundle"]
    return {task: sum(task in device for device in made) for task in ("job:ps", "job:worker")}


def lookups(resource: bool, strategy: str, size: Any) -> tuple[list[Any], Any]:
    """Rows of columns whose tables have two parts, among them bags of ids, and the ids."""
    ids = tf.placeholder(tf.int64, [None, COLUMNS])
    rows = []
    for number, each in enumerate(tf.unstack(ids, axis=1)):
        table = tf.get_variable(
            f"t{number}",
            [20 + number, 4],
            initializer=tf.random_normal_initializer(seed=number + 1),
            partitioner=tf.fixed_size_partitioner(2),
            use_resource=resource,
        )
        if number % 3 == 2:
            keys = tf.SparseTensor(tf.where(tf.greater_equal(ids[:, :1], 0)), each, [size, 1])
            rows.append(tf.nn.embedding_lookup_sparse(table, keys, None, strategy, combiner="mean"))
        else:
            rows.append(tf.nn.embedding_lookup(table, each, strategy))
    return rows, ids


def trained(
    master: str, resource: bool = False, strategy: str = "div", optimizer: Any = None
) -> tuple[list[np.ndarray], dict[str, int]]:
    """Losses, tables and slots of some steps, and how many bundles a step makes."""
    optimizer = optimizer or (lambda: tf.train.AdagradOptimizer(0.1))
    setter = tf.train.replica_device_setter(ps_tasks=2, worker_device=WORKER)
    choose = np.random.default_rng(3)
    with tf.Graph().as_default(), tf.device(setter):
        size = tf.placeholder(tf.int64, [])
        rows, ids = lookups(resource, strategy, size)
        loss = tf.reduce_sum(tf.square(tf.concat(rows, 1) - 0.5), axis=1)
        train = optimizer().minimize(loss)
        init = tf.global_variables_initializer()
        metadata, found = tf.RunMetadata(), []
        with tf.Session(master) as session:
            session.run(init)
            for step in range(STEPS):
                count = (7, 0, 1, 30, 12)[step]
                feeds = {ids: choose.integers(0, 20, (count, COLUMNS)), size: count}
                found.append(session.run([loss, train], feeds, WITH_GRAPHS, metadata)[0])
            found += session.run(tf.global_variables())
    return found, bundles_of(metadata)


def check_equal(mine: list[np.ndarray], other: list[np.ndarray]) -> None:
    assert len(mine) == len(other)
    for a, b in zip(mine, other, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize(
    ("resource", "strategy", "optimizer"),
    [
        (False, "div", lambda: tf.train.AdagradOptimizer(0.1)),
        (True, "div", lambda: tf.train.AdamOptimizer(0.01)),
        (False, "mod", lambda: tf.train.FtrlOptimizer(0.1)),
        (True, "mod", lambda: tf.train.MomentumOptimizer(0.1, 0.9)),
        (False, "mod", lambda: tf.train.GradientDescentOptimizer(0.1)),
    ],
)
def test_a_training_is_the_same_to_the_bit(
    master: str, resource: bool, strategy: str, optimizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, made = trained(master, resource, strategy, optimizer)
    monkeypatch.setattr(client_graph, "find_bundles", lambda graph, may_view: [])
    apart, none = trained(master, resource, strategy, optimizer)

    assert made["job:ps"] >= 2
    assert made["job:worker"] >= 4
    assert none == {"job:ps": 0, "job:worker": 0}
    check_equal(together, apart)


def test_tasks_of_a_release_that_knows_no_bundles_get_tensors_one_by_one(
    master: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, _ = trained(master)
    can = LinkWorker.can
    monkeypatch.setattr(
        LinkWorker, "can", lambda self, ability: "ps/replica:0/task:1" in self.task and can(self, ability)
    )
    apart, made = trained(master)

    assert made == {"job:ps": 1, "job:worker": 2}, "to and from one of the two alone"
    check_equal(together, apart)


def test_ids_that_come_of_rows_by_a_queue_do_not_wait_for_themselves(master: str) -> None:
    """Ids of half of the columns come out of a queue into which the same step puts rows of the other half."""
    setter = tf.train.replica_device_setter(ps_tasks=2, worker_device=WORKER)
    with tf.Graph().as_default(), tf.device(setter):
        rows, ids = lookups(False, "div", tf.constant(3, tf.int64))
        with tf.device(WORKER):
            queue = tf.FIFOQueue(2 * COLUMNS, [tf.int64], [[3]])
            put = [queue.enqueue([tf.to_int64(tf.abs(found[:, 0])) % 4]) for found in rows]
            taken = [queue.dequeue() for _ in rows]
        tables = [tf.get_variable(f"more{n}", [4, 2], initializer=tf.ones_initializer()) for n in range(COLUMNS)]
        more = [tf.nn.embedding_lookup(table, key) for table, key in zip(tables, taken, strict=True)]
        init = tf.global_variables_initializer()
        with tf.Session(master, config=tf.ConfigProto(operation_timeout_in_ms=60_000)) as session:
            session.run(init)
            metadata = tf.RunMetadata()
            given = {ids: np.zeros((3, COLUMNS), np.int64)}
            found = session.run([more, put], given, WITH_GRAPHS, metadata)[0]

    assert bundles_of(metadata) == {"job:ps": 2, "job:worker": 2}
    assert [each.tolist() for each in found] == [[[1, 1]] * 3] * COLUMNS


def test_an_id_that_is_not_there_is_named(master: str) -> None:
    setter = tf.train.replica_device_setter(ps_tasks=2, worker_device=WORKER)
    with tf.Graph().as_default(), tf.device(setter):
        rows, ids = lookups(False, "mod", tf.constant(1, tf.int64))
        init = tf.global_variables_initializer()
        with tf.Session(master) as session:
            session.run(init)
            wrong = np.zeros((1, COLUMNS), np.int64)
            wrong[0, 4] = 24
            said = r"indices\[0\] = 12 is not in \[0, 12\)\s+\[\[{{node embedding_lookup_3/GatherV2}}"
            with pytest.raises(tf.errors.InvalidArgumentError, match=said):
                session.run(rows, {ids: wrong})
            assert len(session.run(rows, {ids: np.zeros((1, COLUMNS), np.int64)})) == COLUMNS


def test_a_partial_run_gets_its_rows_one_by_one(master: str) -> None:
    setter = tf.train.replica_device_setter(ps_tasks=2, worker_device=WORKER)
    with tf.Graph().as_default(), tf.device(setter):
        keys = [tf.placeholder(tf.int64, [None]) for _ in range(COLUMNS)]
        tables = [tf.get_variable(f"t{n}", [4, 2], initializer=tf.ones_initializer()) for n in range(COLUMNS)]
        rows = [tf.nn.embedding_lookup(table, key) for table, key in zip(tables, keys, strict=True)]
        init = tf.global_variables_initializer()
        with tf.Session(master) as session:
            session.run(init)
            run = session.partial_run_setup(rows, keys)
            for key, row in zip(keys, rows, strict=True):
                assert session.partial_run(run, row, {key: [3]}).tolist() == [[1, 1]]
