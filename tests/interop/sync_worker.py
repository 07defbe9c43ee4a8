"""A worker of synchronous training as a program of TensorFlow's or ours: `python sync_worker.py CLUSTER INDEX FOLDER`.

Run by test_sync_peers.py under TensorFlow's interpreter or, with --tenfold, ours. Trains until the step that it is told
in a line of its standard input. Says on its standard output, a line each: "session STEP" when it gets a session, "step
STEP" now and then, and at last "done STEP VALUE CURVE": VALUE grows by a half with each update, and CURVE by half of
the step's batch.
"""

import argparse
import json
import sys
import threading

parser = argparse.ArgumentParser()
parser.add_argument("cluster", type=json.loads)
parser.add_argument("index", type=int)
parser.add_argument("folder")
parser.add_argument("--tenfold", action="store_true")
options = parser.parse_args()
if options.tenfold:
    import tenfold as tf
else:
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    tf.disable_resource_variables()

RATE = 0.5


class SayAndStop(tf.train.SessionRunHook):
    """Says where training stands, and ends it at the step that it was told."""

    def __init__(self):
        self._steps, self._last = 0, None
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        self._last = int(sys.stdin.readline() or 0)

    def begin(self):
        self._step = tf.train.get_global_step()

    def after_create_session(self, session, coord):
        print("session", session.run(self._step), flush=True)

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._step)

    def after_run(self, run_context, run_values):
        self._steps += 1
        if self._steps % 20 == 0:
            print("step", run_values.results, flush=True)
        if self._last is not None and run_context.session.run(self._step) >= self._last:
            run_context.request_stop()


def main():
    replicas, index = len(options.cluster["worker"]), options.index
    cluster = tf.train.ClusterSpec(options.cluster)
    server = tf.train.Server(cluster, job_name="worker", task_index=index)
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{index}")):
        step = tf.train.get_or_create_global_step()
        value = tf.get_variable("value", initializer=0.0)
        curve = tf.get_variable("curve", initializer=0.0)
        loss = -value - tf.cast(step % 4 + 1, tf.float32) * curve
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(RATE), replicas, replicas)
        train = optimizer.minimize(loss, global_step=step)
    final = tf.train.FinalOpsHook([step, value, curve])
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=index == 0,
        checkpoint_dir=options.folder if index == 0 else None,
        config=tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{index}"]),
        hooks=[final, optimizer.make_session_run_hook(index == 0), SayAndStop()],
        save_checkpoint_secs=None,
        save_checkpoint_steps=100,
        save_summaries_steps=None,
        log_step_count_steps=None,
    ) as session:
        while not session.should_stop():
            session.run(train)
    print("done", *final.final_ops_values, flush=True)


if __name__ == "__main__":
    main()
