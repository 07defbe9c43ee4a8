"""One life of worker 0, which test_replaced_workers.py stops, replaces and wakes.

`replaced_worker.py LIFE LIVES PS OWN` serves at the address OWN and trains at once. A step updates two things of the
parameter server's: row LIFE of the variable `counts`, as asynchronous training does, and the accumulator of this life,
as synchronous training does. It says "step N" at the powers of two, "session" when it had to open another one, "again"
for the first step in that, and "ended N REASON" after N steps once it was told that it is replaced.
"""

from __future__ import annotations

import signal
import sys

import tenfold as tf


def updates(life: int, lives: int):
    """The step's operation. The gradient is made on the worker, so that it travels."""
    with tf.device("/job:worker/task:0"):
        gradient = tf.identity(tf.placeholder_with_default(tf.constant(1.0), []))
    with tf.device("/job:ps/task:0"):
        counts = tf.get_variable("counts", [lives], initializer=tf.zeros_initializer())
        accumulator = accumulator_of(life)
        return tf.group(
            tf.scatter_add(counts, [life], tf.reshape(gradient, [1])), accumulator.apply_grad(gradient, local_step=0)
        )


def accumulator_of(life: int):
    return tf.ConditionalAccumulator(tf.float32, shape=[], shared_name=f"gradients{life}")


def main(life: int, lives: int, ps: str, own: str) -> None:
    server = tf.train.Server({"ps": [ps], "worker": [own]}, job_name="worker", task_index=0)
    step, sessions, steps = updates(life, lives), 0, 0
    while True:
        try:
            with tf.Session(server.target) as session:
                while True:
                    session.run(step)
                    steps += 1
                    if steps & (steps - 1) == 0:
                        print("step", steps, flush=True)
                    if sessions:
                        print("again", flush=True)
        except (tf.errors.AbortedError, tf.errors.UnavailableError, tf.errors.CancelledError) as error:
            # what a monitored session would do
            sessions += 1
            print("session", sessions, error.message.splitlines()[0], flush=True)
        except tf.errors.FailedPreconditionError as error:
            print("ended", steps, error.message.splitlines()[0], flush=True)
            break
    signal.pause()  # until it is killed


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
