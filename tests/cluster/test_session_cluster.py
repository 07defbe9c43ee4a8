"""Sessions that bring a cluster of their own (ConfigProto.cluster_def), and traced steps over two tasks."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tenfold as tf
from support.moments import started
from tenfold.session import inprocess
from tenfold_core import errors
from tenfold_protos import config_pb2, graph_pb2
from tenfold_protos.cluster_pb2 import ClusterDef
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer
from tenfold_services.worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def strangers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BackgroundServer]]:
    """Two servers, each a cluster of its own, reached over the network."""
    monkeypatch.setattr(inprocess, "find", lambda target: None)
    monkeypatch.setenv("TENFOLD_LINK", "off")
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(BackgroundServer(TaskServer({"localhost": {0: "localhost:0"}}, "localhost", 0)))
            for _ in range(2)
        ]


def together(servers: list[BackgroundServer]) -> config_pb2.ConfigProto:
    config = config_pb2.ConfigProto()
    job = config.cluster_def.job.add(name="worker")
    for index, server in enumerate(servers):
        job.tasks[index] = server.target.removeprefix("grpc://")
    return config


def test_a_session_names_the_servers_as_it_likes(strangers: list[BackgroundServer]) -> None:
    with tf.Graph().as_default():
        with tf.device("/job:worker/task:1"):
            w = tf.Variable([1.0, 2.0], name="w")
            doubled = w * 2.0
        with tf.device("/job:worker/task:0"):
            total = tf.reduce_sum(doubled)
        with tf.Session(strangers[0].target, config=together(strangers)) as sess:
            names = [device.name for device in sess.list_devices()]
            sess.run(w.initializer)
            assert sess.run(total) == 6.0
            options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE)
            metadata = config_pb2.RunMetadata()
            sess.run(total, options=options, run_metadata=metadata)

    assert names == [f"/job:worker/replica:0/task:{index}/device:CPU:0" for index in range(2)]
    assert sorted(device.device for device in metadata.step_stats.dev_stats) == names
    for server in strangers:
        assert server.server.worker.guests == []


@pytest.mark.parametrize("task", [0, 1])
def test_what_such_a_session_keeps_is_its_own(strangers: list[BackgroundServer], task: int) -> None:
    with tf.Graph().as_default():
        with tf.device(f"/job:worker/task:{task}"):
            w = tf.Variable([1.0, 2.0], name="w")
        with (
            tf.Session(strangers[0].target, config=together(strangers)) as first,
            tf.Session(strangers[0].target, config=together(strangers)) as second,
        ):
            first.run(w.initializer)
            assert first.run(w).tolist() == [1.0, 2.0]
            with pytest.raises(errors.FailedPreconditionError, match="uninitialized value w"):
                second.run(w)


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("task", [0, 1])
def test_such_sessions_share_the_state_of_the_tasks_if_asked_to(
    strangers: list[BackgroundServer], task: int, isolate: bool
) -> None:
    config = together(strangers)
    config.isolate_session_state = isolate
    config.experimental.share_session_state_in_clusterspec_propagation = True
    others = [strangers[0].target, strangers[1].target]
    with tf.Graph().as_default():
        with tf.device(f"/job:worker/task:{task}"):
            w = tf.Variable([1.0, 2.0], name="w")
        with tf.Session(others[0], config=config) as first, tf.Session(others[1], config=config) as second:
            first.run(w.initializer)
            second.run(w.assign_add([1.0, 1.0]))
            assert first.run(w).tolist() == [2.0, 3.0]
    with tf.Graph().as_default():
        w = tf.get_variable("w", [2])
        with tf.Session(others[task]) as plain:
            assert plain.run(w).tolist() == [2.0, 3.0], "it is what the server keeps for all"


def test_without_a_cluster_of_its_own_a_session_that_is_isolated_stays_so(strangers: list[BackgroundServer]) -> None:
    config = config_pb2.ConfigProto(isolate_session_state=True)
    config.experimental.share_session_state_in_clusterspec_propagation = True
    with tf.Graph().as_default():
        w = tf.get_variable("w", [2])
        with tf.Session(strangers[0].target, config=config) as first, tf.Session(strangers[0].target) as second:
            first.run(w.initializer)
            with pytest.raises(errors.FailedPreconditionError, match="uninitialized value w"):
                second.run(w)


def test_a_cluster_without_the_target_is_refused(strangers: list[BackgroundServer]) -> None:
    with tf.Graph().as_default():
        one = tf.constant(1.0)
        with (
            tf.Session(strangers[0].target, config=together(strangers[1:])) as sess,
            pytest.raises(errors.InvalidArgumentError, match="must have the address of the session's target"),
        ):
            sess.run(one)


def test_a_server_of_this_process_knows_its_task_too() -> None:
    config = config_pb2.ConfigProto()
    with tf.train.Server.create_local_server() as first, tf.train.Server.create_local_server() as second:
        job = config.cluster_def.job.add(name="worker")
        for index, server in enumerate((first, second)):
            job.tasks[index] = server.target.removeprefix("grpc://")
        with tf.Graph().as_default(), tf.Session(first.target, config=config) as sess:
            names = [device.name for device in sess.list_devices()]

    assert names == [f"/job:worker/replica:0/task:{index}/device:CPU:0" for index in range(2)]


def test_a_cost_model_is_built_when_it_is_due(strangers: list[BackgroundServer]) -> None:
    config = config_pb2.ConfigProto()
    config.graph_options.build_cost_model = 2
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 2])
        y = tf.matmul(x, x, name="y")
        with tf.Session(strangers[0].target, config=config) as sess:
            built = []
            for _ in range(4):
                metadata = config_pb2.RunMetadata()
                sess.run(y, {x: np.ones([2, 2])}, run_metadata=metadata)
                built.append(metadata)

    assert [metadata.HasField("cost_graph") for metadata in built] == [False, True, False, True]
    assert not built[1].step_stats.dev_stats
    nodes = {node.name: node for node in built[1].cost_graph.node}
    assert nodes["y"].compute_cost > 0
    assert nodes["y"].output_info[0].size == 16


async def test_masters_of_other_clusters_are_not_taken_for_our_own() -> None:
    home, heard = Worker("/job:ps/replica:0/task:0"), list[str]()
    home.on_master = lambda task, incarnation: heard.append(task)
    guest, tasks = home.join(ClusterDef(), "/job:worker/replica:0/task:1")

    for worker, handle in ((guest, "theirs"), (home, "ours")):
        await worker.create_worker_session(handle, None, False, (f"/job:{handle}/replica:0/task:0", 7))

    assert heard == ["/job:ours/replica:0/task:0"]
    await home.leave(guest, tasks)
    home.close()


async def test_a_server_that_stops_refuses_and_awaits_under_every_name() -> None:
    home = Worker("/job:ps/replica:0/task:0")
    guest, tasks = home.join(ClusterDef(), "/job:worker/replica:0/task:1")
    gone = errors.UnavailableError(None, None, "the server is going")
    guest.running += 1

    home.refuse(gone)
    drained = await started(home.drained())

    with pytest.raises(errors.UnavailableError, match="the server is going"):
        await guest.register_graph("", graph_pb2.GraphDef(), config_pb2.ConfigProto())
    assert not drained.done()
    guest.over()
    await drained
    await home.leave(guest, tasks)
    home.close()
