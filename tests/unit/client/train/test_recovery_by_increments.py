"""Sessions that a manager or a Supervisor recovers: by all increments after the whole checkpoint, for the chief and for
those who wait for it."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold.train.incremental_saver import SUB_INCR_CKPT_DIR, _get_incremental_saver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_S = 20.0


class Model:
    """One task's graph, with a variable and its savers."""

    def __init__(self) -> None:
        with tf.Graph().as_default() as graph:
            self.value = tf.get_variable("value", initializer=0.0)
            self.add = tf.assign_add(self.value, 1.0)
            self.init = tf.global_variables_initializer()
            self.saver = tf.train.Saver(sharded=True, incremental_save_restore=True)
            self.increments: Any = _get_incremental_saver(True, self.saver)
            self.manager = tf.train.SessionManager(
                graph=graph, ready_op=tf.report_uninitialized_variables(), recovery_wait_secs=0.01
            )
        self.graph = graph

    def recovered(self, target: str, folder: Path) -> dict[str, Any]:
        """The arguments of a chief."""
        return {
            "master": target, "saver": self.saver, "checkpoint_dir": str(folder), "incr_saver": self.increments,
        }  # fmt: skip

    def awaited(self, target: str, seconds: float) -> tf.Session:
        """A worker's session."""
        return self.manager.wait_for_session(target, max_wait_secs=seconds, incr_saver=self.increments)


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """A folder with a whole checkpoint, of the value 1, and two increments, of 2 and 3."""
    model = Model()
    with tf.Session(graph=model.graph) as session:
        session.run([model.init])
        session.run(model.add)
        model.saver.save(session, str(tmp_path / "model.ckpt"), global_step=1)
        for step in (2, 3):
            session.run(model.add)
            model.increments.incremental_save(
                session, os.path.join(tmp_path, SUB_INCR_CKPT_DIR, "incremental_model.ckpt"), global_step=step
            )
    return tmp_path


@pytest.fixture
def target() -> Iterator[str]:
    server = tf.train.Server.create_local_server()
    try:
        yield server.target
    finally:
        server.stop(0.0)


def test_recover_session_restores_all_increments(chain: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    model = Model()
    session, ready = model.manager.recover_session(**model.recovered("", chain))
    with session:
        assert ready
        assert session.run(model.value) == 3.0

    empty = Model()
    session, ready = empty.manager.recover_session(**empty.recovered("", tmp_path_factory.mktemp("empty")))
    with session:
        assert not ready


@pytest.mark.parametrize("incremental", [True, False])
def test_a_supervisor_restores_the_increments_that_its_saver_is_made_for(chain: Path, incremental: bool) -> None:
    with tf.Graph().as_default():
        value = tf.get_variable("value", initializer=0.0)
        saver = tf.train.Saver(sharded=True, incremental_save_restore=incremental)
        supervisor = tf.train.Supervisor(logdir=str(chain), saver=saver, save_summaries_secs=0, save_model_secs=0)
    with supervisor.managed_session() as session:
        assert session.run(value) == (3.0 if incremental else 1.0)


def test_those_who_wait_see_no_variable_before_the_last_increment(
    chain: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where the chief restores once more what is there already."""
    chief, worker = Model(), Model()
    seen = []
    restore = chief.increments.incremental_restore

    def watched(*arguments: Any) -> None:
        with tf.Session(target, graph=worker.graph) as session:
            seen.append(float(session.run(worker.value)))
        with pytest.raises(tf.errors.DeadlineExceededError):
            worker.awaited(target, 0)
        restore(*arguments)

    monkeypatch.setattr(chief.increments, "incremental_restore", watched)

    for _ in range(2):
        with chief.manager.prepare_session(**chief.recovered(target, chain)), worker.awaited(target, 0) as session:
            assert session.run(worker.value) == 3.0
    assert seen == [1.0, 2.0] * 2


def test_those_who_wait_see_what_was_initialized(tmp_path: Path, target: str) -> None:
    chief, worker = Model(), Model()

    with contextlib.ExitStack() as stack:
        with pytest.raises(tf.errors.DeadlineExceededError):
            worker.awaited(target, 0)
        stack.enter_context(chief.manager.prepare_session(**chief.recovered(target, tmp_path), init_op=chief.init))
        session = stack.enter_context(worker.awaited(target, PATIENCE_S))
        assert session.run(worker.value) == 0.0


def test_the_tasks_of_a_supervisor_wait_for_the_last_increment(
    chain: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def supervisor(is_chief: bool) -> tuple[tf.train.Supervisor, Any]:
        with tf.Graph().as_default(), tf.device("/job:local/task:0"):
            value = tf.get_variable("value", initializer=0.0)
            saver = tf.train.Saver(sharded=True, incremental_save_restore=True)
            made = tf.train.Supervisor(
                is_chief=is_chief, logdir=str(chain), saver=saver, save_summaries_secs=0, save_model_secs=0
            )
        return made, value

    (chief, _), (worker, value) = supervisor(True), supervisor(False)
    increments = chief._with_increments["incr_saver"]
    recover, early = increments.recover_incr_checkpoints, []

    def watched(*arguments: Any) -> list[str]:
        with pytest.raises(tf.errors.DeadlineExceededError):
            worker.prepare_or_wait_for_session(target, max_wait_secs=0)
        early.append(True)
        found: list[str] = recover(*arguments)
        return found

    monkeypatch.setattr(increments, "recover_incr_checkpoints", watched)

    with chief.managed_session(target), worker.managed_session(target) as session:
        assert session.run(value) == 3.0
    assert early == [True]
