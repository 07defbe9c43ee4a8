"""Files that take long (a slow disk, a network file system that hangs) hold up nobody but who asked for them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from support.moments import PATIENCE
from tenfold_core.graph_files import GraphFiles
from tenfold_kernels.resources.summary_writers import SummaryWriter
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class SlowDisk:
    """Files whose name ends in "slow" are read once `released` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = threading.Semaphore(0)
        self.released = threading.Event()
        self._read = GraphFiles.read_whole
        monkeypatch.setattr(GraphFiles, "read_whole", lambda files, name: self._slowly(files, name))

    def _slowly(self, files: GraphFiles, name: str) -> bytes:
        if name.endswith("slow"):
            self.begun.release()
            assert self.released.wait(PATIENCE)
        return self._read(files, name)


class Steps:
    """Steps of a session, each on a thread."""

    def __init__(self, session: tf.Session) -> None:
        self._session = session
        self._threads: list[threading.Thread] = []
        self.found: list[Any] = []

    def start(self, fetch: Any) -> None:
        thread = threading.Thread(target=lambda: self.found.append(self._session.run(fetch)))
        self._threads.append(thread)
        thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDisk]:
    made = SlowDisk(monkeypatch)
    yield made
    made.released.set()


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A task that bears few kernels that take long, and takes them for long soon."""
    for name, value in {
        "LONG_KERNELS": "2", "LONG_KERNELS_PER_SESSION": "2", "POOL_THREADS": "1", "LONG_KERNEL_SECONDS": "0.01",
        "FILE_THREADS": "4",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"TENFOLD_TASK_{name}", value)
    server = BackgroundServer(TaskServer({"ps": [""]}, "ps", 0))
    server.start()
    yield server.target
    server.stop(0)


def test_slow_files_of_one_session_take_nobody_s_place(target: str, disk: SlowDisk, tmp_path: Path) -> None:
    (tmp_path / "slow").write_text("late")
    (tmp_path / "quick").write_text("soon")
    with tf.Graph().as_default(), tf.Session(target) as one, tf.Session(target) as other:
        slow, quick = tf.read_file(str(tmp_path / "slow")), tf.read_file(str(tmp_path / "quick"))
        steps = Steps(one)
        for _ in range(5):
            steps.start(slow)
        # half of the threads are one session's at most
        for _ in range(2):
            assert disk.begun.acquire(timeout=PATIENCE)

        # others compute, and read: a first run of a graph computes in the pool
        for number in range(4):
            assert other.run(tf.constant(number) + 1) == number + 1
            assert other.run(quick) == b"soon"
        # and so does the session itself
        assert one.run(tf.constant(1) * 5) == 5
        assert not disk.begun.acquire(blocking=False)

        disk.released.set()
        steps.join()
        assert steps.found == [b"late"] * 5


def test_events_that_the_disk_does_not_take_hold_up_their_steps_alone(
    target: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun, released, write = threading.Event(), threading.Event(), SummaryWriter.flush

    def slowly(writer: SummaryWriter) -> None:
        begun.set()
        assert released.wait(PATIENCE)
        write(writer)

    monkeypatch.setattr(SummaryWriter, "flush", slowly)
    with tf.Graph().as_default(), tf.Session(target) as one, tf.Session(target) as other:
        tf.train.create_global_step()
        with (
            tf.contrib.summary.create_file_writer(str(tmp_path)).as_default(),
            tf.contrib.summary.always_record_summaries(),
        ):
            written = tf.contrib.summary.scalar("loss", 1.0)
            flushed = tf.contrib.summary.flush()
            one.run([tf.global_variables_initializer(), tf.contrib.summary.summary_writer_initializer_op()])
        one.run(written)
        steps = Steps(one)
        for _ in range(4):
            steps.start(flushed)
        assert begun.wait(PATIENCE)

        for number in range(3):
            assert other.run(tf.constant(number) + 1) == number + 1

        released.set()
        steps.join()
        assert len(steps.found) == 4
        (events,) = tmp_path.iterdir()
        assert [value.tag for event in tf.train.summary_iterator(str(events)) for value in event.summary.value] == [
            "loss"
        ]


def test_a_checkpoint_is_written_and_read_beside(target: str, tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session(target) as session:
        v = tf.get_variable("v", initializer=3.0)
        saver = tf.train.Saver()
        session.run(v.initializer)
        where = saver.save(session, str(tmp_path / "model"))
        session.run(v.assign(7.0))
        saver.restore(session, where)
        assert session.run(v) == 3


def test_a_reader_waits_for_its_queue(target: str, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("a\nb\n")
    with tf.Graph().as_default(), tf.Session(target) as session:
        queue = tf.FIFOQueue(4, [tf.string], shapes=[()])
        _, line = tf.TextLineReader().read(queue)
        steps = Steps(session)
        steps.start(line)
        session.run(queue.enqueue(str(tmp_path / "lines")))
        steps.join()
        assert steps.found == [b"a"]
        assert session.run(line) == b"b"


def test_a_missing_file_is_an_error_of_its_node(target: str, tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session(target) as session:
        absent = tf.read_file(str(tmp_path / "none"), name="absent")
        with pytest.raises(tf.errors.NotFoundError, match=r"\{\{node absent\}\}"):
            session.run(absent)
