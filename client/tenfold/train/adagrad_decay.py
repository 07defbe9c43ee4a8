"""AdagradDecay: Adagrad whose accumulators are multiplied by a rate below 1 every so many global steps.

So they do not grow for ever, and training goes on learning. Slots `<variable>/AdagradDecay` (the accumulator) and
`<variable>/AdagradDecay_1` (how often it was multiplied). Follows DeepRec's training/adagrad_decay.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.op_builder import apply_op
from tenfold.ops import init_ops
from tenfold.ops.casts import cast
from tenfold.ops.embedding_variables import is_embedding_variable
from tenfold.train.hyperparameter import as_dtype_of
from tenfold.train.optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.argument_types import RateLike
    from tenfold.graph.indexed_slices import IndexedSlices
    from tenfold.graph.tensor import Tensor
    from tenfold_core.tensor_shape import TensorShape


class AdagradDecayOptimizer(Optimizer):
    """`learning_rate` is a float, a scalar tensor, or a function that returns one; `global_step` an integer variable.

    Accumulators are multiplied by `accumulator_decay_rate` each time that the global step passes a multiple of
    `accumulator_decay_step`, those of a row at its next update, and are never less than `initial_accumulator_value`
    then. Raises ValueError for a value or a number of steps that is not positive, and for a rate outside of (0, 1).
    """

    def __init__(
        self,
        learning_rate: RateLike,
        global_step: Any,
        initial_accumulator_value: float = 0.1,
        accumulator_decay_step: int = 100000,
        accumulator_decay_rate: float = 0.9,
        use_locking: bool = False,
        name: str = "AdagradDecay",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        if accumulator_decay_step <= 0:
            raise ValueError(f"accumulator_decay_step must be positive: {accumulator_decay_step}")
        if not 0.0 < accumulator_decay_rate < 1.0:
            raise ValueError(f"accumulator_decay_rate must be in (0.0, 1.0): {accumulator_decay_rate}")
        super().__init__(use_locking, name)
        self._learning_rate, self._global_step = learning_rate, global_step
        self._start, self._every = initial_accumulator_value, accumulator_decay_step
        self._rate = accumulator_decay_rate
        self._tensors: dict[str, Tensor] = {}

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            dtype, shape = var.dtype.base_dtype, var.get_shape()
            start = init_ops.Constant(self._start, dtype=dtype)
            self._get_or_make_slot_with_initializer(var, start, shape, dtype, "accumulator", self._name)
            # a row has one type
            count = dtype if is_embedding_variable(var) else self._global_step.dtype.base_dtype
            counts, zeros = self._shape_of_counts(var), init_ops.Zeros(count)
            self._get_or_make_slot_with_initializer(var, zeros, counts, count, "accumulator_decay_power", self._name)

    def _shape_of_counts(self, var: Any) -> TensorShape:
        """Of the slot that counts how often accumulators were multiplied."""
        shape: TensorShape = var.get_shape()
        return shape

    def _prepare(self) -> None:
        step = self._global_step.dtype.base_dtype
        self._tensors = {
            "lr": convert_to_tensor(self._call_if_callable(self._learning_rate), name="learning_rate"),
            "accum_decay_step": convert_to_tensor(self._every, dtype=step, name="accumulator_decay_step"),
            "accum_decay_rate": convert_to_tensor(self._rate, name="accumulator_decay_rate"),
            "accum_baseline": convert_to_tensor(self._start, name="accumulator_baseline"),
            "global_step": cast(self._global_step, step) + 1,
        }

    def _apply(self, op: str, var: Any, grad: Tensor, **more: Any) -> Any:
        resource = "Resource" in op
        accum: Any = self.get_slot(var, "accumulator")
        power: Any = self.get_slot(var, "accumulator_decay_power")
        target = grad if resource else var
        inputs: dict[str, Any] = {
            name: value if name in ("accum_decay_step", "global_step") else as_dtype_of(value, target)
            for name, value in self._tensors.items()
        }
        return apply_op(
            op,
            var=var.handle if resource else var,
            accum=accum.handle if resource else accum,
            accum_decay_power=power.handle if resource else power,
            grad=grad,
            use_locking=self._use_locking,
            **inputs,
            **more,
        )

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        return self._apply("ApplyAdagradDecay", var, grad).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        return self._apply("ResourceApplyAdagradDecay", handle, grad)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        return self._apply("SparseApplyAdagradDecay", var, grad.values, indices=grad.indices).op

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        return self._apply("ResourceSparseApplyAdagradDecay", handle, grad, indices=indices)

    def _embedding_apply_sparse(self, grad: Tensor, var: Any, ids: Tensor) -> Any:
        return self._apply("KvResourceSparseApplyAdagradDecay", var, grad, indices=ids)
