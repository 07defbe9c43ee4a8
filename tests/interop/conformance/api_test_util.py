"""What TensorFlow's test files take from its test framework beyond `tf.test`: decorators for modes, helpers.

Stands for tensorflow.python.framework.test_util and tensorflow.python.platform.{test,googletest}; api_shim.py answers
with it. TestCase, sessions and assertions are Tenfold's own, client/tenfold/test. Only graph mode exists here: a test
for both modes runs its graph half, one that is only eager is skipped.
"""

from __future__ import annotations

import functools
import os
import socket
import unittest
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf import text_format

from tenfold.graph import get_default_graph
from tenfold.test import (
    assert_equal_graph_def,
    benchmark_config,
    case,
    compute_gradient,
    compute_gradient_error,
    create_local_cluster,
    gpu_device_name,
    is_built_with_cuda,
    is_built_with_gpu_support,
    is_built_with_rocm,
    is_gpu_available,
    mock,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "assert_equal_graph_def",
    "benchmark_config",
    "compute_gradient",
    "compute_gradient_error",
    "create_local_cluster",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_gpu_available",
    "mock",
]


class TensorFlowTestCase(case.TestCase):
    """`tf.test.TestCase` under the name that TensorFlow's own files use, with what absl adds to unittest's."""

    def assertLen(self, container: Any, expected_len: int, msg: str | None = None) -> None:
        self.assertEqual(len(container), expected_len, msg)

    def assertAlmostEqual(self, first: Any, second: Any, *args: Any, **named: Any) -> None:
        # NumPy of that time computed the difference of a float and a float32 in float64.
        first, second = (float(each) if isinstance(each, np.floating) else each for each in (first, second))
        super().assertAlmostEqual(first, second, *args, **named)


TestCase = TensorFlowTestCase


def get_temp_dir() -> str:
    return case.get_temp_dir()


GetTempDir = get_temp_dir


def _both_ways(decorate: Callable[[Any], Any]) -> Callable[..., Any]:
    """A decorator that is written with and without arguments."""

    def outer(func: Any = None, *args: Any, **named: Any) -> Any:
        return decorate(func) if callable(func) else decorate

    return outer


def _graph_half(test: Any) -> Any:
    @functools.wraps(test)
    def decorated(self: Any, *args: Any, **named: Any) -> None:
        with self.test_session(use_gpu=True):
            test(self, *args, **named)

    return decorated


def _each_test(wrap: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def decorate(cls: Any) -> Any:
        for name, value in list(vars(cls).items()):
            if callable(value) and name.startswith(unittest.TestLoader.testMethodPrefix):
                setattr(cls, name, wrap(value))
        return cls

    return decorate


def for_all_test_methods(decorator: Any, *args: Any, **named: Any) -> Callable[[Any], Any]:
    """A decorator of classes: each test gets `decorator(*args, **named)`."""
    return _each_test(decorator(*args, **named))


def _skipped(why: str) -> Callable[..., Any]:
    return _both_ways(unittest.skip(why))


def _same(thing: Any) -> Any:
    return thing


def is_xla_enabled() -> bool:
    return False


run_in_graph_and_eager_modes = _both_ways(_graph_half)
run_all_in_graph_and_eager_modes = _each_test(_graph_half)
run_deprecated_v1 = deprecated_graph_mode_only = run_v1_only = _both_ways(_same)
run_all_in_deprecated_graph_mode_only = use_deterministic_cublas = _same
disable_control_flow_v2 = _both_ways(_same)
disable_xla = disable_all_xla = no_xla_auto_jit = xla_allow_fallback = _both_ways(_same)
with_control_flow_v2 = build_as_function_and_v1_graph = _same
assert_no_new_pyobjects_executing_eagerly = assert_no_garbage_created = _same
run_gpu_only = run_cuda_only = _skipped("needs a GPU")
run_v2_only = _skipped("runs TensorFlow 2 behaviour")
enable_control_flow_v2 = _skipped("control flow by functions, of TensorFlow 2")
enable_output_all_intermediates = _same
also_run_as_tf_function = _same


IsMklEnabled = is_built_with_cuda


@contextmanager
def use_gpu() -> Iterator[None]:
    yield


@contextmanager
def force_cpu() -> Iterator[None]:
    with get_default_graph().device("/device:CPU:0"):
        yield


def get_node_def_from_graph(node_name: str, graph_def: Any) -> Any:
    return next((node for node in graph_def.node if node.name == node_name), None)


def assert_meta_graph_protos_equal(tester: Any, a: Any, b: Any) -> None:
    """Equal but for the order and the encoding of collections of serialised messages."""
    tester.assertEqual(set(a.collection_def), set(b.collection_def))
    for key in a.collection_def:
        tester.assertEqual(a.collection_def[key].WhichOneof("kind"), b.collection_def[key].WhichOneof("kind"))
    one, other = type(a)(), type(b)()
    one.CopyFrom(a)
    other.CopyFrom(b)
    assert_equal_graph_def(one.graph_def, other.graph_def, checkpoint_v2=True)
    for proto in (one, other):
        proto.ClearField("collection_def")
        proto.ClearField("graph_def")
    tester.assertEqual(text_format.MessageToString(one), text_format.MessageToString(other))


def pick_unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(argv: Any = None) -> None:
    """Nothing: in_tenfold.py runs the tests."""


def test_src_dir_path(relative_path: str) -> str:
    # processes.py puts what a file reads below its working folder.
    return os.path.abspath(os.path.join("tensorflow", relative_path))


class Benchmark:
    """Benchmarks of a test file are not run."""
