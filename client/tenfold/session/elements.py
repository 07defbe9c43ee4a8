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


def as_in_a_step(graph: GraphLike, element: Any) -> Any:
    """What is fetched or fed for `element`: of a tensor that train/lookups_ahead.py has made ahead, the value that a
    step is given. Raises ValueError for what no step has any more."""
    made_ahead = getattr(graph, "_made_ahead", None)
    if not made_ahead or (element.op if is_tensor(element) else element) not in made_ahead:
        return element
    taken = made_ahead[element.op].get(element.value_index) if is_tensor(element) else None
    if taken is None:
        raise ValueError(
            f"{element.name} is made ahead of its step, by do_async_embedding, and no step has it: fetch or feed what "
            "is made from it"
        )
    return taken
