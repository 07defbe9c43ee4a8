"""The gradient of one operation as a small graph: the seam between a client's gradient rules and a server.

A graph may ask its server for the gradient of a function (SymbolicGradient). The rules are the client's, one for each
op type (tenfold.gradients), which a server must not import; the package tells this module how to reach them when they
are first needed, and tenfold_services/graph/function_gradients.py asks here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_protos.node_def_pb2 import NodeDef


@dataclass(frozen=True, slots=True)
class OpGradient:
    """A graph of plain nodes that computes the gradient of one operation."""

    graph_def: GraphDef
    #: Its placeholders: the operation's inputs, then the gradient of each output.
    args: tuple[str, ...]
    #: The gradient of each input, as "node:number".
    outputs: tuple[str, ...]


_maker: Callable[[NodeDef], OpGradient | None] | None = None


def provide(maker: Callable[[NodeDef], OpGradient | None]) -> None:
    """Says who makes gradients."""
    global _maker
    _maker = maker


def gradient_of(operation: NodeDef) -> OpGradient | None:
    """The gradient of an operation of this type, with these attributes; None where nothing flows back through it.

    Adds to no graph and never blocks. Raises LookupError for an op type without a rule, and what rules raise
    (TypeError, ValueError, …) for attributes that make no sense to them.
    """
    if _maker is None:
        raise LookupError(f"no gradients are known in this process, nor that of {operation.op}")
    return _maker(operation)
