"""The graph's lists of variables, and operations over a whole list: initialize, report, check.

variables.py exports them. Follows TensorFlow's ops/variables.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.collections import GraphKeys
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops
from tenfold.ops import state_ops
from tenfold.ops.control_flow import group, no_op
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.operation import Operation


def global_variables(scope: str | None = None) -> list[Any]:
    """The variables shared between processes; with `scope`, those whose name begins with a match of that regex."""
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def all_variables() -> list[Any]:
    """Old name of `global_variables`."""
    return global_variables()


def local_variables(scope: str | None = None) -> list[Any]:
    """The variables of this process only, such as counters; usually not saved."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Any]:
    """The variables in MODEL_VARIABLES."""
    return get_default_graph().get_collection(GraphKeys.MODEL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """The variables made with `trainable=True`: what an optimizer trains by default."""
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """The variables of which moving averages are kept."""
    return get_default_graph().get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def variables_initializer(var_list: Sequence[Any], name: str = "init") -> Operation:
    """An operation that runs the initializers of `var_list`, in parallel. Does nothing for an empty list."""
    result: Operation = group(*[v.initializer for v in var_list], name=name) if var_list else no_op(name=name)
    return result


def initialize_variables(var_list: Sequence[Any], name: str = "init") -> Operation:
    """Old name of `variables_initializer`."""
    return variables_initializer(var_list, name=name)


def global_variables_initializer() -> Operation:
    """An operation that initializes all global variables made so far."""
    return variables_initializer(global_variables())


def initialize_all_variables() -> Operation:
    """Old name of `global_variables_initializer`."""
    return global_variables_initializer()


def local_variables_initializer() -> Operation:
    """An operation that initializes all local variables made so far."""
    return variables_initializer(local_variables())


def initialize_local_variables() -> Operation:
    """Old name of `local_variables_initializer`."""
    return local_variables_initializer()


def is_variable_initialized(variable: Any) -> Any:
    """A scalar bool tensor: whether `variable` has a value."""
    return state_ops.is_variable_initialized(variable)


def assert_variables_initialized(var_list: Sequence[Any] | None = None) -> Any:
    """Fails in a step with FailedPreconditionError unless all variables have values; None if there are none."""
    if var_list is None:
        var_list = global_variables() + local_variables()
    if not var_list:
        return None
    ranks = []
    for variable in var_list:
        with variable.graph.colocate_with(variable.op):
            ranks.append(apply_op("Rank", input=variable))
    return ranks[0] if len(ranks) == 1 else apply_op("Pack", values=ranks)


def report_uninitialized_variables(
    var_list: Sequence[Any] | None = None, name: str = "report_uninitialized_variables"
) -> Any:
    """A string vector: the names of the variables without a value, by default among all global and local ones."""
    if var_list is None:
        var_list = global_variables() + local_variables()
    graph = get_default_graph()
    with graph.name_scope(name):
        flags = [is_variable_initialized(variable) for variable in var_list]
        with graph.device("/cpu:0"):
            if not var_list:
                # An empty vector, so that callers need only look at the size.
                return array_ops.constant([], dtype=dtypes.string)
            missing = apply_op("LogicalNot", x=apply_op("Pack", values=flags, name="stack"))
            names = array_ops.constant([variable.op.name for variable in var_list])
            with graph.name_scope("boolean_mask"):
                where = apply_op("Squeeze", input=apply_op("Where", input=missing), squeeze_dims=[1])
                return apply_op("GatherV2", params=names, indices=where, axis=0)
