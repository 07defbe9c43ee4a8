"""What a sender may hold without sending: heads, bodies and connections have bounds, and say so when they end."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from .conftest import PATIENCE, Service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def dial(start_service: Callable[..., Service]) -> Iterator[Callable[..., socket.socket]]:
    """Connections to a service with tight bounds."""
    service = start_service(head_timeout=0.2, body_timeout=0.2, body_pace=1000.0, max_connections=3, max_small_body=100)
    host, port = httpx.URL(service.url).host, httpx.URL(service.url).port
    assert port is not None
    with ExitStack() as opened:
        yield lambda: opened.enter_context(socket.create_connection((host, port), timeout=PATIENCE))


def answer_of(peer: socket.socket) -> tuple[int, dict[str, Any]]:
    """The answer's status and problem; what is read ends with the connection."""
    read = b""
    while part := peer.recv(1 << 16):
        read += part
    head, _, body = read.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize("sent", [b"", b"GE", b"GET /healthz HTTP/1.1\r\nHost: local", b"GET /healthz HTTP/1.1\r\n"])
def test_a_head_that_does_not_come_ends_the_connection(dial: Callable[..., socket.socket], sent: bytes) -> None:
    peer = dial()
    peer.sendall(sent)

    status, problem = answer_of(peer)

    assert (status, problem["type"]) == (408, "urn:tenfold:problem:request-too-slow")


def test_a_head_that_drips_ends_the_connection(dial: Callable[..., socket.socket]) -> None:
    """Its time is that of the whole head, however many bytes come meanwhile."""
    peer = dial()
    peer.settimeout(0.02)
    peer.sendall(b"GET /healthz HTTP/1.1\r\n")
    read = b""
    for _ in range(1000):
        try:
            peer.sendall(b"x")
            read = peer.recv(1 << 16)
            break
        except TimeoutError:
            continue

    assert read.startswith(b"HTTP/1.1 408 ")


def test_a_body_that_stops_ends_the_connection(dial: Callable[..., socket.socket]) -> None:
    peer = dial()
    peer.sendall(
        b"PUT /v1/clusters/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 90\r\n\r\n{"
    )

    status, problem = answer_of(peer)

    assert (status, problem["type"]) == (408, "urn:tenfold:problem:request-too-slow")
    assert problem["instance"] == "/v1/clusters/x"
    assert "1 bytes of the body came" in problem["detail"]


def test_a_request_that_is_answered_after_a_while_is_not_slow(start_service: Callable[..., Service]) -> None:
    service = start_service(head_timeout=0.2, body_timeout=0.2, body_pace=1000.0)
    with httpx.Client(base_url=service.url, timeout=PATIENCE) as client:
        client.put("/v1/clusters/x", json={"jobs": {"worker": 1}})

        answer = client.get("/v1/clusters/x/spec?after=1&wait=600ms")

    assert answer.status_code == 200


def test_one_connection_too_many_is_refused_and_told(start_service: Callable[..., Service]) -> None:
    service = start_service(max_connections=2)
    url = httpx.URL(service.url)
    with ExitStack() as opened:
        held = [
            opened.enter_context(socket.create_connection((url.host, url.port or 0), timeout=PATIENCE))
            for _ in range(2)
        ]
        for peer in held:  # an answer tells that the service has them
            peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert peer.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        third = opened.enter_context(socket.create_connection((url.host, url.port or 0), timeout=PATIENCE))

        status, problem = answer_of(third)
        held[0].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        while held[0].recv(1 << 16):
            pass

        assert (status, problem["type"]) == (503, "urn:tenfold:problem:too-many-connections")
        assert httpx.get(f"{service.url}/healthz", timeout=PATIENCE).status_code == 200


def test_who_sends_a_body_that_is_too_large_gets_to_read_why(service: Service) -> None:
    """The rest of the body is dropped rather than the connection."""
    with httpx.Client(base_url=service.url, timeout=PATIENCE) as client:
        refused = client.put("/v1/clusters/x", content=b"x" * (8 << 20), headers={"Content-Type": "application/json"})
        again = client.get("/healthz")

    assert (refused.status_code, refused.json()["type"]) == (413, "urn:tenfold:problem:body-too-large")
    assert again.status_code == 200


def test_a_body_after_its_answer_ends_in_time_too(dial: Callable[..., socket.socket]) -> None:
    peer = dial()
    peer.sendall(
        b"PUT /v1/clusters/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 999\r\n\r\n{"
    )

    status, problem = answer_of(peer)

    assert (status, problem["type"]) == (413, "urn:tenfold:problem:body-too-large")


def test_what_is_no_http_is_a_problem_too(dial: Callable[..., socket.socket]) -> None:
    peer = dial()
    peer.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

    status, problem = answer_of(peer)

    assert (status, problem["type"]) == (400, "urn:tenfold:problem:malformed-head")
