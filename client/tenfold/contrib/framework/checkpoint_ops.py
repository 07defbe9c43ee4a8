"""Initializers that take a matrix from a checkpoint of a model with another vocabulary.

Thin spellings over train/vocab_remapping.py, which warm starting uses too. Exported by contrib/framework/__init__.py.
Follows TF 1.15's contrib/framework/python/ops/checkpoint_ops.py and training/checkpoint_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.ops import init_ops
from tenfold.train.vocab_remapping import Axis, remapped_value
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable


def load_and_remap_matrix_initializer(
    ckpt_path: str,
    old_tensor_name: str,
    new_row_vocab_size: int,
    new_col_vocab_size: int,
    old_row_vocab_size: int = -1,
    old_row_vocab_file: str | None = None,
    new_row_vocab_file: str | None = None,
    old_col_vocab_file: str | None = None,
    new_col_vocab_file: str | None = None,
    num_row_oov_buckets: int = 0,
    num_col_oov_buckets: int = 0,
    initializer: Any = None,
    max_rows_in_memory: int = -1,
) -> Callable[..., Any]:
    """An initializer of a float32 matrix: rows and columns of known words from the checkpoint, others made anew.

    `initializer` makes what is missing (default: zeros). Partitions along the rows are served; the matrix is read as
    a whole, whatever `max_rows_in_memory` says. Raises ValueError for vocabularies that do not fit each other.
    """
    rows = Axis(new_row_vocab_size, num_row_oov_buckets, new_row_vocab_file, old_row_vocab_file, old_row_vocab_size)
    columns = Axis(new_col_vocab_size, num_col_oov_buckets, new_col_vocab_file, old_col_vocab_file)

    def initial_value(shape: Any, dtype: Any = dtypes.float32, partition_info: Any = None) -> Any:
        if dtype != dtypes.float32:
            raise TypeError(f"Currently, only float32 is supported. Received dtype: {dtype}")
        if len(shape) != 2:
            raise ValueError(f"Expected 2-dim shape, but received: {shape}")
        if shape[0] <= 0:
            raise ValueError(f"Expected 1st dim of shape to be > 0, but received shape: {shape}")
        offset = 0 if partition_info is None else partition_info.single_offset(shape)
        return remapped_value(ckpt_path, old_tensor_name, shape, offset, rows, columns, initializer)

    return initial_value


def load_embedding_initializer(
    ckpt_path: str,
    embedding_tensor_name: str,
    new_vocab_size: int,
    embedding_dim: int,
    old_vocab_file: str,
    new_vocab_file: str,
    old_vocab_size: int = -1,
    num_oov_buckets: int = 0,
    initializer: Any = None,
    max_rows_in_memory: int = -1,
) -> Callable[..., Any]:
    """An initializer of an embedding; rows of new words are drawn from a truncated normal by default."""
    return load_and_remap_matrix_initializer(
        ckpt_path=ckpt_path,
        old_tensor_name=embedding_tensor_name,
        new_row_vocab_size=new_vocab_size,
        new_col_vocab_size=embedding_dim,
        old_row_vocab_size=old_vocab_size,
        old_row_vocab_file=old_vocab_file,
        new_row_vocab_file=new_vocab_file,
        num_row_oov_buckets=num_oov_buckets,
        initializer=init_ops.TruncatedNormal(stddev=embedding_dim**-0.5) if initializer is None else initializer,
        max_rows_in_memory=max_rows_in_memory,
    )


def load_linear_multiclass_bias_initializer(
    ckpt_path: str,
    bias_tensor_name: str,
    new_class_vocab_size: int,
    old_class_vocab_file: str,
    new_class_vocab_file: str,
    num_class_oov_buckets: int = 0,
    initializer: Any = None,
    max_rows_in_memory: int = -1,
) -> Callable[..., Any]:
    """An initializer of biases of shape (classes, 1); zeros for new classes by default."""
    return load_and_remap_matrix_initializer(
        ckpt_path=ckpt_path,
        old_tensor_name=bias_tensor_name,
        new_row_vocab_size=new_class_vocab_size,
        new_col_vocab_size=1,
        old_row_vocab_file=old_class_vocab_file,
        new_row_vocab_file=new_class_vocab_file,
        num_row_oov_buckets=num_class_oov_buckets,
        initializer=init_ops.Zeros() if initializer is None else initializer,
        max_rows_in_memory=max_rows_in_memory,
    )


def load_variable_slot_initializer(
    ckpt_path: str,
    old_tensor_name: str,
    primary_partition_info: Any,
    new_row_vocab_size: int,
    new_col_vocab_size: int,
    old_row_vocab_file: str | None = None,
    new_row_vocab_file: str | None = None,
    old_col_vocab_file: str | None = None,
    new_col_vocab_file: str | None = None,
    num_row_oov_buckets: int = 0,
    num_col_oov_buckets: int = 0,
    initializer: Any = None,
    max_rows_in_memory: int = -1,
) -> Callable[..., Any]:
    """An initializer of an optimizer's slot, which is partitioned as its variable is."""
    whole = load_and_remap_matrix_initializer(
        ckpt_path=ckpt_path,
        old_tensor_name=old_tensor_name,
        new_row_vocab_size=new_row_vocab_size,
        new_col_vocab_size=new_col_vocab_size,
        old_row_vocab_file=old_row_vocab_file,
        new_row_vocab_file=new_row_vocab_file,
        old_col_vocab_file=old_col_vocab_file,
        new_col_vocab_file=new_col_vocab_file,
        num_row_oov_buckets=num_row_oov_buckets,
        num_col_oov_buckets=num_col_oov_buckets,
        initializer=initializer,
        max_rows_in_memory=max_rows_in_memory,
    )

    def initial_value(shape: Any, dtype: Any = dtypes.float32, partition_info: Any = None) -> Any:
        return whole(shape, dtype, partition_info=primary_partition_info)

    return initial_value
