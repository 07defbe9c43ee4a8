# Written by `make stubs` from the table of tenfold/data/__init__.py.

from tenfold.data import experimental
from tenfold.data.dataset import Dataset
from tenfold.data.dataset import get_output_classes
from tenfold.data.dataset import get_output_shapes
from tenfold.data.dataset import get_output_types
from tenfold.data.dataset import make_initializable_iterator
from tenfold.data.dataset import make_one_shot_iterator
from tenfold.data.iterators import Iterator
from tenfold.data.node import DatasetSpec
from tenfold.data.options import Options
from tenfold.data.readers import FixedLengthRecordDataset
from tenfold.data.readers import TFRecordDataset
from tenfold.data.readers import TextLineDataset

__all__ = [
    "Dataset",
    "DatasetSpec",
    "FixedLengthRecordDataset",
    "Iterator",
    "Options",
    "TFRecordDataset",
    "TextLineDataset",
    "experimental",
    "get_output_classes",
    "get_output_shapes",
    "get_output_types",
    "make_initializable_iterator",
    "make_one_shot_iterator",
]
