"""Adagrad: `accum += gradient²; var -= learning_rate * gradient / sqrt(accum)`.

Each element gets its own, shrinking step, which suits rare features. Slot: `<variable>/Adagrad`.
Follows TensorFlow's training/adagrad.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops
from tenfold.ops import init_ops
from tenfold.train.hyperparameter import as_dtype_of
from tenfold.train.optimizer import Optimizer
from tenfold.train.training_util import step_of_updates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.graph.argument_types import RateLike
    from tenfold.graph.indexed_slices import IndexedSlices
    from tenfold.graph.tensor import Tensor
    from tenfold_core.dtypes import DType


class AdagradOptimizer(Optimizer):
    """`learning_rate` is a float, a scalar tensor, or a function that returns one; the accumulator starts positive."""

    def __init__(
        self,
        learning_rate: RateLike,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value
        self._learning_rate_tensor: Any = None

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            dtype = var.dtype.base_dtype
            shape = var.get_shape()
            initializer: Any = init_ops.Constant(self._initial_accumulator_value, dtype=dtype)
            if not shape.is_fully_defined():
                initializer = self._runtime_initializer(var, dtype)
            self._get_or_make_slot_with_initializer(var, initializer, shape, dtype, "accumulator", self._name)

    def _runtime_initializer(self, var: Any, dtype: DType) -> Callable[[], Any]:
        def initial() -> Any:
            value = convert_to_tensor(self._initial_accumulator_value, dtype=dtype)
            return apply_op("Fill", dims=array_ops.shape(var), value=value)

        return initial

    def _prepare(self) -> None:
        rate = self._call_if_callable(self._learning_rate)
        self._learning_rate_tensor = convert_to_tensor(rate, name="learning_rate")

    def _parameters(self, target: Any) -> dict[str, Any]:
        return {"lr": as_dtype_of(self._learning_rate_tensor, target), "use_locking": self._use_locking}

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        accum = self.get_slot(var, "accumulator")
        return apply_op("ApplyAdagrad", var=var, accum=accum, grad=grad, **self._parameters(var))

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        accum: Any = self.get_slot(handle, "accumulator")
        return apply_op(
            "ResourceApplyAdagrad", var=handle.handle, accum=accum.handle, grad=grad, **self._parameters(grad)
        )

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        accum = self.get_slot(var, "accumulator")
        return apply_op(
            "SparseApplyAdagrad", var=var, accum=accum, grad=grad.values, indices=grad.indices, **self._parameters(var)
        )

    def _embedding_apply_sparse(self, grad: Tensor, var: Any, ids: Tensor) -> Any:
        accum: Any = self.get_slot(var, "accumulator")
        return apply_op(
            "KvResourceSparseApplyAdagrad",
            var=var.handle,
            accum=accum.handle,
            grad=grad,
            indices=ids,
            global_step=step_of_updates(),
            **self._parameters(grad),
        )

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        accum: Any = self.get_slot(handle, "accumulator")
        return apply_op(
            "ResourceSparseApplyAdagrad",
            var=handle.handle,
            accum=accum.handle,
            grad=grad,
            indices=indices,
            **self._parameters(grad),
        )
