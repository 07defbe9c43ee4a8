"""Two workers train an embedding variable in parts on two parameter servers: no update is lost, and its checkpoint is
read on another number of tasks.

The gradient of each looked-up number is one, so that what a row has become is known from how often it was named.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.background_cluster import background_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tenfold_services.background import BackgroundServer

WIDTH, STEPS, RATE = 4, 40, 1 / 64
#: Seconds within which the workers must have ended.
DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[tuple[str, int], BackgroundServer]]:
    with background_cluster({"ps": 3, "worker": 2}) as servers:
        yield servers


class Trainer:
    """One worker's graph and session."""

    def __init__(self, target: str, index: int, parts: int, container: str) -> None:
        with tf.Graph().as_default() as graph, tf.container(container):
            setter = tf.train.replica_device_setter(ps_tasks=parts, worker_device=f"/job:worker/task:{index}")
            with tf.device(setter):
                divide = tf.fixed_size_partitioner(parts)
                table = tf.get_embedding_variable(
                    "table", WIDTH, initializer=tf.zeros_initializer(), partitioner=divide
                )
                self.ids = tf.placeholder(tf.int64, [None])
                self.rows = tf.nn.embedding_lookup(table, self.ids)
                step = tf.train.get_or_create_global_step()
                optimizer = tf.train.GradientDescentOptimizer(RATE)
                self.train = optimizer.minimize(tf.reduce_sum(self.rows), global_step=step)
            self.places = [part.device for part in table]
            self.counts = [part.total_count()[0] for part in table]
            self.init = tf.global_variables_initializer()
            self.saver = tf.train.Saver()
            with pytest.raises(ValueError, match="table/part_0 is saved by its own task and cannot be gathered"):
                tf.train.Saver(gather=True)
        self.session = tf.Session(target, graph=graph)

    def run(self, batches: list[Any], together: threading.Barrier) -> None:
        together.wait(DEADLINE_S)
        for ids in batches:
            self.session.run(self.train, {self.ids: ids})


def test_two_workers_and_two_parameter_servers(
    cluster: dict[tuple[str, int], BackgroundServer], tmp_path: Path
) -> None:
    choose = np.random.default_rng(3)
    # few, so that rows are shared, and too large for any table of rows
    known = choose.integers(-(1 << 62), 1 << 62, 300)
    batches = [[choose.choice(known, 32) for _ in range(STEPS)] for _ in range(2)]
    named = Counter(np.concatenate([*batches[0], *batches[1]]).tolist())
    keys = np.array([*named])
    expected = np.repeat(-RATE * np.array([[named[key]] for key in keys.tolist()]), WIDTH, axis=1)
    with contextlib.ExitStack() as stack:
        workers = [Trainer(cluster["worker", index].target, index, 2, "two") for index in range(2)]
        for worker in workers:
            stack.enter_context(worker.session)
        assert workers[0].places == ["/job:ps/task:0", "/job:ps/task:1"]
        workers[0].session.run(workers[0].init)
        together = threading.Barrier(2)
        threads = [
            threading.Thread(target=worker.run, args=(batches[index], together)) for index, worker in enumerate(workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
            assert not thread.is_alive()

        np.testing.assert_allclose(workers[1].session.run(workers[1].rows, {workers[1].ids: keys}), expected)
        counts = workers[1].session.run(workers[1].counts)
        assert min(counts) > 0
        assert sum(counts) == len(keys)
        path = workers[0].saver.save(workers[0].session, str(tmp_path / "model"))

    other = Trainer(cluster["worker", 1].target, 1, 3, "three")
    with other.session:
        other.saver.restore(other.session, path)
        assert sum(other.session.run(other.counts)) == len(keys)
        np.testing.assert_allclose(other.session.run(other.rows, {other.ids: keys}), expected)
