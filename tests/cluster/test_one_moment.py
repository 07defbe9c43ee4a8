"""What one parameter server saves is of one moment, while workers train it without waiting for each other.

Each worker has rows and elements of its own, and counts its steps in all of them in one order: a table and its slot, a
reference variable, a second table, a resource variable, a third table. So at any moment each has the count of the one
before it, or one less, and the last is at most one step behind the first.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.background_cluster import background_cluster
from tenfold.train.checkpoint_utils import load_checkpoint
from tenfold.train.incremental_saver import SUB_INCR_CKPT_DIR, _get_incremental_saver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tenfold_services.background import BackgroundServer

WORKERS = 2
#: Saves beside training, and steps that each worker may make for each of them.
SAVES, STEPS = 24, 12
#: Rows beside those that count: exporting a table takes a while.
OTHERS = 20_000
DEADLINE_S = 120.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[tuple[str, int], BackgroundServer]]:
    with background_cluster({"ps": 1, "worker": WORKERS}) as servers:
        yield servers


class Counting:
    """One worker's graph and session."""

    def __init__(self, target: str, index: int) -> None:
        with tf.Graph().as_default() as graph:
            setter = tf.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{index}")
            with tf.device(setter):
                tables = [
                    tf.get_embedding_variable(f"table_{i}", 4, initializer=tf.zeros_initializer()) for i in range(3)
                ]
                plain = tf.get_variable("plain", [WORKERS, 4], tf.float32, tf.zeros_initializer(), use_resource=False)
                resource = tf.get_variable(
                    "resource", [WORKERS, 4], tf.float32, tf.zeros_initializer(), use_resource=True
                )
                step = tf.train.get_or_create_global_step()
                optimizer = tf.train.AdagradOptimizer(1.0, initial_accumulator_value=1.0)
                mine, ones = tf.constant([index], tf.int64), tf.ones([1, 4])
                slices = [tf.IndexedSlices(ones, mine) for _ in tables]
                many = tf.range(10, 10 + OTHERS, dtype=tf.int64)
                self.fill = [tf.nn.embedding_lookup(table, many) for table in tables]
                count: list[Any] = []
                for i, table in enumerate(tables):
                    for variable in (plain, resource)[i - 1 : i] if i else ():
                        with tf.control_dependencies(count):
                            count = [tf.scatter_add(variable, [index], ones)]
                    with tf.control_dependencies(count):
                        count = [optimizer.apply_gradients([(slices[i], table)])]
                with tf.control_dependencies(count):
                    self.train = tf.assign_add(step, 1).op
            self.saver = tf.train.Saver(incremental_save_restore=True, max_to_keep=None)
            self.increments = _get_incremental_saver(True, self.saver)
            self.init = tf.global_variables_initializer()
        self.session = tf.Session(target, graph=graph)


def counts(prefix: str, worker: int, known: dict[str, float]) -> list[float]:
    """How often each part has been counted, in their order. A row that an increment lacks is as it was `known`."""
    reader, found = load_checkpoint(prefix), []
    for i in range(3):
        if i:
            found.append(float(reader.get_tensor(("plain", "resource")[i - 1])[worker, 0]))
        of_both = []
        for name in (f"table_{i}", f"table_{i}/Adagrad"):
            kind = "-sparse_incr_" if reader.has_tensor(f"{name}-sparse_incr_keys") else "-"
            at = np.flatnonzero(reader.get_tensor(f"{name}{kind}keys") == worker)
            if at.size:
                known[name] = float(reader.get_tensor(f"{name}{kind}values")[at[0], 0])
            of_both.append(known.get(name))
        weight, accumulator = of_both
        number = 0.0 if accumulator is None else accumulator - 1
        assert weight == (None if accumulator is None else curve(int(number))), (
            f"{prefix}: weights and slots of table_{i}"
        )
        found.append(number)
    return found


def curve(steps: int) -> float:
    weight = np.float32(0)
    for n in range(steps):
        weight -= np.float32(1) / np.sqrt(np.float32(n + 2))
    return float(weight)


def test_tables_and_variables_of_one_server(cluster: dict[tuple[str, int], BackgroundServer], tmp_path: Path) -> None:
    workers = [Counting(cluster["worker", index].target, index) for index in range(WORKERS)]
    failed: list[BaseException] = []
    may_step = [threading.Semaphore(0) for _ in workers]

    def run(index: int) -> None:
        worker = workers[index]
        try:
            for _ in range(SAVES * STEPS):
                assert may_step[index].acquire(timeout=DEADLINE_S)
                worker.session.run(worker.train)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(WORKERS)]
    saved = []
    with workers[0].session as session, workers[1].session:
        session.run(workers[0].init)
        session.run(workers[0].fill)
        for thread in threads:
            thread.start()
        for number in range(SAVES + 1):
            if number < SAVES:
                for each in may_step:
                    each.release(STEPS)
            else:
                for thread in threads:
                    thread.join(DEADLINE_S)
            if number % 4 == 0:
                saved.append(workers[0].saver.save(session, str(tmp_path / "model"), number, write_meta_graph=False))
            else:
                path = str(tmp_path / SUB_INCR_CKPT_DIR / "incr")
                saved.append(workers[0].increments.incremental_save(session, path, number, write_state=False))
        assert not failed

    for worker in range(WORKERS):
        known: dict[str, float] = {}
        every = [counts(prefix, worker, known) for prefix in saved if prefix is not None]
        for prefix, found in zip(saved, every, strict=True):
            assert found == sorted(found, reverse=True), f"{prefix}: {found}"
            assert found[0] - found[-1] <= 1, f"{prefix}: {found}"
        assert every[-1] == [SAVES * STEPS] * 5
        assert len({found[0] for found in every}) > 2, "it was trained meanwhile"
        assert [found[0] for found in every] == sorted(found[0] for found in every)
