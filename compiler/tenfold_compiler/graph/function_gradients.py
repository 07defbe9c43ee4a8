"""The gradient of a function as a function: what a SymbolicGradient computes where the client gave no gradient along.

    y = f(x)   →   dx = f'(x, dy):   the body of f, and behind it, consumers first, a SymbolicGradient for each node

Each of those is of another function, whose turn comes when lower.py puts the body in place, or of a plain op, whose
gradient is a small graph made by the client's rules (tenfold_core.op_gradients). Follows SymbolicGradientBuilder in
TensorFlow's common_runtime/gradients.cc, but leaves out nodes that no argument reaches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import dtypes, errors
from tenfold_core.node_names import TensorName, free_name, parse_tensor_name
from tenfold_core.reached import reached
from tenfold_protos import attr_value_pb2, node_def_pb2

from .functions import FunctionBody
from .node import new_def
from .runtime_graph import client_node

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tenfold_core.dtypes import DType
    from tenfold_core.op_gradients import OpGradients
    from tenfold_protos.attr_value_pb2 import NameAttrList

    from .function_library import FunctionLibrary
    from .functions import Functions
    from .node import Node

#: Ops that decide which nodes run: their rules need the loop or branch around, which only a client's graph knows.
_CONTROL_FLOW_OPS = """
    Switch RefSwitch _SwitchN Merge RefMerge Enter RefEnter Exit RefExit NextIteration RefNextIteration LoopCond
    If StatelessIf Case StatelessCase While StatelessWhile For RemoteCall
"""
_NO_GRADIENT_HERE = frozenset(_CONTROL_FLOW_OPS.split())
_CALL_OPS = ("PartitionedCall", "StatefulPartitionedCall")
#: Gradients that one graph may ask for, and how deep functions may call each other in it; a peer chooses both.
MAX_GRADIENTS = 4096
_MAX_DEPTH = 50
_NUMBERLESS = frozenset((dtypes.bool_, dtypes.string))


def differentiated(node: Node) -> NameAttrList:
    """What the gradient of a node is the gradient of: the function that it calls, or its op.

    Raises InvalidArgumentError for what has no second derivative here.
    """
    attr = node.node_def.attr
    if node.op == "SymbolicGradient":
        raise errors.InvalidArgumentError(node.node_def, None, "Can't take gradient of SymbolicGradient")
    if node.op in _CALL_OPS:
        return attr["f"].func
    known = {key: value for key, value in attr.items() if key in node.op_def.attr_by_name}
    return attr_value_pb2.NameAttrList(name=node.op, attr=known)


class FunctionGradients:
    """The gradients of a graph's functions; each is made once and defined among them."""

    def __init__(self, functions: Functions, of_op: OpGradients) -> None:
        """`of_op` makes the gradient of a plain op."""
        self._functions, self._of_op = functions, of_op
        self._library = functions.library
        #: (name, attributes) of what was differentiated → the name of its gradient; None where nothing flows back.
        self._made: dict[tuple[str, bytes], str | None] = {}
        #: Being made: a function may stand in its own body.
        self._making: list[tuple[str, bytes]] = []

    def of(self, f: NameAttrList) -> NameAttrList:
        """The call of the gradient of `f`, a function of the library or an op: the client's own, or one made here.

        Raises NotFoundError for an op on the way without a gradient, InvalidArgumentError for what makes no sense.
        """
        given = self._library.gradient_of(f.name)
        name = given or self._name_of(f)
        if name is None:
            raise errors.invalid_argument(f"No gradient is defined for {f.name}")
        return attr_value_pb2.NameAttrList(name=name, attr=f.attr if given else {})

    def types(self, f: NameAttrList, node: Node) -> tuple[DType, ...] | None:
        """The types of the gradient of `node`, which is of `f`; None where nothing flows back.

        Raises InvalidArgumentError where the client's own gradient function gives more or less than one for each input.
        """
        inputs = tuple(dtype.base_dtype for dtype in node.input_types)
        if f.name in self._library and dtypes.resource not in inputs:
            return inputs
        given = self._library.gradient_of(f.name)
        name = given or self._name_of(f)
        if name is None:
            return None
        types = self._functions.body(name, f.attr if given else {}).output_types
        if len(types) != len(inputs):
            # a client's own gradient function may give too few
            raise errors.invalid_argument(
                f"SymGrad expects to return {len(inputs)} tensor(s), but get {len(types)} tensor(s) instead."
            )
        return types

    def _name_of(self, f: NameAttrList) -> str | None:
        key = _key(f)
        if key in self._made:
            return self._made[key]
        # those that are being made count: one function may be among them with several attributes
        name = f"gradient of {f.name} ({len(self._made) + len(self._making) + 1})"
        if key in self._making:
            raise errors.invalid_argument(f"The gradient of '{f.name}' needs itself to be made.")
        if len(self._made) >= MAX_GRADIENTS or len(self._making) >= _MAX_DEPTH:
            raise errors.resource_exhausted(
                f"The graph asks for more than {MAX_GRADIENTS} different gradients, or for gradients of functions that "
                f"call each other more than {_MAX_DEPTH} deep."
            )
        self._making.append(key)
        if f.name in self._library:
            body = self._functions.body(f.name, f.attr)
            made: FunctionBody | None = _FunctionGradient(body, self._library, self).run(name)
        else:
            made = _gradient_of_op(f, name, self._library, self._of_op)
        self._making.pop()
        if made is not None:
            self._functions.define(made)
        return self._made.setdefault(key, None if made is None else name)


def _key(f: NameAttrList) -> tuple[str, bytes]:
    return f.name, f.SerializeToString(deterministic=True)


def _gradient_of_op(f: NameAttrList, name: str, library: FunctionLibrary, of_op: OpGradients) -> FunctionBody | None:
    """(The op's inputs, the gradient of each output) → the gradient of each input; None where nothing flows back."""
    if f.name in _NO_GRADIENT_HERE:
        raise _no_gradient(f.name)
    known = {key: value for key, value in f.attr.items() if not key.startswith("_")}
    operation = node_def_pb2.NodeDef(name="op", op=f.name, attr=known)
    try:
        found = of_op(operation)
    except errors.OpError as error:
        # without the reference to the node, which is not in the graph
        raise errors.from_code(error.code, error.message.partition("\n\t [[{{node")[0]) from None
    except LookupError:
        raise _no_gradient(f.name) from None
    except Exception as error:  # a rule is a program of the client's, run on a peer's attributes
        raise errors.invalid_argument(
            f"The gradient of op '{f.name}' cannot be made with these attributes: {error}"
        ) from error
    if found is None:
        return None
    nodes = {node.name: client_node(node, library) for node in found.graph_def.node}
    returns = tuple(parse_tensor_name(text) for text in found.outputs)
    needed = reached((tensor.node for tensor in returns), lambda node: nodes[node].sources)
    return FunctionBody(
        name,
        tuple(nodes[arg].output_types[0] for arg in found.args),
        tuple(nodes[tensor.node].output_types[tensor.output].base_dtype for tensor in returns),
        {TensorName(arg, 0): number for number, arg in enumerate(found.args)},
        {arg: number for number, arg in enumerate(found.args)},
        tuple(node for node in nodes.values() if node.name in needed and node.name not in found.args),
        returns,
        (),
    )


class _FunctionGradient:
    """One function's gradient under construction."""

    def __init__(self, body: FunctionBody, library: FunctionLibrary, gradients: FunctionGradients) -> None:
        self._body, self._library, self._gradients = body, library, gradients
        self._nodes = {node.name: node for node in body.nodes}
        self._made: list[Node] = []
        self._names = {*self._nodes, *body.first_arg}
        #: What each output of the function, argument or node has received, with its type.
        self._received: dict[TensorName, list[tuple[TensorName, DType]]] = {}

    def run(self, name: str) -> FunctionBody:
        body = self._body
        args, first_arg = dict(body.args), dict(body.first_arg)
        for tensor, dtype in zip(body.returns, body.output_types, strict=True):
            dy = TensorName(free_name("dy", self._names), 0)
            args[dy] = first_arg[dy.node] = len(args)
            self._receive(tensor, dy, dtype.base_dtype)
        for node in self._consumers_first():
            self._differentiate(node)
        dxs = [self._sum(tensor, body.arg_types[number]) for tensor, number in body.args.items()]
        return FunctionBody(
            name,
            (*body.arg_types, *body.output_types),
            tuple(dtype for _, dtype in dxs),
            args,
            first_arg,
            (*body.nodes, *self._made),
            tuple(dx for dx, _ in dxs),
            (),
        )

    def _consumers_first(self) -> list[Node]:
        """The nodes between the arguments and the outputs."""
        args = self._body.args
        depends: dict[str, Node] = {}
        seen: set[str] = set()
        stack = [tensor.node for tensor in reversed(self._body.returns) if tensor not in args]
        while stack:
            name = stack.pop()
            node = self._nodes[name]
            if name not in seen:
                seen.add(name)
                # once more after its sources
                stack += [name, *(t.node for t in node.inputs if t not in args and t.node not in seen)]
            elif name not in depends and any(t in args or t.node in depends for t in node.inputs):
                depends[name] = node
        return list(depends.values())[::-1]

    def _differentiate(self, node: Node) -> None:
        outputs = [TensorName(node.name, number) for number in range(len(node.output_types))]
        if not any(self._received.get(tensor) for tensor in outputs):
            return
        f = differentiated(node)
        types = self._gradients.types(f, node)
        if types is None:
            return
        dys = [self._sum(tensor, dtype)[0] for tensor, dtype in zip(outputs, node.output_types, strict=True)]
        taken = [dtype.base_dtype for dtype in (*node.input_types, *node.output_types)]
        attrs = {"Tin": taken, "Tout": list(types), "f": f}
        made = self._add("SymbolicGradient", [*node.inputs, *dys], attrs, node.requested_device)
        for number, (tensor, dtype) in enumerate(zip(node.inputs, types, strict=True)):
            if dtype not in _NUMBERLESS:
                self._receive(tensor, made._replace(output=number), dtype)

    def _receive(self, tensor: TensorName, gradient: TensorName, dtype: DType) -> None:
        self._received.setdefault(tensor, []).append((gradient, dtype))

    def _sum(self, tensor: TensorName, dtype: DType) -> tuple[TensorName, DType]:
        """All that a tensor has received, or zeros."""
        received = self._received.get(tensor, [])
        if not received or dtype.base_dtype in _NUMBERLESS:
            return self._zeros(tensor, dtype.base_dtype)
        if len(received) == 1:
            return received[0]
        total = received[0][1]
        return self._add("AddN", [gradient for gradient, _ in received], {"N": len(received), "T": total}), total

    def _zeros(self, tensor: TensorName, dtype: DType) -> tuple[TensorName, DType]:
        if dtype is dtypes.resource:
            dtype = dtypes.float32
            tensor = self._add("ReadVariableOp", [tensor], {"dtype": dtype})
        elif dtype is dtypes.string:
            shape = self._add("Shape", [tensor], {"T": dtype})
            nothing = self._add("Const", [], {"dtype": dtype, "value": b""})
            return self._add("Fill", [shape, nothing], {"T": dtype}), dtype
        return self._add("ZerosLike", [tensor], {"T": dtype}), dtype

    def _add(self, op: str, inputs: Iterable[TensorName], attrs: dict[str, Any], device: str = "") -> TensorName:
        node_def = new_def(op, free_name(f"Func/{op}", self._names), inputs, attrs, device)
        self._made.append(client_node(node_def, self._library))
        return TensorName(node_def.name, 0)


def _no_gradient(op: str) -> errors.OpError:
    return errors.not_found(f"No gradient defined for op: {op}.")
