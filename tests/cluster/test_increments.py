"""Increments of a table on parameter servers: small, of one moment each beside training workers, read by other tasks.

Workers add one to rows of weights, so that what a row has become is known from how often it was named; the slots of
Adagrad count the same.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tenfold as tf
from support.background_cluster import background_cluster
from tenfold.train.checkpoint_compaction import compact
from tenfold.train.incremental_saver import SUB_INCR_CKPT_DIR, _get_incremental_saver
from tenfold_core.checkpoint import BundleReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tenfold_services.background import BackgroundServer

WIDTH = 8
#: Increments beside training, and steps that each worker may make for each of them.
SAVES, STEPS = 12, 10
DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[tuple[str, int], BackgroundServer]]:
    with background_cluster({"ps": 3, "worker": 2}) as servers:
        yield servers


class Trainer:
    """One worker's graph and session, with a table in as many parts as there are parameter servers."""

    def __init__(self, target: str, index: int, servers: int, container: str, folder: Path) -> None:
        self.folder = str(folder)
        with tf.Graph().as_default() as graph, tf.container(container):
            setter = tf.train.replica_device_setter(ps_tasks=servers, worker_device=f"/job:worker/task:{index}")
            with tf.device(setter):
                table = tf.get_embedding_variable(
                    container, WIDTH, initializer=tf.zeros_initializer(), partitioner=tf.fixed_size_partitioner(servers)
                )
                self.ids = tf.placeholder(tf.int64, [None])
                rows = tf.nn.embedding_lookup(table, self.ids)
                self.step = tf.train.get_or_create_global_step()
                optimizer = tf.train.AdagradOptimizer(1.0, initial_accumulator_value=1.0)
                self.train = optimizer.minimize(tf.reduce_sum(rows), global_step=self.step)
            self.saver = tf.train.Saver(incremental_save_restore=True)
            made = _get_incremental_saver(True, self.saver)
            assert made is not None
            self.increments = made
            every = [each for each in tf.global_variables() if hasattr(each, "export")]
            self.exports = {each.op.name: each.export() for each in every}
            self.init = tf.global_variables_initializer()
        self.session = tf.Session(target, graph=graph)

    def state(self) -> tuple[int, dict[int, tuple[list[float], list[float]]]]:
        """The global step, and of each id its weights and its accumulators."""
        step, found = self.session.run([self.step, self.exports])
        both: list[dict[int, list[float]]] = [{}, {}]
        for name, table in found.items():
            both["Adagrad" in name].update(zip(table.keys.tolist(), table.values.tolist(), strict=True))
        assert both[0].keys() == both[1].keys()
        return int(step), {key: (row, both[1][key]) for key, row in both[0].items()}

    def save(self) -> str:
        saved = self.saver.save(self.session, os.path.join(self.folder, "model"), global_step=self.step)
        assert saved is not None
        return saved

    def increment(self, number: int) -> str:
        saved = self.increments.incremental_save(
            self.session, os.path.join(self.folder, SUB_INCR_CKPT_DIR, "incr"), global_step=number
        )
        assert saved is not None
        return saved


def size(prefix: str) -> int:
    folder, name = os.path.split(prefix)
    return sum(
        os.path.getsize(os.path.join(folder, file)) for file in os.listdir(folder) if file.startswith(f"{name}.")
    ) - (os.path.getsize(f"{prefix}.meta") if os.path.exists(f"{prefix}.meta") else 0)


def weights_after(times: int) -> tuple[float, float]:
    """The weight and the accumulator of a row that was named so often, in float32 as Adagrad has them."""
    weight, accumulator = np.float32(0), np.float32(1)
    for _ in range(times):
        accumulator += np.float32(1)
        weight -= np.float32(1) / np.sqrt(accumulator)
    return float(weight), float(accumulator)


@pytest.mark.parametrize("servers", [pytest.param(1, marks=pytest.mark.thorough), 2])
def test_an_increment_is_small(cluster: dict[tuple[str, int], BackgroundServer], tmp_path: Path, servers: int) -> None:
    """A hundredth of the rows touched: at most a twentieth of the bytes. Read by another number of servers."""
    count = 40_000
    one = Trainer(cluster["worker", 0].target, 0, servers, f"small{servers}", tmp_path)
    with one.session:
        one.session.run(one.init)
        one.session.run(one.train, {one.ids: np.arange(count)})
        full = one.save()
        touched = np.random.default_rng(7).choice(count, count // 100, replace=False)
        one.session.run(one.train, {one.ids: touched})
        first = one.increment(1)
        one.session.run(one.train, {one.ids: touched[:7]})
        second = one.increment(2)
        expected = one.state()

    share = size(first) / size(full)
    print(f"{servers} ps: whole {size(full)} bytes, increment of 1 % of the rows {size(first)} bytes, {share:.2%}")
    assert share <= 0.05
    with BundleReader(second) as reader:
        keys = [
            reader.read(name) for name in reader.names() if name.endswith("-sparse_incr_keys") and "Ada" not in name
        ]
    assert sorted(np.concatenate(keys).tolist()) == sorted(touched[:7].tolist()), (
        "each has only what came after the last"
    )
    other = Trainer(cluster["worker", 1].target, 1, 3, f"small{servers}", tmp_path)
    whole = str(tmp_path / "compacted")
    compact(full, [first, second], whole)
    with other.session:
        for restored in ([full, first, second], [whole]):
            other.saver.restore(other.session, restored[0])
            for prefix in restored[1:]:
                other.increments.incremental_restore(other.session, full, prefix)
            assert other.state() == expected, restored


@pytest.mark.parametrize("servers", [pytest.param(1, marks=pytest.mark.thorough), 2])
def test_beside_asynchronous_training(
    cluster: dict[tuple[str, int], BackgroundServer], tmp_path: Path, servers: int
) -> None:
    """While two workers train, every increment restores rows of which weights and slots are of one moment; after they
    have ended, the last one is the state to the bit."""
    name, choose = f"beside{servers}", np.random.default_rng(servers)
    known = choose.integers(-(1 << 62), 1 << 62, 400)
    batches = [[np.unique(choose.choice(known, 30)) for _ in range(SAVES * STEPS)] for _ in range(2)]
    workers = [Trainer(cluster["worker", index].target, index, servers, name, tmp_path) for index in range(2)]
    failed: list[BaseException] = []
    may_step = [threading.Semaphore(0) for _ in workers]

    def run(index: int) -> None:
        worker = workers[index]
        try:
            for ids in batches[index]:
                assert may_step[index].acquire(timeout=DEADLINE_S)
                worker.session.run(worker.train, {worker.ids: ids})
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(2)]
    with workers[0].session, workers[1].session:
        workers[0].session.run(workers[0].init)
        full, chain = workers[0].save(), []
        for thread in threads:
            thread.start()
        for number in range(SAVES):
            for each in may_step:
                each.release(STEPS)
            chain.append(workers[0].increment(number))
        for thread in threads:
            thread.join(DEADLINE_S)
        assert not failed
        chain.append(workers[0].increment(len(chain)))
        expected = workers[1].state()
    assert expected[0] == 2 * SAVES * STEPS

    curve = {accumulator: weight for weight, accumulator in map(weights_after, range(2 * SAVES * STEPS + 1))}
    other = Trainer(cluster["worker", 1].target, 1, 3, name, tmp_path)
    with other.session:
        other.saver.restore(other.session, full)
        for prefix in chain:
            other.increments.incremental_restore(other.session, full, prefix)
            for weights, accumulators in other.state()[1].values():
                assert weights == [curve[accumulator] for accumulator in accumulators], prefix
        assert other.state() == expected
