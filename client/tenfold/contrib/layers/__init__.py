"""`tf.contrib.layers`: layers with contrib's names of variables, initializers, regularizers, encoders, optimize_loss.

Each family has a module here; the feature columns of old are in contrib/feature_columns, loaded at their first use.
"""

from tenfold.contrib.layers import summaries, utils
from tenfold.contrib.layers.convolution import (
    bias_add,
    conv1d,
    conv2d,
    conv2d_in_plane,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    convolution,
    convolution1d,
    convolution2d,
    convolution2d_in_plane,
    convolution2d_transpose,
    convolution3d,
    convolution3d_transpose,
    separable_conv2d,
    separable_convolution2d,
)
from tenfold.contrib.layers.core import (
    avg_pool2d,
    avg_pool3d,
    dense_to_sparse,
    dropout,
    flatten,
    images_to_sequence,
    max_pool2d,
    max_pool3d,
    maxout,
    one_hot_encoding,
    poincare_normalize,
    pool,
    repeat,
    scale_gradient,
    sequence_to_images,
    softmax,
    spatial_softmax,
    stack,
)
from tenfold.contrib.layers.dense import (
    elu,
    fully_connected,
    legacy_fully_connected,
    legacy_linear,
    legacy_relu,
    linear,
    relu,
    relu6,
)
from tenfold.contrib.layers.embedding import (
    bow_encoder,
    embed_sequence,
    embedding_lookup_sparse_with_distributed_aggregation,
    embedding_lookup_unique,
    safe_embedding_lookup_sparse,
    scattered_embedding_lookup,
    scattered_embedding_lookup_sparse,
)
from tenfold.contrib.layers.gdn import GDN, gdn
from tenfold.contrib.layers.initializers import (
    variance_scaling_initializer,
    xavier_initializer,
    xavier_initializer_conv2d,
)
from tenfold.contrib.layers.normalization import batch_norm, group_norm, instance_norm, layer_norm, unit_norm
from tenfold.contrib.layers.optimizers import (
    OPTIMIZER_CLS_NAMES,
    OPTIMIZER_SUMMARIES,
    adaptive_clipping_fn,
    optimize_loss,
)
from tenfold.contrib.layers.regularizers import (
    apply_regularization,
    l1_l2_regularizer,
    l1_regularizer,
    l2_regularizer,
    sum_regularizer,
)
from tenfold.contrib.layers.summaries import (
    summarize_activation,
    summarize_activations,
    summarize_biases,
    summarize_collection,
    summarize_tensor,
    summarize_tensors,
    summarize_variables,
    summarize_weights,
)
from tenfold.contrib.lazy import lazy_names
from tenfold.ops.sparse_cross import DEFAULT_HASH_KEY as SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY

_TARGETS = "losses of contrib.learn's heads; tf.estimator's canned estimators and tf.losses have them"
__getattr__, _lazy = lazy_names(
    __name__,
    {
        "tenfold.contrib.feature_columns": """
            bucketized_column check_feature_columns create_feature_spec_for_parsing crossed_column embedding_column
            infer_real_valued_columns input_from_feature_columns joint_weighted_sum_from_feature_columns
            make_place_holder_tensors_for_base_features one_hot_column parse_feature_columns_from_examples
            parse_feature_columns_from_sequence_examples real_valued_column scattered_embedding_column
            sequence_input_from_feature_columns shared_embedding_columns
            sparse_column_with_embedding sparse_column_with_hash_bucket sparse_column_with_integerized_feature
            sparse_column_with_keys sparse_column_with_vocabulary_file transform_features weighted_sparse_column
            weighted_sum_from_feature_columns
        """,
    },
    left_out={
        "multi_class_target": _TARGETS,
        "regression_target": _TARGETS,
        "recompute_grad": "use tf.recompute_grad",
        "rev_block": "blocks that recompute what they do not keep: use tf.recompute_grad",
    },
)

__all__ = [
    "GDN", "OPTIMIZER_CLS_NAMES", "OPTIMIZER_SUMMARIES", "SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY",
    "adaptive_clipping_fn", "apply_regularization", "avg_pool2d", "avg_pool3d", "batch_norm", "bias_add", "bow_encoder",
    "conv1d", "conv2d", "conv2d_in_plane", "conv2d_transpose", "conv3d", "conv3d_transpose", "convolution",
    "convolution1d", "convolution2d", "convolution2d_in_plane", "convolution2d_transpose", "convolution3d",
    "convolution3d_transpose", "dense_to_sparse", "dropout", "elu", "embed_sequence",
    "embedding_lookup_sparse_with_distributed_aggregation", "embedding_lookup_unique", "flatten", "fully_connected",
    "gdn", "group_norm", "images_to_sequence", "instance_norm", "l1_l2_regularizer", "l1_regularizer", "l2_regularizer",
    "layer_norm", "legacy_fully_connected", "legacy_linear", "legacy_relu", "linear", "max_pool2d", "max_pool3d",
    "maxout", "one_hot_encoding", "optimize_loss", "poincare_normalize", "pool", "relu", "relu6", "repeat",
    "safe_embedding_lookup_sparse", "scale_gradient", "scattered_embedding_lookup", "scattered_embedding_lookup_sparse",
    "separable_conv2d", "separable_convolution2d", "sequence_to_images", "softmax", "spatial_softmax", "stack",
    "sum_regularizer", "summaries", "summarize_activation", "summarize_activations", "summarize_biases",
    "summarize_collection", "summarize_tensor", "summarize_tensors", "summarize_variables", "summarize_weights",
    "unit_norm", "utils", "variance_scaling_initializer", "xavier_initializer", "xavier_initializer_conv2d",
]  # fmt: skip
__all__ += _lazy()


def __dir__() -> list[str]:
    return sorted(__all__)
