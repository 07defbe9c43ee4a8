"""A GPU that fails, at a launch or where the host waits for it: the step ends with an error that names node and device.

The simulated GPU fails as CuPy says it: with an exception of its own, of which nobody knows.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.gpu_programs import fused_programs, with_gpus
from tenfold_compiler.fuse import captures
from tenfold_kernels.cuda import _replaying, _simulated
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Iterator

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
ILLEGAL = "cudaErrorIllegalAddress: an illegal memory access was encountered"


class CUDARuntimeError(RuntimeError):
    pass


@pytest.fixture(autouse=True)
def simulated_only(simulated: bool) -> Iterator[None]:
    if not simulated:
        pytest.skip("a real GPU that fails is lost for good")
    with tf.Graph().as_default():
        yield


def failing(patch: pytest.MonkeyPatch, name: str) -> list[int]:
    """The GPU fails in that method of its runtime; how often it has."""
    calls: list[int] = []

    def fail(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        raise CUDARuntimeError(ILLEGAL)

    patch.setattr(_simulated.SimulatedRuntime, name, fail)
    return calls


@pytest.mark.parametrize(("method", "node"), [("launch", "y"), ("to_host", "y"), ("keep", "_recv_x_0")])
def test_a_step_says_where_the_gpu_failed_and_another_may_follow(method: str, node: str) -> None:
    with with_gpus(1):
        x = tf.placeholder(tf.float32, [2], name="x")
        with tf.device("/gpu:0"):
            y = tf.negative(x, name="y")
        with tf.Session() as session:
            with pytest.MonkeyPatch.context() as patch:
                calls = failing(patch, method)
                for _ in range(2):
                    with pytest.raises(tf.errors.InternalError) as caught:
                        session.run(y, {x: [1, 2]})
                    assert ILLEGAL in caught.value.message
                    assert f"{{{{node {node}}}}}" in caught.value.message
                    assert f"(on {GPU})" in caught.value.message
            assert len(calls) == 2
            assert session.run(y, {x: [1, 2]}).tolist() == [-1, -2]


def test_a_recorded_step_says_where_the_gpu_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captures, "LEAST", 2)
    with fused_programs():
        x = tf.placeholder(tf.float32, [1, 1], name="x")
        with tf.device("/gpu:0"):
            y = tf.matmul(tf.matmul(x, x, name="first"), x, name="y")
        with tf.Session() as session:
            for number in range(_replaying._CALLS_BEFORE + 3):
                assert session.run(y, {x: [[number]]}) == number**3
            with pytest.MonkeyPatch.context() as patch:

                def fail(self: Any) -> None:
                    raise CUDARuntimeError(ILLEGAL)

                patch.setattr(_simulated._Recording, "launch", fail)
                with pytest.raises(tf.errors.InternalError) as caught:
                    session.run(y, {x: [[2.0]]})
            assert session.run(y, {x: [[3.0]]}) == 27
    assert ILLEGAL in caught.value.message
    assert f"(on {GPU})" in caught.value.message
    assert "{{node first}}" in caught.value.message or "{{node y}}" in caught.value.message


@pytest.mark.thorough
def test_a_task_that_waits_for_a_gpu_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ps waits for a value of the worker's GPU, which never comes."""
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.device("/job:worker/task:0/gpu:0"):
        y = tf.negative(x, name="y")
    with tf.device("/job:ps/task:0/cpu:0"):
        w = tf.get_variable("w", initializer=np.float32([1.0, 1.0]))
        train = w.assign_add(y)
    with with_gpus(1), ExitStack() as stack:
        empty = {"ps": {0: ""}, "worker": {0: ""}}
        servers = {job: stack.enter_context(BackgroundServer(TaskServer(empty, job, 0))) for job in empty}
        addresses = {job: {0: f"localhost:{server.port}"} for job, server in servers.items()}
        for server in servers.values():
            server.update_cluster(addresses)
        for job in ("worker", "ps"):
            with tf.Session(f"grpc://localhost:{servers[job].port}") as session:
                session.run(w.initializer)
                with pytest.MonkeyPatch.context() as patch:
                    failing(patch, "launch")
                    with pytest.raises(tf.errors.InternalError) as caught:
                        session.run(train, {x: [1, 2]}, options=tf.RunOptions(timeout_in_ms=60_000))
                assert session.run(train, {x: [1, 2]}).tolist() == [0, -1]
            assert ILLEGAL in caught.value.message
            assert "(on /job:worker/replica:0/task:0/device:GPU:0)" in caught.value.message
            assert "{{node y}}" in caught.value.message
