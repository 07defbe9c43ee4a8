"""Tasks in processes of their own: work across them, kill -9, restart, a process that stands still.

client (this process) ──► master on a task ──► ps:0, worker:0, worker:1
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from support.task_processes import stand_still
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.rpc.grpc_worker import GrpcWorker

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What a client may wait for the news of a killed task.
NEWS_SECONDS = 5.0


@dataclass
class Task:
    """One task process."""

    job: str
    index: int
    process: subprocess.Popen[str]
    port: int

    @property
    def target(self) -> str:
        return f"grpc://localhost:{self.port}"

    @property
    def name(self) -> str:
        return f"/job:{self.job}/replica:0/task:{self.index}"

    def tell(self, cluster: dict[str, dict[int, str]]) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(cluster) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "ok\n"

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait(30)


class Tasks:
    """The task processes of a test."""

    def __init__(self) -> None:
        self.all: dict[tuple[str, int], Task] = {}

    def __getitem__(self, key: tuple[str, int]) -> Task:
        return self.all[key]

    def spawn(self, *keys: tuple[str, int], port: int = 0) -> None:
        """Starts processes side by side, then tells everybody where everybody is."""
        main = str(Path(__file__).with_name("task_main.py"))
        processes = {
            (job, index): subprocess.Popen(
                [sys.executable, main, job, str(index), str(port)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for job, index in keys
        }
        for (job, index), process in processes.items():
            assert process.stdout is not None
            self.all[job, index] = Task(job, index, process, 0)
            self.all[job, index].port = int(process.stdout.readline())
        cluster: dict[str, dict[int, str]] = {}
        for task in self.all.values():
            cluster.setdefault(task.job, {})[task.index] = f"localhost:{task.port}"
        for task in self.all.values():
            task.tell(cluster)

    def stop(self, key: tuple[str, int]) -> None:
        process = self.all.pop(key).process
        process.kill()
        process.wait(30)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


@pytest.fixture
def tasks() -> Iterator[Tasks]:
    started = Tasks()
    try:
        yield started
    finally:
        for key in list(started.all):
            started.stop(key)


def pinned_product() -> tuple[tf.Graph, Any, Any, Any]:
    """A variable on the ps, its double on worker:1, a counter of the steps that reached the ps."""
    graph = tf.Graph()
    with graph.as_default():
        with tf.device("/job:ps/task:0"):
            weight = tf.Variable(tf.constant([[2.0]]), name="weight")
            counter = tf.Variable(tf.constant(0.0), name="counter")
            begun = counter.assign_add(tf.constant(1.0))
        with tf.device("/job:worker/task:1"):
            product = tf.matmul(weight, weight, name="product")
    return graph, (weight.initializer, counter.initializer), begun, product


@pytest.mark.thorough
def test_a_step_over_three_processes_from_any_of_them(tasks: Tasks) -> None:
    tasks.spawn(("ps", 0), ("worker", 0), ("worker", 1))
    graph, initializers, _, product = pinned_product()
    with tf.Session(tasks["ps", 0].target, graph=graph) as session:
        session.run(initializers)
    for task in tasks.all.values():
        with tf.Session(task.target, graph=graph) as session:
            assert session.run(product).tolist() == [[4.0]]


def test_killing_a_task_in_a_step_is_reported_by_name_and_spares_other_sessions(tasks: Tasks) -> None:
    tasks.spawn(("ps", 0), ("worker", 0), ("worker", 1))
    graph, initializers, begun, product = pinned_product()
    errors: list[tf.errors.OpError] = []
    with (
        tf.Session(tasks["worker", 0].target, graph=graph) as session,
        tf.Session(tasks["ps", 0].target, graph=graph) as other,
    ):
        session.run(initializers)
        session.run([begun, product])
        other.run(begun)
        # the doomed task stands still, so that the step is under way when it dies
        stand_still(tasks["worker", 1].process.pid)

        def step() -> None:
            try:
                session.run([begun, product])
            except tf.errors.OpError as error:
                errors.append(error)

        thread = threading.Thread(target=step)
        before = other.run(begun)
        thread.start()
        while other.run(begun) == before + 1:  # until the step has reached the ps
            before += 1
        tasks["worker", 1].kill()
        killed = time.monotonic()
        thread.join(60)
        assert time.monotonic() - killed < NEWS_SECONDS
        [error] = errors
        assert isinstance(error, (tf.errors.UnavailableError, tf.errors.AbortedError))
        assert tasks["worker", 1].name in str(error)
        assert other.run(begun) > before


def test_killing_the_clients_own_task(tasks: Tasks) -> None:
    tasks.spawn(("ps", 0), ("worker", 0), ("worker", 1))
    graph, initializers, begun, product = pinned_product()
    with (
        tf.Session(tasks["worker", 1].target, graph=graph) as session,
        tf.Session(tasks["worker", 0].target, graph=graph) as other,
    ):
        session.run(initializers)
        session.run(product)
        other.run(begun)
        tasks["worker", 1].kill()
        killed = time.monotonic()
        with pytest.raises((tf.errors.UnavailableError, tf.errors.AbortedError), match="/job:worker/replica:0/task:1"):
            session.run(product)
        assert time.monotonic() - killed < NEWS_SECONDS
        assert other.run(begun) == 2


def run_until_reachable(session: tf.Session, fetch: Any) -> None:
    """Runs the step again while the connection to a task that came back is being made."""
    while True:
        with contextlib.suppress(tf.errors.UnavailableError):
            session.run(fetch)
            return


def test_a_task_that_restarted_serves_new_sessions_and_refuses_old_ones(tasks: Tasks) -> None:
    tasks.spawn(("ps", 0), ("worker", 0), ("worker", 1))
    graph, initializers, _, product = pinned_product()
    with tf.Session(tasks["worker", 0].target, graph=graph) as old:
        old.run(initializers)
        assert old.run(product).tolist() == [[4.0]]
        port = tasks["worker", 1].port
        tasks.stop(("worker", 1))
        tasks.spawn(("worker", 1), port=port)
        with pytest.raises(tf.errors.AbortedError, match="task:1"):
            run_until_reachable(old, product)
    with tf.Session(tasks["worker", 0].target, graph=graph) as new:
        assert new.run(product).tolist() == [[4.0]]


async def test_a_process_that_stands_still_is_given_up(tasks: Tasks) -> None:
    """SIGSTOP looks like a host that lost power: the connection stays, nothing comes."""
    tasks.spawn(("ps", 0))
    limits = replace(DEFAULT_LIMITS, probe_every_seconds=0.05, probe_answer_seconds=0.2)
    worker = GrpcWorker(tasks["ps", 0].name, f"localhost:{tasks['ps', 0].port}", limits)
    try:
        [cpu] = [device for device in await worker.get_status() if device.device_type == "CPU"]
        key = f"{cpu.name};{cpu.incarnation:016x};{cpu.name};edge;0:0"
        waiting = asyncio.ensure_future(worker.recv_tensor(1, key))
        stand_still(tasks["ps", 0].process.pid)
        with pytest.raises(tf.errors.UnavailableError, match=r"/job:ps/replica:0/task:0 .* no sign of life"):
            await waiting
    finally:
        tasks["ps", 0].signal(signal.SIGCONT)
        await worker.close()
