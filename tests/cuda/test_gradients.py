"""Gradients on a GPU against finite differences, in one random direction, of one function for each family of ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.gpu_programs import ops_on, with_gpus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.thorough

IDS = np.array([0, 0, 2])
FILTERS = np.random.RandomState(1).uniform(-1, 1, (2, 2, 2, 3))
WEIGHTS = np.random.RandomState(2).uniform(-1, 1, (3, 4))
VECTOR = np.random.RandomState(3).uniform(0.5, 1, (3,))
LABELS = np.array([[0.2, 0.3, 0.5], [0.1, 0.9, 0.0]])
IMAGES = (1, 3, 5, 2)
STRIDES = [1, 2, 1, 1]

#: Name → (an op that must run on the GPU, the function, the shape of its argument), which is in [0.1, 1.1).
CASES: dict[str, tuple[str, Callable[[Any], Any], tuple[int, ...]]] = {
    "matmul": ("MatMul", lambda x: tf.matmul(x, WEIGHTS), (2, 3)),
    "matmul_transposed": ("MatMul", lambda x: tf.matmul(x, WEIGHTS, transpose_a=True), (3, 2)),
    "batch_matmul": ("BatchMatMulV2", lambda x: tf.matmul(x, tf.constant(WEIGHTS)), (2, 1, 3)),
    "conv2d": ("Conv2D", lambda x: tf.nn.conv2d(x, FILTERS, STRIDES, "SAME"), IMAGES),
    "conv2d_filters": (
        "Conv2D",
        lambda x: tf.nn.conv2d(np.ones(IMAGES) * VECTOR[:2], x, STRIDES, "VALID"),
        (2, 2, 2, 3),
    ),
    "depthwise": ("DepthwiseConv2dNative", lambda x: tf.nn.depthwise_conv2d(x, FILTERS, [1, 2, 2, 1], "SAME"), IMAGES),
    "max_pool": ("MaxPool", lambda x: tf.nn.max_pool(x, [1, 2, 2, 1], STRIDES, "SAME"), IMAGES),
    "avg_pool": ("AvgPool", lambda x: tf.nn.avg_pool(x, [1, 2, 3, 1], STRIDES, "SAME"), IMAGES),
    "bias_add": ("BiasAdd", lambda x: tf.nn.bias_add(tf.constant(WEIGHTS.T), x), (3,)),
    "softmax": ("Softmax", tf.nn.softmax, (2, 3)),
    "log_softmax": ("LogSoftmax", tf.nn.log_softmax, (2, 3)),
    "cross_entropy": (
        "SoftmaxCrossEntropyWithLogits",
        lambda x: tf.nn.softmax_cross_entropy_with_logits(labels=LABELS, logits=x),
        (2, 3),
    ),
    "sparse_cross_entropy": (
        "SparseSoftmaxCrossEntropyWithLogits",
        lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=np.array([2, 0]), logits=x),
        (2, 3),
    ),
    "moments": ("Mean", lambda x: tf.concat(tf.nn.moments(x, [0]), 0), (3, 2)),
    "l2_loss": ("L2Loss", tf.nn.l2_loss, (5,)),
    "sum": ("Sum", lambda x: tf.reduce_sum(x, [0, 2]), (2, 3, 2)),
    "mean": ("Mean", lambda x: tf.reduce_mean(x, 1), (2, 3)),
    "prod": ("Prod", lambda x: tf.reduce_prod(x, 1), (2, 3)),
    "max": ("Max", lambda x: tf.reduce_max(x, 0), (3, 2)),
    "min": ("Min", lambda x: tf.reduce_min(x), (3, 2)),
    "norm": ("Sqrt", lambda x: tf.norm(x, axis=1), (2, 3)),
    "cumsum": ("Cumsum", lambda x: tf.cumsum(x, 1, exclusive=True, reverse=True), (2, 3)),
    "cumprod": ("Cumprod", lambda x: tf.cumprod(x, 0), (3, 2)),
    "broadcast": ("Mul", lambda x: tf.reshape(x, [3, 1]) * tf.constant(WEIGHTS) / x[0], (3,)),
    "maximum": ("Maximum", lambda x: tf.maximum(x, 0.6) - tf.minimum(x, tf.constant(VECTOR)), (2, 3)),
    "pow": ("Pow", lambda x: tf.pow(x, tf.constant(VECTOR)) + tf.pow(tf.constant(VECTOR), x), (2, 3)),
    "atan2": ("Atan2", lambda x: tf.atan2(x, tf.constant(VECTOR)), (2, 3)),
    "select": ("Select", lambda x: tf.where(x > 0.63, x * x, 3.0 * x), (7,)),
    "squared_difference": ("SquaredDifference", lambda x: tf.squared_difference(x, tf.constant(VECTOR)), (2, 3)),
    "add_n": ("AddN", lambda x: tf.add_n([x, x * 2.0, tf.square(x)]), (5,)),
    "gather": ("GatherV2", lambda x: tf.gather(x, IDS, axis=1), (2, 3)),
    "gather_nd": ("GatherNd", lambda x: tf.gather_nd(x, np.array([[0, 1], [2, 0], [0, 1]])), (3, 2)),
    "scatter_nd": ("ScatterNd", lambda x: tf.scatter_nd(IDS[:, None], x, np.array([4, 2])), (3, 2)),
    "segment_sum": ("SegmentSum", lambda x: tf.reshape(tf.segment_sum(x, IDS), [3, 2]), (3, 2)),
    "unsorted_segment_sum": ("UnsortedSegmentSum", lambda x: tf.unsorted_segment_sum(x, IDS, 4), (3, 2)),
    "concat": ("ConcatV2", lambda x: tf.concat([x, x * 2.0, tf.constant(VECTOR)], 0), (3,)),
    "split": ("Split", lambda x: tf.add_n([(n + 1.0) * part for n, part in enumerate(tf.split(x, 3, 1))]), (2, 6)),
    "pack": ("Pack", lambda x: tf.stack([each * (n + 1.0) for n, each in enumerate(tf.unstack(x))], 1), (3, 2)),
    "slice": ("Slice", lambda x: tf.slice(x, [1, 0], [2, 2]), (3, 3)),
    "strided_slice": ("StridedSlice", lambda x: x[::-2, tf.newaxis, 1:], (5, 3)),
    "pad": ("Pad", lambda x: tf.pad(x, [[1, 0], [0, 2]]), (2, 3)),
    "mirror_pad": ("MirrorPad", lambda x: tf.pad(x, [[1, 1], [2, 0]], "REFLECT"), (3, 3)),
    "tile": ("Tile", lambda x: tf.tile(x, [2, 3]), (2, 3)),
    "transpose": ("Transpose", lambda x: tf.transpose(x, [2, 0, 1]), (2, 3, 2)),
    "reverse": ("ReverseV2", lambda x: tf.reverse(x, [1]), (2, 3)),
    "reverse_sequence": ("ReverseSequence", lambda x: tf.reverse_sequence(x, np.array([2, 3]), 1), (2, 3)),
    "space_to_depth": ("SpaceToDepth", lambda x: tf.space_to_depth(x, 2), (1, 2, 4, 2)),
    "depth_to_space": ("DepthToSpace", lambda x: tf.depth_to_space(x, 2), (1, 1, 2, 4)),
    "diag": ("MatrixDiag", lambda x: tf.matrix_diag(x) * tf.constant(VECTOR), (2, 3)),
    "diag_part": ("MatrixDiagPart", lambda x: tf.matrix_diag_part(x * x), (3, 3)),
    "band_part": ("MatrixBandPart", lambda x: tf.matrix_band_part(x, 1, 0), (3, 3)),
    "top_k": ("TopKV2", lambda x: tf.nn.top_k(x, 2)[0], (2, 5)),
    "while": ("Mul", lambda x: tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * x), [0, x])[1], (3,)),
    "cond": ("Mul", lambda x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * x, lambda: x), (3,)),
}
#: Functions of one number each, by name.
ELEMENTWISE = (
    *(
        "abs",
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "cos",
        "cosh",
        "digamma",
        "erf",
        "erfc",
        "exp",
        "expm1",
    ),
    *("lgamma", "log", "log1p", "negative", "reciprocal", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "square", "tan"),
    *("tanh", "nn.elu", "nn.relu", "nn.relu6", "nn.selu", "nn.softplus", "nn.softsign", "nn.leaky_relu"),
)


@pytest.fixture(autouse=True)
def gpus() -> Iterator[None]:
    with with_gpus(1), tf.Graph().as_default():
        yield


def check(function: Callable[[Any], Any], shape: tuple[int, ...], op: str = "", low: float = 0.1) -> None:
    """Asserts that the gradient times a direction is the slope in that direction, and that `op` ran on the GPU."""
    random = np.random.RandomState(7)
    with tf.device("/gpu:0"):
        x = tf.placeholder(tf.float64, shape)
        y = function(x)
        loss = tf.reduce_sum(y * tf.constant(random.uniform(0.5, 1.5, y.shape.as_list())))
        gradient = tf.convert_to_tensor(tf.gradients(loss, x)[0])
    # no two of them are alike, so that a little more or less changes no order
    at = low + (random.permutation(int(np.prod(shape))).reshape(shape) + 0.5) / np.prod(shape)
    along, little = random.uniform(-1, 1, shape), 1e-5
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        found, _ = session.run([gradient, loss], {x: at}, options=options, run_metadata=metadata)
        above, below = (session.run(loss, {x: at + sign * little * along}) for sign in (1, -1))

    assert found.shape == shape
    np.testing.assert_allclose((found * along).sum(), (above - below) / (2 * little), rtol=1e-5, atol=1e-8)
    if op:
        assert ops_on(metadata).get(op) == {"GPU:0"}


@pytest.mark.parametrize("name", CASES)
def test_the_gradient_is_that_of_finite_differences(name: str) -> None:
    op, function, shape = CASES[name]

    check(function, shape, op)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_the_gradient_of_a_function_of_one_number(name: str) -> None:
    function: Any = tf
    for part in name.split("."):
        function = getattr(function, part)

    low = {"acosh": 1.1, "acos": -0.6, "asin": -0.6, "atanh": -0.6, "lgamma": 0.5, "digamma": 0.5}.get(name, 0.1)
    check(function, (7,), low=low)
