"""Ops that give a pipeline threads of its own: its functions run on these and no others.

A pool has at most as many threads as the program says, made when they are needed. How many threads one operation may
use is up to us. The threads are datasets/threads.py, their use Run.call. Follows threadpool_dataset_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_kernels.arrays import Array, invalid, text_attr
from tenfold_kernels.cpu.dataset_sources import number
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.datasets.core import SetUp, dataset_of
from tenfold_kernels.resources.datasets.threads import LIMIT, Threads
from tenfold_kernels.resources.handles import resource_of, shared_resource

if TYPE_CHECKING:
    from tenfold_kernels.resources.datasets.core import Dataset, Run


def on_threads(dataset: Dataset, threads: Threads) -> Dataset:
    """The input, whose functions run on the threads of a pool."""

    def set_up(run: Run) -> None:
        run.threads = threads

    return SetUp(dataset, set_up)


@kernel("PrivateThreadPoolDataset", "ExperimentalPrivateThreadPoolDataset")
def build_private(node: KernelNode) -> Compute:
    """The input on threads that no other dataset uses."""

    def compute(dataset: Array, size: Array) -> Any:
        count = number(size, "num_threads")
        if count < 1:
            raise invalid("`num_threads` must be >= 1")
        return on_threads(dataset_of(dataset), Threads(min(count, LIMIT), "data_private_threadpool")).as_array()

    return compute


@kernel("ThreadPoolDataset", "ExperimentalThreadPoolDataset")
def build_on_pool(node: KernelNode) -> Compute:
    """The input on threads that it may share with other datasets."""

    def compute(dataset: Array, pool: Any) -> Any:
        return on_threads(dataset_of(dataset), resource_of(node, pool, Threads)).as_array()

    return compute


@kernel("ThreadPoolHandle", "ExperimentalThreadPoolHandle")
def build_pool(node: KernelNode) -> Compute:
    count, name = int(node.attrs["num_threads"]), text_attr(node, "display_name")
    if count <= 0:
        raise invalid("`num_threads` must be greater than zero.")
    return shared_resource(node, Threads, lambda _: Threads(min(count, LIMIT), name or "data_threadpool"))


@kernel("MaxIntraOpParallelismDataset", "ExperimentalMaxIntraOpParallelismDataset")
def build_max_intra_op_parallelism(node: KernelNode) -> Compute:
    """The input: how many threads a kernel uses is not the pipeline's to say here."""

    def compute(dataset: Array, most: Array) -> Any:
        if number(most, "max_intra_op_parallelism") < 0:
            raise invalid("`max_intra_op_parallelism` must be >= 0")
        return dataset_of(dataset).as_array()

    return compute
