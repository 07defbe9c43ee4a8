"""`tf.saved_model.main_op`: operations for a model to run once it is loaded. As TF 1.15's main_op_impl.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.graph import control_dependencies, get_default_graph
from tenfold.ops.control_flow import group
from tenfold.ops.lookup import tables_initializer
from tenfold.ops.variable_lists import global_variables_initializer, local_variables_initializer

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation

__all__ = ["main_op", "main_op_with_restore"]


def main_op() -> Operation:
    """An operation that initializes all global and local variables and fills all tables of the default graph."""
    return group(global_variables_initializer(), local_variables_initializer(), tables_initializer())


def main_op_with_restore(restore_op_name: str | Operation) -> Operation:
    """`main_op`, and then the operation that restores the variables, by name.

    Raises KeyError if the default graph has no such operation.
    """
    restore = get_default_graph().as_graph_element(restore_op_name)
    with control_dependencies([main_op()]):
        return group(restore)
