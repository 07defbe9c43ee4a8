"""Finding the elements of a graph: by name, or from an object with a tensor (a variable, for instance).

Mixed into graph/graph.py. Sessions use `as_graph_element` for fetches and feeds; its error messages, which a user
sees when a fetch does not exist, are TensorFlow's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.operation import Operation
from tenfold.graph.tensor import Tensor

if TYPE_CHECKING:
    import threading


class ElementLookup:
    """The operations of a graph by name."""

    _lock: threading.RLock

    def __init__(self) -> None:
        #: In the order of creation.
        self._nodes_by_name: dict[str, Operation] = {}
        self._unfeedable: set[Tensor] = set()
        self._unfetchable: set[Any] = set()
        #: Counts the calls of the two `prevent_` methods; when it changes, sessions check fetches and feeds again.
        self.restrictions = 0

    def get_operations(self) -> list[Operation]:
        """All operations, in the order of creation."""
        with self._lock:
            return list(self._nodes_by_name.values())

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation `name`. Raises TypeError for anything but a string, KeyError if there is none."""
        if not isinstance(name, str):
            raise TypeError(f"Operation names are strings (or similar), not {type(name).__name__}.")
        element = self.as_graph_element(name, allow_tensor=False, allow_operation=True)
        assert isinstance(element, Operation)
        return element

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor `op:index`. Raises ValueError if `name` is not a tensor name, KeyError if there is none."""
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        element = self.as_graph_element(name, allow_tensor=True, allow_operation=False)
        assert isinstance(element, Tensor)
        return element

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Tensor | Operation:
        """The tensor or operation that `obj` is, names or converts to.

        Raises TypeError if `obj` cannot be an element, ValueError if it is malformed or of another graph, and
        KeyError if this graph has no such element.
        """
        if allow_tensor and allow_operation:
            wanted = "Tensor or Operation"
        elif allow_tensor:
            wanted = "Tensor"
        elif allow_operation:
            wanted = "Operation"
        else:
            raise ValueError("allow_tensor and allow_operation can't both be False.")
        stand_in = getattr(obj, "_as_graph_element", None)
        if stand_in is not None:
            obj = stand_in()
        if isinstance(obj, bytes):
            obj = obj.decode()
        if isinstance(obj, str):
            return self._named_element(obj, allow_tensor, allow_operation, wanted)
        if isinstance(obj, Tensor) and allow_tensor:
            if obj.graph is not self:
                raise ValueError(f"Tensor {obj} is not an element of this graph.")
            return obj
        if isinstance(obj, Operation) and allow_operation:
            if obj.graph is not self:
                raise ValueError(f"Operation {obj!r} is not an element of this graph.")
            return obj
        raise TypeError(f"Can not convert a {type(obj).__name__} into a {wanted}.")

    def _named_element(self, name: str, allow_tensor: bool, allow_operation: bool, wanted: str) -> Tensor | Operation:
        if ":" not in name:
            op = self._nodes_by_name.get(name)
            if allow_operation:
                if op is None:
                    raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")
                return op
            what = "refers to an Operation" if op is not None else "looks like an (invalid) Operation name"
            raise ValueError(
                f"The name {name!r} {what}, not a {wanted}. "
                'Tensor names must be of the form "<op_name>:<output_index>".'
            )
        if not allow_tensor:
            raise ValueError(f"The name {name!r} appears to refer to a Tensor, not a {wanted}.")
        op_name, _, digits = name.partition(":")
        if not digits.isascii() or not digits.isdigit():
            raise ValueError(
                f"The name {name!r} looks a like a Tensor name, but is not a valid one. "
                'Tensor names must be of the form "<op_name>:<output_index>".'
            )
        op = self._nodes_by_name.get(op_name)
        if op is None:
            raise KeyError(
                f"The name {name!r} refers to a Tensor which does not exist. "
                f"The operation, {op_name!r}, does not exist in the graph."
            )
        if int(digits) >= len(op.outputs):
            raise KeyError(
                f"The name {name!r} refers to a Tensor which does not exist. "
                f"The operation, {op_name!r}, exists but only has {len(op.outputs)} outputs."
            )
        return op.outputs[int(digits)]

    def prevent_feeding(self, tensor: Tensor) -> None:
        """Marks `tensor` as one that sessions may not feed."""
        self._unfeedable.add(tensor)
        self.restrictions += 1

    def is_feedable(self, tensor: Tensor) -> bool:
        """False if `prevent_feeding` was called for `tensor`."""
        return tensor not in self._unfeedable

    def prevent_fetching(self, op: Any) -> None:
        """Marks `op` as one that sessions may not fetch."""
        self._unfetchable.add(op)
        self.restrictions += 1

    def is_fetchable(self, tensor_or_op: Any) -> bool:
        """False if `prevent_fetching` was called for the operation."""
        op = tensor_or_op.op if isinstance(tensor_or_op, Tensor) else tensor_or_op
        return op not in self._unfetchable
