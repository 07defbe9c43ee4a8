"""`tf.feature_column`: turns the features of an example into the input of a model. One module per kind of column."""

from __future__ import annotations

from tenfold.feature_column.adaptive import categorical_column_with_adaptive_embedding
from tenfold.feature_column.categorical import (
    categorical_column_with_embedding,
    categorical_column_with_hash_bucket,
    categorical_column_with_identity,
    categorical_column_with_vocabulary_file,
    categorical_column_with_vocabulary_list,
)
from tenfold.feature_column.crossed import crossed_column, weighted_categorical_column
from tenfold.feature_column.embedding import (
    embedding_column,
    group_embedding_column_scope,
    indicator_column,
    shared_embedding_columns,
)
from tenfold.feature_column.model import input_layer, linear_model, make_parse_example_spec
from tenfold.feature_column.multihash import categorical_column_with_multihash
from tenfold.feature_column.numeric import bucketized_column, numeric_column
from tenfold.feature_column.sequence import (
    sequence_categorical_column_with_embedding,
    sequence_categorical_column_with_hash_bucket,
    sequence_categorical_column_with_identity,
    sequence_categorical_column_with_vocabulary_file,
    sequence_categorical_column_with_vocabulary_list,
    sequence_numeric_column,
)

__all__ = [
    "bucketized_column",
    "categorical_column_with_adaptive_embedding",
    "categorical_column_with_embedding",
    "categorical_column_with_hash_bucket",
    "categorical_column_with_identity",
    "categorical_column_with_multihash",
    "categorical_column_with_vocabulary_file",
    "categorical_column_with_vocabulary_list",
    "crossed_column",
    "embedding_column",
    "group_embedding_column_scope",
    "indicator_column",
    "input_layer",
    "linear_model",
    "make_parse_example_spec",
    "numeric_column",
    "sequence_categorical_column_with_embedding",
    "sequence_categorical_column_with_hash_bucket",
    "sequence_categorical_column_with_identity",
    "sequence_categorical_column_with_vocabulary_file",
    "sequence_categorical_column_with_vocabulary_list",
    "sequence_numeric_column",
    "shared_embedding_columns",
    "weighted_categorical_column",
]
