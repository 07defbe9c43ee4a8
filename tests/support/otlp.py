"""A small collector: receives OpenTelemetry's traces by OTLP over HTTP, and hands them out as they come."""

from __future__ import annotations

import gzip
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Received(NamedTuple):
    """A span as it came: of which service, and below which other one."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]


class Collector:
    """Spans by arrival. Any thread may wait for them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._spans: list[Received] = []
        self.url = ""

    @property
    def environment(self) -> dict[str, str]:
        """What makes a process send its traces here, soon."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url, "OTEL_BSP_SCHEDULE_DELAY": "50"}

    def take(self, body: bytes) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        found = []
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = _values(resource.resource.attributes).get("service.name", "")
            for scope in resource.scope_spans:
                for span in scope.spans:
                    ids = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
                    found.append(Received(service, span.name, *ids, _values(span.attributes)))
        with self._changed:
            self._spans += found
            self._changed.notify_all()

    def wait_for(self, names: set[tuple[str, str]], seconds: float) -> list[Received]:
        """All spans so far, as soon as each (service, name) of `names` is among those of one trace. Raises
        AssertionError after so many seconds."""

        def together() -> bool:
            traces: dict[str, set[tuple[str, str]]] = {}
            for span in self._spans:
                traces.setdefault(span.trace, set()).add((span.service, span.name))
            return any(names <= found for found in traces.values())

        with self._changed:
            assert self._changed.wait_for(together, seconds), [(span.service, span.name) for span in self._spans]
            return list(self._spans)


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on a free port of loopback."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.take(gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body)
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="otlp", daemon=True)
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join(30)
