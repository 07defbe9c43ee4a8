"""SyncReplicasOptimizer over real servers: exact counts, a quick end, backups, workers that die and come back."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.train import chief_generation
from tenfold_core import errors
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Seconds within which all workers of a test must have ended.
DEADLINE_S = 60.0


@pytest.fixture
def servers() -> Iterator[dict[tuple[str, int], BackgroundServer]]:
    """A parameter server and three workers."""
    started: dict[tuple[str, int], BackgroundServer] = {}
    try:
        for task in (("ps", 0), ("worker", 0), ("worker", 1), ("worker", 2)):
            started[task] = BackgroundServer(TaskServer(None, *task))
            started[task].start()
        cluster: dict[str, dict[int, str]] = {}
        for (job, index), server in started.items():
            cluster.setdefault(job, {})[index] = f"localhost:{server.port}"
        for server in started.values():
            server.update_cluster(cluster)
        yield started
    finally:
        for server in started.values():
            server.stop(2.0)


class Worker:
    """One worker's graph: the mean of its inputs moves `w`; the step counts."""

    def __init__(
        self,
        index: int,
        aggregate: int,
        total: int,
        make: Callable[[], Any] | None = None,
        step_type: Any = tf.int64,
        use_resource: bool = False,
    ) -> None:
        self.index, self.graph = index, tf.Graph()
        with self.graph.as_default():
            setter = tf.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{index}")
            with tf.device(setter):
                self.step = tf.get_variable(
                    "global_step",
                    [],
                    step_type,
                    tf.zeros_initializer(),
                    trainable=False,
                    collections=[tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.GLOBAL_STEP],
                    use_resource=use_resource,
                )
                self.w = tf.get_variable("w", [2], initializer=tf.zeros_initializer(), use_resource=use_resource)
                self.slope = tf.placeholder(tf.float32, [2])
                inner = make() if make is not None else tf.train.GradientDescentOptimizer(0.1)
                self.optimizer = tf.train.SyncReplicasOptimizer(inner, aggregate, total)
                self.train = self.optimizer.apply_gradients([(self.slope, self.w)], global_step=self.step)
            self.hook = self.optimizer.make_session_run_hook(index == 0)

    def session(self, target: str, last_step: int) -> Any:
        """The worker's monitored session."""
        hooks = [self.hook, tf.train.StopAtStepHook(last_step=last_step)]
        config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{self.index}"])
        return tf.train.MonitoredTrainingSession(
            target, self.index == 0, hooks=hooks, config=config, stop_grace_period_secs=20, max_wait_secs=30
        )


def run_all(works: list[Callable[[], None]]) -> None:
    """Runs each in a thread; raises the first failure, or AssertionError if one does not end."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    end = time.monotonic() + DEADLINE_S
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    if failures:
        raise failures[0]
    assert not any(thread.is_alive() for thread in threads), "a worker waits for ever"


def ended_with(server: BackgroundServer, **kinds: Any) -> tuple[int, np.ndarray[Any, Any]]:
    """(global step, w) that the parameter server holds. `kinds` as for Worker."""
    worker = Worker(1, 1, 1, **kinds)
    with tf.Session(server.target, graph=worker.graph) as session:
        step, w = session.run([worker.step, worker.w])
        return int(step), w


def trains(
    servers: Any, index: int, last: int, aggregate: int, total: int, ends: list[float], step_type: Any = tf.int64
) -> Callable[[], None]:
    def work() -> None:
        worker = Worker(index, aggregate, total, step_type=step_type)
        with worker.graph.as_default():
            session = worker.session(servers["worker", index].target, last)
            with session:
                while not session.should_stop():
                    session.run(worker.train, {worker.slope: [1.0, float(index)]})
                began = time.monotonic()
            ends.append(time.monotonic() - began)

    return work


def test_exact_count_and_mean_and_a_quick_end(servers):
    ends: list[float] = []

    run_all([trains(servers, index, 20, 3, 3, ends) for index in range(3)])

    step, w = ended_with(servers["ps", 0])
    assert step == 20
    # each update takes the mean of gradients with 1.0 in the first place, from whichever workers
    np.testing.assert_allclose(w[0], -0.1 * 20, rtol=1e-5)
    # well below the grace period, which an update that waits for gradients would take
    assert len(ends) == 3
    assert max(ends) < 10


def test_backup_replicas_are_not_waited_for(servers):
    ends: list[float] = []

    run_all([trains(servers, index, 15, 2, 3, ends) for index in range(3)])

    step, w = ended_with(servers["ps", 0])
    assert step == 15
    np.testing.assert_allclose(w[0], -0.1 * 15, rtol=1e-5)


def test_two_backups_never_start(servers):
    """Two of three replicas are enough: the third never comes."""
    run_all([trains(servers, index, 10, 2, 3, []) for index in range(2)])

    assert ended_with(servers["ps", 0])[0] == 10


def test_a_worker_that_dies_and_comes_back_loses_no_count(servers):
    def dies_thrice() -> None:
        for generation in range(4):
            worker = Worker(1, 3, 3)
            with worker.graph.as_default():
                session = worker.session(servers["worker", 1].target, 25)
                steps = 0
                while not session.should_stop() and (generation == 3 or steps < 3):
                    session.run(worker.train, {worker.slope: [1.0, 1.0]})
                    steps += 1
                if generation < 3:
                    # as after a kill: no hook's end is run, tokens and gradients stay where they are
                    session._tf_sess().close()
                else:
                    session.close()

    others = [trains(servers, index, 25, 3, 3, []) for index in (0, 2)]

    run_all([*others, dies_thrice])

    step, w = ended_with(servers["ps", 0])
    assert step == 25
    np.testing.assert_allclose(w[0], -0.1 * 25, rtol=1e-5)


def test_stale_gradients_are_dropped(servers):
    worker = Worker(0, 1, 1)
    with worker.graph.as_default(), worker.session(servers["worker", 0].target, 5) as session:
        session.run(worker.train, {worker.slope: [1.0, 0.0]})
        raw, local = session._tf_sess(), worker.optimizer._local_step
        before = raw.run(worker.step)
        # gradients older than the step count for nothing: no update, no token, and so the worker waits
        options = tf.RunOptions(timeout_in_ms=500)

        def send_stale() -> None:
            for _ in range(3):
                local.load(-1, raw)
                raw.run(worker.train, {worker.slope: [100.0, 0.0]}, options=options)

        with pytest.raises(errors.DeadlineExceededError):
            send_stale()
        step, w = raw.run([worker.step, worker.w])

    assert step == before
    assert w[0] > -1.0


def test_a_chief_that_comes_back_counts_nothing_of_its_former_life(servers):
    chief, worker = Worker(0, 2, 2), Worker(1, 2, 2)
    with worker.graph.as_default():
        accumulator = worker.optimizer._accumulator_list[0][0]
        push = accumulator.apply_grad(tf.constant([9.0, 9.0]), local_step=worker.optimizer._local_step)
        count, tokens = accumulator.num_accumulated(), worker.optimizer._sync_token_queue.size()
        take_token = tf.assign(worker.optimizer._local_step, worker.optimizer._sync_token_queue.dequeue())
    with chief.graph.as_default():
        prepare = tf.global_variables_initializer()

    with (
        tf.Session(servers["worker", 1].target, graph=worker.graph) as at_worker,
        tf.Session(servers["worker", 0].target, graph=chief.graph) as at_chief,
    ):
        # a worker may begin before the chief ever has
        at_chief.run(prepare)
        at_worker.run(worker.optimizer.local_step_init_op)
        at_chief.run(chief.optimizer.chief_init_op)
        at_worker.run(push)
        assert at_worker.run([count, tokens]) == [1, 0], "the first generation gives no tokens by itself"

        at_chief.run(chief.optimizer.chief_init_op)
        assert at_worker.run([count, tokens]) == [0, 2]
        at_worker.run(push)
        assert at_worker.run(count) == 0, "a gradient of the former generation is stale"
        first_of_the_new_generation = int(at_worker.run(take_token))
        at_worker.run(push)

        assert at_worker.run(count) == 1
        assert first_of_the_new_generation == chief_generation.STRIDE
        # and so begins a worker that is started now
        at_worker.run(worker.optimizer.local_step_init_op)
        assert at_worker.run(worker.optimizer._local_step) == chief_generation.STRIDE


@pytest.mark.parametrize("resource", [False, True])
def test_a_trainer_of_2016_begins_by_tokens_alone(servers, resource):
    """As Inception's: a Supervisor, the chief's queue runner, its first tokens; `chief_init_op` is never run."""
    last: list[int] = []

    def trainer(index: int) -> Callable[[], None]:
        def work() -> None:
            worker = Worker(index, 2, 2, use_resource=resource)
            with worker.graph.as_default():
                runners = [worker.optimizer.get_chief_queue_runner()]
                tokens = worker.optimizer.get_init_tokens_op()
                supervisor = tf.train.Supervisor(
                    is_chief=index == 0,
                    init_op=tf.global_variables_initializer(),
                    global_step=worker.step,
                    summary_op=None,
                    recovery_wait_secs=0.1,
                    stop_grace_secs=5,
                )
                session = supervisor.prepare_or_wait_for_session(servers["worker", index].target, max_wait_secs=30)
                if index == 0:
                    supervisor.start_queue_runners(session, runners)
                    session.run(tokens)
                step = 0
                while step < 6:
                    _, step = session.run([worker.train, worker.step], {worker.slope: [1.0, float(index)]})
                # whoever is still at its last step gets its token
                session.run(tokens)
                last.append(int(step))
                supervisor.stop()
                session.close()

        return work

    run_all([trainer(index) for index in range(2)])

    step, w = ended_with(servers["ps", 0], use_resource=resource)
    assert len(last) == 2
    assert step >= 6
    np.testing.assert_allclose(w[0], -0.1 * step, rtol=1e-5)


def test_tokens_that_go_while_they_are_counted_are_not_waited_for(servers):
    """A worker takes one between the chief's two looks at the queue: the chief must not wait for another."""
    worker = Worker(0, 1, 1)
    with worker.graph.as_default():
        queue = worker.optimizer._sync_token_queue
        give = queue.enqueue_many([[7, 7]])
        emptied = next(op for op in worker.graph.get_operations() if op.type == "QueueDequeueUpToV2")
        counted = emptied.inputs[1]

    with tf.Session(servers["worker", 0].target, graph=worker.graph) as session:
        session.run(give)
        options = tf.RunOptions(timeout_in_ms=20_000)
        taken = session.run(emptied.outputs[0], {counted: 5}, options)

    assert taken.tolist() == [7, 7]


@pytest.mark.parametrize("dtype", [tf.int64, tf.int32])
def test_each_run_begins_without_the_tokens_of_the_last_one(servers, dtype):
    """The parameter server goes on: what a run left there must not let workers of the next one run ahead."""
    begun: list[int] = []
    for _ in range(3):
        chief = Worker(0, 2, 3, step_type=dtype)
        with chief.graph.as_default():
            tokens = chief.optimizer._sync_token_queue.size()
            with chief.session(servers["worker", 0].target, 6) as session:
                # nobody took one, and the first update needs a second gradient
                begun.append(int(session._tf_sess().run(tokens)))
                run_all([trains(servers, index, 6, 2, 3, [], dtype) for index in (1, 2)])
        step, w = ended_with(servers["ps", 0], step_type=dtype)
        assert step == 6
        np.testing.assert_allclose(w[0], -0.1 * 6, rtol=1e-5)

    assert begun == [2, 2, 2]
