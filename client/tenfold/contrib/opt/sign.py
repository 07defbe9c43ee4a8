"""AddSign and PowerSign: steps that are larger where the gradient and its moving average have the same sign.

Made of plain operations. Follows TensorFlow 1.15's contrib/opt/python/training (addsign.py, powersign.py,
sign_decay.py).
"""

from __future__ import annotations

import math as python_math
from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.ops import array, control_flow, math, slicing, state_ops
from tenfold.train.optimizer import Optimizer
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.graph.indexed_slices import IndexedSlices
    from tenfold.graph.tensor import Tensor


class _SignOptimizer(Optimizer):
    """Base: m ← beta · m + (1 - beta) · g; var ← var - rate · factor(decay · sign(g) · sign(m)) · g."""

    def __init__(self, learning_rate: Any, beta: Any, sign_decay_fn: Any, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._lr, self._beta, self._sign_decay_fn = learning_rate, beta, sign_decay_fn
        self._lr_t: Any = None
        self._beta_t: Any = None
        self._sign_decay_t: Any = None

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """As of Optimizer; the decay of signs is that of the global step."""
        if self._sign_decay_fn is not None:
            self._sign_decay_t = convert_to_tensor(self._sign_decay_fn(global_step), name="sign_decay")
        return super().apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "m", self._name)

    def _prepare(self) -> None:
        self._lr_t = convert_to_tensor(self._call_if_callable(self._lr), name="learning_rate")
        self._beta_t = convert_to_tensor(self._call_if_callable(self._beta), name="beta")
        if self._sign_decay_fn is None:
            self._sign_decay_t = convert_to_tensor(1.0, name="sign_decay")

    def _factor(self, agreement: Any) -> Any:
        """What a step is multiplied with; `agreement` is the decayed product of the signs."""
        raise NotImplementedError

    def _step(self, grad: Any, average: Any) -> Any:
        kind = grad.dtype.base_dtype
        agreement = math.cast(self._sign_decay_t, kind) * math.sign(grad) * math.sign(average)
        return math.cast(self._lr_t, kind) * self._factor(agreement) * grad

    def _moved(self, grad: Any, var: Any) -> Any:
        m, beta = self.get_slot(var, "m"), math.cast(self._beta_t, grad.dtype.base_dtype)
        return state_ops.assign(m, m * beta + grad * (1 - beta), use_locking=self._use_locking)

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        step = self._step(grad, self._moved(grad, var))
        return control_flow.group(state_ops.assign_sub(var, step, use_locking=self._use_locking))

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        return self._apply_dense(grad, handle)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        m, beta = self.get_slot(var, "m"), math.cast(self._beta_t, grad.values.dtype.base_dtype)
        decayed = state_ops.assign(m, m * beta, use_locking=self._use_locking)
        with var.graph.control_dependencies([decayed]):
            moved = state_ops.scatter_add(m, grad.indices, grad.values * (1 - beta), use_locking=self._use_locking)
        step = self._step(grad.values, slicing.gather(moved, grad.indices))
        return control_flow.group(state_ops.scatter_sub(var, grad.indices, step, use_locking=self._use_locking), moved)


class AddSignOptimizer(_SignOptimizer):
    """The step is rate · (alpha + decay · sign(g) · sign(m)) · g."""

    def __init__(
        self,
        learning_rate: Any = 0.1,
        alpha: Any = 1.0,
        beta: Any = 0.9,
        sign_decay_fn: Callable[[Any], Any] | None = None,
        use_locking: bool = False,
        name: str = "AddSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name)
        self._alpha = alpha
        self._alpha_t: Any = None

    def _prepare(self) -> None:
        super()._prepare()
        self._alpha_t = convert_to_tensor(self._call_if_callable(self._alpha), name="alpha")

    def _factor(self, agreement: Any) -> Any:
        return math.cast(self._alpha_t, agreement.dtype) + agreement


class PowerSignOptimizer(_SignOptimizer):
    """The step is rate · base ^ (decay · sign(g) · sign(m)) · g."""

    def __init__(
        self,
        learning_rate: Any = 0.1,
        base: float = python_math.e,
        beta: Any = 0.9,
        sign_decay_fn: Callable[[Any], Any] | None = None,
        use_locking: bool = False,
        name: str = "PowerSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name)
        self._logbase = python_math.log(base)
        self._logbase_t: Any = None

    def _prepare(self) -> None:
        super()._prepare()
        self._logbase_t = convert_to_tensor(self._logbase, name="logbase")

    def _factor(self, agreement: Any) -> Any:
        return math.exp(math.cast(self._logbase_t, agreement.dtype) * agreement)


# --- decays of the signs, by the global step ---


def _fraction(global_step: Any, decay_steps: Any, what: str) -> tuple[Any, Any]:
    """(the step, at most `decay_steps`; the share of them that it is)."""
    if global_step is None:
        raise ValueError(f"global_step is required for {what}.")
    step = math.minimum(global_step, decay_steps)
    return step, math.cast(step, dtypes.float32) / math.cast(decay_steps, dtypes.float32)


def get_linear_decay_fn(decay_steps: Any) -> Callable[[Any], Any]:
    """From 1 to 0 over `decay_steps`."""
    return lambda step: math.maximum(0.0, 1.0 - _fraction(step, decay_steps, "linear_decay")[1])


def get_cosine_decay_fn(
    decay_steps: Any, num_periods: float = 0.5, zero_after: float | None = None
) -> Callable[[Any], Any]:
    """A cosine of `num_periods` periods over `decay_steps`; zero after `zero_after` of them."""

    def decay(global_step: Any) -> Any:
        fraction = 2.0 * num_periods * _fraction(global_step, decay_steps, "cosine_decay")[1]
        decayed = 0.5 * (1.0 + math.cos(array.constant(python_math.pi) * fraction))
        if zero_after is None:
            return decayed
        return slicing.where(math.greater_equal(fraction, 2 * zero_after), array.constant(0.0), decayed)

    return decay


def get_restart_decay_fn(
    decay_steps: Any, num_periods: float = 1, zero_after: float | None = None
) -> Callable[[Any], Any]:
    """A cosine from 1 to 0, begun anew `num_periods` times over `decay_steps`; zero after `zero_after` of them."""

    def decay(global_step: Any) -> Any:
        step, share = _fraction(global_step, decay_steps, "cosine_decay")
        whole = math.cast(decay_steps, dtypes.float32)
        turn = math.mod(num_periods * math.cast(step, dtypes.float32), whole) / whole
        decayed = 0.5 * (1.0 + math.cos(array.constant(python_math.pi) * turn))
        if zero_after is None:
            return decayed
        return slicing.where(math.greater_equal(num_periods * share, zero_after), array.constant(0.0), decayed)

    return decay
