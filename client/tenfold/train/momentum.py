"""Gradient descent with momentum: `accum = momentum * accum + gradient; var -= learning_rate * accum`.

With `use_nesterov` the step looks ahead along the accumulated direction. Slot: `<variable>/Momentum`.
Follows TensorFlow's training/momentum.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.op_builder import apply_op
from tenfold.train.hyperparameter import as_dtype_of
from tenfold.train.optimizer import Optimizer
from tenfold.train.training_util import step_of_updates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.argument_types import RateLike
    from tenfold.graph.indexed_slices import IndexedSlices
    from tenfold.graph.tensor import Tensor


class MomentumOptimizer(Optimizer):
    """`learning_rate` and `momentum` are floats, scalar tensors, or functions that return one."""

    def __init__(
        self,
        learning_rate: RateLike,
        momentum: RateLike,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._use_nesterov = use_nesterov
        self._learning_rate_tensor: Any = None
        self._momentum_tensor: Any = None

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "momentum", self._name)

    def _prepare(self) -> None:
        rate = self._call_if_callable(self._learning_rate)
        self._learning_rate_tensor = convert_to_tensor(rate, name="learning_rate")
        momentum = self._call_if_callable(self._momentum)
        self._momentum_tensor = convert_to_tensor(momentum, name="momentum")

    def _parameters(self, target: Any) -> dict[str, Any]:
        return {
            "lr": as_dtype_of(self._learning_rate_tensor, target),
            "momentum": as_dtype_of(self._momentum_tensor, target),
            "use_locking": self._use_locking,
            "use_nesterov": self._use_nesterov,
        }

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        accum = self.get_slot(var, "momentum")
        return apply_op("ApplyMomentum", var=var, accum=accum, grad=grad, **self._parameters(var)).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        accum: Any = self.get_slot(handle, "momentum")
        return apply_op(
            "ResourceApplyMomentum", var=handle.handle, accum=accum.handle, grad=grad, **self._parameters(grad)
        )

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        accum = self.get_slot(var, "momentum")
        return apply_op(
            "SparseApplyMomentum",
            var=var,
            accum=accum,
            grad=grad.values,
            indices=grad.indices,
            **self._parameters(var),
        ).op

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        accum: Any = self.get_slot(handle, "momentum")
        return apply_op(
            "ResourceSparseApplyMomentum",
            var=handle.handle,
            accum=accum.handle,
            grad=grad,
            indices=indices,
            **self._parameters(grad),
        )

    def _embedding_apply_sparse(self, grad: Tensor, var: Any, ids: Tensor) -> Any:
        accum: Any = self.get_slot(var, "momentum")
        return apply_op(
            "KvResourceSparseApplyMomentum",
            var=var.handle,
            accum=accum.handle,
            grad=grad,
            indices=ids,
            global_step=step_of_updates(),
            **self._parameters(grad),
        )
