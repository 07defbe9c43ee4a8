"""`tf.contrib.mixed_precision`: an optimizer whose loss is scaled, so that small gradients of half precision survive.

As `tf.train.experimental` has it since, by managers instead of loss scales. Follows TensorFlow 1.15's
contrib/mixed_precision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import tenfold as tf
from tenfold.train.loss_scale import all_finite
from tenfold.train.optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ExponentialUpdateLossScaleManager", "FixedLossScaleManager", "LossScaleManager", "LossScaleOptimizer"]


class LossScaleManager(ABC):
    """The base class of what keeps a loss scale."""

    @abstractmethod
    def get_loss_scale(self) -> Any:
        """The scale, float32 []."""

    @abstractmethod
    def update_loss_scale(self, finite_grads: Any) -> Any:
        """The operation that sets the scale after a step with finite gradients or others, bool []."""


class FixedLossScaleManager(LossScaleManager):
    """A scale that stays. Raises ValueError for less than 1."""

    def __init__(self, loss_scale: float) -> None:
        if loss_scale < 1:
            raise ValueError("loss scale must be at least 1.")
        self._loss_scale = tf.convert_to_tensor(loss_scale, dtype=tf.float32)

    def get_loss_scale(self) -> Any:
        """The scale, a constant."""
        return self._loss_scale

    def update_loss_scale(self, finite_grads: Any) -> Any:
        """An operation that does nothing."""
        return tf.no_op()


class ExponentialUpdateLossScaleManager(LossScaleManager):
    """A scale in a variable: times `incr_ratio` after `incr_every_n_steps` finite steps on end, times `decr_ratio`,
    to no less than 1, after `decr_every_n_nan_or_inf` others in all. Each change counts both anew.
    """

    def __init__(
        self,
        init_loss_scale: float,
        incr_every_n_steps: int,
        decr_every_n_nan_or_inf: int = 2,
        incr_ratio: float = 2,
        decr_ratio: float = 0.8,
    ) -> None:
        self._incr_every_n_steps = incr_every_n_steps
        self._decr_every_n_nan_or_inf = decr_every_n_nan_or_inf
        self._incr_ratio = incr_ratio
        self._decr_ratio = decr_ratio
        self._loss_scale = tf.Variable(
            tf.convert_to_tensor(init_loss_scale, tf.float32), name="loss_scale", dtype=tf.float32, trainable=False
        )
        self._num_good_steps = tf.Variable(0, name="good_steps", dtype=tf.int32, trainable=False)
        self._num_bad_steps = tf.Variable(0, name="bad_steps", dtype=tf.int32, trainable=False)

    def get_loss_scale(self) -> Any:
        """The variable."""
        return self._loss_scale

    def _set(self, scale: Any) -> Any:
        counts = tf.group(tf.assign(self._num_good_steps, 0), tf.assign(self._num_bad_steps, 0))
        return tf.group(tf.assign(self._loss_scale, scale), counts)

    def update_loss_scale(self, finite_grads: Any) -> Any:
        """As LossScaleManager's."""

        def grow() -> Any:
            larger = self._loss_scale * self._incr_ratio
            return self._set(tf.cond(tf.is_finite(larger), lambda: larger, lambda: tf.identity(self._loss_scale)))

        def shrink() -> Any:
            return self._set(tf.maximum(1.0, self._loss_scale * self._decr_ratio))

        def count_bad() -> Any:
            return tf.group(tf.assign_add(self._num_bad_steps, 1), tf.assign(self._num_good_steps, 0))

        def after_finite() -> Any:
            is_time = self._num_good_steps + 1 >= self._incr_every_n_steps
            return tf.cond(is_time, grow, lambda: tf.assign_add(self._num_good_steps, 1).op)

        def after_others() -> Any:
            return tf.cond(self._num_bad_steps + 1 >= self._decr_every_n_nan_or_inf, shrink, count_bad)

        return tf.cond(finite_grads, after_finite, after_others)


class LossScaleOptimizer(Optimizer):
    """`opt`, with the loss scaled by what `loss_scale_manager` says; only finite gradients are applied."""

    def __init__(self, opt: Any, loss_scale_manager: LossScaleManager) -> None:
        super().__init__(False, "LossScaleOptimizer")
        self._opt = opt
        self._loss_scale_manager = loss_scale_manager

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """As `tf.train.Optimizer`'s, of the scaled loss, scaled back."""
        scale = self._loss_scale_manager.get_loss_scale()
        value = loss() if callable(loss) else loss
        pairs = self._opt.compute_gradients(
            value * tf.cast(scale, value.dtype.base_dtype),
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        back = tf.reciprocal(scale)
        return [
            (None if grad is None else grad * tf.cast(back, grad.dtype.base_dtype), variable)
            for grad, variable in pairs
        ]

    def apply_gradients(
        self, grads_and_vars: Sequence[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Any:
        """As `tf.train.Optimizer`'s, if all gradients are finite; then the scale is updated."""
        finite = all_finite([grad for grad, _ in grads_and_vars])
        applied = tf.cond(
            finite, lambda: self._opt.apply_gradients(grads_and_vars, global_step, name), lambda: tf.no_op()
        )
        return tf.group(applied, self._loss_scale_manager.update_loss_scale(finite))
