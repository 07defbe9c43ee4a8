"""Layers that pool windows, in one to three dimensions, and their functions. They have no variables.

Follows TensorFlow 1.15's keras/layers/pooling.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.layers.base import InputSpec, Layer
from tenfold.layers.convolutional import _length, format_of, op_format, padding_of, tuple_of
from tenfold.named import named
from tenfold.ops import array, nn_pool
from tenfold_core.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


class _Pooling(Layer):
    """Base of the pooling layers; a subclass sets the number of dimensions and the function."""

    rank = 2
    pool: Any = None

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        if strides is None:
            raise ValueError("Argument `strides` must not be None.")
        super().__init__(name=name, **kwargs)
        self.pool_size = tuple_of(pool_size, self.rank, "pool_size")
        self.strides = tuple_of(strides, self.rank, "strides")
        self.padding = padding_of(padding)
        self.data_format = format_of(data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Any) -> Tensor:
        """The pooled windows."""
        windows, steps = list(self.pool_size), list(self.strides)
        padding = self.padding.upper()
        if self.rank == 1:
            # Two-dimensional pooling with a dimension of size 1, as in TensorFlow's layer.
            axis = 2 if self.data_format == "channels_last" else 3
            flat = array.expand_dims(inputs, axis)
            layout = op_format(self.data_format, 2)
            return array.squeeze(type(self).pool(flat, [*windows, 1], [*steps, 1], padding, layout), [axis])
        pool = type(self).pool
        if self.rank == 3 and self.data_format == "channels_first":
            # As in TensorFlow, whose nodes these are.
            last = array.transpose(inputs, [0, 2, 3, 4, 1])
            return array.transpose(pool(last, windows, steps, padding), [0, 4, 1, 2, 3])
        result: Tensor = pool(inputs, windows, steps, padding, op_format(self.data_format, self.rank))
        return result

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The static shape of the output."""
        sizes = as_shape(input_shape).as_list()
        first = self.data_format == "channels_first"
        spatial = sizes[2:] if first else sizes[1:-1]
        out = [
            _length(size, window, self.padding, stride, 1)
            for size, window, stride in zip(spatial, self.pool_size, self.strides, strict=True)
        ]
        return TensorShape([sizes[0], sizes[1], *out] if first else [sizes[0], *out, sizes[-1]])


class MaxPooling1D(_Pooling):
    """The largest element of each window of (batch, time, channels)."""

    rank = 1
    pool = staticmethod(nn_pool.max_pool)


class MaxPooling2D(_Pooling):
    """The largest element of each window of (batch, height, width, channels)."""

    pool = staticmethod(nn_pool.max_pool)


class MaxPooling3D(_Pooling):
    """The largest element of each window of (batch, depth, height, width, channels)."""

    rank = 3
    pool = staticmethod(nn_pool.max_pool3d)


class AveragePooling1D(_Pooling):
    """The mean of each window of (batch, time, channels)."""

    rank = 1
    pool = staticmethod(nn_pool.avg_pool)


class AveragePooling2D(_Pooling):
    """The mean of each window of (batch, height, width, channels)."""

    pool = staticmethod(nn_pool.avg_pool)


class AveragePooling3D(_Pooling):
    """The mean of each window of (batch, depth, height, width, channels)."""

    rank = 3
    pool = staticmethod(nn_pool.avg_pool3d)


def _function(layer_class: type[_Pooling], name: str) -> Any:
    def function(
        inputs: Any,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
    ) -> Any:
        return layer_class(pool_size, strides, padding, data_format, name=name)(inputs)

    return named(function, name, layer_class.__doc__)


max_pooling1d = _function(MaxPooling1D, "max_pooling1d")
max_pooling2d = _function(MaxPooling2D, "max_pooling2d")
max_pooling3d = _function(MaxPooling3D, "max_pooling3d")
average_pooling1d = _function(AveragePooling1D, "average_pooling1d")
average_pooling2d = _function(AveragePooling2D, "average_pooling2d")
average_pooling3d = _function(AveragePooling3D, "average_pooling3d")
