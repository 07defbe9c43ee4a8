"""Ops that shuffle datasets. The machine is datasets/shuffle.py. Follows shuffle_dataset_op.cc."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_kernels.cpu.dataset import resource_or_none
from tenfold_kernels.cpu.dataset_sources import number
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.datasets.core import dataset_of
from tenfold_kernels.resources.datasets.shuffle import SeedGenerator, Shuffle

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array


def _shuffled(dataset: Array, size: Array, seeds: SeedGenerator, count: int = 1) -> Any:
    from tenfold_kernels.cpu._compiled import drawing

    found = Shuffle(dataset_of(dataset), number(size, "buffer_size"), seeds, count, exchange=drawing.exchange())
    return found.as_array()


@kernel("ShuffleDataset")
def build_shuffle(node: KernelNode) -> Compute:
    reshuffle = bool(node.attrs["reshuffle_each_iteration"])

    def compute(dataset: Array, size: Array, seed: Array, seed2: Array) -> Any:
        seeds = SeedGenerator(number(seed, "seed"), number(seed2, "seed2"), reshuffle)
        return _shuffled(dataset, size, seeds)

    return compute


@kernel("ShuffleDatasetV2")
def build_shuffle_v2(node: KernelNode) -> Compute:
    def compute(dataset: Array, size: Array, generator: Any) -> Any:
        seeds = resource_or_none(generator, SeedGenerator) or SeedGenerator(0, 0, reshuffle=True)
        return _shuffled(dataset, size, seeds)

    return compute


@kernel("ShuffleDatasetV3")
def build_shuffle_v3(node: KernelNode) -> Compute:
    reshuffle = bool(node.attrs["reshuffle_each_iteration"])

    def compute(dataset: Array, size: Array, seed: Array, seed2: Array, generator: Any) -> Any:
        seeds = resource_or_none(generator, SeedGenerator)
        if seeds is None:
            seeds = SeedGenerator(number(seed, "seed"), number(seed2, "seed2"), reshuffle)
        return _shuffled(dataset, size, seeds)

    return compute


@kernel("ShuffleAndRepeatDataset", "ShuffleAndRepeatDatasetV2")
def build_shuffle_and_repeat(node: KernelNode) -> Compute:
    reshuffle = bool(node.attrs["reshuffle_each_iteration"])

    def compute(dataset: Array, size: Array, seed: Array, seed2: Array, count: Array, generator: Any = None) -> Any:
        seeds = resource_or_none(generator, SeedGenerator)
        if seeds is None:
            seeds = SeedGenerator(number(seed, "seed"), number(seed2, "seed2"), reshuffle)
        return _shuffled(dataset, size, seeds, number(count, "count"))

    return compute
