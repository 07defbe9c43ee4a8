"""Matrices of a checkpoint with rows and columns in another order: what warm starts with other vocabularies need.

GenerateVocabRemapping compares two vocabularies, LoadAndRemapMatrix reads the matrix by what came out. Both block on
the disk. Follows generate_vocab_remapping_op.cc and load_and_remap_matrix_op.cc.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tenfold_core import dtypes
from tenfold_core.checkpoint import BundleReader, SliceTableReader, TensorSlice, meta_filename
from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import file_path
from tenfold_core.files import length
from tenfold_core.graph_files import graph_files
from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel


def _path(value: Array, what: str) -> str:
    if value.size != 1:
        raise invalid(f"{what} input should have a single element, got {value.size} instead.")
    return file_path(value.reshape(-1)[0])


def _lines(path: str, start: int, count: int) -> list[bytes]:
    """Lines `start` up to `count` of them, without their ends; all for -1. Fewer only at the end of the file."""
    stop = None if count < 0 else start + count
    with os_errors(path), graph_files().open_to_read(path) as file:
        graph_files().check_bytes(path, length(file))
        return [line.rstrip(b"\n").removesuffix(b"\r") for line in itertools.islice(file, start, stop)]


@kernel("GenerateVocabRemapping", files=True)
def build_generate_vocab_remapping(node: KernelNode) -> Compute:
    """new, old vocabulary, a word a line → remapping [num_new_vocab] of line numbers, -1 for what is new; the others.

    New words are counted from `new_vocab_offset` on, old ones up to `old_vocab_size` if that is not negative.
    """
    offset, wanted = int(node.attrs["new_vocab_offset"]), int(node.attrs["num_new_vocab"])
    old_size = int(node.attrs["old_vocab_size"])

    def compute(new_vocab_file: Array, old_vocab_file: Array) -> tuple[Array, Array]:
        old = {word: number for number, word in enumerate(_lines(_path(old_vocab_file, "old_vocab_file"), 0, old_size))}
        path = _path(new_vocab_file, "new_vocab_file")
        words = _lines(path, offset, wanted)
        if len(words) < wanted:
            raise invalid(
                f"Invalid vocab_size in {path}: expected at least {offset + wanted} but got {offset + len(words)}"
            )
        remapping = np.array([old.get(word, -1) for word in words], np.int64)
        return remapping, np.array((remapping >= 0).sum(), np.int32)

    return compute


def _checked(remapping: Array, expected: int, what: str) -> Array:
    """A vector of old numbers, each at most once. Raises InvalidArgumentError."""
    if remapping.ndim != 1:
        raise invalid(f"The {what} tensor must be 1-D, got shape {shape_text(remapping.shape)}")
    if remapping.size != expected:
        raise invalid(f"Size of {what} is {remapping.size} instead of being equal to {expected}")
    present = remapping[remapping >= 0]
    numbers, times = np.unique(present, return_counts=True)
    if (times > 1).any():
        raise invalid(f"{what}: more than one new entry is mapped to the old entry {numbers[times > 1][0]}")
    if (remapping < -1).any():
        raise invalid(f"{what}: {remapping.min()} is no entry; -1 stands for a missing one")
    return present


@kernel("LoadAndRemapMatrix", files=True)
def build_load_and_remap_matrix(node: KernelNode) -> Compute:
    """→ float32 [num_rows, num_cols]: old rows and columns where the remappings say, given values elsewhere, in order.

    An empty `col_remapping` keeps the columns. At most `max_rows_in_memory` old rows are read at a time, if positive.
    """
    rows, columns = int(node.attrs["num_rows"]), int(node.attrs["num_cols"])
    most = int(node.attrs["max_rows_in_memory"])

    def compute(
        ckpt_path: Array, old_tensor_name: Array, row_remapping: Array, col_remapping: Array, values: Array
    ) -> Any:
        present_rows = _checked(row_remapping, rows, "row_remapping")
        remaps_columns = col_remapping.size > 0
        present_columns = _checked(col_remapping, columns, "col_remapping") if remaps_columns else np.arange(columns)
        path, name = _path(ckpt_path, "ckpt_path"), bytes(old_tensor_name.reshape(-1)[0]).decode()
        new_columns = np.flatnonzero(col_remapping >= 0) if remaps_columns else present_columns
        out = np.empty((rows, columns), np.float32)
        missing = np.ones((rows, columns), bool)
        missing[np.ix_(np.flatnonzero(row_remapping >= 0), new_columns)] = False
        count = int(missing.sum())
        if values.size != count:
            raise invalid(
                f"Tensor initializing_values contained {values.size} elements, but {count} values of the matrix are "
                "missing in the checkpoint"
            )
        files = graph_files()
        kind = BundleReader if files.exists(meta_filename(path)) else SliceTableReader
        with kind(path, files=files) as reader:
            found = reader.dtype_and_shape(name)
            if found is None:
                raise invalid(f"Old tensor name {name} was not found in the checkpoint {path}")
            dtype, shape = found
            if dtype is not dtypes.float32 or len(shape) != 2:
                raise invalid(f"Tensor {name} must be a float matrix, but is {dtype.name} {shape_text(shape)}")
            if not remaps_columns and shape[1] != columns:
                raise invalid(f"Tensor {name} has {shape[1]} columns, and num_cols is {columns}, without a remapping")
            for what, present, size in (("row", present_rows, shape[0]), ("column", present_columns, shape[1])):
                if present.size and present.max() >= size:
                    raise invalid(f"Tensor {name} has {size} {what}s; there is no {what} {present.max()}")
            new_of_old = {int(old): new for new, old in enumerate(row_remapping) if old >= 0}
            needed = sorted(new_of_old)
            while needed:
                first = needed[0]
                end = needed[-1] + 1 if most <= 0 else min(first + most, needed[-1] + 1)
                block = reader.read_slice(name, TensorSlice(((first, end - first), None)))
                taken = [old for old in needed if old < end]
                targets, sources = np.array([new_of_old[old] for old in taken]), np.array(taken) - first
                out[np.ix_(targets, new_columns)] = block[np.ix_(sources, present_columns)]
                needed = needed[len(taken) :]
        out[missing] = values.reshape(-1)
        return out

    return compute
