"""Small programs of ops that keep something: steps one after the other, in one graph and one run.

A step is a node; its inputs are arrays, which are fed, or outputs of steps before it; control edges keep the order.
What is fetched is every output that is a tensor and no reference. Run here, kernel by kernel or in a session, and in
one of TensorFlow's.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from support.kernel_net.draw import Draw, objects
from tenfold_core import attr_value, dtypes, errors, node_attrs, opdefs, tensor_util
from tenfold_core.node_signature import signature
from tenfold_kernels import registry
from tenfold_kernels.resources.state import ResourceManager, Variable
from tenfold_kernels.resources.waiting import Waiting
from tenfold_protos import graph_pb2

#: What a file name begins with in a program: replaced by a folder of the run.
FOLDER = b"FOLDER"


@dataclass(frozen=True)
class Output:
    """Of a step."""

    name: str
    dtype: Any


@dataclass
class Program:
    """Under way."""

    d: Draw
    graph: graph_pb2.GraphDef = field(default_factory=graph_pb2.GraphDef)
    feeds: dict[str, np.ndarray] = field(default_factory=dict)
    fetches: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    last: str = ""
    #: An array is still to be given another rank.
    to_spoil: bool = False

    def __post_init__(self) -> None:
        self.graph.versions.producer = 1882

    def step(self, op: str, *inputs: Any, fetched: bool = True, **attrs: Any) -> Any:
        """Adds a node: its outputs, one, or None. Types that inputs have are filled in as attributes."""
        definition = opdefs.get(op)
        known = {attr.name: attr.default for attr in definition.attrs if attr.has_default}
        known |= {attr.name: b"" for attr in definition.attrs if attr.name in ("container", "shared_name")}
        known |= self._types(definition, inputs, attrs) | attrs
        types = signature(definition, known)
        name = f"s{len(self.graph.node)}"
        given = [self._input(value, dtype) for value, dtype in zip(inputs, types.input_types, strict=True)]
        node = self.graph.node.add(name=name, op=op, device="/device:CPU:0")
        node.input.extend(given)
        if self.last:
            node.input.append(f"^{self.last}")
        kinds = definition.attr_by_name
        for key, value in known.items():
            node.attr[key].CopyFrom(attr_value.to_proto(value, kinds[key].type))
        self.last = name
        self.text.append(f"{op}({', '.join(map(_short, inputs))})")
        outputs = [Output(f"{name}:{k}", dtype) for k, dtype in enumerate(types.output_types)]
        for output in outputs:
            plain = not output.dtype.is_ref_dtype and output.dtype not in (dtypes.resource, dtypes.variant)
            if fetched and plain:
                self.fetches.append(output.name)
        return None if not outputs else outputs[0] if len(outputs) == 1 else outputs

    def _types(self, definition: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        at = 0
        for arg in definition.inputs:
            if arg.type_list_attr:
                count = len(attrs.get(arg.type_list_attr, inputs[at:]))
                found.setdefault(arg.type_list_attr, [_dtype_of(value) for value in inputs[at : at + count]])
            else:
                count = attrs.get(arg.number_attr, 1) if arg.number_attr else 1
                if arg.type_attr and arg.type_attr not in attrs and count:
                    found[arg.type_attr] = _dtype_of(inputs[at])
            at += count
        return found

    def _input(self, value: Any, dtype: Any) -> str:
        if isinstance(value, Output):
            return value.name
        array = array_of(value, dtype)
        if self.to_spoil and self.d.maybe(0.2):
            self.to_spoil = False
            array = array[None] if array.size == 0 or self.d.maybe() else array.reshape(-1)[:1].reshape(())
            self.text.append(f"with {_short(array)}")
        name = f"x{len(self.feeds)}"
        node = self.graph.node.add(name=name, op="Placeholder")
        node.attr["dtype"].type = dtype.base_dtype.as_datatype_enum
        node.attr["shape"].shape.unknown_rank = True
        self.feeds[f"{name}:0"] = array
        return name


def _dtype_of(value: Any) -> Any:
    if isinstance(value, Output):
        return value.dtype.base_dtype
    made = np.asarray(value)
    if made.dtype.kind in "SUO":
        return dtypes.string
    if isinstance(value, np.ndarray):
        return dtypes.as_dtype(value.dtype)
    return {"f": dtypes.float32, "i": dtypes.int32, "b": dtypes.bool_}[made.dtype.kind]


def array_of(value: Any, dtype: Any) -> np.ndarray:
    if dtype.base_dtype is dtypes.string:
        made = np.asarray(value, object)
        return objects([each for each in made.ravel()]).reshape(made.shape)
    made = np.asarray(value)
    return np.ascontiguousarray(made.astype(dtype.base_dtype.as_numpy_dtype)).reshape(made.shape)


def _short(value: Any) -> str:
    if isinstance(value, Output):
        return value.name
    return str(value.tolist() if isinstance(value, np.ndarray) else value)


def question(program: Program, folder: str) -> tuple[bytes, dict[str, bytes], list[str], str]:
    """As bytes, for TensorFlow's process."""
    fed = {name: tensor_util.tensor_to_proto(in_folder(value, folder)) for name, value in program.feeds.items()}
    data = {name: value.SerializeToString() for name, value in fed.items()}
    return program.graph.SerializeToString(), data, program.fetches, program.last


def in_folder(value: np.ndarray, folder: str) -> np.ndarray:
    if value.dtype != object:
        return value
    made = objects([each.replace(FOLDER, folder.encode()) for each in value.ravel().tolist()])
    return made.reshape(value.shape)


def run_here(program: Program, folder: str, in_session: bool) -> Any:
    """The fetched values, or the error: in a session of ours, or kernel by kernel."""
    found = _in_session(program, folder) if in_session else _by_kernels(program, folder)
    return [without_folder(value, folder) for value in found] if isinstance(found, list) else found


def without_folder(value: np.ndarray, folder: str) -> np.ndarray:
    """The reverse of `in_folder`."""
    if value.dtype != object:
        return value
    return objects([each.replace(folder.encode(), FOLDER) for each in value.ravel().tolist()]).reshape(value.shape)


def _by_kernels(program: Program, folder: str) -> Any:
    values: dict[str, Any] = {name: in_folder(value, folder) for name, value in program.feeds.items()}
    resources = ResourceManager()
    try:
        for node_def in program.graph.node:
            if node_def.op != "Placeholder":
                _run_node(node_def, values, resources)
        return [np.asarray(values[name]) for name in program.fetches]
    except errors.OpError as error:
        return error


def _run_node(node_def: Any, values: dict[str, Any], resources: ResourceManager) -> None:
    definition = opdefs.get(node_def.op)
    attrs = node_attrs.resolve_attrs(definition, node_def)
    types = signature(definition, attrs)
    node = registry.KernelNode(
        node_def.name, node_def.op, attrs, types.input_types, types.output_types, "/device:CPU:0", resources
    )
    inputs = [values[name if ":" in name else f"{name}:0"] for name in node_def.input if not name.startswith("^")]
    inputs = [
        value.value if isinstance(value, Variable) and not dtype.is_ref_dtype else value
        for value, dtype in zip(inputs, types.input_types, strict=True)
    ]
    with registry.quiet():
        result = registry.lookup(node, "CPU")(node)(*inputs)
    if isinstance(result, Waiting):
        result = _waited(result)
    outputs = result if isinstance(result, tuple) else () if not types.output_types else (result,)
    for k, value in enumerate(outputs):
        # a variable that changes later must not change what was fetched
        values[f"{node_def.name}:{k}"] = value.copy() if type(value) is np.ndarray and value.dtype != object else value


def _waited(waiting: Waiting) -> Any:
    """What is there already, or comes from a thread soon."""
    over = threading.Event()
    found: list[Any] = []

    def done(outputs: Any, error: Any) -> None:
        found.extend((outputs, error))
        over.set()

    waiting.listen(done)
    if not over.wait(10):
        waiting.cancel()
        raise errors.DeadlineExceededError(None, None, waiting.why() if waiting.why is not None else "it computes")
    if found[1] is not None:
        raise found[1]
    return found[0]


def _in_session(program: Program, folder: str) -> Any:
    import tenfold as tf

    with tf.Graph().as_default() as graph:
        tf.import_graph_def(program.graph, name="")
        config = tf.ConfigProto(operation_timeout_in_ms=4_000)
        with tf.Session(graph=graph, config=config) as session:
            try:
                feeds = {name: in_folder(value, folder) for name, value in program.feeds.items()}
                found = session.run([*program.fetches, program.last], feeds)[:-1]
                return [objects([each]).reshape(()) if isinstance(each, bytes) else np.asarray(each) for each in found]
            except tf.errors.OpError as error:
                return error
