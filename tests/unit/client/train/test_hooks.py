"""The hooks that come with tf.train: when they act, what they write, and what they refuse."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold.train.training_util import _increment_global_step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

train = tf.train


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="tenfold")
    return caplog


def counter() -> tf.Tensor:
    """An op that increments the global step, after it was read."""
    train.create_global_step()
    return _increment_global_step(1)


def run(op: Any, steps: int, *hooks: Any) -> None:
    with train.SingularMonitoredSession(hooks=list(hooks)) as session:
        for _ in range(steps):
            session.run(op)


def events(folder: Path) -> list[tf.Event]:
    tf.summary.FileWriterCache.clear()
    return [event for path in tf.gfile.Glob(f"{folder}/events.*") for event in train.summary_iterator(path)]


class TestTimer:
    def test_by_steps(self) -> None:
        timer = train.SecondOrStepTimer(every_steps=3)
        assert timer.should_trigger_for_step(1)
        assert timer.update_last_triggered_step(1) == (None, None)
        assert [timer.should_trigger_for_step(step) for step in (1, 2, 3, 4)] == [False, False, False, True]
        assert timer.update_last_triggered_step(4)[1] == 3
        assert timer.last_triggered_step() == 4

    def test_by_the_clock(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = [100.0]
        monkeypatch.setattr("time.monotonic", lambda: now[0])
        timer = train.SecondOrStepTimer(every_secs=2.0)
        timer.update_last_triggered_step(1)
        assert not timer.should_trigger_for_step(2)
        now[0] = 102.0
        assert not timer.should_trigger_for_step(1), "never twice for one step"
        assert timer.should_trigger_for_step(2)
        assert timer.update_last_triggered_step(2) == (2.0, 1)

    def test_a_wall_clock_that_is_set_back_holds_nothing_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        timer = train.SecondOrStepTimer(every_secs=0.0)
        timer.update_last_triggered_step(1)
        now = time.time()
        monkeypatch.setattr("time.time", lambda: now - 25 * 3600.0)

        assert timer.should_trigger_for_step(2)
        assert timer.update_last_triggered_step(2)[0] < 60.0

    def test_exactly_one_period(self) -> None:
        with pytest.raises(ValueError, match="Either every_secs or every_steps"):
            train.SecondOrStepTimer()
        with pytest.raises(ValueError, match="Can not provide both"):
            train.SecondOrStepTimer(1.0, 1)


class TestStopAtStep:
    @pytest.mark.parametrize(("arguments", "last"), [({"last_step": 5}, 5), ({"num_steps": 2}, 2)])
    def test_it_stops(self, arguments: dict[str, int], last: int) -> None:
        op = counter()
        with train.MonitoredSession(hooks=[train.StopAtStepHook(**arguments)]) as session:
            while not session.should_stop():
                reached = session.run(op)
        assert reached == last

    def test_what_it_refuses(self) -> None:
        with pytest.raises(ValueError, match="One of num_steps or last_step must be specified"):
            train.StopAtStepHook()
        with pytest.raises(ValueError, match="Only one"):
            train.StopAtStepHook(1, 1)
        with pytest.raises(RuntimeError, match="Global step should be created to use StopAtStepHook"):
            train.StopAtStepHook(1).begin()


class TestLoggingTensor:
    def test_every_few_steps_and_at_the_end(self, said: pytest.LogCaptureFixture) -> None:
        op = counter()
        run(op, 5, train.LoggingTensorHook({"step": op.name}, every_n_iter=2, at_end=True))
        lines = [record.message for record in said.records if record.message.startswith("step =")]
        assert [int(line.split()[2]) for line in lines] == [1, 3, 5, 6]
        assert lines[1].endswith(" sec)")

    def test_a_list_keeps_its_order_and_a_formatter_decides(self, said: pytest.LogCaptureFixture) -> None:
        one, two = tf.constant(1, name="one"), tf.constant(2, name="two")
        run(one, 1, train.LoggingTensorHook(["two:0", "one"], every_n_iter=1))
        assert "two:0 = 2, one = 1" in said.text
        run(one, 1, train.LoggingTensorHook({"two": two}, every_n_iter=1, formatter=lambda v: f"<{v['two']}>"))
        assert "<2>" in said.text

    def test_what_it_refuses(self) -> None:
        with pytest.raises(ValueError, match="exactly one of every_n_iter and every_n_secs"):
            train.LoggingTensorHook(["x"])
        with pytest.raises(ValueError, match="invalid every_n_iter=0"):
            train.LoggingTensorHook(["x"], every_n_iter=0)
        with pytest.raises(KeyError):
            train.LoggingTensorHook(["nothing"], every_n_iter=1).begin()


class TestNan:
    def test_it_raises_or_stops(self, said: pytest.LogCaptureFixture) -> None:
        fed = tf.placeholder(tf.float32, ())
        hook = train.NanTensorHook(fed)
        with train.MonitoredSession(hooks=[hook]) as session:
            session.run(fed, {fed: 1.0})
            with pytest.raises(train.NanLossDuringTrainingError, match="NaN loss during training"):
                session.run(fed, {fed: float("nan")})
        with train.MonitoredSession(hooks=[train.NanTensorHook(fed, fail_on_nan_loss=False)]) as session:
            session.run(fed, {fed: float("nan")})
            assert session.should_stop()
        assert said.text.count("Model diverged with loss = NaN") == 2


class Listener(train.CheckpointSaverListener):
    def __init__(self, stop_at: int | None = None) -> None:
        self.calls: list[tuple[str, int | None]] = []
        self.stop_at = stop_at

    def begin(self) -> None:
        self.calls.append(("begin", None))

    def before_save(self, session: Any, global_step_value: int) -> None:
        self.calls.append(("before", int(global_step_value)))

    def after_save(self, session: Any, global_step_value: int) -> bool:
        self.calls.append(("after", int(global_step_value)))
        return self.stop_at is not None and global_step_value >= self.stop_at

    def end(self, session: Any, global_step_value: int) -> None:
        self.calls.append(("end", int(global_step_value)))


class TestCheckpointSaver:
    def test_at_the_start_by_steps_and_at_the_end(self, tmp_path: Path) -> None:
        op, listener = counter(), Listener()
        scaffold = train.Scaffold()
        hook = train.CheckpointSaverHook(str(tmp_path), save_steps=2, scaffold=scaffold, listeners=[listener])
        with train.SingularMonitoredSession(hooks=[hook], scaffold=scaffold) as session:
            for _ in range(5):
                session.run(op)
        saved = [step for what, step in listener.calls if what == "after"]
        assert saved == [0, 2, 4, 5]
        assert listener.calls[0] == ("begin", None)
        assert listener.calls[-1] == ("end", 5)
        state = train.get_checkpoint_state(str(tmp_path))
        assert [path.rpartition("-")[2] for path in state.all_model_checkpoint_paths] == ["0", "2", "4", "5"]
        assert (tmp_path / "graph.pbtxt").exists()
        found = events(tmp_path)
        assert sum(event.session_log.status == tf.SessionLog.CHECKPOINT for event in found) == 4
        assert any(event.HasField("graph_def") for event in found)
        assert any(event.HasField("meta_graph_def") for event in found)

    def test_what_was_just_restored_is_not_written_once_more(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A kill while a checkpoint is replaced would leave half of it, and it is the newest one."""
        op, saved = counter(), []
        save = train.Saver.save

        def noting(self: Any, *args: Any, **more: Any) -> Any:
            saved.append(more["global_step"])
            return save(self, *args, **more)

        monkeypatch.setattr(train.Saver, "save", noting)
        quiet: dict[str, Any] = {"save_summaries_steps": None, "log_step_count_steps": None}
        for _ in range(2):
            folder = str(tmp_path)
            with train.MonitoredTrainingSession(checkpoint_dir=folder, save_checkpoint_steps=2, **quiet) as session:
                for _ in range(3):
                    session.run(op)

        assert [int(step) for step in saved] == [0, 2, 3, 5, 6]
        assert train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-6")

    def test_a_listener_can_stop_the_training(self, tmp_path: Path) -> None:
        op, scaffold = counter(), train.Scaffold()
        hook = train.CheckpointSaverHook(
            str(tmp_path), save_steps=1, scaffold=scaffold, listeners=[Listener(stop_at=2)]
        )
        with train.SingularMonitoredSession(hooks=[hook], scaffold=scaffold) as session:
            while not session.should_stop():
                reached = session.run(op)
        assert reached == 2

    def test_what_it_refuses(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="both saver and scaffold"):
            train.CheckpointSaverHook(str(tmp_path), 1, saver=1, scaffold=train.Scaffold())
        with pytest.raises(ValueError, match="Can not provide both"):
            train.CheckpointSaverHook(str(tmp_path), save_secs=1, save_steps=1)


class TestSummarySaver:
    def test_by_steps(self, tmp_path: Path) -> None:
        op = counter()
        summary = tf.summary.scalar("tag", tf.cast(train.get_global_step(), tf.float32))
        run(op, 7, train.SummarySaverHook(save_steps=3, output_dir=str(tmp_path), summary_op=summary))
        found = events(tmp_path)
        assert [event.step for event in found if event.HasField("summary")] == [1, 4, 7]
        assert [event.session_log.status for event in found if event.HasField("session_log")] == [tf.SessionLog.START]

    def test_what_it_refuses(self) -> None:
        for arguments in ({}, {"scaffold": train.Scaffold(), "summary_op": tf.no_op()}):
            with pytest.raises(ValueError, match="Exactly one of scaffold or summary_op"):
                train.SummarySaverHook(save_steps=1, **arguments)


class TestStepCounter:
    def test_the_rate(self, tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
        op = counter()
        run(op, 9, train.StepCounterHook(every_n_steps=4, output_dir=str(tmp_path)))
        found = events(tmp_path)
        rates = [(event.step, value.tag, value.simple_value > 0) for event in found for value in event.summary.value]
        assert rates == [(5, "global_step/sec", True), (9, "global_step/sec", True)]
        assert "global_step/sec: " in said.text
        assert "has not been increased" not in said.text

    def test_a_step_that_does_not_move_is_told(self, said: pytest.LogCaptureFixture) -> None:
        counter()
        run(tf.constant(1), 3, train.StepCounterHook(every_n_steps=1))
        assert "global step (tf.train.get_global_step) has not been increased" in said.text


def test_profiler_writes_timelines(tmp_path: Path) -> None:
    op = counter()
    run(op, 4, train.ProfilerHook(save_steps=2, output_dir=str(tmp_path)))
    files = sorted(path.name for path in tmp_path.glob("timeline-*.json"))
    assert len(files) >= 1
    trace = json.loads((tmp_path / files[0]).read_text())
    assert any("AssignAdd" in event.get("name", "") for event in trace["traceEvents"])


def test_final_ops_and_feeds() -> None:
    op = counter()
    fed = tf.placeholder(tf.float32, ())
    final = train.FinalOpsHook([train.get_global_step(), fed], {fed: 2.0})
    run(op, 3, final)
    assert list(final.final_ops_values) == [3, 2.0]
    values: list[float] = []
    doubled = fed * 2
    with train.MonitoredSession(hooks=[train.FeedFnHook(lambda: {fed: 4.0})]) as session:
        values.append(float(session.run(doubled)))
    assert values == [8.0]


def test_final_ops_that_read_input_are_named(said: pytest.LogCaptureFixture) -> None:
    read = tf.data.Dataset.range(0).make_one_shot_iterator().get_next()
    with tf.Session() as session, pytest.raises(tf.errors.OutOfRangeError):
        train.FinalOpsHook(read).end(session)
    assert "dependency back to some input source" in said.text


def test_waiting_for_a_global_step() -> None:
    op = counter()
    hook = train.GlobalStepWaiterHook(wait_until_step=0)
    run(op, 1, hook)
    ahead = train.GlobalStepWaiterHook(wait_until_step=1)
    with train.SingularMonitoredSession(hooks=[ahead]) as session:
        session.raw_session().run(op)
        assert session.run(op) == 2
