"""Whether the functions of a call, a branch or a loop fit the node that names them. Used by lower.py; pure checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import dtypes
from tenfold_core.node_names import at_node

from .lowering import CASE_OPS, IF_OPS, WHILE_OPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_protos.attr_value_pb2 import NameAttrList

    from .functions import Functions
    from .node import Node


def check_fits(functions: Functions, node: Node, called: Sequence[NameAttrList]) -> None:
    """What a call gives must be what its node promises. Raises InvalidArgumentError."""
    for function in called:
        body = functions.body(function.name, function.attr)
        skip = 1 if node.op in IF_OPS | CASE_OPS or node.op == "RemoteCall" else 0
        given = tuple(dtype.base_dtype for dtype in node.input_types[skip:])
        promised = node.output_types
        if node.op in WHILE_OPS and function is called[0]:
            promised = body.output_types if len(body.output_types) == 1 else (dtypes.bool_,)
        if body.arg_types != given or body.output_types != promised:
            raise at_node(
                node,
                f"Node '{node.name}' ({node.op}) and function '{function.name}' do not fit: the node has inputs "
                f"{_show(given)} and outputs {_show(promised)}, the function {_show(body.arg_types)} and "
                f"{_show(body.output_types)}.",
            )


def check_gradient(functions: Functions, node: Node, gradient: NameAttrList) -> None:
    """A client's own gradient function may give too few. Raises InvalidArgumentError."""
    given, promised = len(functions.body(gradient.name, gradient.attr).output_types), len(node.output_types)
    if given != promised:
        raise at_node(node, f"SymGrad expects to return {promised} tensor(s), but get {given} tensor(s) instead.")


def is_loop(functions: Functions, node: Node, cond: NameAttrList, body: NameAttrList) -> bool:
    """Whether the functions give as many results as a loop needs; if not, the kernel of While says so."""
    counts = [len(functions.body(each.name, each.attr).output_types) for each in (cond, body)]
    return counts == [1, len(node.output_types)]


def _show(types: Sequence[dtypes.DType]) -> str:
    return f"({', '.join(dtype.op_name for dtype in types)})"
