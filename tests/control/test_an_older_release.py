"""This release with the one before it, over REST: a task registers, renews its lease, follows the spec and leaves, as
written down in tests/recorded. Its requests go to this service, its service's answers to this client."""

from __future__ import annotations

import base64
import json
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import pytest

from tenfold.control import ControlClient, TaskRegistration
from tenfold.control.retry import NO_RETRY
from tenfold_core import errors, protocol

from .conftest import PATIENCE, Service

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDED = Path(__file__).parents[1] / "recorded"
RELEASES = sorted(folder.name for folder in RECORDED.iterdir() if (folder / "rest.json").exists())


class Message(NamedTuple):
    """A request or an answer: its first line, its headers, and what is in its body."""

    first: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None

    @property
    def status(self) -> int:
        return int(self.first.split()[1])


def read(data: bytes) -> Message:
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Message(first, headers, body)


def conversation(release: str) -> list[tuple[bytes, Message]]:
    """Requests as they were sent, with their answers, in their order."""
    found = []
    for turns in json.loads((RECORDED / release / "rest.json").read_text()):
        for (who, request, number), (other, answer, _) in zip(turns[::2], turns[1::2], strict=False):
            assert (who, other) == ("caller", "listener")
            found.append((number, base64.b64decode(request), read(base64.b64decode(answer))))
    return [(request, answer) for _, request, answer in sorted(found, key=lambda each: each[0])]


def sent(address: tuple[str, int], data: bytes) -> Message:
    """What is answered to these bytes."""
    with socket.create_connection(address, PATIENCE) as peer:
        peer.sendall(data)
        got = b""
        while True:
            got += peer.recv(1 << 16)
            if b"\r\n\r\n" in got:
                message = read(got)
                if len(message.body) >= int(message.headers.get("content-length", 0)):
                    return message


def renamed(then: Any, now: Any, names: dict[str, str], where: str = "") -> None:
    """Every member that was there then is there now; names that differ go to `names`."""
    if isinstance(then, dict):
        assert isinstance(now, dict), where
        assert then.keys() <= now.keys(), where
        for name in then:
            renamed(then[name], now[name], names, f"{where}.{name}")
    elif isinstance(then, str) and isinstance(now, str) and then != now and re.fullmatch(r"[0-9a-f-]{16,}", then):
        names[then] = now


@pytest.mark.parametrize("release", RELEASES)
def test_its_tasks_register_with_this_service(release: str, service: Service) -> None:
    url = httpx.URL(service.url)
    assert url.port is not None
    names: dict[str, str] = {}
    met = set()
    for request, then in conversation(release):
        text = re.sub(rb"wait=\d+ms", b"wait=20ms", request)
        for old, new in names.items():
            text = text.replace(old.encode(), new.encode())
        now = sent((url.host, url.port), text)

        assert now.status == then.status, (text, now)
        renamed(then.json, now.json, names, then.first)
        met.add(text.split(b" ", 2)[1].decode().partition("?")[0].rpartition("/")[2].rpartition(":")[2])
    assert {"renew", "release", "spec"} <= met, met


@pytest.fixture
def older(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a service that gives the answers of that release's."""
    answers: dict[tuple[str, str], list[Message]] = {}
    for data, answer in conversation(request.param):
        method, path, _ = read(data).first.split()
        answers.setdefault((method, path.partition("?")[0]), []).append(answer)
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            path = self.path.partition("?")[0]
            known = answers[self.command, path]
            if path.endswith("/spec") and len(known) == 1:
                over.wait(PATIENCE)  # as a long-poll of which nothing comes
            told = known.pop(0) if len(known) > 1 else known[0]
            if path.endswith(":release"):
                over.set()
            self.send_response(told.status)
            for name in ("content-type", "content-length"):
                self.send_header(name, told.headers[name])
            self.end_headers()
            self.wfile.write(told.body)

        do_GET = do_PUT = do_POST = answer

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="older", daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    over.set()
    server.shutdown()
    server.server_close()
    thread.join(PATIENCE)


@pytest.mark.parametrize("older", RELEASES, indirect=True)
def test_this_task_registers_with_its_service(older: str) -> None:
    followed = threading.Event()
    with ControlClient(older) as client:
        client.declare_cluster("default", {"ps": 1, "worker": 1})
        registration = TaskRegistration(
            client, "default", "ps", 0, "127.0.0.1:2222", incarnation="4711", on_spec=lambda _: followed.set()
        )
        with registration:
            assert registration.task == "/job:ps/replica:0/task:0"
            assert followed.wait(PATIENCE)
            registration._heartbeat()
            assert registration.spec is not None
            assert registration.spec.jobs == {"ps": 1, "worker": 1}


def test_a_caller_of_a_version_that_is_not_spoken_here(service: Service) -> None:
    with httpx.Client(base_url=service.url, trust_env=False, timeout=PATIENCE) as client:
        refused = client.get("/v1/clusters", headers={protocol.HEADER: "2-3; release=0.9.0"})
        malformed = client.get("/v1/clusters", headers={protocol.HEADER: "newest"})
        newer = client.get("/v1/clusters", headers={protocol.HEADER: "1-9; release=0.9.0; can=fly"})
        silent = client.get("/v1/clusters")

    assert refused.status_code == 400
    assert refused.json()["type"] == "urn:tenfold:problem:protocol-not-spoken"
    assert refused.json()["detail"] == (
        "the caller (Tenfold 0.9.0) speaks versions 2 to 3 of REST, and this process "
        f"(Tenfold {protocol.release()}) version 1: bring this process up to date (pip install tenfold==0.9.0)."
    )
    assert (malformed.status_code, malformed.json()["type"]) == (400, "urn:tenfold:problem:invalid-request")
    assert newer.is_success
    assert silent.is_success
    assert {each.headers[protocol.HEADER] for each in (refused, malformed, newer, silent)} == {protocol.rest().text()}


def test_a_service_of_a_version_that_is_not_spoken_here(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    with ControlClient(service.url, retry=NO_RETRY) as client:
        client.clusters()
        newer = protocol.Speaks(2, 3, frozenset())
        monkeypatch.setattr(protocol, "_MINE", dict.fromkeys(protocol._MINE, newer))
        monkeypatch.setattr("tenfold.control.exchange._SPOKEN_HERE", newer.text())

        with pytest.raises(errors.FailedPreconditionError) as refused:
            client.clusters()

    assert refused.value.message == (
        f"the control service at {service.url} (Tenfold {protocol.release()}) speaks version 1 of REST, and this "
        f"process (Tenfold {protocol.release()}) versions 2 to 3: bring the control service at {service.url} up to "
        f"date (pip install tenfold=={protocol.release()})."
    )
