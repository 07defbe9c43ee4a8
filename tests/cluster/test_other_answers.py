"""Two messages that have to name who: a task whose address is another's, and a variant that would leave its task."""

from __future__ import annotations

import pytest

import tenfold as tf
from support.background_cluster import background_cluster
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

PS = "/job:ps/replica:0/task:0"


def test_an_address_at_which_another_task_answers() -> None:
    """The spec of the worker has the address of ps:0 for ps:1 too."""
    with BackgroundServer(TaskServer({"ps": {0: ""}}, "ps", 0)) as ps:
        there = f"localhost:{ps.port}"
        with BackgroundServer(TaskServer({"ps": {0: there, 1: there}, "worker": {0: ""}}, "worker", 0)) as worker:
            target = f"grpc://localhost:{worker.port}"
            with tf.Graph().as_default(), tf.Session(target) as session:
                with tf.device("/job:ps/task:0"):
                    right = tf.constant(2.0) * 1.5
                with tf.device("/job:ps/task:1"):
                    wrong = tf.constant(1.0)

                said = rf"task:1 is not at its address {there}: {PS} answers"
                with pytest.raises(tf.errors.InvalidArgumentError, match=said):
                    session.run([right, wrong])


@pytest.mark.parametrize("link", ["auto", "off"])
def test_a_variant_that_would_leave_its_task_names_its_node(link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENFOLD_LINK", link)
    with background_cluster({"ps": 1, "worker": 1}) as servers, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            numbers = tf.data.Dataset.range(3)._variant_tensor
        with tf.device("/job:worker/task:0"):
            there = tf.identity(numbers)
        with tf.Session(f"grpc://localhost:{servers['worker', 0].port}") as session:
            for _ in range(2):
                with pytest.raises(tf.errors.UnimplementedError, match="A variant of type Range can") as caught:
                    session.run(there.op)
                assert f"'{numbers.op.name}' is on {PS}, and a node that takes its output on " in str(caught.value)
                assert caught.value.op is numbers.op
