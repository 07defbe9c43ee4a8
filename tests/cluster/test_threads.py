"""intra_op_parallelism_threads: a server's own counts, and that of sessions of the process's own server."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf
from tenfold.session import inprocess
from tenfold_core.hosts import tasks_on_host
from tenfold_kernels import threads
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer


@pytest.fixture(autouse=True)
def cores() -> int:
    np.dot(np.ones(1), np.ones(1))
    threads.keep_blas_on_callers(False)  # as before any product of a graph was built in this process
    count = threads.blas_threads()
    if count < 2:
        pytest.skip("one core: there is nothing to limit")
    return count


def test_a_server_limits_the_threads_of_its_process_while_it_runs(cores: int) -> None:
    with BackgroundServer(
        TaskServer({"worker": {0: ""}}, "worker", 0, config=ConfigProto(intra_op_parallelism_threads=1))
    ):
        assert threads.blas_threads() == 1
    assert threads.blas_threads() == cores


def test_tasks_of_one_host_share_its_cores(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "GOTO_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    others = {index: f"localhost:{index + 1}" for index in range(1, 1000)}
    with BackgroundServer(TaskServer({"worker": {0: ""}}, "worker", 0)) as server:
        assert threads.blas_threads() == cores
        server.update_cluster({"worker": {0: f"localhost:{server.port}", **others}})
        assert threads.blas_threads() == 1
    assert threads.blas_threads() == cores


@pytest.mark.parametrize("count", [1, 0])
def test_a_session_limits_the_threads_of_its_own_process(count: int, cores: int) -> None:
    inprocess.stop_shared_server()
    with tf.Graph().as_default():
        two = tf.constant(1.0) + 1.0
        with tf.Session("", config=ConfigProto(intra_op_parallelism_threads=count)) as session:
            assert session.run(two) == 2
            assert threads.blas_threads() == (count or cores)
    inprocess.stop_shared_server()
    assert threads.blas_threads() == cores


def test_a_session_does_not_limit_a_server_that_others_use(cores: int) -> None:
    with BackgroundServer(TaskServer({"worker": {0: ""}}, "worker", 0)) as server, tf.Graph().as_default():
        two = tf.constant(1.0) + 1.0
        with tf.Session(server.target, config=ConfigProto(intra_op_parallelism_threads=1)) as session:
            assert session.run(two) == 2
            assert threads.blas_threads() == cores


def test_hosts_are_told_apart_by_name() -> None:
    cluster = {"ps": {0: "a:1"}, "worker": {0: "a:2", 1: "b:1", 2: ""}}
    assert tasks_on_host(cluster, "ps", 0) == 2
    assert tasks_on_host(cluster, "worker", 1) == 1
    assert tasks_on_host(cluster, "worker", 2) == 1
    assert tasks_on_host({"worker": {0: "127.0.0.1:1", 1: "localhost:2"}}, "worker", 0) == 2
