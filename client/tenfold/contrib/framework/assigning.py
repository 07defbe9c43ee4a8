"""Assigning variables from values and from checkpoints; the values are fed and stay out of the graph.

Exported by contrib/framework/__init__.py. Follows TF 1.15's contrib/framework/python/ops/variables.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold import logging
from tenfold.contrib.framework.made_variables import get_variable_full_name
from tenfold.graph import get_collection
from tenfold.graph.collections import GraphKeys
from tenfold.ops import array, control_flow
from tenfold.train.checkpoint_utils import CheckpointReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


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
    reader = CheckpointReader(model_path)
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
        reader = CheckpointReader(model_path)
        named = var_list if isinstance(var_list, dict) else {var.op.name: var for var in var_list}
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
