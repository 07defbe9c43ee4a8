"""Convolutions, pools, norms, images, linear algebra, sparse tensors and other numeric ops give TensorFlow's results.

Every case of nn_cases.py, image_cases.py and old_cases.py is one node with constant inputs. All go to one process of
TensorFlow's as GraphDefs, and its arrays come back in one file.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes, graph_versions, opdefs
from tenfold_core.attr_value import to_proto
from tenfold_core.node_signature import signature
from tenfold_core.tensor_util import make_tensor_proto
from tenfold_kernels import registry
from tenfold_kernels.resources.state import ResourceManager
from tenfold_protos import graph_pb2

if TYPE_CHECKING:
    from collections.abc import Callable


def _load_cases(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


CASES = [case for name in ("nn_cases", "image_cases", "old_cases") for case in _load_cases(name).CASES]
#: Ops that TensorFlow has only where it computes with oneDNN, which it does by default where it finds AVX-512.
ONEDNN_ONLY = {"_FusedBatchNormEx"}

#: Runs each GraphDef of a folder as it is, without optimizations, and stores every output of the node "n".
SCRIPT = """
import json, os, sys
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2
tf1 = tf.compat.v1
folder, total = sys.argv[1], int(sys.argv[2])
config = tf1.ConfigProto()
config.graph_options.rewrite_options.disable_meta_optimizer = True
config.graph_options.optimizer_options.opt_level = -1
arrays, failed = {}, {}
for i in range(total):
    graph_def = tf1.GraphDef.FromString(open(os.path.join(folder, f"{i}.pb"), "rb").read())
    try:
        with tf.Graph().as_default() as graph, tf1.Session(config=config) as session:
            tf.import_graph_def(graph_def, name="")
            outputs = graph.get_operation_by_name("n").outputs
            for k, value in enumerate(session.run(list(outputs))):
                arrays[f"{i}_{k}"] = value
    except Exception as error:
        failed[i] = f"{type(error).__name__}: {error}"[:500]
np.savez(os.path.join(folder, "out.npz"), **arrays)
print(json.dumps(failed))
"""


def _attrs(case: Any) -> dict[str, Any]:
    """All attrs of the node: given, derived from the inputs, or the default."""
    definition = opdefs.get(case.op)
    attrs: dict[str, Any] = {a.name: a.default for a in definition.attrs if a.has_default}
    at = 0
    for arg in definition.inputs:
        count = 1
        if arg.number_attr:
            count = case.attrs.get(arg.number_attr, 1)
        elif arg.type_list_attr:
            count = len(case.inputs) - at
        if arg.type_attr and at < len(case.inputs) and arg.type_attr not in case.attrs and count:
            attrs[arg.type_attr] = dtypes.as_dtype(case.inputs[at].dtype)
        at += count
    for name, value in case.attrs.items():
        kind = definition.attr_by_name[name].type
        if kind == "type":
            value = dtypes.as_dtype(value)
        elif kind == "list(type)":
            value = [dtypes.as_dtype(v) for v in value]
        elif kind == "string":
            value = value.encode()
        elif kind == "list(string)":
            value = [v.encode() for v in value]
        attrs[name] = value
    for attr in definition.attrs:
        # What TensorFlow's kernels take for granted where only the output has the type.
        if attr.name not in attrs and attr.name == "Tout":
            attrs[attr.name] = (
                dtypes.float32 if dtypes.as_dtype(case.inputs[0].dtype) == dtypes.complex64 else dtypes.float64
            )
    if case.op == "ParallelConcat":
        from tenfold_core.tensor_shape import TensorShape

        attrs["shape"] = TensorShape(attrs["shape"])
    return attrs


def _graph_def(case: Any) -> bytes:
    graph = graph_pb2.GraphDef()
    went, _ = graph_versions.REMOVED.get(case.op, (1883, ""))
    graph.versions.producer = went - 1
    definition, attrs = opdefs.get(case.op), _attrs(case)
    names = []
    for i, value in enumerate(case.inputs):
        node = graph.node.add(name=f"x{i}", op="Const")
        node.attr["dtype"].type = dtypes.as_dtype(value.dtype).as_datatype_enum
        node.attr["value"].tensor.CopyFrom(make_tensor_proto(value))
        names.append(node.name)
    node = graph.node.add(name="n", op=case.op, input=names)
    for name, value in attrs.items():
        node.attr[name].CopyFrom(to_proto(value, definition.attr_by_name[name].type))
    return graph.SerializeToString()


def _ours(case: Any) -> tuple[Any, ...]:
    attrs = _attrs(case)
    types = signature(opdefs.get(case.op), attrs)
    node = registry.KernelNode(
        "n", case.op, attrs, types.input_types, types.output_types, "/device:CPU:0", ResourceManager()
    )
    compute = registry.lookup(node, "CPU")(node)
    with registry.quiet():
        result = compute(*case.inputs)
    return result if isinstance(result, tuple) else (result,)


@pytest.fixture(scope="module")
def theirs(ask_tensorflow: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[int, Any]]:
    folder = tmp_path_factory.mktemp("cases")
    for i, case in enumerate(CASES):
        (folder / f"{i}.pb").write_bytes(_graph_def(case))
    failed = ask_tensorflow(SCRIPT, str(folder), str(len(CASES)))
    assert {i: why for i, why in failed.items() if CASES[int(i)].op not in ONEDNN_ONLY} == {}
    found: dict[int, dict[int, Any]] = {}
    with np.load(folder / "out.npz") as arrays:
        for key in arrays.files:
            i, _, k = key.partition("_")
            found.setdefault(int(i), {})[int(k)] = arrays[key]
    return found


_TOLERANCE = {2: 4e-3, 4: 2e-6, 8: 1e-13}


#: A convolution of each form compiles loops of its own: the first of each op is enough for most runs.
_FIRSTS = {next(i for i, each in enumerate(CASES) if each.op == case.op) for case in CASES}
_MORE = {i for i, case in enumerate(CASES) if "Conv" in case.op or "Pool" in case.op} - _FIRSTS


@pytest.mark.parametrize(
    "i",
    [pytest.param(i, marks=pytest.mark.thorough if i in _MORE else ()) for i in range(len(CASES))],
    ids=lambda i: f"{i}-{CASES[i].op}",
)
def test_same_results(theirs: dict[int, dict[int, Any]], i: int) -> None:
    case = CASES[i]
    if i not in theirs:
        pytest.skip(f"TensorFlow has no {case.op} on this processor")

    ours = _ours(case)

    for k in case.outputs or range(len(ours)):
        expected, actual = theirs[i][k], ours[k]
        if actual.dtype == object:
            assert actual.item() == expected.item()  # their end without zeros: NumPy's file has no other strings
            continue
        assert actual.shape == expected.shape
        assert actual.dtype == expected.dtype
        if case.magnitude:
            actual, expected = np.abs(actual), np.abs(expected)
        if actual.dtype.kind in "fc":
            size = actual.dtype.itemsize // (2 if actual.dtype.kind == "c" else 1)
            scale = max(1.0, float(np.nanmax(np.abs(np.where(np.isfinite(expected), expected, 0)), initial=0)))
            bound = _TOLERANCE[size] * case.slack * 2
            np.testing.assert_allclose(actual, expected, rtol=bound, atol=bound * scale)
        else:
            np.testing.assert_array_equal(actual, expected)
