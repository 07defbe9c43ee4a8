"""The ops of barriers. The machine is barriers.py. Follows barrier_ops.cc."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import Array, invalid
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.barriers import Barrier
from tenfold_kernels.resources.handles import resource_of, shared_resource, signature_error, signature_text
from tenfold_kernels.resources.queues import shapes_text, types_text


@kernel("Barrier")
def build_barrier(node: KernelNode) -> Compute:
    """Every component has a shape; there is no capacity."""
    types = tuple(node.attrs["component_types"])
    shapes = tuple(TensorShape(shape) for shape in node.attrs.get("shapes", ()))
    if len(shapes) != len(types):
        raise invalid("All of the component shapes must be specified")
    if int(node.attrs.get("capacity", -1)) != -1:
        raise invalid(
            "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to enforce a limited "
            "capacity."
        )

    def check(barrier: Barrier) -> None:
        shared = f"Shared barrier '{barrier.name}' has component"
        if barrier.types != types:
            text = f"types {types_text(barrier.types)} but requested component types were {types_text(types)}"
            raise invalid(f"{shared} {text}")
        if shapes_text(barrier.shapes) != shapes_text(shapes):
            text = f"shapes {shapes_text(barrier.shapes)} but requested component shapes were {shapes_text(shapes)}"
            raise invalid(f"{shared} {text}")

    def make(name: str) -> Barrier:
        return Barrier(name, types, shapes, node.resources.quota.account(name))

    return shared_resource(node, Barrier, make, check)


@kernel("BarrierInsertMany")
def build_insert_many(node: KernelNode) -> Compute:
    component = int(node.attrs["component_index"])

    def compute(handle: Any, keys: Array, values: Array) -> None:
        barrier = resource_of(node, handle, Barrier)
        if not 0 <= component < len(barrier.types):
            count = len(barrier.types)
            raise invalid(f"The component ID is out of range {component} > num_components (= {count})")
        if node.input_types[2].base_dtype is not barrier.types[component]:
            raise signature_error(node, signature_text(node, (dtypes.string, barrier.types[component]), ()))
        barrier.insert_many(component, keys, values)

    return compute


@kernel("BarrierTakeMany", blocking=True)
def build_take_many(node: KernelNode) -> Compute:
    """Waits for so many complete keys."""
    if int(node.attrs.get("timeout_ms", -1)) != -1:
        raise invalid("Timeout not supported yet.")
    small = bool(node.attrs.get("allow_small_batch", False))

    def compute(handle: Any, num_elements: Array) -> Any:
        barrier = resource_of(node, handle, Barrier)
        if num_elements.ndim:
            raise invalid("num_elements must be a scalar.")
        if int(num_elements) < 0:
            raise invalid(f"BarrierTakeMany requested {int(num_elements)} < 0 elements")
        outputs = (dtypes.int64, dtypes.string, *barrier.types)
        if node.output_types != outputs:
            raise signature_error(node, signature_text(node, (dtypes.int32,), outputs))
        return barrier.take_many(int(num_elements), allow_small_batch=small)

    return compute


@kernel("BarrierClose")
def build_close(node: KernelNode) -> Compute:
    cancel = bool(node.attrs.get("cancel_pending_enqueues", False))
    return lambda handle: resource_of(node, handle, Barrier).close(cancel_pending_enqueues=cancel)


@kernel("BarrierReadySize")
def build_ready_size(node: KernelNode) -> Compute:
    return lambda handle: np.array(resource_of(node, handle, Barrier).ready_size, dtype=np.int32)


@kernel("BarrierIncompleteSize")
def build_incomplete_size(node: KernelNode) -> Compute:
    return lambda handle: np.array(resource_of(node, handle, Barrier).incomplete_size, dtype=np.int32)
