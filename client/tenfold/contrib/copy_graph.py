"""`tf.contrib.copy_graph`: variables and operations copied from one graph to another.

Follows TensorFlow 1.15's contrib/copy_graph/python/util/copy_elements.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.collections import GraphKeys
from tenfold.graph.operation import Operation
from tenfold.graph.tensor import Tensor
from tenfold.ops.variables import Variable
from tenfold.session.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.graph import Graph

__all__ = ["copy_op_to_graph", "copy_variable_to_graph", "get_copied_op"]


def _scoped(name: str, scope: str) -> str:
    return f"{scope}/{name}" if scope else name


def _collections_of(item: Any) -> list[str]:
    graph = item.graph
    return [key for key in graph.collections if any(item is each for each in graph.get_collection_ref(key))]


def copy_variable_to_graph(org_instance: Any, to_graph: Graph, scope: str = "") -> Any:
    """A variable with the initial value and the collections of another, in `to_graph` under `scope`.

    Runs the initial value in a session. Raises TypeError for anything but a variable.
    """
    if not isinstance(org_instance, Variable):
        raise TypeError(f"{org_instance} is not a Variable")
    kept = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.TRAINABLE_VARIABLES)
    keys = [key if key in kept else _scoped(key, scope) for key in _collections_of(org_instance)]
    trained = GraphKeys.TRAINABLE_VARIABLES in keys
    with org_instance.graph.as_default(), Session(graph=org_instance.graph) as session:
        value = session.run(org_instance.initialized_value())
    with to_graph.as_default():
        return Variable(
            value,
            trainable=trained,
            name=_scoped(org_instance.op.name, scope),
            collections=keys,
            validate_shape=False,
        )


def copy_op_to_graph(org_instance: Any, to_graph: Graph, variables: Sequence[Any], scope: str = "") -> Any:
    """The operation or tensor, with all that it needs, in `to_graph` under `scope`; variables are not copied again.

    `variables` are those that `copy_variable_to_graph` made. Raises TypeError for anything else.
    """
    if not isinstance(org_instance, (Operation, Tensor)):
        raise TypeError(f"Could not copy instance: {org_instance}")
    name = _scoped(org_instance.name, scope)
    for variable in variables:
        if variable.name == name:
            return to_graph.get_tensor_by_name(name)
    try:
        return to_graph.as_graph_element(name, allow_tensor=True, allow_operation=True)
    except (KeyError, ValueError):
        # It is not there yet.
        pass
    op = org_instance.op if isinstance(org_instance, Tensor) else org_instance
    inputs = [copy_op_to_graph(each, to_graph, variables, scope) for each in op.inputs]
    before = [copy_op_to_graph(each, to_graph, variables, scope) for each in op.control_inputs]
    with to_graph.as_default(), to_graph.control_dependencies(None), to_graph.control_dependencies(before):
        made = to_graph.create_op(
            op.type,
            inputs,
            [each.dtype for each in op.outputs],
            # A slash at the end: the name as it is.
            name=f"{_scoped(op.name, scope)}/",
            attrs={key: value for key, value in op.node_def.attr.items() if key != "_class"},
        )
    result = made.outputs[org_instance.value_index] if isinstance(org_instance, Tensor) else made
    for key in _collections_of(org_instance):
        to_graph.add_to_collection(_scoped(key, scope), result)
    return result


def get_copied_op(org_instance: Any, graph: Graph, scope: str = "") -> Any:
    """What `copy_op_to_graph` made of the operation or tensor. Raises KeyError if it was not copied."""
    return graph.as_graph_element(_scoped(org_instance.name, scope), allow_tensor=True, allow_operation=True)
