"""Graphs for workers of other versions: attributes that a worker does not know go, those it misses come.

A worker of TensorFlow refuses a node with an attribute that its version has not, or has not got by default, and says so
in words that have not changed since 1.0. An attribute at its default means the same as none, so it can be dropped; any
other keeps its error. Used by the services' services/rpc/grpc_worker.py. In TensorFlow:
RemoveNewDefaultAttrsFromGraphDef, which needs the consumer's op list; a worker does not tell its own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from tenfold_core import attr_value, errors, opdefs
from tenfold_protos import graph_pb2

if TYPE_CHECKING:
    from tenfold_core.op_def import AttrDef
    from tenfold_protos.attr_value_pb2 import AttrValue
    from tenfold_protos.graph_pb2 import GraphDef

_UNKNOWN = re.compile(r"NodeDef mentions attr '(\w+)' not in Op<name=(\w+);")
_MISSING = re.compile(r"NodeDef missing attr '(\w+)' from Op<name=(\w+);")


class Dialect:
    """What one worker has said of the attributes that it knows. Learned from its refusals, remembered for good."""

    def __init__(self) -> None:
        #: op → attributes that the worker has not.
        self._unknown: dict[str, set[str]] = defaultdict(set)
        #: op → attributes that it wants to see although they have a default.
        self._wanted: dict[str, set[str]] = defaultdict(set)

    def learn(self, error: errors.OpError) -> bool:
        """Whether the refusal says something new that `translate` can do something about."""
        for pattern, known in ((_UNKNOWN, self._unknown), (_MISSING, self._wanted)):
            found = pattern.search(error.message)
            if found is None:
                continue
            name, op = found.groups()
            attr = _attr_of(op, name)
            if attr is None or not attr.has_default or name in known[op]:
                return False
            known[op].add(name)
            return True
        return False

    def translate(self, graph_def: GraphDef) -> GraphDef:
        """The graph as the worker takes it; itself where nothing has to change."""
        if not self._unknown and not self._wanted:
            return graph_def
        translated = graph_pb2.GraphDef()
        translated.CopyFrom(graph_def)
        for node in translated.node:
            for name in self._unknown.get(node.op, ()):
                attr = _attr_of(node.op, name)
                if attr is not None and name in node.attr and node.attr[name] == _default(attr):
                    del node.attr[name]
            for name in self._wanted.get(node.op, ()):
                attr = _attr_of(node.op, name)
                if attr is not None and name not in node.attr:
                    node.attr[name].CopyFrom(_default(attr))
        return translated


def _attr_of(op: str, name: str) -> AttrDef | None:
    if not opdefs.has(op):
        return None
    return next((attr for attr in opdefs.get(op).attrs if attr.name == name), None)


def _default(attr: AttrDef) -> AttrValue:
    return attr_value.to_proto(attr.default, attr.type)
