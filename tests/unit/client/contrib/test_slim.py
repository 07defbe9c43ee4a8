"""tf.contrib.slim: its networks by name, training and evaluating, and data sets of records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from pathlib import Path

slim = tf.contrib.slim

#: Network → (its arguments, its variables, one of them).
NETS = {
    "vgg.vgg_16": (224, 32, "vgg_16/conv3/conv3_2/weights"),
    "alexnet.alexnet_v2": (224, 16, "alexnet_v2/fc6/biases"),
    "resnet_v1.resnet_v1_50": (64, 108, "resnet_v1_50/block1/unit_1/bottleneck_v1/conv2/weights"),
    "resnet_v2.resnet_v2_50": (64, 159, "resnet_v2_50/block2/unit_1/bottleneck_v2/preact/beta"),
    "inception.inception_v3": (299, 196, "InceptionV3/Mixed_7b/Branch_2/Conv2d_0d_3x1/weights"),
}


@pytest.mark.parametrize("name", [pytest.param("alexnet.alexnet_v2"), *(
    pytest.param(name, marks=pytest.mark.thorough) for name in NETS if name != "alexnet.alexnet_v2"
)])  # fmt: skip
def test_networks_have_the_variables_of_checkpoints(name: str) -> None:
    size, count, one = NETS[name]
    module, _, function = name.partition(".")

    with tf.Graph().as_default():
        _, end_points = getattr(getattr(slim.nets, module), function)(
            tf.placeholder(tf.float32, [1, size, size, 3]), num_classes=5
        )
        names = [each.op.name for each in slim.get_model_variables()]

    assert len(names) == count
    assert one in names
    assert end_points


def test_training_stops_and_is_evaluated(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(16, 4)).astype(np.float32)
    labels = (inputs[:, :1] > 0).astype(np.float32)

    def model() -> Any:
        return slim.fully_connected(tf.constant(inputs), 1, activation_fn=tf.sigmoid)

    with tf.Graph().as_default():
        tf.set_random_seed(1)
        slim.losses.log_loss(model(), tf.constant(labels))
        loss = slim.losses.get_total_loss()
        train = slim.learning.create_train_op(loss, tf.train.AdamOptimizer(0.1), clip_gradient_norm=5.0)
        last = slim.learning.train(train, str(tmp_path), number_of_steps=80, log_every_n_steps=0)
    with tf.Graph().as_default():
        tf.train.get_or_create_global_step()
        value, update = slim.metrics.streaming_accuracy(tf.round(model()), tf.constant(labels))
        accuracy = slim.evaluation.evaluation_loop(
            "", str(tmp_path), None, num_evals=2, eval_op=update, final_op=value,
            max_number_of_evaluations=1, eval_interval_secs=0, timeout=10,
        )  # fmt: skip

    assert last < 0.3
    assert accuracy > 0.9


def test_a_data_set_of_records_is_read(tmp_path: Path) -> None:
    decoding = slim.tfexample_decoder
    path = str(tmp_path / "records")
    with tf.python_io.TFRecordWriter(path) as writer:
        for number in range(3):
            features = tf.train.Features(
                feature={
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
                    "box/ymin": tf.train.Feature(float_list=tf.train.FloatList(value=[0.1, 0.2])),
                    "box/xmin": tf.train.Feature(float_list=tf.train.FloatList(value=[0.3, 0.4])),
                    "box/ymax": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5, 0.6])),
                    "box/xmax": tf.train.Feature(float_list=tf.train.FloatList(value=[0.7, 0.8])),
                }
            )
            writer.write(tf.train.Example(features=features).SerializeToString())
    with tf.Graph().as_default():
        sides = {f"box/{side}": tf.VarLenFeature(tf.float32) for side in ("ymin", "xmin", "ymax", "xmax")}
        decoder = decoding.TFExampleDecoder(
            {"label": tf.FixedLenFeature([], tf.int64), **sides},
            {"label": decoding.Tensor("label"), "boxes": decoding.BoundingBox(prefix="box/")},
        )
        dataset = slim.dataset.Dataset(path, tf.TFRecordReader, decoder, 3, {})
        provider = slim.dataset_data_provider.DatasetDataProvider(dataset, shuffle=False, num_epochs=1)
        label, boxes = provider.get(["label", "boxes"])
        with tf.Session() as sess:
            sess.run(tf.local_variables_initializer())
            with slim.queues.QueueRunners(sess):
                found = [sess.run([label, boxes]) for _ in range(3)]

    assert [int(each) for each, _ in found] == [0, 1, 2]
    np.testing.assert_allclose(found[0][1], [[0.1, 0.3, 0.5, 0.7], [0.2, 0.4, 0.6, 0.8]])


def test_names_that_programs_take_from_slim_are_those_of_tf() -> None:
    assert slim.layers.conv2d is tf.contrib.layers.conv2d
    assert slim.learning.supervisor.Supervisor is tf.train.Supervisor
    assert slim.learning.tf_saver.Saver is tf.train.Saver
    assert tf.contrib.framework.TensorSpec is tf.TensorSpec
