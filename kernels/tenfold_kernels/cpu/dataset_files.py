"""Ops of datasets of CSV files, SQLite databases and file names, of parsed Examples, and of what is written to files.

The machines are datasets/files.py; parsing is _examples.py's. Follows csv_dataset_op.cc, sql_dataset_op.cc,
matching_files_dataset_op.cc, parse_example_dataset_op.cc and to_tf_record_op.cc.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import file_path
from tenfold_core.graph_files import graph_files
from tenfold_core.records import RecordWriter
from tenfold_kernels.arrays import Array, invalid, text_attr
from tenfold_kernels.cpu._examples import Rows, attr_keys, columns_of, dense_features_of, features_of, shapes_of_attr
from tenfold_kernels.cpu.dataset import captured_of, types_of
from tenfold_kernels.cpu.dataset_sources import compression_of, names_of, number, text
from tenfold_kernels.cpu.dataset_whole import at_work
from tenfold_kernels.cpu.io_parsing import columns_of_records
from tenfold_kernels.cpu.string_number import parser
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel
from tenfold_kernels.resources.datasets.core import dataset_of
from tenfold_kernels.resources.datasets.file_caches import FileCache
from tenfold_kernels.resources.datasets.files import Csv, CsvFormat, Matching, Sql, written
from tenfold_kernels.resources.datasets.functional import Computed
from tenfold_kernels.resources.datasets.iterators import verify
from tenfold_kernels.resources.tensor_variants import vector_of
from tenfold_protos import example_pb2

if TYPE_CHECKING:
    from tenfold_kernels.resources.datasets.core import Element, Run

no_kernel(
    "LMDBDataset",
    "ExperimentalLMDBDataset",
    device="CPU",
    why="LMDB's library trusts pointers in a file: a crafted one ends the server. Write the pairs to TFRecord files",
)


@kernel("CSVDataset", "CSVDatasetV2", "ExperimentalCSVDataset")
def build_csv(node: KernelNode) -> Compute:
    types, shapes = types_of(node)
    parsers = [None if dtype.name == "string" else parser(dtype.as_numpy_dtype) for dtype in types]
    has_excluded = node.op == "CSVDatasetV2"

    def compute(
        filenames: Array,
        compression: Array,
        buffer_size: Array,
        header: Array,
        delimiter: Array,
        quotes: Array,
        missing: Array,
        selected: Array,
        *rest: Array,
    ) -> Any:
        defaults = captured_of(rest[: len(types)])
        excluded = rest[-1].tolist() if has_excluded else []
        for place, default in enumerate(defaults):
            if default.ndim > 1:
                raise invalid("Each record default should be at most rank 1")
            if default.size > 1:
                raise invalid(f"There should only be 1 default per field but field {place} has {default.size}")
        if selected.ndim != 1:
            raise invalid("`select_cols` must be a vector.")
        if number(buffer_size, "buffer_size") <= 0:
            raise invalid("buffer_size should be positive")
        columns = selected.tolist()
        delim = bytes(delimiter[()]) if not delimiter.ndim else b""
        if len(delim) != 1:
            raise invalid("field_delim should be only 1 char")
        if columns and len(columns) != len(types):
            raise invalid("select_cols should match output size")
        if columns and excluded:
            raise invalid("Either select_cols or exclude_cols should be empty")
        for chosen, name in ((columns, "select_cols"), (excluded, "exclude_cols")):
            if any(after <= before for before, after in itertools.pairwise(chosen)):
                raise invalid(f"{name} should be strictly increasing indices")
            if chosen and chosen[0] < 0:
                raise invalid(f"{name} should be non-negative indices")
        form = CsvFormat(
            delim,
            bool(quotes),
            text(missing, "na_value").encode(),
            bool(header),
            tuple(columns),
            tuple(excluded),
            compression_of(compression),
        )
        columns = functools.partial(columns_of_records, types=types, missing=form.missing, defaults=defaults)
        return Csv(types, shapes, names_of(filenames), form, defaults, parsers, columns).as_array()

    return compute


@kernel("SqlDataset", "ExperimentalSqlDataset")
def build_sql(node: KernelNode) -> Compute:
    types, shapes = types_of(node)
    if len(types) != len(shapes):
        raise invalid(f"output_types and output_shapes must be as many, got {len(types)} and {len(shapes)}.")
    for place, (dtype, shape) in enumerate(zip(types, shapes, strict=True)):
        if shape.ndims:
            raise invalid(f"Each element of `output_shapes_` must be a scalar; component {place} is {shape}")
        if dtype.is_complex or dtype.name in ("variant", "resource", "float16", "bfloat16"):
            raise invalid(
                f"Each element of `output_types_` must be one of: DT_STRING, DT_BOOL, or a number; component {place} "
                f"is {dtype.name}"
            )

    def compute(driver: Array, source: Array, query: Array) -> Any:
        kind = text(driver, "driver_name")
        if kind != "sqlite":
            raise invalid(
                f"The database type, {kind}, is not supported by SqlDataset. The set of supported databases is: "
                "{'sqlite'}."
            )
        name, statement = text(source, "data_source_name"), text(query, "query")
        return Sql(types, shapes, name.encode(), statement.encode()).as_array()

    return compute


@kernel("MatchingFilesDataset", "ExperimentalMatchingFilesDataset")
def build_matching_files(node: KernelNode) -> Compute:
    def compute(patterns: Array) -> Any:
        if patterns.ndim > 1:
            raise invalid("`patterns` must be a scalar or a vector.")
        return Matching([bytes(pattern) for pattern in patterns.reshape(-1)]).as_array()

    return compute


@kernel("ParseExampleDataset", "ParseExampleDatasetV2", "ExperimentalParseExampleDataset")
def build_parse_example(node: KernelNode) -> Compute:
    """Vectors of serialized Examples to their features, in the order of the keys; a sparse one is three variants."""
    from tenfold_kernels.cpu._examples_at_once import AtOnce

    types, shapes = types_of(node)
    attrs = node.attrs
    dense_keys, sparse_keys = attr_keys(node, "dense_keys"), attr_keys(node, "sparse_keys")
    dense_shapes = shapes_of_attr(node, "dense_shapes")
    sparse = columns_of(sparse_keys, attrs["sparse_types"])
    if attr_keys(node, "ragged_keys"):
        raise invalid("ParseExampleDataset: ragged features are not read here; parse them in a map function")
    keys = [*sparse_keys, *dense_keys]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise invalid(f"Duplicate key not allowed: {twice}")
    # As std::map does: by bytes.
    order = sorted(range(len(keys)), key=lambda place: keys[place].encode("utf-8", "surrogateescape"))

    def compute(dataset: Array, calls: Array, *defaults: Array) -> Any:
        many = number(calls, "num_parallel_calls")
        if many < 1 and many != -1:
            raise invalid("num_parallel_calls must be greater than zero.")
        dense = dense_features_of(dense_keys, attrs["Tdense"], dense_shapes, captured_of(defaults))
        wanted = AtOnce(sparse, dense, [])

        def parse(element: Element) -> Element:
            (serialized,) = element
            if serialized.ndim != 1:
                raise invalid("Expected serialized to be a vector: batch the dataset before it is parsed.")
            found = wanted.outputs(serialized)
            if found is None:
                rows = Rows(serialized, None, example_pb2.Example)
                found = features_of(rows, [proto.features.feature for proto in rows.protos], sparse, dense, [])
            count = len(sparse)
            values = [vector_of(*found[place : 3 * count : count]) for place in range(count)]
            values += found[3 * count :]
            return tuple(values[place] for place in order)

        return Computed(types, shapes, dataset_of(dataset), parse).as_array()

    return compute


@kernel("SnapshotDataset")
def build_snapshot(node: KernelNode) -> Compute:
    """The input, written to a file of the folder by the first pass and read from there later; the file is our own."""
    types, shapes = types_of(node)
    attrs = node.attrs
    mode = text_attr(node, "mode")
    if mode not in ("auto", "read", "write", "passthrough"):
        raise invalid(f"Could not determine snapshot mode. mode must be one of auto, read, write, passthrough: {mode}")
    if text_attr(node, "compression") not in ("", "GZIP", "SNAPPY", "NONE"):
        raise invalid("compression must be either '', 'GZIP' or 'SNAPPY'.")
    if attrs.get("shuffle_on_read"):
        raise invalid("SnapshotDataset: shuffle_on_read is not done here; shuffle what the dataset gives")
    name = text_attr(node, "snapshot_name") or "snapshot"

    def compute(dataset: Array, path: Array) -> Any:
        found, folder = dataset_of(dataset), file_path(text(path, "path"))
        verify(types, shapes, found.types, found.shapes)
        if mode == "passthrough":
            return found.as_array()
        with os_errors(folder):
            graph_files().make_folders(folder)
        file = f"{folder}/{name}.tenfold"
        if mode == "read" and not graph_files().exists(file):
            raise errors.not_found(f"Snapshot mode is read, and there is no snapshot in {folder}")
        if mode == "write" and graph_files().exists(file):
            with os_errors(file):
                graph_files().unlink(file)
        return FileCache(found, file).as_array()

    return compute


@kernel("DatasetToTFRecord", "ExperimentalDatasetToTFRecord", blocking=True, files=True)
def build_to_tf_record(node: KernelNode) -> Compute:
    """Writes every element as a record."""

    def compute(dataset: Array, filename: Array, compression: Array) -> Any:
        found, name, kind = dataset_of(dataset), text(filename, "filename"), compression_of(compression)

        def work(run: Run) -> None:
            writer = RecordWriter(name, kind, files=graph_files())
            try:
                written(found, run, writer.write)
            finally:
                writer.close()

        return at_work(work)

    return compute
