"""`python -m support.faults.saving_chief CLUSTER FOLDER`: a chief that does nothing but train a step and save.

It begins with the newest checkpoint and says `restored STEP`, then `saved STEP` after each save. Every variable is its
step, so a checkpoint that was put together of two shows. Started, and killed, by tests/chaos/test_chief_dies_saving.py.
"""

from __future__ import annotations

import json
import sys

import tenfold as tf

#: Numbers of a variable: the files take a moment to be written.
SIZE = 1 << 18


def main() -> None:
    cluster, folder = tf.train.ClusterSpec(json.loads(sys.argv[1])), sys.argv[2]
    server = tf.train.Server(cluster, job_name="worker", task_index=0)
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:0")):
        step = tf.train.get_or_create_global_step()
        weights = [tf.get_variable(name, [SIZE], initializer=tf.zeros_initializer()) for name in ("v", "w")]
        trained = [tf.assign_add(step, 1), *(tf.assign_add(each, tf.ones([SIZE])) for each in weights)]
        train = tf.group(*trained)
        saver = tf.train.Saver(sharded=True, max_to_keep=3)
        init = tf.global_variables_initializer()
    with tf.Session(server.target) as session:
        session.run(init)
        newest = tf.train.latest_checkpoint(folder)
        if newest is not None:
            saver.restore(session, newest)
        print("restored", session.run(step), flush=True)
        while True:
            session.run(train)
            number = session.run(step)
            saver.save(session, f"{folder}/model", global_step=number)
            print("saved", number, flush=True)


if __name__ == "__main__":
    main()
