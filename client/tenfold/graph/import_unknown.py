"""Definitions for the nodes of a GraphDef whose operation Tenfold has not: they are kept, and cannot be run.

What the file says of its operations counts first (`producer_op_list`, of a meta graph its `stripped_op_list`); of
TensorFlow's other operations types are guessed from the graph (core/tenfold_core/stand_ins.py). A name that neither
knows is an error of importer.py. In the bodies of functions such nodes are marked, for the master.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from tenfold import logging
from tenfold_core import errors, opdefs
from tenfold_core.op_def import OpDef
from tenfold_core.stand_ins import MARK, may_stand_in, stand_ins

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from tenfold_protos.function_pb2 import FunctionDef
    from tenfold_protos.node_def_pb2 import NodeDef
    from tenfold_protos.op_def_pb2 import OpList


def definitions_of_unknown(
    nodes: Mapping[str, NodeDef],
    functions: Container[str],
    definition: Callable[[str], OpDef],
    op_list: OpList | None,
) -> dict[str, OpDef]:
    """Name of a node → its definition, for those whose operation is neither here nor one of `functions`.

    `definition` gives those of others, or raises NotFoundError.
    """
    wanted = {node.op for node in nodes.values() if not opdefs.has(node.op) and node.op not in functions}
    if not wanted:
        return {}
    given: dict[str, OpDef] = {}
    for op in op_list.op if op_list is not None else ():
        if op.name in wanted and not op.name.startswith("_"):
            with suppress(TypeError, ValueError, KeyError):
                given[op.name] = replace(OpDef.from_proto(op), is_stand_in=True)

    def known(op: str) -> OpDef | None:
        try:
            return given.get(op) or definition(op)
        except errors.NotFoundError:
            return None

    guessed = stand_ins(
        nodes.values(),
        lambda node: node.op in wanted and node.op not in given and may_stand_in(node.op, node),
        known,
    )
    found = {name: given[node.op] for name, node in nodes.items() if node.op in given} | guessed
    if found:
        names = ", ".join(sorted({nodes[name].op for name in found}))
        logging.warning("The graph has nodes that cannot be run: Tenfold has no operation %s.", names)
    return found


def marked(function: FunctionDef, op_list: OpList | None) -> FunctionDef:
    """The function, its nodes marked whose operation is not here but in the file: a copy, where there is one."""
    given = {op.name for op in op_list.op if not op.name.startswith("_")} if op_list is not None else set()
    places = [i for i, node in enumerate(function.node_def) if node.op in given and not opdefs.has(node.op)]
    if not places:
        return function
    result = type(function)()
    result.CopyFrom(function)
    for place in places:
        result.node_def[place].attr[MARK].b = True
    return result
