"""The guide's trainer: one program for parameter servers and workers, told by its command line who it is."""

import argparse
import sys

import numpy as np
import tensorflow as tf

FLAGS = None


def main(_):
    ps_hosts = FLAGS.ps_hosts.split(",")
    worker_hosts = FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": ps_hosts, "worker": worker_hosts})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)

    if FLAGS.job_name == "ps":
        try:
            server.join()
        finally:
            print("parameter server has ended")
    elif FLAGS.job_name == "worker":
        setter = tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster)
        with tf.device(setter):
            x = tf.placeholder(tf.float32, [None, 2])
            weights = tf.Variable(tf.zeros([2, 1]), name="weights")
            bias = tf.Variable(0.0, name="bias")
            loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) + bias - tf.reduce_sum(x, 1, keep_dims=True)))
            global_step = tf.contrib.framework.get_or_create_global_step()
            train_op = tf.train.AdagradOptimizer(0.5).minimize(loss, global_step=global_step)

        # The StopAtStepHook handles stopping after running given steps.
        hooks = [tf.train.StopAtStepHook(last_step=FLAGS.steps)]
        batches = np.random.RandomState(FLAGS.task_index)
        value = None
        with tf.train.MonitoredTrainingSession(
            master=server.target,
            is_chief=(FLAGS.task_index == 0),
            checkpoint_dir=FLAGS.log_dir,
            hooks=hooks,
        ) as mon_sess:
            while not mon_sess.should_stop():
                _, value = mon_sess.run([train_op, loss], feed_dict={x: batches.rand(8, 2)})
        print("worker has ended, loss below 0.5:", value is None or bool(value < 0.5))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.register("type", "bool", lambda v: v.lower() == "true")
    parser.add_argument("--ps_hosts", type=str, default="", help="Comma-separated list of hostname:port pairs")
    parser.add_argument("--worker_hosts", type=str, default="", help="Comma-separated list of hostname:port pairs")
    parser.add_argument("--job_name", type=str, default="", help="One of 'ps', 'worker'")
    parser.add_argument("--task_index", type=int, default=0, help="Index of task within the job")
    parser.add_argument("--log_dir", type=str, default=None)
    parser.add_argument("--steps", type=int, default=100)
    FLAGS, unparsed = parser.parse_known_args()
    tf.app.run(main=main, argv=[sys.argv[0]] + unparsed)
