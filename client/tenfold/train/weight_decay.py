"""Optimizers that shrink the weights apart from the gradient step (AdamW, MomentumW), and how any one becomes such.

Used through `tf.contrib.opt`; `tf.train` has AdamW, too. Follows TensorFlow 1.15's
contrib/opt/python/training/weight_decay_optimizers.py, and DeepRec's for embedding variables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies
from tenfold.ops import control_flow, math, slicing, state_ops
from tenfold.train.adam import AdamOptimizer
from tenfold.train.momentum import MomentumOptimizer

if TYPE_CHECKING:
    from tenfold.train.optimizer import Optimizer

    _Base = Optimizer
else:
    _Base = object


class DecoupledWeightDecayExtension(_Base):
    """Mixed in before an optimizer: each update first subtracts `weight_decay` times the weights.

    `weight_decay` is a float, a scalar tensor or a function that returns one; it is not scaled by the learning rate.
    `decay_var_list` of `minimize` and `apply_gradients` says which variables decay, by default all.
    """

    def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any) -> None:
        self._decay_names: set[str] | None = None
        self._weight_decay = weight_decay
        self._weight_decay_tensor: Any = None
        super().__init__(*args, **kwargs)

    def minimize(self, *args: Any, decay_var_list: Any = None, **kwargs: Any) -> Any:
        """As of the optimizer; only the variables of `decay_var_list` decay, by default all."""
        # Kept for apply_gradients, which the optimizer calls without it.
        self._decay_names = _names(decay_var_list)
        try:
            return super().minimize(*args, **kwargs)
        finally:
            self._decay_names = None

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None, decay_var_list: Any = None
    ) -> Any:
        """As of the optimizer; only the variables of `decay_var_list` decay, by default all."""
        if decay_var_list:
            self._decay_names = _names(decay_var_list)
        return super().apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def _prepare(self) -> None:
        decay = self._weight_decay() if callable(self._weight_decay) else self._weight_decay
        self._weight_decay_tensor = convert_to_tensor(decay, name="weight_decay")
        super()._prepare()

    def _decays(self, var: Any) -> bool:
        return self._decay_names is None or var.op.name in self._decay_names

    def _decayed(self, var: Any) -> Any:
        if not self._decays(var):
            return control_flow.no_op()
        decay = _of_type(self._weight_decay_tensor, var)
        return state_ops.assign_sub(var, decay * var, use_locking=self._use_locking)

    def _decayed_rows(self, var: Any, indices: Any) -> Any:
        if not self._decays(var):
            return control_flow.no_op()
        rows = _of_type(self._weight_decay_tensor, var) * slicing.gather(var, indices)
        return state_ops.scatter_sub(var, indices, rows, use_locking=self._use_locking)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        with control_dependencies([self._decayed(var)]):
            return super()._apply_dense(grad, var)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        with control_dependencies([self._decayed(handle)]):
            return super()._resource_apply_dense(grad, handle)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        with control_dependencies([self._decayed_rows(var, grad.indices)]):
            return super()._apply_sparse(grad, var)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        with control_dependencies([self._decayed_rows(handle, indices)]):
            return super()._resource_apply_sparse(grad, handle, indices)

    def _embedding_apply_sparse(self, grad: Any, var: Any, ids: Any) -> Any:
        if not self._decays(var):
            return super()._embedding_apply_sparse(grad, var, ids)
        raise NotImplementedError(
            f"{type(self).__name__} has no weight decay of embedding variables, as {var.name} is one: "
            "tf.train.AdamWOptimizer has, and decay_var_list can leave it out"
        )


def _names(variables: Any) -> set[str] | None:
    return {var.op.name for var in variables} if variables else None


def _of_type(value: Any, var: Any) -> Any:
    kind = var.dtype.base_dtype
    return math.cast(value, kind)


def extend_with_decoupled_weight_decay(base_optimizer: type[Any]) -> type[Any]:
    """The optimizer class with `weight_decay` as its first argument."""

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):  # type: ignore[misc]
        """The optimizer, with decoupled weight decay."""

    return OptimizerWithDecoupledWeightDecay


class MomentumWOptimizer(DecoupledWeightDecayExtension, MomentumOptimizer):
    """Momentum with decoupled weight decay."""

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "MomentumW",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(weight_decay, learning_rate, momentum, use_locking, name, use_nesterov)


class AdamWOptimizer(DecoupledWeightDecayExtension, AdamOptimizer):
    """Adam with decoupled weight decay. The rows of an embedding variable decay by `weight_decay` times Adam's rate of
    the step, as in DeepRec, and only where they have a gradient."""

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        super().__init__(weight_decay, learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _embedding_apply_sparse(self, grad: Any, var: Any, ids: Any) -> Any:
        return self._embedding_update(grad, var, ids, self._weight_decay_tensor if self._decays(var) else None)
