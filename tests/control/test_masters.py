"""Finding the master of a session by the control service, against a real uvicorn, with both clients."""

from __future__ import annotations

import logging
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from tenfold.control import find_master, master_calls
from tenfold.control.targets import cluster_spec
from tenfold_core import errors

from .conftest import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.control import ControlClient

    from .conftest import Service


def test_the_first_ready_one_of_chief_master_worker_any(client: ControlClient) -> None:
    client.declare_cluster("default", {"ps": 1, "worker": 2, "chief": 1})
    found = []
    for job, index in (("ps", 0), ("worker", 1), ("worker", 0), ("chief", 0)):
        client.register_task("default", job, index, f"{job}-{index}:1")
        found.append(client.wait_for_master("default", timeout=0))

    assert found == ["grpc://ps-0:1", "grpc://worker-1:1", "grpc://worker-0:1", "grpc://chief-0:1"]
    assert client.wait_for_master("default", "worker", timeout=0) == "grpc://worker-0:1"
    assert client.wait_for_master("default", "worker", 1, timeout=0) == "grpc://worker-1:1"


def test_it_is_waited_for(client: ControlClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one who waits is told for whom; then the task comes."""
    monkeypatch.setattr(master_calls, "SILENT_S", 0.05)
    told = _Told()
    master_calls.log.addHandler(told)
    client.declare_cluster("default", {"worker": 1})
    registrar = threading.Thread(
        target=lambda: told.came.wait(PATIENCE) and client.register_task("default", "worker", 0, "h:1")
    )
    registrar.start()
    try:
        target = client.wait_for_master("default", timeout=PATIENCE)
    finally:
        master_calls.log.removeHandler(told)
        registrar.join()

    assert target == "grpc://h:1"
    missing = "/job:worker/task:0 is missing (no task has registered on this index yet)"
    assert told.texts == [f"waiting for a master of cluster 'default': {missing}"]


class _Told(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.came = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        self.came.set()


def test_one_that_does_not_come_is_named(client: ControlClient) -> None:
    client.declare_cluster("default", {"ps": 1, "worker": 1})
    lease = client.register_task("default", "worker", 0, "h:1")
    client.release(lease.id, state="lost", reason="SIGKILL")
    client.register_task("default", "ps", 0, "h:2")

    with pytest.raises(errors.DeadlineExceededError, match=r"within 0.05 s: /job:worker/task:0 is lost \(SIGKILL\)\."):
        client.wait_for_master("default", "worker", timeout=0.05)
    with pytest.raises(
        errors.NotFoundError, match="has no /job:worker/task:7: it is declared with 1 of ps, 1 of worker"
    ):
        client.wait_for_master("default", "worker", 7)


# -- by a target


def authority(service: Service) -> str:
    return service.url.removeprefix("http://")


def test_a_target(service: Service, control: ControlClient, monkeypatch: pytest.MonkeyPatch) -> None:
    control.declare_cluster("default", {"worker": 2})
    for index in range(2):
        control.register_task("default", "worker", index, f"h:{index + 1}")

    assert find_master(f"tenfold://{authority(service)}/default") == "grpc://h:1"
    assert find_master(f"tenfold://{authority(service)}/default/worker/1") == "grpc://h:2"
    monkeypatch.setenv("TENFOLD_CONTROL", service.url)
    assert find_master("tenfold:///default") == "grpc://h:1"
    assert cluster_spec().as_dict() == {"worker": ["h:1", "h:2"]}


def test_a_cluster_that_is_not_declared(service: Service, control: ControlClient) -> None:
    control.declare_cluster("default", {"worker": 1})

    with pytest.raises(errors.NotFoundError, match=r"'defualt' is not declared at http.*; declared are: default"):
        find_master(f"tenfold://{authority(service)}/defualt")


def test_a_service_with_a_token(start_service: Callable[..., Service], monkeypatch: pytest.MonkeyPatch) -> None:
    target = f"tenfold://{authority(start_service(token='a-secret'))}/default"

    monkeypatch.delenv("TENFOLD_TOKEN", raising=False)
    with pytest.raises(errors.UnauthenticatedError, match=r"asks for a token.* Set TENFOLD_TOKEN"):
        find_master(target)
    monkeypatch.setenv("TENFOLD_TOKEN", "a-secret")
    with pytest.raises(errors.NotFoundError, match="declared are: none"):
        find_master(target)


def test_where_nothing_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{taken.getsockname()[1]}"

        with pytest.raises(errors.UnavailableError, match=f"control service at http://{where} cannot be reached"):
            find_master(f"tenfold://{where}/default")


@pytest.mark.parametrize(
    "answer",
    [
        b"\x00\x00\x12\x04\x00\x00\x00\x00\x00",  # the beginning of HTTP/2, as of a task's port
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    ],
)
def test_where_something_else_listens(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        where = f"127.0.0.1:{listener.getsockname()[1]}"

        def serve() -> None:
            while True:
                connection, _ = listener.accept()
                with connection:
                    if connection.recv(65536) == b"end":
                        return
                    connection.sendall(answer)

        server = threading.Thread(target=serve)
        server.start()
        try:
            with pytest.raises(errors.UnavailableError, match=f"http://{where} is no control service of Tenfold"):
                find_master(f"tenfold://{where}/default")
        finally:
            with socket.create_connection(("127.0.0.1", int(where.rpartition(":")[2]))) as last:
                last.sendall(b"end")
            server.join(PATIENCE)
