"""The functions that a graph brings along (GraphDef.library): found by name, merged when the graph grows, cut to need.

Used by runtime_graph.py (a function's name may stand for an op), functions.py (bodies) and partition.py (what a part
takes along). Follows FunctionLibraryDefinition in TensorFlow's framework/function.cc.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from tenfold_core import dtypes, errors, opdefs
from tenfold_core.op_def import OpDef
from tenfold_core.reached import reached
from tenfold_protos import function_pb2

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from tenfold_protos.attr_value_pb2 import AttrValue
    from tenfold_protos.function_pb2 import FunctionDef, FunctionDefLibrary
    from tenfold_protos.node_def_pb2 import NodeDef


class FunctionLibrary:
    """Immutable. Functions by name."""

    def __init__(self, proto: FunctionDefLibrary | None = None) -> None:
        """Raises InvalidArgumentError for two different functions of one name, or one that hides an op."""
        self.proto = proto if proto is not None else function_pb2.FunctionDefLibrary()
        self._functions: dict[str, FunctionDef] = {}
        self._op_defs: dict[str, OpDef] = {}
        #: Function → what computes its gradient.
        self._gradients = {gradient.function_name: gradient.gradient_func for gradient in reversed(self.proto.gradient)}
        for function in self.proto.function:
            name = function.signature.name
            if opdefs.has(name):
                raise errors.invalid_argument(
                    f"Cannot add function '{name}' because an op with the same name already exists."
                )
            if self._functions.setdefault(name, function) != function:
                raise errors.invalid_argument(
                    f"Cannot add function '{name}' because a different function with the same name already exists."
                )

    def __bool__(self) -> bool:
        return bool(self._functions)

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def find(self, name: str) -> FunctionDef | None:
        return self._functions.get(name)

    def gradient_of(self, name: str) -> str:
        """The function that computes the gradient of another one; empty where the client gave none."""
        return self._gradients.get(name, "")

    def op_def(self, name: str) -> OpDef | None:
        """What a call of the function takes and gives; None for a name that is not a function.

        Raises InvalidArgumentError for a signature that makes no sense.
        """
        found = self._op_defs.get(name)
        if found is None and name in self._functions:
            try:
                found = self._op_defs[name] = OpDef.from_proto(self._functions[name].signature)
            except (TypeError, ValueError, KeyError) as error:
                raise errors.invalid_argument(f"The signature of function '{name}' is wrong: {error}") from error
        return found

    def definition(self, op: str) -> OpDef | None:
        """Of a function, or of an operation of this server; None for a name that is neither. Raises as `op_def`."""
        return self.op_def(op) or (opdefs.get(op) if opdefs.has(op) else None)

    def extended(self, more: FunctionDefLibrary) -> FunctionLibrary:
        """This library and `more`. A function that is there already must be the same.

        Raises InvalidArgumentError naming the one that is not.
        """
        if not more.function and not more.gradient:
            return self
        merged = function_pb2.FunctionDefLibrary()
        merged.CopyFrom(self.proto)
        merged.function.extend(each for each in more.function if self.find(each.signature.name) != each)
        for gradient in more.gradient:
            known = self.gradient_of(gradient.function_name)
            if not known:
                merged.gradient.add().CopyFrom(gradient)
            elif known != gradient.gradient_func:
                raise errors.invalid_argument(
                    f"Cannot assign gradient function '{gradient.gradient_func}' to '{gradient.function_name}' because "
                    f"it already has gradient function '{known}'"
                )
        return FunctionLibrary(merged)

    def reachable(self, nodes: Iterable[NodeDef]) -> FunctionDefLibrary:
        """The functions that running `nodes` may need, those of their bodies included, in the library's order."""

        def needs(nodes: Iterable[NodeDef], *names: str) -> Iterator[str]:
            return (each for each in chain(names, *map(_names_in, nodes)) if each in self)

        needed = reached(needs(nodes), lambda name: needs(self._functions[name].node_def, self.gradient_of(name)))
        result = function_pb2.FunctionDefLibrary()
        result.function.extend(function for function in self.proto.function if function.signature.name in needed)
        result.gradient.extend(gradient for gradient in self.proto.gradient if gradient.function_name in needed)
        return result

    def least_nodes(self, nodes: Iterable[NodeDef], call_ops: Collection[str]) -> int:
        """The nodes, and those of the bodies that plain calls (`call_ops`, or an op that is a function) bring in.

        Known before a single one is made: forty functions that each call the next one twice are a few hundred bytes,
        and 2^40 nodes. Never too many: a function that calls itself stays a call, and branches and loops may stay.
        """

        def called(node: NodeDef) -> str:
            return node.attr["f"].func.name if node.op in call_ops and "f" in node.attr else node.op

        #: Function → nodes of its body with all that is in it; 0 while it is being counted: calls in a circle end.
        counts: dict[str, int] = {}

        def count(nodes: Iterable[NodeDef]) -> int:
            return sum(1 + counts.get(called(node), 0) for node in nodes)

        nodes = list(nodes)
        # no recursion: how deep functions stand in each other is up to a peer
        stack = [name for name in map(called, nodes) if name in self]
        while stack:
            name = stack[-1]
            body = self._functions[name].node_def
            if name in counts:
                stack.pop()
                counts[name] = counts[name] or count(body)
                continue
            counts[name] = 0
            stack.extend(inner for inner in map(called, body) if inner in self and inner not in counts)
        return count(nodes)

    def stateful_op(self, call: NodeDef) -> str | None:
        """An op that has a state of its own, among those that this call may run; None where there is none.

        As TensorFlow 1.15's captured_function.cc counts: sources of datasets have none, nor has an assertion.
        """
        for function in self.reachable([call]).function:
            if function.signature.is_stateful:
                for node in function.node_def:
                    if opdefs.has(node.op) and _has_own_state(opdefs.get(node.op)):
                        return node.op
        return None


#: Calls, whose functions say for themselves whether they have a state; and what only looks.
_NO_STATE = frozenset(("Assert", "If", "While", "Case", "StatefulPartitionedCall"))


def _has_own_state(op_def: OpDef) -> bool:
    if not op_def.is_stateful or op_def.name in _NO_STATE:
        return False
    makes_variant = len(op_def.outputs) == 1 and op_def.outputs[0].type == dtypes.variant
    return not (makes_variant and op_def.name.endswith(("Dataset", "DatasetV2")))


def _names_in(node: NodeDef) -> Iterator[str]:
    yield node.op
    for value in node.attr.values():
        yield from _functions_in(value)


def _functions_in(value: AttrValue) -> Iterator[str]:
    """Names of the functions that an attribute mentions, in the attributes of their calls too."""
    kind = value.WhichOneof("value")
    found = [value.func] if kind == "func" else list(value.list.func) if kind == "list" else []
    for function in found:
        yield function.name
        for inner in function.attr.values():
            yield from _functions_in(inner)
