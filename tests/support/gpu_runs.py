"""Runs one op's kernel on a GPU and on the CPU: what tests/cuda/ compares."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.kernel_runs import DEVICE, as_value, check_outputs, make_node
from support.kernel_runs import run_op as run_on_cpu
from tenfold_core import dtypes
from tenfold_kernels import registry
from tenfold_kernels.cuda import copies
from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.resources.state import ResourceManager, Variable

GPU = DEVICE.replace("CPU", "GPU")


def to_host(value: Any) -> Any:
    """Arrays of a GPU as the host's; tuples element by element."""
    if isinstance(value, tuple):
        return tuple(map(to_host, value))
    return value.to_host() if isinstance(value, DeviceArray) else value


def run_op(op: str, inputs: list[Any] | None = None, *, resources: ResourceManager | None = None, **attrs: Any) -> Any:
    """Runs `op` once on the GPU, its inputs where its kernel wants them; gives the host's arrays.

    Asserts that outputs are where the kernel says, of the declared types.
    """
    values = [as_value(value) for value in inputs or []]
    rest = {key: value for key, value in attrs.items() if key != "name"}
    node = make_node(op, values, rest, resources or ResourceManager(), attrs.get("name", op), GPU)
    memory = registry.memory_of(op, node.attrs, "GPU")
    on_device, out_on_device = memory or ((False,) * len(values), (False,) * len(node.output_types))
    given = []
    for value, flag in zip(values, on_device, strict=True):
        is_array = isinstance(value, np.ndarray) and not value.dtype.hasobject
        given.append(copies.kernel(GPU)(value) if flag and is_array else value)
    with registry.quiet():
        result = registry.lookup(node, "GPU")(node)(*given)
    outputs = result if isinstance(result, tuple) else (result,)
    if node.output_types:
        for output, flag in zip(outputs, out_on_device, strict=True):
            assert isinstance(output, Variable) or isinstance(output, DeviceArray) == flag, (op, type(output))
    host = to_host(result)
    check_outputs(node, host)
    return host


def same(op: str, inputs: list[Any], *, rtol: float = 1e-5, atol: float = 1e-6, **attrs: Any) -> Any:
    """Asserts that the GPU gives what the CPU gives: floats within the tolerance, else exactly. Gives the result."""
    found, wanted = run_op(op, inputs, **attrs), run_on_cpu(op, inputs, **attrs)
    pairs = zip(_outputs(found), _outputs(wanted), strict=True)
    for number, (ours, theirs) in enumerate(pairs):
        assert ours.shape == theirs.shape, f"{op} output {number}: {ours.shape}, not {theirs.shape}"
        if dtypes.as_dtype(ours.dtype) == dtypes.bfloat16:
            ours, theirs = ours.astype(np.float32), theirs.astype(np.float32)
        if ours.dtype.kind in "fc":
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol, err_msg=f"{op} output {number}")
        else:
            np.testing.assert_array_equal(ours, theirs, err_msg=f"{op} output {number}")
    return found


def _outputs(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)
