"""Inception, versions 1 to 3, from tables of their cells.

A row is an end point; "|" parts the branches of a mixed cell, which are joined. A part such as `0b_3x3:96/2v~0.09` is
the convolution Conv2d_0b_3x3 to 96 channels with stride 2, "VALID" padding and weights that start with deviation 0.09;
`max…` and `avg…` are pools, `name=3x3:…` has a scope of that name, and `a+b` joins two convolutions of one input.
Follows TensorFlow 1.15's contrib/slim/python/slim/nets (inception_v1.py, inception_v2.py, inception_v3.py); variables
have the names of its checkpoints.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tenfold.contrib.arg_scope import arg_scope
from tenfold.contrib.layers import (
    avg_pool2d,
    batch_norm,
    conv2d,
    dropout,
    fully_connected,
    l2_regularizer,
    max_pool2d,
    separable_conv2d,
    softmax,
    variance_scaling_initializer,
)
from tenfold.graph.collections import GraphKeys
from tenfold.ops import array, nn
from tenfold.ops.init_ops import TruncatedNormal
from tenfold.ops.variable_scope import variable_scope

if TYPE_CHECKING:
    from collections.abc import Callable

_PART = re.compile(
    r"(?P<pool>max|avg)?(?:(?P<scope>\w+)=)?(?P<id>\d\w_)?(?P<height>\d+)x(?P<width>\d+)(?::(?P<depth>\d+))?"
    r"(?:/(?P<stride>\d))?(?P<valid>v)?(?:~(?P<deviation>[\d.]+))?"
)

_V1 = """
Conv2d_1a_7x7: 1a_7x7:64/2
MaxPool_2a_3x3: max2a_3x3/2
Conv2d_2b_1x1: 2b_1x1:64
Conv2d_2c_3x3: 2c_3x3:192
MaxPool_3a_3x3: max3a_3x3/2
Mixed_3b: 0a_1x1:64 | 0a_1x1:96 0b_3x3:128 | 0a_1x1:16 0b_3x3:32 | max0a_3x3 0b_1x1:32
Mixed_3c: 0a_1x1:128 | 0a_1x1:128 0b_3x3:192 | 0a_1x1:32 0b_3x3:96 | max0a_3x3 0b_1x1:64
MaxPool_4a_3x3: max4a_3x3/2
Mixed_4b: 0a_1x1:192 | 0a_1x1:96 0b_3x3:208 | 0a_1x1:16 0b_3x3:48 | max0a_3x3 0b_1x1:64
Mixed_4c: 0a_1x1:160 | 0a_1x1:112 0b_3x3:224 | 0a_1x1:24 0b_3x3:64 | max0a_3x3 0b_1x1:64
Mixed_4d: 0a_1x1:128 | 0a_1x1:128 0b_3x3:256 | 0a_1x1:24 0b_3x3:64 | max0a_3x3 0b_1x1:64
Mixed_4e: 0a_1x1:112 | 0a_1x1:144 0b_3x3:288 | 0a_1x1:32 0b_3x3:64 | max0a_3x3 0b_1x1:64
Mixed_4f: 0a_1x1:256 | 0a_1x1:160 0b_3x3:320 | 0a_1x1:32 0b_3x3:128 | max0a_3x3 0b_1x1:128
MaxPool_5a_2x2: max5a_2x2/2
Mixed_5b: 0a_1x1:256 | 0a_1x1:160 0b_3x3:320 | 0a_1x1:32 0a_3x3:128 | max0a_3x3 0b_1x1:128
Mixed_5c: 0a_1x1:384 | 0a_1x1:192 0b_3x3:384 | 0a_1x1:48 0b_3x3:128 | max0a_3x3 0b_1x1:128
"""


def _v2_cell(plain: int, one: tuple[int, int], two: tuple[int, int], pool: str, last: int) -> str:
    return (
        f"0a_1x1:{plain} | 0a_1x1:{one[0]}~0.09 0b_3x3:{one[1]} | 0a_1x1:{two[0]}~0.09 0b_3x3:{two[1]} "
        f"0c_3x3:{two[1]} | {pool}0a_3x3 0b_1x1:{last}~0.1"
    )


_V2 = f"""
MaxPool_2a_3x3: max2a_3x3/2
Conv2d_2b_1x1: 2b_1x1:64~0.1
Conv2d_2c_3x3: 2c_3x3:192
MaxPool_3a_3x3: max3a_3x3/2
Mixed_3b: {_v2_cell(64, (64, 64), (64, 96), "avg", 32)}
Mixed_3c: {_v2_cell(64, (64, 96), (64, 96), "avg", 64)}
Mixed_4a: 0a_1x1:128~0.09 1a_3x3:160/2 | 0a_1x1:64~0.09 0b_3x3:96 1a_3x3:96/2 | max1a_3x3/2
Mixed_4b: {_v2_cell(224, (64, 96), (96, 128), "avg", 128)}
Mixed_4c: {_v2_cell(192, (96, 128), (96, 128), "avg", 128)}
Mixed_4d: {_v2_cell(160, (128, 160), (128, 160), "avg", 96)}
Mixed_4e: {_v2_cell(96, (128, 192), (160, 192), "avg", 96)}
Mixed_5a: 0a_1x1:128~0.09 1a_3x3:192/2 | 0a_1x1:192~0.09 0b_3x3:256 1a_3x3:256/2 | max1a_3x3/2
Mixed_5b: {_v2_cell(352, (192, 320), (160, 224), "avg", 128)}
Mixed_5c: {_v2_cell(352, (192, 320), (192, 224), "max", 128)}
"""


def _v3_cell(depth: int) -> str:
    return (
        f"0a_1x1:192 | 0a_1x1:{depth} 0b_1x7:{depth} 0c_7x1:192 | 0a_1x1:{depth} 0b_7x1:{depth} 0c_1x7:{depth} "
        f"0d_7x1:{depth} 0e_1x7:192 | avg0a_3x3 0b_1x1:192"
    )


def _v3_last(second: str) -> str:
    return (
        f"0a_1x1:320 | 0a_1x1:384 0b_1x3:384+{second}:384 | 0a_1x1:448 0b_3x3:384 0c_1x3:384+0d_3x1:384 | "
        "avg0a_3x3 0b_1x1:192"
    )


_V3_FIRST = """
Conv2d_1a_3x3: 1a_3x3:32/2
Conv2d_2a_3x3: 2a_3x3:32
Conv2d_2b_3x3: 2b_3x3:64s
MaxPool_3a_3x3: max3a_3x3/2
Conv2d_3b_1x1: 3b_1x1:80
Conv2d_4a_3x3: 4a_3x3:192
MaxPool_5a_3x3: max5a_3x3/2
"""
_V3 = f"""
Mixed_5b: 0a_1x1:64 | 0a_1x1:48 0b_5x5:64 | 0a_1x1:64 0b_3x3:96 0c_3x3:96 | avg0a_3x3 0b_1x1:32
Mixed_5c: 0a_1x1:64 | 0b_1x1:48 Conv_1_0c_5x5=5x5:64 | 0a_1x1:64 0b_3x3:96 0c_3x3:96 | avg0a_3x3 0b_1x1:64
Mixed_5d: 0a_1x1:64 | 0a_1x1:48 0b_5x5:64 | 0a_1x1:64 0b_3x3:96 0c_3x3:96 | avg0a_3x3 0b_1x1:64
Mixed_6a: Conv2d_1a_1x1=3x3:384/2v | 0a_1x1:64 0b_3x3:96 Conv2d_1a_1x1=3x3:96/2v | max1a_3x3/2v
Mixed_6b: {_v3_cell(128)}
Mixed_6c: {_v3_cell(160)}
Mixed_6d: {_v3_cell(160)}
Mixed_6e: {_v3_cell(192)}
Mixed_7a: 0a_1x1:192 1a_3x3:320/2v | 0a_1x1:192 0b_1x7:192 0c_7x1:192 1a_3x3:192/2v | max1a_3x3/2v
Mixed_7b: {_v3_last("0b_3x1")}
Mixed_7c: {_v3_last("0c_3x1")}
"""


def _part(net: Any, text: str, depth: Callable[[int], int]) -> Any:
    """One layer of a branch."""
    if "+" in text:
        return array.concat([_part(net, each, depth) for each in text.split("+")], 3)
    # "s" at the end: "SAME" padding where the rows around it are "VALID".
    same = text.endswith("s")
    match = _PART.fullmatch(text.removesuffix("s"))
    assert match is not None, text
    size = [int(match["height"]), int(match["width"])]
    named = f"{match['id']}{size[0]}x{size[1]}"
    given: dict[str, Any] = {"stride": int(match["stride"])} if match["stride"] else {}
    if match["valid"] or same:
        given["padding"] = "SAME" if same else "VALID"
    if match["pool"]:
        pool, kind = (max_pool2d, "MaxPool") if match["pool"] == "max" else (avg_pool2d, "AvgPool")
        return pool(net, size, scope=f"{kind}_{named}", **given)
    if match["deviation"]:
        given["weights_initializer"] = TruncatedNormal(0.0, float(match["deviation"]))
    return conv2d(net, depth(int(match["depth"])), size, scope=match["scope"] or f"Conv2d_{named}", **given)


def _branch(net: Any, text: str, depth: Callable[[int], int]) -> Any:
    for part in text.split():
        net = _part(net, part, depth)
    return net


def _cells(
    net: Any, table: str, depth: Callable[[int], int], final: str, end_points: dict[str, Any]
) -> tuple[Any, bool]:
    """(the net after the rows, whether `final` was among them)."""
    for row in table.strip().splitlines():
        name, _, text = row.partition(": ")
        if name.startswith("Mixed"):
            with variable_scope(name):
                branches = []
                for number, branch in enumerate(text.split(" | ")):
                    with variable_scope(f"Branch_{number}"):
                        branches.append(_branch(net, branch, depth))
                net = array.concat(branches, 3)
        else:
            net = _branch(net, text, depth)
        end_points[name] = net
        if name == final:
            return net, True
    return net, False


def _depth_of(depth_multiplier: float, min_depth: int) -> Callable[[int], int]:
    if depth_multiplier <= 0:
        raise ValueError("depth_multiplier is not greater than zero.")
    return lambda depth: max(int(depth * depth_multiplier), min_depth)


def _unknown(final_endpoint: str) -> ValueError:
    return ValueError(f"Unknown final endpoint {final_endpoint}")


def inception_v1_base(
    inputs: Any, final_endpoint: str = "Mixed_5c", scope: Any = "InceptionV1"
) -> tuple[Any, dict[str, Any]]:
    """(net, end points) up to `final_endpoint`. Raises ValueError if there is none of that name."""
    end_points: dict[str, Any] = {}
    with (
        variable_scope(scope, "InceptionV1", [inputs]),
        arg_scope([conv2d, fully_connected], weights_initializer=TruncatedNormal(0.0, 0.01)),
        arg_scope([conv2d, max_pool2d], stride=1, padding="SAME"),
    ):
        net, found = _cells(inputs, _V1, lambda depth: depth, final_endpoint, end_points)
        if not found:
            raise _unknown(final_endpoint)
        return net, end_points


def inception_v2_base(
    inputs: Any,
    final_endpoint: str = "Mixed_5c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """(net, end points) up to `final_endpoint`; depths are multiplied, down to `min_depth`. Raises ValueError."""
    depth = _depth_of(depth_multiplier, min_depth)
    end_points: dict[str, Any] = {}
    with (
        variable_scope(scope, "InceptionV2", [inputs]),
        arg_scope([conv2d, max_pool2d, avg_pool2d, separable_conv2d], stride=1, padding="SAME"),
    ):
        name = "Conv2d_1a_7x7"
        net = separable_conv2d(
            inputs,
            depth(64),
            [7, 7],
            depth_multiplier=min(int(depth(64) / 3), 8),
            stride=2,
            weights_initializer=TruncatedNormal(0.0, 1.0),
            scope=name,
        )
        end_points[name] = net
        if name == final_endpoint:
            return net, end_points
        net, found = _cells(net, _V2, depth, final_endpoint, end_points)
        if not found:
            raise _unknown(final_endpoint)
        return net, end_points


def inception_v3_base(
    inputs: Any,
    final_endpoint: str = "Mixed_7c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """(net, end points) up to `final_endpoint`; depths are multiplied, down to `min_depth`. Raises ValueError."""
    depth = _depth_of(depth_multiplier, min_depth)
    end_points: dict[str, Any] = {}
    layers = [conv2d, max_pool2d, avg_pool2d]
    with variable_scope(scope, "InceptionV3", [inputs]):
        with arg_scope(layers, stride=1, padding="VALID"):
            net, found = _cells(inputs, _V3_FIRST, depth, final_endpoint, end_points)
        if not found:
            with arg_scope(layers, stride=1, padding="SAME"):
                net, found = _cells(net, _V3, depth, final_endpoint, end_points)
        if not found:
            raise _unknown(final_endpoint)
        return net, end_points


def _reduced(net: Any, size: list[int]) -> list[int]:
    """The window, no larger than the net where that is known."""
    shape = net.get_shape().as_list()
    return size if None in shape[1:3] else [min(shape[1], size[0]), min(shape[2], size[1])]


def _logits(net: Any, num_classes: int, squeeze: bool, scope: str, **given: Any) -> Any:
    logits = conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope=scope, **given)
    return array.squeeze(logits, [1, 2], name="SpatialSqueeze") if squeeze else logits


def inception_v1(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    prediction_fn: Any = softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV1",
) -> tuple[Any, dict[str, Any]]:
    """(logits, end points): images (batch, 224, 224, 3)."""
    with (
        variable_scope(scope, "InceptionV1", [inputs, num_classes], reuse=reuse) as inner,
        arg_scope([batch_norm, dropout], is_training=is_training),
    ):
        net, end_points = inception_v1_base(inputs, scope=inner)
        with variable_scope("Logits"):
            net = avg_pool2d(net, [7, 7], stride=1, scope="MaxPool_0a_7x7")
            net = dropout(net, dropout_keep_prob, scope="Dropout_0b")
            logits = _logits(net, num_classes, spatial_squeeze, "Conv2d_0c_1x1")
            end_points["Logits"] = logits
            end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points


def inception_v2(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Any = softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV2",
) -> tuple[Any, dict[str, Any]]:
    """(logits, end points): images (batch, 224, 224, 3), or smaller ones."""
    _depth_of(depth_multiplier, min_depth)
    with (
        variable_scope(scope, "InceptionV2", [inputs, num_classes], reuse=reuse) as inner,
        arg_scope([batch_norm, dropout], is_training=is_training),
    ):
        net, end_points = inception_v2_base(inputs, scope=inner, min_depth=min_depth, depth_multiplier=depth_multiplier)
        with variable_scope("Logits"):
            size = _reduced(net, [7, 7])
            net = avg_pool2d(net, size, padding="VALID", scope="AvgPool_1a_{}x{}".format(*size))
            net = dropout(net, keep_prob=dropout_keep_prob, scope="Dropout_1b")
            logits = _logits(net, num_classes, spatial_squeeze, "Conv2d_1c_1x1")
        end_points["Logits"] = logits
        end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points


def inception_v3(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Any = softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV3",
) -> tuple[Any, dict[str, Any]]:
    """(logits, end points): images (batch, 299, 299, 3), or smaller ones; `AuxLogits` are those of a side branch."""
    depth = _depth_of(depth_multiplier, min_depth)
    with (
        variable_scope(scope, "InceptionV3", [inputs, num_classes], reuse=reuse) as inner,
        arg_scope([batch_norm, dropout], is_training=is_training),
    ):
        net, end_points = inception_v3_base(inputs, scope=inner, min_depth=min_depth, depth_multiplier=depth_multiplier)
        with (
            arg_scope([conv2d, max_pool2d, avg_pool2d], stride=1, padding="SAME"),
            variable_scope("AuxLogits"),
        ):
            side = end_points["Mixed_6e"]
            side = avg_pool2d(side, [5, 5], stride=3, padding="VALID", scope="AvgPool_1a_5x5")
            side = conv2d(side, depth(128), [1, 1], scope="Conv2d_1b_1x1")
            size = _reduced(side, [5, 5])
            side = conv2d(
                side,
                depth(768),
                size,
                weights_initializer=TruncatedNormal(0.0, 0.01),
                padding="VALID",
                scope="Conv2d_2a_{}x{}".format(*size),
            )
            end_points["AuxLogits"] = _logits(
                side,
                num_classes,
                spatial_squeeze,
                "Conv2d_2b_1x1",
                weights_initializer=TruncatedNormal(0.0, 0.001),
            )
        with variable_scope("Logits"):
            size = _reduced(net, [8, 8])
            net = avg_pool2d(net, size, padding="VALID", scope="AvgPool_1a_{}x{}".format(*size))
            net = dropout(net, keep_prob=dropout_keep_prob, scope="Dropout_1b")
            end_points["PreLogits"] = net
            logits = _logits(net, num_classes, spatial_squeeze, "Conv2d_1c_1x1")
        end_points["Logits"] = logits
        end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points


inception_v1.default_image_size = 224  # type: ignore[attr-defined]
inception_v2.default_image_size = 224  # type: ignore[attr-defined]
inception_v3.default_image_size = 299  # type: ignore[attr-defined]


def _arg_scope(weight_decay: float, normalizer_fn: Any, norm: dict[str, Any]) -> Any:
    with (
        arg_scope([conv2d, fully_connected], weights_regularizer=l2_regularizer(weight_decay)),
        arg_scope(
            [conv2d],
            weights_initializer=variance_scaling_initializer(),
            activation_fn=nn.relu,
            normalizer_fn=normalizer_fn,
            normalizer_params=norm,
        ) as scope,
    ):
        return scope


def _norm(collection: str, **changed: Any) -> dict[str, Any]:
    kept = {"beta": None, "gamma": None, "moving_mean": [collection], "moving_variance": [collection]}
    given: dict[str, Any] = {"decay": 0.9997, "epsilon": 0.001, "updates_collections": GraphKeys.UPDATE_OPS}
    return {**given, "variables_collections": kept, **changed}


def inception_v1_arg_scope(
    weight_decay: float = 0.00004, use_batch_norm: bool = True, batch_norm_var_collection: str = "moving_vars"
) -> Any:
    """The argument scope of Inception's layers."""
    if not use_batch_norm:
        return _arg_scope(weight_decay, None, {})
    return _arg_scope(weight_decay, batch_norm, _norm(batch_norm_var_collection))


def inception_v2_arg_scope(weight_decay: float = 0.00004, batch_norm_var_collection: str = "moving_vars") -> Any:
    """The argument scope of Inception's layers."""
    return _arg_scope(weight_decay, batch_norm, _norm(batch_norm_var_collection))


def inception_v3_arg_scope(
    weight_decay: float = 0.00004,
    batch_norm_var_collection: str = "moving_vars",
    batch_norm_decay: float = 0.9997,
    batch_norm_epsilon: float = 0.001,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    use_fused_batchnorm: bool = True,
) -> Any:
    """The argument scope of Inception's layers."""
    changed = {"decay": batch_norm_decay, "epsilon": batch_norm_epsilon, "updates_collections": updates_collections}
    norm = _norm(batch_norm_var_collection, fused=use_fused_batchnorm, **changed)
    return _arg_scope(weight_decay, batch_norm, norm)
