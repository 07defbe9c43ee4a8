"""What the functions of `tf.image` ask of an image's shape: at once where it is known, else by assertions of the step.

Follows TensorFlow 1.15's ops/image_ops_impl.py, with its words.
"""

from __future__ import annotations

from typing import Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.tensor import Tensor
from tenfold.ops import array, math
from tenfold.ops.check_ops import assert_equal, assert_greater_equal, assert_positive
from tenfold.ops.control_flow import Assert
from tenfold.ops.control_flow_primitives import with_dependencies
from tenfold.ops.slicing import unstack

_RANKS = "'image' must have either 3 or 4 dimensions."


def checks_of(*conditions: tuple[Any, str]) -> list[Any]:
    """An assertion for each condition that is a tensor. Raises ValueError with the words of one that is false."""
    checks = []
    for condition, words in conditions:
        if isinstance(condition, Tensor):
            checks.append(Assert(condition, [words]))
        elif not condition:
            raise ValueError(words)
    return checks


def required(conditions: list[tuple[Any, str]], value: Any) -> Any:
    """`value`; where a condition is a tensor, available only if it holds in the step.

    Raises ValueError with the condition's words if it is known to be false.
    """
    checks = checks_of(*conditions)
    return with_dependencies(checks, value) if checks else value


def rank_checks(image: Tensor, unknown_rank: int = 3) -> list[Any]:
    """Assertions that an image has at least three dimensions and something in it; none where that is known.

    Raises ValueError where it is known not to. An image of unknown rank is taken for one of `unknown_rank`.
    """
    shape = image.shape
    if shape.ndims is not None and shape.ndims < 3:
        raise ValueError("'image' must be at least three-dimensional.")
    if shape.ndims is None:
        shape = shape.with_rank(unknown_rank)
    if 0 in shape.as_list():
        raise ValueError(f"all dims of 'image.shape' must be > 0: {shape}")
    if shape.is_fully_defined():
        return []
    return [
        assert_positive(array.shape(image), ["all dims of 'image.shape' must be > 0."]),
        assert_greater_equal(array.rank(image), 3, message="'image' must be at least three-dimensional."),
    ]


def at_least_3d(image: Any) -> Tensor:
    """The image, available once it is known to have three dimensions or more and something in it."""
    image = convert_to_tensor(image, name="image")
    checks = rank_checks(image)
    result: Tensor = with_dependencies(checks, image) if checks else image
    return result


def grey(images: Tensor) -> Tensor:
    """Images whose last dimension is 1. Raises ValueError where it is known not to be."""
    shape = images.shape
    if shape.ndims is not None and shape.ndims < 2:
        raise ValueError("A grayscale image must be at least two-dimensional.")
    if shape.is_fully_defined():
        if shape.as_list()[-1] != 1:
            raise ValueError("Last dimension of a grayscale image should be size 1.")
        return images
    checks = [
        assert_equal(array.shape(images)[-1], 1, message="Last dimension of a grayscale image should be size 1."),
        assert_greater_equal(array.rank(images), 3, message="A grayscale image must be at least two-dimensional."),
    ]
    result: Tensor = with_dependencies(checks, images)
    return result


def is_batch(image: Tensor) -> bool:
    """Whether it has four dimensions; one of unknown rank is taken for a single image. Raises ValueError for others."""
    if image.shape.ndims not in (None, 3, 4):
        raise ValueError(_RANKS)
    return image.shape.ndims == 4


def batched(image: Any) -> tuple[Tensor, bool]:
    """(images of rank 4, whether there was only one). Raises ValueError for another rank than 3 or 4."""
    image = convert_to_tensor(image, name="image")
    if is_batch(image):
        return image, False
    batch = array.expand_dims(image, 0)
    if image.shape.ndims is None:
        batch.set_shape([None] * 4)
    return batch, True


def dimensions(image: Tensor, rank: int) -> list[Any]:
    """The sizes: numbers where they are known, else scalar tensors."""
    if image.shape.is_fully_defined():
        return list(image.shape.as_list())
    static = image.shape.with_rank(rank).as_list()
    dynamic = unstack(array.shape(image), rank)
    return [size if known is None else known for known, size in zip(static, dynamic, strict=True)]


def known(*sizes: Any) -> list[Any]:
    """The sizes, None for those that are tensors."""
    return [None if isinstance(size, Tensor) else size for size in sizes]


def largest(x: Any, y: Any) -> Any:
    """max, of numbers or of tensors."""
    return math.maximum(x, y) if isinstance(x, Tensor) or isinstance(y, Tensor) else max(x, y)


def smallest(x: Any, y: Any) -> Any:
    """min, of numbers or of tensors."""
    return math.minimum(x, y) if isinstance(x, Tensor) or isinstance(y, Tensor) else min(x, y)
