"""A step takes the same code whether its spans go anywhere or not, and its spans are whole on each way of it.

The ways are those of docs/map.md: on its caller's thread, there waiting for kernels or for links, over a link, and on
the scheduled path. Which code a step takes is told by what it calls. Spans over several tasks: test_telemetry.py.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs OpenTelemetry: pip install 'tenfold[otel]'")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import tenfold as tf
from tenfold.session import inprocess
from tenfold.session.direct_master import DirectMaster
from tenfold.session.link_master import LinkMaster
from tenfold_core import telemetry
from tenfold_link.aio.link import Link
from tenfold_link.blocking.link import BlockingLink
from tenfold_link.blocking.step_link import StepLink
from tenfold_link.link_settings import LinkSettings
from tenfold_services.background import BackgroundServer
from tenfold_services.master import caller_own_steps
from tenfold_services.master.caller_cluster_steps import CallerClusterRun
from tenfold_services.master.step_runner import StepRunner
from tenfold_services.rpc.link_worker_service import WorkerEndpoint
from tenfold_services.server import TaskServer
from tenfold_services.worker import graph_manager
from tenfold_services.worker.direct_call import DirectCall
from tenfold_services.worker.graph_manager import GraphManager
from tenfold_services.worker.graph_run import GraphRun
from tenfold_services.worker.run_policy import RunPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opentelemetry.sdk.trace import ReadableSpan

LOCAL = "/job:local/replica:0/task:0"
PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"

#: What tells the ways of a step apart.
MARKS: tuple[tuple[Any, str], ...] = (
    (DirectCall, "__call__"),
    (caller_own_steps.WaitingRun, "run"),
    (CallerClusterRun, "run"),
    (StepRunner, "run"),
    (GraphManager, "start_run"),
    (GraphRun, "start"),
    (graph_manager, "run_at_once"),
    (WorkerEndpoint, "run_graph"),
    (DirectMaster, "run_step"),
    (LinkMaster, "run_step"),
    (LinkMaster, "run_over"),
    (BlockingLink, "call"),
    (StepLink, "start"),
    (Link, "call_nowait"),
)


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What steps call of MARKS, on whatever threads; for programs that always count as short."""
    called: list[str] = []
    for owner, name in MARKS:
        monkeypatch.setattr(owner, name, _noting(called, f"{owner.__name__}.{name}", getattr(owner, name)))
    for question in ("is_short", "was_short"):
        monkeypatch.setattr(RunPolicy, question, lambda *_: True)
    return called


def _noting(called: list[str], name: str, function: Any) -> Any:
    def noting(*arguments: Any, **named: Any) -> Any:
        called.append(name)
        return function(*arguments, **named)

    return noting


@contextmanager
def listening() -> Iterator[InMemorySpanExporter]:
    """What this process writes within the block."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with telemetry.using(provider):
        yield exporter
    provider.shutdown()


@contextmanager
def two_tasks(link: LinkSettings) -> Iterator[str]:
    """A ps and a worker in this process; the worker's target."""
    with ExitStack() as stack:
        jobs = {"ps": {0: ""}, "worker": {0: ""}}
        servers = {job: BackgroundServer(TaskServer(jobs, job, 0, link=link)) for job in jobs}
        for server in servers.values():
            server.start()
            stack.callback(server.stop)
        for server in servers.values():
            server.update_cluster({job: {0: f"localhost:{each.port}"} for job, each in servers.items()})
        target = servers["worker"].target
        # as tf.train.Server does: the session's target is a server of this process
        inprocess.register(target, servers["worker"])
        stack.callback(inprocess.unregister, target)
        yield target


@contextmanager
def one_task() -> Iterator[str]:
    with tf.train.Server.create_local_server() as server:
        yield server.target


def computes() -> Any:
    return tf.constant(1.0) + 2.0, 3.0


def waits() -> Any:
    queue = tf.FIFOQueue(4, [tf.float32])
    with tf.control_dependencies([queue.enqueue(3.0)]):
        return tf.identity(queue.dequeue()), 3.0


def crosses() -> Any:
    with tf.device("/job:ps/task:0"):
        there = tf.random_uniform([1000])
    with tf.device("/job:worker/task:0"):
        return tf.reduce_sum(tf.floor(there)), 0.0


def steps(session: tf.Session, fetch: Any, value: float, times: int) -> None:
    for _ in range(times):
        assert session.run(fetch) == value


#: Way → where it runs, what it computes, whether its client is as of another process, what it has to call.
WAYS: dict[str, tuple[Callable[[], Any], Callable[[], Any], bool, str]] = {
    "caller": (one_task, computes, False, "DirectCall.__call__"),
    "caller that waits": (one_task, waits, False, "WaitingRun.run"),
    "caller over tasks": (lambda: two_tasks(LinkSettings()), crosses, False, "CallerClusterRun.run"),
    "link": (one_task, computes, True, "DirectCall.__call__"),
    "scheduled": (lambda: two_tasks(LinkSettings()), crosses, True, "StepRunner.run"),
    "scheduled over gRPC": (lambda: two_tasks(LinkSettings(mode="off")), crosses, False, "StepRunner.run"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_traced_step_takes_the_code_of_an_untraced_one(
    way: str, code: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    where, program, is_away, mark = WAYS[way]
    if is_away:
        monkeypatch.setattr(inprocess, "find", lambda target: None)
    with where() as target, tf.Graph().as_default():
        fetch, value = program()
        with tf.Session(target) as session:
            steps(session, fetch, value, 3)
            code.clear()
            steps(session, fetch, value, 1)
            plain = sorted(code)
            with listening() as spans:
                code.clear()
                steps(session, fetch, value, 1)
                traced = sorted(code)
                found = spans.get_finished_spans()
            code.clear()
            steps(session, fetch, value, 1)
            after = sorted(code)

    assert mark in plain
    assert traced == plain
    assert after == plain
    names = [span.name for span in found]
    assert names.count("client RunStep") == names.count("master RunStep") == 1
    assert names.count("worker RunGraph") == (2 if program is crosses else 1)


@pytest.mark.parametrize("way", ["caller", "caller that waits", "caller over tasks", "link"])
def test_the_spans_of_a_step_on_its_callers_thread(way: str, code: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    where, program, is_away, mark = WAYS[way]
    if is_away:
        monkeypatch.setattr(inprocess, "find", lambda target: None)
    own = WORKER if program is crosses else LOCAL
    with where() as target, tf.Graph().as_default(), listening() as spans:
        fetch, value = program()
        with tf.Session(target) as session:
            steps(session, fetch, value, 3)
            spans.clear()
            code.clear()
            steps(session, fetch, value, 1)
            assert mark in code
            found = spans.get_finished_spans()
            handle = session._handle

    by_name = {(span.name, (span.attributes or {}).get("tenfold.task", "")): span for span in found}
    client, master = by_name["client RunStep", ""], by_name["master RunStep", own]
    part = by_name["worker RunGraph", own]
    assert client.attributes == {"tenfold.target": target, "tenfold.session": handle, "tenfold.fetches": fetch.name}
    assert master.attributes == {"tenfold.task": own, "tenfold.session": handle, "tenfold.fetches": fetch.name}
    assert (part.attributes or {})["tenfold.session"] == handle
    parts = [span for span in found if span.name == "worker RunGraph"]
    assert len({(span.attributes or {})["tenfold.step"] for span in parts}) == 1
    assert client.parent is None
    assert _above(master) == _id(client)
    assert [_above(span) for span in parts] == [_id(master)] * len(parts)


def _id(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


def _above(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def divides() -> tuple[Any, Any]:
    x = tf.placeholder(tf.int32, [])
    return x, tf.constant(6) // x


def through_queue() -> tuple[Any, Any]:
    x = tf.placeholder(tf.int32, [])
    queue = tf.FIFOQueue(4, [tf.int32])
    with tf.control_dependencies([queue.enqueue(x)]):
        return x, tf.constant(6) // queue.dequeue()


def own_part_fails() -> tuple[Any, Any]:
    with tf.device("/job:ps/task:0"):
        there = tf.cast(tf.floor(tf.random_uniform([])), tf.int32)
    with tf.device("/job:worker/task:0"):
        x = tf.placeholder(tf.int32, [])
        return x, tf.constant(6) // (x + there)


@pytest.mark.parametrize(
    ("way", "program"),
    [("caller", divides), ("caller that waits", through_queue), ("caller over tasks", own_part_fails)],
)
def test_a_step_that_fails_on_its_callers_thread(way: str, program: Any, code: list[str]) -> None:
    where, _, _, mark = WAYS[way]
    with where() as target, tf.Graph().as_default(), tf.Session(target) as session:
        x, quotient = program()
        for _ in range(3):
            assert session.run(quotient, {x: 2}) == 3
        code.clear()
        with listening() as spans, pytest.raises(tf.errors.InvalidArgumentError):
            session.run(quotient, {x: 0})
        assert mark in code
        found = [span for span in spans.get_finished_spans() if (span.attributes or {}).get("tenfold.task") != PS]

    assert sorted(span.name for span in found) == ["client RunStep", "master RunStep", "worker RunGraph"]
    for span in found:
        assert span.status.status_code is StatusCode.ERROR, span.name
        assert "InvalidArgumentError" in str(span.status.description)


def test_a_prepared_step_that_does_not_run_is_no_span(code: list[str]) -> None:
    """The scheduled path runs the step then, and has the spans of it."""
    with one_task() as target, tf.Graph().as_default(), tf.Session(target) as session:
        total = tf.constant(1.0) + 2.0
        steps(session, total, 3.0, 3)
        call = session._calls.find(total, None)
        assert call is not None
        assert call.step is not None
        call.step.end()  # type: ignore[attr-defined]
        code.clear()
        with listening() as spans:
            steps(session, total, 3.0, 1)
            found = [span.name for span in spans.get_finished_spans()]
    assert "StepRunner.run" in code
    assert sorted(found) == ["client RunStep", "master RunStep", "worker RunGraph"]
