"""Hand-made functions and the nodes that call them, as a TensorFlow client puts them into a GraphDef's library.

function("twice", ["x: float"], ["y: float"], [node("add", "Add", "x", "x", T=dtypes.float32)], y="add:z:0")
"""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING, Any

import numpy as np

from support.programs import compile_program
from support.verify_graph import verify
from tenfold.server_gradients import gradient_of_op
from tenfold_compiler.graph.lower import lower
from tenfold_compiler.graph.node import assigned
from tenfold_compiler.graph.partition import partition
from tenfold_compiler.graph.prune import prune
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_core import attr_value, dtypes, errors, opdefs, tensor_util
from tenfold_kernels.resources.state import ResourceManager
from tenfold_protos.attr_value_pb2 import AttrValue, NameAttrList
from tenfold_protos.device_attributes_pb2 import DeviceAttributes
from tenfold_protos.function_pb2 import FunctionDef
from tenfold_protos.graph_pb2 import GraphDef
from tenfold_protos.node_def_pb2 import NodeDef
from tenfold_services.worker.execution import StepIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tenfold_kernels.resources.waiting import Waiting
    from tenfold_services.worker.loaded_program import LoadedProgram


def node(name: str, op: str, *inputs: str, device: str = "", **attrs: Any) -> NodeDef:
    """A node; a str as the value of an attribute that is no string is a placeholder ("T" of the function)."""
    result = NodeDef(name=name, op=op, input=inputs, device=device)
    kinds = {attr.name: attr.type for attr in opdefs.get(op).attrs} if opdefs.has(op) else {}
    for key, value in attrs.items():
        kind = kinds.get(key, "")
        if isinstance(value, AttrValue):
            result.attr[key].CopyFrom(value)
        elif isinstance(value, str) and kind not in ("string", "func"):
            result.attr[key].placeholder = value
        else:
            result.attr[key].CopyFrom(attr_value.to_proto(value, kind))
    return result


def const(name: str, value: Any, dtype: Any = None, *inputs: str) -> NodeDef:
    proto = tensor_util.make_tensor_proto(value, dtype)
    return node(name, "Const", *inputs, value=proto, dtype=dtypes.as_dtype(int(proto.dtype)))


def call(name: str, **attrs: AttrValue) -> NameAttrList:
    """A function as the value of an attribute."""
    result = NameAttrList(name=name)
    for key, value in attrs.items():
        result.attr[key].CopyFrom(value)
    return result


def function(
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    nodes: Sequence[NodeDef],
    *,
    attrs: Sequence[str] = (),
    control: Sequence[str] = (),
    stateful: bool = False,
    **returns: str,
) -> FunctionDef:
    """`inputs` and `outputs` are "name: type", where the type may be one of `attrs` ("T" or "T*N", a count before)."""
    result = FunctionDef()
    result.signature.name = name
    result.signature.is_stateful = stateful
    for text in attrs:
        key, _, kind = text.partition(": ")
        result.signature.attr.add(name=key, type=kind or "type")
    for items, target in ((inputs, result.signature.input_arg), (outputs, result.signature.output_arg)):
        for text in items:
            arg_name, _, kind = text.partition(": ")
            arg = target.add(name=arg_name)
            number, star, kind = kind.rpartition(" * ")
            if star:
                arg.number_attr = number
            if kind in {key.partition(": ")[0] for key in attrs}:
                arg.type_attr = kind
            else:
                arg.type = dtypes.as_dtype(kind).as_datatype_enum  # type: ignore[assignment]
    result.node_def.extend(nodes)
    result.ret.update(returns)
    result.control_ret.update({each: each for each in control})
    return result


def graph(nodes: Sequence[NodeDef], *functions: FunctionDef) -> GraphDef:
    result = GraphDef(node=nodes)
    result.library.function.extend(functions)
    return result


def result_of(waiting: Waiting | None, seconds: float = 30.0) -> Any:
    """What a kernel's Waiting comes to. Raises its error; fails after `seconds`."""
    assert waiting is not None
    over: queue.SimpleQueue[tuple[Any, errors.OpError | None]] = queue.SimpleQueue()
    waiting.listen(lambda *result: over.put(result))
    outputs, error = over.get(timeout=seconds)
    if error is not None:
        raise error
    return outputs


DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


def program_of(
    graph_def: GraphDef,
    fetches: Sequence[str],
    feeds: Iterable[str] = (),
    targets: Sequence[str] = (),
    resources: ResourceManager | None = None,
) -> LoadedProgram:
    """Lowers a graph and compiles it as one part: all the passes, no server."""
    lowered = verify(lower(RuntimeGraph.from_graph_def(graph_def), gradients=gradient_of_op), after="build")
    placed = lowered.with_nodes(assigned(each, DEVICE) for each in lowered.nodes.values())
    pruned = prune(placed, list(feeds), fetches, targets, client_device=DeviceAttributes(name=DEVICE, incarnation=1))
    (part,) = partition(pruned, incarnation=lambda _: 1).parts.values()
    task = DEVICE.partition("/device")[0]
    return compile_program(part, task, resources or ResourceManager(), gradients=gradient_of_op)


def evaluate(
    graph_def: GraphDef,
    fetches: Sequence[str],
    feeds: dict[str, Any] | None = None,
    targets: Sequence[str] = (),
    resources: ResourceManager | None = None,
) -> list[Any]:
    """`program_of`, run once. The values of the fetches."""
    feeds = feeds or {}
    program = program_of(graph_def, fetches, feeds, targets, resources)
    values = {feed.key: np.asarray(feeds[feed.key.split(";")[3]]) for feed in program.compiled.transfers.feeds}
    execution = program.start(StepIO(values, lambda *_: None))
    while not execution.done:
        while execution.ready:
            execution.advance()
        for wanted in execution.take_wanted():
            execution.arrived(wanted.token, result_of(wanted.waiting), False)
    found = {key.split(";")[3]: value for key, value in execution.fetched().items()}
    return [found[name] for name in fetches]
