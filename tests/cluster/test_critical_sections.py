"""Critical sections on a cluster: the mutex on a ps, its parts on a worker, and steps that fail inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from tenfold_core import errors
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Iterator

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


@pytest.fixture
def worker() -> Iterator[BackgroundServer]:
    """The worker of a cluster of two."""
    servers = {job: BackgroundServer(TaskServer(None, job, 0)) for job in ("ps", "worker")}
    try:
        for server in servers.values():
            server.start()
        for server in servers.values():
            server.update_cluster({job: {0: f"localhost:{each.port}"} for job, each in servers.items()})
        yield servers["worker"]
    finally:
        for server in servers.values():
            server.stop(2.0)


@pytest.mark.parametrize("over_network", [False, True])
@pytest.mark.parametrize("fails_at", [PS, WORKER])
def test_a_step_that_fails_leaves_the_section_to_others(
    worker: BackgroundServer, fails_at: str, over_network: bool
) -> None:
    with tf.Graph().as_default():
        good = tf.placeholder_with_default(True, [])
        with tf.device(PS):
            section = tf.CriticalSection(shared_name="section")

        def checked() -> tf.Tensor:
            with tf.device(fails_at), tf.control_dependencies([tf.Assert(good, ["bad"])]):
                return tf.constant(7.0)

        with tf.device(PS):
            value = section.execute(checked)
        options = tf.RunOptions(timeout_in_ms=20_000)
        config = tf.ConfigProto()
        config.rpc_options.use_rpc_for_inprocess_master = over_network
        kept = []

        with tf.Session(worker.target, config=config) as session:
            for _ in range(3):
                with pytest.raises(errors.InvalidArgumentError, match="bad") as caught:
                    session.run(value, {good: False}, options)
                kept.append(caught)
            after = session.run(value, {good: True}, options)

    assert after == 7.0
