"""Dense columns made of categorical ones: counts of each id, and embeddings, which several columns may share.

Used through tf.feature_column; base.py has the base classes.
"""

from __future__ import annotations

import contextlib
import math as numbers
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold.feature_column.adaptive import AdaptiveCategoricalColumn, adaptive_embedding
from tenfold.feature_column.base import CategoricalColumn, DenseColumn, Features, SequenceDenseColumn, StepsAndLengths
from tenfold.feature_column.categorical import EmbeddingCategoricalColumn
from tenfold.feature_column.crossed import WeightedCategoricalColumn
from tenfold.feature_column.multihash import MultiHashCategoricalColumn, MultiHashEmbeddingColumn
from tenfold.feature_column.sequence import SequenceCategoricalColumn, sequence_lengths
from tenfold.graph import add_to_collection, get_collection
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.ops import slicing
from tenfold.ops.embedding import safe_embedding_lookup_sparse
from tenfold.ops.embedding_variables import get_embedding_variable
from tenfold.ops.init_ops import truncated_normal_initializer
from tenfold.ops.partitioned_variables import fixed_size_partitioner
from tenfold.ops.reductions import reduce_sum
from tenfold.ops.sparse import sparse_merge, sparse_slice, sparse_tensor_to_dense
from tenfold.ops.variable_scope import get_variable
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tenfold.graph.tensor import Tensor


@dataclass(frozen=True)
class IndicatorColumn(DenseColumn, SequenceDenseColumn):
    """See indicator_column."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_indicator"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([1, self.categorical_column.num_buckets])

    def transform(self, features: Features) -> Tensor:
        ids, weights = self.categorical_column.sparse_tensors(features)
        buckets = self.categorical_column.num_buckets
        if weights is not None:
            merged = sparse_merge(ids, weights, vocab_size=buckets)
            # A merged tensor may have indices beyond its shape, for ids out of the vocabulary.
            merged = sparse_slice(merged, [0, 0], merged.dense_shape)
            return tensor_op("ScatterNd", indices=merged.indices, updates=merged.values, shape=merged.dense_shape)
        places = sparse_tensor_to_dense(ids, default_value=-1)
        return reduce_sum(slicing.one_hot(places, buckets, 1.0, 0.0), axis=[-2])

    def dense_tensor(self, features: Features, weight_collections: Sequence[str], trainable: bool) -> Tensor:
        _check_sequence(self, "indicator_column", of_sequences=False)
        found: Tensor = features.get(self)
        return found

    def sequence_dense_tensor(
        self, features: Features, weight_collections: Sequence[str], trainable: bool
    ) -> StepsAndLengths:
        _check_sequence(self, "indicator_column", of_sequences=True)
        return StepsAndLengths(features.get(self), _lengths(self.categorical_column, features))


@dataclass(frozen=True)
class EmbeddingColumn(DenseColumn, SequenceDenseColumn):
    """See embedding_column; with a `shared_name`, see shared_embedding_columns."""

    categorical_column: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Callable[..., Any]
    ckpt_to_load_from: str | None
    tensor_name_in_ckpt: str | None
    max_norm: float | None
    trainable: bool
    #: The collection with the variable that columns of this name share, and the variable's scope.
    shared_name: str | None = None

    @property
    def name(self) -> str:
        shared = "" if self.shared_name is None else "_shared"
        return f"{self.categorical_column.name}{shared}_embedding"

    @property
    def var_scope_name(self) -> str:
        return self.name if self.shared_name is None else self.shared_name

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    def transform(self, features: Features) -> Any:
        return features.get(self.categorical_column)

    def dense_tensor(self, features: Features, weight_collections: Sequence[str], trainable: bool) -> Tensor:
        _check_sequence(self, self._maker, of_sequences=False)
        return self._embedded(features, weight_collections, trainable)

    def sequence_dense_tensor(
        self, features: Features, weight_collections: Sequence[str], trainable: bool
    ) -> StepsAndLengths:
        _check_sequence(self, self._maker, of_sequences=True)
        embedded = self._embedded(features, weight_collections, trainable)
        return StepsAndLengths(embedded, _lengths(self.categorical_column, features))

    @property
    def _maker(self) -> str:
        return "embedding_column" if self.shared_name is None else "shared_embedding_column"

    def _embedded(self, features: Features, weight_collections: Sequence[str], trainable: bool) -> Tensor:
        if isinstance(self.categorical_column, AdaptiveCategoricalColumn):
            return self._adaptive(self.categorical_column, features, weight_collections, trainable)
        if self.shared_name is None:
            return self._looked_up(features, self._variable(weight_collections, trainable))
        with name_scope(None, default_name=self.name):
            return self._looked_up(features, self._shared_variable(self.shared_name, weight_collections, trainable))

    def _adaptive(
        self, column: AdaptiveCategoricalColumn, features: Features, collections: Sequence[str], trainable: bool
    ) -> Tensor:
        if self.shared_name is not None or self.ckpt_to_load_from is not None:
            raise ValueError(
                f"The column {column.key} has adaptive embeddings, two tables, which are neither shared with another "
                "column nor loaded by ckpt_to_load_from"
            )
        trains = self.trainable and trainable
        return adaptive_embedding(
            column, features, self.dimension, self.combiner, self.initializer, self.max_norm, trains, collections
        )

    @property
    def _raw_ids(self) -> EmbeddingCategoricalColumn | None:
        """The column whose ids an embedding variable keeps."""
        column = self.categorical_column
        while isinstance(column, (WeightedCategoricalColumn, SequenceCategoricalColumn)):
            column = column.categorical_column
        return column if isinstance(column, EmbeddingCategoricalColumn) else None

    def _variable(self, collections: Sequence[str], trainable: bool) -> Any:
        raw = self._raw_ids
        if raw is not None:
            return get_embedding_variable(
                "embedding_weights",
                self.dimension,
                value_dtype=dtypes.float32,
                initializer=self.initializer,
                trainable=self.trainable and trainable,
                collections=list(collections),
                partitioner=fixed_size_partitioner(raw.partition_num) if raw.partition_num else None,
                ev_option=raw.ev_option,
            )
        return get_variable(
            "embedding_weights",
            shape=(self.categorical_column.num_buckets, self.dimension),
            dtype=dtypes.float32,
            initializer=self.initializer,
            trainable=self.trainable and trainable,
            collections=list(collections),
        )

    def _shared_variable(self, collection: str, collections: Sequence[str], trainable: bool) -> Any:
        there = get_collection(collection)
        if not there:
            made = self._variable(collections, trainable)
            add_to_collection(collection, made)
            return made
        how = "Choose a unique name for this collection, or do not add any variables to it."
        if len(there) > 1:
            raise ValueError(f"Collection {collection} can only contain one variable. {how}")
        if self._raw_ids is not None and there[0].get_shape()[-1:].is_compatible_with([self.dimension]):
            return there[0]
        shape = (self.categorical_column.num_buckets, self.dimension)
        if there[0].get_shape() != shape:
            raise ValueError(
                f"Shared embedding collection {collection} contains variable {there[0].name} of unexpected shape "
                f"{there[0].get_shape()}. Expected shape is {shape}. {how}"
            )
        return there[0]

    def _looked_up(self, features: Features, weights: Any) -> Tensor:
        ids, id_weights = self.categorical_column.sparse_tensors(features)
        if self.ckpt_to_load_from is not None and self.tensor_name_in_ckpt is not None:
            from tenfold.train.checkpoint_utils import init_from_checkpoint

            init_from_checkpoint(self.ckpt_to_load_from, {self.tensor_name_in_ckpt: weights})
        return safe_embedding_lookup_sparse(
            weights, ids, id_weights, combiner=self.combiner, name=f"{self.name}_weights", max_norm=self.max_norm
        )


def _check_sequence(column: IndicatorColumn | EmbeddingColumn, maker: str, of_sequences: bool) -> None:
    """Raises ValueError unless the ids are of sequences, or unless they are not."""
    ids = column.categorical_column
    if isinstance(ids, SequenceCategoricalColumn) == of_sequences:
        return
    where = f"In {maker}: {column.name}. categorical_column must"
    given = f"Given (type {type(ids)}): {ids}"
    if of_sequences:
        raise ValueError(
            f"{where} be of type _SequenceCategoricalColumn to use sequence_input_layer. Suggested fix: Use one of "
            f"sequence_categorical_column_with_*. {given}"
        )
    raise ValueError(
        f"{where} not be of type _SequenceCategoricalColumn. Suggested fix A: If you wish to use input_layer, use a "
        "non-sequence categorical_column_with_*. Suggested fix B: If you wish to create sequence input, use "
        f"sequence_input_layer instead of input_layer. {given}"
    )


def _lengths(column: CategoricalColumn, features: Features) -> Tensor:
    return sequence_lengths(column.sparse_tensors(features).id_tensor)


def indicator_column(categorical_column: CategoricalColumn) -> IndicatorColumn:
    """The count of each id, or the sum of its weights, as a vector of `num_buckets`."""
    return IndicatorColumn(categorical_column)


def embedding_column(
    categorical_column: CategoricalColumn,
    dimension: Any,
    combiner: str = "mean",
    initializer: Callable[..., Any] | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
    *,
    do_fusion: bool = False,
) -> EmbeddingColumn | MultiHashEmbeddingColumn:
    """A learned vector of `dimension` elements for each id, combined for each example by "mean", "sqrtn" or "sum"; for
    categorical_column_with_multihash, `dimension` has a width for each of its tables. Raises ValueError.

    `do_fusion`, of DeepRec, is taken and changes nothing: what is fused is decided when the graph is compiled.
    """
    if initializer is not None and not callable(initializer):
        raise ValueError(
            f"initializer must be callable if specified. Embedding of column_name: {categorical_column.name}"
        )
    if isinstance(categorical_column, MultiHashCategoricalColumn):
        if ckpt_to_load_from is not None or not isinstance(dimension, (tuple, list)) or len(dimension) != 2:
            raise ValueError(
                f"The column {categorical_column.name} has two tables: dimension must be two widths, not {dimension}, "
                "and none of them begins with a tensor of a checkpoint"
            )
        widths = int(dimension[0]), int(dimension[1])
        return MultiHashEmbeddingColumn(categorical_column, widths, combiner, initializer, max_norm, trainable)
    _check(dimension, ckpt_to_load_from, tensor_name_in_ckpt)
    return EmbeddingColumn(
        categorical_column,
        dimension,
        combiner,
        initializer or _initializer(dimension),
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
    )


def shared_embedding_columns(
    categorical_columns: Sequence[CategoricalColumn],
    dimension: int,
    combiner: str = "mean",
    initializer: Callable[..., Any] | None = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
    *,
    do_fusion: bool = False,
) -> list[EmbeddingColumn]:
    """Embedding columns with one variable for all; the columns are of one kind and size. Raises ValueError.

    `do_fusion` is as for embedding_column.
    """
    _check(dimension, ckpt_to_load_from, tensor_name_in_ckpt)
    if initializer is not None and not callable(initializer):
        raise ValueError("initializer must be callable if specified.")
    ordered = sorted(categorical_columns, key=lambda column: column.name)
    kinds = [c.categorical_column if isinstance(c, WeightedCategoricalColumn) else c for c in ordered]
    first = kinds[0]
    for column in kinds:
        if not isinstance(column, CategoricalColumn):
            raise ValueError(
                f"All categorical_columns must be subclasses of CategoricalColumn. Given: {column}, of type: "
                f"{type(column)}"
            )
        if type(column) is not type(first):
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same type, or be "
                f"weighted_categorical_column of the same type. Given column: {first} of type: {type(first)} does not "
                f"match given column: {column} of type: {type(column)}"
            )
        if not isinstance(column, EmbeddingCategoricalColumn) and column.num_buckets != first.num_buckets:
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same number of buckets. Given "
                f"column: {first} with buckets: {first.num_buckets} does  not match column: {column} with buckets: "
                f"{column.num_buckets}"
            )
    name = shared_embedding_collection_name or "_".join(c.name for c in ordered) + "_shared_embedding"
    make = initializer or _initializer(dimension)
    return [
        EmbeddingColumn(
            column, dimension, combiner, make, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable, name
        )
        for column in categorical_columns
    ]


@contextlib.contextmanager
def group_embedding_column_scope(name: str | None = None, params_num_per_group: int | None = None) -> Iterator[None]:
    """DeepRec's scope whose embedding columns are looked up in one operation there; here in one each, fused or not."""
    yield


def _check(dimension: int, checkpoint: str | None, tensor_name: str | None) -> None:
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if (checkpoint is None) != (tensor_name is None):
        raise ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them.")


def _initializer(dimension: int) -> Callable[..., Any]:
    made: Callable[..., Any] = truncated_normal_initializer(mean=0.0, stddev=1 / numbers.sqrt(dimension))
    return made
