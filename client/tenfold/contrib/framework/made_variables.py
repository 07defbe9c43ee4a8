"""Variables of contrib: made with a device, kept as model variables, found by scope, suffix or name.

Exported by variables.py beside it; assigning.py gives them values. Follows TF 1.15's
contrib/framework/python/ops/variables.py.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from tenfold.contrib.arg_scope import add_arg_scope
from tenfold.graph import add_to_collection, get_collection
from tenfold.graph import device as device_scope
from tenfold.graph.collections import GraphKeys
from tenfold.ops import variable_scope
from tenfold.ops import variables as variables_module
from tenfold.ops.variables import VariableAggregation, VariableSynchronization
from tenfold.train.training_util import assert_global_step, get_global_step
from tenfold_core import dtypes
from tenfold_core.device import DeviceSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.graph import Graph


def assert_or_get_global_step(graph: Graph | None = None, global_step_tensor: Any = None) -> Any:
    """The given global step, checked; else the graph's; None if there is none."""
    if global_step_tensor is None:
        return get_global_step(graph)
    assert_global_step(global_step_tensor)
    return global_step_tensor


# -- making variables --------------------------------------------------------------------------------------------------


def local_variable(
    initial_value: Any, validate_shape: bool = True, name: str | None = None, use_resource: bool | None = None
) -> Any:
    """A local variable: in LOCAL_VARIABLES, not trained, not saved."""
    return _kept_in(GraphKeys.LOCAL_VARIABLES, initial_value, validate_shape, name, use_resource)


def global_variable(
    initial_value: Any, validate_shape: bool = True, name: str | None = None, use_resource: bool | None = None
) -> Any:
    """A variable that is saved, and not trained."""
    return _kept_in(GraphKeys.GLOBAL_VARIABLES, initial_value, validate_shape, name, use_resource)


def _kept_in(key: str, value: Any, validate_shape: bool, name: str | None, use_resource: bool | None) -> Any:
    return variables_module.Variable(
        value,
        trainable=False,
        collections=[key],
        validate_shape=validate_shape,
        name=name,
        use_resource=use_resource,
    )


@add_arg_scope
def variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    use_resource: bool | None = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Any:
    """`tf.get_variable` with a `device` argument; a `custom_getter` takes its place, with the same arguments."""
    getter: Any = variable_scope.get_variable
    if custom_getter is not None:
        getter = functools.partial(custom_getter, reuse=variable_scope.get_variable_scope().reuse)
    keys = [GraphKeys.GLOBAL_VARIABLES] if collections is None else collections
    with device_scope(device or ""):
        return getter(
            name,
            shape=shape,
            dtype=dtype,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
            collections=list(dict.fromkeys(keys)),
            caching_device=caching_device,
            partitioner=partitioner,
            use_resource=use_resource,
            synchronization=synchronization,
            aggregation=aggregation,
        )


@add_arg_scope
def model_variable(
    name: str,
    shape: Any = None,
    dtype: Any = dtypes.float32,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    use_resource: bool | None = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Any:
    """`variable`, also in MODEL_VARIABLES."""
    return variable(
        name,
        shape=shape,
        dtype=dtype,
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
        collections=[*(collections or ()), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES],
        caching_device=caching_device,
        device=device,
        partitioner=partitioner,
        custom_getter=custom_getter,
        use_resource=use_resource,
        synchronization=synchronization,
        aggregation=aggregation,
    )


def add_model_variable(var: Any) -> None:
    """Adds a variable to MODEL_VARIABLES, once."""
    if not any(each is var for each in get_collection(GraphKeys.MODEL_VARIABLES)):
        add_to_collection(GraphKeys.MODEL_VARIABLES, var)


# -- finding variables -------------------------------------------------------------------------------------------------


def get_variables(
    scope: Any = None, suffix: str | None = None, collection: str = GraphKeys.GLOBAL_VARIABLES
) -> list[Any]:
    """The variables of a collection whose names start with `scope` (a regular expression) and end with `suffix`."""
    if isinstance(scope, variable_scope.VariableScope):
        scope = scope.name
    if suffix is not None:
        scope = f"{scope or ''}.*{suffix}{'' if ':' in suffix else ':'}"
    return list(get_collection(collection, scope))


def get_model_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of MODEL_VARIABLES."""
    return get_variables(scope, suffix, GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of LOCAL_VARIABLES."""
    return get_variables(scope, suffix, GraphKeys.LOCAL_VARIABLES)


def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of TRAINABLE_VARIABLES."""
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


def get_variables_by_suffix(suffix: str, scope: Any = None) -> list[Any]:
    """The global variables whose names end with `suffix`."""
    return get_variables(scope=scope, suffix=suffix)


def get_variables_by_name(given_name: str, scope: Any = None) -> list[Any]:
    """The variables of that name in any scope."""
    return get_variables(scope=scope, suffix=f"/{given_name}:|^{given_name}:")


def get_unique_variable(var_op_name: str) -> Any:
    """The variable of that full name. Raises ValueError."""
    found = get_variables(scope=var_op_name)
    if not found:
        raise ValueError(f"Couldn't find variable {var_op_name}")
    for each in found:
        if each.op.name == var_op_name:
            return each
    raise ValueError(f"Variable {var_op_name} does not uniquely identify a variable")


def get_variables_to_restore(include: Sequence[str] | None = None, exclude: Sequence[str] | None = None) -> list[Any]:
    """The global variables under one of the scopes `include` (default: all) and under none of `exclude`.

    Raises TypeError for scopes that are not a list or tuple.
    """
    for name, scopes in (("include", include), ("exclude", exclude)):
        if scopes is not None and not isinstance(scopes, (list, tuple)):
            raise TypeError(f"{name} is provided but is not a list or a tuple.")
    kept = get_variables() if include is None else [each for scope in include for each in get_variables(scope)]
    left_out = {id(each) for scope in exclude or () for each in get_variables(scope)}
    return [each for each in kept if id(each) not in left_out]


def filter_variables(
    var_list: Sequence[Any],
    include_patterns: Sequence[str] | None = None,
    exclude_patterns: Sequence[str] | None = None,
    reg_search: bool = True,
) -> list[Any]:
    """The variables whose names one of `include_patterns` matches and none of `exclude_patterns`.

    The patterns are searched for, or with `reg_search` false matched from the start.
    """
    match = re.search if reg_search else re.match

    def fits(name: str, patterns: Sequence[str]) -> bool:
        return any(match(pattern, name) for pattern in patterns)

    kept = [each for each in var_list if include_patterns is None or fits(each.name, include_patterns)]
    return [each for each in kept if exclude_patterns is None or not fits(each.name, exclude_patterns)]


def get_variable_full_name(var: Any) -> str:
    """The variable's name in a checkpoint: a partition has the name of the partitioned variable."""
    info = var._save_slice_info
    return str(info.full_name if info else var.op.name)


class VariableDeviceChooser:
    """Device function that hands out the tasks of a job in turn: a variable's device for `tf.device` and arg scopes.

    Without tasks the device is of this process.
    """

    def __init__(
        self,
        num_tasks: int = 0,
        job_name: str = "ps",
        device_type: str = "CPU",
        device_index: int = 0,
        replica: int | None = None,
    ) -> None:
        self._num_tasks = num_tasks
        self._job_name = job_name
        self._device_type = device_type
        self._device_index = device_index
        self._replica = replica
        self._next_task_id = 0

    def __call__(self, op: Any) -> str:
        place: dict[str, Any] = {}
        if self._num_tasks > 0:
            place = {"job": self._job_name, "task": self._next_task_id}
            self._next_task_id = (self._next_task_id + 1) % self._num_tasks
        spec = DeviceSpec(
            replica=self._replica, device_type=self._device_type, device_index=self._device_index, **place
        )
        return spec.to_string()
