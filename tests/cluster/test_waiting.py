"""A session that is being created says who it waits for, and why."""

from __future__ import annotations

import http.server
import logging
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from support.ports import free_port
from support.task_processes import static_cluster
from tenfold.session import waiting
from tenfold.session.waiting import WaitNotice, why_no_grpc

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A test that waits longer than this has failed.
PATIENCE = 30.0
#: What a notice ends with.
MORE = "(what to do: docs/how-to/by-symptom.md#it-hangs)"


class Heard(logging.Handler):
    """What is said, as it comes."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.came = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        self.came.set()


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Heard]:
    """Notices come at once instead of after five seconds."""
    monkeypatch.setattr(waiting, "FIRST_S", 0.05)
    handler, logger = Heard(), logging.getLogger("tenfold.session")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def first_notice(target: str, heard: Heard) -> str:
    """What a session says first while it is created in vain."""
    with tf.Graph().as_default() as graph:
        fetch = tf.constant(1.0)
    config = tf.ConfigProto(operation_timeout_in_ms=2000)

    def create() -> None:
        with tf.Session(target, graph=graph, config=config) as sess, pytest.raises(tf.errors.OpError):
            sess.run(fetch)

    creating = threading.Thread(target=create)
    creating.start()
    came = heard.came.wait(PATIENCE)
    creating.join(PATIENCE)
    assert came
    return heard.texts[0]


@contextmanager
def http_server() -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield server.server_address[1]
    server.shutdown()
    serving.join(PATIENCE)
    server.server_close()


def test_nobody_listens(heard: Heard) -> None:
    target = f"grpc://127.0.0.1:{free_port()}"

    assert first_notice(target, heard) == (
        f"waiting for {target}: connection refused, no server listens at that address {MORE}"
    )


@pytest.mark.thorough
def test_an_http_server_listens(heard: Heard, capfd: pytest.CaptureFixture[str]) -> None:
    with http_server() as port:
        said = first_notice(f"grpc://127.0.0.1:{port}", heard)

    assert f"waiting for grpc://127.0.0.1:{port}: an HTTP server answers at that port, not gRPC" in said
    assert "tenfold://host:port/cluster" in said
    capfd.readouterr()  # what the HTTP server wrote


@pytest.mark.thorough
def test_the_name_does_not_resolve(heard: Heard) -> None:
    said = first_notice("grpc://no-such-host.invalid:2222", heard)

    assert "the host name 'no-such-host.invalid' does not resolve" in said


def test_a_task_of_the_cluster_does_not_listen(heard: Heard) -> None:
    with static_cluster(ps=1, worker=2, absent=[("worker", 1)]) as tasks:
        said = first_notice(tasks.target("worker", 0), heard)

    assert said.startswith(f"waiting for /job:worker/replica:0/task:1 at {tasks.addresses['worker'][1]}: UNAVAILABLE")
    assert "refused" in said
    assert "/job:ps" not in said


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"\x15\x03\x01\x00\x02\x02\x46", "speaks TLS"),
        (b"", "closes connections at once"),
        (b"SSH-2.0-OpenSSH_9\r\n", "is no gRPC server"),
        (b"\x00\x00\x00\x04\x00\x00\x00\x00\x00", None),
    ],
)
def test_what_answers_is_told_apart(said: bytes, reason: str | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(100)
                peer.sendall(said)

        answering = threading.Thread(target=answer)
        answering.start()
        found = why_no_grpc(f"grpc://127.0.0.1:{listener.getsockname()[1]}")
        answering.join(PATIENCE)

    assert found is None if reason is None else reason in str(found)


def test_a_call_that_is_quick_says_nothing(heard: Heard) -> None:
    asked = threading.Event()

    def why() -> str:
        asked.set()
        return "something"

    with WaitNotice(why, first=PATIENCE):
        pass

    assert not asked.is_set()
    assert not heard.texts


def test_a_reason_that_cannot_be_found_ends_nothing(heard: Heard) -> None:
    def why() -> str:
        raise OSError("no more files")

    with WaitNotice(why):
        assert heard.came.wait(PATIENCE)

    assert heard.texts[0] == f"waiting for OSError: no more files {MORE}"
