"""The global step: the variable that counts training steps, found by name or collection.

Optimizers increment it (`minimize(loss, global_step=…)`), hooks and learning-rate schedules read it.
Follows TensorFlow's training/training_util.py.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.collections import GraphKeys
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.tensor import Tensor
from tenfold.ops import init_ops, state_ops, variable_scope
from tenfold.ops.casts import cast
from tenfold.ops.variables import Variable, VariableAggregation
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.graph import Graph

GLOBAL_STEP_READ_KEY = "global_step_read_op_cache"

_log = logging.getLogger("tenfold")


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The value of the global step in the session `sess`. Blocks."""
    return int(np.reshape(sess.run(global_step_tensor), ()))


def step_of_updates() -> Any:
    """The global step as an int64 scalar, for updates that note when they were; 0 in a graph without one."""
    step = get_global_step()
    return convert_to_tensor(0, dtype=dtypes.int64) if step is None else cast(step, dtypes.int64)


def get_global_step(graph: Graph | None = None) -> Any:
    """The global step of the graph: the one item of its GLOBAL_STEP collection, or `global_step:0`; None without.

    Raises TypeError if what is there is not an integer scalar.
    """
    graph = graph or get_default_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(found) > 1:
        _log.error("Multiple tensors in global_step collection.")
        return None
    if found:
        step = found[0]
    else:
        try:
            step = graph.get_tensor_by_name("global_step:0")
        except KeyError:
            return None
    assert_global_step(step)
    return step


def create_global_step(graph: Graph | None = None) -> Any:
    """Makes the global step: an int64 variable, zero at first, in GLOBAL_STEP. Raises ValueError if there is one."""
    graph = graph or get_default_graph()
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    with graph.as_default(), graph.name_scope(None):
        return variable_scope.get_variable(
            GraphKeys.GLOBAL_STEP,
            shape=[],
            dtype=dtypes.int64,
            initializer=init_ops.Zeros(),
            trainable=False,
            aggregation=VariableAggregation.ONLY_FIRST_REPLICA,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )


def get_or_create_global_step(graph: Graph | None = None) -> Any:
    """The global step of the graph, made if there is none."""
    graph = graph or get_default_graph()
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def assert_global_step(global_step_tensor: Any) -> None:
    """Raises TypeError unless the argument is a variable or tensor, an integer, and a scalar."""
    if not isinstance(global_step_tensor, (Variable, Tensor)):
        raise TypeError(f'Existing "global_step" must be a Variable or Tensor: {global_step_tensor}.')
    if not global_step_tensor.dtype.base_dtype.is_integer:
        raise TypeError(f'Existing "global_step" does not have integer type: {global_step_tensor.dtype}')
    shape = global_step_tensor.get_shape()
    if shape.ndims != 0 and shape.is_fully_defined():
        raise TypeError(f'Existing "global_step" is not scalar: {shape}')


def _get_global_step_read(graph: Graph | None = None) -> Any:
    graph = graph or get_default_graph()
    reads = graph.get_collection(GLOBAL_STEP_READ_KEY)
    if len(reads) > 1:
        raise RuntimeError(f"There are multiple items in collection {GLOBAL_STEP_READ_KEY}. There should be only one.")
    return reads[0] if reads else None


def _get_or_create_global_step_read(graph: Graph | None = None) -> Any:
    """A read of the global step that is made once and orders increments after it; None without a global step."""
    graph = graph or get_default_graph()
    read = _get_global_step_read(graph)
    if read is not None:
        return read
    step = get_global_step(graph)
    if step is None:
        return None
    with graph.as_default(), graph.name_scope(None), graph.name_scope(step.op.name + "/"):
        # The initialized value: hooks may read it before the variables are initialized.
        value = step.initialized_value() if isinstance(step, Variable) else step
        read = value + 0
        graph.add_to_collection(GLOBAL_STEP_READ_KEY, read)
    return read


def _increment_global_step(increment: int, graph: Graph | None = None) -> Any:
    """Adds `increment` to the global step, after it was read. Raises ValueError without a global step."""
    graph = graph or get_default_graph()
    step = get_global_step(graph)
    if step is None:
        raise ValueError(
            "Global step tensor should be created by tf.train.get_or_create_global_step before calling increment."
        )
    read = _get_or_create_global_step_read(graph)
    with (
        graph.as_default(),
        graph.name_scope(None),
        graph.name_scope(step.op.name + "/"),
        graph.control_dependencies([read]),
    ):
        return state_ops.assign_add(step, increment)
