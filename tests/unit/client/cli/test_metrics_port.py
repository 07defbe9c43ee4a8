"""A task's own port for Prometheus: answers while its block lasts, says what is wrong with a port."""

from __future__ import annotations

import http.client
import socket
from time import perf_counter
from typing import Any, cast

import click
import pytest
from prometheus_client.parser import text_string_to_metric_families

from support.stranger import a_stranger, needs_another_user
from tenfold.cli import metrics_port as module
from tenfold.cli.metrics_port import metrics_port
from tenfold.cli.task_settings import TaskSettings
from tenfold_core.access.credentials import AccessSettings


class Told:
    """Stands where the server does."""

    def __init__(self, figures: Any) -> None:
        self._figures = figures

    def figures(self) -> Any:
        if isinstance(self._figures, Exception):
            raise self._figures
        return self._figures


def settings(port: int | None, host: str = "127.0.0.1") -> TaskSettings:
    return TaskSettings(
        job="ps",
        index=3,
        cluster={"ps": {3: "localhost:1"}},
        control=None,
        cluster_name="default",
        address=None,
        bind="127.0.0.1:0",
        insecure=False,
        metrics_port=port,
        metrics_host=host,
    )


def get(port: int, path: str, method: str = "GET") -> tuple[int, str | None, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path)
    answer = connection.getresponse()
    found = answer.status, answer.getheader("Content-Type"), answer.read().decode()
    connection.close()
    return found


def port_of(capsys: pytest.CaptureFixture[str]) -> int:
    line = capsys.readouterr().out.strip()
    assert line.startswith("metrics at http://127.0.0.1:")
    assert line.endswith("/metrics")
    return int(line.split(":")[-1].partition("/")[0])


def test_a_task_serves_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    with metrics_port(settings(0), 3, cast("Any", Told({"steps": 12, "peers": [], "queues": []}))):
        port = port_of(capsys)
        status, kind, text = get(port, "/metrics")
        head = get(port, "/metrics", "HEAD")
        elsewhere = get(port, "/")

    samples = {each.name: each.samples[0] for each in text_string_to_metric_families(text)}
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert samples["tenfold_task_steps"].labels == {"cluster": "default", "job": "ps", "task": "3"}
    assert samples["tenfold_task_steps"].value == 12
    assert "tenfold_build_info" in samples
    assert (head[0], head[2]) == (200, "")
    assert (elsewhere[0], elsewhere[2]) == (404, "There is nothing here but /metrics.\n")
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


@needs_another_user
def test_who_may_look(capsys: pytest.CaptureFixture[str]) -> None:
    """The same user, or a token with the role read: no other user of the machine."""
    access = AccessSettings(token="to-look-here")
    with metrics_port(settings(0), 3, cast("Any", Told({"steps": 1, "peers": [], "queues": []})), access):
        port = port_of(capsys)
        with a_stranger() as stranger:
            ask = b"GET /metrics HTTP/1.0\r\n%s\r\n"
            refused, wrong, shown = [
                bytes.fromhex(stranger.ask("exchange", ["127.0.0.1", port], (ask % line).hex()))
                for line in (b"", b"Authorization: Bearer no\r\n", b"Authorization: Bearer to-look-here\r\n")
            ]
        assert get(port, "/metrics")[0] == 200
    assert [each.split()[1] for each in (refused, wrong, shown)] == [b"401", b"401", b"200"]
    assert b"tenfold_task" not in refused + wrong


@needs_another_user
def test_slow_clients_keep_nobody_waiting(capsys: pytest.CaptureFixture[str]) -> None:
    """Of another user, who begin a request and send no more: more of them than there are places."""
    with metrics_port(settings(0), 3, cast("Any", Told({"steps": 1, "peers": [], "queues": []}))):
        port = port_of(capsys)
        with a_stranger() as stranger:
            assert stranger.ask("connect", ["127.0.0.1", port], b"GET /met".hex(), 40) > 0
            began = perf_counter()
            assert [get(port, "/metrics")[0] for _ in range(3)] == [200] * 3
            assert perf_counter() - began < 4.0


def test_a_client_has_a_few_seconds(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """All in all, also where it sends a byte now and then."""
    monkeypatch.setattr(module, "_CLIENT_S", 0.3)
    served = metrics_port(settings(0), 3, cast("Any", Told({"steps": 1, "peers": [], "queues": []})))
    with served, socket.create_connection(("127.0.0.1", port_of(capsys)), timeout=20) as slow:
        slow.settimeout(0.05)
        began = perf_counter()
        ended = False
        while not ended and perf_counter() - began < 20:
            try:
                slow.send(b"G")
                ended = slow.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                ended = True
    assert ended


def test_a_server_that_has_ended_has_no_figures(capsys: pytest.CaptureFixture[str]) -> None:
    with metrics_port(settings(0), 3, cast("Any", Told(RuntimeError("it was not started")))):
        status, _, text = get(port_of(capsys), "/metrics")

    assert (status, text) == (503, "The task has no figures now: it was not started\n")


def test_without_a_port_nothing_listens(capsys: pytest.CaptureFixture[str]) -> None:
    with metrics_port(settings(None), 3, cast("Any", Told({}))):
        assert capsys.readouterr().out == ""


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(click.ClickException, match=rf"cannot serve metrics on 127\.0\.0\.1:{port}: Address already"),
            metrics_port(settings(port), 3, cast("Any", Told({}))),
        ):
            pass
