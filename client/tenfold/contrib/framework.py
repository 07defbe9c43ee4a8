"""`tf.contrib.framework`: the global step, variables by scope, and assigning from checkpoints.

The names that guides and tutorials use. Follows TF 1.15's contrib/framework/python/ops/variables.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold import logging, nest
from tenfold.contrib.arg_scope import (
    add_arg_scope,
    arg_scope,
    arg_scope_func_key,
    arg_scoped_arguments,
    current_arg_scope,
    has_arg_scope,
)
from tenfold.graph import add_to_collection, convert_to_tensor, device, get_collection
from tenfold.graph.collections import GraphKeys
from tenfold.graph.sparse_tensor import convert_to_tensor_or_sparse_tensor
from tenfold.graph.tensor import Tensor
from tenfold.ops import array, control_flow, variable_scope
from tenfold.ops import variables as variables_module
from tenfold.ops.array_sort import argsort, sort
from tenfold.ops.script_ops import py_func
from tenfold.train.checkpoint_utils import init_from_checkpoint, list_variables, load_checkpoint, load_variable
from tenfold.train.training_util import (
    assert_global_step,
    create_global_step,
    get_global_step,
    get_or_create_global_step,
)
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold.graph.graph import Graph

__all__ = [
    "add_arg_scope",
    "add_model_variable",
    "arg_scope",
    "arg_scope_func_key",
    "arg_scoped_arguments",
    "argsort",
    "assert_global_step",
    "assert_or_get_global_step",
    "assign_from_checkpoint",
    "assign_from_checkpoint_fn",
    "assign_from_values",
    "assign_from_values_fn",
    "convert_to_tensor_or_sparse_tensor",
    "create_global_step",
    "current_arg_scope",
    "filter_variables",
    "get_global_step",
    "get_local_variables",
    "get_model_variables",
    "get_or_create_global_step",
    "get_trainable_variables",
    "get_unique_variable",
    "get_variable_full_name",
    "get_variables",
    "get_variables_by_name",
    "get_variables_by_suffix",
    "get_variables_to_restore",
    "global_variable",
    "has_arg_scope",
    "init_from_checkpoint",
    "is_tensor",
    "list_variables",
    "load_checkpoint",
    "load_variable",
    "local_variable",
    "model_variable",
    "nest",
    "py_func",
    "sort",
    "variable",
    "with_shape",
]


def assert_or_get_global_step(graph: Graph | None = None, global_step_tensor: Any = None) -> Any:
    """The given global step, checked; else the graph's; None if there is none."""
    if global_step_tensor is None:
        return get_global_step(graph)
    assert_global_step(global_step_tensor)
    return global_step_tensor


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor or a variable."""
    return isinstance(x, (Tensor, variables_module.Variable))


def with_shape(expected_shape: Sequence[int | None], tensor: Any) -> Any:
    """The tensor with that static shape. Raises ValueError if they contradict each other."""
    tensor = convert_to_tensor(tensor)
    tensor.set_shape(expected_shape)
    return tensor


# -- making variables --------------------------------------------------------------------------------------------------


@add_arg_scope
def local_variable(initial_value: Any, validate_shape: bool = True, name: str | None = None) -> Any:
    """A local variable: in LOCAL_VARIABLES, not trained, not saved."""
    return variables_module.Variable(
        initial_value,
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES],
        validate_shape=validate_shape,
        name=name,
    )


@add_arg_scope
def global_variable(initial_value: Any, validate_shape: bool = True, name: str | None = None) -> Any:
    """A variable that is saved, and not trained."""
    return variables_module.Variable(
        initial_value,
        trainable=False,
        collections=[GraphKeys.GLOBAL_VARIABLES],
        validate_shape=validate_shape,
        name=name,
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
) -> Any:
    """`tf.get_variable` with a `device` argument."""
    return _get(
        device,
        custom_getter,
        name,
        shape=shape,
        dtype=dtype,
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
        collections=list(dict.fromkeys(collections or [GraphKeys.GLOBAL_VARIABLES])),
        caching_device=caching_device,
        partitioner=partitioner,
        use_resource=use_resource,
    )


def _get(where: Any, custom_getter: Any, name: str, **arguments: Any) -> Any:
    with device(where or ""):
        if custom_getter is not None:
            return custom_getter(variable_scope.get_variable, name, **arguments)
        return variable_scope.get_variable(name, **arguments)


@add_arg_scope
def model_variable(
    name: str,
    shape: Any = None,
    dtype: Any = dtypes.float32,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    **options: Any,
) -> Any:
    """`variable`, also in MODEL_VARIABLES."""
    keys = [*(collections or ()), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    return variable(name, shape, dtype, initializer, regularizer, trainable, keys, **options)


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
    return get_variables(scope, suffix, GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    return get_variables(scope, suffix, GraphKeys.LOCAL_VARIABLES)


def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


def get_variables_by_suffix(suffix: str, scope: Any = None) -> list[Any]:
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
    import re

    match = re.search if reg_search else re.match

    def fits(name: str, patterns: Sequence[str]) -> bool:
        return any(match(pattern, name) for pattern in patterns)

    kept = [each for each in var_list if include_patterns is None or fits(each.op.name, include_patterns)]
    return [each for each in kept if exclude_patterns is None or not fits(each.op.name, exclude_patterns)]


def get_variable_full_name(var: Any) -> str:
    """The variable's name in a checkpoint: a partition has the name of the partitioned variable."""
    info = var._save_slice_info
    return str(info.full_name if info else var.op.name)


# -- assigning ---------------------------------------------------------------------------------------------------------


def assign_from_values(var_names_to_values: Mapping[str, Any]) -> tuple[Any, dict[Any, Any]]:
    """(op, feeds) that set variables, by name, to values which the step feeds and the graph does not hold.

    Raises ValueError unless exactly one variable has the name.
    """
    pairs = []
    for name, value in var_names_to_values.items():
        found = get_collection(GraphKeys.GLOBAL_VARIABLES, name)
        if not found:
            raise ValueError(f"Variable {name} wasn't found")
        var = found[0] if len(found) == 1 else next((each for each in found if each.op.name == name), None)
        if var is None:
            raise ValueError(f"Variable {name} doesn't uniquely identify a variable")
        pairs.append((var, np.asarray(value).reshape(var.get_shape().as_list())))
    return _assignment(pairs)


def assign_from_values_fn(var_names_to_values: Mapping[str, Any]) -> Callable[[Any], Any]:
    """A function that takes a session and assigns as `assign_from_values`."""
    op, feeds = assign_from_values(var_names_to_values)
    return lambda session: session.run(op, feeds)


def assign_from_checkpoint(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False
) -> tuple[Any, dict[Any, Any]]:
    """(op, feeds) that set variables (a list, or name in the checkpoint → variable or partitions) to saved values.

    Raises ValueError for a variable that the checkpoint lacks, unless `ignore_missing_vars`, or of another shape.
    """
    groups: dict[str, list[Any]] = {}
    if isinstance(var_list, (list, tuple)):
        for var in var_list:
            groups.setdefault(get_variable_full_name(var), []).append(var)
    else:
        groups = {name: list(each) if isinstance(each, (list, tuple)) else [each] for name, each in var_list.items()}
    reader = load_checkpoint(model_path)
    pairs = []
    for name, variables in groups.items():
        if not reader.has_tensor(name):
            if not ignore_missing_vars:
                raise ValueError(f"Checkpoint is missing variable [{name}]")
            logging.warning("Checkpoint is missing variable [%s]", name)
            continue
        whole = np.asarray(reader.get_tensor(name))
        pairs += [(var, _part(name, whole, var)) for var in variables]
    return _assignment(pairs)


def assign_from_checkpoint_fn(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False, reshape_variables: bool = False
) -> Callable[[Any], Any] | None:
    """A function that takes a session and restores the variables; None if there are none to restore.

    Raises ValueError if `var_list` is empty.
    """
    from tenfold.train.saver import Saver

    if not var_list:
        raise ValueError("var_list cannot be empty")
    if ignore_missing_vars:
        reader = load_checkpoint(model_path)
        named = var_list if isinstance(var_list, dict) else {get_variable_full_name(var): var for var in var_list}
        for name in [name for name in named if not reader.has_tensor(name)]:
            logging.warning("Variable %s missing in checkpoint %s", name, model_path)
        var_list = {name: var for name, var in named.items() if reader.has_tensor(name)}
    if not var_list:
        logging.warning("No Variables to restore")
        return None
    saver = Saver(var_list, reshape=reshape_variables)
    return lambda session: saver.restore(session, model_path)


def _part(name: str, whole: np.ndarray, var: Any) -> np.ndarray:
    """The part of the saved value that belongs to the variable, which may be a partition."""
    info = var._save_slice_info
    if info:
        slices = tuple(slice(at, at + size) for at, size in zip(info.var_offset, info.var_shape, strict=True))
        return whole[slices].reshape(info.var_shape)
    if var.get_shape().as_list() != list(whole.shape):
        raise ValueError(
            f"Total size of new array must be unchanged for {name} lh_shape: [{whole.shape}], "
            f"rh_shape: [{var.get_shape()}]"
        )
    return whole


def _assignment(pairs: Sequence[tuple[Any, np.ndarray]]) -> tuple[Any, dict[Any, Any]]:
    feeds: dict[Any, Any] = {}
    assigned = []
    for var, value in pairs:
        fed = array.placeholder(dtype=var.dtype.base_dtype, shape=var.get_shape(), name=f"placeholder/{var.op.name}")
        assigned.append(var.assign(fed))
        feeds[fed] = value
    return control_flow.group(*assigned), feeds
