"""`tensorflow.python.framework.test_util`: decorators and helpers of tests beside `tf.test.TestCase`.

Tests run in graph mode: what would run one eagerly too runs it once, what would run it eagerly only skips it.
"""

from __future__ import annotations

import contextlib
import functools
import unittest
from typing import TYPE_CHECKING, Any

from tenfold.graph import device
from tenfold.ops import array
from tenfold.test import TestCase, assert_equal_graph_def, gpu_device_name, is_built_with_cuda, is_gpu_available

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "TensorFlowTestCase",
    "assert_equal_graph_def",
    "assert_ops_in_graph",
    "gpu_device_name",
    "is_gpu_available",
]

TensorFlowTestCase = TestCase


def _as_it_is(func: Any = None, *args: Any, **kwargs: Any) -> Any:
    """A decorator with or without arguments that changes nothing."""
    return func if callable(func) else lambda decorated: decorated


run_in_graph_and_eager_modes = run_all_in_graph_and_eager_modes = run_deprecated_v1 = run_v1_only = _as_it_is
assert_no_new_tensors = assert_no_new_pyobjects_executing_eagerly = assert_no_garbage_created = _as_it_is
disable_control_flow_v2 = enable_c_shapes = with_c_shapes = disable_xla = no_xla_auto_jit = xla_allow_fallback = (
    _as_it_is
)
build_as_function_and_v1_graph = also_run_as_tf_function = py_func_if_in_function = _as_it_is
use_deterministic_cudnn = enable_tf_xla_constant_folding = enable_output_all_intermediates = _as_it_is
run_all_without_tensor_float_32 = run_without_tensor_float_32 = _as_it_is


def deprecated_graph_mode_only(func: Any = None) -> Any:
    """A test in a graph of its own."""
    if func is None:
        return deprecated_graph_mode_only

    @functools.wraps(func)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        from tenfold.graph import Graph

        with Graph().as_default():
            return func(*args, **kwargs)

    return decorated


run_in_graph_mode = deprecated_graph_mode_only


def _skipping(why: str) -> Callable[..., Any]:
    def decorate(func: Any = None, *args: Any, **kwargs: Any) -> Any:
        return unittest.skip(why)(func) if callable(func) else unittest.skip(why)

    return decorate


run_v2_only = run_in_eager_mode = _skipping("runs eagerly, and there are graphs only")
with_control_flow_v2 = enable_control_flow_v2 = _as_it_is


def run_gpu_only(func: Any = None) -> Any:
    """A test that is skipped where there is no GPU."""
    if func is None:
        return run_gpu_only

    @functools.wraps(func)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        if not is_gpu_available():
            raise unittest.SkipTest("there is no GPU")
        return func(*args, **kwargs)

    return decorated


run_cuda_only = run_gpu_only


def skip_if(condition: Any) -> Callable[[Any], Any]:
    """A decorator that lets a test run only if the condition, a value or a function, does not hold."""

    def decorate(func: Any) -> Any:
        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not (condition() if callable(condition) else condition):
                func(*args, **kwargs)

        return wrapper

    return decorate


def assert_ops_in_graph(expected_ops: dict[str, str], graph: Any) -> dict[str, Any]:
    """The nodes with these names. Raises ValueError unless they are there and have these types."""
    found = {}
    for node in graph.as_graph_def().node:
        if node.name in expected_ops:
            if expected_ops[node.name] != node.op:
                raise ValueError(
                    f"Expected op for node {node.name} is different. {expected_ops[node.name]} vs {node.op}"
                )
            found[node.name] = node
    if absent := sorted(set(expected_ops) - set(found)):
        raise ValueError(f"Not all expected ops are present. Absent: {absent}")
    return found


IsGoogleCudaEnabled = is_built_with_cuda


def IsMklEnabled() -> bool:
    """Always False."""
    return False


def CudaSupportsHalfMatMulAndConv() -> bool:
    """Whether there is a GPU that multiplies float16."""
    return is_gpu_available(min_cuda_compute_capability=(5, 3))


GpuSupportsHalfMatMulAndConv = CudaSupportsHalfMatMulAndConv
IsBuiltWithROCm = is_xla_enabled = IsMklEnabled


def InstallStackTraceHandler() -> None:
    """Does nothing: Python shows its traces itself."""


def NHWCToNCHW(input_tensor: Any) -> Any:
    """A 4- or 5-D tensor, or its shape as a list, with the channels in front."""
    return _reordered(input_tensor, {4: [0, 3, 1, 2], 5: [0, 4, 1, 2, 3]})


def NCHWToNHWC(input_tensor: Any) -> Any:
    """A 4- or 5-D tensor, or its shape as a list, with the channels at the end."""
    return _reordered(input_tensor, {4: [0, 2, 3, 1], 5: [0, 2, 3, 4, 1]})


def _reordered(value: Any, orders: dict[int, list[int]]) -> Any:
    if isinstance(value, list):
        return [value[axis] for axis in orders[len(value)]]
    return array.transpose(value, orders[value.shape.ndims])


@contextlib.contextmanager
def _on(name: str) -> Iterator[None]:
    with device(name):
        yield


def use_gpu() -> Any:
    """The first GPU, or the CPU where there is none."""
    return _on(gpu_device_name() or "/device:CPU:0")


def force_gpu() -> Any:
    """The first GPU."""
    return _on("/device:GPU:0")


def force_cpu() -> Any:
    """The CPU."""
    return _on("/device:CPU:0")
