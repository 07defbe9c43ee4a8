"""Gradients of blocks of space, mirrored borders and patches: sizes, paddings and rates differ in each direction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op

RNG = np.random.default_rng(53)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


PATCHES = {"ksizes": [1, 2, 3, 1], "strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1]}
VOLUMES = {"ksizes": [1, 2, 1, 3, 1], "strides": [1, 1, 2, 2, 1]}
RULES: dict[str, tuple[Any, list[np.ndarray]]] = {
    "BatchToSpaceND": (
        lambda x: apply_op("BatchToSpaceND", input=x, block_shape=[2, 3], crops=[[1, 0], [0, 2]]), [normal(6, 2, 3, 2)],
    ),
    "SpaceToBatchND": (
        lambda x: apply_op("SpaceToBatchND", input=x, block_shape=[2, 3], paddings=[[1, 0], [0, 2]]),
        [normal(2, 3, 4, 2)],
    ),
    "BatchToSpace": (
        lambda x: apply_op("BatchToSpace", input=x, crops=[[1, 0], [0, 1]], block_size=2), [normal(4, 2, 3, 2)],
    ),
    "SpaceToBatch": (
        lambda x: apply_op("SpaceToBatch", input=x, paddings=[[1, 0], [0, 3]], block_size=3), [normal(2, 2, 3, 2)],
    ),
    "SpaceToDepth": (lambda x: apply_op("SpaceToDepth", input=x, block_size=3), [normal(2, 3, 6, 2)]),
    "DepthToSpace": (lambda x: apply_op("DepthToSpace", input=x, block_size=2), [normal(2, 3, 2, 8)]),
    "MirrorPad reflect": (
        lambda x: apply_op("MirrorPad", input=x, paddings=[[1, 2], [0, 3]], mode="REFLECT"), [normal(3, 4)],
    ),
    "MirrorPad symmetric": (
        lambda x: apply_op("MirrorPad", input=x, paddings=[[3, 1], [2, 0]], mode="SYMMETRIC"), [normal(3, 4)],
    ),
    "MirrorPadGrad reflect": (
        lambda x: apply_op("MirrorPadGrad", input=x, paddings=[[1, 2], [0, 3]], mode="REFLECT"), [normal(6, 7)],
    ),
    "MirrorPadGrad symmetric": (
        lambda x: apply_op("MirrorPadGrad", input=x, paddings=[[3, 1], [2, 0]], mode="SYMMETRIC"), [normal(7, 6)],
    ),
    "ExtractImagePatches valid": (
        lambda x: apply_op("ExtractImagePatches", images=x, padding="VALID", **PATCHES), [normal(2, 4, 6, 3)],
    ),
    "ExtractImagePatches same": (
        lambda x: apply_op("ExtractImagePatches", images=x, padding="SAME", **PATCHES), [normal(2, 4, 6, 3)],
    ),
    "ExtractVolumePatches valid": (
        lambda x: apply_op("ExtractVolumePatches", input=x, padding="VALID", **VOLUMES), [normal(1, 3, 4, 5, 2)],
    ),
    "ExtractVolumePatches same": (
        lambda x: apply_op("ExtractVolumePatches", input=x, padding="SAME", **VOLUMES), [normal(2, 3, 4, 5, 1)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_rule(name: str) -> None:
    build, inputs = RULES[name]
    assert directional_error(build, inputs) < 1e-6


@pytest.mark.parametrize("op", ["SpaceToDepth", "DepthToSpace"])
def test_channels_first(op: str) -> None:
    """Without a kernel for it on the CPU: the gradient's op is told the same layout."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 4, 2, 6])
        tf.gradients(apply_op(op, input=x, block_size=2, data_format="NCHW"), x)
        other = {"SpaceToDepth": "DepthToSpace", "DepthToSpace": "SpaceToDepth"}[op]
        (back,) = [each for each in graph.get_operations() if each.type == other]
        assert back.get_attr("data_format") == b"NCHW"


@pytest.mark.parametrize(
    ("op", "more", "rank"), [("ExtractImagePatches", PATCHES, 4), ("ExtractVolumePatches", VOLUMES, 5)]
)
def test_patches_of_unknown_channels(op: str, more: dict[str, Any], rank: int) -> None:
    name, shape = ("images", (1, 5, 4, 3)) if rank == 4 else ("input", (1, 5, 4, 3, 2))

    def build(x: Any) -> Any:
        return apply_op(op, **{name: x}, padding="SAME", **more)

    assert directional_error(build, [np.random.default_rng(3).standard_normal(shape)], static_shapes=False) < 1e-6


def test_patches_of_an_unknown_rank() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        image = tf.placeholder(tf.float32)
        patches = tf.raw_ops.ExtractImagePatches(images=image, padding="VALID", **PATCHES)
        (gradient,) = tf.gradients(patches, image)

        # rows 0 to 1 and 2 to 3, columns 0, 2 and 4 and then 1, 3 and 5: each element lies in one window
        assert (session.run(gradient, {image: np.ones((1, 4, 6, 1))}) == 1).all()


def test_the_picks_of_known_channels_are_a_constant() -> None:
    with tf.Graph().as_default() as graph:
        image = tf.placeholder(tf.float32, [None, None, None, 3])
        tf.gradients(tf.raw_ops.ExtractImagePatches(images=image, padding="VALID", **PATCHES), image)
        (back,) = [op for op in graph.get_operations() if op.type == "Conv2DBackpropInput"]

        assert back.inputs[1].op.type == "Const"
        assert back.inputs[1].shape.as_list() == [2, 3, 3, 18]
