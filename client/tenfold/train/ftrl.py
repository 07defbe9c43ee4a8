"""FTRL-proximal: follow the regularized leader, with L1, L2 and L2 shrinkage; for sparse linear models.

Slots: `<variable>/Ftrl` (sum of squared gradients) and `<variable>/Ftrl_1` (the linear part), other names on request.
Follows TensorFlow's training/ftrl.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.ops import array as array_ops
from tenfold.train.rule_optimizer import RuleOptimizer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.graph.argument_types import RateLike


class FtrlOptimizer(RuleOptimizer):
    """`learning_rate_power` -0.5 gives Adagrad's decay, 0 a fixed rate.

    Raises ValueError for a negative strength or a positive power.
    """

    def __init__(
        self,
        learning_rate: RateLike,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
    ) -> None:
        super().__init__(use_locking, name)
        if learning_rate_power > 0.0:
            raise ValueError(f"learning_rate_power {learning_rate_power:f} needs to be negative or zero")
        for what, value in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength),
        ):
            if value < 0.0:
                raise ValueError(f"{what} {value:f} needs to be positive or zero")
        self._learning_rate = learning_rate
        self._learning_rate_power = learning_rate_power
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self._accum_name = accum_name
        self._linear_name = linear_name

    def _shrinks(self) -> bool:
        return self._l2_shrinkage_regularization_strength > 0.0

    def _family(self) -> str:
        return "FtrlV2" if self._shrinks() else "Ftrl"

    def _slot_inputs(self) -> Mapping[str, str]:
        return {"accum": "accum", "linear": "linear"}

    def _hyperparameters(self) -> Mapping[str, tuple[str, Any]]:
        rows = {
            "lr": ("learning_rate", self._learning_rate),
            "l1": ("l1_regularization_strength", self._l1_regularization_strength),
            "l2": ("l2_regularization_strength", self._l2_regularization_strength),
            "lr_power": ("learning_rate_power", self._learning_rate_power),
        }
        if self._shrinks():
            shrinkage = self._l2_shrinkage_regularization_strength
            rows["l2_shrinkage"] = ("l2_shrinkage_regularization_strength", shrinkage)
        return rows

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            with var.graph.colocate_with(var.op):
                start = array_ops.constant(
                    self._initial_accumulator_value, dtype=var.dtype.base_dtype, shape=var.get_shape()
                )
                self._get_or_make_slot(var, start, "accum", self._accum_name or self._name)
                self._zeros_slot(var, "linear", self._linear_name or self._name)
