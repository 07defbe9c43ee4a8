"""`tf.contrib.learn.io`: inputs from arrays, data frames and files."""

from tenfold.contrib.learn.data_feeder import extract_pandas_data, extract_pandas_labels, extract_pandas_matrix
from tenfold.contrib.learn.graph_io import (
    queue_parsed_features,
    read_batch_examples,
    read_batch_features,
    read_batch_record_features,
    read_keyed_batch_examples,
    read_keyed_batch_features,
)
from tenfold.estimator.inputs import numpy_input_fn, pandas_input_fn

__all__ = [
    "extract_pandas_data",
    "extract_pandas_labels",
    "extract_pandas_matrix",
    "numpy_input_fn",
    "pandas_input_fn",
    "queue_parsed_features",
    "read_batch_examples",
    "read_batch_features",
    "read_batch_record_features",
    "read_keyed_batch_examples",
    "read_keyed_batch_features",
]
