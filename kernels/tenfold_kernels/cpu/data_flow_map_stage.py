"""The ops of staging maps: staging areas whose tuples have numbers. The machine is staging.py.

A map is shared by all nodes of its shared_name. Follows map_stage_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import Array, invalid, shape_text, text_attr
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.staging import StagingMap

if TYPE_CHECKING:
    from collections.abc import Callable


def _map(node: KernelNode) -> Callable[[], StagingMap]:
    container, name = text_attr(node, "container"), text_attr(node, "shared_name") or node.name
    capacity, limit, count = int(node.attrs["capacity"]), int(node.attrs["memory_limit"]), len(node.attrs["dtypes"])
    is_ordered = node.op.startswith("Ordered")
    # Both kinds may have one name and are still different areas.
    name = f"{'ordered' if is_ordered else 'unordered'} map {name}"

    def make() -> StagingMap:
        return StagingMap(name, capacity, limit, count, is_ordered, node.resources.quota.account(name))

    return lambda: node.resources.lookup_or_create(container, name, StagingMap, make)


def _key(value: Array) -> int:
    if value.ndim:
        raise invalid(f"key must be an int64 scalar: {shape_text(value.shape)}")
    return int(value)


def _indices(value: Array) -> list[int]:
    return [int(index) for index in value.reshape(-1)]


@kernel("MapStage", "OrderedMapStage", blocking=True)
def build_map_stage(node: KernelNode) -> Compute:
    area = _map(node)

    def compute(key: Array, indices: Array, *values: Array) -> Any:
        if not key.size:
            raise invalid("key must not be empty")
        if key.size > 1:
            raise invalid(f"key must be an int64 scalar, got tensor with shape: {shape_text(key.shape)}")
        if indices.size != len(values):
            raise invalid(f"There are {indices.size} indices for {len(values)} values")
        return area().put(int(key.reshape(())), _indices(indices), values)

    return compute


@kernel("MapUnstage", "OrderedMapUnstage", blocking=True)
def build_map_unstage(node: KernelNode) -> Compute:
    area = _map(node)
    return lambda key, indices: area().get(_key(key), _indices(indices))


@kernel("MapUnstageNoKey", "OrderedMapUnstageNoKey", blocking=True)
def build_map_unstage_no_key(node: KernelNode) -> Compute:
    area = _map(node)
    return lambda indices: area().get_any(_indices(indices))


@kernel("MapPeek", "OrderedMapPeek", blocking=True)
def build_map_peek(node: KernelNode) -> Compute:
    area = _map(node)
    return lambda key, indices: area().peek(_key(key), _indices(indices))


@kernel("MapSize", "OrderedMapSize")
def build_map_size(node: KernelNode) -> Compute:
    area = _map(node)
    return lambda: np.array(area().size(), np.int32)


@kernel("MapIncompleteSize", "OrderedMapIncompleteSize")
def build_map_incomplete_size(node: KernelNode) -> Compute:
    area = _map(node)
    return lambda: np.array(area().incomplete_size(), np.int32)


@kernel("MapClear", "OrderedMapClear")
def build_map_clear(node: KernelNode) -> Compute:
    area = _map(node)
    return lambda: area().clear()
