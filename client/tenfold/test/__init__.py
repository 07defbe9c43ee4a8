"""`tf.test`: test helpers of TensorFlow programs: TestCase, sessions, assertions, gradients, benchmarks.

For users' programs; Tenfold's own tests are in the repository's folder tests. Names and arguments are TF 1.15's.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any

from tenfold.lazy_module import make_lazy
from tenfold.left_out import hint as _hint
from tenfold.test.benchmark import Benchmark, benchmark_config
from tenfold.test.case import TestCase, get_temp_dir, main
from tenfold.test.gradient_checker import compute_gradient, compute_gradient_error

if TYPE_CHECKING:
    from unittest import mock

make_lazy(__name__)

__all__ = [
    "Benchmark",
    "TestCase",
    "assert_equal_graph_def",
    "benchmark_config",
    "compute_gradient",
    "compute_gradient_error",
    "create_local_cluster",
    "get_temp_dir",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_gpu_available",
    "main",
    "mock",
    "test_src_dir_path",
]


def __getattr__(name: str) -> Any:
    # unittest.mock imports asyncio, which is slow; a program that only uses TestCase does not need it.
    if name != "mock":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_hint(f'test.{name}')}")
    from unittest import mock

    return mock


def __dir__() -> list[str]:
    return sorted(__all__)


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None) -> bool:
    """Whether this process sees a GPU, of that compute capability at least where one is given."""
    from tenfold.session.inprocess import physical_gpus

    found = [_capability(description) for _, description in physical_gpus()]
    return any(min_cuda_compute_capability is None or each >= tuple(min_cuda_compute_capability) for each in found)


def _capability(description: str) -> tuple[int, ...]:
    """Of a description as DeviceAttributes have it."""
    return tuple(map(int, description.rpartition("compute capability: ")[2].split(".")))


def gpu_device_name() -> str:
    """The name of the first GPU that this process sees, "/device:GPU:0"; "" where there is none."""
    return "/device:GPU:0" if is_gpu_available() else ""


def is_built_with_cuda() -> bool:
    """Whether what GPUs need is installed (`pip install 'tenfold[cuda]'`), or Numba's simulator stands for them."""
    return importlib.util.find_spec("cupy") is not None or os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"


def is_built_with_rocm() -> bool:
    """Always False."""
    return False


is_built_with_gpu_support = is_built_with_cuda


def assert_equal_graph_def(actual: Any, expected: Any, checkpoint_v2: bool = False) -> None:
    """Raises AssertionError, naming nodes, unless two GraphDefs have the same nodes, in whatever order.

    With `checkpoint_v2`, constants whose values a saver generates anew each time are not compared by value.
    """
    ours, theirs = (
        {node.name: _comparable(node, checkpoint_v2) for node in graph.node} for graph in (actual, expected)
    )
    differ = [name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)]
    if differ:
        raise AssertionError(f"The graphs differ in the nodes {differ[:10]}")


def _comparable(node: Any, checkpoint_v2: bool) -> Any:
    if checkpoint_v2 and node.op == "Const" and b"_temp_" in node.attr["value"].tensor.string_val[:1]:
        node = type(node).FromString(node.SerializeToString())
        node.attr["value"].tensor.ClearField("string_val")
    return node


def create_local_cluster(
    num_workers: int, num_ps: int, protocol: str = "grpc", worker_config: Any = None, ps_config: Any = None
) -> tuple[list[Any], list[Any]]:
    """Servers of one cluster in this process: (workers, parameter servers). They run until the process ends."""
    import socket

    from tenfold.train.server_lib import Server

    # All sockets stay open until all ports are chosen, so that no port is chosen twice.
    jobs = {"worker": num_workers, "ps": num_ps}
    held = {job: [socket.socket() for _ in range(count)] for job, count in jobs.items()}
    cluster = {}
    for job, sockets in held.items():
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        cluster[job] = [f"localhost:{each.getsockname()[1]}" for each in sockets]
    for each in (each for sockets in held.values() for each in sockets):
        each.close()
    configs = {"worker": worker_config, "ps": ps_config}
    made = {
        job: [Server(cluster, job, index, protocol, configs[job], start=True) for index in range(count)]
        for job, count in jobs.items()
    }
    return made["worker"], made["ps"]


def test_src_dir_path(relative_path: str) -> str:
    """A path below the folder of the program's source."""
    main_file = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.join(os.path.dirname(os.path.abspath(main_file or "")), relative_path)


#: Not a test, despite its name; pytest must not collect it.
test_src_dir_path.__test__ = False  # type: ignore[attr-defined]
