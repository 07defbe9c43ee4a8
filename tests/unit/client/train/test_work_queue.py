"""WorkQueue: epochs, prefixes, producers, datasets, checkpoints, two workers; what it refuses."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from support.background_cluster import background_cluster
from tenfold.train.work_queue import WorkQueue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WORKS = [b"to", "be", b"or", "not "]
PLAIN = [b"to", b"be", b"or", b"not"]
#: Seconds within which the workers must have ended.
DEADLINE_S = 60.0


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def taken(session: Any, work: Any, most: int = 100) -> list[bytes]:
    found = []
    try:
        for _ in range(most):
            found.append(session.run(work))
    except tf.errors.OutOfRangeError:
        pass
    return found


def test_epochs_in_their_order_and_shuffled() -> None:
    plain = WorkQueue(WORKS, num_epochs=2, shuffle=False, prefix="dir/")
    mixed = WorkQueue(WORKS, num_epochs=3, seed=4)
    assert (plain.name, mixed.name, len(plain), plain.works) == ("work_queue", "work_queue_1", 4, PLAIN)
    works = plain.take(), mixed.take()
    size = plain.add_summary()
    with tf.train.MonitoredTrainingSession() as session:
        assert session.run(size) == 8
        assert taken(session, works[0]) == [b"dir/" + work for work in PLAIN * 2]
        found = taken(session, works[1])

    assert [sorted(found[i : i + 4]) for i in range(0, 12, 4)] == [sorted(PLAIN)] * 3
    assert len({tuple(found[i : i + 4]) for i in range(0, 12, 4)}) > 1


def test_a_producer_and_a_dataset() -> None:
    produced = WorkQueue(WORKS, shuffle=False).input_producer().dequeue()
    element = tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensors(0)).get_next()
    data = WorkQueue(WORKS, shuffle=False).input_dataset()
    iterator = data.make_initializable_iterator()
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    following = iterator.get_next()
    with tf.train.MonitoredTrainingSession() as session:
        assert session.run(element) == 0
        assert taken(session, produced) == [[work] for work in PLAIN]
        assert taken(session, following) == PLAIN


def test_what_nobody_took_is_left_after_a_restart(tmp_path: Path) -> None:
    def run(works: list[Any], most: int) -> list[bytes]:
        with tf.Graph().as_default():
            work = WorkQueue(works, shuffle=False, name="global_queue").take()
            step = tf.train.get_or_create_global_step()
            with tf.control_dependencies([work]):
                counted = tf.assign_add(step, 1)
            server = tf.train.Server.create_local_server()
            with tf.train.MonitoredTrainingSession(
                server.target, checkpoint_dir=str(tmp_path), save_checkpoint_steps=1, log_step_count_steps=None
            ) as session:
                found = []
                for _ in range(most):
                    found.append(session.run([work, counted])[0])
                return found

    assert run(WORKS, 3) == PLAIN[:3]
    assert run(WORKS, 1) == PLAIN[3:]
    assert run(["another", "list"], 2) == [b"another", b"list"], "other works begin anew"


def test_two_workers_take_each_work_once() -> None:
    works = [f"file {number}" for number in range(30)]
    found: list[list[bytes]] = [[], []]
    with background_cluster({"ps": 1, "worker": 2}) as servers:
        ready = threading.Barrier(2)

        def work(index: int) -> None:
            with tf.Graph().as_default():
                setter = tf.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{index}")
                with tf.device(setter):
                    queue = WorkQueue(works, num_epochs=2, name="global_queue")
                    take = queue.take()
                assert queue._place == "/job:ps/task:0"
                target = servers["worker", index].target
                with tf.train.MonitoredTrainingSession(target, is_chief=index == 0) as session:
                    ready.wait(DEADLINE_S)
                    found[index] = taken(session, take)

        threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
            assert not thread.is_alive()

    assert sorted([*found[0], *found[1]]) == sorted(work.encode() for work in works * 2)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"works": "file"}, "requires works as a list of strings, not 'file'"),
        ({"works": []}, r"requires works as a list of strings, not \[\]"),
        ({"works": [1]}, r"requires works as a list of strings, not \[1\]"),
        ({"works": ["a"], "num_epochs": 0}, "num_epochs must be > 0 not 0"),
    ],
)
def test_what_is_no_list_of_works(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        WorkQueue(**given)
