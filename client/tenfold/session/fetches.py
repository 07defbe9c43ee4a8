"""The `fetches` of `Session.run`: from any structure to names, and from values back to the structure.

`FetchPlan(graph, fetches)` flattens nested lists, tuples, named tuples, dictionaries and attrs classes to unique
tensors and operations; `build` puts values in their places. Pure: no session, no I/O. Called by base_session.py;
feeds.py is the other half. Follows TF 1.15's client/session.py, messages of TF 2.21 where they say more.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.session import observing
from tenfold.session.composite_values import find_expansion
from tenfold.session.elements import as_in_a_step, is_tensor
from tenfold.session.tensor_handles import HANDLE_OPS, TensorHandle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.session.elements import GraphLike, OperationLike, TensorLike

#: Bytes from which a value is returned without a copy where possible.
_LARGE = 1 << 20


class FetchPlan:
    """One structure of fetches, resolved against one graph; used for any number of steps.

    Raises TypeError for an element of a type that cannot be fetched, ValueError for one that is not in `graph` or
    was marked as not fetchable.
    """

    #: Unique tensors to fetch, in order of first appearance; `names` are their names.
    tensors: list[TensorLike]
    #: Unique operations to run; their place in the result is None.
    operations: list[OperationLike]

    #: Whether a part of the result is a TensorHandle, which holds its session.
    makes_handles: bool

    def __init__(self, graph: GraphLike, fetches: Any, session: Any = None) -> None:
        """`session` is what the handles of tensors kept by the step belong to."""
        self._graph = graph
        self._session = session
        self.makes_handles = False
        self.tensors = []
        self.operations = []
        #: Name of a tensor → its position in `tensors`. Names are unique in a graph.
        self._positions: dict[str, int] = {}
        self._seen_operations: set[str] = set()
        self._build = self._plan(fetches)
        self.names = [tensor.name for tensor in self.tensors]
        self.target_names = [operation.name for operation in self.operations]
        #: What notes its steps, where somebody reports on them.
        self.watch: observing.Watch | None = None
        if observing.observer is not None:
            key = (*self.names, *self.target_names)
            self.watch = observing.observer.watch_of(graph, self.tensors, key)

    def build(self, values: Sequence[Any]) -> Any:
        """The result: a structure like the fetches, holding `values`, which are those of `tensors` in order."""
        if len(values) != len(self.tensors):
            raise ValueError(f"The step returned {len(values)} values for {len(self.tensors)} fetches")
        watch = self.watch
        if watch is not None:
            watch.take(values)
        return self._build(values)

    def _plan(self, fetch: Any) -> Callable[[Sequence[Any]], Any]:
        """Plans one node of the structure."""
        if fetch is None:
            raise TypeError('Argument `fetch` = None has invalid type "NoneType". Cannot be None')
        if isinstance(fetch, (list, tuple)):
            return _sequence_builder(type(fetch), [self._plan(part) for part in fetch])
        if isinstance(fetch, Mapping):
            return _mapping_builder(type(fetch), list(fetch), [self._plan(part) for part in fetch.values()])
        attributes = getattr(type(fetch), "__attrs_attrs__", None)
        if attributes is not None:
            parts = [self._plan(getattr(fetch, attribute.name)) for attribute in attributes]
            kind = type(fetch)
            return lambda values: kind(*[part(values) for part in parts])
        expansion = find_expansion(fetch)
        if expansion is not None:
            components, contract = expansion.fetch(fetch)
            pieces = [self._plan_element(component, shown=fetch) for component in components]
            return lambda values: contract([piece(values) for piece in pieces])
        return self._plan_element(fetch, shown=fetch)

    def _plan_element(self, fetch: Any, shown: Any) -> Callable[[Sequence[Any]], Any]:
        """Plans a leaf: a tensor, an operation, a name of either, or what the graph converts to one."""
        try:
            element = self._graph.as_graph_element(fetch, allow_tensor=True, allow_operation=True)
        except TypeError as error:
            raise TypeError(
                f'Argument `fetch` = {shown} has invalid type "{type(shown).__name__}" must be a string or Tensor. '
                f"({error})"
            ) from None
        except (ValueError, KeyError) as error:
            # A KeyError's text is the repr of its argument.
            text = error.args[0] if isinstance(error, KeyError) and error.args else error
            raise ValueError(f"Argument `fetch` = {shown} cannot be interpreted as a Tensor. ({text})") from None
        element = as_in_a_step(self._graph, element)
        operation = element.op if is_tensor(element) else element
        if not self._graph.is_fetchable(operation):
            raise ValueError(
                f"Operation {operation.name!r} has been marked as not fetchable. Typically this happens when it is "
                "defined in another function or code block. Use return values, explicit Python locals or "
                "TensorFlow collections to access it."
            )
        if operation is element:
            if element.name not in self._seen_operations:
                self._seen_operations.add(element.name)
                self.operations.append(element)
            return _none
        position = self._positions.setdefault(element.name, len(self.tensors))
        if position == len(self.tensors):
            self.tensors.append(element)
        if getattr(operation, "type", None) in HANDLE_OPS:
            self.makes_handles = True
            session, dtype = self._session, operation.inputs[0].dtype.base_dtype
            if session is not None:
                return lambda values: TensorHandle(values[position], dtype, session)
        return itemgetter(position)


def as_result(value: Any) -> Any:
    """A fetched value as TensorFlow returns it: scalars leave their 0-d array, arrays may be written to."""
    if not isinstance(value, np.ndarray):
        return value
    if value.ndim == 0:
        return value[()]
    if value.flags.writeable:
        return value
    if value.nbytes < _LARGE:
        return value.copy()
    from tenfold_link.memory.private_mappings import writable

    return writable(value)


def _none(values: Sequence[Any]) -> None:
    """The result of fetching an operation."""


def _sequence_builder(kind: type, parts: list[Callable[[Sequence[Any]], Any]]) -> Callable[[Sequence[Any]], Any]:
    """Builds a list, tuple or named tuple. A subclass of list becomes a plain list, as in TensorFlow."""
    if issubclass(kind, list):
        return lambda values: [part(values) for part in parts]
    if kind is tuple:
        return lambda values: tuple([part(values) for part in parts])
    return lambda values: kind(*[part(values) for part in parts])


def _mapping_builder(
    kind: type, keys: list[Any], parts: list[Callable[[Sequence[Any]], Any]]
) -> Callable[[Sequence[Any]], Any]:
    """Builds a mapping of the same type, keys in the same order."""

    def build(values: Sequence[Any]) -> Any:
        # A defaultdict's constructor wants its factory first; without one, it behaves like a dict.
        result = kind()
        for key, part in zip(keys, parts, strict=True):
            result[key] = part(values)
        return result

    return build
