"""The same by a Supervisor and tf.app.flags, as guides of earlier releases wrote it."""

import tensorflow as tf

tf.app.flags.DEFINE_string("ps_hosts", "", "Comma-separated list of hostname:port pairs")
tf.app.flags.DEFINE_string("worker_hosts", "", "Comma-separated list of hostname:port pairs")
tf.app.flags.DEFINE_string("job_name", "", "One of 'ps', 'worker'")
tf.app.flags.DEFINE_integer("task_index", 0, "Index of task within the job")
tf.app.flags.DEFINE_string("log_dir", "", "Where to write checkpoints")
tf.app.flags.DEFINE_integer("steps", 100, "Steps to train")
FLAGS = tf.app.flags.FLAGS


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        try:
            server.join()
        finally:
            print("parameter server has ended")
        return
    with tf.device(
        tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster)
    ):
        weight = tf.Variable(5.0, name="weight")
        loss = tf.square(weight)
        tf.summary.scalar("loss", loss)
        global_step = tf.Variable(0, name="global_step", trainable=False)
        train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=global_step)
        saver = tf.train.Saver()
        summary_op = tf.summary.merge_all()
        init_op = tf.global_variables_initializer()

    sv = tf.train.Supervisor(
        is_chief=(FLAGS.task_index == 0),
        logdir=FLAGS.log_dir,
        init_op=init_op,
        summary_op=summary_op,
        saver=saver,
        global_step=global_step,
        save_model_secs=600,
    )
    with sv.managed_session(server.target) as sess:
        step = 0
        while not sv.should_stop() and step < FLAGS.steps:
            _, step = sess.run([train_op, global_step])
    sv.stop()
    print("worker has ended at its last step:", bool(step >= FLAGS.steps))


if __name__ == "__main__":
    tf.app.run()
