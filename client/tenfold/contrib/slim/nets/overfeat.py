"""OverFeat. Follows TensorFlow 1.15's contrib/slim/python/slim/nets/overfeat.py."""

from __future__ import annotations

from typing import Any

from tenfold.contrib.layers import conv2d, max_pool2d
from tenfold.contrib.slim.nets.plain import plain_arg_scope, plain_network
from tenfold.ops.init_ops import Zeros


def overfeat_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The argument scope of OverFeat's layers."""
    return plain_arg_scope(weight_decay, Zeros(), "VALID")


def _body(net: Any) -> Any:
    net = conv2d(net, 64, [11, 11], 4, padding="VALID", scope="conv1")
    net = max_pool2d(net, [2, 2], scope="pool1")
    net = conv2d(net, 256, [5, 5], padding="VALID", scope="conv2")
    net = max_pool2d(net, [2, 2], scope="pool2")
    for number, channels in ((3, 512), (4, 1024), (5, 1024)):
        net = conv2d(net, channels, [3, 3], scope=f"conv{number}")
    return max_pool2d(net, [2, 2], scope="pool5")


def overfeat(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: Any = "overfeat",
) -> tuple[Any, dict[str, Any]]:
    """(logits, end points): images (batch, 231, 231, 3)."""
    return plain_network(
        inputs, _body, (6, 3072, 4096), num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope,
        "overfeat", small_start=True,
    )  # fmt: skip


overfeat.default_image_size = 231  # type: ignore[attr-defined]
