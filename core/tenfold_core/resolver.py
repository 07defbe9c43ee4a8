"""Attributes and types of a graph's nodes, worked out once for all nodes of one op with the same attributes.

A large graph has few kinds of nodes: thousands of Adds of floats are one entry here, and share one mapping. Used by
those who read a whole graph: compiler/graph/runtime_graph.py and compiler/part/part_graph.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tenfold_core import errors
from tenfold_core.node_signature import Signature, signature

from .node_attrs import resolve_attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_core.op_def import OpDef
    from tenfold_protos.node_def_pb2 import NodeDef

#: An op's name, and (name, message as bytes) of each attribute.
_Kind: TypeAlias = tuple[Any, ...]
#: Inputs and outputs that the nodes of one graph have together: a number attribute, of a few bytes, makes a million.
MOST_ARGS = 1 << 23
#: Kinds that one resolver remembers: a graph whose nodes all differ gains nothing.
_MOST_KINDS = 4_096


class Resolver:
    """One for one reading of one graph: an op's name means one definition to it. Not thread-safe."""

    def __init__(self) -> None:
        self._known: dict[_Kind, tuple[Mapping[str, Any], Signature]] = {}
        #: Op → whether an attribute holds a tensor: those are long, and seldom the same.
        self._has_tensor: dict[str, bool] = {}
        self._args = 0

    def resolve(self, op_def: OpDef, node: NodeDef) -> tuple[Mapping[str, Any], Signature]:
        """(attributes with defaults, never to be changed; types). Raises what `resolve_attrs` and `signature` raise.

        ResourceExhaustedError where the graph's nodes have more inputs and outputs than MOST_ARGS by now.
        """
        found = self._resolve(op_def, node)
        self._args += len(found[1].input_types) + len(found[1].output_types)
        if self._args > MOST_ARGS:
            text = f"The graph's nodes have more than {MOST_ARGS} inputs and outputs together, which is the limit."
            raise errors.ResourceExhaustedError(None, None, text)
        return found

    def _resolve(self, op_def: OpDef, node: NodeDef) -> tuple[Mapping[str, Any], Signature]:
        name = op_def.name
        has_tensor = self._has_tensor.get(name)
        if has_tensor is None:
            has_tensor = self._has_tensor[name] = any("tensor" in attr.type for attr in op_def.attrs)
        if has_tensor:
            return self._resolve_around_tensors(op_def, node)
        kind = (name, *((key, value.SerializeToString()) for key, value in node.attr.items()))
        found = self._known.get(kind)
        if found is None:
            attrs = resolve_attrs(op_def, node)
            found = attrs, signature(op_def, attrs)
            if len(self._known) < _MOST_KINDS:
                self._known[kind] = found
        return found

    def _resolve_around_tensors(self, op_def: OpDef, node: NodeDef) -> tuple[Mapping[str, Any], Signature]:
        """The same where each node has a tensor of its own: what it has beside is worked out once."""
        tensors: dict[str, Any] = {}
        others = []
        for key, value in node.attr.items():
            if value.HasField("tensor"):
                tensors[key] = value.tensor
            else:
                others.append((key, value.SerializeToString()))
        kind = (op_def.name, *tensors, *others)
        found = self._known.get(kind)
        if found is None:
            attrs = resolve_attrs(op_def, node)
            types = signature(op_def, attrs)
            if len(self._known) < _MOST_KINDS:
                self._known[kind] = {key: value for key, value in attrs.items() if key not in tensors}, types
            return attrs, types
        return {**found[0], **tensors}, found[1]
