"""Optimizer updates on a GPU: one launch an update, in place, of the bodies and rules that the CPU has. Those of many
small variables are one launch in a hot step, see fused_updates.py.

The scalars (learning rates, decays, powers) are arrays of the GPU's memory, as in TensorFlow: a step that computes them
there waits for nothing. So their values are not checked, as the CPU's kernels check those of Ftrl: a learning rate ≤ 0
or a negative regularization is no error here. Nor is an index out of range: its row is left out, as TensorFlow's GPU
kernels leave it out. Rows named twice are updated twice, in order (see _rows.py). Half and bfloat16 are updated in
float and rounded back, as on the CPU.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import opdefs
from tenfold_kernels import optimizer_rules
from tenfold_kernels.cpu._variables import is_resource, variable_reader
from tenfold_kernels.cuda import _rows, update_text
from tenfold_kernels.cuda._launch import launch_over
from tenfold_kernels.cuda._types import ANY_FLOATS
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_kernels.cuda._arrays import DeviceArray
    from tenfold_kernels.optimizer_rules import Layout

no_kernel(
    "ApplyAddSign",
    "ApplyPowerSign",
    "ResourceApplyAdamWithAmsgrad",
    device="GPU",
    why="no program of the op census uses it",
)


@kernel(*optimizer_rules.OPS, device="GPU", T=ANY_FLOATS)
def build_apply(node: KernelNode) -> Compute:
    """Updates var and its slots in place. Gives var's reference, or nothing for resources."""
    layout = optimizer_rules.layout_of(node.op)
    resource = is_resource(node)
    readers = [variable_reader(node) for _ in layout.variables]
    run = _runner(node, layout)

    def compute(*inputs: Any) -> Any:
        scalars = [inputs[i] for _, i in layout.scalars]
        for (name, _), value in zip(layout.scalars, scalars, strict=True):
            optimizer_rules.check_scalar(name, value)
        variables = [read(inputs[i]) for read, i in zip(readers, layout.variables, strict=True)]
        indices = inputs[layout.indices] if layout.sparse else None
        with ExitStack() as locks:
            for each in sorted(variables, key=id):
                locks.enter_context(each.lock)
            buffers = [each.buffer(exclusive=resource) for each in variables]
            optimizer_rules.check_slots(layout.rule, buffers)
            run(buffers, inputs[layout.gradient], indices, scalars)
        return None if resource else variables[0]

    return compute


def _runner(node: KernelNode, layout: Layout) -> Any:
    """(buffers, gradient, indices, scalars) → nothing: checks the shapes and launches."""
    launched = update_text.compiled(update_of(node, layout))

    def dense(
        buffers: Sequence[DeviceArray], grad: DeviceArray, indices: None, scalars: Sequence[DeviceArray]
    ) -> None:
        optimizer_rules.check_gradient(layout, buffers[0].shape, grad)
        launch_over(launched, grad.size, (), (*buffers, grad, *scalars))

    def sparse(
        buffers: Sequence[DeviceArray], grad: DeviceArray, indices: DeviceArray, scalars: Sequence[DeviceArray]
    ) -> None:
        shape = buffers[0].shape
        optimizer_rules.check_rows(shape, grad, indices)
        _rows.update_rows(launched, indices, shape[0], math.prod(shape[1:]), (*buffers, grad, *scalars))

    return sparse if layout.sparse else dense


def update_of(node: Any, layout: Layout) -> update_text.Update:
    """What the kernel of a KernelNode, or of a worker's node, is: one for references and resources."""
    plain = node.op.removeprefix("Resource")
    flags = {name: value for name, value in node.attrs.items() if isinstance(value, bool) and name != "use_locking"}
    return update_text.Update(
        plain if opdefs.has(plain) else node.op,
        tuple(sorted(flags.items())),
        np.dtype(node.attrs["T"].as_numpy_dtype),
        tuple(np.dtype(node.input_types[i].base_dtype.as_numpy_dtype) for _, i in layout.scalars),
        np.dtype(node.attrs["Tindices"].as_numpy_dtype) if layout.sparse else None,
    )
