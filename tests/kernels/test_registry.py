"""Look-up of kernels: what is found, and what the error says when nothing is."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tenfold_core import dtypes, errors, opdefs
from tenfold_kernels import registry
from tenfold_kernels.registry import KernelNode
from tenfold_kernels.resources.state import ResourceManager


def node(op: str, **attrs: object) -> KernelNode:
    return KernelNode("n", op, attrs, (), (), "/job:a/replica:0/task:0/device:CPU:0", ResourceManager())


def test_every_op_of_every_family_is_written_down() -> None:
    missing = [op for op in opdefs.names() if not registry.has_kernel(op, "CPU") and not registry.absence(op, "CPU")]

    assert missing == []


def test_every_row_is_for_an_op_that_is_defined() -> None:
    registered = {op for op in opdefs.names() if registry.has_kernel(op, "CPU")}  # loads every family

    assert {op for op, _ in registry._rows if opdefs.has(op)} == registered
    assert [op for op, _ in [*registry._rows, *registry._absences] if not opdefs.has(op) and op != "TestClash"] == []


def test_an_unknown_op_gets_the_nearest_names() -> None:
    with pytest.raises(errors.NotFoundError, match=r"No kernel for op 'MatMull' of node 'n'.*Did you mean .*MatMul"):
        registry.lookup(node("MatMull"), "CPU")


def test_a_wrong_type_gets_the_types_that_exist() -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"No CPU kernel for op 'Floor' .* T=string.*T in \[float16"):
        registry.lookup(node("Floor", T=dtypes.string), "CPU")


def test_a_device_without_kernels_says_why_and_what_there_is() -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"No GPU kernel .*TensorFlow has none.*with a kernel: CPU"):
        registry.lookup(node("NthElement", T=dtypes.float32), "GPU")


def test_a_written_absence_is_part_of_the_error() -> None:
    with pytest.raises(errors.NotFoundError, match=r"on any device type .*no program of the op census uses it"):
        registry.lookup(node("ApplyAddSign"), "CPU")


def test_ops_of_the_executor_can_be_placed_but_not_looked_up() -> None:
    assert registry.devices_with_kernel("Switch", {"T": dtypes.float32}, ["CPU"]) == ("CPU",)
    with pytest.raises(errors.NotFoundError, match="belong to the executor"):
        registry.lookup(node("Switch", T=dtypes.float32), "CPU")


def test_devices_with_kernel_asks_for_the_types() -> None:
    assert set(registry.devices_with_kernel("Floor", {"T": dtypes.float32})) == {"CPU", "GPU"}
    assert registry.devices_with_kernel("Betainc", {"T": dtypes.float32}) == ("CPU",)
    assert registry.devices_with_kernel("Floor", {"T": dtypes.int32}) == ()
    assert registry.devices_with_kernel("NoSuchOp", {}) == ()


def test_a_clash_names_both_places() -> None:
    floats, half = frozenset((dtypes.float32, dtypes.float64)), dtypes.float16

    @registry.kernel("TestClash", T=floats)
    def build_first(_: KernelNode) -> registry.Compute:
        return np.add

    @registry.kernel("TestClash", T=half)
    def build_second(_: KernelNode) -> registry.Compute:
        return np.add

    with pytest.raises(errors.AlreadyExistsError, match=r"'TestClash'.*test_registry\.py:\d+ and .*test_registry\.py:"):

        @registry.kernel("TestClash", T=dtypes.float64)
        def build_third(_: KernelNode) -> registry.Compute:
            return np.add


def test_placing_and_plain_ops_load_no_compiler() -> None:
    script = """
import sys
from tenfold_core import dtypes, opdefs
from tenfold_kernels import registry
from tenfold_kernels.resources import state
for op in opdefs.names():
    registry.devices_with_kernel(op, {})
node = registry.KernelNode("n", "Identity", {"T": dtypes.string}, (dtypes.string,), (dtypes.string,), "d", None)
registry.lookup(node, "CPU")(node)
sys.exit(any(m in sys.modules for m in ("numba", "llvmlite", "grpc", "asyncio")))
"""

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr
