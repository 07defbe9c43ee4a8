"""A graph of 2015 with a loop over tasks means the same at a TensorFlow worker: its parts keep the graph's version."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from support.task_processes import static_cluster
from tenfold.graph.op_builder import apply_op

from .tensorflow_processes import tensorflow_servers

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]


@pytest.mark.parametrize("producer", [6, 0])
@pytest.mark.parametrize("version", ["1.15", "2.21"])
def test_a_loop_over_tasks_in_a_graph_of_old(version: str, producer: int) -> None:
    with (
        static_cluster(absent=[("worker", 0)], ps=1, worker=1) as tasks,
        tensorflow_servers(version, tasks.addresses, [("worker", 0)]),
        tf.Graph().as_default(),
    ):
        made = tf.GraphDef()
        made.versions.producer = producer
        tf.import_graph_def(made)

        def turn(i: Any, total: Any) -> Any:
            with tf.device("/job:worker/task:0"):
                # removed in version 13
                same = apply_op("BatchMatrixDeterminant", input=total)
            with tf.device("/job:ps/task:0"):
                return i + 1, total + same

        with tf.device("/job:ps/task:0"):
            _, total = tf.while_loop(lambda i, _: i < 3, turn, [0, tf.constant([[[1.0]]])])
        with tf.Session(tasks.target("ps", 0)) as session:
            assert np.array_equal(session.run(total), [[[8]]])
