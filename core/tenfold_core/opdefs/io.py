"""Op definitions: files, readers and checkpoints.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs import shape_fns_resources as r
from tenfold_core.opdefs import shape_fns_text as t
from tenfold_core.opdefs.table import family

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
    shape=t.columns,
)
op(
    "DecodeRaw",
    "bytes: string",
    "output: out_type",
    "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, bfloat16}",
    "little_endian: bool = true",
    shape=t.raw,
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
    shape=r.scalar,
)
op(
    "IdentityReaderV2",
    "",
    "reader_handle: resource",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.scalar,
)
op("MatchingFiles", "pattern: string", "filenames: string", shape=t.vector, sized_by="*")
op(
    "MergeV2Checkpoints",
    "checkpoint_prefixes: string, destination_prefix: string",
    "",
    "delete_old_dirs: bool = true",
    "allow_missing_files: bool = false",
    stateful=True,
    shape=s.no_outputs,
    sized_by="*",
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
    shape=t.parse_example,
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
    shape=t.parse_example_v2,
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
    shape=t.parse_single_example,
)
op("ReaderNumRecordsProducedV2", "reader_handle: resource", "records_produced: int64", stateful=True, shape=r.scalar)
op("ReaderNumWorkUnitsCompletedV2", "reader_handle: resource", "units_completed: int64", stateful=True, shape=r.scalar)
op(
    "ReaderReadUpToV2",
    "reader_handle: resource, queue_handle: resource, num_records: int64",
    "keys: string, values: string",
    stateful=True,
    shape=r.records,
)
op(
    "ReaderReadV2",
    "reader_handle: resource, queue_handle: resource",
    "key: string, value: string",
    stateful=True,
    shape=r.record,
)
op("ReaderResetV2", "reader_handle: resource", "", stateful=True)
op("ReaderRestoreStateV2", "reader_handle: resource, state: string", "", stateful=True)
op("ReaderSerializeStateV2", "reader_handle: resource", "state: string", stateful=True, shape=r.scalar)
op("ReadFile", "filename: string", "contents: string", shape=s.scalar, sized_by="*")
op(
    "Restore",
    "file_pattern: string, tensor_name: string",
    "tensor: dt",
    "dt: type",
    "preferred_shard: int = -1",
    stateful=True,
    sized_by="*",
)
op(
    "RestoreSlice",
    "file_pattern: string, tensor_name: string, shape_and_slice: string",
    "tensor: dt",
    "dt: type",
    "preferred_shard: int = -1",
    stateful=True,
    sized_by="*",
)
op(
    "RestoreV2",
    "prefix: string, tensor_names: string, shape_and_slices: string",
    "tensors: dtypes",
    "dtypes: list(type) >= 1",
    stateful=True,
    shape=t.restore_v2,
    sized_by="*",
)
op("Save", "filename: string, tensor_names: string, data: T", "", "T: list(type) >= 1", stateful=True, sized_by="*")
op(
    "SaveSlices",
    "filename: string, tensor_names: string, shapes_and_slices: string, data: T",
    "",
    "T: list(type) >= 1",
    stateful=True,
    sized_by="*",
)
op(
    "SaveV2",
    "prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes",
    "",
    "dtypes: list(type) >= 1",
    stateful=True,
    shape=s.no_outputs,
    sized_by="*",
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
    shape=r.scalar,
)
op(
    "TFRecordReaderV2",
    "",
    "reader_handle: resource",
    "container: string = ''",
    "shared_name: string = ''",
    "compression_type: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "WholeFileReaderV2",
    "",
    "reader_handle: resource",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.scalar,
)
op("WriteFile", "filename: string, contents: string", "", stateful=True, sized_by="*")
op(
    "IdentityReader",
    "",
    "reader_handle: Ref(string)",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.names,
)
op(
    "TextLineReader",
    "",
    "reader_handle: Ref(string)",
    "skip_header_lines: int = 0",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.names,
)
op(
    "TFRecordReader",
    "",
    "reader_handle: Ref(string)",
    "container: string = ''",
    "shared_name: string = ''",
    "compression_type: string = ''",
    stateful=True,
    shape=r.names,
)
op(
    "FixedLengthRecordReader",
    "",
    "reader_handle: Ref(string)",
    "header_bytes: int = 0",
    "record_bytes: int",
    "footer_bytes: int = 0",
    "hop_bytes: int = 0",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.names,
)
op(
    "WholeFileReader",
    "",
    "reader_handle: Ref(string)",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.names,
)
op(
    "ReaderRead",
    "reader_handle: Ref(string), queue_handle: Ref(string)",
    "key: string, value: string",
    shape=r.record,
)
op(
    "ReaderReadUpTo",
    "reader_handle: Ref(string), queue_handle: Ref(string), num_records: int64",
    "keys: string, values: string",
    shape=r.records,
)
op(
    "ReaderReset",
    "reader_handle: Ref(string)",
    "",
)
op(
    "ReaderRestoreState",
    "reader_handle: Ref(string), state: string",
    "",
)
op(
    "ReaderSerializeState",
    "reader_handle: Ref(string)",
    "state: string",
    shape=r.scalar,
)
op(
    "ReaderNumRecordsProduced",
    "reader_handle: Ref(string)",
    "records_produced: int64",
    shape=r.scalar,
)
op(
    "ReaderNumWorkUnitsCompleted",
    "reader_handle: Ref(string)",
    "units_completed: int64",
    shape=r.scalar,
)
op(
    "ParseTensor",
    "serialized: string",
    "output: out_type",
    "out_type: type",
    sized_by="serialized",
)
op(
    "SerializeTensor",
    "tensor: T",
    "serialized: string",
    "T: type",
    shape=t.scalar,
)
op(
    "ParseSequenceExample",
    "serialized: string, debug_name: string, context_dense_defaults: Tcontext_dense",
    "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: context_sparse_types, context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense, feature_list_sparse_indices: Nfeature_list_sparse * int64, feature_list_sparse_values: feature_list_sparse_types, feature_list_sparse_shapes: Nfeature_list_sparse * int64, feature_list_dense_values: feature_list_dense_types, feature_list_dense_lengths: Nfeature_list_dense * int64",
    "feature_list_dense_missing_assumed_empty: list(string) >= 0",
    "context_sparse_keys: list(string) >= 0",
    "context_dense_keys: list(string) >= 0",
    "feature_list_sparse_keys: list(string) >= 0",
    "feature_list_dense_keys: list(string) >= 0",
    "Ncontext_sparse: int >= 0 = 0",
    "Ncontext_dense: int >= 0 = 0",
    "Nfeature_list_sparse: int >= 0 = 0",
    "Nfeature_list_dense: int >= 0 = 0",
    "context_sparse_types: list({float, int64, string}) >= 0 = []",
    "Tcontext_dense: list({float, int64, string}) >= 0 = []",
    "feature_list_dense_types: list({float, int64, string}) >= 0 = []",
    "context_dense_shapes: list(shape) >= 0 = []",
    "feature_list_sparse_types: list({float, int64, string}) >= 0 = []",
    "feature_list_dense_shapes: list(shape) >= 0 = []",
    shape=t.parse_sequence_example,
)
op(
    "ParseSequenceExampleV2",
    "serialized: string, debug_name: string, context_sparse_keys: string, context_dense_keys: string, context_ragged_keys: string, feature_list_sparse_keys: string, feature_list_dense_keys: string, feature_list_ragged_keys: string, feature_list_dense_missing_assumed_empty: bool, context_dense_defaults: Tcontext_dense",
    "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: context_sparse_types, context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense, context_ragged_values: context_ragged_value_types, context_ragged_row_splits: context_ragged_split_types, feature_list_sparse_indices: Nfeature_list_sparse * int64, feature_list_sparse_values: feature_list_sparse_types, feature_list_sparse_shapes: Nfeature_list_sparse * int64, feature_list_dense_values: feature_list_dense_types, feature_list_dense_lengths: Nfeature_list_dense * int64, feature_list_ragged_values: feature_list_ragged_value_types, feature_list_ragged_outer_splits: feature_list_ragged_split_types, feature_list_ragged_inner_splits: feature_list_ragged_split_types",
    "Ncontext_sparse: int >= 0 = 0",
    "Tcontext_dense: list({float, int64, string}) >= 0 = []",
    "context_sparse_types: list({float, int64, string}) >= 0 = []",
    "context_ragged_value_types: list({float, int64, string}) >= 0 = []",
    "context_ragged_split_types: list({index}) >= 0 = []",
    "context_dense_shapes: list(shape) >= 0 = []",
    "Nfeature_list_sparse: int >= 0 = 0",
    "Nfeature_list_dense: int >= 0 = 0",
    "feature_list_dense_types: list({float, int64, string}) >= 0 = []",
    "feature_list_sparse_types: list({float, int64, string}) >= 0 = []",
    "feature_list_ragged_value_types: list({float, int64, string}) >= 0 = []",
    "feature_list_ragged_split_types: list({index}) >= 0 = []",
    "feature_list_dense_shapes: list(shape) >= 0 = []",
    shape=t.parse_sequence_example_v2,
)
op(
    "ParseSingleSequenceExample",
    "serialized: string, feature_list_dense_missing_assumed_empty: string, context_sparse_keys: Ncontext_sparse * string, context_dense_keys: Ncontext_dense * string, feature_list_sparse_keys: Nfeature_list_sparse * string, feature_list_dense_keys: Nfeature_list_dense * string, context_dense_defaults: Tcontext_dense, debug_name: string",
    "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: context_sparse_types, context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense, feature_list_sparse_indices: Nfeature_list_sparse * int64, feature_list_sparse_values: feature_list_sparse_types, feature_list_sparse_shapes: Nfeature_list_sparse * int64, feature_list_dense_values: feature_list_dense_types",
    "Ncontext_sparse: int >= 0 = 0",
    "Ncontext_dense: int >= 0 = 0",
    "Nfeature_list_sparse: int >= 0 = 0",
    "Nfeature_list_dense: int >= 0 = 0",
    "context_sparse_types: list({float, int64, string}) >= 0 = []",
    "Tcontext_dense: list({float, int64, string}) >= 0 = []",
    "feature_list_dense_types: list({float, int64, string}) >= 0 = []",
    "context_dense_shapes: list(shape) >= 0 = []",
    "feature_list_sparse_types: list({float, int64, string}) >= 0 = []",
    "feature_list_dense_shapes: list(shape) >= 0 = []",
    shape=t.parse_single_sequence_example,
)
op(
    "DecodePaddedRaw",
    "input_bytes: string, fixed_length: int32",
    "output: out_type",
    "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, bfloat16}",
    "little_endian: bool = true",
    shape=t.padded_raw,
    sized_by="fixed_length",
)
op(
    "LMDBReader",
    "",
    "reader_handle: Ref(string)",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.names,
)

# Vocabularies that changed between two models; cpu/io_remap.py.
op(
    "GenerateVocabRemapping",
    "new_vocab_file: string, old_vocab_file: string",
    "remapping: int64, num_present: int32",
    "new_vocab_offset: int >= 0",
    "num_new_vocab: int >= 0",
    "old_vocab_size: int >= -1 = -1",
    shape=t.remapping,
)
op(
    "LoadAndRemapMatrix",
    "ckpt_path: string, old_tensor_name: string, row_remapping: int64, col_remapping: int64, "
    "initializing_values: float",
    "output_matrix: float",
    "num_rows: int >= 0",
    "num_cols: int >= 1",
    "max_rows_in_memory: int = -1",
    stateful=True,
    shape=t.remapped,
)
