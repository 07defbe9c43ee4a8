"""Op definitions: files, readers and checkpoints.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `framework/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold.framework.opdefs import shape_fns as s
from tenfold.framework.opdefs.table import family

op = family("io")

op(
    "DecodeCSV",
    "records: string, record_defaults: OUT_TYPE",
    "output: OUT_TYPE",
    "OUT_TYPE: list({float, double, int32, int64, string}) >= 1",
    "field_delim: string = ','",
    "use_quote_delim: bool = true",
    "na_value: string = ''",
    "select_cols: list(int) = []",
)
op(
    "DecodeRaw",
    "bytes: string",
    "output: out_type",
    "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, bfloat16}",
    "little_endian: bool = true",
)
op(
    "FixedLengthRecordReaderV2",
    "",
    "reader_handle: resource",
    "header_bytes: int = 0",
    "record_bytes: int",
    "footer_bytes: int = 0",
    "hop_bytes: int = 0",
    "container: string = ''",
    "shared_name: string = ''",
    "encoding: string = ''",
    stateful=True,
)
op(
    "IdentityReaderV2",
    "",
    "reader_handle: resource",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
)
op("MatchingFiles", "pattern: string", "filenames: string")
op(
    "MergeV2Checkpoints",
    "checkpoint_prefixes: string, destination_prefix: string",
    "",
    "delete_old_dirs: bool = true",
    "allow_missing_files: bool = false",
    stateful=True,
    shape=s.no_outputs,
)
op(
    "ParseExample",
    "serialized: string, names: string, sparse_keys: Nsparse * string, dense_keys: Ndense * string, dense_defaults: Tdense",
    "sparse_indices: Nsparse * int64, sparse_values: sparse_types, sparse_shapes: Nsparse * int64, dense_values: Tdense",
    "Nsparse: int >= 0",
    "Ndense: int >= 0",
    "sparse_types: list({float, int64, string}) >= 0",
    "Tdense: list({float, int64, string}) >= 0",
    "dense_shapes: list(shape) >= 0",
)
op(
    "ParseExampleV2",
    "serialized: string, names: string, sparse_keys: string, dense_keys: string, ragged_keys: string, dense_defaults: Tdense",
    "sparse_indices: num_sparse * int64, sparse_values: sparse_types, sparse_shapes: num_sparse * int64, dense_values: Tdense, ragged_values: ragged_value_types, ragged_row_splits: ragged_split_types",
    "Tdense: list({float, int64, string}) >= 0",
    "num_sparse: int >= 0",
    "sparse_types: list({float, int64, string}) >= 0",
    "ragged_value_types: list({float, int64, string}) >= 0",
    "ragged_split_types: list({index}) >= 0",
    "dense_shapes: list(shape) >= 0",
)
op(
    "ParseSingleExample",
    "serialized: string, dense_defaults: Tdense",
    "sparse_indices: num_sparse * int64, sparse_values: sparse_types, sparse_shapes: num_sparse * int64, dense_values: Tdense",
    "num_sparse: int >= 0",
    "sparse_keys: list(string) >= 0",
    "dense_keys: list(string) >= 0",
    "sparse_types: list({float, int64, string}) >= 0",
    "Tdense: list({float, int64, string}) >= 0",
    "dense_shapes: list(shape) >= 0",
)
op("ReaderNumRecordsProducedV2", "reader_handle: resource", "records_produced: int64", stateful=True)
op("ReaderNumWorkUnitsCompletedV2", "reader_handle: resource", "units_completed: int64", stateful=True)
op(
    "ReaderReadUpToV2",
    "reader_handle: resource, queue_handle: resource, num_records: int64",
    "keys: string, values: string",
    stateful=True,
)
op("ReaderReadV2", "reader_handle: resource, queue_handle: resource", "key: string, value: string", stateful=True)
op("ReaderResetV2", "reader_handle: resource", "", stateful=True)
op("ReaderRestoreStateV2", "reader_handle: resource, state: string", "", stateful=True)
op("ReaderSerializeStateV2", "reader_handle: resource", "state: string", stateful=True)
op("ReadFile", "filename: string", "contents: string", shape=s.scalar)
op(
    "Restore",
    "file_pattern: string, tensor_name: string",
    "tensor: dt",
    "dt: type",
    "preferred_shard: int = -1",
    stateful=True,
)
op(
    "RestoreSlice",
    "file_pattern: string, tensor_name: string, shape_and_slice: string",
    "tensor: dt",
    "dt: type",
    "preferred_shard: int = -1",
    stateful=True,
)
op(
    "RestoreV2",
    "prefix: string, tensor_names: string, shape_and_slices: string",
    "tensors: dtypes",
    "dtypes: list(type) >= 1",
    stateful=True,
    shape=s.restore_v2,
)
op("Save", "filename: string, tensor_names: string, data: T", "", "T: list(type) >= 1", stateful=True)
op(
    "SaveSlices",
    "filename: string, tensor_names: string, shapes_and_slices: string, data: T",
    "",
    "T: list(type) >= 1",
    stateful=True,
)
op(
    "SaveV2",
    "prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes",
    "",
    "dtypes: list(type) >= 1",
    stateful=True,
    shape=s.no_outputs,
)
op("ShardedFilename", "basename: string, shard: int32, num_shards: int32", "filename: string", shape=s.scalar)
op("ShardedFilespec", "basename: string, num_shards: int32", "filename: string", shape=s.scalar)
op(
    "TextLineReaderV2",
    "",
    "reader_handle: resource",
    "skip_header_lines: int = 0",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
)
op(
    "TFRecordReaderV2",
    "",
    "reader_handle: resource",
    "container: string = ''",
    "shared_name: string = ''",
    "compression_type: string = ''",
    stateful=True,
)
op(
    "WholeFileReaderV2",
    "",
    "reader_handle: resource",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
)
op("WriteFile", "filename: string, contents: string", "", stateful=True)
