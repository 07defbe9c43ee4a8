"""word2vec: embeddings of words, too many for one task, in shards on all parameter servers.

    tenfold run --ps 2 --workers 2 examples/word2vec.py

Each worker looks up the words of its batch, wherever their shards are, and sends back the gradients of these rows only.
The loss tells a word's true neighbours from sampled ones (noise-contrastive estimation). The language is made up: words
are numbers, and words of the same ten are neighbours of each other.
"""

import argparse
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

import tenfold as tf

WORDS, GROUP, SIZE, BATCH, SAMPLED = 200, 10, 16, 128, 16


def batch(random: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Words int64 [BATCH], and for each a neighbour int64 [BATCH, 1]."""
    words = random.integers(WORDS, size=BATCH)
    neighbours = words // GROUP * GROUP + random.integers(GROUP, size=BATCH)
    return words, neighbours[:, np.newaxis]


def build(shards: int) -> tuple[tf.Tensor, tf.Tensor, tf.Operation, Iterable[tf.Variable]]:
    """(words, neighbours, train op, embeddings), the embeddings in one shard a parameter server."""
    words = tf.placeholder(tf.int64, [None], name="words")
    neighbours = tf.placeholder(tf.int64, [None, 1], name="neighbours")
    partitioner = tf.fixed_size_partitioner(shards)
    with tf.variable_scope("model", partitioner=partitioner):
        embeddings = tf.get_variable("embeddings", [WORDS, SIZE], initializer=tf.random_uniform_initializer(-1, 1, 1))
        weights = tf.get_variable("weights", [WORDS, SIZE], initializer=tf.zeros_initializer())
        biases = tf.get_variable("biases", [WORDS], initializer=tf.zeros_initializer())
    # The partitioner cuts into runs of rows: "div".
    looked_up = tf.nn.embedding_lookup(embeddings, words, partition_strategy="div")
    loss = tf.reduce_mean(
        tf.nn.nce_loss(weights, biases, neighbours, looked_up, SAMPLED, WORDS, partition_strategy="div")
    )
    step = tf.train.get_or_create_global_step()
    return words, neighbours, tf.train.AdagradOptimizer(1.0).minimize(loss, global_step=step), embeddings


def share_of_neighbours(vectors: NDArray[np.float32]) -> float:
    """How many of the words nearest to each word are its neighbours."""
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    likeness = vectors @ vectors.T
    np.fill_diagonal(likeness, -2)
    return float(np.mean(likeness.argmax(axis=1) // GROUP == np.arange(WORDS) // GROUP))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1500)
    options = parser.parse_args()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster, job, index = resolver.cluster_spec(), resolver.task_type, resolver.task_id
    server = tf.train.Server(cluster, job_name=job, task_index=index)
    if job == "ps":
        server.join()
        return

    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{index}")):
        words, neighbours, train, embeddings = build(cluster.num_tasks("ps"))
    if index == 0:
        print("shards on", sorted({shard.device for shard in embeddings}))
    final = tf.train.FinalOpsHook(list(embeddings))
    hooks = [final, tf.train.StopAtStepHook(last_step=options.steps)]
    random = np.random.default_rng(index)
    with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0, hooks=hooks) as sess:
        while not sess.should_stop():
            centre, around = batch(random)
            sess.run(train, {words: centre, neighbours: around})
    share = share_of_neighbours(np.concatenate(final.final_ops_values))
    print(f"worker {index}: the nearest word is a neighbour for {share:.0%} of all words")


if __name__ == "__main__":
    main()
