"""Between-graph replication: every worker builds the same graph and trains with its own batches.

    tenfold run --ps 2 --workers 2 examples/between_graph.py
    tenfold run --ps 2 --workers 2 examples/between_graph.py --sync

Asynchronous: each worker applies its gradients when it has them. Synchronous: one update for all workers' gradients,
and no worker starts the next step before it. Worker 0 is the chief, which initialises the variables; the others wait.
"""

import argparse

import numpy as np

import tenfold as tf


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sync", action="store_true")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster, job, index = resolver.cluster_spec(), resolver.task_type, resolver.task_id
    server = tf.train.Server(cluster, job_name=job, task_index=index)
    if job == "ps":
        server.join()
        return

    is_chief = index == 0
    hooks: list[tf.train.SessionRunHook] = [tf.train.StopAtStepHook(last_step=options.steps)]
    # Variables go to the parameter servers in turn, everything else to this worker.
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{index}")):
        step = tf.train.get_or_create_global_step()
        weights = tf.get_variable("weights", initializer=tf.zeros([2, 1]))
        bias = tf.get_variable("bias", initializer=tf.zeros([1]))
        x = tf.placeholder(tf.float32, [None, 2])
        y = tf.placeholder(tf.float32, [None, 1])
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) + bias - y))
        optimizer: tf.train.Optimizer = tf.train.GradientDescentOptimizer(0.2)
        if options.sync:
            workers = cluster.num_tasks("worker")
            optimizer = tf.train.SyncReplicasOptimizer(
                optimizer, replicas_to_aggregate=workers, total_num_replicas=workers
            )
            hooks.append(optimizer.make_session_run_hook(is_chief))
        train = optimizer.minimize(loss, global_step=step)

    final = tf.train.FinalOpsHook(step)
    random, value = np.random.default_rng(index), None
    with tf.train.MonitoredTrainingSession(server.target, is_chief=is_chief, hooks=[final, *hooks]) as sess:
        while not sess.should_stop():
            batch = random.random((16, 2), dtype=np.float32)
            value, _ = sess.run([loss, train], {x: batch, y: batch @ [[1.0], [3.0]] + 0.5})
    print(f"worker {index}: global step {final.final_ops_values}, loss {value or 0.0:.4f}")


if __name__ == "__main__":
    main()
