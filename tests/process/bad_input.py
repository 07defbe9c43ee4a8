"""Graphs and steps that no server may accept, for test_accept_bad_input.py: one row each, with the error it deserves.

A graph is bad for CreateSession over gRPC and over REST; a step is bad for the graph that `good_graph` makes.
Rows hold the canonical code and what the message must name. TensorFlow 1.15 is the judge of the codes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from google.protobuf import text_format

import tenfold as tf
from tenfold_core import tensor_util
from tenfold_protos import graph_pb2, master_pb2, tensor_pb2, types_pb2

INVALID, NOT_FOUND, PRECONDITION, EXHAUSTED = (
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "FAILED_PRECONDITION",
    "RESOURCE_EXHAUSTED",
)


@dataclass(frozen=True)
class BadGraph:
    """A GraphDef in text format, the code, and fragments of the message."""

    name: str
    text: str
    code: str
    says: tuple[str, ...]

    @property
    def graph_def(self) -> graph_pb2.GraphDef:
        return text_format.Parse(self.text, graph_pb2.GraphDef())


@dataclass(frozen=True)
class BadStep:
    """What is fed, fetched and run; the code, and fragments of the message."""

    name: str
    code: str
    says: tuple[str, ...]
    feeds: dict[str, tensor_pb2.TensorProto] = field(default_factory=dict)
    fetches: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    timeout_in_ms: int = 0

    @property
    def request(self) -> master_pb2.RunStepRequest:
        request = master_pb2.RunStepRequest(fetch=self.fetches, target=self.targets)
        request.options.timeout_in_ms = self.timeout_in_ms
        for name, value in self.feeds.items():
            request.feed.add(name=name, tensor=value)
        return request


def const(name: str, dtype: str = "DT_FLOAT", value: str = "float_val: 1", more: str = "") -> str:
    """A scalar constant."""
    tensor = f"tensor {{ dtype: {dtype} tensor_shape {{}} {value} }}"
    return node(name, "Const", more=f'{type_attr("dtype", dtype)} attr {{ key: "value" value {{ {tensor} }} }} {more}')


def node(name: str, op: str, *inputs: str, more: str = "") -> str:
    listed = " ".join(f'input: "{each}"' for each in inputs)
    return f'node {{ name: "{name}" op: "{op}" {listed} {more} }}\n'


def type_attr(name: str, dtype: str) -> str:
    return f'attr {{ key: "{name}" value {{ type: {dtype} }} }}'


FLOAT = type_attr("T", "DT_FLOAT")


def identity(name: str, *inputs: str, more: str = "") -> str:
    return node(name, "Identity", *inputs, more=FLOAT + more)


def on(device: str) -> str:
    return const("pinned", more=f'device: "{device}"')


BAD_GRAPHS = [
    BadGraph(
        "an unknown op",
        const("a") + node("b", "Squaer", "a", more=FLOAT),
        NOT_FOUND,
        ("Squaer", "Square", "{{node b}}"),
    ),
    BadGraph("no op at all", node("a", ""), NOT_FOUND, ("{{node a}}",)),
    BadGraph("an op of the runtime's own", node("a", "_Recv"), INVALID, ("_Recv", "'a'")),
    BadGraph("an illegal name", const("not legal"), INVALID, ("not legal",)),
    BadGraph("an empty name", const(""), INVALID, ("name",)),
    BadGraph("a node twice", const("a") + const("a"), INVALID, ("'a'", "twice")),
    BadGraph("an input that is not there", identity("a", "nobody"), INVALID, ("nobody", "'a'")),
    BadGraph("a control input that is not there", const("a", more='input: "^nobody"'), INVALID, ("nobody", "'a'")),
    BadGraph(
        "an output that is not there", const("a") + identity("b", "a:1"), INVALID, ("'b'", "output 1", "1 outputs")
    ),
    BadGraph("an output of a fantastic number", const("a") + identity("b", f"a:{10**30}"), INVALID, ("'b'",)),
    BadGraph("too few inputs", identity("a"), INVALID, ("'a'", "0 inputs", "takes 1")),
    BadGraph("too many inputs", const("a") + identity("b", "a", "a"), INVALID, ("'b'", "2 inputs", "takes 1")),
    BadGraph("data after control", const("a") + identity("b", "^a", "a"), INVALID, ("'b'", "control inputs")),
    BadGraph(
        "a type that does not fit",
        const("a", "DT_INT32", "int_val: 1") + identity("b", "a"),
        INVALID,
        ("b", "int32", "float"),
    ),
    BadGraph("an attribute that is missing", const("a") + node("b", "Identity", "a"), INVALID, ("'b'", "T")),
    BadGraph(
        "an attribute of another kind",
        const("a") + node("b", "Identity", "a", more='attr { key: "T" value { i: 1 } }'),
        INVALID,
        ("'b'", "T"),
    ),
    BadGraph(
        "an attribute that the op does not allow",
        const("a", "DT_STRING", 'string_val: "x"') + node("b", "Square", "a", more=type_attr("T", "DT_STRING")),
        INVALID,
        ("'b'", "string"),
    ),
    BadGraph(
        "a type that is none",
        const("a") + node("b", "Identity", "a", more='attr { key: "T" value { type: DT_INVALID } }'),
        INVALID,
        ("'b'", "T"),
    ),
    BadGraph(
        "a type of an unknown number",
        const("a") + node("b", "Identity", "a", more='attr { key: "T" value { type: 77 } }'),
        INVALID,
        ("'b'", "T"),
    ),
    BadGraph(
        "a shape with a dimension below -1",
        node(
            "a",
            "Placeholder",
            more=type_attr("dtype", "DT_FLOAT") + 'attr { key: "shape" value { shape { dim { size: -5 } } } }',
        ),
        INVALID,
        ("'a'", "-5"),
    ),
    BadGraph("a circle of two", identity("a", "b") + identity("b", "a"), INVALID, ("cycle",)),
    BadGraph("a node that waits for itself", const("a", more='input: "^a"'), INVALID, ("cycle",)),
    BadGraph(
        "a call of a function without what it takes",
        'library { function { signature { name: "F" input_arg { name: "x" type: DT_FLOAT } } } }' + node("a", "F"),
        INVALID,
        ("'a'", "F"),
    ),
    BadGraph("a device that is not a name", on("/job:worker/task:zero"), INVALID, ("/job:worker/task:zero",)),
    BadGraph("a job that is not there", on("/job:chief/task:0"), INVALID, ("'pinned'", "chief", "worker", "ps")),
    BadGraph(
        "a task that is not there", on("/job:worker/task:7"), INVALID, ("'pinned'", "/job:worker/task:7", "task 0")
    ),
    BadGraph(
        "a GPU that is not there",
        on("/job:ps/task:0/device:GPU:0"),
        INVALID,
        ("Cannot place 'pinned' on /job:ps/task:0/device:GPU:0", "CPU:0 only"),
    ),
    BadGraph(
        "a CPU that is not there",
        on("/job:ps/task:0/device:CPU:9"),
        INVALID,
        ("'pinned'", "/job:ps/task:0/device:CPU:9", "CPU:0"),
    ),
    BadGraph(
        "neighbours on two devices",
        const("a", more='device: "/job:ps/task:0"')
        + const("b", more='device: "/job:worker/task:0" attr { key: "_class" value { list { s: "loc:@a" } } }'),
        INVALID,
        ("a", "b", "ps", "worker"),
    ),
    BadGraph(
        "a consumer newer than we are",
        "versions { producer: 27 min_consumer: 999999 }" + const("a"),
        INVALID,
        ("999999",),
    ),
]


def good_graph() -> graph_pb2.GraphDef:
    """x float [2, 2] is fed; y = x·w on worker 0 with w a variable on the ps. The rest waits for the bad steps.

    Like TensorFlow, a server decodes constants when a step needs them, so that bad ones do no harm to others.
    """
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            w = tf.Variable([[1.0], [2.0]], name="w")
            tf.group(w.initializer, name="init")
            tf.Variable(0.0, name="forgotten")
        with tf.device("/job:worker/task:0"):
            x = tf.placeholder(tf.float32, [2, 2], name="x")
            tf.matmul(x, w, name="y")
            free = tf.placeholder(tf.float32, name="free")
            tf.matmul(free, w, name="free_product")
            n = tf.placeholder(tf.int32, [], name="n")
            tf.floordiv(7, n, name="division")
            tf.gather([10, 20, 30], n, name="picked")
            tf.reshape(free, [7, -1], name="reshaped")
            tf.fill([n, n, n], 1.0, name="cube")
            tf.no_op(name="nothing")
    graph_def: graph_pb2.GraphDef = graph.as_graph_def()
    for name, dtype, dimension, value in [
        ("short", "DT_FLOAT", 3, 'tensor_content: "abc"'),
        ("torn", "DT_INT32", 1, "float_val: 1"),
        ("huge", "DT_FLOAT", 1 << 40, "float_val: 1"),
    ]:
        tensor = f"tensor {{ dtype: DT_FLOAT tensor_shape {{ dim {{ size: {dimension} }} }} {value} }}"
        more = f'{type_attr("dtype", dtype)} attr {{ key: "value" value {{ {tensor} }} }}'
        text_format.Merge(node(name, "Const", more=more), graph_def)
    return graph_def


def tensor(value: Any, dtype: Any = np.float32) -> tensor_pb2.TensorProto:
    return tensor_util.make_tensor_proto(np.asarray(value, dtype))


X = tensor([[1, 2], [3, 4]])
Y = [[5.0], [11.0]]


def raw(**fields: Any) -> tensor_pb2.TensorProto:
    """A TensorProto of one dimension of `size`, with these fields."""
    size = fields.pop("size")
    proto = tensor_pb2.TensorProto(dtype=types_pb2.DT_FLOAT, **fields)
    proto.tensor_shape.dim.add(size=size)
    return proto


BAD_STEPS = [
    BadStep(
        "another type fed", INVALID, ("x", "int32", "float"), {"x:0": tensor([[1, 2], [3, 4]], np.int32)}, ("y:0",)
    ),
    BadStep("another shape fed", INVALID, ("x", "[3]"), {"x:0": tensor([1, 2, 3])}, ("y:0",)),
    BadStep("another size fed", INVALID, ("x", "[2,3]"), {"x:0": tensor(np.ones((2, 3)))}, ("y:0",)),
    BadStep(
        "nothing fed", INVALID, ("You must feed a value for placeholder tensor 'x'", "float", "[2,2]"), {}, ("y:0",)
    ),
    BadStep("a fetch that is not there", NOT_FOUND, ("nobody",), {"x:0": X}, ("nobody:0",)),
    BadStep("an output that is not there", INVALID, ("y:3", "must be < 1"), {"x:0": X}, ("y:3",)),
    BadStep("a fetch of what has no output", INVALID, ("nothing",), {}, ("nothing:0",)),
    BadStep("a fetch that is not a name", NOT_FOUND, ("y:zero",), {"x:0": X}, ("y:zero",)),
    BadStep("an empty fetch", NOT_FOUND, ("Fetch",), {"x:0": X}, ("",)),
    BadStep("a target that is not there", NOT_FOUND, ("nobody",), {}, (), ("nobody",)),
    BadStep("a feed that is not there", NOT_FOUND, ("nobody",), {"x:0": X, "nobody:0": X}, ("y:0",)),
    BadStep(
        "a variable that was never initialized", PRECONDITION, ("uninitialized", "forgotten"), {}, ("forgotten:0",)
    ),
    BadStep("a constant whose bytes do not fill its shape", INVALID, ("short", "3 bytes", "[3]"), {}, ("short:0",)),
    BadStep("a constant of another type than it says", INVALID, ("torn", "float", "int32"), {}, ("torn:0",)),
    BadStep("a constant larger than the world", INVALID, ("huge", "too large"), {}, ("huge:0",)),
    BadStep(
        "matrices that do not fit",
        INVALID,
        ("free_product", "[2,1]"),
        {"free:0": tensor(np.ones((2, 3)))},
        ("free_product:0",),
    ),
    BadStep("a division by zero", INVALID, ("zero", "division"), {"n:0": tensor(0, np.int32)}, ("division:0",)),
    BadStep("an index beyond the end", INVALID, ("picked", "30"), {"n:0": tensor(30, np.int32)}, ("picked:0",)),
    BadStep("a shape that does not divide", INVALID, ("reshaped", "7"), {"free:0": tensor([1, 2, 3])}, ("reshaped:0",)),
    BadStep("more than memory holds", EXHAUSTED, ("OOM", "cube"), {"n:0": tensor(1 << 20, np.int32)}, ("cube:0",)),
    BadStep("more than an address reaches", INVALID, ("cube",), {"n:0": tensor(1 << 21, np.int32)}, ("cube:0",)),
    BadStep("a negative time-out", INVALID, ("timeout_in_ms", "-1"), {"x:0": X}, ("y:0",), timeout_in_ms=-1),
    BadStep(
        "a tensor whose bytes do not fill its shape",
        INVALID,
        ("free",),
        {"free:0": raw(size=5, tensor_content=b"1234")},
        ("reshaped:0",),
    ),
    BadStep(
        "a tensor with a negative dimension",
        INVALID,
        ("free",),
        {"free:0": raw(size=-2, float_val=[1.0])},
        ("reshaped:0",),
    ),
    BadStep(
        "a tensor larger than the world",
        INVALID,
        ("free",),
        {"free:0": raw(size=1 << 60, float_val=[1.0])},
        ("reshaped:0",),
    ),
    BadStep("a tensor without a type", INVALID, ("free",), {"free:0": tensor_pb2.TensorProto()}, ("reshaped:0",)),
]
