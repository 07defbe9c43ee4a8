# Written by `make stubs` from the table of tf.io in namespaces.py.

from tenfold.compat.python import io_gfile as gfile
from tenfold.ops.generated_ops import decode_and_crop_jpeg
from tenfold.ops.generated_ops import decode_bmp
from tenfold.ops.generated_ops import decode_compressed
from tenfold.ops.generated_ops import decode_gif
from tenfold.ops.generated_ops import decode_jpeg
from tenfold.ops.generated_ops import decode_json_example
from tenfold.ops.generated_ops import decode_png
from tenfold.ops.generated_ops import encode_jpeg
from tenfold.ops.generated_ops import encode_png
from tenfold.ops.generated_ops import extract_jpeg_shape
from tenfold.ops.generated_ops import parse_tensor
from tenfold.ops.generated_ops import serialize_tensor
from tenfold.ops.image_files import decode_image
from tenfold.ops.image_files import is_jpeg
from tenfold.ops.io import decode_csv
from tenfold.ops.io import decode_raw
from tenfold.ops.io import matching_files
from tenfold.ops.io import read_file
from tenfold.ops.io import write_file
from tenfold.ops.parsing import FixedLenFeature
from tenfold.ops.parsing import FixedLenSequenceFeature
from tenfold.ops.parsing import SparseFeature
from tenfold.ops.parsing import VarLenFeature
from tenfold.ops.parsing import parse_example
from tenfold.ops.parsing import parse_single_example
from tenfold.ops.parsing_sequences import parse_sequence_example
from tenfold.ops.parsing_sequences import parse_single_sequence_example
from tenfold.ops.queues import PaddingFIFOQueue
from tenfold.ops.queues import PriorityQueue
from tenfold.ops.queues import QueueBase
from tenfold.ops.queues import RandomShuffleQueue
from tenfold.ops.sparse import deserialize_many_sparse
from tenfold.ops.sparse import serialize_many_sparse
from tenfold.ops.sparse import serialize_sparse
from tenfold.ops.string import decode_base64
from tenfold.ops.string import encode_base64
from tenfold.python_io import TFRecordCompressionType
from tenfold.python_io import TFRecordOptions
from tenfold.python_io import TFRecordWriter
from tenfold.python_io import tf_record_iterator
from tenfold.train import write_graph
from tenfold.train.input import match_filenames_once

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "PaddingFIFOQueue",
    "PriorityQueue",
    "QueueBase",
    "RandomShuffleQueue",
    "SparseFeature",
    "TFRecordCompressionType",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "decode_and_crop_jpeg",
    "decode_base64",
    "decode_bmp",
    "decode_compressed",
    "decode_csv",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_json_example",
    "decode_png",
    "decode_raw",
    "deserialize_many_sparse",
    "encode_base64",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "gfile",
    "is_jpeg",
    "match_filenames_once",
    "matching_files",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "read_file",
    "serialize_many_sparse",
    "serialize_sparse",
    "serialize_tensor",
    "tf_record_iterator",
    "write_file",
    "write_graph",
]
