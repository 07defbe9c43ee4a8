"""What sessions need of a graph's elements, as protocols.

fetches.py and feeds.py are written against these, so that they are tested without a graph. The real classes are
tenfold.graph's `Graph`, `Operation` and `Tensor`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape


class OperationLike(Protocol):
    """A node of the graph."""

    @property
    def name(self) -> str: ...


class TensorLike(Protocol):
    """An output of a node."""

    @property
    def name(self) -> str: ...
    @property
    def op(self) -> Any: ...
    @property
    def dtype(self) -> DType: ...
    def get_shape(self) -> TensorShape: ...


class GraphLike(Protocol):
    """Looks elements up by object or name; tells which of them may be fed and fetched."""

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any: ...
    def is_feedable(self, tensor: Any) -> bool: ...
    def is_fetchable(self, tensor_or_op: Any) -> bool: ...


def is_tensor(element: object) -> bool:
    """True for a tensor of a graph; only tensors have a position among their operation's outputs."""
    return hasattr(element, "value_index") and hasattr(element, "op")
