"""Trains a classifier of handwritten digits on a cluster: parameter servers hold the variables, workers do the work.

Start a cluster in one terminal, and one copy of this program for each of its workers in others:

    tenfold up --ps 1 --workers 2
    python examples/digits.py --task-index 0
    python examples/digits.py --task-index 1

or let Tenfold start both, here or with --on where your machines are:

    tenfold run --ps 1 --workers 2 examples/digits.py

Each copy is the client of one worker ("between-graph replication"): it builds the same graph as the other copies, feeds
it its own batches, and applies its gradients to the shared variables without waiting for the others ("asynchronous").
"""

import argparse
import time

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import tenfold as tf

PIXELS, HIDDEN, CLASSES, BATCH = 64, 64, 10, 64


def load() -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """1,797 images of 8×8 pixels: float32 [n, 64] in 0..1 and int64 labels [n], split into training and held-out."""
    digits = load_digits()
    images = (digits.images.reshape(-1, PIXELS) / 16.0).astype(np.float32)
    parts = train_test_split(images, digits.target.astype(np.int64), test_size=0.25, random_state=0)
    return tuple(parts)


class Model:
    """A multilayer perceptron. Every client of the cluster builds this same graph; only the worker differs."""

    def __init__(self, cluster: tf.train.ClusterSpec, task_index: int) -> None:
        # Where does each operation run? Variables go to the parameter servers in turn, everything else to our worker.
        worker = f"/job:worker/task:{task_index}"
        with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
            self.global_step = tf.train.get_or_create_global_step()
            self.images = tf.placeholder(tf.float32, [None, PIXELS], name="images")
            self.labels = tf.placeholder(tf.int64, [None], name="labels")

            w1 = tf.Variable(tf.truncated_normal([PIXELS, HIDDEN], stddev=PIXELS**-0.5, seed=1), name="w1")
            b1 = tf.Variable(tf.zeros([HIDDEN]), name="b1")
            w2 = tf.Variable(tf.truncated_normal([HIDDEN, CLASSES], stddev=HIDDEN**-0.5, seed=2), name="w2")
            b2 = tf.Variable(tf.zeros([CLASSES]), name="b2")

            hidden = tf.nn.relu(tf.matmul(self.images, w1) + b1)
            logits = tf.matmul(hidden, w2) + b2
            self.predictions = tf.argmax(logits, 1)
            self.loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.labels, logits=logits)
            )
            self.train = tf.train.AdagradOptimizer(0.1).minimize(self.loss, global_step=self.global_step)


def train(cluster: str, task_index: int, steps: int, report_every: int = 50) -> float:
    """Trains until the cluster as a whole has made `steps` steps, and returns the accuracy on held-out images."""
    train_images, test_images, train_labels, test_labels = load()
    model = Model(tf.control.cluster_spec(cluster), task_index)

    # The session talks to our own worker's server. That server's master splits the graph over the cluster.
    with tf.Session(f"{cluster}/worker/{task_index}", config=tf.ConfigProto(operation_timeout_in_ms=60_000)) as sess:
        # The first worker is the chief: it gives the variables their first values. The others wait for that.
        if task_index == 0:
            sess.run(tf.global_variables_initializer())
        else:
            missing = tf.report_uninitialized_variables()
            while sess.run(missing).size:
                time.sleep(0.1)

        choose = np.random.default_rng(task_index)
        step = 0
        while step < steps:
            batch = choose.integers(0, len(train_images), BATCH)
            feeds = {model.images: train_images[batch], model.labels: train_labels[batch]}
            before = step
            _, loss, step = sess.run([model.train, model.loss, model.global_step], feed_dict=feeds)
            if before == 0 or step // report_every > before // report_every:
                print(f"worker {task_index}: step {step} loss {loss:.4f}", flush=True)

        predictions = sess.run(model.predictions, feed_dict={model.images: test_images})
        return float(np.mean(predictions == test_labels))


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a classifier of handwritten digits on a Tenfold cluster.")
    # The control service knows the cluster's tasks; by default it is the one of TENFOLD_CONTROL, or of this machine.
    parser.add_argument("--cluster", default="tenfold:///default", help="as in tenfold://host:8080/default")
    # A task of `tenfold run` is told which one it is; its cluster is the run's.
    ours = tf.distribute.cluster_resolver.TFConfigClusterResolver().task_id or 0
    parser.add_argument("--task-index", type=int, default=ours, help="which worker is ours; 0 is the chief")
    parser.add_argument("--steps", type=int, default=2000, help="training steps of all workers together")
    args = parser.parse_args()
    print(f"accuracy {train(args.cluster, args.task_index, args.steps):.3f}")


if __name__ == "__main__":
    main()
