"""Definitions for nodes whose operation is not here: of as many inputs and outputs as the graph shows, of its types.

A SavedModel or meta graph holds nodes that no fetch needs, some of operations that Tenfold lacks. They are kept as they
are, so that the graph can be imported, sent, cut and exported; running one is the error. What a file says of its
operations (`stripped_op_list`) counts for more than what is guessed here. Used by the client's importer
(client/tenfold/graph/importer.py) and by the master (compiler/graph/runtime_graph.py, and compiler/graph/functions.py
for bodies).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tenfold_core import dtypes, errors, opdefs
from tenfold_core.node_names import parse_tensor_name
from tenfold_core.node_signature import signature
from tenfold_core.op_def import ArgDef, OpDef
from tenfold_core.opdefs.elsewhere import ELSEWHERE

from .node_attrs import resolve_attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_protos.node_def_pb2 import NodeDef

#: Attribute of a node whose operation its client did not know either, though the file that it came from did.
MARK = "_op_is_not_here"
#: More outputs than this are not guessed: a name of an edge must not make us allocate.
_MOST_OUTPUTS = 1 << 12


def may_stand_in(op: str, node: NodeDef | None = None) -> bool:
    """Whether a node of this operation is kept without a definition: TensorFlow's, or marked by a client."""
    is_marked = node is not None and MARK in node.attr
    return not op.startswith("_") and not opdefs.has(op) and (op in ELSEWHERE or is_marked)


def why_not(node: NodeDef, name: str = "") -> errors.UnimplementedError:
    """The error of a step that needs such a node; `name` is the graph's, where a function's body has another one."""
    return errors.UnimplementedError(
        node,
        None,
        f"Node '{name or node.name}' is needed, and Tenfold has no operation '{node.op}': a graph may have such nodes "
        "as long as nothing that is fetched or run needs them.",
    )


def stand_ins(
    nodes: Collection[NodeDef],
    is_unknown: Callable[[NodeDef], bool],
    definition: Callable[[str], OpDef | None],
    known_outputs: Callable[[str, int], DType | None] = lambda name, index: None,
) -> dict[str, OpDef]:
    """Node name → its definition, for the nodes that `is_unknown`.

    An output has the type that its first consumer with a `definition` wants, an input that of its producer;
    `known_outputs` tells those of nodes that were there before. What nothing tells is a variant.
    """
    unknown = {node.name for node in nodes if is_unknown(node)}
    if not unknown:
        return {}
    by_name = {node.name: node for node in nodes}
    outputs: dict[str, dict[int, DType]] = defaultdict(dict)
    known: dict[str, Sequence[DType]] = {}
    for node in by_name.values():
        types = None if node.name in unknown else _types(node, definition)
        if types is not None:
            known[node.name] = types[1]
        data = [text for text in node.input if not text.startswith("^")]
        for position, text in enumerate(data):
            name, index = parse_tensor_name(text)
            if name in unknown and index < _MOST_OUTPUTS:
                guess = outputs[name].setdefault(index, dtypes.variant)
                if types is not None and position < len(types[0]) and guess is dtypes.variant:
                    outputs[name][index] = types[0][position]

    def produced(text: str) -> DType:
        name, index = parse_tensor_name(text)
        if name in unknown:
            return outputs[name].get(index, dtypes.variant).base_dtype
        if name in known and index < len(known[name]):
            return known[name][index].base_dtype
        return known_outputs(name, index) or dtypes.variant

    found = {}
    for name in unknown:
        node = by_name[name]
        count = max(outputs[name], default=-1) + 1
        found[name] = OpDef(
            name=node.op,
            inputs=tuple(
                ArgDef(f"input_{i}", type=produced(text))
                for i, text in enumerate(t for t in node.input if not t.startswith("^"))
            ),
            outputs=tuple(_output(i, outputs[name].get(i, dtypes.variant)) for i in range(count)),
            attrs=(),
            # Whatever it does, it is not merged with another, folded or left out.
            is_stateful=True,
            is_stand_in=True,
        )
    return found


def _output(index: int, dtype: DType) -> ArgDef:
    return ArgDef(f"output_{index}", type=dtype.base_dtype, is_ref=dtype.is_ref_dtype)


def _types(node: NodeDef, definition: Callable[[str], OpDef | None]) -> tuple[Sequence[DType], Sequence[DType]] | None:
    """Types of inputs and outputs; None where the node has an error of its own, which is found where it is read."""
    try:
        op_def = definition(node.op)
        if op_def is None:
            return None
        attrs: Mapping[str, Any] = resolve_attrs(op_def, node)
        types = signature(op_def, attrs)
    except (errors.OpError, TypeError, ValueError, KeyError):
        return None
    return types.input_types, types.output_types
