"""Splits one placeholder over all workers, sums each part there, and adds up the partial sums where the client asked.

    tenfold up --ps 1 --workers 2
    python examples/split_reduce.py

With log_device_placement the server that runs the session logs the device of every node; look for `shard` on the
workers, `numbers` on the ps, and `total` on the task that the session was opened on.
"""

import numpy as np

import tenfold as tf


def build(cluster: tf.train.ClusterSpec, size: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the placeholder, int32 [size], and the int32 scalar that is its sum."""
    workers = cluster.num_tasks("worker")
    with tf.device("/job:ps/task:0"):
        numbers = tf.placeholder(tf.int32, [size], name="numbers")
        shards = tf.split(numbers, workers, name="shards")

    partial_sums = []
    for index, shard in enumerate(shards):
        with tf.device(f"/job:worker/task:{index}"):
            partial_sums.append(tf.reduce_sum(shard, name=f"shard_{index}_sum"))

    # No device: the master that runs the step keeps these for itself.
    return numbers, tf.reduce_sum(tf.stack(partial_sums), name="total")


def main() -> None:
    # The control service of TENFOLD_CONTROL, or of this machine, knows the cluster.
    numbers, total = build(tf.control.cluster_spec("tenfold:///default"), size=100)

    config = tf.ConfigProto(log_device_placement=True, operation_timeout_in_ms=20_000)
    with tf.Session("tenfold:///default/worker/0", config=config) as sess:
        print("total", sess.run(total, feed_dict={numbers: np.arange(100, dtype=np.int32)}))


if __name__ == "__main__":
    main()
