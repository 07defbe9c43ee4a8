"""Files by name, and raw bytes. Checkpoints are in io_checkpoint.py, readers in io_readers.py, parsing in parsing*.py.

Follows sharded_filename_ops, io_ops.cc's ReadFile/WriteFile/MatchingFiles, and decode_raw_op.cc.
"""

from __future__ import annotations

import os

import numpy as np

from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import file_path, parent
from tenfold_core.graph_files import graph_files
from tenfold_kernels.arrays import Array, invalid, objects, one_number, output_type, scalar_object, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel


def _text(value: Array, what: str) -> str:
    if value.ndim:
        raise invalid(f"{what} must be a scalar tensor, got shape {shape_text(value.shape)}")
    return file_path(bytes(value[()]))


def _with_suffix(basename: Array, suffix: str) -> Array:
    if basename.ndim:
        raise invalid(f"basename must be a scalar, got shape {shape_text(basename.shape)}")
    return scalar_object(bytes(basename[()]) + suffix.encode())


@kernel("ShardedFilename")
def build_sharded_filename(node: KernelNode) -> Compute:
    def compute(basename: Array, shard: Array, count: Array) -> Array:
        return _with_suffix(basename, f"-{one_number(shard, 'shard'):05d}-of-{one_number(count, 'num_shards'):05d}")

    return compute


@kernel("ShardedFilespec")
def build_sharded_filespec(node: KernelNode) -> Compute:
    return lambda basename, count: _with_suffix(basename, f"-?????-of-{one_number(count, 'num_shards'):05d}")


@kernel("ReadFile", files=True)
def build_read_file(node: KernelNode) -> Compute:
    """Reads a file of the task's machine; blocks while it does."""

    def compute(filename: Array) -> Array:
        name = _text(filename, "Input filename tensor")
        with os_errors(name):
            return scalar_object(graph_files().read_whole(name))

    return compute


@kernel("WriteFile", files=True)
def build_write_file(node: KernelNode) -> Compute:
    """Writes a file of the task's machine, and makes its folder."""

    def compute(filename: Array, contents: Array) -> None:
        name = _text(filename, "Input filename tensor")
        if contents.ndim:
            raise invalid(f"Contents tensor must be scalar, got shape {shape_text(contents.shape)}")
        with os_errors(name):
            graph_files().make_folders(parent(name) or ".")
            with graph_files().create(name) as file:
                file.write(bytes(contents[()]))

    return compute


@kernel("MatchingFiles", files=True)
def build_matching_files(node: KernelNode) -> Compute:
    """The names that match, sorted."""

    def compute(pattern: Array) -> Array:
        names: set[str] = set()
        for item in pattern.reshape(-1).tolist():
            with os_errors(file_path(item)):
                names.update(graph_files().matching(file_path(item)))
        return objects([os.fsencode(n) for n in sorted(names)])

    return compute


@kernel("DecodeRaw")
def build_decode_raw(node: KernelNode) -> Compute:
    """Bytes to numbers, along a new last dimension; all strings must have one length."""
    dtype = np.dtype(output_type(node))
    little = bool(node.attrs.get("little_endian", True))
    source = dtype.newbyteorder("<" if little else ">")

    def compute(x: Array) -> Array:
        rows = x.reshape(-1).tolist()
        if not rows:
            return np.empty((*x.shape, 0), dtype=dtype)
        length = len(rows[0])
        for row in rows:
            if len(row) != length:
                raise invalid(
                    "DecodeRaw requires input strings to all be the same size, but element has size "
                    f"{len(row)} != {length}"
                )
        if length % dtype.itemsize:
            raise invalid(
                f"Input to DecodeRaw has length {length} that is not a multiple of {dtype.itemsize}, "
                f"the size of {node.output_types[0].op_name}"
            )
        values = np.frombuffer(b"".join(rows), dtype=source).astype(dtype)
        return values.reshape(*x.shape, length // dtype.itemsize)

    return compute
