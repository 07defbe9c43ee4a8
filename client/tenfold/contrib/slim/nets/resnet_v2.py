"""ResNet, version 2: units begin with normalization and relu.

Follows TensorFlow 1.15's contrib/slim/python/slim/nets/resnet_v2.py; variables have the names of its checkpoints.
"""

from __future__ import annotations

from typing import Any

from tenfold.contrib.arg_scope import add_arg_scope, arg_scope
from tenfold.contrib.layers import batch_norm, conv2d, utils
from tenfold.contrib.slim.nets import resnet_utils
from tenfold.contrib.slim.nets.resnet_utils import resnet_arg_scope
from tenfold.ops import nn
from tenfold.ops.variable_scope import variable_scope

__all__ = [
    "bottleneck",
    "resnet_arg_scope",
    "resnet_v2",
    "resnet_v2_50",
    "resnet_v2_101",
    "resnet_v2_152",
    "resnet_v2_200",
    "resnet_v2_block",
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
    with variable_scope(scope, "bottleneck_v2", [inputs]) as inner:
        ready = batch_norm(inputs, activation_fn=nn.relu, scope="preact")
        bare: dict[str, Any] = {"normalizer_fn": None, "activation_fn": None}
        if depth == utils.last_dimension(inputs.get_shape(), min_rank=4):
            shortcut = resnet_utils.subsample(inputs, stride, "shortcut")
        else:
            shortcut = conv2d(ready, depth, [1, 1], stride=stride, scope="shortcut", **bare)
        residual = conv2d(ready, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        residual = resnet_utils.conv2d_same(residual, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
        residual = conv2d(residual, depth, [1, 1], stride=1, scope="conv3", **bare)
        output = shortcut + residual
        return utils.collect_named_outputs(outputs_collections, inner.name, output)


def _root(net: Any) -> Any:
    with arg_scope([conv2d], activation_fn=None, normalizer_fn=None):
        return resnet_utils.conv2d_same(net, 64, 7, stride=2, scope="conv1")


def _finish(net: Any) -> Any:
    return batch_norm(net, activation_fn=nn.relu, scope="postnorm")


resnet_v2, resnet_v2_block = resnet_utils.version(__name__, bottleneck, _root, _finish)
resnet_v2_50 = resnet_utils.network_of("resnet_v2_50", (3, 4, 6, 3), resnet_v2_block, resnet_v2)
resnet_v2_101 = resnet_utils.network_of("resnet_v2_101", (3, 4, 23, 3), resnet_v2_block, resnet_v2)
resnet_v2_152 = resnet_utils.network_of("resnet_v2_152", (3, 8, 36, 3), resnet_v2_block, resnet_v2)
resnet_v2_200 = resnet_utils.network_of("resnet_v2_200", (3, 24, 36, 3), resnet_v2_block, resnet_v2)
