"""Programs of NumPy 1's days find its names, in a process of their own: the module is changed for good."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import numpy as np
kept = np.bool_, np.float64, np.isin
from tenfold.compat import as_tensorflow
as_tensorflow.install()
assert np.int is int and np.float is float and np.object is object and np.str is str
assert np.Inf == np.inf and np.NINF == -np.inf and np.product([2, 3]) == 6
assert np.asscalar(np.array(3)) == 3 and np.lib.pad is np.pad
assert np.mat("1 2; 3 4").shape == (2, 2) and np.asfarray([1, 2]).dtype == np.float64
assert np.asfarray([1], np.float32).dtype == np.float32 and np.asfarray([1], int).dtype == np.float64
assert np.find_common_type([np.float32], [np.float64]) == np.float64 and np.msort([[2], [1]]).tolist() == [[1], [2]]
assert np.rank([[1]]) == 2 and np.issctype(np.float32) and not np.issctype(1) and np.cfloat is np.complex128
assert issubclass(np.AxisError, Exception) and issubclass(np.VisibleDeprecationWarning, Warning)
ragged = np.array([[[1, 2], [3]], [[4], [5, 6, 7]]])
assert ragged.dtype == object and ragged.shape == (2, 2)
try:
    np.array([[1], [2, 3]], dtype=int)
except ValueError:
    refused = True
assert refused
assert np.reshape([1, 2], newshape=[2, 1]).shape == np.reshape([1, 2], (2, 1)).shape == (2, 1)
assert np.dtype(np.bool) == bool and (np.bool_, np.float64, np.isin) == kept
import tensorflow as tf
try:
    tf.constant([[1], [2, 3]])
except ValueError:
    refused = "by tf, too"
assert refused == "by tf, too"
x = tf.placeholder(tf.float32, [None, 2])
flags = tf.placeholder(tf.bool, [2])
feeds = {x: np.ones((3, 2), dtype=np.float), flags: np.array([1, 0], dtype=np.bool)}
with tf.Session() as session:
    total, count = session.run([tf.reduce_sum(x), tf.reduce_sum(tf.cast(flags, tf.int32))], feeds)
assert (total, count) == (6.0, 1)
"""


def test_the_names_are_back_and_what_is_made_with_them_is_fed() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr
