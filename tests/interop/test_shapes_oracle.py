"""Static shapes of a node's outputs are TensorFlow's, for every op that both have.

All cases of shape_cases.py go to one TensorFlow process, which builds the nodes and says what shapes it inferred. Where
it refuses a node there is nothing to compare; where ours differ on purpose, `DIFFERENT` says why.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import opdefs
from tenfold_core.attr_value import to_proto
from tenfold_core.node_signature import signature
from tenfold_core.shape_inference import infer_shapes
from tenfold_core.tensor_shape import TensorShape
from tenfold_protos import node_def_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.long


def _load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


cases = _load("shape_cases")

#: Op → why we infer another shape than TensorFlow does.
DIFFERENT: dict[str, str] = {
    "ApplyFtrl": "a slot's shape may say more of a variable whose own is not known; ours keep the reference's",
    "MatrixDiagV2": "TensorFlow takes a number of rows that is not known for -1; it may come as another",
    "MatrixDiagV3": "as MatrixDiagV2",
    "ExtractVolumePatches": "where sizes are open TensorFlow gives four axes, as for images; a volume has five",
    **dict.fromkeys(
        ("BlockLSTMGrad", "BlockLSTMGradV2", "GRUBlockCellGrad"),
        "TensorFlow gives the ranks of operands that are not known; ours are the operands' shapes as they are",
    ),
    **dict.fromkeys(
        ("Dilation2DBackpropFilter", "Dilation2DBackpropInput", "DrawBoundingBoxes", "DrawBoundingBoxesV2"),
        "TensorFlow takes the shape of an operand, whatever its rank; the kernels of both refuse all but one",
    ),
    **dict.fromkeys(
        ("EncodeJpegVariableQuality", "FractionalAvgPoolGrad", "RaggedBincount", "SparseBincount"),
        "operands of a rank that TensorFlow's kernel refuses are refused here when the graph is built",
    ),
    **dict.fromkeys(
        ("FractionalAvgPool", "FractionalMaxPool"),
        "the sequences have one element more than the output is long, in TensorFlow's steps too; it infers one too few",
    ),
    "SerializeIterator": "a scalar in TensorFlow 1.15, a vector in 2.21",
    "QueueSizeV2": "TensorFlow takes the shape of the handle; a size is a scalar, whatever is known of the handle",
    "ResourceGatherNd": "TensorFlow takes the shape of the handle where it knows none of the variable",
}

#: What TensorFlow says of an op that this release no longer makes: there is nothing to compare.
REMOVED = "is not available in GraphDef version"

#: Makes each node and prints its outputs' shapes, or null where TensorFlow refuses it.
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
            if value is not None:
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

# A node that no program would make can end TensorFlow's process: a child asks, and the next one goes on behind it.
asked = [node for _, nodes in json.load(open(sys.argv[1])) for node in nodes]
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
                answers.write(json.dumps(infer(graph, made, number, node, inputs)) + "\\n")
                answers.flush()
        os._exit(0)
    os.waitpid(child, 0)
    out += [json.loads(line) for line in open(path)]
    if len(out) < len(asked):
        out.append("crashed")
print(json.dumps(out))
"""


def _node(case: Any) -> str:
    definition = opdefs.get(case.op)
    node = node_def_pb2.NodeDef(name="n", op=case.op)
    for name, value in case.attrs.items():
        node.attr[name].CopyFrom(to_proto(value, definition.attr_by_name[name].type))
    return base64.b64encode(node.SerializeToString()).decode()


@pytest.fixture(scope="module")
def theirs(
    ask_tensorflow: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[str, list[Any], list[Any]]]:
    """(op, cases, TensorFlow's answers)."""
    asked = [(op, cases.cases_of(op)) for op in opdefs.names() if opdefs.get(op).outputs]
    path = tmp_path_factory.mktemp("shapes") / "cases.json"
    path.write_text(
        json.dumps(
            [
                [op, [[_node(c), [[i.dtype.as_datatype_enum, i.shape, i.value] for i in c.inputs]] for c in some]]
                for op, some in asked
            ]
        )
    )
    answers = iter(ask_tensorflow(SCRIPT, str(path)))
    return [(op, some, [next(answers) for _ in some]) for op, some in asked]


def ours(case: Any) -> list[Any]:
    """The shapes we infer: lists, None for an unknown rank."""
    definition = opdefs.get(case.op)
    outputs = len(signature(definition, case.attrs).output_types)

    def constant(index: int) -> Any:
        item = case.inputs[index]
        return None if item.value is None else np.array(item.value, item.dtype.base_dtype.as_numpy_dtype)

    shapes = infer_shapes(definition, case.attrs, [TensorShape(i.shape) for i in case.inputs], constant, outputs)
    return [None if shape.ndims is None else shape.as_list() for shape in shapes]


def difference(case: Any, answer: list[Any]) -> str | None:
    try:
        found = ours(case)
    except ValueError as error:
        return f"{case}: we refuse it ({error}), TensorFlow infers {answer}"
    except Exception as error:
        return f"{case}: {type(error).__name__} ({error}), TensorFlow infers {answer}"
    return None if found == answer else f"{case}: {found} here, {answer} there"


def test_every_op_infers_tensorflows_shapes(theirs: list[tuple[str, list[Any], list[Any]]]) -> None:
    wrong = []
    for op, some, answers in theirs:
        if op not in DIFFERENT:
            different = [difference(c, a) for c, a in zip(some, answers, strict=True) if not isinstance(a, str)]
            wrong += [text for text in different if text is not None][:2]

    assert wrong == []


def test_most_ops_are_compared(theirs: list[tuple[str, list[Any], list[Any]]]) -> None:
    compared = [op for op, _, answers in theirs if any(not isinstance(a, str) for a in answers)]
    removed = {op for op, _, answers in theirs if any(REMOVED in str(a) for a in answers)}
    never = {op for op, _, _ in theirs} - set(compared) - removed - set(cases.NOT_ASKED)

    assert sorted(never) == []
    assert len(compared) > 600


def test_a_difference_that_is_none_is_not_listed(theirs: list[tuple[str, list[Any], list[Any]]]) -> None:
    listed = [(op, some, answers) for op, some, answers in theirs if op in DIFFERENT]

    for op, some, answers in listed:
        pairs = [(c, a) for c, a in zip(some, answers, strict=True) if not isinstance(a, str)]
        assert any(difference(c, a) for c, a in pairs), f"{op} is TensorFlow's now: take it off the table"
