"""`BatchNormalization`: normalizes each channel over the batch, with moving averages for inference.

The updates of the moving averages are in UPDATE_OPS: a training step must depend on them. Follows TensorFlow 1.15's
keras/layers/normalization.py, renormalization and virtual batches included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import colocate_with, control_dependencies, name_scope
from tenfold.layers.base import InputSpec, Layer
from tenfold.ops import array, init_ops, math, nn, nn_norm, state_ops
from tenfold.ops.control_flow_cond import smart_cond, smart_constant_value
from tenfold.ops.variables import VariableAggregation, VariableSynchronization
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


class BatchNormalization(Layer):
    """gamma * (x - mean) / sqrt(variance + epsilon) + beta for each entry along `axis`.

    While training, mean and variance are those of the batch and go into the moving averages with `momentum`.
    `fused` uses one operation for rank 4 (the default where it can); `renorm`, `virtual_batch_size` and `adjustment`
    are as in TensorFlow. Raises ValueError for combinations that contradict each other.
    """

    def __init__(
        self,
        axis: Any = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = init_ops.zeros_initializer(),  # noqa: B008 - as TensorFlow's signature says
        gamma_initializer: Any = init_ops.ones_initializer(),  # noqa: B008
        moving_mean_initializer: Any = init_ops.zeros_initializer(),  # noqa: B008
        moving_variance_initializer: Any = init_ops.ones_initializer(),  # noqa: B008
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        renorm: bool = False,
        renorm_clipping: dict[str, Any] | None = None,
        renorm_momentum: float = 0.99,
        fused: bool | None = None,
        trainable: bool = True,
        virtual_batch_size: int | None = None,
        adjustment: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=trainable, name=name, **kwargs)
        if not isinstance(axis, (int, list, tuple)):
            raise TypeError(f"axis must be int or list, type given: {type(axis)}")
        self.axis: list[int] = [axis] if isinstance(axis, int) else list(axis)
        self.momentum = momentum
        self.epsilon = epsilon
        self.center = center
        self.scale = scale
        self.beta_initializer = beta_initializer
        self.gamma_initializer = gamma_initializer
        self.moving_mean_initializer = moving_mean_initializer
        self.moving_variance_initializer = moving_variance_initializer
        self.beta_regularizer = beta_regularizer
        self.gamma_regularizer = gamma_regularizer
        self.beta_constraint = beta_constraint
        self.gamma_constraint = gamma_constraint
        self.renorm = renorm
        self.renorm_clipping = renorm_clipping or {}
        unknown = set(self.renorm_clipping) - {"rmax", "rmin", "dmax"}
        if renorm and unknown:
            raise ValueError(f"renorm_clipping {renorm_clipping} contains keys not in ['rmax', 'rmin', 'dmax']")
        self.renorm_momentum = renorm_momentum
        self.virtual_batch_size = virtual_batch_size
        self.adjustment = adjustment
        self.fused = True if fused is None else fused

    @property
    def _param_dtype(self) -> Any:
        narrow = self._dtype in (dtypes.float16, dtypes.bfloat16)
        return dtypes.float32 if narrow or self._dtype is None else self._dtype

    def _can_be_fused(self, ndims: int) -> bool:
        return (
            ndims == 4
            and not self.renorm
            and self.virtual_batch_size is None
            and self.adjustment is None
            and self.axis in ([1], [3])
        )

    # --- variables ---

    def build(self, input_shape: Any) -> None:
        """Makes gamma, beta and the moving averages. Raises ValueError for axes that the input does not have."""
        shape = as_shape(input_shape)
        if not shape.ndims:
            raise ValueError("Input has undefined rank:", input_shape)
        ndims, sizes = shape.ndims, shape.as_list()
        self.axis = [axis + ndims if axis < 0 else axis for axis in self.axis]
        for axis in self.axis:
            if not 0 <= axis < ndims:
                raise ValueError(f"Invalid axis: {axis}")
        if len(self.axis) != len(set(self.axis)):
            raise ValueError(f"Duplicate axis: {self.axis}")
        self._check_virtual()
        self.fused = bool(self.fused) and self._can_be_fused(ndims)
        self._layout = "NCHW" if self.axis == [1] else "NHWC"
        known = {axis: sizes[axis] for axis in self.axis}
        if None in known.values():
            raise ValueError("Input has undefined `axis` dimension. Input shape: ", input_shape)
        self.input_spec = InputSpec(ndim=ndims, axes=known)
        if len(known) == 1 and self.virtual_batch_size is None:
            params: list[Any] = list(known.values())
        else:
            params = [known.get(axis, 1) for axis in range(ndims)]
            if self.virtual_batch_size is not None:
                # Virtual batches add a dimension after the first.
                params.insert(1, 1)
                self.axis = [axis + 1 for axis in self.axis]
        self.gamma = self._weight("gamma", params, self.scale, 1.0)
        self.beta = self._weight("beta", params, self.center, 0.0)
        assert self._scope is not None
        partitioner = self._scope.partitioner
        self._scope.set_partitioner(None)
        try:
            self.moving_mean = self._statistic("moving_mean", params, self.moving_mean_initializer)
            self.moving_variance = self._statistic("moving_variance", params, self.moving_variance_initializer)
            if self.renorm:
                self._build_renorm(params)
        finally:
            self._scope.set_partitioner(partitioner)
        self.built = True

    def _check_virtual(self) -> None:
        if self.virtual_batch_size is None:
            return
        if self.virtual_batch_size <= 0:
            raise ValueError(
                "virtual_batch_size must be a positive integer that divides the true batch size of the input Tensor"
            )
        if 0 in self.axis:
            raise ValueError(
                "When using virtual_batch_size, the batch dimension must be 0 and thus axis cannot include 0"
            )
        if self.adjustment is not None:
            raise ValueError("When using virtual_batch_size, adjustment cannot be specified")

    def _weight(self, name: str, shape: list[Any], wanted: bool, default: float) -> Any:
        """The trained variable `name`; if not `wanted`, a constant for the fused operation, else None."""
        if not wanted:
            if self.fused:
                setattr(self, f"_{name}_const", array.constant(default, self._param_dtype, shape=shape))
            return None
        return self.add_weight(
            name,
            shape,
            dtype=self._param_dtype,
            initializer=getattr(self, f"{name}_initializer"),
            regularizer=getattr(self, f"{name}_regularizer"),
            constraint=getattr(self, f"{name}_constraint"),
            trainable=True,
        )

    def _statistic(self, name: str, shape: list[Any], initializer: Any) -> Any:
        return self.add_weight(
            name,
            shape,
            dtype=self._param_dtype,
            initializer=initializer,
            synchronization=VariableSynchronization.ON_READ,
            trainable=False,
            aggregation=VariableAggregation.MEAN,
        )

    def _build_renorm(self, shape: list[Any]) -> None:
        def root(*args: Any, **kwargs: Any) -> Any:
            return math.sqrt(self.moving_variance_initializer(*args, **kwargs))

        with colocate_with(self.moving_variance):
            self.moving_stddev = self._statistic("moving_stddev", shape, root)
        with colocate_with(self.moving_mean):
            self.renorm_mean = self._statistic("renorm_mean", shape, self.moving_mean_initializer)
        with colocate_with(self.moving_stddev):
            self.renorm_stddev = self._statistic("renorm_stddev", shape, root)

    # --- moving averages ---

    def _moved(self, variable: Any, value: Any, momentum: Any) -> Any:
        with name_scope("AssignMovingAvg") as scope, colocate_with(variable):
            decay = convert_to_tensor(1.0 - momentum, name="decay")
            if decay.dtype.base_dtype != variable.dtype.base_dtype:
                decay = math.cast(decay, variable.dtype.base_dtype)
            delta = (variable - math.cast(value, variable.dtype.base_dtype)) * decay
            return state_ops.assign_sub(variable, delta, name=scope)

    def _moved_variance(self, variance: Any, momentum: Any) -> Any:
        """With renormalization, the moving variance is computed from the moving standard deviation."""
        if not self.renorm:
            return self._moved(self.moving_variance, variance, momentum)
        stddev = self._moved(self.moving_stddev, math.sqrt(variance + self.epsilon), momentum)
        with name_scope("AssignNewValue") as scope, colocate_with(self.moving_variance):
            return state_ops.assign(self.moving_variance, nn.relu(stddev * stddev - self.epsilon), name=scope)

    # --- the call ---

    def call(self, inputs: Any, training: Any = False) -> Tensor:
        """The normalized inputs; `training` is a bool or a scalar bool tensor."""
        if self.virtual_batch_size is None:
            return self._fused(inputs, training) if self.fused else self._plain(inputs, training)
        sizes = [-1, *(size if size is not None else -1 for size in inputs.shape.as_list()[1:])]
        spread = array.reshape(inputs, [self.virtual_batch_size, -1, *sizes[1:]])
        return array.reshape(self._plain(spread, training), sizes)

    def _fused(self, inputs: Tensor, training: Any) -> Tensor:
        beta = self.beta if self.center else self._beta_const  # type: ignore[attr-defined]
        gamma = self.gamma if self.scale else self._gamma_const  # type: ignore[attr-defined]

        def of_batch() -> Any:
            return nn_norm.fused_batch_norm(inputs, gamma, beta, epsilon=self.epsilon, data_format=self._layout)

        def of_averages() -> Any:
            return nn_norm.fused_batch_norm(
                inputs, gamma, beta, mean=self.moving_mean, variance=self.moving_variance, epsilon=self.epsilon,
                is_training=False, data_format=self._layout,
            )  # fmt: skip

        output, mean, variance = smart_cond(training, of_batch, of_averages)
        known = smart_constant_value(training)
        momentum: Any
        if known is None:
            # In inference the averages must not change: momentum 1.
            momentum = smart_cond(training, lambda: self.momentum, lambda: 1.0)
        else:
            momentum = convert_to_tensor(self.momentum)
        if known is not False:
            self.add_update(lambda: self._moved(self.moving_mean, mean, momentum))
            self.add_update(lambda: self._moved_variance(variance, momentum))
        result: Tensor = output
        return result

    def _plain(self, inputs: Tensor, training: Any) -> Tensor:
        ndims = inputs.shape.ndims or 0
        reduced = [axis for axis in range(ndims) if axis not in self.axis]
        if self.virtual_batch_size is not None:
            del reduced[1]
        view: list[Any] = [1] * ndims
        view[self.axis[0]] = inputs.shape.as_list()[self.axis[0]]

        def broadcast(v: Any) -> Any:
            if v is not None and v.shape.ndims != ndims and reduced != list(range(ndims - 1)):
                return array.reshape(v, view)
            return v

        scale, offset = broadcast(self.gamma), broadcast(self.beta)
        if smart_constant_value(training) is False:
            mean, variance = self.moving_mean, self.moving_variance
        else:
            if self.adjustment is not None:
                by, plus = self.adjustment(array.shape(inputs))
                by = smart_cond(training, lambda: by, lambda: array.ones_like(by))
                plus = smart_cond(training, lambda: plus, lambda: array.zeros_like(plus))
                scale, offset = _then(by, plus, scale, offset)
            mean, variance, scale, offset = self._batch_statistics(inputs, training, reduced, broadcast, scale, offset)
        kind = inputs.dtype.base_dtype
        outputs = nn_norm.batch_normalization(
            inputs,
            broadcast(math.cast(mean, kind)),
            broadcast(math.cast(variance, kind)),
            None if offset is None else math.cast(offset, kind),
            None if scale is None else math.cast(scale, kind),
            self.epsilon,
        )
        outputs.set_shape(inputs.shape)
        return outputs

    def _batch_statistics(
        self, inputs: Tensor, training: Any, reduced: list[int], broadcast: Any, scale: Any, offset: Any
    ) -> tuple[Any, Any, Any, Any]:
        """Mean and variance of the batch (in inference the moving ones); adds the updates of the averages."""
        keep = self.virtual_batch_size is not None or len(self.axis) > 1
        batch_mean, batch_variance = nn_norm.moments(math.cast(inputs, self._param_dtype), reduced, keep_dims=keep)
        mean = smart_cond(training, lambda: batch_mean, lambda: convert_to_tensor(self.moving_mean))
        variance = smart_cond(training, lambda: batch_variance, lambda: convert_to_tensor(self.moving_variance))
        new_mean, new_variance = mean, variance
        if self.virtual_batch_size is not None:
            new_mean = math.reduce_mean(mean, axis=1, keepdims=True)
            new_variance = math.reduce_mean(variance, axis=1, keepdims=True)
        if self.renorm:
            r, d, new_mean, new_variance = self._renormalized(new_mean, new_variance, training)
            r = broadcast(array.stop_gradient(r, name="renorm_r"))
            d = broadcast(array.stop_gradient(d, name="renorm_d"))
            scale, offset = _then(r, d, scale, offset)
        self.add_update(
            lambda: smart_cond(
                training, lambda: self._moved(self.moving_mean, new_mean, self.momentum), lambda: self.moving_mean
            )
        )
        self.add_update(
            lambda: smart_cond(
                training, lambda: self._moved_variance(new_variance, self.momentum), lambda: self.moving_variance
            )
        )
        return mean, variance, scale, offset

    def _renormalized(self, mean: Any, variance: Any, training: Any) -> tuple[Any, Any, Any, Any]:
        """The corrections r and d of batch renormalization, and the statistics after its own averages moved."""
        stddev = math.sqrt(variance + self.epsilon)
        smallest = math.sqrt(convert_to_tensor(self.epsilon, dtype=stddev.dtype.base_dtype))
        held = math.maximum(self.renorm_stddev, smallest)
        r, d = stddev / held, (mean - self.renorm_mean) / held
        with control_dependencies([r, d]):
            mean, stddev = array.identity(mean), array.identity(stddev)
        low, high, most = (self.renorm_clipping.get(key) for key in ("rmin", "rmax", "dmax"))
        r = r if low is None else math.maximum(r, low)
        r = r if high is None else math.minimum(r, high)
        d = d if most is None else math.minimum(math.maximum(d, -most), most)
        free_r, free_d = r, d
        r = smart_cond(training, lambda: free_r, lambda: array.ones_like(free_r))
        d = smart_cond(training, lambda: free_d, lambda: array.zeros_like(free_d))

        def moved(variable: Any, value: Any) -> Any:
            value = array.identity(value)
            return smart_cond(
                training,
                lambda: self._moved(variable, value, self.renorm_momentum),
                lambda: array.identity(variable),
            )

        with control_dependencies([moved(self.renorm_mean, mean), moved(self.renorm_stddev, stddev)]):
            return r, d, array.identity(mean), array.identity(variance)

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The same shape."""
        return as_shape(input_shape)


def _then(first_scale: Any, first_offset: Any, scale: Any, offset: Any) -> tuple[Any, Any]:
    """scale * (x * first_scale + first_offset) + offset as one scale and offset."""
    if scale is not None:
        first_scale = first_scale * scale
        first_offset = first_offset * scale
    if offset is not None:
        first_offset = first_offset + offset
    return first_scale, first_offset


def batch_normalization(
    inputs: Any,
    axis: Any = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = init_ops.zeros_initializer(),  # noqa: B008 - as TensorFlow's signature says
    gamma_initializer: Any = init_ops.ones_initializer(),  # noqa: B008
    moving_mean_initializer: Any = init_ops.zeros_initializer(),  # noqa: B008
    moving_variance_initializer: Any = init_ops.ones_initializer(),  # noqa: B008
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    renorm: bool = False,
    renorm_clipping: dict[str, Any] | None = None,
    renorm_momentum: float = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: Any = None,
) -> Tensor:
    """Batch normalization; while `training`, uses the batch's statistics and adds their averages to UPDATE_OPS."""
    layer = BatchNormalization(
        axis=axis,
        momentum=momentum,
        epsilon=epsilon,
        center=center,
        scale=scale,
        beta_initializer=beta_initializer,
        gamma_initializer=gamma_initializer,
        moving_mean_initializer=moving_mean_initializer,
        moving_variance_initializer=moving_variance_initializer,
        beta_regularizer=beta_regularizer,
        gamma_regularizer=gamma_regularizer,
        beta_constraint=beta_constraint,
        gamma_constraint=gamma_constraint,
        renorm=renorm,
        renorm_clipping=renorm_clipping,
        renorm_momentum=renorm_momentum,
        fused=fused,
        trainable=trainable,
        virtual_batch_size=virtual_batch_size,
        adjustment=adjustment,
        name=name,
        _reuse=reuse,
        _scope=name,
    )
    result: Tensor = layer(inputs, training=training)
    return result
