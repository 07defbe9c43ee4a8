"""OpenTelemetry traces within one process: which spans there are, what is above what, over each way between tasks."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs OpenTelemetry: pip install 'tenfold[otel]'")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import tenfold as tf
from support.links import ADDRESS, ECHO, SERVER, ThreadedListener
from tenfold.session import inprocess
from tenfold_core import errors, telemetry
from tenfold_link.blocking.dial import connect
from tenfold_link.link_settings import LinkSettings
from tenfold_link.wire.frames import FrameKind
from tenfold_link.wire.trace_prefix import TRACED, without_trace
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opentelemetry.sdk.trace import ReadableSpan

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """What this process writes, from now on."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with telemetry.using(provider):
        yield exporter
    provider.shutdown()


@contextmanager
def cluster(link: LinkSettings) -> Iterator[str]:
    """A ps and a worker in this process that sessions and tasks reach as if they were others; the worker's target."""
    with ExitStack() as stack:
        jobs = {"ps": {0: ""}, "worker": {0: ""}}
        servers = {job: BackgroundServer(TaskServer(jobs, job, 0, link=link)) for job in jobs}
        for server in servers.values():
            server.start()
            stack.callback(server.stop)
        addresses = {job: {0: f"localhost:{server.port}"} for job, server in servers.items()}
        for server in servers.values():
            server.update_cluster(addresses)
        yield servers["worker"].target


def two_parts() -> tuple[tf.Graph, Any]:
    """A step over both tasks."""
    graph = tf.Graph()
    with graph.as_default():
        with tf.device("/job:ps/task:0"):
            there = tf.random_uniform([1000])
        with tf.device("/job:worker/task:0"):
            here = tf.reduce_sum(tf.floor(there))
    return graph, here


def tree(spans: Sequence[ReadableSpan]) -> set[tuple[str, str]]:
    """(name and task of a span, those of the one above it); "" without one."""
    by_id = {span.context.span_id: span for span in spans if span.context is not None}

    def shown(span: ReadableSpan | None) -> str:
        if span is None:
            return ""
        task = str((span.attributes or {}).get("tenfold.task", ""))
        return f"{span.name} {task}".strip()

    return {(shown(each), shown(by_id.get(each.parent.span_id) if each.parent else None)) for each in spans}


@pytest.mark.parametrize("mode", ["auto", "tcp", "off"])
def test_a_step_over_two_tasks(spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, mode: Any) -> None:
    monkeypatch.setattr(inprocess, "find", lambda target: None)  # as in another process
    monkeypatch.setenv("TENFOLD_LINK", mode)
    graph, wanted = two_parts()
    with cluster(LinkSettings(mode=mode)) as target, tf.Session(target, graph=graph) as session:
        session.run(wanted)
        spans.clear()
        assert session.run(wanted) == 0.0
        found = spans.get_finished_spans()

    assert len({span.context.trace_id for span in found if span.context is not None}) == 1
    assert {
        ("client RunStep", ""),
        (f"master RunStep {WORKER}", "client RunStep"),
        (f"worker RunGraph {WORKER}", f"master RunStep {WORKER}"),
        (f"worker RunGraph {PS}", f"master RunStep {WORKER}"),
    } <= tree(found)
    if mode == "off":
        assert any(name == f"worker RecvTensor {PS}" for name, _ in tree(found)), tree(found)


def test_a_session_in_process(spans: InMemorySpanExporter) -> None:
    with tf.train.Server.create_local_server() as server, tf.Graph().as_default():
        total = tf.constant(1.0) + 2.0
        with tf.Session(server.target) as session:
            assert [session.run(total) for _ in range(3)] == [3.0] * 3
    found = spans.get_finished_spans()

    assert ("master CreateSession /job:local/replica:0/task:0", "client CreateSession") in tree(found)
    assert [span.name for span in found].count("client RunStep") == 3
    assert [span.name for span in found].count("worker RunGraph") == 3


def test_a_step_that_fails_is_told_at_each_span(spans: InMemorySpanExporter) -> None:
    with cluster(LinkSettings()) as target, tf.Graph().as_default(), tf.Session(target) as session:
        x = tf.placeholder(tf.int32, [])
        quotient = tf.constant(1) // x
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(quotient, {x: 0})
        found = {span.name: span for span in spans.get_finished_spans()}

    for name in ("client RunStep", "master RunStep", "worker RunGraph"):
        assert found[name].status.status_code is StatusCode.ERROR, name
        assert "InvalidArgumentError" in str(found[name].status.description)


def test_a_program_continues_its_own_span(spans: InMemorySpanExporter) -> None:
    with cluster(LinkSettings()) as target, tf.Graph().as_default(), tf.Session(target) as session:
        one = tf.constant(1.0)
        with telemetry.span("the program's"):
            session.run(one)
        assert ("client RunStep", "the program's") in tree(spans.get_finished_spans())


# -- links -----------------------------------------------------------------------------------------------------------


def test_a_peer_without_traces_takes_the_calls_of_one_that_has_some(spans: InMemorySpanExporter) -> None:
    """Which the peer says in the handshake; a peer that does not is told nothing."""
    with ThreadedListener() as listener:
        link = connect(listener.agree(LinkSettings()), ADDRESS)
        sent = _requests(link)
        with telemetry.span("above"):
            assert bytes(link.call(ECHO, b"header")[0]) == b"header"
        assert [method for method, _ in sent] == [ECHO | TRACED]
        link.close()
        answer = listener.agree(LinkSettings())
        with pytest.MonkeyPatch.context() as patched:
            silent = frozenset[str]()
            patched.setattr("tenfold_core.protocol._MINE", _without_abilities(silent))
            link = connect(answer, ADDRESS)
        sent = _requests(link)
        with telemetry.span("above"):
            assert bytes(link.call(ECHO, b"header")[0]) == b"header"
        assert sent == [(ECHO, b"header")]
        link.close()


def _requests(link: Any) -> list[tuple[int, bytes]]:
    """Method and header of each request that the link packs from now on."""
    packer, sent = link._packer, list[tuple[int, bytes]]()

    class Noting:
        def pack(self, kind: Any, method: int = 0, call: int = 0, header: bytes = b"", buffers: Any = ()) -> Any:
            if kind is FrameKind.REQUEST:
                sent.append((method, header))
            return packer.pack(kind, method, call, header, buffers)

    link._packer = Noting()
    return sent


def _without_abilities(can: frozenset[str]) -> Any:
    from tenfold_core import protocol

    return {name: each._replace(can=can) for name, each in protocol._MINE.items()}


def test_a_call_that_lacks_its_traceparent() -> None:
    with ThreadedListener() as listener:
        link = connect(listener.agree(LinkSettings()), ADDRESS)
        with pytest.raises(errors.InvalidArgumentError, match="a traceparent has 55 bytes"):
            link.call(ECHO | TRACED, b"short")
        assert bytes(link.call(ECHO | TRACED, 55 * b"?" + b"header")[0]) == b"header"  # nonsense is no parent
        with pytest.raises(errors.UnimplementedError, match="serves no method 999"):
            link.call(999 | TRACED, 55 * b"?")
        link.close()
    with pytest.raises(errors.InvalidArgumentError):
        without_trace(b"")
    assert listener.service.links[0].peer.startswith("the client")
    assert SERVER


# -- on and off ------------------------------------------------------------------------------------------------------


@pytest.fixture
def undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has not decided yet, in an environment that says nothing."""
    for name in (telemetry.SWITCH, *telemetry._ENDPOINTS, "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(telemetry, "_decided", False)
    monkeypatch.setattr(telemetry, "_chosen", None)
    monkeypatch.setattr(telemetry, "tracer", None)


@pytest.mark.usefixtures("undecided")
@pytest.mark.parametrize(
    ("environment", "switch"),
    [
        ({}, "off"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, "auto"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, "auto"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_SDK_DISABLED": "true"}, "off"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_TRACES_EXPORTER": "none"}, "off"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "TENFOLD_OTEL": "off"}, "off"),
        ({"TENFOLD_OTEL": "on"}, "on"),
        ({"OTEL_SERVICE_NAME": "training"}, "off"),
    ],
)
def test_what_the_environment_asks_for(environment: dict[str, str], switch: str) -> None:
    assert telemetry.wanted(environment) == switch


@pytest.mark.usefixtures("undecided")
def test_a_switch_that_is_none() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="TENFOLD_OTEL is 'loud'; it may be auto, on or off"):
        telemetry.wanted({"TENFOLD_OTEL": "loud"})


@pytest.mark.usefixtures("undecided")
def test_without_the_package_who_asks_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.setenv("TENFOLD_OTEL", "on")

    with pytest.raises(errors.FailedPreconditionError, match=r"TENFOLD_OTEL=on.*pip install 'tenfold\[otel\]'"):
        telemetry.start("tenfold-task")

    monkeypatch.delenv("TENFOLD_OTEL")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
    assert not telemetry.start("tenfold-task")
    assert "OTEL_EXPORTER_OTLP_ENDPOINT), and OpenTelemetry is not installed: pip install" in caplog.text


@pytest.mark.usefixtures("undecided")
def test_off_loads_nothing_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)  # whoever loads it fails

    with cluster(LinkSettings(mode="tcp")) as target, tf.Graph().as_default(), tf.Session(target) as session:
        assert session.run(tf.constant(2.0)) == 2.0
        assert session._master is not None
        assert not {"create_session", "run_step", "prepared_step"} & vars(session._master).keys()
    assert not telemetry.is_on()
    assert telemetry.headers() == ()
    assert telemetry.traceparent() == ""
