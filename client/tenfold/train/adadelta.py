"""Adadelta: the step of each element is the ratio of running root mean squares of updates and of gradients.

Slots: `<variable>/Adadelta` and `<variable>/Adadelta_1`. Follows TensorFlow's training/adadelta.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.train.rule_optimizer import RuleOptimizer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.graph.argument_types import RateLike


class AdadeltaOptimizer(RuleOptimizer):
    """The hyperparameters are floats, scalar tensors, or functions that return one. `rho` discounts the history."""

    def __init__(
        self,
        learning_rate: RateLike = 0.001,
        rho: Any = 0.95,
        epsilon: RateLike = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._rho = rho
        self._epsilon = epsilon

    def _family(self) -> str:
        return "Adadelta"

    def _slot_inputs(self) -> Mapping[str, str]:
        return {"accum": "accum", "accum_update": "accum_update"}

    def _hyperparameters(self) -> Mapping[str, tuple[str, Any]]:
        return {"lr": ("lr", self._lr), "rho": ("rho", self._rho), "epsilon": ("epsilon", self._epsilon)}

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "accum", self._name)
            self._zeros_slot(var, "accum_update", self._name)
