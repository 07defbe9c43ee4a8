"""The feature columns of `tf.contrib.layers`, which are older than `tf.feature_column`.

sparse.py, raw_ids.py, dense.py and crossed.py have the columns, inputs.py the inputs and weighted sums that are made of
them. They are columns of `tf.feature_column` too, so its functions and the canned estimators take them.
"""

from tenfold.contrib.feature_columns.crossed import crossed_column
from tenfold.contrib.feature_columns.dense import (
    bucketized_column,
    embedding_column,
    one_hot_column,
    real_valued_column,
    shared_embedding_columns,
)
from tenfold.contrib.feature_columns.inputs import (
    check_feature_columns,
    create_feature_spec_for_parsing,
    infer_real_valued_columns,
    input_from_feature_columns,
    joint_weighted_sum_from_feature_columns,
    make_place_holder_tensors_for_base_features,
    parse_feature_columns_from_examples,
    sequence_input_from_feature_columns,
    transform_features,
    weighted_sum_from_feature_columns,
)
from tenfold.contrib.feature_columns.raw_ids import sparse_column_with_embedding
from tenfold.contrib.feature_columns.scattered import scattered_embedding_column
from tenfold.contrib.feature_columns.sequence_examples import parse_feature_columns_from_sequence_examples
from tenfold.contrib.feature_columns.sparse import (
    sparse_column_with_hash_bucket,
    sparse_column_with_integerized_feature,
    sparse_column_with_keys,
    sparse_column_with_vocabulary_file,
    weighted_sparse_column,
)

__all__ = [
    "bucketized_column",
    "check_feature_columns",
    "create_feature_spec_for_parsing",
    "crossed_column",
    "embedding_column",
    "infer_real_valued_columns",
    "input_from_feature_columns",
    "joint_weighted_sum_from_feature_columns",
    "make_place_holder_tensors_for_base_features",
    "one_hot_column",
    "parse_feature_columns_from_examples",
    "parse_feature_columns_from_sequence_examples",
    "real_valued_column",
    "scattered_embedding_column",
    "sequence_input_from_feature_columns",
    "shared_embedding_columns",
    "sparse_column_with_embedding",
    "sparse_column_with_hash_bucket",
    "sparse_column_with_integerized_feature",
    "sparse_column_with_keys",
    "sparse_column_with_vocabulary_file",
    "transform_features",
    "weighted_sparse_column",
    "weighted_sum_from_feature_columns",
]
