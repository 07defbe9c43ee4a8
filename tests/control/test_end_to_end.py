"""From REST to kernel: a real task on loopback, registered with a real control service, runs steps over REST."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tenfold as tf
from support.background_cluster import background_cluster
from support.superfluous_feeds import Program, expected
from support.trace_check import check_trace
from tenfold.control import ControlClient, RemoteSession, TaskRegistration, problem_of
from tenfold_control_api.masters import link_masters
from tenfold_core import errors, tensor_util
from tenfold_core.access.credentials import AccessSettings
from tenfold_protos import graph_pb2, types_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .conftest import Service

FLOAT = {"type": types_pb2.DT_FLOAT}


def graph() -> graph_pb2.GraphDef:
    """y = x + 2, on the worker."""
    two = {"tensor": tensor_util.make_tensor_proto(np.float32(2))}
    return graph_pb2.GraphDef(
        node=[
            {"name": "x", "op": "Placeholder", "attr": {"dtype": FLOAT, "shape": {"shape": {"unknown_rank": True}}}},
            {"name": "two", "op": "Const", "attr": {"dtype": FLOAT, "value": two}},
            {"name": "y", "op": "AddV2", "input": ["x", "two"], "attr": {"T": FLOAT}},
        ],
        versions={"producer": 1087},
    )


@pytest.fixture
def control(start_service: Callable[..., Service]) -> Iterator[ControlClient]:
    with ControlClient(start_service(master_factory=link_masters(AccessSettings())).url) as client:
        yield client


@pytest.fixture
def session(control: ControlClient) -> Iterator[RemoteSession]:
    """A session on worker 0, a real server."""
    from tenfold_services.background import BackgroundServer
    from tenfold_services.server import TaskServer

    server = BackgroundServer(TaskServer({}, "worker", 0, bind="127.0.0.1:0"))
    server.start()
    try:
        control.declare_cluster("default", {"worker": 1})

        def follow(spec: object) -> None:
            server.update_cluster({"worker": {0: f"127.0.0.1:{server.port}"}})

        registration = TaskRegistration(control, "default", "worker", 0, f"127.0.0.1:{server.port}", on_spec=follow)
        with registration, control.create_session("default", graph()) as session:
            yield session
    finally:
        server.stop(1.0)


def test_a_step(session: RemoteSession) -> None:
    assert session.run("y:0", {"x:0": np.array([1, 2], np.float32)}).tolist() == [3.0, 4.0]


def test_extending(session: RemoteSession) -> None:
    more = graph_pb2.GraphDef(
        node=[{"name": "z", "op": "Neg", "input": ["y"], "attr": {"T": FLOAT}}], versions={"producer": 1087}
    )

    session.extend(more)

    assert session.run("z:0", {"x:0": np.float32(1)}) == np.float32(-3)


def test_errors_name_the_node(session: RemoteSession) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="must feed a value for placeholder") as caught:
        session.run("y:0")

    problem = problem_of(caught.value)
    assert problem is not None
    assert problem.members["node"] == "x"


def test_a_fetch_that_does_not_exist(session: RemoteSession) -> None:
    with pytest.raises(errors.NotFoundError):
        session.run("nowhere:0")

    assert session.run("y:0", {"x:0": np.float32(1)}) == np.float32(3)


def test_placement(session: RemoteSession, control: ControlClient) -> None:
    found = control.placement(session.id)
    first = control.placement(session.id, limit=2)

    assert [(node["name"], node["op"], node["reason"]) for node in found["nodes"]] == [
        ("x", "Placeholder", "the only device"),
        ("two", "Const", "the only device"),
        ("y", "AddV2", "the only device"),
    ]
    assert found["tasks"] == [{"task": "/job:worker/replica:0/task:0", "nodes": 3, "variables": 0, "variable_bytes": 0}]
    assert (len(first.nodes), first.next) == (2, "two")


def test_a_trace_of_a_step(session: RemoteSession, control: ControlClient) -> None:
    found = control.trace_session(session.id, fetches=["y:0"], feeds={"x:0": np.float32(1)})

    check_trace(found)
    assert {"y", "two"} <= {event["args"].get("node") for event in found["traceEvents"]}
    assert [task["task"] for task in found["metadata"]["tasks"]] == ["/job:worker/replica:0/task:0", "control service"]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_steps_that_are_fed_more_than_they_need(control: ControlClient, seed: int) -> None:
    with background_cluster({"worker": 1, "ps": 1}) as servers, ExitStack() as stack:
        control.declare_cluster("default", {"worker": 1, "ps": 1})
        for (job, index), server in servers.items():
            stack.enter_context(TaskRegistration(control, "default", job, index, f"127.0.0.1:{server.port}"))
        program = Program(tf, seed, ["/job:worker/task:0", "/job:ps/task:0"])
        session = stack.enter_context(control.create_session("default", program.graph, job="worker", index=0))
        session.run(program.init)

        answers = program.answers(lambda step, feeds: session.run([step.fetches, step.targets], feeds)[0])

        assert answers == expected(tf, seed)
