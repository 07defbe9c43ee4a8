"""A program like those of DeepRec's model zoo, as it would be written there, trains and evaluates from Parquet."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import os
import sys
import pkg_resources
import tensorflow as tf
from tensorflow.python.data.experimental.ops import parquet_dataset_ops
from tensorflow.python.ops import partitioned_variables

folder, steps = sys.argv[1], 60
assert "deeprec" in pkg_resources.get_distribution("Tensorflow").version
tf.set_random_seed(2021)


def data(name):
    def parse(value):
        labels = value.pop("clicked")
        return value, labels

    found = parquet_dataset_ops.ParquetDataset(os.path.join(folder, name), batch_size=50)
    return found.repeat(10).map(parse, num_parallel_calls=4).prefetch(2)


train, test = data("train.parquet"), data("eval.parquet")
iterator = tf.data.Iterator.from_structure(tf.data.get_output_types(train), tf.data.get_output_shapes(test))
element = iterator.get_next()
train_init, test_init = iterator.make_initializer(train), iterator.make_initializer(test)
config = tf.ConfigProto()
features, label = tf.staged(element, num_threads=2, capacity=4)
config.graph_options.optimizer_options.do_smart_stage = True
config.graph_options.optimizer_options.do_op_fusion = True
hooks = [tf.make_prefetch_hook()]

columns = []
with tf.feature_column.group_embedding_column_scope(name="categorical"):
    option = tf.EmbeddingVariableOption(filter_option=tf.CounterFilter(filter_freq=2))
    for key, column in (
        ("C1", tf.feature_column.categorical_column_with_embedding("C1", dtype=tf.string, ev_option=option)),
        ("C2", tf.feature_column.categorical_column_with_adaptive_embedding("C2", hash_bucket_size=100)),
        ("C3", tf.feature_column.categorical_column_with_hash_bucket("C3", hash_bucket_size=100)),
    ):
        columns.append(tf.feature_column.embedding_column(column, dimension=8, combiner="mean", do_fusion=True))
columns.append(tf.feature_column.numeric_column("I1", shape=(1,)))
features["C3"] = tf.strings.split(features["C3"], "|")
partitioner = partitioned_variables.min_max_variable_partitioner(max_partitions=2, min_slice_size=1 << 10)
with tf.variable_scope("input_layer", partitioner=partitioner, reuse=tf.AUTO_REUSE):
    masks = {"C2": tf.ones([50], tf.int32)}
    net = tf.feature_column.input_layer(features, columns, adaptive_mask_tensors=masks)
scope = tf.variable_scope("dnn", reuse=tf.AUTO_REUSE)
with scope.keep_weights(dtype=tf.float32):
    net = tf.cast(net, tf.bfloat16)
    net = tf.layers.dense(net, 16, activation="relu", name="hidden")
    net = tf.layers.batch_normalization(net, training=True)
    net = tf.cast(net, tf.float32)
probability = tf.sigmoid(tf.layers.dense(net, 1))
loss = tf.reduce_mean(tf.keras.losses.BinaryCrossentropy()(label, tf.squeeze(probability)))
step = tf.train.get_or_create_global_step()
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    train_op = tf.train.AdamAsyncOptimizer(0.02).minimize(loss, global_step=step)
auc, auc_op = tf.metrics.auc(labels=label, predictions=probability, num_thresholds=200)
tf.summary.scalar("eval_auc", auc)
merged = tf.summary.merge_all()

checkpoint = os.path.join(folder, "checkpoint")
scaffold = tf.train.Scaffold(
    local_init_op=tf.group(tf.local_variables_initializer(), train_init), saver=tf.train.Saver(max_to_keep=1)
)
with tf.train.MonitoredTrainingSession(
    hooks=[*hooks, tf.train.StopAtStepHook(last_step=steps)],
    scaffold=scaffold,
    checkpoint_dir=checkpoint,
    save_checkpoint_steps=steps,
    config=config,
) as session:
    while not session.should_stop():
        session.run([loss, train_op])
scaffold = tf.train.Scaffold(local_init_op=tf.group(tf.local_variables_initializer(), test_init))
creator = tf.train.ChiefSessionCreator(scaffold=scaffold, checkpoint_dir=checkpoint, config=config)
with tf.train.MonitoredSession(session_creator=creator, hooks=hooks) as session:
    for _ in range(3):
        session.run(auc_op)
    found, _ = session.run([auc_op, merged])
print("AUC = %.4f" % found, "of step", tf.train.latest_checkpoint(checkpoint).rpartition("-")[2])
"""


def write(path: Path, rows: int, seed: int) -> None:
    """Rows whose label is what two of three ids say, by their last bit."""
    draw = np.random.default_rng(seed)
    ids = draw.integers(0, 30, (rows, 3))
    label = ((ids % 2).sum(1) >= 2).astype(np.int32)
    table = {"clicked": label, "I1": draw.random(rows).astype(np.float32)}
    for number in (1, 2):
        table[f"C{number}"] = [f"k{each}" for each in ids[:, number - 1]]
    table["C3"] = [f"k{each}|x" for each in ids[:, 2]]
    pq.write_table(pa.table(table), path, row_group_size=64)


def test_a_program_of_the_zoo_trains_unchanged(tmp_path: Path) -> None:
    write(tmp_path / "train.parquet", 1000, 1)
    write(tmp_path / "eval.parquet", 250, 2)
    (tmp_path / "program.py").write_text(PROGRAM)

    done = subprocess.run(
        [sys.executable, "-m", "tenfold.cli.run_as_tensorflow", str(tmp_path / "program.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    found = re.search(r"AUC = ([\d.]+) of step 60", done.stdout)
    assert found is not None, done.stdout
    assert float(found[1]) > 0.9
