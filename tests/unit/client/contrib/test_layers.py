"""tf.contrib.layers: names of variables and nodes, collections, and what optimize_loss does.

TensorFlow's own tests of these families are run by tests/interop/conformance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

layers = tf.contrib.layers


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def images(*sizes: int) -> Any:
    return tf.constant(np.linspace(-1, 1, int(np.prod(sizes)), dtype=np.float32).reshape(sizes))


#: What is called → its variables, the node of its output, its shape.
CASES: list[tuple[Callable[[], Any], list[str], str, list[int]]] = [
    (lambda: layers.conv2d(images(2, 6, 6, 3), 4, 3), ["Conv/weights", "Conv/biases"], "Conv/Relu", [2, 6, 6, 4]),
    (lambda: layers.conv3d(images(1, 4, 4, 4, 2), 3, 3), ["Conv/weights", "Conv/biases"], "Conv/Relu", [1, 4, 4, 4, 3]),
    (
        lambda: layers.conv2d_transpose(images(2, 4, 4, 3), 2, 3, stride=2),
        ["Conv2d_transpose/weights", "Conv2d_transpose/biases"],
        "Conv2d_transpose/Relu",
        [2, 8, 8, 2],
    ),
    (
        lambda: layers.separable_conv2d(images(2, 5, 5, 3), 4, 3),
        [f"SeparableConv2d/{name}" for name in ("depthwise_weights", "pointwise_weights", "biases")],
        "SeparableConv2d/Relu",
        [2, 5, 5, 4],
    ),
    (
        lambda: layers.separable_conv2d(images(2, 5, 5, 3), None, 3, depth_multiplier=2),
        ["SeparableConv2d/depthwise_weights", "SeparableConv2d/biases"],
        "SeparableConv2d/Relu",
        [2, 5, 5, 6],
    ),
    (
        lambda: layers.repeat(images(2, 4), 2, layers.fully_connected, 3),
        [f"Repeat/fully_connected_{n}/{name}" for n in (1, 2) for name in ("weights", "biases")],
        "Repeat/fully_connected_2/Relu",
        [2, 3],
    ),
    (
        lambda: layers.batch_norm(images(2, 3, 3, 2), scale=True, updates_collections=None),
        [f"BatchNorm/{name}" for name in ("beta", "gamma", "moving_mean", "moving_variance")],
        "BatchNorm/Identity",
        [2, 3, 3, 2],
    ),
    (
        lambda: layers.layer_norm(images(2, 3, 2), begin_norm_axis=-1),
        ["LayerNorm/beta", "LayerNorm/gamma"],
        "LayerNorm/batchnorm/add_1",
        [2, 3, 2],
    ),
    (lambda: layers.group_norm(images(2, 4, 4, 8), groups=2), ["GroupNorm/beta", "GroupNorm/gamma"], "", [2, 4, 4, 8]),
    (lambda: layers.gdn(images(2, 4, 4, 3)), ["gdn/reparam_beta", "gdn/reparam_gamma"], "", [2, 4, 4, 3]),
    (lambda: layers.max_pool2d(images(2, 4, 4, 1), 2), [], "MaxPool2D/MaxPool", [2, 2, 2, 1]),
    (lambda: layers.spatial_softmax(images(2, 4, 4, 3)), ["spatial_softmax/temperature"], "", [2, 6]),
    (
        lambda: layers.embed_sequence([[1, 2], [0, 1]], vocab_size=3, embed_dim=5, unique=True),
        ["EmbedSequence/embeddings"],
        "",
        [2, 2, 5],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_names_and_values(case: tuple[Callable[[], Any], list[str], str, list[int]]) -> None:
    make, variables, node, shape = case

    outputs = make()

    assert [each.op.name for each in tf.global_variables()] == variables
    assert outputs.op.name == (node or outputs.op.name)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        value = sess.run(outputs)
    assert list(value.shape) == shape
    assert np.isfinite(value).all()


def test_a_normalizer_replaces_the_biases_and_collections_are_kept() -> None:
    layers.conv2d(
        images(2, 4, 4, 3),
        4,
        3,
        normalizer_fn=layers.batch_norm,
        variables_collections={"weights": ["w"]},
        outputs_collections="out",
        weights_regularizer=layers.l2_regularizer(0.1),
        scope="c",
    )

    assert [each.op.name for each in tf.global_variables()] == [
        "c/weights", "c/BatchNorm/beta", "c/BatchNorm/moving_mean", "c/BatchNorm/moving_variance",
    ]  # fmt: skip
    assert [each.op.name for each in tf.get_collection("w")] == ["c/weights"]
    assert list(layers.utils.convert_collection_to_dict("out")) == ["c"]
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 1


def test_batch_norm_weighs_examples() -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0], [100.0, 100.0]], np.float32)
    normed = layers.batch_norm(tf.constant(x), batch_weights=[1.0, 1.0, 0.0], epsilon=0.0)

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        value = sess.run(normed)

    np.testing.assert_allclose(value[:2], [[-1, -1], [1, 1]], rtol=1e-5)


def test_optimize_loss_clips_and_counts() -> None:
    step = tf.train.get_or_create_global_step()
    var = tf.get_variable("v", initializer=3.0)
    train = layers.optimize_loss(
        var * 10.0, step, 1.0, "SGD", clip_gradients=0.5, summaries=["gradients", "gradient_norm", "loss"]
    )

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        assert sess.run([var, step]) == [2.5, 1]
    tags = [each.op.inputs[0].op.name for each in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    assert "OptimizeLoss/global_norm/clipped_gradient_norm/tags" in tags


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: layers.fully_connected(images(2, 3), 2.5), "num_outputs type"),
        (lambda: layers.max_pool2d(images(1, 2, 2, 1), 2, data_format="CHWN"), "NCHW or NHWC"),
        (lambda: layers.l1_regularizer(1), "scale cannot be an integer"),
        (lambda: layers.unit_norm(images(2, 3), 2), "smaller than the input rank"),
        (lambda: layers.optimize_loss(tf.constant(1.0), None, 0.1, "Adams"), "Optimizer name should be one of"),
        (lambda: layers.embed_sequence([[1]]), "vocab size and embedding dimension"),
    ],
)
def test_mistakes_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_partitions_of_an_embedding_have_one_type() -> None:
    ids = tf.SparseTensor([[0, 0]], [1], [1, 1])
    for kinds, weights in (((np.float32, np.float64), None), ((np.float64, np.float64), [0.5])):
        parts = [tf.constant(np.ones((2, 3), kind)) for kind in kinds]
        of = None if weights is None else tf.SparseTensor([[0, 0]], tf.constant(weights), [1, 1])
        with pytest.raises(ValueError, match="must be of the same type"):
            layers.safe_embedding_lookup_sparse(parts, ids, of)


def test_the_hash_key_of_crosses_has_a_name() -> None:
    assert layers.SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY == 0xDECAFCAFFE
