"""The program whose tasks kill_training.py kills: asynchronous or synchronous training of two numbers.

Every worker says on its standard output, a line each: "session STEP" when it gets a session, new or recovered, "step
STEP" after each of its steps, "saving STEP" and "restoring" before it does so, and "done STEP VALUE CURVE" at the end.
The gradient of `value` is 1 whatever happened before, so VALUE tells how many updates were applied; that of `curve` is
the batch of the step, so CURVE tells whether each step took its own batch.
"""

from __future__ import annotations

import argparse
import os

import tenfold as tf

RATE = 0.5
#: Batches of an epoch.
BATCHES = 4


def batch(step):
    """What a step trains on: a number from 1 on, whole, so that means and sums are exact in any order."""
    return step % BATCHES + 1


def curve_after(steps: int) -> float:
    """What one process gives that trains on the same batches."""
    return RATE * sum(batch(step) for step in range(steps))


class Say(tf.train.SessionRunHook):
    """Says where training stands, so that the killing test can choose the moment by it."""

    def begin(self):
        self._step = tf.train.get_global_step()

    def after_create_session(self, session, coord):
        print("session", session.run(self._step), flush=True)

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._step)

    def after_run(self, run_context, run_values):
        print("step", run_values.results, flush=True)


class StopAtStepOfFile(tf.train.SessionRunHook):
    """Stops training at the step that somebody writes into a file, once there is one."""

    def __init__(self, path: str):
        self._path, self._last = path, None

    def begin(self):
        self._step = tf.train.get_global_step()

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._step)

    def after_run(self, run_context, run_values):
        if self._last is None and os.path.exists(self._path):
            with open(self._path) as file:
                self._last = int(file.read())
        # what was read beside the update may be the step before it
        near = self._last is not None and run_values.results + 1 >= self._last
        if near and run_context.session.run(self._step) >= self._last:
            run_context.request_stop()


class SayingSaver(tf.train.Saver):
    """Says what it is about to do."""

    def save(self, sess, save_path, global_step=None, **options):
        print("saving", global_step, flush=True)
        return super().save(sess, save_path, global_step, **options)

    def restore(self, sess, save_path):
        print("restoring", flush=True)
        super().restore(sess, save_path)


def build(replicas: int, is_chief: bool):
    """(train op, value, curve, hooks); `replicas` 0 trains asynchronously."""
    step = tf.train.get_or_create_global_step()
    value = tf.get_variable("value", initializer=0.0)
    curve = tf.get_variable("curve", initializer=0.0)
    loss = -value - tf.cast(batch(step), tf.float32) * curve
    optimizer = tf.train.GradientDescentOptimizer(RATE)
    if not replicas:
        return optimizer.minimize(loss, global_step=step), value, curve, []
    optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas, total_num_replicas=replicas)
    train = optimizer.minimize(loss, global_step=step)
    return train, value, curve, [optimizer.make_session_run_hook(is_chief)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sync", action="store_true")
    parser.add_argument("--last-step", type=int, required=True)
    parser.add_argument("--save-steps", type=int, required=True)
    parser.add_argument("--stop-file", help="where the last step may be written later")
    parser.add_argument("--folder", required=True)
    parser.add_argument("--ballast", type=int, default=0, help="Bytes that make saving take longer.")
    options = parser.parse_args()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster, job, index = resolver.cluster_spec(), resolver.task_type, resolver.task_id
    server = tf.train.Server(cluster, job_name=job, task_index=index)
    print("serving", server.target, flush=True)
    if job == "ps":
        server.join()
        return
    is_chief = index == 0
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{index}")):
        train, value, curve, hooks = build(cluster.num_tasks("worker") if options.sync else 0, is_chief)
        if options.ballast:
            tf.get_variable("ballast", [options.ballast // 4], trainable=False, initializer=tf.ones_initializer())
        saver = SayingSaver(sharded=True)
    hooks += [Say(), tf.train.StopAtStepHook(last_step=options.last_step)]
    hooks += [StopAtStepOfFile(options.stop_file)] if options.stop_file else []
    final = tf.train.FinalOpsHook([tf.train.get_global_step(), value, curve])
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=is_chief,
        checkpoint_dir=options.folder,
        scaffold=tf.train.Scaffold(saver=saver),
        hooks=[final, *hooks],
        save_checkpoint_secs=None,
        save_checkpoint_steps=options.save_steps,
        save_summaries_steps=None,
        log_step_count_steps=None,
    ) as session:
        while not session.should_stop():
            session.run(train)
    print("done", *final.final_ops_values, flush=True)


if __name__ == "__main__":
    main()
