"""Model parallelism: one model too large for one task, its layers on two; activations and gradients travel between.

    tenfold run --ps 0 --workers 2 examples/model_parallel.py

Worker 0 holds the first layer and drives the training, worker 1 holds the second. Each gradient is computed where its
layer is, and so is the update.
"""

import numpy as np

import tenfold as tf

FIRST, SECOND = "/job:worker/task:0", "/job:worker/task:1"


def build() -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Operation]:
    """(inputs, labels, loss, train op)"""
    with tf.device(FIRST):
        inputs = tf.placeholder(tf.float32, [None, 2], name="inputs")
        w1 = tf.get_variable("w1", initializer=tf.truncated_normal([2, 32], stddev=0.7, seed=1))
        b1 = tf.get_variable("b1", initializer=tf.zeros([32]))
        hidden = tf.tanh(tf.matmul(inputs, w1) + b1)
    with tf.device(SECOND):
        labels = tf.placeholder(tf.int64, [None], name="labels")
        w2 = tf.get_variable("w2", initializer=tf.truncated_normal([32, 2], stddev=0.3, seed=2))
        logits = tf.matmul(hidden, w2)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    optimizer = tf.train.AdamOptimizer(0.02)
    gradients = optimizer.compute_gradients(loss, colocate_gradients_with_ops=True)
    return inputs, labels, loss, optimizer.apply_gradients(gradients)


def main() -> None:
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    server = tf.train.Server(resolver.cluster_spec(), job_name="worker", task_index=resolver.task_id)
    if resolver.task_id != 0:
        server.join()
        return

    inputs, labels, loss, train = build()
    random = np.random.default_rng(0)
    metadata = tf.RunMetadata()
    with tf.Session(server.target) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(200):
            x = random.uniform(-1, 1, (64, 2)).astype(np.float32)
            feeds = {inputs: x, labels: (x[:, 0] * x[:, 1] > 0).astype(np.int64)}
            value, _ = sess.run([loss, train], feeds)
        traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(train, feeds, options=traced, run_metadata=metadata)
    for device in sorted(metadata.step_stats.dev_stats, key=lambda stats: stats.device):
        print(device.device, sum("MatMul" in node.node_name for node in device.node_stats), "matrix products")
    print(f"loss {value:.4f}")


if __name__ == "__main__":
    main()
