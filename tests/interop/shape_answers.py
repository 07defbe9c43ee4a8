"""Asks TensorFlow which static shapes it infers for the nodes of shape_cases.py, or why it refuses one."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

from tenfold_core import opdefs
from tenfold_core.attr_value import to_proto
from tenfold_protos import node_def_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.support.shape_table import ShapeCase

#: What TensorFlow says of an op that this release no longer makes: there is nothing to compare.
REMOVED = "is not available in GraphDef version"
#: What it says of a node whose shapes it does not come to look at, and where it breaks itself.
NOT_OF_SHAPES = (REMOVED, "Op type not registered", "must be at least minimum", "crashed", "IndexError")

#: Makes each node and prints its outputs' shapes, or the text with which TensorFlow refuses it.
SCRIPT = """
import base64, json, os, sys
import tensorflow as tf
from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import ops

tf1 = tf.compat.v1

def make(graph, made, position, dtype, shape, value):
    key = json.dumps([position, dtype, shape, value])
    if key not in made:
        kind = tf.dtypes.as_dtype(dtype)
        with graph.as_default():
            if isinstance(value, list) and None in value:
                made[key] = tf.stack([tf1.placeholder(kind, []) if v is None else tf.constant(v, kind) for v in value])
            elif value is not None:
                made[key] = tf.constant(value, kind)
            elif kind._is_ref_dtype:
                made[key] = tf.raw_ops.VariableV2(shape=tf.TensorShape(shape), dtype=kind.base_dtype)
            else:
                made[key] = tf1.placeholder(kind, shape)
    return made[key]

def text(tensor):
    shape = tensor.shape
    return None if shape.rank is None else shape.as_list()

def infer(graph, made, number, node, inputs):
    try:
        tensors = [make(graph, made, k, *i) for k, i in enumerate(inputs)]
        proto = node_def_pb2.NodeDef.FromString(base64.b64decode(node))
        proto.name = f"n{number}"
        with graph.as_default():
            made_op = ops.Operation.from_node_def(proto, graph, tensors)
        return [text(t) for t in made_op.outputs]
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]

# A node that no program would make can end TensorFlow's process, or throw through its locks (IndexError): a child asks,
# and the next one goes on behind it.
asked = json.load(open(sys.argv[1]))
path, out = sys.argv[1] + ".out", []
while len(out) < len(asked):
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with open(path, "w") as answers:
            graph, made = tf.Graph(), {}
            for number, (node, inputs) in enumerate(asked[len(out):]):
                if number % 500 == 499:
                    graph, made = tf.Graph(), {}
                answer = infer(graph, made, number, node, inputs)
                answers.write(json.dumps(answer) + "\\n")
                answers.flush()
                if str(answer).startswith("IndexError"):
                    break
        os._exit(0)
    os.waitpid(child, 0)
    out += [json.loads(line) for line in open(path)]
    if len(out) < len(asked) and not str(out[-1:]).startswith("['IndexError"):
        out.append("crashed")
print(json.dumps(out))
"""


def _node(case: ShapeCase) -> str:
    definition = opdefs.get(case.op)
    node = node_def_pb2.NodeDef(name="n", op=case.op)
    for name, value in case.attrs.items():
        node.attr[name].CopyFrom(to_proto(value, definition.attr_by_name[name].type))
    return base64.b64encode(node.SerializeToString()).decode()


def ask(ask_tensorflow: Callable[..., Any], cases: Sequence[ShapeCase], folder: Path) -> list[Any]:
    """For each case the shapes of its outputs (None for an unknown rank), or the text of a refusal."""
    path = folder / "cases.json"
    path.write_text(
        json.dumps([[_node(c), [[i.dtype.as_datatype_enum, i.shape, i.value] for i in c.inputs]] for c in cases])
    )
    answers: list[Any] = ask_tensorflow(SCRIPT, str(path))
    return answers


def reason(text: str) -> str:
    """What is wrong, of a refusal: without the error's class and the node."""
    said = re.split(r" for '\{\{node|; NodeDef|\. Shapes are |\n", text.partition(": ")[2])[0]
    return " ".join(said.split())[:80].strip(". ")
