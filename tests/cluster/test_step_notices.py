"""A step that waits for others says what for, whichever way it runs; one that computes or waits for room says nothing.

The five seconds are not waited for: they are a tenth of a second here, and the tests wait for the line.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from support.background_cluster import background_cluster
from support.ports import free_port
from tenfold.session import base_session, inprocess, waiting
from tenfold.session.step_notices import StepNotices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"
PATIENCE = 60.0
ROADS = {"in process": {}, "link": {}, "grpc": {"TENFOLD_LINK": "off"}}


@pytest.fixture
def notices(monkeypatch: pytest.MonkeyPatch) -> StepNotices:
    """Those of the sessions of this test, quick ones."""
    quick = StepNotices(first=0.1)
    monkeypatch.setattr(base_session, "notices", quick)
    return quick


@pytest.fixture(params=ROADS)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("TENFOLD_LINK", "TENFOLD_SHARED_MEMORY", "TENFOLD_SHARED_MEMORY_THRESHOLD"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ROADS[request.param].items():
        monkeypatch.setenv(name, value)
    with background_cluster({"worker": 1, "ps": 1}) as servers:
        if request.param != "in process":
            monkeypatch.setattr(inprocess, "find", lambda target: None)
        yield f"grpc://localhost:{servers['worker', 0].port}"


class Lines(logging.Handler):
    """What the logger of sessions says; tells when there is something new."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self._changed = threading.Condition()

    def emit(self, record: logging.LogRecord) -> None:
        with self._changed:
            self.said.append(record.getMessage())
            self._changed.notify_all()

    def wait_for(self, part: str) -> str:
        with self._changed:
            assert self._changed.wait_for(lambda: any(part in line for line in self.said), PATIENCE), self.said
            return next(line for line in self.said if part in line)


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler = Lines()
    logger = logging.getLogger("tenfold.session")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def while_running(session: Any, fetches: Any, act: Callable[[], None]) -> Any:
    """What a step gives while which `act` is called."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(session.run(fetches)), daemon=True)
    thread.start()
    act()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    return found[0]


@pytest.mark.usefixtures("notices")
@pytest.mark.parametrize("place", [PS, WORKER])
def test_a_dequeue_names_the_queue(target: str, place: str, lines: Lines) -> None:
    with tf.Graph().as_default(), tf.device(place):
        queue = tf.FIFOQueue(3, tf.float32, [[]], name="work")
        put, got = queue.enqueue(2.0), queue.dequeue(name="get") * 3.0
        with tf.Session(target) as session:
            for _ in range(2):  # the second time as a step that was prepared

                def act() -> None:
                    line = lines.wait_for("'get' (QueueDequeueV2 of 'work')")
                    assert f"at {place.replace('/task', '/replica:0/task')}: there are 0 elements" in line
                    assert "a step of mul:0 has run for" in line
                    session.run(put)

                assert while_running(session, got, act) == 6.0
                lines.said.clear()


@pytest.mark.usefixtures("notices")
def test_an_accumulator_says_how_many_gradients_are_missing(target: str, lines: Lines) -> None:
    with tf.Graph().as_default(), tf.device(PS):
        kept = tf.ConditionalAccumulator(tf.float32, [], name="grads")
        give, take = kept.apply_grad(4.0, local_step=0), kept.take_grad(2, name="take")
        with tf.device(WORKER):
            doubled = take * 2.0
        with tf.Session(target) as session:
            session.run(give)

            def act() -> None:
                assert "of 'grads') at /job:ps/replica:0/task:0: 1 of 2 gradients have come" in lines.wait_for("'take'")
                session.run(give)

            assert while_running(session, doubled, act) == 8.0


@pytest.mark.usefixtures("notices")
def test_tokens_of_synchronous_training_get_a_hint(target: str, lines: Lines) -> None:
    with tf.Graph().as_default(), tf.device(PS):
        tokens = tf.FIFOQueue(3, tf.int64, [[]], name="sync_token_q", shared_name="sync_token_q")
        put, got = tokens.enqueue(tf.constant(1, tf.int64)), tokens.dequeue()
        with tf.Session(target) as session:

            def act() -> None:
                assert "make_session_run_hook" in lines.wait_for("sync_token_q")
                session.run(put)

            assert while_running(session, got, act) == 1


def test_room_in_a_queue_is_waited_for_in_silence(notices: StepNotices, target: str, lines: Lines) -> None:
    with tf.Graph().as_default(), tf.device(PS):
        queue = tf.FIFOQueue(1, tf.float32, [[]], name="full")
        put, got = queue.enqueue(2.0), queue.dequeue()
        with tf.Session(target) as session:
            session.run(put)

            def act() -> None:
                end = time.monotonic() + PATIENCE
                while not notices._steps and time.monotonic() < end:
                    pass
                for step in list(notices._steps.values()):
                    step.due = 0.0
                notices.look()
                session.run(got)

            while_running(session, put, act)
            assert lines.said == []


def test_a_reset_of_a_dead_address_says_whom_it_waits_for(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "FIRST_S", 0.1)
    target = f"grpc://localhost:{free_port()}"

    with pytest.raises((tf.errors.DeadlineExceededError, tf.errors.UnavailableError)):
        tf.Session.reset(target, config=tf.ConfigProto(operation_timeout_in_ms=3000))

    assert "waiting for" in lines.wait_for(target)
