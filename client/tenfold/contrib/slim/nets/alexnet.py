"""AlexNet, the second version. Follows TensorFlow 1.15's contrib/slim/python/slim/nets/alexnet.py."""

from __future__ import annotations

from typing import Any

from tenfold.contrib.layers import conv2d, max_pool2d
from tenfold.contrib.slim.nets.plain import plain_arg_scope, plain_network
from tenfold.ops.init_ops import Constant


def alexnet_v2_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The argument scope of AlexNet's layers."""
    return plain_arg_scope(weight_decay, Constant(0.1), "VALID")


def _body(net: Any) -> Any:
    net = conv2d(net, 64, [11, 11], 4, padding="VALID", scope="conv1")
    net = max_pool2d(net, [3, 3], 2, scope="pool1")
    net = conv2d(net, 192, [5, 5], scope="conv2")
    net = max_pool2d(net, [3, 3], 2, scope="pool2")
    for number, channels in ((3, 384), (4, 384), (5, 256)):
        net = conv2d(net, channels, [3, 3], scope=f"conv{number}")
    return max_pool2d(net, [3, 3], 2, scope="pool5")


def alexnet_v2(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: Any = "alexnet_v2",
) -> tuple[Any, dict[str, Any]]:
    """(logits, end points): images (batch, 224, 224, 3)."""
    return plain_network(
        inputs, _body, (5, 4096, 4096), num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope,
        "alexnet_v2", small_start=True,
    )  # fmt: skip


alexnet_v2.default_image_size = 224  # type: ignore[attr-defined]
