"""Runs ops under real TensorFlow and here, on the same inputs and the very node that TensorFlow's client makes.

A case is an op, its inputs by name (arrays; lists of arrays for list inputs) and its attrs as Python text, read by
TensorFlow alone: `Case("Substr", {"input": …, "pos": 1, "len": 2}, "unit='BYTE'")`. `compare` gives what differs.
"""

from __future__ import annotations

import base64
import json
from typing import Any, NamedTuple

import numpy as np

from tenfold_core import dtypes, errors, opdefs, tensor_util
from tenfold_core.node_attrs import resolve_attrs
from tenfold_core.node_signature import signature
from tenfold_kernels import registry
from tenfold_kernels.resources.state import ResourceManager
from tenfold_protos import node_def_pb2, tensor_pb2

#: Each case is run `runs` times in one session: a node's second run must go on where the first stopped.
SCRIPT = """
import base64, json, sys
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
tf1 = tf.compat.v1

def decode(value, feeds):
    if isinstance(value, list):
        return [decode(v, feeds) for v in value]
    proto = tensor_pb2.TensorProto.FromString(base64.b64decode(value))
    placeholder = tf1.placeholder(tf.dtypes.as_dtype(proto.dtype))
    feeds[placeholder] = tf.make_ndarray(proto)
    return placeholder

def encode(value, dtype):
    return base64.b64encode(tf.make_tensor_proto(value, dtype).SerializeToString()).decode()

out = []
for op, inputs, attrs, runs in json.load(open(sys.argv[1])):
    with tf.Graph().as_default() as graph, tf1.Session() as session:
        try:
            feeds = {}
            arguments = {name: decode(v, feeds) for name, v in inputs.items()} | eval("dict(" + attrs + ")")
            getattr(tf.raw_ops, op)(**arguments)
            node = graph.get_operations()[-1]
            fetched = [session.run(node.outputs, feeds) for _ in range(runs)]
            answer = [[encode(v, t.dtype) for v, t in zip(values, node.outputs)] for values in fetched]
        except tf.errors.OpError as error:
            node = graph.get_operations()[-1]
            answer = {"code": error.error_code, "message": error.message}
        out.append([base64.b64encode(node.node_def.SerializeToString()).decode(), answer])
print(json.dumps(out))
"""


class Case(NamedTuple):
    """One node and its inputs; `runs` times in one session."""

    op: str
    inputs: dict[str, Any]
    attrs: str = ""
    runs: int = 1
    tolerance: float = 0.0


class Answer(NamedTuple):
    """The node as TensorFlow's client made it, and per run the outputs, or (code, message)."""

    node: node_def_pb2.NodeDef
    runs: list[list[Any]] | None
    error: tuple[int, str] | None


def strings(value: Any) -> np.ndarray[Any, Any]:
    """An array of bytes of nested lists of bytes."""
    array = np.array(value, dtype=object)
    return array


def _array(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, bytes):
        out = np.empty((), object)
        out[()] = value
        return out
    return tensor_util.as_array(value)


def _encoded(value: Any) -> Any:
    if isinstance(value, list) and (not value or isinstance(value[0], np.ndarray)):
        return [_encoded(v) for v in value]
    return base64.b64encode(tensor_util.tensor_to_proto(_array(value)).SerializeToString()).decode()


def ask(ask_tensorflow: Any, folder: Any, cases: list[Case]) -> list[Answer]:
    """What TensorFlow gives for all cases, in one process."""
    path = folder / "cases.json"
    path.write_text(
        json.dumps([[c.op, {name: _encoded(v) for name, v in c.inputs.items()}, c.attrs, c.runs] for c in cases])
    )
    answers = []
    for node, answer in ask_tensorflow(SCRIPT, str(path)):
        proto = node_def_pb2.NodeDef.FromString(base64.b64decode(node))
        if isinstance(answer, dict):
            answers.append(Answer(proto, None, (answer["code"], answer["message"])))
        else:
            answers.append(Answer(proto, [[_decoded(v) for v in run] for run in answer], None))
    return answers


def _decoded(value: str) -> Any:
    return tensor_util.make_ndarray(tensor_pb2.TensorProto.FromString(base64.b64decode(value)))


def run_here(case: Case, node_def: node_def_pb2.NodeDef) -> list[list[Any]]:
    """The outputs of our kernel for TensorFlow's node, run by run."""
    attrs = resolve_attrs(opdefs.get(case.op), node_def)
    types = signature(opdefs.get(case.op), attrs)
    node = registry.KernelNode(
        node_def.name, case.op, attrs, types.input_types, types.output_types, "/device:CPU:0", ResourceManager()
    )
    compute = registry.lookup(node, "CPU")(node)
    flat: list[Any] = []
    for arg in opdefs.get(case.op).inputs:
        value = case.inputs[arg.name]
        flat += [_array(v) for v in value] if arg.is_list else [_array(value)]
    runs = []
    with registry.quiet():
        for _ in range(case.runs):
            result = compute(*flat)
            outputs = [] if result is None else list(result) if isinstance(result, tuple) else [result]
            for output, dtype in zip(outputs, types.output_types, strict=True):
                assert type(output) is np.ndarray
                assert output.dtype == np.dtype(dtype.as_numpy_dtype), f"{case.op} gives {output.dtype}"
            runs.append(outputs)
    return runs


def difference(case: Case, answer: Answer) -> str | None:
    """What our kernel does otherwise than TensorFlow, or None."""
    try:
        ours = run_here(case, answer.node)
    except errors.OpError as error:
        if answer.error is None:
            return f"we raise {type(error).__name__}: {error.message}; TensorFlow gives {answer.runs}"
        code, message = answer.error
        if error.code != code:
            return f"we raise {error.code} {error.message!r}, TensorFlow {code} {message!r}"
        return None if error.message in message else f"we say {error.message!r}, TensorFlow {message!r}"
    if answer.runs is None:
        return f"we give {ours}, TensorFlow raises {answer.error}"
    for run, (mine, theirs) in enumerate(zip(ours, answer.runs, strict=True)):
        for k, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            if a.shape != b.shape or a.dtype != b.dtype:
                return f"run {run}, output {k}: {a.dtype}{a.shape} here, {b.dtype}{b.shape} there"
            if not _same(a, b, case.tolerance):
                return f"run {run}, output {k}: {_short(a)} here, {_short(b)} there"
    return None


def _same(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], tolerance: float) -> bool:
    if dtypes.as_dtype(a.dtype).is_floating and tolerance:
        return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True))
    if a.dtype.kind in "fc":
        return bool(np.array_equal(a, b, equal_nan=True))
    return bool(np.array_equal(a, b))


def _short(a: np.ndarray[Any, Any]) -> str:
    return str(a.reshape(-1)[:12].tolist())
