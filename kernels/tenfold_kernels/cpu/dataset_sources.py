"""Ops that make datasets of tensors, ranges and files. The machines are datasets/sources.py.

A dataset is made anew by every step that runs its op, and lives as long as an iterator uses it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import file_path
from tenfold_core.graph_files import graph_files
from tenfold_core.records import ByteStream, RecordReader
from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.registry import Compute, Function, KernelNode, kernel
from tenfold_kernels.resources.datasets.core import element_of
from tenfold_kernels.resources.datasets.sources import Generated, Range, Records, Slices, SparseSlices, Tensors
from tenfold_kernels.resources.handles import kept

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPRESSIONS = ("", "ZLIB", "GZIP")
#: No record is longer than this, whatever a program says.
_MAX_RECORD = 1 << 31


def function_of(node: KernelNode, attr: str) -> Function:
    """The function that an attribute names. Raises NotFoundError where the graph has none of that name."""
    function = node.attrs[attr]
    if node.functions is None:
        raise invalid(f"Function {function.name} is not defined: the graph of node '{node.name}' has no library.")
    return node.functions.instantiate(function.name, function.attr, node.device)


def number(value: Array, name: str) -> int:
    """A scalar argument of a dataset. Raises InvalidArgumentError for another shape."""
    if value.ndim:
        raise invalid(f"{name} must be a scalar")
    return int(value)


def text(value: Array, name: str) -> str:
    if value.ndim:
        raise invalid(f"{name} must be a scalar")
    found = value[()]
    return found.decode() if isinstance(found, bytes) else str(found)


def names_of(value: Array) -> list[bytes]:
    if value.ndim > 1:
        raise invalid(f"`filenames` must be a scalar or a vector, got shape {shape_text(value.shape)}")
    return [bytes(name) for name in value.reshape(-1)]


def compression_of(value: Array) -> str:
    found = text(value, "compression_type")
    if found not in _COMPRESSIONS:
        raise invalid("Unsupported compression_type.")
    return found


@kernel("TensorDataset")
def build_tensor(node: KernelNode) -> Compute:
    types, shapes = node.attrs["Toutput_types"], node.attrs["output_shapes"]
    return lambda *tensors: Tensors(types, shapes, tuple(kept(t) for t in tensors)).as_array()


@kernel("TensorSliceDataset")
def build_tensor_slice(node: KernelNode) -> Compute:
    types, shapes = node.attrs["Toutput_types"], node.attrs["output_shapes"]
    return lambda *tensors: Slices(types, shapes, tuple(kept(t) for t in tensors)).as_array()


@kernel("SparseTensorSliceDataset")
def build_sparse_tensor_slice(node: KernelNode) -> Compute:
    dtype = node.attrs["Tvalues"]

    def compute(indices: Array, values: Array, shape: Array) -> Any:
        if indices.ndim != 2 or values.ndim != 1 or shape.ndim != 1 or not len(shape):
            raise invalid("Input indices must be a matrix, values and dense_shape vectors.")
        if len(indices) != len(values) or indices.shape[1] != len(shape):
            raise invalid(f"Number of values {len(values)} does not match the indices {shape_text(indices.shape)}.")
        return SparseSlices(dtype, kept(indices), kept(values), kept(shape)).as_array()

    return compute


@kernel("RangeDataset")
def build_range(node: KernelNode) -> Compute:
    types, shapes = node.attrs["output_types"], node.attrs["output_shapes"]

    def compute(start: Array, stop: Array, step: Array) -> Any:
        return Range(types, shapes, number(start, "start"), number(stop, "stop"), number(step, "step")).as_array()

    return compute


@kernel("TextLineDataset")
def build_text_line(node: KernelNode) -> Compute:
    """A line an element, without its end."""

    def compute(filenames: Array, compression: Array, buffer_size: Array) -> Any:
        kind = compression_of(compression)

        def records(name: bytes) -> Iterator[bytes]:
            with ByteStream(os.fsdecode(name), kind, files=graph_files()) as stream:
                while (line := stream.read_line()) is not None:
                    yield line.removesuffix(b"\n").removesuffix(b"\r")

        return Records(names_of(filenames), records).as_array()

    return compute


@kernel("TFRecordDataset", "TFRecordDatasetV2")
def build_tf_record(node: KernelNode) -> Compute:
    """A record an element."""

    def compute(filenames: Array, compression: Array, buffer_size: Array, offsets: Array | None = None) -> Any:
        kind = compression_of(compression)
        if offsets is not None and offsets.size and offsets.any():
            raise invalid("TFRecordDatasetV2: byte_offsets other than 0 are not read here")

        def records(name: bytes) -> Iterator[bytes]:
            with RecordReader(os.fsdecode(name), kind, files=graph_files()) as reader:
                while (record := reader.read()) is not None:
                    yield record

        return Records(names_of(filenames), records).as_array()

    return compute


@kernel("FixedLengthRecordDataset", "FixedLengthRecordDatasetV2")
def build_fixed_length(node: KernelNode) -> Compute:
    """Records of one length between a file's header and its footer."""

    def compute(
        filenames: Array,
        header_bytes: Array,
        record_bytes: Array,
        footer_bytes: Array,
        buffer_size: Array,
        compression: Array | None = None,
    ) -> Any:
        header, record, footer = (
            number(value, name)
            for value, name in (
                (header_bytes, "header_bytes"),
                (record_bytes, "record_bytes"),
                (footer_bytes, "footer_bytes"),
            )
        )
        if header < 0 or footer < 0:
            raise invalid("`header_bytes` and `footer_bytes` must be >= 0")
        if not 0 < record <= _MAX_RECORD:
            raise invalid(f"`record_bytes` must be > 0 and at most {_MAX_RECORD}")
        kind = "" if compression is None else compression_of(compression)

        def records(name: bytes) -> Iterator[bytes]:
            path = file_path(name)
            if not kind:
                with os_errors(path):
                    body = graph_files().size(path) - header - footer
                if body % record:
                    raise invalid(
                        f'Excluding the header ({header} bytes) and footer ({footer} bytes), input file "{path}" has '
                        f"body length {body} bytes, which is not an exact multiple of the record length "
                        f"({record} bytes)."
                    )
            with ByteStream(path, kind, files=graph_files()) as stream:
                stream.skip(header)
                held = stream.read(footer)
                while len(piece := stream.read(record)) == record:
                    held += piece
                    yield held[:record]
                    held = held[record:]

        return Records(names_of(filenames), records).as_array()

    return compute


@kernel("GeneratorDataset")
def build_generator(node: KernelNode) -> Compute:
    types, shapes = node.attrs["output_types"], node.attrs["output_shapes"]
    functions = [function_of(node, name) for name in ("init_func", "next_func", "finalize_func")]
    counts = [len(node.attrs[name]) for name in ("Tinit_func_args", "Tnext_func_args", "Tfinalize_func_args")]

    def compute(*values: Array) -> Any:
        captured, at = [], 0
        for function, count in zip(functions, counts, strict=True):
            captured.append((function, element_of([kept(v) for v in values[at : at + count]])))
            at += count
        begin, following, end = captured
        return Generated(types, shapes, begin, following, end).as_array()

    return compute
