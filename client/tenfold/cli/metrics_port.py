"""The port of a task for Prometheus, `tenfold task --metrics-port`: at `/metrics` what the control service has of it.

Started by task.py and registered_task.py once the server listens. One thread, `metrics-port`, answers one request after
the other: a scraper comes every few seconds. The lines are tenfold_core.task_metrics's.
"""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading
from typing import TYPE_CHECKING, Any

import click

from tenfold_core.build_info import build_info
from tenfold_core.task_metrics import BUILD_INFO, CONTENT_TYPE, families, family, labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tenfold.cli.settings import TaskSettings
    from tenfold_services.background import BackgroundServer

#: Seconds that a client has to send its request and to take the answer; the next one waits meanwhile.
_CLIENT_S = 5.0


def task_scrape(cluster: str, job: str, index: int, figures: Mapping[str, Any]) -> bytes:
    """One scrape of one task."""
    who = labels(cluster=cluster, job=job, task=str(index))
    return "".join([family(BUILD_INFO, [(labels(**build_info()), 1)]), *families([(who, figures)])]).encode()


@contextlib.contextmanager
def metrics_port(settings: TaskSettings, index: int, server: BackgroundServer) -> Iterator[None]:
    """Serves the task's metrics inside the block, if the settings want it. Raises ClickException for a port that cannot
    be had."""
    if settings.metrics_port is None:
        yield
        return

    def scrape() -> bytes:
        return task_scrape(settings.cluster_name, settings.job, index, server.figures())

    try:
        listener = _Listener((settings.metrics_host, settings.metrics_port), scrape)
    except OSError as error:
        raise click.ClickException(
            f"cannot serve metrics on {settings.metrics_host}:{settings.metrics_port}: {error.strerror or error}. Name "
            "another --metrics-port; 0 takes a free one."
        ) from None
    thread = threading.Thread(target=listener.serve_forever, name="metrics-port", daemon=True)
    thread.start()
    host = f"[{settings.metrics_host}]" if ":" in settings.metrics_host else settings.metrics_host
    click.echo(f"metrics at http://{host}:{listener.server_address[1]}/metrics")
    try:
        yield
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join(_CLIENT_S)


class _Listener(http.server.HTTPServer):
    def __init__(self, address: tuple[str, int], scrape: Callable[[], bytes]) -> None:
        self.scrape = scrape
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # as HTTPServer, which looks its own name up besides: that may take seconds
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away, or sent no request, is no concern of the task's output."""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Listener
    timeout = _CLIENT_S

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        status, kind, body = 404, "text/plain; charset=utf-8", b"There is nothing here but /metrics.\n"
        if self.path.partition("?")[0] == "/metrics":
            try:
                status, kind, body = 200, CONTENT_TYPE, self.server.scrape()
            except Exception as error:
                status, body = 503, f"The task has no figures now: {error}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Scrapes are not logged."""
