"""Proximal Adagrad: Adagrad's step, then shrinking by L1 and L2 in closed form.

Slot: `<variable>/ProximalAdagrad`. Follows TensorFlow's training/proximal_adagrad.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.ops import array as array_ops
from tenfold.train.rule_optimizer import RuleOptimizer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.graph.argument_types import RateLike


class ProximalAdagradOptimizer(RuleOptimizer):
    """The hyperparameters are floats or scalar tensors; the accumulator must start positive, otherwise ValueError."""

    def __init__(
        self,
        learning_rate: RateLike,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _family(self) -> str:
        return "ProximalAdagrad"

    def _slot_inputs(self) -> Mapping[str, str]:
        return {"accum": "accumulator"}

    def _hyperparameters(self) -> Mapping[str, tuple[str, Any]]:
        return {
            "lr": ("learning_rate", self._learning_rate),
            "l1": ("l1_regularization_strength", self._l1_regularization_strength),
            "l2": ("l2_regularization_strength", self._l2_regularization_strength),
        }

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            with var.graph.colocate_with(var.op):
                start = array_ops.constant(
                    self._initial_accumulator_value, shape=var.get_shape(), dtype=var.dtype.base_dtype
                )
            self._get_or_make_slot(var, start, "accumulator", self._name)
