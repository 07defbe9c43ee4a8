"""Images (`tf.image`): flips, rotations, transposition. An image is (height, width, channels), or a batch of these.

Follows TensorFlow 1.15's ops/image_ops_impl.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, math, slicing
from tenfold.ops.control_flow_case import case
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.image_checks import at_least_3d, is_batch
from tenfold.ops.random import random_uniform
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.tensor import Tensor


def _like(image: Tensor, result: Tensor) -> Tensor:
    """`result` with the image's shape; of an unknown one it is known to be an image."""
    result.set_shape([None] * 3 if image.shape.ndims is None else image.shape)
    return result


def _flip(image: Any, axis: int, scope: str) -> Tensor:
    with name_scope(None, scope, [image]):
        image = at_least_3d(image)
        if is_batch(image):
            return slicing.reverse(image, [axis + 1])
        return _like(image, slicing.reverse(image, [axis]))


def flip_left_right(image: Any) -> Tensor:
    """Mirrored: left becomes right. Raises ValueError for another rank than 3 or 4."""
    return _flip(image, 1, "flip_left_right")


def flip_up_down(image: Any) -> Tensor:
    """Mirrored: up becomes down. Raises ValueError for another rank than 3 or 4."""
    return _flip(image, 0, "flip_up_down")


def _random_flip(image: Any, axis: int, seed: int | None, name: str) -> Tensor:
    with name_scope(None, name, [image]) as scope:
        image = at_least_3d(image)
        if not is_batch(image):
            turn = math.less(random_uniform([], 0, 1.0, seed=seed), 0.5)
            flipped: Tensor = cond(turn, lambda: slicing.reverse(image, [axis]), lambda: image, name=scope)
            return _like(image, flipped)
        count = array.shape(image)[0]
        drawn = random_uniform([count], 0, 1.0, seed=seed)
        flips = math.cast(math.round(array.reshape(drawn, [count, 1, 1, 1])), image.dtype)
        result: Tensor = flips * slicing.reverse(image, [axis + 1]) + (1 - flips) * image
        return result


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """Mirrored left and right, or not, with equal probability; each image of a batch independently."""
    return _random_flip(image, 1, seed, "random_flip_left_right")


def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """Mirrored up and down, or not, with equal probability; each image of a batch independently."""
    return _random_flip(image, 0, seed, "random_flip_up_down")


def transpose_image(image: Any, name: str | None = None) -> Tensor:
    """Height and width exchanged. Raises ValueError for another rank than 3 or 4."""
    with name_scope(name, "transpose", [image]):
        image = at_least_3d(image)
        return array.transpose(image, [0, 2, 1, 3] if is_batch(image) else [1, 0, 2], name=name or "transpose")


transpose = transpose_image


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """Rotated counter-clockwise by k times 90 degrees; k is a scalar int32, known now or in the step.

    Raises ValueError for another rank than 3 or 4, and for a k that is not a scalar.
    """
    with name_scope(name, "rot90", [image, k]) as scope:
        image = at_least_3d(image)
        k = convert_to_tensor(k, dtype=dtypes.int32, name="k")
        k.shape.assert_has_rank(0)
        k = math.floormod(k, 4)
        batch = is_batch(image)
        first, second = (1, 2) if batch else (0, 1)
        swapped = [0, 2, 1, 3] if batch else [1, 0, 2]
        turns: list[tuple[Any, Callable[[], Tensor]]] = [
            (math.equal(k, 1), lambda: array.transpose(slicing.reverse(image, [second]), swapped)),
            (math.equal(k, 2), lambda: slicing.reverse(image, [first, second])),
            (math.equal(k, 3), lambda: slicing.reverse(array.transpose(image, swapped), [second])),
        ]
        turned: Tensor = case(turns, default=lambda: image, exclusive=True, name=scope)
        shape = image.shape.with_rank(4 if batch else 3).as_list()
        turned.set_shape([shape[0], None, None, shape[3]] if batch else [None, None, shape[2]])
        return turned
