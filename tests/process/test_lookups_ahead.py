"""Tasks are killed (kill -9) while the lookups of the next batches run ahead of the step: `do_async_embedding`.

Two workers train asynchronously on two parameter servers. Each has ids of its own, one on each server, that all of its
batches have; a step takes 1 from their rows and adds 1 to a counter on the same server. So a row that a step is given
says which of this worker's updates it has, and counters say which it could have. What waited when a task died must not
come to a later step.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tenfold as tf
from support.task_processes import PATIENCE, Tasks, static_cluster

if TYPE_CHECKING:
    from pathlib import Path

SERVERS, WORKERS, CAPACITY, THREADS = 2, 2, 2, 2
#: Steps of both workers before a kill and behind it, and those between two checkpoints.
STEPS, SAVE_STEPS = 12, 5


class Worker:
    """One worker's program, and its thread."""

    def __init__(self, tasks: Tasks, index: int, folder: str) -> None:
        self._tasks, self.index, self._folder = tasks, index, folder
        self.graph = tf.Graph()
        setter = tf.train.replica_device_setter(ps_tasks=SERVERS, worker_device=f"/job:worker/task:{index}")
        with self.graph.as_default(), tf.device(setter):
            step = tf.train.get_or_create_global_step()
            own = [SERVERS * index + part for part in range(SERVERS)]
            others = np.random.default_rng(index).integers(1 << 20, 1 << 40, [64, 30])
            ids = np.concatenate([np.tile(own, [64, 1]), others], axis=1)
            data = tf.data.Dataset.from_tensor_slices(ids).repeat()
            batch = tf.data.make_one_shot_iterator(data).get_next()
            divide = tf.fixed_size_partitioner(SERVERS)
            table = tf.get_embedding_variable("v", 1, initializer=tf.zeros_initializer(), partitioner=divide)
            rows = tf.nn.embedding_lookup(table, batch)
            train = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(rows), global_step=step)
            counted = []
            for worker in range(WORKERS):
                for part in range(SERVERS):
                    with tf.device([*table][part].device):
                        count = tf.get_variable(f"count{worker}{part}", [], initializer=tf.zeros_initializer())
                    if worker == index:
                        with tf.control_dependencies([train]):
                            counted.append(tf.assign_add(count, 1.0))
            self.fetches = [rows[:SERVERS, 0], counted]
            with tf.control_dependencies(counted):
                self.step = tf.identity(step)
        self.config = tf.ConfigProto(operation_timeout_in_ms=int(PATIENCE * 1000))
        options = self.config.graph_options.optimizer_options
        options.do_async_embedding = True
        options.async_embedding_options.threads_num = THREADS
        options.async_embedding_options.capacity = CAPACITY
        #: Of each step, by part: how many updates of this worker its row lacked.
        self.lacked: list[list[float]] = []
        self.failed: list[BaseException] = []

    def train(self, stop: threading.Event, stepped: threading.Condition) -> None:
        try:
            with (
                self.graph.as_default(),
                tf.train.MonitoredTrainingSession(
                    master=self._tasks.target("worker", self.index),
                    is_chief=not self.index,
                    checkpoint_dir=self._folder,
                    save_checkpoint_steps=SAVE_STEPS,
                    save_checkpoint_secs=None,
                    save_summaries_steps=None,
                    log_step_count_steps=None,
                    config=self.config,
                    hooks=[tf.make_prefetch_hook()],
                ) as session,
            ):
                while not stop.is_set():
                    rows, counts = session.run(self.fetches)
                    with stepped:
                        self.lacked.append([count - 1 + row for count, row in zip(counts, rows.tolist(), strict=True)])
                        stepped.notify_all()
        except BaseException as error:
            self.failed.append(error)
            with stepped:
                stepped.notify_all()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "victims",
    [
        [("ps", 1)],
        pytest.param([("ps", 0), ("worker", 0), ("worker", 1), ("ps", 1), ("worker", 0)], marks=pytest.mark.thorough),
    ],
)
def test_what_waited_when_a_task_died_is_gone(tmp_path: Path, victims: list[tuple[str, int]]) -> None:
    stop, stepped = threading.Event(), threading.Condition()
    with static_cluster(ps=SERVERS, worker=WORKERS) as tasks:
        workers = [Worker(tasks, index, str(tmp_path)) for index in range(WORKERS)]
        threads = [threading.Thread(target=worker.train, args=(stop, stepped)) for worker in workers]

        def wait_for_steps() -> None:
            with stepped:
                last = [len(worker.lacked) + STEPS for worker in workers]
                stepped.wait_for(
                    lambda: (
                        any(worker.failed for worker in workers)
                        or all(len(worker.lacked) >= most for worker, most in zip(workers, last, strict=True))
                    ),
                    2 * PATIENCE,
                )
                assert not [error for worker in workers for error in worker.failed]
                assert all(len(worker.lacked) >= most for worker, most in zip(workers, last, strict=True)), "a hang"

        for thread in threads:
            thread.start()
        try:
            wait_for_steps()
            for victim in victims:
                tasks.kill(*victim)
                tasks.children.forget("/".join(map(str, victim)))
                tasks.start(victim)
                wait_for_steps()
        finally:
            stop.set()
            for thread in threads:
                thread.join(2 * PATIENCE)
        assert not any(thread.is_alive() for thread in threads)
    # a worker that dies may leave the rows of its last step changed, and not the counters
    torn = sum(job == "worker" for job, _ in victims)
    # a chief that comes back restores the newest checkpoint below the other worker, which goes on with what waits
    restored = victims.count(("worker", 0))
    for worker in workers:
        lacked = np.array(worker.lacked)
        assert lacked.max() <= CAPACITY + THREADS + torn
        of_before = np.count_nonzero(lacked < -torn, axis=0)
        assert of_before.max() <= worker.index * restored * (CAPACITY + THREADS + 1), (
            "rows of what was lost with a task"
        )
