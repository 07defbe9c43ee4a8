"""Networks that are one row of layers: what vgg.py, alexnet.py and overfeat.py share, and the layers' end points.

Follows TensorFlow 1.15's contrib/slim/python/slim/nets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.contrib.arg_scope import arg_scope
from tenfold.contrib.layers import conv2d, dropout, fully_connected, l2_regularizer, max_pool2d, utils
from tenfold.ops import array, nn
from tenfold.ops.init_ops import Constant, TruncatedNormal, Zeros
from tenfold.ops.variable_scope import variable_scope

if TYPE_CHECKING:
    from collections.abc import Callable


def plain_arg_scope(weight_decay: float, biases: Any, pool_padding: str | None) -> Any:
    """The argument scope of such a network: relu, weight decay, "SAME" convolutions."""
    layers = [conv2d, fully_connected]
    regularizer = l2_regularizer(weight_decay)
    with (
        arg_scope(layers, activation_fn=nn.relu, weights_regularizer=regularizer, biases_initializer=biases),
        arg_scope([conv2d], padding="SAME") as scope,
    ):
        if pool_padding is None:
            return scope
        with arg_scope([max_pool2d], padding=pool_padding) as pooled:
            return pooled


def plain_network(
    inputs: Any,
    body: Callable[[Any], Any],
    fully: tuple[int, int, int],
    num_classes: int,
    is_training: Any,
    keep_prob: float,
    squeeze: bool,
    scope: Any,
    default_scope: str,
    small_start: bool,
) -> tuple[Any, dict[str, Any]]:
    """(logits, end points): `body`, then three fully connected layers as convolutions, `fc6` to `fc8`.

    `fully` is (window of fc6, channels of fc6, channels of fc7); with `small_start` these start smaller, and biases
    at 0.1.
    """
    with variable_scope(scope, default_scope, [inputs]) as inner:
        collection = f"{inner.original_name_scope}_end_points"
        starts: dict[str, Any] = {}
        if small_start:
            starts = {"weights_initializer": TruncatedNormal(0.0, 0.005), "biases_initializer": Constant(0.1)}
        with arg_scope([conv2d, fully_connected, max_pool2d], outputs_collections=[collection]):
            net = body(inputs)
            window, first, second = fully
            with arg_scope([conv2d], **starts):
                net = conv2d(net, first, [window, window], padding="VALID", scope="fc6")
                net = dropout(net, keep_prob, is_training=is_training, scope="dropout6")
                net = conv2d(net, second, [1, 1], scope="fc7")
                net = dropout(net, keep_prob, is_training=is_training, scope="dropout7")
                last = {"biases_initializer": Zeros()} if small_start else {}
                net = conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="fc8", **last)
        end_points = utils.convert_collection_to_dict(collection)
        if squeeze:
            net = array.squeeze(net, [1, 2], name="fc8/squeezed")
            end_points[f"{inner.name}/fc8"] = net
        return net, end_points
