"""OpenTelemetry traces over processes: a step asked for over REST, at the control service, a master and two workers."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("opentelemetry.proto", reason="needs OpenTelemetry's exporter: pip install 'tenfold[otel]'")

import tenfold as tf
from support.otlp import Collector, collecting
from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import Children
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROGRAM = """
import sys
import tenfold as tf

with tf.device("/job:ps/task:0"):
    there = tf.random_uniform([1000])
with tf.device("/job:worker/task:0"):
    here = tf.reduce_sum(tf.floor(there))
with tf.Session(sys.argv[1]) as session:
    assert session.run(here) == 0.0
"""


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


@pytest.fixture(scope="module")
def url(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A control service, a ps and a worker that send their traces to the collector; the service's URL."""
    with Children() as children:
        control = [*CLI, "control", "--port", "0", "--database", str(tmp_path_factory.mktemp("control") / "c.db")]
        control += ["--jobs", "ps=1,worker=1"]
        children.start("control", control, env=collector.environment)
        found = children.wait_for_line("control", r"listening on (http://\S+)", PATIENCE)[1]
        for job in ("ps", "worker"):
            task = [*CLI, "task", "--job", job, "--control", found]
            children.start(job, task, stage=1, env={**collector.environment, "OTEL_SERVICE_NAME": f"the {job}"})
        for job in ("ps", "worker"):
            children.wait_for_line(job, "listening on grpc://", PATIENCE)
        yield found


def test_a_step_over_rest_is_one_trace_over_all_processes(collector: Collector, url: str) -> None:
    graph = tf.Graph()
    with graph.as_default():
        with tf.device("/job:ps/task:0"):
            there = tf.random_uniform([1000])
        with tf.device("/job:worker/task:0"):
            here = tf.reduce_sum(tf.floor(there), name="total")
    with ControlClient(url) as client, client.create_session("default", graph, job="worker", index=0) as session:
        assert session.run(here.name) == 0.0

    wanted = {
        ("tenfold-control", "service POST /v1/sessions/{session}/steps"),
        ("tenfold-control", "client RunStep"),
        ("the worker", "master RunStep"),
        ("the worker", "worker RunGraph"),
        ("the ps", "worker RunGraph"),
    }
    spans = collector.wait_for(wanted, PATIENCE)
    by_id = {span.id: span for span in spans}
    part = next(span for span in spans if (span.service, span.name) == ("the ps", "worker RunGraph"))
    above = []
    while part.parent:
        part = by_id[part.parent]
        above.append((part.service, part.name))
    assert above == [
        ("the worker", "master RunStep"),
        ("tenfold-control", "client RunStep"),
        ("tenfold-control", "service POST /v1/sessions/{session}/steps"),
    ]
    step = next(span for span in spans if span.name.endswith("/steps"))
    assert step.attributes["http.response.status_code"] == 200
    assert not any(span.name.endswith((":renew", "/spec")) for span in spans)


def test_a_program_over_a_link(collector: Collector, url: str) -> None:
    with ControlClient(url) as client:
        target = f"grpc://{client.spec('default').addresses['worker'][0]}"

    environment = {**os.environ, **collector.environment, "OTEL_SERVICE_NAME": "the program"}
    subprocess.run([sys.executable, "-c", PROGRAM, target], env=environment, timeout=PATIENCE, check=True)

    spans = collector.wait_for(
        {
            ("the program", "client RunStep"),
            ("the worker", "master RunStep"),
            ("the worker", "worker RunGraph"),
            ("the ps", "worker RunGraph"),
        },
        PATIENCE,
    )
    assert {span.attributes["tenfold.task"] for span in spans if span.name == "worker RunGraph"} == {
        "/job:ps/replica:0/task:0",
        "/job:worker/replica:0/task:0",
    }


@pytest.mark.thorough
def test_a_command_that_is_asked_for_traces_without_the_package(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['opentelemetry.sdk'] = None\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    for command in (
        ["task", "--job", "ps", "--cluster", '{"ps": ["127.0.0.1:1"]}', "--bind", "127.0.0.1:0", "--otel", "on"],
        ["control", "--port", "0", "--database", str(tmp_path / "c.db"), "--otel", "on"],
    ):
        done = subprocess.run(
            [sys.executable, *CLI, *command],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=environment,
            check=False,
        )

        assert done.returncode == 1
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("Error: "), done.stderr
        assert "OpenTelemetry is not installed: pip install 'tenfold[otel]', or TENFOLD_OTEL=off" in last
