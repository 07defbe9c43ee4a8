"""Steps that index by a reference variable, and steps that assign to it: `python racing_steps.py seconds case …`.

As racing.py, of whole kernels: started by tests/kernels/test_loops_and_writers.py as a process of its own.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable

#: Indices, and rows of what they index.
N, ROWS = 100_000, 8


def _table(dtype: Any = tf.float32) -> Any:
    return tf.Variable(np.zeros((ROWS, 1)), dtype=dtype)


def _tuples(index: Any) -> Any:
    return tf.reshape(index, [N, 1])


#: Case → what a step does with a vector of N indices, all below ROWS; they are of int64, which NumPy does not convert.
CASES: dict[str, Callable[[Any], Any]] = {
    "scatter_add": lambda index: tf.scatter_add(_table(), index, tf.ones([N, 1])),
    "scatter_update": lambda index: tf.scatter_update(_table(tf.int32), index, tf.ones([N, 1], tf.int32)),
    "scatter_mul": lambda index: tf.scatter_mul(_table(), index, tf.ones([N, 1])),
    "scatter_nd_update": lambda index: tf.scatter_nd_update(_table(), _tuples(index), tf.ones([N, 1])),
    "scatter_nd_add": lambda index: tf.scatter_nd_add(_table(), _tuples(index), tf.ones([N, 1])),
    "scatter_nd": lambda index: tf.scatter_nd(_tuples(index), tf.ones([N]), [ROWS]),
    "gather_nd": lambda index: tf.gather_nd(tf.zeros([ROWS, 2]), _tuples(index)),
    "gather": lambda index: tf.gather(tf.zeros([ROWS, 2]), index),
    "unsorted_segment_max": lambda index: tf.unsorted_segment_max(tf.ones([N]), index, ROWS),
    "segments of V2": lambda index: tf.raw_ops.SegmentMaxV2(data=tf.ones([N]), segment_ids=index, num_segments=ROWS),
    "sparse_segment_sum": lambda index: tf.sparse_segment_sum(tf.ones([ROWS, 1]), index, tf.zeros([N], tf.int64)),
    "dynamic_partition": lambda index: tf.dynamic_partition(tf.ones([N]), tf.cast(index, tf.int32), ROWS),
    "dynamic_stitch": lambda index: tf.dynamic_stitch([tf.cast(index, tf.int32)], [tf.ones([N])]),
    "bincount": lambda index: tf.raw_ops.DenseBincount(
        input=index, size=np.int64(ROWS), weights=tf.zeros([0]), binary_output=False
    ),
    "unique": lambda index: tf.unique(index)[0],
    "top_k": lambda index: tf.nn.top_k(index, 10)[1],
    "argsort": lambda index: tf.argsort(index),
    "sparse softmax": lambda index: tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=index, logits=tf.zeros([N, ROWS])
    ),
    "sparse_to_dense": lambda index: tf.sparse_to_dense(index, [ROWS], 1.0, validate_indices=False),
    "one_hot": lambda index: tf.one_hot(index, ROWS),
    "repeat": lambda index: tf.repeat(tf.range(N), index),
    "reverse_sequence": lambda index: tf.reverse_sequence(tf.zeros([N, ROWS]), index, seq_axis=1, batch_axis=0),
    "invert": lambda index: tf.invert_permutation(index),
    "reshape": lambda index: tf.reshape(tf.zeros([0]), tf.reshape(index, [-1])[:5] * 0),
    "embedding sums": lambda index: tf.nn.embedding_lookup_sparse(
        _table(),
        tf.SparseTensor(np.stack([np.arange(N) // 2, np.arange(N) % 2], 1), index, [N // 2, 2]),
        None,
        combiner="sum",
    ),
}


def run(case: str, seconds: float) -> None:
    """Runs the case's step for so long, while another thread assigns good and bad indices in turn."""
    with tf.Graph().as_default():
        index = tf.Variable(np.full(N, ROWS - 1), dtype=tf.int64, use_resource=False)
        given = tf.placeholder(tf.int64, [N])
        step, write = CASES[case](index), tf.assign(index, given)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            stepped, written = session.make_callable(step), session.make_callable(write.op, [given])
            good, over = np.full(N, ROWS - 1), threading.Event()
            # only the end is bad, most often: what looks for a bad index first has looked at nearly all by then
            bad = [np.concatenate((good[: N - tail], np.full(tail, value))) for tail, value in (
                (10, 1 << 40), (N // 2, -(1 << 40)), (N, 1 << 33), (10, ROWS))]  # fmt: skip

            def writer() -> None:
                while not over.is_set():
                    for each in bad:
                        written(each)
                        written(good)

            thread = threading.Thread(target=writer)
            thread.start()
            until = time.monotonic() + seconds
            refused = tf.errors.InvalidArgumentError, tf.errors.ResourceExhaustedError, tf.errors.OutOfRangeError
            try:
                while time.monotonic() < until:
                    with contextlib.suppress(*refused):
                        stepped()
            finally:
                over.set()
                thread.join()


if __name__ == "__main__":
    sys.setswitchinterval(1e-4)
    for each in sys.argv[2:]:
        print(each, flush=True)
        run(each, float(sys.argv[1]))
