"""Alerts of a real service reach a real receiver, and its URL reaches no log."""

from __future__ import annotations

import json
import logging
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from .conftest import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .conftest import Service

Received = tuple[str, str | None, Any]


@pytest.fixture
def receiver() -> Iterator[tuple[int, queue.Queue[Received]]]:
    """Its port, and what came: path, credentials, body."""
    came: queue.Queue[Received] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            came.put((self.path, self.headers["Authorization"], body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port, came
    server.shutdown()
    thread.join(PATIENCE)
    server.server_close()


def test_a_run_that_failed_and_a_task_that_was_lost(
    start_service: Callable[..., Service],
    receiver: tuple[int, queue.Queue[Received]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    port, came = receiver
    hook = f"http://me:hidden@127.0.0.1:{port}/T0/secret?key=secret"
    with caplog.at_level(logging.DEBUG):
        service = start_service(webhooks=(hook,), lease_ttl=600.0)
        with httpx.Client(base_url=service.url, trust_env=False, timeout=PATIENCE) as api:
            body = {"launcher": "external", "entrypoint": ["python", "t.py"], "jobs": {"worker": 1}}
            run = api.post("/v1/runs", json=body).raise_for_status().json()["name"]
            told = {"state": "FAILED", "reason": "it diverged", "supervisor": {"host": "h", "pid": 1}}
            api.post(f"/v1/runs/{run}:report", json=told).raise_for_status()
            failed = came.get(timeout=PATIENCE)
            api.put("/v1/clusters/c", json={"jobs": {"ps": 1}}).raise_for_status()
            place = {"address": "10.0.0.1:1", "incarnation": "a"}
            api.put("/v1/clusters/c/tasks/ps/0", json=place).raise_for_status()
            end = {"state": "lost", "reason": "its rack burnt"}
            api.post("/v1/clusters/c/tasks/ps/0:end", json=end).raise_for_status()
            lost = came.get(timeout=PATIENCE)

    path, credentials, alert = failed
    assert (path, credentials) == ("/T0/secret?key=secret", "Basic bWU6aGlkZGVu")
    assert (alert["alert"], alert["run"], alert["text"]) == ("run.failed", run, f"run {run} failed: it diverged")
    assert (lost[2]["alert"], lost[2]["cluster"], lost[2]["object"]) == ("task.lost", "c", "/job:ps/replica:0/task:0")
    assert came.empty()
    assert "secret" not in caplog.text
    assert "hidden" not in caplog.text
