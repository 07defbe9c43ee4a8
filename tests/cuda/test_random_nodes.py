"""Nodes of anybody on a GPU: where the CPU computes, the GPU gives the same; what is refused is refused in order.

A GPU does not look at numbers in its own memory before it computes, so what only those make wrong on the CPU gives
something here, as with TensorFlow. See tests/kernels/test_random_nodes.py for the CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.random_nodes import RandomNode, only_computes, small_tensors  # noqa: F401 # a fixture
from tenfold_core import errors, opdefs
from tenfold_kernels import registry
from tenfold_kernels.cuda import copies

if TYPE_CHECKING:
    from types import SimpleNamespace

CASES, MORE_CASES = 2, 60
pytestmark = pytest.mark.usefixtures("small_tensors")
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
#: They take shapes that do not go together on the CPU alone: for as many elements, or to call them unequal.
LENIENT = {"Equal", "NotEqual", "InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad"}
#: (relative, absolute) tolerance by the size of an element in bytes.
TOLERANCE = {2: (3e-2, 3e-2), 4: (1e-4, 1e-4), 8: (1e-5, 1e-6), 16: (1e-5, 1e-6)}


def outcome(gpu: SimpleNamespace, name: str, made: RandomNode, inputs: list[Any], device: str) -> Any:
    """The outputs on the host, or the error; None where there is no kernel."""
    kind = device.rpartition(":")[0].rpartition(":")[2]
    node = made.kernel_node(device)
    try:
        build = registry.lookup(node, kind)
    except errors.OpError:
        return None
    memory = registry.memory_of(name, made.attrs, "GPU") if kind == "GPU" else None
    moved = memory[0] if memory is not None else (False,) * len(inputs)
    try:
        with registry.quiet():
            given = [
                copies.kernel(device)(value) if flag and not value.dtype.hasobject else value
                for value, flag in zip(inputs, moved, strict=True)
            ]
            result = gpu.to_host(build(node)(*given))
    except errors.InternalError as error:
        raise AssertionError(f"{name} on {kind}: {inputs}, {made.attrs}") from error
    except errors.OpError as error:
        return error
    return result if isinstance(result, tuple) else (result,)


def compare(gpu: SimpleNamespace, name: str, number: int) -> bool:
    """Whether both devices have a kernel, and gave something."""
    made = RandomNode(opdefs.get(name), number, "gpu ")
    inputs = made.inputs()
    there = outcome(gpu, name, made, inputs, gpu.device)
    here = outcome(gpu, name, made, inputs, CPU) if there is not None else None
    if here is None or isinstance(here, Exception):
        return False
    what = f"{name}, case {number}: {inputs}, {made.attrs}"
    if isinstance(there, Exception):
        assert name in LENIENT, f"the GPU alone says {there}: {what}"
        return False
    if not opdefs.get(name).is_stateful:
        for found, wanted in zip(there, here, strict=True):
            assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), what
            if wanted.dtype.kind in "biuO":
                np.testing.assert_array_equal(found, wanted, err_msg=what)
                continue
            wide = np.float32 if wanted.dtype.itemsize == 2 else wanted.dtype
            relative, absolute = TOLERANCE[wanted.dtype.itemsize]
            np.testing.assert_allclose(
                found.astype(wide), wanted.astype(wide), rtol=relative, atol=absolute, err_msg=what
            )
    return True


def names() -> list[str]:
    return [name for name in opdefs.names() if only_computes(name) and registry.has_kernel(name, "GPU")]


def test_the_gpu_gives_what_the_cpu_gives(gpu: SimpleNamespace) -> None:
    gave = sum(compare(gpu, name, number) for name in names() for number in range(CASES))
    assert gave > 100


@pytest.mark.long
@pytest.mark.timeout(600)
def test_in_many_cases_too(gpu: SimpleNamespace) -> None:
    for name in names():
        for number in range(CASES, MORE_CASES):
            compare(gpu, name, number)
