"""The ops of staging areas. The machine is staging.py. All nodes of one shared_name have one area.

Follows stage_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_kernels.arrays import Array, invalid, shape_text, text_attr
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.staging import StagingArea


def _area(node: KernelNode) -> StagingArea:
    """The node's area, made by the first call: found anew in each step, for a reset of its container drops it."""
    name = text_attr(node, "shared_name") or node.name
    capacity, memory_limit = int(node.attrs["capacity"]), int(node.attrs["memory_limit"])

    def make() -> StagingArea:
        return StagingArea(name, capacity, memory_limit, node.resources.quota.account(name))

    return node.resources.lookup_or_create(text_attr(node, "container"), name, StagingArea, make)


@kernel("Stage", blocking=True)
def build_stage(node: KernelNode) -> Compute:
    return lambda *values: _area(node).put(values)


@kernel("Unstage", blocking=True)
def build_unstage(node: KernelNode) -> Compute:
    count = len(node.output_types)
    return lambda: _area(node).get(count)


@kernel("StagePeek", blocking=True)
def build_peek(node: KernelNode) -> Compute:
    count = len(node.output_types)

    def compute(index: Array) -> Any:
        if index.ndim:
            raise invalid(f"index must be scalar, got shape {shape_text(index.shape)}")
        return _area(node).peek(int(index), count)

    return compute


@kernel("StageSize")
def build_size(node: KernelNode) -> Compute:
    return lambda: np.array(_area(node).size(), dtype=np.int32)


@kernel("StageClear")
def build_clear(node: KernelNode) -> Compute:
    return lambda: _area(node).clear()
