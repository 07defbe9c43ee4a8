"""contrib's normalizers: over the batch, the layer, an instance, groups of channels; unit_norm.

`batch_norm` has three ways, as in TensorFlow: the layer of `tf.layers`; the fused operation, where the updates are not
left to UPDATE_OPS or the average is corrected for its start; and plain operations, for weights of the examples.
Follows TensorFlow 1.15's contrib/layers/python/layers/layers.py and normalization.py.
"""

from __future__ import annotations

from typing import Any

from tenfold.contrib.arg_scope import add_arg_scope
from tenfold.contrib.framework.variables import model_variable
from tenfold.contrib.layers.utils import (
    DATA_FORMATS_2D,
    add_variable_to_collections,
    collect_named_outputs,
    constant_value,
    get_variable_collections,
    layers_format,
    model_variables,
    smart_cond,
)
from tenfold.graph.collections import GraphKeys
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import add_to_collections, control_dependencies
from tenfold.layers.normalization import BatchNormalization
from tenfold.ops import array, init_ops, math, nn_norm
from tenfold.ops.reductions import reduce_sum
from tenfold.ops.variable_scope import get_variable_scope, variable_scope
from tenfold.train.moving_averages import assign_moving_average
from tenfold_core import dtypes

_PARAMETERS = ("beta", "gamma", "moving_mean", "moving_variance")
_STARTS: dict[str, Any] = {
    "beta": init_ops.Zeros,
    "gamma": init_ops.Ones,
    "moving_mean": init_ops.Zeros,
    "moving_variance": init_ops.Ones,
}


class _Parameters:
    """Makes the variables of a normalizer: shape, type and what the caller gave for each name."""

    def __init__(
        self, shape: Any, dtype: Any, collections: Any, trainable: bool, initializers: Any, regularizers: Any = None
    ) -> None:
        self._shape, self._dtype, self._collections, self._trainable = shape, dtype, collections, trainable
        self._initializers, self._regularizers = initializers or {}, regularizers or {}

    def __call__(self, name: str, *, trained: bool = True) -> Any:
        start = self._initializers.get(name)
        return model_variable(
            name,
            shape=self._shape,
            dtype=self._dtype,
            initializer=_STARTS[name]() if start is None else start,
            regularizer=self._regularizers.get(name),
            collections=get_variable_collections(self._collections, name),
            trainable=trained and self._trainable,
        )

    def averages(self) -> tuple[Any, Any]:
        """The moving mean and variance, which are never partitioned."""
        with variable_scope(get_variable_scope()) as local:
            local.set_partitioner(None)
            return self("moving_mean", trained=False), self("moving_variance", trained=False)


def _channels(shape: Any, name: str, first: bool) -> Any:
    channels = shape[1:2] if first else shape[-1:]
    if not channels.is_fully_defined():
        raise ValueError(f"Inputs {name} has undefined channels dimension {channels}.")
    return channels


@add_arg_scope
def batch_norm(
    inputs: Any,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Any = None,
    param_initializers: Any = None,
    param_regularizers: Any = None,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    is_training: Any = True,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    batch_weights: Any = None,
    fused: bool | None = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_decay: float = 0.99,
    adjustment: Any = None,
) -> Any:
    """Normalizes each channel over the batch: activation_fn((x - mean) / sqrt(variance + epsilon) * gamma + beta).

    In training (`is_training`, a bool or a scalar bool tensor) mean and variance are the batch's, weighted by
    `batch_weights` (batch,), and go into moving averages with `decay`; else they are the averages. The updates are in
    `updates_collections`, or the output depends on them if that is None.
    Raises ValueError for an unknown rank or number of channels, and for `renorm` with what it excludes.
    """
    inputs = convert_to_tensor(inputs)
    rank = inputs.get_shape().ndims
    plain = batch_weights is None and not renorm and adjustment is None and rank in (2, 4)
    of_layer = updates_collections == GraphKeys.UPDATE_OPS and not zero_debias_moving_mean
    first = layers_format(data_format, DATA_FORMATS_2D) == "channels_first"
    common = {
        "decay": decay, "center": center, "scale": scale, "epsilon": epsilon, "is_training": is_training,
        "updates_collections": updates_collections, "zero_debias": zero_debias_moving_mean, "first": first,
    }  # fmt: skip
    if fused is not False and plain and (rank == 2 or not of_layer):
        with variable_scope(scope, "BatchNorm", [inputs], reuse=reuse) as inner:
            params = (variables_collections, trainable, param_initializers, param_regularizers)
            outputs = _fused(inputs, params, data_format=data_format, **common)
            outputs = outputs if activation_fn is None else activation_fn(outputs)
            return collect_named_outputs(outputs_collections, inner.name, outputs)
    with variable_scope(scope, "BatchNorm", [inputs], reuse=reuse, custom_getter=model_variables()) as inner:
        if batch_weights is None and of_layer:
            given = {f"{name}_initializer": (param_initializers or {}).get(name) for name in _PARAMETERS}
            given |= {f"{name}_regularizer": (param_regularizers or {}).get(name) for name in ("beta", "gamma")}
            layer = BatchNormalization(
                axis=1 if first else -1,
                momentum=decay,
                epsilon=epsilon,
                center=center,
                scale=scale,
                trainable=trainable,
                renorm=renorm,
                renorm_clipping=renorm_clipping,
                renorm_momentum=renorm_decay,
                adjustment=adjustment,
                fused=fused,
                name=inner.name,
                _scope=inner,
                _reuse=reuse,
                **{name: value for name, value in given.items() if value is not None},
            )
            outputs = layer(inputs, training=is_training)
            for name in ("moving_mean", "moving_variance", "beta", "gamma"):
                if getattr(layer, name) is not None:
                    add_variable_to_collections(getattr(layer, name), variables_collections, name)
        else:
            if renorm:
                raise ValueError(
                    "renorm is not supported with batch_weights, updates_collections or zero_debias_moving_mean"
                )
            # As in TensorFlow, what weighs examples takes no regularizers.
            given_params = (variables_collections, trainable, param_initializers)
            outputs = _weighted(inputs, batch_weights, given_params, **common)
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        return collect_named_outputs(outputs_collections, inner.name, outputs)


def _updates(averages: tuple[Any, Any], mean: Any, variance: Any, decay: Any, zero_debias: bool) -> tuple[Any, Any]:
    moving_mean, moving_variance = averages
    return (
        assign_moving_average(moving_mean, mean, decay, zero_debias=zero_debias),
        assign_moving_average(moving_variance, variance, decay, zero_debias=False),
    )


def _fused(
    inputs: Any,
    params: tuple[Any, ...],
    decay: Any,
    center: bool,
    scale: bool,
    epsilon: float,
    is_training: Any,
    updates_collections: Any,
    zero_debias: bool,
    first: bool,
    data_format: str,
) -> Any:
    """The fused operation, on inputs of rank 2 as on images of one pixel."""
    original, shape = inputs, inputs.get_shape()
    if shape.ndims == 2:
        channels = shape.dims[-1].value
        if channels is None:
            raise ValueError("`C` dimension must be known but is None")
        inputs = array.reshape(inputs, [-1, channels, 1, 1] if first else [-1, 1, 1, channels])
    sizes = inputs.get_shape()[1:2] if first else inputs.get_shape()[-1:]
    if not sizes.is_fully_defined():
        raise ValueError(f"Inputs {inputs.name} has undefined `C` dimension {sizes}.")
    made = _Parameters(sizes, dtypes.float32, *params)
    beta = made("beta") if center else array.constant(0.0, dtypes.float32, sizes)
    gamma = made("gamma") if scale else array.constant(1.0, dtypes.float32, sizes)
    averages = made.averages()

    def of_batch() -> Any:
        return nn_norm.fused_batch_norm(inputs, gamma, beta, epsilon=epsilon, data_format=data_format)

    def of_averages() -> Any:
        return nn_norm.fused_batch_norm(
            inputs, gamma, beta, mean=averages[0], variance=averages[1], epsilon=epsilon, is_training=False,
            data_format=data_format,
        )  # fmt: skip

    outputs, mean, variance = smart_cond(is_training, of_batch, of_averages)
    if constant_value(is_training) in (None, True):
        if updates_collections is None:

            def forced() -> Any:
                with control_dependencies(_updates(averages, mean, variance, decay, zero_debias)):
                    return array.identity(outputs)

            outputs = smart_cond(is_training, forced, lambda: outputs)
        else:
            for update in smart_cond(
                is_training, lambda: _updates(averages, mean, variance, decay, zero_debias), lambda: averages
            ):
                add_to_collections(updates_collections, update)
    outputs.set_shape(inputs.get_shape())
    return array.reshape(outputs, array.shape(original)) if shape.ndims == 2 else outputs


def _weighted(
    inputs: Any,
    batch_weights: Any,
    params: tuple[Any, ...],
    decay: Any,
    center: bool,
    scale: bool,
    epsilon: float,
    is_training: Any,
    updates_collections: Any,
    zero_debias: bool,
    first: bool,
) -> Any:
    """Plain operations; the moments may be weighted by example."""
    shape = inputs.get_shape()
    rank = shape.ndims
    if rank is None:
        raise ValueError(f"Inputs {inputs.name} has undefined rank.")
    if batch_weights is not None:
        batch_weights = convert_to_tensor(batch_weights)
        shape[0:1].assert_is_compatible_with(batch_weights.get_shape())
        batch_weights = array.reshape(batch_weights, [-1] + [1] * (rank - 1))
    made = _Parameters(_channels(shape, inputs.name, first), inputs.dtype.base_dtype, *params)
    beta, gamma = made("beta") if center else None, made("gamma") if scale else None
    averages = made.averages()
    mean, variance = averages
    if constant_value(is_training) in (None, True):
        axes = [0, *range(2, rank)] if first else list(range(rank - 1))
        if batch_weights is None:
            mean, variance = nn_norm.moments(inputs, axes, keep_dims=first)
        else:
            mean, variance = nn_norm.weighted_moments(inputs, axes, batch_weights, keep_dims=first)
        if first:
            mean, variance = array.reshape(mean, [-1]), array.reshape(variance, [-1])
        of_batch = (mean, variance)
        if updates_collections is None:

            def forced() -> Any:
                with control_dependencies(_updates(averages, *of_batch, decay, zero_debias)):
                    return array.identity(of_batch[0]), array.identity(of_batch[1])

            mean, variance = smart_cond(is_training, forced, lambda: averages)
        else:
            for update in smart_cond(
                is_training, lambda: _updates(averages, *of_batch, decay, zero_debias), lambda: averages
            ):
                add_to_collections(updates_collections, update)
            mean, variance = smart_cond(is_training, lambda: of_batch, lambda: averages)
    if first:
        view = [1, shape.dims[1].value] + [1] * (rank - 2)
        mean, variance, beta, gamma = (
            part if part is None else array.reshape(part, view) for part in (mean, variance, beta, gamma)
        )
    outputs = nn_norm.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
    outputs.set_shape(shape)
    return outputs


@add_arg_scope
def layer_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    activation_fn: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    scope: Any = None,
) -> Any:
    """Normalizes each example over its dimensions from `begin_norm_axis` on.

    `beta` and `gamma` have the shape of the dimensions from `begin_params_axis` on. Raises ValueError for axes that
    the inputs do not have and for an unknown rank or size.
    """
    with variable_scope(scope, "LayerNorm", [inputs], reuse=reuse) as inner:
        inputs = convert_to_tensor(inputs)
        shape = inputs.get_shape()
        rank = shape.ndims
        if rank is None:
            raise ValueError(f"Inputs {inputs.name} has undefined rank.")
        if begin_norm_axis < 0:
            begin_norm_axis += rank
        if begin_params_axis >= rank or begin_norm_axis >= rank:
            raise ValueError(
                f"begin_params_axis ({begin_params_axis}) and begin_norm_axis ({begin_norm_axis}) must be < "
                f"rank(inputs) ({rank})"
            )
        sizes = shape[begin_params_axis:]
        if not sizes.is_fully_defined():
            raise ValueError(f"Inputs {inputs.name}: shape(inputs)[{begin_params_axis}:] is not fully defined: {shape}")
        kind = inputs.dtype.base_dtype
        made = _Parameters(sizes, kind, variables_collections, trainable, None)
        beta, gamma = made("beta") if center else None, made("gamma") if scale else None
        mean, variance = nn_norm.moments(inputs, list(range(begin_norm_axis, rank)), keep_dims=True)
        # float16 has no room for less.
        epsilon = 1e-3 if kind == dtypes.float16 else 1e-12
        outputs = nn_norm.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(shape)
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        return collect_named_outputs(outputs_collections, inner.name, outputs)


@add_arg_scope
def instance_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Any:
    """Normalizes each channel of each example. Raises ValueError for an unknown rank or number of channels."""
    inputs = convert_to_tensor(inputs)
    shape = inputs.get_shape()
    rank = shape.ndims
    if rank is None:
        raise ValueError(f"Inputs {inputs.name} has undefined rank.")
    first = layers_format(data_format, DATA_FORMATS_2D) == "channels_first"
    with variable_scope(scope, "InstanceNorm", [inputs], reuse=reuse) as inner:
        sizes = _channels(shape, inputs.name, first)
        made = _Parameters(sizes, inputs.dtype.base_dtype, variables_collections, trainable, param_initializers)
        beta, gamma = made("beta") if center else None, made("gamma") if scale else None
        if first:
            view = [1, sizes.as_list()[0]] + [1] * (rank - 2)
            beta, gamma = (part if part is None else array.reshape(part, view) for part in (beta, gamma))
        axes = [axis for axis in range(1, rank) if axis != (1 if first else rank - 1)]
        mean, variance = nn_norm.moments(inputs, axes, keep_dims=True)
        outputs = nn_norm.batch_normalization(inputs, mean, variance, beta, gamma, epsilon, name="instancenorm")
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        return collect_named_outputs(outputs_collections, inner.name, outputs)


@add_arg_scope
def group_norm(
    inputs: Any,
    groups: int = 32,
    channels_axis: int = -1,
    reduction_axes: Any = (-3, -2),
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    mean_close_to_zero: bool = False,
) -> Any:
    """Normalizes each example over `reduction_axes` and over the channels of a group.

    Raises ValueError for axes out of bounds or in both places, sizes that are unknown, and groups that do not divide
    the channels.
    """
    inputs = convert_to_tensor(inputs)
    rank = inputs.get_shape().ndims
    if rank is None:
        raise ValueError(f"Inputs {inputs.name} has undefined rank.")
    if channels_axis > rank - 1:
        raise ValueError("Axis is out of bounds.")
    known, running = inputs.get_shape().as_list(), array.shape(inputs)
    sizes = [running[axis] if size is None else size for axis, size in enumerate(known)]
    channels_axis = channels_axis + rank if channels_axis < 0 else channels_axis
    channels = known[channels_axis]
    if channels is None:
        raise ValueError(f"Inputs {inputs.name} has undefined channel dimension: {channels_axis}.")
    axes = [axis + rank if axis < 0 else axis for axis in reduction_axes]
    for axis in axes:
        if axis >= rank:
            raise ValueError("Axis is out of bounds.")
        if known[axis] is None:
            raise ValueError(f"Inputs {inputs.name} has undefined dimensions {axis}.")
        if axis == channels_axis:
            raise ValueError("reduction_axis must be mutually exclusive with channels_axis")
    if groups > channels:
        raise ValueError(f"Invalid groups {groups} for {channels} channels.")
    if channels % groups:
        raise ValueError(f"{channels} channels is not commensurate with {groups} groups.")
    before, after = sizes[:channels_axis], sizes[channels_axis + 1 :]
    split = [groups, channels // groups]
    view = [1] * len(before) + split + [1] * len(after)
    inputs = array.reshape(inputs, [*before, *split, *after])
    moments_axes = [channels_axis + 1, *(axis + 1 if axis > channels_axis else axis for axis in axes)]
    with variable_scope(scope, "GroupNorm", [inputs], reuse=reuse) as inner:
        made = _Parameters([channels], inputs.dtype.base_dtype, variables_collections, trainable, param_initializers)
        beta = array.reshape(made("beta"), view) if center else None
        gamma = array.reshape(made("gamma"), view) if scale else None
        if mean_close_to_zero:
            counts, total, squares, _ = nn_norm.sufficient_statistics(inputs, moments_axes, keep_dims=True)
            mean, variance = nn_norm.normalize_moments(counts, total, squares, shift=None)
        else:
            mean, variance = nn_norm.moments(inputs, moments_axes, keep_dims=True)
        gain: Any = math.rsqrt(variance + epsilon)
        offset: Any = -mean * gain
        if gamma is not None:
            gain, offset = gain * gamma, offset * gamma
        if beta is not None:
            offset = offset + beta
        outputs = array.reshape(inputs * gain + offset, sizes)
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        return collect_named_outputs(outputs_collections, inner.name, outputs)


@add_arg_scope
def unit_norm(inputs: Any, dim: int, epsilon: float = 1e-7, scope: Any = None) -> Any:
    """The inputs, of length 1 along dimension `dim`. Raises ValueError for an unknown rank or another dimension."""
    with variable_scope(scope, "UnitNorm", [inputs]):
        rank = inputs.get_shape().ndims
        if not rank:
            raise ValueError("The input rank must be known.")
        if not 0 <= dim < rank:
            raise ValueError("dim must be positive but smaller than the input rank.")
        lengths = math.sqrt(epsilon + reduce_sum(math.square(inputs), dim, keepdims=True))
        return math.div(inputs, lengths)
