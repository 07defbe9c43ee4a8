"""Generalized divisive normalization: each channel divided by the root of a weighted sum of all channels' squares.

Follows TensorFlow 1.15's contrib/layers/python/layers/layers.py, with its parameters, kept as roots of what they are.
"""

from __future__ import annotations

from typing import Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.layers.base import InputSpec, Layer
from tenfold.ops import array, linalg, math, nn_conv
from tenfold.ops.custom_gradient import custom_gradient
from tenfold_core.tensor_shape import TensorShape, as_shape


class GDN(Layer):
    """y[i] = x[i] / sqrt(beta[i] + sum over j of gamma[j, i] · x[j]²); `inverse` multiplies instead.

    Inputs of rank 3 to 5. `beta_min` bounds beta from below, `gamma_init` is gamma's diagonal at the start.
    Raises ValueError for another `data_format` and an unknown number of channels.
    """

    def __init__(
        self,
        inverse: bool = False,
        beta_min: float = 1e-6,
        gamma_init: float = 0.1,
        reparam_offset: float = 2**-18,
        data_format: str = "channels_last",
        activity_regularizer: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=trainable, name=name, activity_regularizer=activity_regularizer, **kwargs)
        self.inverse = inverse
        self._beta_min = beta_min
        self._gamma_init = gamma_init
        self._reparam_offset = reparam_offset
        if data_format not in ("channels_first", "channels_last"):
            raise ValueError(f"Unsupported `data_format` for GDN layer: {data_format}.")
        self.data_format = data_format
        self.input_spec = InputSpec(min_ndim=3, max_ndim=5)

    @property
    def _axis(self) -> int:
        return 1 if self.data_format == "channels_first" else -1

    def build(self, input_shape: Any) -> None:
        """Makes beta and gamma."""
        shape = as_shape(input_shape)
        channels = shape.as_list()[self._axis]
        if channels is None:
            raise ValueError("The channel dimension of the inputs to `GDN` must be defined.")
        self._rank = shape.ndims or 0
        self.input_spec = InputSpec(ndim=self._rank, axes={self._axis: channels})
        offset = self._reparam_offset
        pedestal = array.constant(offset**2, dtype=self._dtype)

        def root_of(value: Any) -> Any:
            return math.sqrt(value + array.constant(offset**2, dtype=value.dtype))

        beta = self.add_weight(
            "reparam_beta",
            [channels],
            initializer=lambda shape, dtype=None, partition_info=None: root_of(array.ones(shape, dtype=dtype)),
            trainable=True,
        )
        gamma = self.add_weight(
            "reparam_gamma",
            [channels, channels],
            initializer=lambda shape, dtype=None, partition_info=None: root_of(
                self._gamma_init * linalg.eye(shape[0], dtype=dtype)
            ),
            trainable=True,
        )
        self.beta = math.square(_lower_bound(beta, (self._beta_min + offset**2) ** 0.5)) - pedestal
        self.gamma = math.square(_lower_bound(gamma, offset)) - pedestal
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The normalized inputs."""
        spatial = self._rank - 2
        gamma = array.reshape(self.gamma, [1] * spatial + self.gamma.get_shape().as_list())
        first = self.data_format == "channels_first"
        layout = {"data_format": "NC" + "DHW"[-spatial:]} if first else {}
        pooled = nn_conv.convolution(math.square(inputs), gamma, "VALID", **layout)
        beta = array.reshape(self.beta, [-1] + [1] * spatial) if first else self.beta
        root = math.sqrt(pooled + beta)
        outputs = inputs * root if self.inverse else inputs / root
        outputs.set_shape(inputs.get_shape())
        return outputs

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The same shape."""
        return as_shape(input_shape)


def _lower_bound(inputs: Any, bound: float) -> Any:
    """max(inputs, bound); where it is the bound, a gradient that would raise the input passes still."""

    @custom_gradient
    def bounded(x: Any) -> Any:
        low = array.constant(bound, dtype=x.dtype.base_dtype)

        def gradient(upstream: Any) -> Any:
            passes = math.logical_or(math.greater_equal(x, low), math.less(upstream, 0))
            return math.cast(passes, upstream.dtype) * upstream

        return math.maximum(x, low), gradient

    with name_scope("GDNLowerBound"):
        return bounded(convert_to_tensor(inputs))


def gdn(
    inputs: Any,
    inverse: bool = False,
    beta_min: float = 1e-6,
    gamma_init: float = 0.1,
    reparam_offset: float = 2**-18,
    data_format: str = "channels_last",
    activity_regularizer: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Any:
    """The layer `GDN`, as a function."""
    layer = GDN(
        inverse=inverse,
        beta_min=beta_min,
        gamma_init=gamma_init,
        reparam_offset=reparam_offset,
        data_format=data_format,
        activity_regularizer=activity_regularizer,
        trainable=trainable,
        name=name,
        dtype=inputs.dtype.base_dtype,
        _scope=name,
        _reuse=reuse,
    )
    return layer(inputs)
