"""Proximal gradient descent: a gradient step, then shrinking by L1 and L2 in closed form.

Needs no slots. Follows TensorFlow's training/proximal_gradient_descent.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.train.rule_optimizer import RuleOptimizer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold.graph.argument_types import RateLike


class ProximalGradientDescentOptimizer(RuleOptimizer):
    """The hyperparameters are floats or scalar tensors."""

    _gradient_input = "delta"

    def __init__(
        self,
        learning_rate: RateLike,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _family(self) -> str:
        return "ProximalGradientDescent"

    def _hyperparameters(self) -> Mapping[str, tuple[str, Any]]:
        return {
            "alpha": ("learning_rate", self._learning_rate),
            "l1": ("l1_regularization_strength", self._l1_regularization_strength),
            "l2": ("l2_regularization_strength", self._l2_regularization_strength),
        }
