"""The port of a task for Prometheus, `tenfold task --metrics-port`: at `/metrics` what the control service has of it.

Started by task.py and registered_task.py once the server listens. Who may look is decided as at the task's own port:
the same user over loopback, or a token with the role `read`. The thread `metrics-port` accepts, and each client has a
thread of its own, for a few seconds: a scraper that is slow keeps no other one waiting. The lines are
tenfold_core.task_metrics's.
"""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading
from typing import TYPE_CHECKING, Any

import click

from tenfold_core import errors
from tenfold_core.access import audit
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.access.gate import NOBODY, Gate
from tenfold_core.access.peer_user import unmapped
from tenfold_core.access.places import Places
from tenfold_core.access.roles import Role
from tenfold_core.build_info import build_info
from tenfold_core.loopback import is_loopback
from tenfold_core.task_metrics import BUILD_INFO, CONTENT_TYPE, families, family, labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tenfold.cli.task_settings import TaskSettings
    from tenfold_core.access.gate import Caller
    from tenfold_services.background import BackgroundServer

#: Seconds that a client has to send its request and to take the answer, and how many there may be at once.
_CLIENT_S, _CLIENTS = 5.0, 16


#: No tokens: for the same user alone.
NO_ACCESS = AccessSettings()


def task_scrape(cluster: str, job: str, index: int, figures: Mapping[str, Any]) -> bytes:
    """One scrape of one task."""
    who = labels(cluster=cluster, job=job, task=str(index))
    return "".join([family(BUILD_INFO, [(labels(**build_info()), 1)]), *families([(who, figures)])]).encode()


@contextlib.contextmanager
def metrics_port(
    settings: TaskSettings, index: int, server: BackgroundServer, access: AccessSettings = NO_ACCESS
) -> Iterator[None]:
    """Serves the task's metrics inside the block, if the settings want it, to those whom the tokens of `access` accept.
    Raises ClickException for a port that cannot be had."""
    if settings.metrics_port is None:
        yield
        return

    def scrape() -> bytes:
        return task_scrape(settings.cluster_name, settings.job, index, server.figures())

    try:
        gate = Gate(f"the metrics of /job:{settings.job}/task:{index}", access.tokens(), open_to_all=settings.insecure)
        listener = _Listener((settings.metrics_host, settings.metrics_port), scrape, gate)
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


class _Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], scrape: Callable[[], bytes], gate: Gate) -> None:
        self.scrape, self.gate = scrape, gate
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        #: Who has a place; guarded by _lock. One that must go is shut down, and its thread ends.
        self._places: Places[socket.socket] = Places(_CLIENTS, _shut)
        self._lock = threading.Lock()
        #: Of each client: who it is, and what ends it when its time is over.
        self.callers: dict[socket.socket, Caller] = {}
        self._timers: dict[socket.socket, threading.Timer] = {}
        super().__init__(address, _Handler)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether there is a place for this client."""
        try:
            caller = self.gate.accepted(request)
        except errors.OpError:
            return False
        group = caller.name if is_loopback(unmapped(client_address[0])) else client_address[0]
        with self._lock:
            if self._places.enter(request, group, known=caller.role is not Role.NONE) is not None:
                return False
            timer = self._timers[request] = threading.Timer(_CLIENT_S, _shut, (request,))
        self.callers[request] = caller
        timer.daemon = True
        timer.start()
        return True

    def shutdown_request(self, request: Any) -> None:
        """The client is done with."""
        with self._lock:
            self._places.leave(request)
            timer = self._timers.pop(request, None)
        self.callers.pop(request, None)
        if timer is not None:
            timer.cancel()
        super().shutdown_request(request)

    def server_bind(self) -> None:
        # as HTTPServer, which looks its own name up besides: that may take seconds
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away, or sent no request, is no concern of the task's output."""


def _shut(client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Listener
    timeout = _CLIENT_S

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _may_look(self) -> bool:
        """Whether the client may; if not, it is answered."""
        gate, what = self.server.gate, "GET /metrics"
        caller = self.server.callers.get(self.connection, NOBODY)
        try:
            caller = gate.caller(self.headers.get("Authorization"), caller)
            error = gate.refusal(caller.role, Role.READ, what)
        except errors.OpError as refused:
            error = refused
        if error is None:
            return True
        audit.refusals.note(caller, what, error.message, address=self.client_address[0])
        body = f"{error.message}\n".encode()
        self.send_response(401 if error.code == errors.UNAUTHENTICATED else 403)
        self.send_header("WWW-Authenticate", 'Bearer realm="tenfold"')
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        return False

    def _answer(self, *, with_body: bool) -> None:
        if not self._may_look():
            return
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
