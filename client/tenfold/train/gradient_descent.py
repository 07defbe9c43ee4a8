"""Plain gradient descent: `var -= learning_rate * gradient`.

Needs no slots; sparse gradients are subtracted row by row, repeated rows included.
Follows TensorFlow's training/gradient_descent.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.op_builder import apply_op
from tenfold.train.hyperparameter import as_dtype_of
from tenfold.train.optimizer import Optimizer
from tenfold.train.training_util import step_of_updates

if TYPE_CHECKING:
    from tenfold.graph.argument_types import RateLike
    from tenfold.graph.indexed_slices import IndexedSlices
    from tenfold.graph.tensor import Tensor


class GradientDescentOptimizer(Optimizer):
    """`learning_rate` is a float, a scalar tensor, or a function that returns one."""

    def __init__(self, learning_rate: RateLike, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._learning_rate_tensor: Any = None

    def _prepare(self) -> None:
        rate = self._call_if_callable(self._learning_rate)
        self._learning_rate_tensor = convert_to_tensor(rate, name="learning_rate")

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        rate = as_dtype_of(self._learning_rate_tensor, var)
        return apply_op("ApplyGradientDescent", var=var, alpha=rate, delta=grad, use_locking=self._use_locking).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        rate = as_dtype_of(self._learning_rate_tensor, grad)
        return apply_op(
            "ResourceApplyGradientDescent", var=handle.handle, alpha=rate, delta=grad, use_locking=self._use_locking
        )

    def _embedding_apply_sparse(self, grad: Tensor, var: Any, ids: Tensor) -> Any:
        return apply_op(
            "KvResourceSparseApplyGradientDescent",
            var=var.handle,
            alpha=as_dtype_of(self._learning_rate_tensor, grad),
            grad=grad,
            indices=ids,
            global_step=step_of_updates(),
            use_locking=self._use_locking,
        )

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        # Subtraction is additive: no need to sum repeated rows first.
        delta = grad.values * as_dtype_of(self._learning_rate_tensor, var)
        return apply_op("ScatterSub", ref=var, indices=grad.indices, updates=delta, use_locking=self._use_locking)

    def _resource_apply_sparse_duplicate_indices(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        delta = -grad * as_dtype_of(self._learning_rate_tensor, grad)
        return apply_op("ResourceScatterAdd", resource=handle.handle, indices=indices, updates=delta)
