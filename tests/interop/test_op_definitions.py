"""Our op definitions agree with TensorFlow's registry, every one, field by field."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support import compatibility
from tenfold_core import graph_versions, opdefs
from tenfold_core.opdefs import runtime_ops
from tenfold_core.opdefs.elsewhere import ELSEWHERE
from tenfold_core.opdefs.runtime_ops import BUNDLE_OPS
from tenfold_kernels import registry as kernels
from tenfold_protos import op_def_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .tensorflow_processes import Forks

_DUMP = """
import base64, json
from tensorflow.python.client import pywrap_tf_session as session
print(json.dumps(base64.b64encode(session.TF_GetBuffer(session.TF_GetAllOpList())).decode()))
"""
#: The same with contrib's libraries of ops, which went with TensorFlow 2.
_DUMP_CONTRIB = "from tensorflow.contrib import seq2seq; dir(seq2seq)\n" + _DUMP.replace(
    "tensorflow.python.client import pywrap_tf_session", "tensorflow.python import pywrap_tensorflow"
)
#: Of 1.15, those that are there without contrib's libraries.
_DUMP_115 = _DUMP.replace(
    "tensorflow.python.client import pywrap_tf_session", "tensorflow.python import pywrap_tensorflow"
)
#: Those of the names, such as `tf.train.Saver`, that are not there.
_MISSING_OF = """
import json
import tensorflow as tf

def found(path):
    value = tf
    for part in path.split(".")[1:]:
        value = getattr(value, part, None)
    return value is not None or path == "tf.newaxis"

print(json.dumps([name for name in {names} if not found(name)]))
"""
_PAGE = Path(__file__).parents[2] / "docs" / "missing_ops.md"
#: The ops that those libraries have and we too.
_CONTRIB = {"GatherTree"}
#: Of a fork, which nobody installs beside TensorFlow.
_OF_DEEPREC = {name for name in opdefs.names() if opdefs.family_of(name) in ("embedding", "parquet", "work_queue")}


def _registry(answer: str) -> dict[str, op_def_pb2.OpDef]:
    return {op.name: op for op in op_def_pb2.OpList.FromString(base64.b64decode(answer)).op}


def _plain(definition: op_def_pb2.OpDef) -> dict[str, Any]:
    """What a GraphDef's meaning hangs on; prose and type annotations for function inlining are left out."""

    def args(items: Any) -> list[tuple[Any, ...]]:
        return [(a.name, a.type, a.type_attr, a.number_attr, a.type_list_attr, a.is_ref) for a in items]

    def attr(item: op_def_pb2.OpDef.AttrDef) -> tuple[Any, ...]:
        default = item.default_value.SerializeToString(deterministic=True) if item.HasField("default_value") else None
        if item.type == "tensor" and default is not None:
            default = b"compared by value below"
        limits = (item.has_minimum, item.minimum)
        return (item.name, item.type, default, limits, item.allowed_values.SerializeToString(deterministic=True))

    return {
        "inputs": args(definition.input_arg),
        "outputs": args(definition.output_arg),
        "attrs": [attr(item) for item in definition.attr],
        "stateful": definition.is_stateful,
        "commutative": definition.is_commutative,
        "aggregate": definition.is_aggregate,
        "uninitialized": definition.allows_uninitialized_input,
        "distributed": definition.is_distributed_communication,
    }


def _differing(names: Iterable[str], registry: Mapping[str, op_def_pb2.OpDef]) -> dict[str, Any]:
    """The definitions that are not as they are in the registry, ours and the registry's."""
    pairs = {name: (_plain(opdefs.get(name).to_proto()), _plain(registry[name])) for name in names if name in registry}
    return {name: (ours, theirs) for name, (ours, theirs) in pairs.items() if ours != theirs}


def test_every_definition_is_tensorflows(ask_tensorflow: Callable[..., Any]) -> None:
    registry = _registry(ask_tensorflow(_DUMP))

    unknown = {name for name in opdefs.names() if name not in registry}
    differing = _differing(opdefs.names(), registry)

    assert unknown == _CONTRIB | _OF_DEEPREC | BUNDLE_OPS
    assert sorted(differing) == []
    assert differing == {}


def test_the_definitions_of_contribs_libraries_are_tensorflows(forks: dict[str, Forks]) -> None:
    registry = _registry(forks["1.15"].ask(_DUMP_CONTRIB))

    assert set(registry) >= _CONTRIB
    assert _differing(_CONTRIB, registry) == {}


def test_what_is_elsewhere_is_what_tensorflow_has_and_we_have_not(
    ask_tensorflow: Callable[..., Any], forks: dict[str, Forks]
) -> None:
    older = _DUMP.replace(
        "tensorflow.python.client import pywrap_tf_session", "tensorflow.python import pywrap_tensorflow"
    )
    theirs = {*_registry(forks["1.15"].ask(older)), *_registry(ask_tensorflow(_DUMP))}

    assert {name for name in theirs if not name.startswith("_")} - set(opdefs.names()) == ELSEWHERE


def test_operations_went_when_they_went_in_tensorflow(
    ask_tensorflow: Callable[..., Any], forks: dict[str, Forks]
) -> None:
    older = _DUMP.replace(
        "tensorflow.python.client import pywrap_tf_session", "tensorflow.python import pywrap_tensorflow"
    )
    registries = [_registry(forks["1.15"].ask(older)), _registry(ask_tensorflow(_DUMP))]

    theirs = {
        name: (op.deprecation.version, op.deprecation.explanation)
        for registry in registries
        for name, op in registry.items()
        if op.HasField("deprecation") and name != "Old"  # of TensorFlow's tests
    }

    assert theirs == graph_versions.REMOVED


def test_every_operation_that_is_not_here_is_named_with_a_reason(forks: dict[str, Forks]) -> None:
    registry = _registry(forks["1.15"].ask(_DUMP_115))
    _, absent, without_kernel = _PAGE.read_text().split("\n## ")
    # reasons quote Python's names, with dots and small letters
    listed = [line for line in absent.splitlines() if re.fullmatch(r"(`\w+`,? ?)+", line)]

    assert set(re.findall(r"`(\w+)`", " ".join(listed))) == set(registry) - set(opdefs.names())

    executed = runtime_ops.DYNAMIC_OPS | runtime_ops.SEND_OPS | runtime_ops.RECV_OPS | {"LoopCond"}
    public = {name for name in opdefs.names() if name[0] != "_" and name not in executed}
    silent = {name for name in public if not kernels.has_kernel(name, "CPU")}
    assert silent - set(re.findall(r"`(\w+)`", without_kernel)) == set()


@pytest.mark.thorough
def test_the_list_of_public_names_is_tensorflows(forks: dict[str, Forks]) -> None:
    listed = {f"{space}.{name}" for space, names in compatibility.names_of_tensorflow().items() for name in names}
    listed -= {name for name in listed if name.startswith("tf.raw_ops.")}  # the registry is compared above

    absent = forks["1.15"].ask(_MISSING_OF.format(names=sorted(listed)))

    assert absent == []
