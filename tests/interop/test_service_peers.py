"""One cluster of a TensorFlow server and a Tenfold server, each in either role: training, a partial run, a trace.

The TensorFlow server is a process of its own; the client is TensorFlow's, at the worker's master.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.ports import free_port
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

from .tensorflow_processes import tensorflow_servers

if TYPE_CHECKING:
    from collections.abc import Callable

_PROGRAM = """
import json, sys
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
with tf.device("/job:ps/task:0"):
    w = tf.get_variable("w", [3, 2], use_resource=False, initializer=tf.ones_initializer())
with tf.device("/job:worker/task:0"):
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.matmul(x, w)
    loss = tf.reduce_mean(tf.square(y - 5.0))
with tf.device("/job:ps/task:0"):
    bad = tf.gather(w, tf.cast(tf.reduce_sum(x), tf.int32), name="bad")
train = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
feeds = {x: np.ones([4, 3])}
with tf.Session(sys.argv[1]) as sess:
    sess.run(tf.global_variables_initializer())
    losses = [float(sess.run([loss, train], feeds)[0]) for _ in range(5)]
    try:
        sess.run(bad, feeds)
    except tf.errors.InvalidArgumentError as e:
        error = [e.message, e.op.name]
    handle = sess.partial_run_setup([y, loss], [x])
    partial = [float(sess.partial_run(handle, loss, feeds)), list(sess.partial_run(handle, y).shape)]
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    sess.run(loss, feeds, options=options, run_metadata=metadata)
print(json.dumps({"losses": losses, "error": error, "partial": partial,
                  "traced": sorted({d.device for d in metadata.step_stats.dev_stats if "/job:" in d.device}),
                  "partitions": len(metadata.partition_graphs)}))
"""


@pytest.mark.long
@pytest.mark.parametrize("ours", ["ps", "worker"])
def test_a_tensorflow_server_and_one_of_ours_train_together(ask_tensorflow: Callable[..., Any], ours: str) -> None:
    theirs = "worker" if ours == "ps" else "ps"
    address = f"127.0.0.1:{free_port()}"
    with BackgroundServer(TaskServer({ours: {0: ""}, theirs: {0: address}}, ours, 0)) as server:
        cluster = {ours: [f"127.0.0.1:{server.port}"], theirs: [address]}
        server.update_cluster(cluster)
        with tensorflow_servers("2.21", cluster, [(theirs, 0)]):
            seen = ask_tensorflow(_PROGRAM, server.target if ours == "worker" else f"grpc://{address}")

    # the distance to the target shrinks by 0.15 in every step
    assert seen["losses"] == pytest.approx([4 * 0.85 ** (2 * step) for step in range(5)], rel=1e-5)
    assert "indices" in seen["error"][0]
    assert seen["error"][1] == "bad"
    assert seen["partial"][0] < seen["losses"][-1]
    assert seen["partial"][1] == [4, 2]
    assert seen["traced"] == [f"/job:{job}/replica:0/task:0/device:CPU:0" for job in ("ps", "worker")]
    assert seen["partitions"] == 2
