"""A parameter server is killed in the middle of training, comes back empty, and training goes on from a checkpoint.

    tenfold run --ps 1 --workers 2 --restarts 1 examples/lost_ps.py --folder FOLDER

Halfway, worker 0 kills the parameter server's process, as a failing machine would. `tenfold run --restarts 1` starts it
again. The workers are not restarted: their monitored sessions notice the loss, the chief restores the newest
checkpoint of FOLDER, and the other worker waits until it has.
"""

import argparse
import os
import signal
from pathlib import Path

import tenfold as tf

STEPS, SAVE_STEPS = 4000, 500


class KillOnce(tf.train.SessionRunHook):
    """Kills a process once the global step reaches `at`; prints the step at which each session begins."""

    def __init__(self, pid_file: Path | None, at: int) -> None:
        self._pid_file, self._at = pid_file, at

    def begin(self) -> None:
        self._step = tf.train.get_global_step()

    def after_create_session(self, session: tf.Session, coord: tf.train.Coordinator) -> None:
        print(f"a session, at step {session.run(self._step)}", flush=True)

    def before_run(self, run_context: tf.train.SessionRunContext) -> tf.train.SessionRunArgs:
        return tf.train.SessionRunArgs(self._step)

    def after_run(self, run_context: tf.train.SessionRunContext, run_values: tf.train.SessionRunValues) -> None:
        if self._pid_file is not None and run_values.results >= self._at:
            pid, self._pid_file = int(self._pid_file.read_text()), None
            print("killing the parameter server", flush=True)
            os.kill(pid, signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True, help="for checkpoints; all tasks must reach it")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    pid_file = folder / "ps.pid"

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster, job, index = resolver.cluster_spec(), resolver.task_type, resolver.task_id
    if job == "ps":
        pid_file.write_text(str(os.getpid()))
    server = tf.train.Server(cluster, job_name=job, task_index=index)
    if job == "ps":
        server.join()
        return

    is_chief = index == 0
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{index}")):
        step = tf.train.get_or_create_global_step()
        value = tf.get_variable("value", initializer=10.0)
        train = tf.train.GradientDescentOptimizer(0.01).minimize(tf.square(value), global_step=step)
    final = tf.train.FinalOpsHook([step, value])
    with tf.train.MonitoredTrainingSession(
        server.target,
        is_chief=is_chief,
        checkpoint_dir=str(folder),
        save_checkpoint_secs=None,
        save_checkpoint_steps=SAVE_STEPS,
        hooks=[
            final,
            KillOnce(pid_file if is_chief else None, STEPS // 2),
            tf.train.StopAtStepHook(last_step=STEPS),
        ],
    ) as sess:
        while not sess.should_stop():
            sess.run(train)
    last, reached = final.final_ops_values
    print(f"worker {index}: all {STEPS} steps: {last >= STEPS}, trained: {reached < 0.1}")


if __name__ == "__main__":
    main()
