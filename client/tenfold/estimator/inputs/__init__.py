"""`tf.estimator.inputs`: input functions over arrays and data frames. Follows TF 1.15's estimator/inputs/."""

from __future__ import annotations

from tenfold.estimator.inputs.numpy_io import numpy_input_fn
from tenfold.estimator.inputs.pandas_io import pandas_input_fn

__all__ = ["numpy_input_fn", "pandas_input_fn"]
