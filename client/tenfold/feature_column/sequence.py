"""Columns of sequences: ids and numbers for each step, and the layer `sequence_input_layer` made of them.

A feature is a SparseTensor [batch, steps]; the layer's output goes to recurrent networks. Embeddings and indicators of
a sequence column are in embedding.py. Follows TF 1.15's sequence_feature_column.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold.feature_column import categorical
from tenfold.feature_column.base import CategoricalColumn, Features, IdWeightPair, SequenceDenseColumn, StepsAndLengths
from tenfold.feature_column.model import check_batches, collections_of, normalized
from tenfold.feature_column.numeric import checked_shape
from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.ops import array, check_ops, math
from tenfold.ops.lookup_marks import marks_lookups
from tenfold.ops.parsing import VarLenFeature
from tenfold.ops.sparse import sparse_reshape, sparse_tensor_to_dense
from tenfold.ops.variable_scope import variable_scope
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold.graph.sparse_tensor import SparseTensor
    from tenfold.graph.tensor import Tensor
    from tenfold.ops.embedding_options import EmbeddingVariableOption
    from tenfold_core.dtypes import DType


@dataclass(frozen=True)
class SequenceCategoricalColumn(CategoricalColumn):
    """The ids of another column, for each step. See sequence_categorical_column_with_identity and its siblings."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        return self.categorical_column.name

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    @property
    def num_buckets(self) -> int:
        return self.categorical_column.num_buckets

    def transform(self, features: Features) -> Any:
        return self.categorical_column.transform(features)

    def sparse_tensors(self, features: Features) -> IdWeightPair:
        ids, weights = self.categorical_column.sparse_tensors(features)
        shape = array.shape(ids)
        # The third dimension is what an embedding combines.
        wanted = [shape[0], shape[1], math.reduce_prod(shape[2:])]
        return IdWeightPair(sparse_reshape(ids, wanted), None if weights is None else sparse_reshape(weights, wanted))


@dataclass(frozen=True)
class SequenceNumericColumn(SequenceDenseColumn):
    """See sequence_numeric_column."""

    key: str
    shape: tuple[int, ...]
    default_value: float
    dtype: DType
    normalizer_fn: Callable[[Any], Any] | None

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: VarLenFeature(self.dtype)}

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape(self.shape)

    def transform(self, features: Features) -> Any:
        given = features.get(self.key)
        return given if self.normalizer_fn is None else self.normalizer_fn(given)

    def sequence_dense_tensor(
        self, features: Features, weight_collections: Sequence[str], trainable: bool
    ) -> StepsAndLengths:
        sparse = features.get(self)
        dense = sparse_tensor_to_dense(sparse, default_value=self.default_value)
        dense = array.reshape(dense, array.concat([array.shape(dense)[:1], [-1], list(self.shape)], axis=0))
        # A step's numbers stand one after the other, or in a dimension of their own.
        step = int(self.variable_shape.num_elements() or 1) if sparse.get_shape().ndims == 2 else 1
        return StepsAndLengths(dense, sequence_lengths(sparse, step))


def sequence_lengths(sparse: SparseTensor, step: int = 1) -> Tensor:
    """The number of steps of each sequence, int64 [batch]; a step has so many elements."""
    with name_scope(None, "sequence_length") as scope:
        rows, ends = sparse.indices[:, 0], sparse.indices[:, 1] + array.constant(1, dtype=dtypes.int64)
        found = tensor_op("SegmentMax", data=ends, segment_ids=rows)
        found = math.cast(math.ceil(math.divide(found, step)), dtypes.int64)
        # The last rows are missing if they are empty.
        missing = array.shape(sparse)[:1] - array.shape(found)[:1]
        made: Tensor = array.concat([found, array.zeros(missing, dtype=found.dtype)], axis=0, name=scope)
        return made


@marks_lookups
def sequence_input_layer(
    features: Mapping[str, Any],
    feature_columns: Any,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
) -> tuple[Tensor, Tensor]:
    """The columns' tensors, concatenated in the order of the columns' names: [batch, steps, sum of their sizes], and
    the number of steps of each sequence, int64 [batch].

    Raises ValueError for a column that is not of sequences; the step fails where columns disagree about the lengths.
    """
    columns = normalized(feature_columns)
    for column in columns:
        if not isinstance(column, SequenceDenseColumn):
            raise ValueError(
                "All feature_columns must be of type _SequenceDenseColumn. You can wrap a sequence_categorical_column "
                f"with an embedding_column or indicator_column. Given (type {type(column)}): {column}"
            )
    collections = collections_of(weight_collections)
    with variable_scope(None, default_name="sequence_input_layer", values=list(features.values())):
        batch = Features(features)
        outputs: list[Tensor] = []
        lengths: list[Tensor] = []
        for column in columns:
            assert isinstance(column, SequenceDenseColumn)
            with variable_scope(None, default_name=column.var_scope_name):
                dense, length = column.sequence_dense_tensor(batch, collections, trainable)
                shape = array.shape(dense)
                outputs.append(array.reshape(dense, [shape[0], shape[1], column.variable_shape.num_elements()]))
                lengths.append(length)
        check_batches(outputs, columns)
        check_batches(lengths, columns)
        return array.concat(outputs, -1), _agreed(lengths)


def _agreed(lengths: Sequence[Tensor]) -> Tensor:
    with name_scope(None, "assert_all_equal"):
        if len(lengths) == 1:
            return lengths[0]
        with control_dependencies([check_ops.assert_equal(lengths[0], each) for each in lengths[1:]]):
            return array.identity(lengths[0])


def concatenate_context_input(context_input: Tensor, sequence_input: Tensor) -> Tensor:
    """The context [batch, n] after each step of the sequence [batch, steps, m]: [batch, steps, m + n], float32."""
    checks = [
        check_ops.assert_rank(sequence_input, 3, message="sequence_input must have rank 3"),
        check_ops.assert_type(
            sequence_input,
            dtypes.float32,
            message=f"sequence_input must have dtype float32; got {sequence_input.dtype}.",
        ),
        check_ops.assert_rank(context_input, 2, message="context_input must have rank 2"),
        check_ops.assert_type(
            context_input, dtypes.float32, message=f"context_input must have dtype float32; got {context_input.dtype}."
        ),
    ]
    with control_dependencies(checks):
        steps = array.shape(sequence_input)[1]
        tiled = array.tile(array.expand_dims(context_input, 1), array.stack([1, steps, 1]))
    return array.concat([sequence_input, tiled], 2)


def sequence_categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> SequenceCategoricalColumn:
    """Integers unchanged, for each step. As `categorical_column_with_identity`."""
    return SequenceCategoricalColumn(categorical.categorical_column_with_identity(key, num_buckets, default_value))


def sequence_categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = dtypes.string
) -> SequenceCategoricalColumn:
    """Values by their hash, for each step. As `categorical_column_with_hash_bucket`."""
    return SequenceCategoricalColumn(categorical.categorical_column_with_hash_bucket(key, hash_bucket_size, dtype))


def sequence_categorical_column_with_embedding(
    key: str,
    dtype: Any = dtypes.string,
    partition_num: int | None = None,
    ev_option: EmbeddingVariableOption | None = None,
) -> SequenceCategoricalColumn:
    """Raw ids or strings, for each step. As `categorical_column_with_embedding`."""
    return SequenceCategoricalColumn(
        categorical.categorical_column_with_embedding(key, dtype, partition_num, ev_option)
    )


def sequence_categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: Any = dtypes.string,
) -> SequenceCategoricalColumn:
    """Values by their line in a file, for each step. As `categorical_column_with_vocabulary_file`."""
    return SequenceCategoricalColumn(
        categorical.categorical_column_with_vocabulary_file(
            key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, dtype
        )
    )


def sequence_categorical_column_with_vocabulary_list(
    key: str, vocabulary_list: Sequence[Any], dtype: Any = None, default_value: int = -1, num_oov_buckets: int = 0
) -> SequenceCategoricalColumn:
    """Values by their index in a list, for each step. As `categorical_column_with_vocabulary_list`."""
    return SequenceCategoricalColumn(
        categorical.categorical_column_with_vocabulary_list(key, vocabulary_list, dtype, default_value, num_oov_buckets)
    )


def sequence_numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: float = 0.0,
    dtype: Any = dtypes.float32,
    normalizer_fn: Callable[[Any], Any] | None = None,
) -> SequenceNumericColumn:
    """Numbers of a `shape` for each step; missing ones are `default_value`. Raises ValueError and TypeError."""
    kind = dtypes.as_dtype(dtype)
    sizes = checked_shape(shape, key)
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {kind}, key: {key}")
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")
    return SequenceNumericColumn(key, sizes, default_value, kind, normalizer_fn)
