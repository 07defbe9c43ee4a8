"""Layer-wise adaptive rates (LARS), and Adagrad that may leave its accumulators alone.

Follows TensorFlow 1.15's contrib/opt/python/training (lars_optimizer.py, reg_adagrad_optimizer.py).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tenfold.graph.op_builder import apply_op
from tenfold.ops import array, linalg, math, slicing
from tenfold.train.adagrad import AdagradOptimizer
from tenfold.train.momentum import MomentumOptimizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tenfold.graph.indexed_slices import IndexedSlices
    from tenfold.graph.tensor import Tensor


class LARSOptimizer(MomentumOptimizer):
    """Momentum whose rate, for each variable, is scaled by the ratio of the norms of weights and gradient.

    Variables with a part of `skip_list` in their names are neither scaled nor decayed. Raises ValueError for a negative
    momentum or decay.
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: float = 0.9,
        weight_decay: float = 0.0001,
        eeta: float = 0.001,
        epsilon: float = 0.0,
        name: str = "LARSOptimizer",
        skip_list: Sequence[str] | None = None,
        use_nesterov: bool = False,
    ) -> None:
        for given, value in (("momentum", momentum), ("weight_decay", weight_decay)):
            if value < 0.0:
                raise ValueError(f"{given} should be positive: {value}")
        super().__init__(learning_rate, momentum, use_locking=False, name=name, use_nesterov=use_nesterov)
        self._weight_decay = weight_decay
        self._eeta = eeta
        self._epsilon = epsilon
        self._skip_list = skip_list

    def compute_lr(self, grad: Any, var: Any) -> tuple[Any, Any]:
        """(the rate for this variable, the gradient with the decay of the weights)."""
        rate = math.cast(self._learning_rate_tensor, grad.dtype.base_dtype)
        if any(part in var.name for part in self._skip_list or ()):
            return rate, grad
        weights, steps = linalg.norm(var, ord=2), linalg.norm(grad, ord=2)
        one = array.ones_like(weights)
        ratio = self._eeta * weights / (steps + self._weight_decay * weights + self._epsilon)
        ratio = slicing.where(math.greater(weights, 0), slicing.where(math.greater(steps, 0), ratio, one), one)
        return rate * ratio, grad + self._weight_decay * var

    def _dense(self, prefix: str, grad: Any, var: Any, resource: bool) -> Any:
        rate, decayed = self.compute_lr(grad, var)
        accum: Any = self.get_slot(var, "momentum")
        # The momentum gathers steps, not gradients: each was scaled by its own rate.
        return apply_op(
            f"{prefix}ApplyMomentum",
            var=var.handle if resource else var,
            accum=accum.handle if resource else accum,
            grad=decayed * rate,
            **{**self._parameters(grad), "lr": math.cast(1.0, grad.dtype.base_dtype)},
        )

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        return self._dense("", grad, var, False).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        return self._dense("Resource", grad, handle, True)


class RegAdagradOptimizer(AdagradOptimizer):
    """Adagrad whose accumulators stay, for updates made inside `avoid_updating_slots`, as those of a regularizer."""

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "RegAdagrad",
    ) -> None:
        super().__init__(learning_rate, initial_accumulator_value, use_locking, name)
        self._updates_slots = True

    @contextmanager
    def avoid_updating_slots(self) -> Iterator[None]:
        """Updates that are made in this block leave the accumulators as they are."""
        before, self._updates_slots = self._updates_slots, False
        try:
            yield
        finally:
            self._updates_slots = before

    def _applied(self, op_type: str, var: Any, grad: Any, indices: Any = None) -> Any:
        accum: Any = self.get_slot(var, "accumulator")
        resource = op_type.startswith("Resource")
        rows = {} if indices is None else {"indices": indices}
        return apply_op(
            op_type,
            var=var.handle if resource else var,
            accum=accum.handle if resource else accum,
            lr=math.cast(self._learning_rate_tensor, grad.dtype.base_dtype),
            grad=grad,
            use_locking=self._use_locking,
            update_slots=self._updates_slots,
            **rows,
        )

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        return self._applied("ApplyAdagrad", var, grad).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        return self._applied("ResourceApplyAdagrad", handle, grad)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        return self._applied("SparseApplyAdagrad", var, grad.values, grad.indices).op

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        return self._applied("ResourceSparseApplyAdagrad", handle, grad, indices)
