"""The body of a function as nodes, ready to be put into a graph: types and attributes of one call filled in.

A FunctionDef names its edges by output argument ("node:output:0"), its parameters by name, and leaves attributes open
("$T"); here edges become (node, output number) as in a graph. Used by inline.py and, at the worker, by functions of its
own. Follows InstantiateFunction in TensorFlow's framework/function.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold_core import errors, opdefs
from tenfold_core.node_attrs import resolve_attrs
from tenfold_core.node_names import TensorName, suggestion
from tenfold_core.node_signature import signature
from tenfold_core.stand_ins import may_stand_in, stand_ins
from tenfold_protos import node_def_pb2

from .node import new_def
from .runtime_graph import client_node

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_core.node_signature import Signature
    from tenfold_core.op_def import OpDef
    from tenfold_protos.attr_value_pb2 import AttrValue
    from tenfold_protos.function_pb2 import FunctionDef

    from .function_library import FunctionLibrary
    from .node import Node

#: How deep attributes of functions may nest in each other; no honest graph nests deeper.
_MAX_ATTR_DEPTH = 32


@dataclass(frozen=True, slots=True)
class FunctionBody:
    """What a call does. Its nodes refer to each other, and to parameters, by TensorName."""

    name: str
    #: Flat parameters: an argument that is a list of tensors counts as so many.
    arg_types: tuple[DType, ...]
    output_types: tuple[DType, ...]
    #: (argument, index within it) → number of the flat parameter.
    args: Mapping[TensorName, int]
    #: Argument → number of its first parameter; for control edges from arguments and for colocation with them.
    first_arg: Mapping[str, int]
    nodes: tuple[Node, ...]
    #: What each flat output is.
    returns: tuple[TensorName, ...]
    #: Nodes that must have run before the call is over.
    control_returns: tuple[str, ...]


class Functions:
    """Bodies by function and attributes; each is made once."""

    def __init__(self, library: FunctionLibrary) -> None:
        self.library = library
        self._bodies: dict[tuple[str, bytes], FunctionBody] = {}
        #: Bodies that no function of the library has: gradients (function_gradients.py).
        self._defined: dict[str, FunctionBody] = {}

    def define(self, body: FunctionBody) -> None:
        """Adds a function of the runtime's own: no client can give a function such a name."""
        self._defined[body.name] = body

    def body(self, name: str, attrs: Mapping[str, AttrValue]) -> FunctionBody:
        """The body for a call with these attributes.

        Raises NotFoundError for an unknown function, InvalidArgumentError naming the function and what is wrong in it.
        """
        if name in self._defined:
            return self._defined[name]
        function, op_def = self.library.find(name), self.library.op_def(name)
        if function is None or op_def is None:
            hint = suggestion(name, (function.signature.name for function in self.library.proto.function))
            raise errors.not_found(f"Function {name} is not defined{hint}.")
        known = {attr.name: attrs[attr.name] for attr in op_def.attrs if attr.name in attrs}
        call = node_def_pb2.NodeDef(name=name, op=name, attr=known)
        key = (name, call.SerializeToString(deterministic=True))
        found = self._bodies.get(key)
        if found is None:
            found = self._bodies[key] = _instantiate(function, op_def, call, self.library)
        return found


def _instantiate(
    function: FunctionDef, op_def: OpDef, call: node_def_pb2.NodeDef, library: FunctionLibrary
) -> FunctionBody:
    name = function.signature.name
    attrs = resolve_attrs(op_def, call)
    types = signature(op_def, attrs)
    values = dict(call.attr)
    for attr in function.signature.attr:
        if attr.name not in values and attr.HasField("default_value"):
            values[attr.name] = attr.default_value
    args: dict[TensorName, int] = {}
    first_arg: dict[str, int] = {}
    for arg, count in zip(op_def.inputs, types.input_counts, strict=True):
        first_arg[arg.name] = len(args)
        for position in range(count):
            args[TensorName(arg.name, position)] = len(args)
    reader = _EdgeReader(function, library, first_arg)
    definitions: list[node_def_pb2.NodeDef] = []
    for original in function.node_def:
        node_def = node_def_pb2.NodeDef(name=original.name, op=original.op, device=original.device, attr=original.attr)
        for value in node_def.attr.values():
            _fill_in(name, original.name, value, values)
        reader.add(node_def)
        definitions.append(node_def)
    for original, node_def in zip(function.node_def, definitions, strict=True):
        node_def.input.extend(reader.edge(text) for text in original.input)
    guessed = reader.stand_ins(definitions, types, args)
    nodes = [client_node(node_def, library, stand_in=guessed.get(node_def.name)) for node_def in definitions]
    returns: list[TensorName] = []
    for output, count in zip(op_def.outputs, types.output_counts, strict=True):
        if output.name not in function.ret:
            raise _bad(name, f"it does not say what its output '{output.name}' is (ret)")
        first = reader.tensor(function.ret[output.name])
        returns.extend(TensorName(first.node, first.output + position) for position in range(count))
    body = FunctionBody(
        name,
        types.input_types,
        types.output_types,
        args,
        first_arg,
        tuple(nodes),
        tuple(returns),
        tuple(dict.fromkeys(function.control_ret.values())),
    )
    _check(body)
    return body


def _check(body: FunctionBody) -> None:
    """Every edge leads from an output that there is, with a type that fits."""
    nodes: dict[str, Node] = {}
    for node in body.nodes:
        if node.name in nodes or node.name in body.first_arg:
            raise _bad(body.name, f"it has '{node.name}' twice")
        nodes[node.name] = node

    def type_of(tensor: TensorName) -> DType:
        if tensor in body.args:
            return body.arg_types[body.args[tensor]]
        if tensor.node not in nodes or tensor.output >= len(nodes[tensor.node].output_types):
            raise _bad(body.name, f"there is no '{tensor}' in it")
        return nodes[tensor.node].output_types[tensor.output]

    for node in body.nodes:
        for tensor, expected in zip(node.inputs, node.input_types, strict=True):
            actual = type_of(tensor)
            if actual.base_dtype is not expected.base_dtype:
                raise _bad(
                    body.name, f"node '{node.name}' takes {tensor} as {expected.op_name}, which is {actual.op_name}"
                )
        for control in node.control_inputs:
            if control not in nodes and control not in body.first_arg:
                raise _bad(body.name, f"node '{node.name}' waits for '{control}', which is not in it")
    for control in body.control_returns:
        if control not in nodes:
            raise _bad(body.name, f"its control output '{control}' is no node of it")
    for tensor, expected in zip(body.returns, body.output_types, strict=True):
        if type_of(tensor).base_dtype is not expected.base_dtype:
            raise _bad(
                body.name, f"it returns {tensor}, a {type_of(tensor).op_name}, where it promises {expected.op_name}"
            )


class _EdgeReader:
    """Turns "node:output:1" into the graph's "node:number"."""

    def __init__(self, function: FunctionDef, library: FunctionLibrary, first_arg: Mapping[str, int]) -> None:
        self._function, self._name = function, function.signature.name
        self._library = library
        self._first_arg = first_arg
        #: Node → output argument → number of its first output.
        self._outputs: dict[str, dict[str, int]] = {}
        #: Node whose operation is not here → its outputs in the order in which they were met, which is as good as any.
        self.unknown: dict[str, dict[tuple[str, ...], int]] = {}

    def add(self, node_def: node_def_pb2.NodeDef) -> None:
        """Learns the outputs of a node, its attributes filled in."""
        op_def = self._library.definition(node_def.op)
        if op_def is None:
            if not may_stand_in(node_def.op, node_def):
                raise errors.not_found(
                    f"Op type not registered '{node_def.op}' in this server, for node '{node_def.name}' of function "
                    f"'{self._name}'{suggestion(node_def.op, opdefs.names())}"
                )
            self.unknown[node_def.name] = {}
            return
        counts = signature(op_def, resolve_attrs(op_def, node_def)).output_counts
        starts: dict[str, int] = {}
        position = 0
        for output, count in zip(op_def.outputs, counts, strict=True):
            starts[output.name] = position
            position += count
        self._outputs[node_def.name] = starts

    def edge(self, text: str) -> str:
        return text if text.startswith("^") else str(self.tensor(text))

    def tensor(self, text: str) -> TensorName:
        """Raises InvalidArgumentError for an edge that leads nowhere."""
        node, *rest = text.split(":")
        position = rest.pop() if rest and rest[-1].isdecimal() and len(rest[-1]) <= 9 else "0"
        if node in self._first_arg and len(rest) <= 1:
            return TensorName(node, int(position))
        if node in self.unknown:
            met = self.unknown[node]
            return TensorName(node, met.setdefault((*rest, position), len(met)))
        starts = self._outputs.get(node)
        if starts is None or len(rest) != 1 or rest[0] not in starts:
            raise _bad(self._name, f"'{text}' is no parameter and no 'node:output:number' of it")
        return TensorName(node, starts[rest[0]] + int(position))

    def stand_ins(
        self, nodes: Sequence[node_def_pb2.NodeDef], types: Signature, args: Mapping[TensorName, int]
    ) -> dict[str, OpDef]:
        """Node → definition, for those of operations that are not here: a call may never be needed."""
        if not self.unknown:
            return {}

        def parameter(name: str, index: int) -> DType | None:
            number = args.get(TensorName(name, index))
            return None if number is None else types.input_types[number]

        # what is returned is taken, too: an output that no node takes is there, and of the type that is promised
        taken: list[node_def_pb2.NodeDef] = []
        position = 0
        for output, count in zip(self._function.signature.output_arg, types.output_counts, strict=True):
            if count and output.name in self._function.ret:
                tensor = str(self.tensor(self._function.ret[output.name]))
                attrs = {"T": types.output_types[position].base_dtype}
                taken.append(new_def("Identity", f"^{output.name}", [tensor], attrs))
            position += count
        return stand_ins([*nodes, *taken], lambda node: node.name in self.unknown, self._library.definition, parameter)


def _fill_in(function: str, node: str, value: AttrValue, attrs: Mapping[str, AttrValue], depth: int = 0) -> None:
    """Gives an attribute the call's values for what it leaves open."""
    if depth > _MAX_ATTR_DEPTH:
        raise _bad(function, f"the attributes of node '{node}' are nested more than {_MAX_ATTR_DEPTH} deep")
    kind = value.WhichOneof("value")
    if kind == "placeholder":
        if value.placeholder not in attrs:
            raise _bad(function, f"node '{node}' needs attr '{value.placeholder}' of the call, which does not have it")
        value.CopyFrom(attrs[value.placeholder])
    for call in [value.func] if kind == "func" else value.list.func if kind == "list" else ():
        for inner in call.attr.values():
            _fill_in(function, node, inner, attrs, depth + 1)


def _bad(function: str, what: str) -> errors.OpError:
    return errors.invalid_argument(f"Function '{function}' is wrong: {what}.")
