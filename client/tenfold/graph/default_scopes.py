"""The scope functions of the `tf` namespace, which act on the default graph: `tf.device`, `tf.name_scope`, ….

Thin: each forwards to the method of the same name of the default graph (graph/scope_stacks.py, graph/collections.py).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.operation import Operation
from tenfold.graph.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tenfold.graph.graph import Graph


def device(device_name_or_function: Any) -> AbstractContextManager[None]:
    """`Graph.device` of the default graph."""
    return get_default_graph().device(device_name_or_function)


def control_dependencies(control_inputs: Any) -> AbstractContextManager[None]:
    """`Graph.control_dependencies` of the default graph."""
    return get_default_graph().control_dependencies(control_inputs)


def colocate_with(op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """`Graph.colocate_with` of the default graph."""
    return get_default_graph().colocate_with(op, ignore_existing)


def init_scope() -> AbstractContextManager[None]:
    """Operations made inside are in no branch or loop and have no control dependency. Used for initializers."""
    return get_default_graph().control_dependencies(None)


def container(container_name: str) -> AbstractContextManager[str]:
    """`Graph.container` of the default graph."""
    return get_default_graph().container(container_name)


def add_to_collection(name: Any, value: Any) -> None:
    """`Graph.add_to_collection` of the default graph."""
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    """`Graph.add_to_collections` of the default graph."""
    get_default_graph().add_to_collections(names, value)


def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """`Graph.get_collection` of the default graph."""
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: Any) -> list[Any]:
    """`Graph.get_collection_ref` of the default graph."""
    return get_default_graph().get_collection_ref(key)


def graph_of(values: Iterable[Any], graph: Graph | None = None) -> Graph:
    """The one graph of all tensors and operations among `values`; the default graph if there are none.

    Raises ValueError if they are of several graphs, or not of `graph` where that is given.
    """
    first: Any = None
    if graph is None and get_default_graph().building_function:
        # tensors from outside come in as parameters of the function
        return get_default_graph()
    for value in _flat(values):
        stand_in = getattr(value, "_as_graph_element", None)
        element = value if stand_in is None else stand_in()
        if not isinstance(element, (Tensor, Operation)):
            continue
        if graph is None:
            graph, first = element.graph, element
        elif element.graph is not graph:
            if first is None:
                raise ValueError(f"{element} is not from the passed-in graph.")
            raise ValueError(f"{element} must be from the same graph as {first}.")
    return get_default_graph() if graph is None else graph


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    """`values`, with lists flattened; long lists of plain numbers are data and are skipped."""
    for value in values:
        if not isinstance(value, (list, tuple)):
            yield value
        elif value and not isinstance(value[0], (int, float, str, bytes, list)):
            yield from value


class name_scope:  # TensorFlow's name
    """`with tf.name_scope(name, default_name, values) as scope:` a name scope in the graph of `values`.

    `default_name` is used if `name` is None. Raises ValueError if `values` are given without any name.
    """

    def __init__(self, name: str | None, default_name: str | None = None, values: Any = None) -> None:
        if name is not None and not isinstance(name, (str, bytes)):
            raise TypeError(f"name for name_scope must be a string, not {name!r}.")
        self._name = default_name if name is None else name
        self._values = [] if values is None else values
        if self._name is None and values is not None:
            raise ValueError(f"At least one of name ({name}) and default_name ({default_name}) must be provided.")
        self._stack = ExitStack()

    @property
    def name(self) -> str | None:
        """The name that the caller gave."""
        return self._name

    def __enter__(self) -> str:
        graph = graph_of(self._values)
        with ExitStack() as stack:
            stack.enter_context(graph.as_default())
            scope: str = stack.enter_context(graph.name_scope(self._name))
            self._stack = stack.pop_all()
        return scope

    def __exit__(self, *exc_info: Any) -> None:
        self._stack.__exit__(*exc_info)


@contextmanager
def op_scope(values: Any, name: str | None, default_name: str | None = None) -> Iterator[str]:
    """The name scope of TensorFlow before 1.0: `name_scope` with the arguments in another order."""
    with name_scope(name, default_name, values) as scope:
        yield scope
