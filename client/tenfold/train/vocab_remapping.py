"""Initial values from a checkpoint with another vocabulary: rows or columns are matched by their words.

An initializer makes the rows of words that the old model lacks; and the rows of hash buckets behind the vocabulary.
Called by warm_starting.py. Follows TF 1.15's training/checkpoint_ops.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array, init_ops
from tenfold.ops import math as m
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.graph.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Axis:
    """The vocabulary of the rows or of the columns of a matrix; the same as before without files."""

    #: Words of the new vocabulary, or rows or columns to keep.
    size: int
    #: Rows or columns behind them.
    oov_buckets: int = 0
    new_vocab: str | None = None
    old_vocab: str | None = None
    #: How many words of the old vocabulary count; -1 for all.
    old_size: int = -1

    def __post_init__(self) -> None:
        if self.oov_buckets < 0:
            raise ValueError(f"num_oov_buckets must be >= 0, but received {self.oov_buckets}")
        if bool(self.new_vocab) != bool(self.old_vocab):
            raise ValueError(
                "The old and the new vocabulary file must both be specified or left unspecified: "
                f"old='{self.old_vocab}', new='{self.new_vocab}'"
            )

    @property
    def is_remapped(self) -> bool:
        return bool(self.new_vocab)

    def remapping(self, offset: int, count: int) -> tuple[Any, Any]:
        """(old number of each new row or column from `offset` on, how many of them there are)."""
        if not self.is_remapped:
            return m.range(offset, offset + count, dtype=dtypes.int64), count
        found = apply_op(
            "GenerateVocabRemapping",
            new_vocab_file=self.new_vocab,
            old_vocab_file=self.old_vocab,
            new_vocab_offset=offset,
            num_new_vocab=count,
            old_vocab_size=self.old_size,
        )
        return found.remapping, found.num_present


def remapped_value(
    checkpoint: str,
    tensor_name: str,
    shape: Sequence[int],
    offset: int,
    rows: Axis,
    columns: Axis,
    initializer: Callable[..., Any] | None = None,
) -> Tensor:
    """The part of `shape` [rows, columns], from row `offset` of the whole on, of a float32 matrix in a checkpoint.

    `initializer(shape)` makes what is missing (default: zeros). Raises ValueError for a shape that the axes do not fit.
    """
    initializer = init_ops.Zeros() if initializer is None else initializer
    if len(shape) != 2 or shape[0] <= 0:
        raise ValueError(f"Expected 2-dim shape with rows, but received: {list(shape)}")
    if shape[1] != columns.size + columns.oov_buckets:
        raise ValueError(
            f"Expected 2nd dim of shape to be {columns.size} words + {columns.oov_buckets} buckets = "
            f"{columns.size + columns.oov_buckets}, but received shape: {list(shape)}"
        )
    if offset + shape[0] > rows.size + rows.oov_buckets:
        raise ValueError(
            f"Trying to initialize {shape[0]} additional rows after {offset} rows have already been initialized, which "
            f"would exceed expected total row count of {rows.size} words + {rows.oov_buckets} buckets = "
            f"{rows.size + rows.oov_buckets}."
        )
    buckets = min(shape[0], max(0, offset + shape[0] - rows.size))
    loaded = shape[0] - buckets
    if not loaded:
        return convert_to_tensor(initializer(list(shape)))
    row_remapping, rows_present = rows.remapping(offset, loaded)
    column_remapping: Any = convert_to_tensor([], dtypes.int64)
    columns_present: Any = columns.size
    if columns.is_remapped:
        column_remapping, columns_present = columns.remapping(0, columns.size)
    missing = loaded * columns.size - rows_present * columns_present
    matrix = apply_op(
        "LoadAndRemapMatrix",
        ckpt_path=checkpoint,
        old_tensor_name=tensor_name,
        row_remapping=row_remapping,
        col_remapping=column_remapping,
        initializing_values=initializer(array.stack([missing, 1])),
        num_rows=loaded,
        num_cols=columns.size,
    )
    if buckets:
        matrix = array.concat([matrix, convert_to_tensor(initializer([buckets, columns.size]))], 0)
    if columns.oov_buckets:
        behind = convert_to_tensor(initializer([loaded + buckets, columns.oov_buckets]))
        matrix = array.concat([matrix, behind], 1)
    result: Tensor = matrix
    return result
