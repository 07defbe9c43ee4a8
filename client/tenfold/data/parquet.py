"""Datasets of Parquet files: an element is a dictionary of columns, each a batch of rows. DeepRec's ParquetDataset.

Programs written for DeepRec import this as `tensorflow.python.data.experimental.ops.parquet_dataset_ops`,
whose names it has. Needs the extra `parquet`. The machine is the kernels'
datasets/parquet.py; what a schema says is read here, by tenfold_core/parquet_files.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.data import mapping
from tenfold.data.dataframe import DataFrame
from tenfold.data.dataset import AUTOTUNE, Dataset
from tenfold.data.node import DatasetNode, int64
from tenfold.data.readers import names_of
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.op_builder import tensor_op
from tenfold.graph.tensor import Tensor
from tenfold.ops import array
from tenfold.ops.type_specs import BatchableTypeSpec, TensorSpec
from tenfold_core import dtypes, errors
from tenfold_core.parquet_files import ParquetReader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.data.dataframe import _Field

__all__ = [
    "DataFrame",
    "DataFrameValueSpec",
    "ParquetDataset",
    "parquet_fields",
    "parquet_filenames_and_fields",
    "read_parquet",
]


class DataFrameValueSpec(BatchableTypeSpec):
    """A DataFrame.Value of a field, as (part of) an element. Raises ValueError for an incomplete field."""

    def __init__(self, field: _Field) -> None:
        if field.incomplete:
            raise ValueError(f"Field {field} is incomplete: dtype and ragged_rank are to be given")
        self._field = field

    @property
    def value_type(self) -> Any:
        return DataFrame.Value if self._field.ragged_rank else Tensor

    def _serialize(self) -> tuple[Any, ...]:
        return (self._field,)

    @property
    def _component_specs(self) -> Any:
        return self._field.output_specs

    def _to_components(self, value: Any) -> Any:
        return [value.values, *value.nested_row_splits] if isinstance(value, DataFrame.Value) else [value]

    def _from_components(self, components: Any) -> Any:
        values, *splits = components
        return DataFrame.Value(values, splits) if splits else values

    def _batch(self, batch_size: Any) -> Any:
        raise NotImplementedError("Batches of lists of different lengths are not batched again")

    def _unbatch(self) -> Any:
        raise NotImplementedError("Lists of different lengths are not unbatched: DataFrame.unbatch_and_to_sparse")

    def _to_legacy_output_types(self) -> Any:
        return self._field.output_types

    def _to_legacy_output_shapes(self) -> Any:
        return self._field.output_shapes

    def _to_legacy_output_classes(self) -> Any:
        return self._field.output_classes


class ParquetDataset(Dataset):
    """The rows of Parquet files in batches: dictionaries of a vector [rows] for each column, by its name.

    A column of lists is a DataFrame.Value, and a field with a `shape` has values [rows, *shape]. `filenames` is a name,
    a list or a tensor of names, or a dataset of them. `fields` are names or DataFrame.Fields, by default all columns;
    where the names are a tensor or a dataset, nothing is read when the graph is built: complete fields must be given.
    Of the row groups of each file every `partition_count`-th is read, from `partition_index` on. A batch has at most
    `batch_size` rows of one file, with `drop_remainder` exactly as many. `num_parallel_reads` files are read at once,
    `num_sequential_reads` batches of each by turns.

    Building it blocks while a schema is read. Raises ValueError for fields that the file has not, or has otherwise.
    """

    VERSION = 2002

    def __init__(
        self,
        filenames: Any,
        batch_size: Any = 1,
        fields: Any = None,
        partition_count: int = 1,
        partition_index: int = 0,
        drop_remainder: bool = False,
        num_parallel_reads: Any = None,
        num_sequential_reads: Any = 1,
    ) -> None:
        names, self._fields = parquet_filenames_and_fields(filenames, fields)
        self._partition_count, self._partition_index = partition_count, partition_index
        self._drop_remainder = drop_remainder

        def of_one(filename: Any) -> DatasetNode:
            name = convert_to_tensor(filename, dtypes.string, name="filename")
            return _of_one_file(name, batch_size, self._fields, partition_count, partition_index, drop_remainder)

        if num_parallel_reads is None:
            node = mapping.flat_mapped(names, of_one)
        elif isinstance(num_parallel_reads, int) and num_parallel_reads == AUTOTUNE:
            node = mapping.interleaved(names, of_one, AUTOTUNE, 1, num_parallel_reads)
        else:
            node = mapping.parallel_interleaved(
                names, of_one, num_parallel_reads, num_sequential_reads, sloppy=True, prefetch_input_elements=1
            )
        super().__init__(_shaped(node, self._fields))

    @classmethod
    def read_schema(cls, filename: str, fields: Any = None, lower: bool = False) -> Any:
        """`parquet_fields`."""
        return parquet_fields(filename, fields, lower=lower)

    @property
    def fields(self) -> Any:
        return self._fields

    @property
    def partition_count(self) -> int:
        return self._partition_count

    @property
    def partition_index(self) -> int:
        return self._partition_index

    @property
    def drop_remainder(self) -> bool:
        return self._drop_remainder


def _of_one_file(
    filename: Tensor, batch_size: Any, fields: Sequence[_Field], count: int, index: int, drop_remainder: bool
) -> DatasetNode:
    # as elements are flattened: a dictionary by its sorted keys
    ordered = sorted(fields, key=lambda field: field.name)
    size = int64(batch_size, "batch_size")
    rows = batch_size if drop_remainder and isinstance(batch_size, int) else None
    specs: dict[str, Any] = {}
    for field in ordered:
        flat = DataFrame.Field(field.name, field.dtype, field.ragged_rank)
        specs[field.name] = DataFrameValueSpec(flat) if field.ragged_rank else TensorSpec([rows], field.dtype)
    variant = tensor_op(
        "ParquetTabularDatasetV1",
        filename=filename,
        batch_size=size,
        field_names=[field.name for field in ordered],
        field_dtypes=[field.dtype for field in ordered],
        field_ragged_ranks=[field.ragged_rank for field in ordered],
        partition_count=count,
        partition_index=index,
        drop_remainder=drop_remainder,
    )
    return DatasetNode(variant, specs)


def _shaped(node: DatasetNode, fields: Sequence[_Field]) -> DatasetNode:
    """With the values of fields that have a shape in that shape."""
    shapes = {field.name: [-1, *field.shape.as_list()] for field in fields if field.shape is not None}
    if not shapes:
        return node

    def reshape(batch: dict[str, Any]) -> dict[str, Any]:
        out = dict(batch)
        for name, shape in shapes.items():
            found = batch[name]
            is_list = isinstance(found, DataFrame.Value)
            values = array.reshape(found.values if is_list else found, shape)
            out[name] = DataFrame.Value(values, found.nested_row_splits) if is_list else values
        return out

    return mapping.mapped(node, reshape)


def read_parquet(
    batch_size: Any,
    fields: Any = None,
    partition_count: int = 1,
    partition_index: int = 0,
    drop_remainder: bool = False,
    num_parallel_reads: Any = None,
    num_sequential_reads: Any = 1,
) -> Callable[[Any], ParquetDataset]:
    """For `Dataset.apply`: a ParquetDataset of the files that a dataset names."""
    return lambda filenames: ParquetDataset(
        filenames,
        batch_size=batch_size,
        fields=fields,
        partition_count=partition_count,
        partition_index=partition_index,
        drop_remainder=drop_remainder,
        num_parallel_reads=num_parallel_reads,
        num_sequential_reads=num_sequential_reads,
    )


def parquet_fields(filename: str, fields: Any = None, lower: bool = False) -> tuple[Any, ...]:
    """Complete fields for names or DataFrame.Fields, by default for all columns of a file. Blocks on the disk.

    With `lower` a name that is not there is looked for in lower case. Raises ValueError for a name that is not there,
    and for a field that the file has otherwise; the disk's error, or DataLossError, for one that cannot be read.
    """
    with ParquetReader(filename) as reader:
        wanted = tuple(reader.names if fields is None else fields)
        if not wanted:
            raise ValueError(f"{filename} has no columns")
        return tuple(_completed(reader, filename, each, lower) for each in wanted)


def _completed(reader: ParquetReader, filename: str, wanted: Any, lower: bool) -> _Field:
    if isinstance(wanted, str):
        wanted = DataFrame.Field(wanted)
    if not isinstance(wanted, DataFrame.Field):
        raise ValueError(f"Field {wanted!r} is neither a DataFrame.Field nor a string")
    name = wanted.name
    if lower and name not in reader.names:
        name = name.lower()
    try:
        found = reader.column(name)
    except (errors.NotFoundError, errors.UnimplementedError) as error:
        raise ValueError(error.message) from None
    for what, given, has in (
        ("dtype", wanted.dtype, found.dtype),
        ("ragged_rank", wanted.ragged_rank, found.ragged_rank),
    ):
        if given is not None and given != has:
            shown = [getattr(each, "name", each) for each in (has, given)]
            raise ValueError(f"Field {name} of {filename} has {what} {shown[0]}, not {shown[1]}")
    if wanted.shape is not None and not found.ragged_rank and wanted.shape.num_elements() != 1:
        raise ValueError(f"Field {name} of {filename} has one value a row, which has no shape {wanted.shape}")
    return DataFrame.Field(name, found.dtype, found.ragged_rank, wanted.shape)


def parquet_filenames_and_fields(filenames: Any, fields: Any, lower: bool = False) -> tuple[DatasetNode, Any]:
    """The names as a dataset, and complete fields: of the first file, where the names are known. Blocks on the disk.

    Raises ValueError for names of another kind, and as `parquet_fields`; TypeError for a tensor or a dataset of
    anything but strings.
    """
    if isinstance(filenames, str):
        filenames = [filenames]
    if isinstance(filenames, (tuple, list)):
        for name in filenames:
            if not isinstance(name, str):
                raise ValueError(f"{name!r} in `filenames` must be a string")
        if not filenames:
            raise ValueError("`filenames` is empty")
        return names_of(list(filenames)), parquet_fields(filenames[0], fields, lower=lower)
    if not isinstance(filenames, (DatasetNode, Tensor)):
        raise ValueError(f"`filenames` must be a name, a list, a tensor or a dataset of names, got {filenames!r}")
    if isinstance(filenames, Tensor) and filenames.dtype != dtypes.string:
        raise TypeError(f"`filenames` must be a tensor of strings, got {filenames.dtype.name}")
    if not isinstance(fields, (tuple, list)) or not fields:
        raise ValueError(f"`fields` must be a list of DataFrame.Field where names are no strings, got {fields!r}")
    for field in fields:
        if not isinstance(field, DataFrame.Field):
            raise ValueError(f"Field {field!r} must be a DataFrame.Field")
        if field.incomplete:
            raise ValueError(f"Field {field} is incomplete: dtype and ragged_rank are to be given")
    return names_of(filenames), tuple(fields)
