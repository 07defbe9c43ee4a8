"""Checkpoint files: TensorFlow's format V2 (tensor bundles) and the older V1, read and written.

`BundleWriter` and `BundleReader` are one checkpoint's two ends, `merge_bundles` joins the shards of several tasks,
`SliceTableReader` and `write_slice_table` are format V1. Values are NumPy arrays; nothing here knows of graphs.
"""

from tenfold_core.checkpoint.bundle_reader import BundleReader, data_filename, meta_filename
from tenfold_core.checkpoint.bundle_writer import BundleWriter
from tenfold_core.checkpoint.merge import merge_bundles
from tenfold_core.checkpoint.slices import TensorSlice, parse_shape_and_slice
from tenfold_core.checkpoint.v1 import SavedTensor, SliceTableReader, write_slice_table

__all__ = [
    "BundleReader",
    "BundleWriter",
    "SavedTensor",
    "SliceTableReader",
    "TensorSlice",
    "data_filename",
    "merge_bundles",
    "meta_filename",
    "parse_shape_and_slice",
    "write_slice_table",
]
