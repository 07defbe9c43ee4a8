"""`tensorflow.python.data.experimental.ops.threadpool`: the option that it stands for."""

from __future__ import annotations

import tenfold as tf
from tenfold.compat.python import threadpool


def test_a_pool_sets_the_options_of_threads() -> None:
    dataset = threadpool.override_threadpool(tf.data.Dataset.range(3), threadpool.PrivateThreadPool(2))

    threading = dataset.options().experimental_threading
    assert (threading.private_threadpool_size, threading.max_intra_op_parallelism) == (2, 1)


def test_a_pool_may_leave_the_threads_of_an_operation_open() -> None:
    pool = threadpool.PrivateThreadPool(2, max_intra_op_parallelism=None)

    dataset = threadpool.override_threadpool(tf.data.Dataset.range(3), pool)

    assert dataset.options().experimental_threading.max_intra_op_parallelism is None
