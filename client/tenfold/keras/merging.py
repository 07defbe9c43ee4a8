"""Layers that make one tensor of several: sums, products, averages, extremes, and one after the other.

Follows TensorFlow 1.15's keras/layers/merge.py.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from tenfold.keras.base_layer import Layer
from tenfold.ops import array, math

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor

__all__ = ["Add", "Average", "Concatenate", "Maximum", "Minimum", "Multiply", "Subtract", "add", "concatenate"]


class _Merge(Layer):
    """Of two tensors or more, otherwise raises ValueError; those of fewer dimensions get some behind the batch."""

    same_ranks = True

    def call(self, inputs: Any) -> Any:
        if not isinstance(inputs, (list, tuple)) or len(inputs) < 2:
            raise ValueError(f"A merge layer should be called on a list of at least 2 inputs. Got {inputs}")
        ranks = [each.shape.ndims for each in inputs]
        if self.same_ranks and None not in ranks:
            inputs = [_of_rank(each, max(ranks)) for each in inputs]
        return self.merged(list(inputs))

    def merged(self, inputs: list[Any]) -> Any:
        """The one tensor."""
        raise NotImplementedError


def _of_rank(tensor: Any, rank: int) -> Any:
    for _ in range(rank - (tensor.shape.ndims or 0)):
        tensor = array.expand_dims(tensor, 1)
    return tensor


class Add(_Merge):
    """Their sum."""

    def merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(math.add, inputs)


class Subtract(_Merge):
    """The first less the second. Raises ValueError for more."""

    def merged(self, inputs: list[Any]) -> Any:
        if len(inputs) != 2:
            raise ValueError("A `Subtract` layer should be called on exactly 2 inputs")
        return inputs[0] - inputs[1]


class Multiply(_Merge):
    """Their product."""

    def merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(math.multiply, inputs)


class Average(_Merge):
    """Their mean."""

    def merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(math.add, inputs) / len(inputs)


class Maximum(_Merge):
    """The largest of their elements."""

    def merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(math.maximum, inputs)


class Minimum(_Merge):
    """The smallest of their elements."""

    def merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(math.minimum, inputs)


class Concatenate(_Merge):
    """One after the other along `axis`."""

    same_ranks = False

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def merged(self, inputs: list[Any]) -> Any:
        return array.concat(inputs, self.axis)


def add(inputs: Any, **kwargs: Any) -> Tensor:
    """The sum of tensors."""
    result: Tensor = Add(**kwargs)(inputs)
    return result


def concatenate(inputs: Any, axis: int = -1, **kwargs: Any) -> Tensor:
    """Tensors one after the other along `axis`."""
    result: Tensor = Concatenate(axis, **kwargs)(inputs)
    return result
