"""RMSProp: steps are divided by a running root mean square of the gradient, with momentum on top.

`centered` subtracts the running mean first, so that the divisor is a standard deviation. Slots: `<variable>/RMSProp`,
`…_1` and, if centered, `…_2`. Follows TensorFlow's training/rmsprop.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.ops import array as array_ops
from tenfold.ops import init_ops
from tenfold.train.rule_optimizer import RuleOptimizer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.graph.argument_types import RateLike


class RMSPropOptimizer(RuleOptimizer):
    """The hyperparameters are floats, scalar tensors, or functions that return one. `decay` discounts the history."""

    def __init__(
        self,
        learning_rate: RateLike,
        decay: Any = 0.9,
        momentum: RateLike = 0.0,
        epsilon: RateLike = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._decay = decay
        self._momentum = momentum
        self._epsilon = epsilon
        self._centered = centered

    def _family(self) -> str:
        return "CenteredRMSProp" if self._centered else "RMSProp"

    def _slot_inputs(self) -> Mapping[str, str]:
        slots = {"ms": "rms", "mom": "momentum"}
        return {"mg": "mg", **slots} if self._centered else slots

    def _hyperparameters(self) -> Mapping[str, tuple[str, Any]]:
        return {
            "lr": ("learning_rate", self._learning_rate),
            "rho": ("decay", self._decay),
            "momentum": ("momentum", self._momentum),
            "epsilon": ("epsilon", self._epsilon),
        }

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            dtype, shape = var.dtype.base_dtype, var.get_shape()
            # ones, so that the first steps are not divided by almost zero
            ones = init_ops.Ones(dtype=dtype) if shape.is_fully_defined() else array_ops.ones_like(var)
            self._get_or_make_slot_with_initializer(var, ones, shape, dtype, "rms", self._name)
            if self._centered:
                self._zeros_slot(var, "mg", self._name)
            self._zeros_slot(var, "momentum", self._name)
