"""ResNet, version 1: units end with a relu.

Follows TensorFlow 1.15's contrib/slim/python/slim/nets/resnet_v1.py; variables have the names of its checkpoints.
"""

from __future__ import annotations

from typing import Any

from tenfold.contrib.arg_scope import add_arg_scope
from tenfold.contrib.layers import conv2d, utils
from tenfold.contrib.slim.nets import resnet_utils
from tenfold.contrib.slim.nets.resnet_utils import resnet_arg_scope
from tenfold.ops import nn
from tenfold.ops.variable_scope import variable_scope

__all__ = [
    "bottleneck",
    "resnet_arg_scope",
    "resnet_v1",
    "resnet_v1_50",
    "resnet_v1_101",
    "resnet_v1_152",
    "resnet_v1_200",
    "resnet_v1_block",
]  # fmt: skip


@add_arg_scope
def bottleneck(
    inputs: Any,
    depth: int,
    depth_bottleneck: int,
    stride: int,
    rate: int = 1,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Any:
    """A unit: three convolutions of which the middle one is narrow, beside a shortcut."""
    with variable_scope(scope, "bottleneck_v1", [inputs]) as inner:
        if depth == utils.last_dimension(inputs.get_shape(), min_rank=4):
            shortcut = resnet_utils.subsample(inputs, stride, "shortcut")
        else:
            shortcut = conv2d(inputs, depth, [1, 1], stride=stride, activation_fn=None, scope="shortcut")
        residual = conv2d(inputs, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        residual = resnet_utils.conv2d_same(residual, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
        residual = conv2d(residual, depth, [1, 1], stride=1, activation_fn=None, scope="conv3")
        output = nn.relu(shortcut + residual)
        return utils.collect_named_outputs(outputs_collections, inner.name, output)


def _root(net: Any) -> Any:
    return resnet_utils.conv2d_same(net, 64, 7, stride=2, scope="conv1")


def _finish(net: Any) -> Any:
    return net


resnet_v1, resnet_v1_block = resnet_utils.version(__name__, bottleneck, _root, _finish)
resnet_v1_50 = resnet_utils.network_of("resnet_v1_50", (3, 4, 6, 3), resnet_v1_block, resnet_v1)
resnet_v1_101 = resnet_utils.network_of("resnet_v1_101", (3, 4, 23, 3), resnet_v1_block, resnet_v1)
resnet_v1_152 = resnet_utils.network_of("resnet_v1_152", (3, 8, 36, 3), resnet_v1_block, resnet_v1)
resnet_v1_200 = resnet_utils.network_of("resnet_v1_200", (3, 24, 36, 3), resnet_v1_block, resnet_v1)
