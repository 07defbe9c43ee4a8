"""What the two versions of ResNet share: blocks of units, and strides that become dilation for dense predictions.

Follows TensorFlow 1.15's contrib/slim/python/slim/nets/resnet_utils.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold.contrib.arg_scope import add_arg_scope, arg_scope
from tenfold.contrib.layers import (
    batch_norm,
    conv2d,
    l2_regularizer,
    max_pool2d,
    softmax,
    utils,
    variance_scaling_initializer,
)
from tenfold.graph.collections import GraphKeys
from tenfold.named import named
from tenfold.ops import array, nn
from tenfold.ops.reductions import reduce_mean
from tenfold.ops.variable_scope import variable_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Block(NamedTuple):
    """A block: its scope, the function of a unit, and the arguments of each unit."""

    scope: str
    unit_fn: Any
    args: Any


def subsample(inputs: Any, factor: int, scope: Any = None) -> Any:
    """Every `factor`th pixel of each row and column."""
    return inputs if factor == 1 else max_pool2d(inputs, [1, 1], stride=factor, scope=scope)


def conv2d_same(inputs: Any, num_outputs: int, kernel_size: int, stride: int, rate: int = 1, scope: Any = None) -> Any:
    """A convolution padded so that its strided result is the plain one's, subsampled."""
    if stride == 1:
        return conv2d(inputs, num_outputs, kernel_size, stride=1, rate=rate, padding="SAME", scope=scope)
    total = kernel_size + (kernel_size - 1) * (rate - 1) - 1
    sides = [total // 2, total - total // 2]
    padded = array.pad(inputs, [[0, 0], sides, sides, [0, 0]])
    return conv2d(padded, num_outputs, kernel_size, stride=stride, rate=rate, padding="VALID", scope=scope)


@add_arg_scope
def stack_blocks_dense(
    net: Any, blocks: Sequence[Block], output_stride: Any = None, outputs_collections: Any = None
) -> Any:
    """The blocks one after the other; beyond `output_stride`, units dilate where they would stride.

    Raises ValueError if the strides do not multiply to `output_stride`.
    """
    unreachable = "The target output_stride cannot be reached."
    current, rate = 1, 1
    for block in blocks:
        with variable_scope(block.scope, "block", [net]) as inner:
            for number, unit in enumerate(block.args, 1):
                if output_stride is not None and current > output_stride:
                    raise ValueError(unreachable)
                with variable_scope(f"unit_{number}", values=[net]):
                    if output_stride is not None and current == output_stride:
                        net = block.unit_fn(net, rate=rate, **{**unit, "stride": 1})
                        rate *= unit.get("stride", 1)
                    else:
                        net = block.unit_fn(net, rate=1, **unit)
                        current *= unit.get("stride", 1)
            net = utils.collect_named_outputs(outputs_collections, inner.name, net)
    if output_stride is not None and current != output_stride:
        raise ValueError(unreachable)
    return net


def resnet_arg_scope(
    weight_decay: float = 0.0001,
    batch_norm_decay: float = 0.997,
    batch_norm_epsilon: float = 1e-5,
    batch_norm_scale: bool = True,
) -> Any:
    """The argument scope of ResNet's layers."""
    norm = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "scale": batch_norm_scale,
        "updates_collections": GraphKeys.UPDATE_OPS,
    }
    with (
        arg_scope(
            [conv2d],
            weights_regularizer=l2_regularizer(weight_decay),
            weights_initializer=variance_scaling_initializer(),
            activation_fn=nn.relu,
            normalizer_fn=batch_norm,
            normalizer_params=norm,
        ),
        arg_scope([batch_norm], **norm),
        arg_scope([max_pool2d], padding="SAME") as scope,
    ):
        return scope


def version(
    module: str, bottleneck: Any, root: Callable[[Any], Any], finish: Callable[[Any], Any]
) -> tuple[Any, Callable[..., Block]]:
    """The network of a version of ResNet, which has the name of its module, and its `<name>_block`.

    `bottleneck` is its unit, `root` its first convolution, `finish` what follows the blocks.
    """
    name = module.rpartition(".")[2]

    def network(
        inputs: Any,
        blocks: Sequence[Block],
        num_classes: int | None = None,
        is_training: Any = True,
        global_pool: bool = True,
        output_stride: int | None = None,
        include_root_block: bool = True,
        reuse: Any = None,
        scope: Any = None,
    ) -> tuple[Any, dict[str, Any]]:
        """(net, end points): logits (batch, 1, 1, num_classes), or features without `num_classes`.

        With `output_stride` the features are that much smaller than the images, and no more. Raises ValueError for a
        stride that the blocks cannot have.
        """
        with variable_scope(scope, name, [inputs], reuse=reuse) as inner:
            collection = f"{inner.original_name_scope}_end_points"
            with (
                arg_scope([conv2d, bottleneck, stack_blocks_dense], outputs_collections=collection),
                arg_scope([batch_norm], is_training=is_training),
            ):
                net = inputs
                if include_root_block:
                    if output_stride is not None:
                        if output_stride % 4:
                            raise ValueError("The output_stride needs to be a multiple of 4.")
                        output_stride //= 4
                    net = max_pool2d(root(net), [3, 3], stride=2, scope="pool1")
                net = finish(stack_blocks_dense(net, blocks, output_stride))
                if global_pool:
                    net = reduce_mean(net, [1, 2], name="pool5", keepdims=True)
                if num_classes is not None:
                    net = conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="logits")
                end_points = utils.convert_collection_to_dict(collection)
                if num_classes is not None:
                    end_points["predictions"] = softmax(net, scope="predictions")
                return net, end_points

    def block(scope: str, base_depth: int, num_units: int, stride: int) -> Block:
        """A block of bottleneck units, of which the last one strides."""
        unit = {"depth": base_depth * 4, "depth_bottleneck": base_depth, "stride": 1}
        return Block(scope, bottleneck, [unit] * (num_units - 1) + [{**unit, "stride": stride}])

    network.default_image_size = 224  # type: ignore[attr-defined]
    network.__module__ = block.__module__ = module
    return named(network, name, network.__doc__), named(block, f"{name}_block", block.__doc__)


def network_of(name: str, counts: tuple[int, int, int, int], block: Callable[..., Block], made: Any) -> Any:
    """The network `name`, with so many units in each of its four blocks."""

    def net(
        inputs: Any,
        num_classes: int | None = None,
        is_training: Any = True,
        global_pool: bool = True,
        output_stride: int | None = None,
        reuse: Any = None,
        scope: Any = name,
    ) -> tuple[Any, dict[str, Any]]:
        blocks = [
            block(f"block{number}", base_depth=64 << (number - 1), num_units=count, stride=1 if number == 4 else 2)
            for number, count in enumerate(counts, 1)
        ]
        return made(  # type: ignore[no-any-return]
            inputs, blocks, num_classes, is_training, global_pool, output_stride, include_root_block=True,
            reuse=reuse, scope=scope,
        )  # fmt: skip

    net.default_image_size = 224  # type: ignore[attr-defined]
    return named(net, name, f"(net, end points) of {name}: images (batch, height, width, 3).")
