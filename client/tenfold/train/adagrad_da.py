"""Adagrad dual averaging: each step computes the weights from sums of gradients, so that unused ones stay zero.

Slots: `<variable>/AdagradDA` and `<variable>/AdagradDA_1`, sums of gradients and of their squares.
Follows TensorFlow's training/adagrad_da.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.ops import array as array_ops
from tenfold.ops import math as math_ops
from tenfold.train.rule_optimizer import RuleOptimizer
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.graph.argument_types import RateLike


class AdagradDAOptimizer(RuleOptimizer):
    """`global_step` is the variable that counts steps; the update needs it. Raises ValueError as Adagrad does."""

    def __init__(
        self,
        learning_rate: RateLike,
        global_step: Any,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        if initial_gradient_squared_accumulator_value <= 0.0:
            raise ValueError(
                "initial_gradient_squared_accumulator_value must be positive: "
                f"{initial_gradient_squared_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_gradient_squared_accumulator_value = initial_gradient_squared_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._global_step = global_step
        self._global_step_on_worker: Any = None

    def _family(self) -> str:
        return "AdagradDA"

    def _slot_inputs(self) -> Mapping[str, str]:
        return {key: key for key in ("gradient_accumulator", "gradient_squared_accumulator")}

    def _hyperparameters(self) -> Mapping[str, tuple[str, Any]]:
        return {
            "lr": ("learning_rate", self._learning_rate),
            "l1": ("l1_regularization_strength", self._l1_regularization_strength),
            "l2": ("l2_regularization_strength", self._l2_regularization_strength),
        }

    def _prepare(self) -> None:
        super()._prepare()
        rate = self._scalar_tensors["lr"]
        with rate.graph.colocate_with(rate):
            # copied to the worker once; the count includes the step being made
            step = array_ops.identity(self._global_step) + 1
            self._global_step_on_worker = math_ops.cast(step, dtypes.int64)

    def _other_inputs(self, var: Any) -> Mapping[str, Any]:
        with var.graph.device(var.device):
            return {"global_step": array_ops.identity(self._global_step_on_worker)}

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            dtype, shape = var.dtype.base_dtype, var.get_shape()
            with var.graph.colocate_with(var.op):
                sums = array_ops.constant(0.0, shape=shape, dtype=dtype)
                squares = array_ops.constant(self._initial_gradient_squared_accumulator_value, shape=shape, dtype=dtype)
            self._get_or_make_slot(var, sums, "gradient_accumulator", self._name)
            self._get_or_make_slot(var, squares, "gradient_squared_accumulator", self._name)
