"""VGG with 11, 16 and 19 layers: 224 x 224 images, five groups of convolutions each followed by a pool.

Follows TensorFlow 1.15's contrib/slim/python/slim/nets/vgg.py; variables have the names of its checkpoints.
"""

from __future__ import annotations

from typing import Any

from tenfold.contrib.layers import conv2d, max_pool2d, repeat
from tenfold.contrib.slim.nets.plain import plain_arg_scope, plain_network
from tenfold.named import named
from tenfold.ops.init_ops import Zeros

_CHANNELS = (64, 128, 256, 512, 512)


def vgg_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The argument scope of VGG's layers."""
    return plain_arg_scope(weight_decay, Zeros(), None)


def _network(name: str, counts: tuple[int, ...]) -> Any:
    def body(net: Any) -> Any:
        for group, (count, channels) in enumerate(zip(counts, _CHANNELS, strict=True), 1):
            net = repeat(net, count, conv2d, channels, [3, 3], scope=f"conv{group}")
            net = max_pool2d(net, [2, 2], scope=f"pool{group}")
        return net

    def network(
        inputs: Any,
        num_classes: int = 1000,
        is_training: Any = True,
        dropout_keep_prob: float = 0.5,
        spatial_squeeze: bool = True,
        scope: Any = name,
    ) -> tuple[Any, dict[str, Any]]:
        return plain_network(
            inputs, body, (7, 4096, 4096), num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope, name,
            small_start=False,
        )  # fmt: skip

    network.default_image_size = 224  # type: ignore[attr-defined]
    return named(network, name, f"(logits, end points) of {name}: images (batch, 224, 224, 3).")


vgg_a = _network("vgg_a", (1, 1, 2, 2, 2))
vgg_16 = vgg_d = _network("vgg_16", (2, 2, 3, 3, 3))
vgg_19 = vgg_e = _network("vgg_19", (2, 2, 4, 4, 4))
