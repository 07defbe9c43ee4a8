"""In-graph replication: one client builds one graph with a copy of the model for each worker, and drives all of them.

    tenfold run --ps 1 --workers 2 examples/in_graph.py

Worker 0 is the client. The other tasks only serve until it is done. The variables are on the parameter server; every
worker computes the gradient of its part of the batch, and the mean of all is applied.
"""

import numpy as np

import tenfold as tf

STEPS = 60


def build(workers: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Operation]:
    """(inputs, targets, loss, train op): a linear model, the batch split over the workers."""
    with tf.device("/job:ps/task:0"):
        weights = tf.get_variable("weights", initializer=tf.zeros([2, 1]))
        inputs = tf.placeholder(tf.float32, [None, 2], name="inputs")
        targets = tf.placeholder(tf.float32, [None, 1], name="targets")
        parts = zip(tf.split(inputs, workers), tf.split(targets, workers), strict=True)

    losses, gradients = [], []
    for index, (x, y) in enumerate(parts):
        with tf.device(f"/job:worker/task:{index}"), tf.name_scope(f"replica_{index}"):
            loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - y))
            losses.append(loss)
            gradients.append(tf.gradients(loss, weights)[0])

    with tf.device("/job:ps/task:0"):
        mean = tf.add_n(gradients) / workers
        train = tf.train.GradientDescentOptimizer(0.3).apply_gradients([(mean, weights)])
        return inputs, targets, tf.add_n(losses) / workers, train


def main() -> None:
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster = resolver.cluster_spec()
    server = tf.train.Server(cluster, job_name=resolver.task_type, task_index=resolver.task_id)
    if (resolver.task_type, resolver.task_id) != ("worker", 0):
        server.join()
        return

    inputs, targets, loss, train = build(cluster.num_tasks("worker"))
    random = np.random.default_rng(0)
    with tf.Session(server.target) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(STEPS):
            x = random.random((32, 2), dtype=np.float32)
            value, _ = sess.run([loss, train], {inputs: x, targets: x @ [[2.0], [-1.0]]})
    print(f"loss {value:.4f}")


if __name__ == "__main__":
    main()
