"""`tensorflow.python.data.experimental.ops.threadpool`: a pipeline with threads of its own.

As `tf.data.Options.experimental_threading` sets it since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.data.options import Options

if TYPE_CHECKING:
    from tenfold.data.dataset import Dataset

__all__ = ["PrivateThreadPool", "override_threadpool"]


class PrivateThreadPool:
    """The size of a pool of threads; a pipeline that is told it has one of its own."""

    def __init__(
        self, num_threads: int, display_name: str | None = None, max_intra_op_parallelism: int | None = 1
    ) -> None:
        self.num_threads = num_threads
        self.max_intra_op_parallelism = max_intra_op_parallelism


def override_threadpool(dataset: Dataset, thread_pool: PrivateThreadPool) -> Any:
    """The dataset, run by a pool of that size."""
    options = Options()
    options.experimental_threading.private_threadpool_size = thread_pool.num_threads
    most = thread_pool.max_intra_op_parallelism
    if most is not None and most >= 0:  # below, a pool leaves it open
        options.experimental_threading.max_intra_op_parallelism = most
    return dataset.with_options(options)
