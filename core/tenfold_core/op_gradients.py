"""The gradient of one operation as a small graph: the seam between a client's gradient rules and a server.

A graph may ask its server for the gradient of a function (SymbolicGradient). The rules are the client's, one for each
op type (tenfold.gradients), which a server must not import: the program that makes a server hands `OpGradients` in
(tenfold/server_gradients.py), and tenfold_compiler/graph/function_gradients.py calls it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

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


#: The gradient of an operation of this type, with these attributes; None where nothing flows back through it. Adds to
#: no graph and never blocks. Raises LookupError for an op type without a rule, and what rules raise (TypeError,
#: ValueError, …) for attributes that make no sense to them.
OpGradients: TypeAlias = "Callable[[NodeDef], OpGradient | None]"


def no_gradients(operation: NodeDef) -> OpGradient | None:
    """The OpGradients of a server that was given none: LookupError for every op."""
    raise LookupError(f"this server was given no gradients, so none of {operation.op}")
