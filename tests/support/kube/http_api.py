"""The API of the tests' Kubernetes cluster over HTTP: discovery, list and watch, create, read, patch, delete, logs.

A thread for each connection, as the standard library's server has them. Refusals are Status objects. A test may set
what a request is refused with (`refusals`), end all watches (`break_watches`), and sees all requests (`seen`).
"""

from __future__ import annotations

import json
import re
import ssl
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from support.kube.store import StatusError, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenfold_core.access.credentials import AccessSettings

#: Group and version → resource → (kind, namespaced).
RESOURCES: dict[str, dict[str, tuple[str, bool]]] = {
    "v1": {
        "namespaces": ("Namespace", False),
        "pods": ("Pod", True),
        "secrets": ("Secret", True),
        "services": ("Service", True),
    },
    "batch/v1": {"jobs": ("Job", True)},
    "jobset.x-k8s.io/v1alpha2": {"jobsets": ("JobSet", True)},
    "trainer.kubeflow.org/v1alpha1": {
        "trainjobs": ("TrainJob", True),
        "clustertrainingruntimes": ("ClusterTrainingRuntime", False),
    },
}
_PATH = re.compile(
    r"/(?:api|apis)/(?P<group>v1|[a-z0-9.-]+/v[a-z0-9]+)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<resource>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[a-z]+))?"
)
_VERBS = ["create", "delete", "get", "list", "patch", "watch"]
#: Seconds of silence after which a watch looks whether it is over.
_LOOK_S = 0.2
_JSON = "application/json"


@dataclass(slots=True)
class Request:
    """One request, as tests see it."""

    verb: str
    path: str
    resource: str
    name: str
    query: dict[str, str]
    body: dict[str, Any]


class ApiServer:
    """Serves `store` on a port of loopback to who shows `token`; by TLS, as kubectl shows it to no other."""

    def __init__(self, store: Store, token: str, certificate: AccessSettings) -> None:
        self.store, self.token = store, token
        #: Asked with each request: a StatusError, in place of an answer, or None.
        self.refusals: list[Callable[[Request], StatusError | None]] = []
        self.seen: list[Request] = []
        #: Lines of a pod's container: (pod, since seconds, follow) → pieces of text, or StatusError.
        self.logs: Callable[[str, float | None, bool], Iterator[str]] = lambda pod, since, follow: iter(())
        self._break = 0
        api = self

        class Handler(_Handler):
            server_api = api

        self._server = _Server(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(str(certificate.tls_cert), str(certificate.tls_key))
        # the handshake is the connection's own thread's
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="kube-api", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def break_watches(self) -> None:
        """Ends the connections of all watches that are there now."""
        with self.store.changed:
            self._break += 1
            self.store.changed.notify_all()

    @property
    def breaks(self) -> int:
        return self._break

    def close(self) -> None:
        self.break_watches()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Quiet: a client that is gone in the middle of a request is one of those that tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_api: ApiServer

    def log_message(self, format: str, *arguments: Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self._answer("get")

    def do_POST(self) -> None:
        self._answer("create")

    def do_PATCH(self) -> None:
        self._answer("patch")

    def do_DELETE(self) -> None:
        self._answer("delete")

    def _answer(self, verb: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length) if length else b""
        try:
            if self.headers.get("Authorization") != f"Bearer {self.server_api.token}":
                raise StatusError(401, "Unauthorized", "Unauthorized")
            self._serve(verb, json.loads(raw) if raw else {})
        except StatusError as error:
            self._send(error.code, error.body, error.headers)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    def _serve(self, verb: str, body: dict[str, Any]) -> None:
        api, store = self.server_api, self.server_api.store
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        if (found := _discovery(url.path)) is not None:
            self._send(200, found)
            return
        match = _PATH.fullmatch(url.path)
        if match is None or match["resource"] not in RESOURCES.get(match["group"], {}):
            raise StatusError(404, "NotFound", "the server could not find the requested resource")
        group, resource, name = match["group"], match["resource"], match["name"] or ""
        kind, namespaced = RESOURCES[group][resource]
        if verb == "get" and not name:
            verb = "watch" if query.get("watch") in ("1", "true", "True") else "list"
        request = Request(verb, url.path, resource, name, query, body)
        with store.changed:
            api.seen.append(request)
            store.changed.notify_all()
        for refusal in api.refusals:
            if (refused := refusal(request)) is not None:
                raise refused
        space = (match["namespace"] or None) if namespaced else ""
        selector = query.get("labelSelector", "")
        typed = {"kind": kind, "apiVersion": group}
        if verb == "watch":
            self._watch(resource, space, selector, query, typed)
        elif match["sub"] == "log":
            since = query.get("sinceSeconds")
            follow = query.get("follow") in ("true", "True")
            self._stream(api.logs(name, None if since is None else float(since), follow))
        elif verb == "list":
            items = store.list(resource, space, selector)
            metadata = {"resourceVersion": str(store.version)}
            self._send(200, {**typed, "kind": f"{kind}List", "metadata": metadata, "items": items})
        elif verb == "get":
            self._send(200, {**typed, **store.get(resource, space or "", name)})
        elif verb == "create":
            made = store.create(resource, space or "", body, dry="dryRun" in query)
            self._send(201, {**typed, **made})
        elif verb == "patch":
            self._send(200, {**typed, **store.patch(resource, space or "", name, body)})
        else:
            grace = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
            found = store.delete(resource, space or "", name, None if grace is None else int(grace))
            self._send(200, {**typed, **found})

    def _watch(
        self, resource: str, space: str | None, selector: str, query: dict[str, str], typed: dict[str, str]
    ) -> None:
        api = self.server_api
        breaks = api.breaks
        version = int(query.get("resourceVersion") or api.store.version)

        def lines() -> Iterator[str]:
            last, left = version, float(query.get("timeoutSeconds") or 60)
            try:
                for event in api.store.watch(resource, space, selector, version, _LOOK_S):
                    if api.breaks != breaks:
                        return
                    if event is not None:
                        last = event.version
                        yield json.dumps({"type": event.kind, "object": {**typed, **event.object}}) + "\n"
                    elif (left := left - _LOOK_S) <= 0:
                        break
                if query.get("allowWatchBookmarks"):
                    bookmark = {**typed, "metadata": {"resourceVersion": str(last)}}
                    yield json.dumps({"type": "BOOKMARK", "object": bookmark}) + "\n"
            except StatusError as error:
                yield json.dumps({"type": "ERROR", "object": error.body}) + "\n"

        self._stream(lines())

    def _stream(self, pieces: Iterator[str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", _JSON)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            data = piece.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, code: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", _JSON)
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def _discovery(path: str) -> dict[str, Any] | None:
    """What kubectl asks for before anything else."""
    if path == "/version":
        return {"major": "1", "minor": "31", "gitVersion": "v1.31.0", "platform": "linux/amd64"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        groups = [
            {
                "name": group,
                "versions": [{"groupVersion": f"{group}/{version}", "version": version}],
                "preferredVersion": {"groupVersion": f"{group}/{version}", "version": version},
            }
            for group, _, version in (each.partition("/") for each in RESOURCES if "/" in each)
        ]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    for prefix in ("/api/", "/apis/"):
        group = path.removeprefix(prefix)
        if path.startswith(prefix) and group in RESOURCES and ("/" in group) == (prefix == "/apis/"):
            resources = [
                {"name": name, "singularName": kind.lower(), "namespaced": namespaced, "kind": kind, "verbs": _VERBS}
                for name, (kind, namespaced) in RESOURCES[group].items()
            ]
            return {"kind": "APIResourceList", "groupVersion": group, "resources": resources}
    return None
