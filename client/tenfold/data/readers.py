"""Datasets of files: lines of text, TFRecords, records of one length, rows of CSV files and of databases.

The names of the files may be a dataset themselves; several files can be read at once. Follows TensorFlow 1.15's
data/ops/readers.py and the readers of data/experimental/ops/readers.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.data import mapping, nest, sources, structure
from tenfold.data.dataset import AUTOTUNE, Dataset
from tenfold.data.node import DatasetNode, int64, node_of
from tenfold.data.seeds import get_seed
from tenfold.graph.conversion import convert_n_to_tensor, convert_to_tensor
from tenfold.graph.op_builder import tensor_op
from tenfold.graph.tensor import Tensor
from tenfold.ops import array
from tenfold.ops.type_specs import TensorSpec
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable

_BUFFER_BYTES = 256 * 1024
_CSV_BUFFER_BYTES = 4 * 1024 * 1024
_STRING = TensorSpec([], dtypes.string)
#: The types that a field of a CSV file can have.
CSV_TYPES = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.string)


def names_of(filenames: Any) -> DatasetNode:
    """The names as a dataset of strings. Raises TypeError for a dataset of anything else."""
    if not isinstance(filenames, DatasetNode):
        names = convert_to_tensor(filenames, dtype=dtypes.string)
        return sources.from_tensor_slices(array.reshape(names, [-1], name="flat_filenames"))
    spec = filenames.element_spec
    if structure.legacy_types(spec) != dtypes.string:
        raise TypeError("`filenames` must be a `tf.data.Dataset` of `tf.string` elements.")
    if not structure.legacy_shapes(spec).is_compatible_with([]):
        raise TypeError("`filenames` must be a `tf.data.Dataset` of scalar `tf.string` elements.")
    return filenames


def _read(names: DatasetNode, of_one: Callable[[Any], DatasetNode], num_parallel_reads: Any) -> DatasetNode:
    """The records of all files; in order, or of `num_parallel_reads` files by turns."""

    def read_one_file(filename: Any) -> DatasetNode:
        return of_one(convert_to_tensor(filename, dtypes.string, name="filename"))

    if num_parallel_reads is None:
        return mapping.flat_mapped(names, read_one_file)
    if isinstance(num_parallel_reads, int) and num_parallel_reads == AUTOTUNE:
        return mapping.interleaved(names, read_one_file, AUTOTUNE, 1, num_parallel_reads)
    return mapping.parallel_interleaved(names, read_one_file, num_parallel_reads)


def _text(value: Any, name: str) -> Tensor:
    return convert_to_tensor("" if value is None else value, dtypes.string, name=name)


def _size(value: Any, name: str, default: int = 0) -> Tensor:
    return int64(default if value is None else value, name)


class TextLineDataset(Dataset):
    """The lines of text files, without their ends."""

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None
    ) -> None:
        """`compression_type` is "", "ZLIB" or "GZIP"; `filenames` strings or a dataset of them."""
        super().__init__(
            _read(names_of(filenames), _by_record("TextLineDataset", compression_type, buffer_size), num_parallel_reads)
        )


class TFRecordDataset(Dataset):
    """The records of TFRecord files, strings."""

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None
    ) -> None:
        """`compression_type` is "", "ZLIB" or "GZIP"; `filenames` strings or a dataset of them."""
        super().__init__(
            _read(names_of(filenames), _by_record("TFRecordDataset", compression_type, buffer_size), num_parallel_reads)
        )


def _by_record(op_type: str, compression_type: Any, buffer_size: Any) -> Callable[[Any], DatasetNode]:
    def of_one(filename: Any) -> DatasetNode:
        variant = tensor_op(
            op_type,
            filenames=filename,
            compression_type=_text(compression_type, "compression_type"),
            buffer_size=_size(buffer_size, "buffer_size", _BUFFER_BYTES),
        )
        return DatasetNode(variant, _STRING)

    return of_one


class FixedLengthRecordDataset(Dataset):
    """The records of files with records of a fixed length, as strings."""

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:
        """`header_bytes` at the start and `footer_bytes` at the end of each file are left away."""

        def of_one(filename: Any) -> DatasetNode:
            variant = tensor_op(
                "FixedLengthRecordDatasetV2",
                filenames=filename,
                header_bytes=_size(header_bytes, "header_bytes"),
                record_bytes=int64(record_bytes, "record_bytes"),
                footer_bytes=_size(footer_bytes, "footer_bytes"),
                buffer_size=_size(buffer_size, "buffer_size", _BUFFER_BYTES),
                compression_type=_text(compression_type, "compression_type"),
            )
            return DatasetNode(variant, _STRING)

        super().__init__(_read(names_of(filenames), of_one, num_parallel_reads))


class CsvDataset(Dataset):
    """`tf.data.experimental.CsvDataset`: the rows of CSV files, a tuple of scalars each."""

    def __init__(
        self,
        filenames: Any,
        record_defaults: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        header: Any = False,
        field_delim: Any = ",",
        use_quote_delim: Any = True,
        na_value: Any = "",
        select_cols: Any = None,
    ) -> None:
        """`record_defaults`: for each column its type, if it is required, or a default. `header` skips a first line;
        `select_cols` are the numbers of the columns to read, in order."""
        names = convert_to_tensor(filenames, dtype=dtypes.string, name="filenames")
        defaults = convert_n_to_tensor([required_column(each) for each in record_defaults], name="record_defaults")
        spec = tuple(TensorSpec([], each.dtype) for each in defaults)
        variant = tensor_op(
            "CSVDataset",
            filenames=names,
            compression_type=_text(compression_type, "compression_type"),
            buffer_size=_size(buffer_size, "buffer_size", _CSV_BUFFER_BYTES),
            header=convert_to_tensor(header, dtypes.bool_, name="header"),
            field_delim=_text(field_delim, "field_delim"),
            use_quote_delim=convert_to_tensor(use_quote_delim, dtypes.bool_, name="use_quote_delim"),
            na_value=_text(na_value, "na_value"),
            select_cols=convert_to_tensor([] if select_cols is None else select_cols, dtypes.int64, name="select_cols"),
            record_defaults=defaults,
            output_shapes=structure.get_flat_tensor_shapes(spec),
        )
        super().__init__(DatasetNode(variant, spec))


def required_column(default: Any) -> Any:
    """A column's default; a type stands for a column without one."""
    if not isinstance(default, Tensor) and any(default is each for each in CSV_TYPES):
        return array.constant([], dtype=default)
    return default


class SqlDataset(Dataset):
    """`tf.data.experimental.SqlDataset`: the rows of a query, a tuple of scalars each."""

    def __init__(self, driver_name: Any, data_source_name: Any, query: Any, output_types: Any) -> None:
        """`driver_name` is "sqlite"; `output_types` are the types of the columns."""
        super().__init__(
            node_of(
                "SqlDataset",
                nest.map_structure(lambda dtype: TensorSpec([], dtype), output_types),
                (),
                driver_name=_text(driver_name, "driver_name"),
                data_source_name=_text(data_source_name, "data_source_name"),
                query=_text(query, "query"),
            )
        )


class RandomDataset(Dataset):
    """`tf.data.experimental.RandomDataset`: random int64 numbers without end."""

    def __init__(self, seed: Any = None) -> None:
        """With neither `seed` nor a seed of the graph the numbers differ from run to run."""
        first, second = get_seed(seed)
        super().__init__(node_of("RandomDataset", TensorSpec([], dtypes.int64), (), seed=first, seed2=second))
