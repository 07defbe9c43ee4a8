"""Moving averages: `tf.train.ExponentialMovingAverage` and the update that it uses.

The averages ("shadow variables") are slots named `<variable>/ExponentialMovingAverage` on their variable's device, so
that an evaluation can restore them in place of the variables. Follows TF 1.15's training/moving_averages.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.collections import GraphKeys
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.default_stack import get_default_graph
from tenfold.ops import control_flow, init_ops, state_ops, variable_scope, variables
from tenfold.ops import math as m
from tenfold.ops.variables import Variable
from tenfold.train import slot_creator
from tenfold_core import dtypes
from tenfold_core.opdefs.runtime_ops import VARIABLE_OPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_AVERAGED = (dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64)


def assign_moving_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """`variable = decay * variable + (1 - decay) * value`; the result is the new average.

    With `zero_debias` the variable is taken to start at zero, and the average is corrected for that by two more
    variables, `biased` and `local_step`.
    """
    with name_scope(name, "AssignMovingAvg", [variable, value, decay]) as scope:
        rest = convert_to_tensor(1.0 - decay, name="decay")
        if rest.dtype.base_dtype != variable.dtype.base_dtype:
            rest = m.cast(rest, variable.dtype.base_dtype)
        if zero_debias:
            return _zero_debiased(variable, value, rest)
        with variable.graph.colocate_with(variable.op):
            return state_ops.assign_sub(variable, (variable - value) * rest, name=scope)


def _zero_debiased(variable: Any, value: Any, rest: Any) -> Any:
    graph = variable.graph
    dtype, zeros = variable.dtype.base_dtype, init_ops.Zeros()
    with variable_scope.variable_scope(variable.name[: -len(":0")], values=[variable, value, rest]):
        with graph.control_dependencies(None), graph.colocate_with(variable.op):
            biased = variable_scope.get_variable(
                _unused("biased"), initializer=zeros, shape=variable.get_shape(), dtype=dtype, trainable=False
            )
            local_step = variable_scope.get_variable(
                _unused("local_step"), initializer=zeros, shape=[], dtype=dtype, trainable=False
            )
        with graph.colocate_with(variable.op):
            average = state_ops.assign_sub(biased, (biased - value) * rest)
            steps = local_step.assign_add(1)
            correction = 1 - m.pow(1.0 - rest, steps)
            return state_ops.assign(variable, average / correction, name=graph.get_name_scope() + "/")


def _unused(name: str) -> str:
    """`name`, or the first of `name_1`, … that the variable scope does not have; `name` if variables are reused."""
    scope = variable_scope.get_variable_scope()
    if scope.reuse:
        return name
    taken = {var.op.name for var in scope.global_variables()}
    candidate, index = name, 0
    while f"{scope.name}/{candidate}" in taken:
        index += 1
        candidate = f"{name}_{index}"
    return candidate


def weighted_moving_average(
    value: Any, decay: Any, weight: Any, truediv: bool = True, collections: Any = None, name: str | None = None
) -> Any:
    """The moving average of `value * weight` over that of `weight`; keeps both in variables."""
    places = [GraphKeys.GLOBAL_VARIABLES] if collections is None else collections
    with variable_scope.variable_scope(name, "WeightedMovingAvg", [value, weight, decay]) as scope:
        averages = []
        for key, part, like in (("value_x_weight", value * weight, value), ("weight", weight, weight)):
            kept = variable_scope.get_variable(
                key,
                shape=like.get_shape(),
                dtype=like.dtype.base_dtype,
                initializer=init_ops.Zeros(),
                trainable=False,
                collections=places,
            )
            averages.append(assign_moving_average(kept, part, decay, zero_debias=False))
        divide = m.truediv if truediv else m.div
        return divide(averages[0], averages[1], name=scope.name)


class ExponentialMovingAverage:
    """Keeps averages of variables and tensors: `average = decay * average + (1 - decay) * value`.

    `num_updates` (a count of steps) makes the decay smaller at first: `min(decay, (1 + n) / (10 + n))`. `zero_debias`
    corrects the averages of tensors, which start at zero; those of variables start at their initial values.
    """

    def __init__(
        self, decay: Any, num_updates: Any = None, zero_debias: bool = False, name: str = "ExponentialMovingAverage"
    ) -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        #: Variable or tensor → its average.
        self._averages: dict[Any, Variable] = {}

    @property
    def name(self) -> str:
        """The name given to the constructor."""
        return self._name

    def apply(self, var_list: Sequence[Any] | None = None) -> Any:
        """An op that updates the averages of `var_list` (default: the trainable variables); makes them if new.

        Raises TypeError for values that are not of a floating type.
        """
        var_list = variables.trainable_variables() if var_list is None else var_list
        from_zero: set[Any] = set()
        for var in var_list:
            if var.dtype.base_dtype not in _AVERAGED:
                raise TypeError(f"The variables must be half, float, or double: {var.name}")
            if var in self._averages:
                continue
            with get_default_graph().control_dependencies(None):
                if isinstance(var, Variable):
                    average = slot_creator.create_slot(var, var.initialized_value(), self.name)
                    # the collection holds what is averaged, not the averages
                    get_default_graph().add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, var)
                else:
                    held = var.op.type in VARIABLE_OPS
                    average = slot_creator.create_zeros_slot(var, self.name, colocate_with_primary=held)
                    if self._zero_debias:
                        from_zero.add(average)
            self._averages[var] = average
        with name_scope(self.name) as scope:
            decay = convert_to_tensor(self._decay, name="decay")
            if self._num_updates is not None:
                count = m.cast(self._num_updates, dtypes.float32, name="num_updates")
                decay = m.minimum(decay, (1.0 + count) / (10.0 + count))
            updates = []
            for var in var_list:
                average = self._averages[var]
                updates.append(assign_moving_average(average, var, decay, zero_debias=average in from_zero))
            return control_flow.group(*updates, name=scope)

    def average(self, var: Any) -> Variable | None:
        """The variable that holds the average of `var`, or None if none is kept."""
        return self._averages.get(var)

    def average_name(self, var: Any) -> str:
        """The name that the average of `var` has, or would have; for restoring it in another graph."""
        if var in self._averages:
            return self._averages[var].op.name
        return get_default_graph().unique_name(f"{var.op.name}/{self.name}", mark_as_used=False)

    def variables_to_restore(self, moving_avg_variables: Iterable[Any] | None = None) -> dict[str, Any]:
        """Checkpoint name → variable, for a Saver that loads averages into `moving_avg_variables`.

        Those are by default the trainable and the averaged ones; all other global variables keep their own names.
        """
        if moving_avg_variables is None:
            moving_avg_variables = variables.trainable_variables() + variables.moving_average_variables()
        averaged = list(dict.fromkeys(moving_avg_variables))
        names = {self.average_name(var): var for var in averaged}
        taken = {var.name for var in averaged}
        for var in variables.global_variables():
            if var.name not in taken and var.op.name not in names:
                names[var.op.name] = var
        return names
