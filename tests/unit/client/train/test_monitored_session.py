"""Monitored sessions: hooks in their order, ends that are quiet and ends that are not, and recovery from a loss."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold.session.calls import key_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


class Notes(tf.train.SessionRunHook):
    """Notes what is called; asks for fetches, feeds and options as it is told."""

    def __init__(self, args: tf.train.SessionRunArgs | None = None, stop_after: int = 0) -> None:
        self.args, self.stop_after = args, stop_after
        self.calls: list[str] = []
        self.values: list[Any] = []

    def begin(self) -> None:
        self.calls.append("begin")

    def after_create_session(self, session: Any, coord: Any) -> None:
        self.calls.append("session")

    def before_run(self, run_context: Any) -> Any:
        self.calls.append("before")
        return self.args

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.calls.append("after")
        self.values.append(run_values)
        if len(self.values) == self.stop_after:
            run_context.request_stop()

    def end(self, session: Any) -> None:
        self.calls.append("end")


class Loses(tf.train.SessionRunHook):
    """Raises `error` in its n-th step, once."""

    def __init__(self, error: BaseException, step: int) -> None:
        self.error: BaseException | None = error
        self.left = step

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.left -= 1
        if self.left == 0 and self.error is not None:
            error, self.error = self.error, None
            raise error


def counter() -> tf.Tensor:
    """An op that increments the global step."""
    return tf.assign_add(tf.train.create_global_step(), 1)


def use(monitored: Any, step: tf.Tensor, error: BaseException | None = None) -> None:
    """A block with one step, and `error` raised in it."""
    with monitored as session:
        session.run(step)
        if error is not None:
            raise error


def lost(kind: type[tf.OpError] = tf.errors.AbortedError) -> tf.OpError:
    return kind(None, None, "a task was lost")  # type: ignore[call-arg]


def test_hooks_are_called_in_order_and_their_fetches_do_not_mix() -> None:
    step = counter()
    constant = tf.constant(7)
    first, second = Notes(tf.train.SessionRunArgs({"seven": constant})), Notes()
    with tf.train.MonitoredSession(hooks=[first, second]) as session:
        assert session.run({"step": step}) == {"step": 1}
        assert session.graph is tf.get_default_graph()
        assert not session.should_stop()
    assert first.calls == second.calls == ["begin", "session", "before", "after", "end"]
    assert (first.values[0].results, second.values[0].results) == ({"seven": 7}, None)
    assert session.should_stop()
    with pytest.raises(RuntimeError, match="Session is already closed"):
        session.run(step)


def test_the_graph_is_open_again_afterwards(graph: tf.Graph) -> None:
    step = counter()
    with tf.train.MonitoredSession() as session:
        session.run(step)
        assert graph.finalized
    assert not graph.finalized


def test_feeds_of_hooks_and_caller_are_merged_unless_they_clash() -> None:
    one, two = tf.placeholder(tf.float32, ()), tf.placeholder(tf.float32, ())
    total = one + two
    feeds = Notes(tf.train.SessionRunArgs(None, {one: 1.0}))
    with tf.train.MonitoredSession(hooks=[feeds]) as session:
        assert session.run(total, {two: 2.0}) == 3.0
        with pytest.raises(RuntimeError, match="Same tensor is fed by a SessionRunHook and user"):
            session.run(total, {one: 1.0, two: 2.0})
    twins = [Notes(tf.train.SessionRunArgs(None, {one: 1.0})) for _ in range(2)]
    with tf.train.MonitoredSession(hooks=twins) as session, pytest.raises(RuntimeError, match="fed by two hooks"):
        session.run(total, {two: 2.0})


def test_options_of_hooks_are_merged() -> None:
    step = counter()
    traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    hooks = [Notes(tf.train.SessionRunArgs(None, options=traced)), Notes()]
    metadata = tf.RunMetadata()
    with tf.train.MonitoredSession(hooks=hooks) as session:
        session.run(step, options=tf.RunOptions(timeout_in_ms=60000), run_metadata=metadata)
    assert metadata.step_stats.dev_stats
    seen = hooks[1].values[0]
    assert (seen.options.timeout_in_ms, seen.options.trace_level) == (60000, tf.RunOptions.FULL_TRACE)
    assert seen.run_metadata is metadata


def test_a_hook_asks_for_the_end() -> None:
    step = counter()
    hook = Notes(stop_after=2)
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        while not session.should_stop():
            last = session.run(step)
        with pytest.raises(RuntimeError, match="Run called even after should_stop requested"):
            session.run(step)
    assert last == 2


@pytest.mark.parametrize("kind", [tf.errors.AbortedError, tf.errors.UnavailableError])
def test_a_lost_task_means_a_new_session_and_the_step_again(kind: type[tf.OpError], tmp_path: Path) -> None:
    step = counter()
    notes = Notes()
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path),
        save_checkpoint_steps=1,
        save_checkpoint_secs=None,
        save_summaries_steps=None,
        hooks=[notes, Loses(lost(kind), 3)],
    ) as session:
        values = [int(session.run(step)) for _ in range(4)]
    # the third step was taken and saved, its answer was lost with the session: asked again, it is the fourth
    assert values == [1, 2, 4, 5]
    assert notes.calls.count("session") == 2
    assert notes.calls.count("begin") == notes.calls.count("end") == 1
    assert tf.train.latest_checkpoint(str(tmp_path)) == f"{tmp_path}/model.ckpt-5"


def test_a_singular_session_leaves_a_loss_to_its_caller() -> None:
    step = counter()
    hook = Notes()
    with pytest.raises(tf.errors.AbortedError):
        use(tf.train.SingularMonitoredSession(hooks=[hook, Loses(lost(), 1)]), step)
    assert "end" not in hook.calls


class Creator(tf.train.SessionCreator):
    """Creates sessions; fails as often as it is told."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors, self.created = list(errors), 0
        self.inner = tf.train.ChiefSessionCreator()

    def create_session(self) -> tf.Session:
        if self.errors:
            raise self.errors.pop(0)
        self.created += 1
        return self.inner.create_session()


def test_creating_is_tried_again_while_a_task_is_away() -> None:
    step = counter()
    creator = Creator(lost(), lost(tf.errors.UnavailableError))
    with tf.train.MonitoredSession(creator) as session:
        assert session.run(step) == 1
    assert creator.created == 1


def test_a_deadline_at_the_first_creation_is_an_error_and_later_is_not() -> None:
    step = counter()
    with pytest.raises(tf.errors.DeadlineExceededError):
        tf.train.MonitoredSession(Creator(lost(tf.errors.DeadlineExceededError)))
    creator = Creator()
    with tf.train.MonitoredSession(creator, hooks=[Loses(lost(), 1)]) as session:
        creator.errors = [lost(tf.errors.DeadlineExceededError)]
        session.run(step)
    assert creator.created == 2


def test_other_errors_are_raised_and_hooks_do_not_end() -> None:
    step = counter()
    hook = Notes()
    with pytest.raises(KeyError):
        use(tf.train.MonitoredSession(hooks=[hook]), step, KeyError("mine"))
    assert "end" not in hook.calls


@pytest.mark.parametrize("end", [tf.errors.OutOfRangeError(None, None, "end"), StopIteration()])
def test_the_end_of_the_input_ends_quietly(end: BaseException) -> None:
    step = counter()
    hook = Notes()
    use(tf.train.MonitoredSession(hooks=[hook]), step, end)
    assert hook.calls[-1] == "end"


def test_a_queue_that_ends_ends_the_loop() -> None:
    counter()
    queue = tf.FIFOQueue(5, tf.int32, shapes=())
    source = tf.train.limit_epochs(tf.constant(4), num_epochs=2)
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(source)]))
    item = queue.dequeue()
    got = []
    with tf.train.MonitoredSession() as session:
        while not session.should_stop():
            got.append(int(session.run(item)))
    assert got == [4, 4]


def test_an_error_of_a_thread_reaches_the_step() -> None:
    step = counter()

    class Starts(tf.train.SessionRunHook):
        def after_create_session(self, session: Any, coord: tf.train.Coordinator) -> None:
            def fail() -> None:
                with coord.stop_on_exception():
                    raise ValueError("in a thread")

            thread = threading.Thread(target=fail)
            coord.register_thread(thread)
            thread.start()
            coord.wait_for_stop()

    with pytest.raises(ValueError, match="in a thread"):
        use(tf.train.MonitoredSession(hooks=[Starts()]), step)


class TestStepFunction:
    def test_it_runs_with_and_without_hooks_and_can_stop(self) -> None:
        step = counter()
        hook = Notes()

        def work(step_context: Any) -> int:
            if step_context.session.run(tf.train.get_global_step()) >= 2:
                step_context.request_stop()
            return int(step_context.run_with_hooks(step))

        got = []
        with tf.train.MonitoredSession(hooks=[hook]) as session:
            while not session.should_stop():
                got.append(session.run_step_fn(work))
        assert got == [1, 2]
        assert hook.calls.count("before") == 2

    def test_its_signature_is_checked(self) -> None:
        counter()
        with tf.train.MonitoredSession() as session:
            with pytest.raises(ValueError, match="may either have one `step_context` argument"):
                session.run_step_fn(lambda: None)
            with pytest.raises(ValueError, match="step_context"):
                session.run_step_fn(lambda step_context, more: None)

    def test_it_is_called_again_after_a_loss(self) -> None:
        step = counter()
        with tf.train.MonitoredSession(hooks=[Loses(lost(), 1)]) as session:
            assert session.run_step_fn(lambda step_context: step_context.run_with_hooks(step)) == 1


class TestTrainingSession:
    def test_a_worker_waits_for_the_chief_and_saves_nothing(self, tmp_path: Path) -> None:
        with tf.device("/job:local/task:0"):
            step = counter()
        server = tf.train.Server.create_local_server()
        try:
            with tf.train.MonitoredTrainingSession(server.target) as chief:
                chief.run(step)
                with tf.train.MonitoredTrainingSession(
                    server.target, is_chief=False, checkpoint_dir=str(tmp_path)
                ) as worker:
                    assert worker.run(step) == 2
            assert not list(tmp_path.iterdir())
        finally:
            server.stop(0.0)

    def test_it_goes_on_where_it_was(self, tmp_path: Path) -> None:
        step = counter()
        for first in (0, 10):
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=str(tmp_path), hooks=[tf.train.StopAtStepHook(num_steps=10)]
            ) as session:
                assert session.run(tf.train.get_global_step()) == first
                while not session.should_stop():
                    last = session.run(step)
        assert last == 20

    def test_summaries_and_the_rate_go_to_their_folder(self, tmp_path: Path) -> None:
        step = counter()
        tf.summary.scalar("twice", tf.cast(tf.train.get_global_step(), tf.float32) * 2)
        with tf.train.MonitoredTrainingSession(
            summary_dir=str(tmp_path), save_summaries_steps=2, log_step_count_steps=4
        ) as session:
            for _ in range(9):
                session.run(step)
        events = [e for path in tf.gfile.Glob(f"{tmp_path}/events.*") for e in tf.train.summary_iterator(path)]
        tags = [value.tag for event in events for value in event.summary.value]
        assert tags.count("twice") == 5
        assert tags.count("global_step/sec") == 2


def test_a_step_with_hooks_is_one_that_the_session_remembers() -> None:
    step = counter()
    other = tf.constant([1.0, 2.0])
    hooks = [
        Notes(tf.train.SessionRunArgs({"other": other})),
        Notes(),
        Notes(tf.train.SessionRunArgs([other, step])),
    ]
    asked: list[Any] = []
    with tf.train.SingularMonitoredSession(hooks) as session:
        plain = session.raw_session()
        run = plain.run
        plain.run = lambda fetches, feed_dict=None, **rest: asked.append(fetches) or run(fetches, feed_dict, **rest)
        assert session.run({"step": step}) == {"step": 1}

    key_of(asked[0], None)  # raises Uncacheable otherwise
    first, second, third = (hook.values[0].results for hook in hooks)
    assert first["other"].tolist() == [1.0, 2.0]
    assert second is None
    assert third[1] == 1


def test_a_session_is_closed_where_a_hook_fails_before_anybody_has_it() -> None:
    class Refuses(tf.train.SessionRunHook):
        session: Any = None

        def after_create_session(self, session: Any, coord: Any) -> None:
            self.session, self.coord = session, coord
            raise ValueError("refused")

    hook = Refuses()
    tf.train.get_or_create_global_step()
    with pytest.raises(ValueError, match="refused"):
        tf.train.MonitoredSession(hooks=[hook])

    assert hook.coord.should_stop()
    with pytest.raises(RuntimeError, match="closed"):
        hook.session.run(tf.train.get_global_step())
