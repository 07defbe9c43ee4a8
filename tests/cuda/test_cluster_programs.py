"""Workers with a GPU each train what a ps without one keeps, synchronously and not, with summaries and checkpoints.

    ps:0  weights, an embedding, accumulators, the step        worker:0, worker:1  /gpu:0: loss and gradients
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.gpu_programs import ops_on, with_gpus
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

#: Seconds within which a worker must have ended.
DEADLINE_S = 60.0
STEPS, RATE = 3, 0.2
IDS = np.int64([2, 0])
X = np.float32([[0.5, -1.0], [1.0, 0.25]])
Y = np.float32([[1.0], [-0.5]])


@pytest.fixture
def targets() -> Iterator[list[str]]:
    """Of the two workers."""
    with with_gpus(1), ExitStack() as stack:
        empty = {"ps": {0: ""}, "worker": {0: "", 1: ""}}
        no_gpu = tf.ConfigProto(device_count={"GPU": 0})
        servers = {("ps", 0): stack.enter_context(BackgroundServer(TaskServer(empty, "ps", 0, config=no_gpu)))}
        for index in range(2):
            servers["worker", index] = stack.enter_context(BackgroundServer(TaskServer(empty, "worker", index)))
        addresses: dict[str, dict[int, str]] = {}
        for (job, index), server in servers.items():
            addresses.setdefault(job, {})[index] = f"localhost:{server.port}"
        for server in servers.values():
            server.update_cluster(addresses)
        yield [f"grpc://localhost:{servers['worker', index].port}" for index in range(2)]


class Model:
    """Rows of an embedding and what is fed, times weights; of one worker's graph, or of one on the CPU alone."""

    def __init__(self, worker: int | None, sync: bool = False) -> None:
        self.graph, self.chief = tf.Graph(), worker in (0, None)
        device: Any = "/cpu:0"
        if worker is not None:
            device = tf.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{worker}/gpu:0")
        with self.graph.as_default(), tf.device(device):
            self.step = tf.train.get_or_create_global_step()
            table = tf.get_variable("table", initializer=np.float32([[0.1, 0.2], [5.0, 5.0], [-0.3, 0.4]]))
            w = tf.get_variable("w", initializer=np.float32([[0.5], [-0.25]]))
            self.x = tf.placeholder(tf.float32, [None, 2], name="x")
            rows = self.x + tf.nn.embedding_lookup(table, tf.constant(IDS))
            self.loss = tf.reduce_mean(tf.square(tf.matmul(rows, w) - tf.constant(Y)))
            tf.summary.scalar("loss", self.loss)
            tf.summary.histogram("rows", rows)
            optimizer: Any = tf.train.GradientDescentOptimizer(RATE)
            self.hooks: list[Any] = []
            if sync:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, 2, 2)
                self.hooks.append(optimizer.make_session_run_hook(self.chief))
            self.train = optimizer.minimize(self.loss, global_step=self.step)
            self.end = [table, w]


def in_threads(works: list[Callable[[], None]]) -> None:
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    if failures:
        raise failures[0]
    assert not any(thread.is_alive() for thread in threads)


def on_the_cpu(steps: int) -> list[Any]:
    """The variables after so many steps in one process."""
    model = Model(None)
    with model.graph.as_default(), tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(model.train, {model.x: X})
        return list(session.run(model.end))


SOFT = tf.ConfigProto(allow_soft_placement=True)


@pytest.mark.thorough
def test_a_synchronous_step_is_that_of_one_process(targets: list[str], tmp_path: Path) -> None:
    """Both workers have the same data, so that their average is each one's gradient; the chief writes it all down."""

    def work(index: int) -> None:
        model = Model(index, sync=True)
        folder = str(tmp_path) if model.chief else None
        hooks = [*model.hooks, tf.train.StopAtStepHook(last_step=STEPS)]
        with (
            model.graph.as_default(),
            tf.train.MonitoredTrainingSession(
                targets[index], model.chief, folder, hooks=hooks, config=SOFT, save_summaries_steps=1, max_wait_secs=30
            ) as session,
        ):
            while not session.should_stop():
                session.run(model.train, {model.x: X})

    in_threads([lambda: work(0), lambda: work(1)])

    wanted_table, wanted_w = on_the_cpu(STEPS)
    checkpoint = tf.train.latest_checkpoint(str(tmp_path))
    assert checkpoint is not None
    assert tf.train.load_variable(checkpoint, "global_step") == STEPS
    np.testing.assert_allclose(tf.train.load_variable(checkpoint, "table"), wanted_table, rtol=1e-5)
    np.testing.assert_allclose(tf.train.load_variable(checkpoint, "w"), wanted_w, rtol=1e-5)
    events = next(path for path in tmp_path.iterdir() if "tfevents" in path.name)
    written = [value for event in tf.train.summary_iterator(str(events)) for value in event.summary.value]
    assert {"loss", "rows"} <= {value.tag for value in written}
    first = next(value.simple_value for value in written if value.tag == "loss")
    assert first > 0


@pytest.mark.thorough
def test_workers_that_do_not_wait_for_each_other_train_one_model(targets: list[str]) -> None:
    places: dict[str, set[str]] = {}
    losses: list[tuple[float, float]] = []
    ready = threading.Event()

    def work(index: int) -> None:
        model = Model(index)
        with model.graph.as_default(), tf.Session(targets[index], config=SOFT) as session:
            if index == 0:
                session.run(tf.global_variables_initializer())
                ready.set()
            assert ready.wait(DEADLINE_S)
            before = session.run(model.loss, {model.x: X})
            for _ in range(STEPS - 1):
                session.run(model.train, {model.x: X})
            metadata = tf.RunMetadata()
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            session.run(model.train, {model.x: X}, options=options, run_metadata=metadata)
            losses.append((before, session.run(model.loss, {model.x: X})))
            if index == 1:
                places.update(ops_on(metadata))

    in_threads([lambda: work(0), lambda: work(1)])

    model = Model(0)
    with model.graph.as_default(), tf.Session(targets[0], config=SOFT) as session:
        assert session.run(model.step) == 2 * STEPS
    assert all(after < before for before, after in losses)
    assert places["MatMul"] == {"GPU:0"}
    assert places["ApplyGradientDescent"] == places["ScatterSub"] == {"CPU:0"}
