"""A parameter server is killed and comes back: it is restored from a whole checkpoint and the increments after it.

One process trains, its parameter servers and its worker are processes of their own. The whole checkpoint is from the
first moment; each step saves an increment. What training comes to must be what it comes to without a kill, to the bit.
"""

from __future__ import annotations

import glob
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.background_cluster import background_cluster
from support.task_processes import PATIENCE, Tasks, static_cluster
from tenfold.train.checkpoint_chain import SUB_INCR_CKPT_DIR, increments_after
from tenfold_core.checkpoint import BundleReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WIDTH, STEPS = 4, 12
KNOWN = np.random.default_rng(1).integers(-(1 << 62), 1 << 62, 60)
BATCHES = [np.random.default_rng(step).choice(KNOWN, 8) for step in range(STEPS)]


class Program:
    """A table that filters and evicts, and an ordinary variable, on parameter servers; `ballast` bytes make saving and
    restoring take longer."""

    def __init__(self, servers: int, ballast: int = 0) -> None:
        self.graph = tf.Graph()
        setter = tf.train.replica_device_setter(ps_tasks=servers, worker_device="/job:worker/task:0")
        # each test has variables of its own on the servers of this file
        with self.graph.as_default(), tf.device(setter), tf.container(f"{servers} {ballast}"):
            option = tf.EmbeddingVariableOption(filter_option=tf.CounterFilter(2), evict_option=tf.GlobalStepEvict(4))
            divide = tf.fixed_size_partitioner(servers)
            table = tf.get_embedding_variable(
                "v", WIDTH, initializer=tf.ones_initializer(), partitioner=divide, ev_option=option
            )
            dense = tf.get_variable("w", [WIDTH], initializer=tf.ones_initializer(), use_resource=True)
            if ballast:
                tf.get_variable("ballast", [ballast // 4], trainable=False, initializer=tf.ones_initializer())
            step = tf.train.get_or_create_global_step()
            # the step says which batch it is, so that a step that is done again is done with its own
            rows = tf.nn.embedding_lookup(table, tf.gather(tf.constant(np.stack(BATCHES)), step % STEPS))
            self.train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(rows * dense), global_step=step)
            self.tables = [each.export() for each in tf.global_variables() if hasattr(each, "export")]
            self.counted = [part.get_frequency(tf.constant(KNOWN)) for part in table]
            self.rest = [
                each for each in tf.global_variables() if not hasattr(each, "export") and each.op.name != "ballast"
            ]
            self.step = step

    def state(self, session: Any) -> Any:
        """All that the variables have, the tables' rows by key."""
        tables, counted, rest = session.run([self.tables, self.counted, self.rest])
        rows = [
            sorted(zip(each.keys.tolist(), each.values.tolist(), each.versions.tolist(), strict=True))
            for each in tables
        ]
        return rows, np.sum(counted, axis=0).tolist(), [np.asarray(value).tolist() for value in rest]


@pytest.fixture(scope="module")
def tasks() -> Iterator[Tasks]:
    with static_cluster(ps=2, worker=1) as running:
        yield running


def training(master: str, folder: str) -> Any:
    """Saves a whole checkpoint at the beginning, and an increment after each step."""
    return tf.train.MonitoredTrainingSession(
        master=master,
        checkpoint_dir=folder,
        save_checkpoint_secs=3600,
        save_incremental_checkpoint_secs=1e-9,
        save_summaries_steps=None,
        log_step_count_steps=None,
    )


def undisturbed(servers: int, folder: str) -> list[Any]:
    """The state after each step."""
    states = []
    with background_cluster({"ps": servers, "worker": 1}) as running:
        program = Program(servers)
        with program.graph.as_default(), training(running["worker", 0].target, folder) as session:
            while len(states) < STEPS:
                session.run(program.train)
                states.append(session.run_step_fn(lambda step_context: program.state(step_context.session)))
    return states


@pytest.mark.timeout(300)
@pytest.mark.parametrize("servers", [pytest.param(1, marks=pytest.mark.thorough), 2])
def test_a_server_that_comes_back_has_the_increments(tasks: Tasks, tmp_path: Path, servers: int) -> None:
    expected = undisturbed(servers, str(tmp_path / "whole"))
    folder, states = str(tmp_path / "killed"), []
    program = Program(servers)
    with program.graph.as_default(), training(tasks.target("worker", 0), folder) as session:
        while len(states) < STEPS:
            session.run(program.train)
            states.append(session.run_step_fn(lambda step_context: program.state(step_context.session)))
            if len(states) in (3, 4, 9):
                with BundleReader(tf.train.latest_checkpoint(folder)) as whole:
                    saved = int(whole.read("global_step"))
                victim = len(states) % servers
                tasks.kill("ps", victim)
                tasks.children.forget(f"ps/{victim}")
                tasks.start(("ps", victim))
                assert saved in (0, 3, 4), "what comes back comes from increments"
    assert states == expected


@pytest.mark.timeout(300)
def test_killed_while_it_writes_an_increment(tasks: Tasks, tmp_path: Path) -> None:
    """A server dies within a write: what is restored is the increment before, and nothing of the broken one."""
    folder = str(tmp_path)
    program = Program(2, ballast=32 << 20)
    states = []
    with program.graph.as_default():
        scaffold = tf.train.Scaffold(incremental_save_restore=True).finalize()
        saver = scaffold._incr_saver
        assert saver is not None
        with tf.Session(tasks.target("worker", 0)) as session:
            session.run(scaffold.init_op)
            full = scaffold.saver.save(session, os.path.join(folder, "model.ckpt"), global_step=program.step)
            path = os.path.join(folder, SUB_INCR_CKPT_DIR, "incremental_model.ckpt")
            for _ in range(2):
                session.run(program.train)
                states.append(program.state(session))
                last = saver.incremental_save(session, path, global_step=program.step)
            for number in range(3, 30):
                session.run(program.train)
                told: list[BaseException] = []

                def save(step: int = number, told: list[BaseException] = told) -> None:
                    try:
                        saver.incremental_save(session, path, global_step=step)
                    except tf.errors.OpError as error:
                        told.append(error)

                saving = threading.Thread(target=save)
                saving.start()
                is_writing = stopped_in_a_write(tasks, ("ps", 1), f"{path}-{number}", saving)
                if is_writing:
                    tasks.kill("ps", 1)
                else:
                    tasks.signal("ps", 1, signal.SIGCONT)
                saving.join(PATIENCE)
                if is_writing:
                    break
                assert not told, "it was faster than its stop, so that there is another increment"
                last, states = f"{path}-{number}", [*states, program.state(session)]
            assert told, "the save was cut short"
        assert glob.glob(f"{path}-{number}_temp_*"), "and left something behind"
        tasks.children.forget("ps/1")
        tasks.start(("ps", 1))
        assert increments_after(full, folder)[-1] == last
        with tf.Session(tasks.target("worker", 0)) as session:
            scaffold.saver.restore(session, full)
            assert len(saver.recover_incr_checkpoints(session, folder)) == number - 1
            assert program.state(session) == states[-1]
            saver.incremental_save(session, path, global_step=number)
            assert len(increments_after(full, folder)) == number


def stopped_in_a_write(tasks: Tasks, task: tuple[str, int], prefix: str, saving: threading.Thread) -> bool:
    """Whether the task stands still with a part of its shard written; it does so in any case."""
    shard = f"{prefix}_temp_*/part-{task[1]:05d}-*"
    deadline = time.monotonic() + PATIENCE
    while saving.is_alive() and not glob.glob(shard) and time.monotonic() < deadline:
        pass
    tasks.stop(*task)
    return bool(glob.glob(shard)) and not glob.glob(f"{shard}.index")
