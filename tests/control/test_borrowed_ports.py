"""Another user calls the control service from a port at which the owner listens, and is gone before it is worked on;
fills its places; looks at its metrics.

What tests/cluster/test_borrowed_ports.py shows for a task, over HTTP/1.1: a real other user, twenty requests.
"""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

import httpx
import pytest

from support.stranger import a_stranger, needs_another_user
from support.task_processes import PATIENCE
from tenfold_core.access.peer_user import CAN_TELL

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Service

pytestmark = [needs_another_user, pytest.mark.skipif(not CAN_TELL, reason="only Linux tells whose a connection is")]

TIMES = 20
BODY = b'{"jobs":{"w":1}}'


SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def put(cluster: str) -> bytes:
    head = f"PUT /v1/clusters/{cluster} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY


def test_no_cluster_is_declared(start_service: Callable[..., Service]) -> None:
    with a_stranger() as stranger, socket.socket() as own:
        port = stranger.ask("bind", "127.0.0.1", socket.AF_INET, TIMES)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own.bind(("127.0.0.1", port))
        own.listen()
        service = start_service()
        to = ["127.0.0.1", int(service.url.rpartition(":")[2])]

        for number in range(TIMES):
            stranger.ask("send_and_reset", to, put(f"stranger-{number}").hex(), port)

        declared = httpx.put(f"{service.url}/v1/clusters/mine", json={"jobs": {"w": 1}}, timeout=PATIENCE)
        assert declared.status_code in (200, 201)
        listed = httpx.get(f"{service.url}/v1/clusters", timeout=PATIENCE).json()
    assert [each["name"] for each in listed["clusters"]] == ["mine"], json.dumps(listed)


def test_idle_strangers_make_room(start_service: Callable[..., Service]) -> None:
    """Connections that say nothing: a quarter of the places is what another user has."""
    service = start_service(max_connections=16)
    to = ["127.0.0.1", int(service.url.rpartition(":")[2])]
    with a_stranger() as stranger:
        stranger.ask("connect", to, "", 40)
        with httpx.Client(timeout=20) as client:
            assert client.get(f"{service.url}/healthz").status_code == 200
            assert client.get(f"{service.url}/v1/clusters").status_code == 200
        scrape = bytes.fromhex(stranger.ask("exchange", to, SCRAPE.hex()))
    assert scrape.startswith(b"HTTP/1.1 401 "), scrape
