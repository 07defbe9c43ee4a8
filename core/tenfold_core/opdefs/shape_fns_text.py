"""Shape functions of strings, parsed records and random numbers; those that all families share are in shape_fns.py.

Follows string_ops.cc, parsing_ops.cc, random_ops.cc and candidate_sampling_ops.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.opdefs.shape_fns import _SCALAR, _UNKNOWN, always, broadcast, scalar, unchanged
from tenfold_core.opdefs.shape_fns_math import reduction
from tenfold_core.opdefs.shape_fns_reshape import multinomial
from tenfold_core.tensor_shape import TensorShape, as_shape, unknown_shape

if TYPE_CHECKING:
    from tenfold_core.shape_inference import ShapeContext

    Shapes = list[TensorShape]

__all__ = ["always", "broadcast", "multinomial", "reduction", "scalar", "unchanged"]

_VECTOR = unknown_shape(1)

vector = always([None])
#: A sparse matrix of the pieces of a vector of strings.
pieces = always([None, 2], [None], [2])


def columns(c: ShapeContext) -> Shapes:
    """DecodeCSV: every column is as the records."""
    return [c.input(0)] * c.output_count


def raw(c: ShapeContext) -> Shapes:
    """A row of numbers a string."""
    return [c.input(0).concatenate([None])]


def padded_raw(c: ShapeContext) -> Shapes:
    length = c.constant(1)
    if length is None or c.input(0).ndims is None:
        return raw(c)
    width, size = int(c.attrs["out_type"].size), int(length.reshape(()))
    if size <= 0:
        raise ValueError(f"fixed_length must be greater than zero, got {size}")
    if size % width:
        raise ValueError(f"fixed_length ({size}) must be a multiple of the size of out_type ({width})")
    return [c.input(0).concatenate([size // width])]


# ---- tf.Example ------------------------------------------------------------------------------------------------------


def _as_many(c: ShapeContext, *pairs: tuple[str, str]) -> None:
    """Raises ValueError unless the two attributes of each pair, lists or numbers, say of the same number of things."""
    for pair in pairs:
        one, other = (value if isinstance(value, int) else len(value) for value in map(c.attrs.__getitem__, pair))
        if one != other:
            raise ValueError(f"{c.op_def.name} needs as many {pair[0]} as {pair[1]}, but got {one} and {other}")


def _sparse(count: int, rank: int | None) -> Shapes:
    """Indices, values and shapes of `count` sparse tensors."""
    shape = TensorShape([None, rank])
    return [shape] * count + [_VECTOR] * count + [TensorShape([rank])] * count


def _dense(prefix: TensorShape, shapes: list[TensorShape]) -> Shapes:
    """Under a batch, only the first size of each may be open: it is padded."""
    return [prefix.concatenate(as_shape(shape)) for shape in shapes]


def _ragged(c: ShapeContext, count: int, splits: TensorShape) -> Shapes:
    return [_VECTOR] * count + [splits] * count


def _splits(c: ShapeContext) -> TensorShape:
    """Row splits: one more than there are examples."""
    rows = c.input(0).num_elements() if c.input(0).ndims else None
    return TensorShape([None if rows is None else rows + 1])


def parse_example(c: ShapeContext) -> Shapes:
    batch = c.input(0).with_rank(1)
    _as_many(c, ("Nsparse", "sparse_types"), ("Tdense", "dense_shapes"))
    return [*_sparse(int(c.attrs["Nsparse"]), 2), *_dense(batch, c.attrs["dense_shapes"])]


def parse_example_v2(c: ShapeContext) -> Shapes:
    batch, ragged = c.input(0), len(c.attrs["ragged_value_types"])
    rank = None if batch.ndims is None else batch.ndims + 1
    _as_many(
        c, ("num_sparse", "sparse_types"), ("Tdense", "dense_shapes"), ("ragged_value_types", "ragged_split_types")
    )
    return [
        *_sparse(int(c.attrs["num_sparse"]), rank),
        *_dense(batch, c.attrs["dense_shapes"]),
        *_ragged(c, ragged, _splits(c)),
    ]


def parse_single_example(c: ShapeContext) -> Shapes:
    _as_many(c, ("num_sparse", "sparse_types"), ("Tdense", "dense_shapes"))
    return [*_sparse(int(c.attrs["num_sparse"]), 1), *_dense(TensorShape([]), c.attrs["dense_shapes"])]


#: Of SequenceExamples, batched or not.
_SEQUENCE_PAIRS = (
    ("Ncontext_sparse", "context_sparse_types"),
    ("Tcontext_dense", "context_dense_shapes"),
    ("Nfeature_list_sparse", "feature_list_sparse_types"),
    ("feature_list_dense_types", "feature_list_dense_shapes"),
)
_RAGGED_PAIRS = (
    ("context_ragged_value_types", "context_ragged_split_types"),
    ("feature_list_ragged_value_types", "feature_list_ragged_split_types"),
)


def _sequences(c: ShapeContext, batch: TensorShape, context_ragged: int, list_ragged: int) -> Shapes:
    """Context and feature lists of a batch of SequenceExamples, or of a single one (a scalar batch)."""
    _as_many(c, *_SEQUENCE_PAIRS, ("Nfeature_list_dense", "feature_list_dense_types"))
    rank = None if batch.ndims is None else batch.ndims + 1
    lists_rank = None if rank is None else rank + 1
    lists = _dense(batch.concatenate([None]), c.attrs["feature_list_dense_shapes"])
    splits = _splits(c)
    inner = TensorShape([None])
    return [
        *_sparse(int(c.attrs["Ncontext_sparse"]), rank),
        *_dense(batch, c.attrs["context_dense_shapes"]),
        *_ragged(c, context_ragged, splits),
        *_sparse(int(c.attrs["Nfeature_list_sparse"]), lists_rank),
        *lists,
        *[batch] * len(lists),
        *[_VECTOR] * list_ragged,
        *[splits] * list_ragged,
        *[inner] * list_ragged,
    ]


def parse_sequence_example(c: ShapeContext) -> Shapes:
    return _sequences(c, c.input(0).with_rank(1), 0, 0)


def parse_sequence_example_v2(c: ShapeContext) -> Shapes:
    _as_many(c, *_RAGGED_PAIRS)
    context, lists = len(c.attrs["context_ragged_value_types"]), len(c.attrs["feature_list_ragged_value_types"])
    return _sequences(c, c.input(0), context, lists)


def parse_single_sequence_example(c: ShapeContext) -> Shapes:
    _as_many(c, *_SEQUENCE_PAIRS)
    return [
        *_sparse(int(c.attrs["Ncontext_sparse"]), 1),
        *_dense(TensorShape([]), c.attrs["context_dense_shapes"]),
        *_sparse(int(c.attrs["Nfeature_list_sparse"]), 2),
        *_dense(_VECTOR, c.attrs["feature_list_dense_shapes"]),
    ]


# ---- strings ---------------------------------------------------------------------------------------------------------


def ngrams(c: ShapeContext) -> Shapes:
    return [_VECTOR, c.input(1).with_rank(1)]


def unicode_decode(c: ShapeContext) -> Shapes:
    """Row splits, one more than there are strings, and then characters and offsets."""
    strings = c.input(0).num_elements()
    return [TensorShape([None if strings is None else strings + 1]), *[_VECTOR] * (c.output_count - 1)]


def unicode_encode(c: ShapeContext) -> Shapes:
    splits = c.input(1).with_rank(1).as_list()[0]
    return [TensorShape([None if splits is None else splits - 1])]


# ---- random ----------------------------------------------------------------------------------------------------------


def shape_and_parameters(c: ShapeContext) -> Shapes:
    """That many draws for each parameter (input 1)."""
    return [c.partial(0).concatenate(c.input(1))]


def candidates(c: ShapeContext) -> Shapes:
    """Sampled ids, expected counts of the true ones, expected counts of the sampled ones."""
    rows = c.input(0).with_rank(2).as_list()[0]
    sampled = TensorShape([int(c.attrs["num_sampled"])])
    return [sampled, TensorShape([rows, int(c.attrs["num_true"])]), sampled]


def key_and_counter(c: ShapeContext) -> Shapes:
    return [TensorShape([1]), TensorShape([2]), TensorShape([])][: c.output_count]


def remapping(c: ShapeContext) -> Shapes:
    """One number a new word, and how many of them are old."""
    return [TensorShape([int(c.attrs["num_new_vocab"])]), TensorShape([])]


def remapped(c: ShapeContext) -> Shapes:
    """A matrix as large as the attributes say."""
    rows, columns = int(c.attrs["num_rows"]), int(c.attrs["num_cols"])
    return [TensorShape([rows, columns])]


def string_join(c: ShapeContext) -> Shapes:
    result = _SCALAR
    for shape in c.inputs:
        if shape.ndims != 0:
            result = shape if result.ndims == 0 else result.merge_with(shape)
    return [result]


def restore_v2(c: ShapeContext) -> Shapes:
    return [_UNKNOWN] * c.output_count
