"""Asking a master where it placed a session's nodes: over links, over gRPC, in process, and of a server without it."""

from __future__ import annotations

from concurrent import futures
from typing import TYPE_CHECKING, Any

import grpc
import pytest

import tenfold as tf
from support.background_cluster import background_cluster
from tenfold.session.link_master import LinkMaster
from tenfold.session.master_interface import ExplainingMaster
from tenfold.session.targets import connect
from tenfold_core import errors
from tenfold_link.link_settings import LinkSettings
from tenfold_protos import config_pb2
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_protos.placement_pb2 import GetPlacementResponse

PS, WORKER = "/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"


@pytest.fixture(params=["auto", "tcp", "off"])
def target(request: pytest.FixtureRequest) -> Iterator[tuple[str, LinkSettings]]:
    """The worker of a ps and a worker, and how to reach it."""
    settings = LinkSettings(mode=request.param)
    servers = {job: BackgroundServer(TaskServer({}, job, 0, link=settings)) for job in ("ps", "worker")}
    for server in servers.values():
        server.start()
    spec = {job: {0: f"localhost:{server.port}"} for job, server in servers.items()}
    for server in servers.values():
        server.update_cluster(spec)
    yield servers["worker"].target, settings
    for server in servers.values():
        server.stop()


def graph() -> tf.Graph:
    built = tf.Graph()
    with built.as_default():
        with tf.device("/job:ps"):
            w = tf.get_variable("w", [2, 3], use_resource=False)
        tf.identity(w, name="read")
    return built


def told(answer: GetPlacementResponse) -> dict[str, tuple[str, str]]:
    return {node.name: (answer.text[node.assigned], answer.text[node.reason]) for node in answer.node}


def test_a_client_of_another_process_asks(target: tuple[str, LinkSettings]) -> None:
    master = LinkMaster(*target)
    handle, version = master.create_session(graph().as_graph_def(), config_pb2.ConfigProto(), 20.0)

    answer = master.placement(handle, 20.0)

    assert (master.link is None) == (target[1].mode == "off")
    assert told(answer)["w"] == (PS, "as requested")
    assert told(answer)["read"] == (WORKER, "default: first of 2 devices, the master's own task")
    assert told(answer)["w/read"] == (PS, "colocated with w (loc:@w)")
    assert {task.task: task.variable_bytes for task in answer.task} == {PS[:-13]: 24, WORKER[:-13]: 0}
    assert answer.graph_version == version
    master.close_session(handle, 20.0)
    master.close()


def test_a_graph_that_has_grown(target: tuple[str, LinkSettings]) -> None:
    master, built = LinkMaster(*target), graph()
    handle, version = master.create_session(built.as_graph_def(), config_pb2.ConfigProto(), 20.0)
    sent = built.version
    with built.as_default(), tf.device("/job:ps"):
        tf.constant(1.0, name="more")

    master.extend_session(handle, built._as_graph_def(sent, False)[0], version, 20.0)

    answer = master.placement(handle, 20.0)
    assert told(answer)["more"] == (PS, "as requested")
    assert answer.graph_version == version + 1
    master.close()


def test_a_client_of_the_same_process_asks(target: tuple[str, LinkSettings]) -> None:
    with tf.Session(target[0], graph=graph()) as session:
        master, handle = session._ensure_created()
        assert isinstance(master, ExplainingMaster)

        assert told(master.placement(handle, None))["w"] == (PS, "as requested")
    with pytest.raises(errors.AbortedError, match=f"Session {handle} is not found"):
        connect(target[0]).placement(handle, None)  # type: ignore[attr-defined]


def test_workers_without_a_device_setter_share_variables_and_queues() -> None:
    with background_cluster({"ps": 1, "worker": 2}) as servers:
        values = []
        for index in range(2):
            with tf.Graph().as_default():
                steps = tf.train.create_global_step()
                queue = tf.FIFOQueue(4, tf.int64, shared_name="queue")
                both, size = queue.enqueue(tf.assign_add(steps, 1)), queue.size()
                with tf.train.MonitoredTrainingSession(servers["worker", index].target, is_chief=index == 0) as session:
                    session.run(both)
                    values.append(session.run([steps, size]))

        assert values == [[1, 1], [2, 2]]


def test_a_server_that_is_not_tenfolds_says_so() -> None:
    server: Any = grpc.server(futures.ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    master = LinkMaster(f"grpc://127.0.0.1:{port}")
    try:
        with pytest.raises(errors.UnimplementedError, match="does not tell where it places nodes: it is not Tenfold's"):
            master.placement("0123", 20.0)
    finally:
        master.close()
        server.stop(0).wait(5)
