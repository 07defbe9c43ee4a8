"""contrib's embedding lookups and the encoders made of them: by hash, each id once, whole sequences, bags of words.

The lookups of ids are those of `tf.nn`. Follows TensorFlow 1.15's contrib/layers/python/layers/embedding_ops.py and
encoders.py; the hash is that of `tf.sparse.cross_hashed`.
"""

from __future__ import annotations

from typing import Any

from tenfold import logging
from tenfold.contrib.framework.variables import model_variable
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops import array, math, slicing, sparse_math
from tenfold.ops import embedding as of_nn
from tenfold.ops.check_ops import assert_same_float_dtype
from tenfold.ops.partitioned_variable import PartitionedVariable
from tenfold.ops.reductions import reduce_mean, reduce_prod
from tenfold.ops.sparse import from_dense, sparse_fill_empty_rows, sparse_tensor_to_dense
from tenfold.ops.sparse_cross import sparse_cross_hashed
from tenfold.ops.variable_scope import variable_scope
from tenfold_core import dtypes

#: The value of an empty row, one that no data has.
_FILL: dict[bool, Any] = {True: "6ZxWzWOHxZ", False: 1288896567}
_COMBINERS: dict[str, Any] = {
    "sum": sparse_math.sparse_segment_sum,
    "mean": sparse_math.sparse_segment_mean,
    "sqrtn": sparse_math.sparse_segment_sqrt_n,
}


def _combiner(given: str | None) -> str:
    if given is not None:
        return given
    logging.warn('The default value of combiner will change from "mean" to "sqrtn" after 2016/11/01.')
    return "mean"


def _typed(shard: Any, dtype: Any) -> Any:
    """`shard` itself where it has a type of TensorFlow, so that a variable is not read whole; else as a tensor."""
    return shard if isinstance(getattr(shard, "dtype", None), dtypes.DType) else convert_to_tensor(shard, dtype)


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str | None = None,
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: Any = None,
) -> Any:
    """`tf.nn.safe_embedding_lookup_sparse`: drops negative ids, and gives empty rows `default_id` or zeros.

    Raises ValueError unless all weights have one floating type.
    """
    if isinstance(embedding_weights, (list, tuple)):
        dtype = None if sparse_weights is None else sparse_weights.dtype
        embedding_weights = [_typed(shard, dtype) for shard in embedding_weights]
        assert_same_float_dtype([*embedding_weights, sparse_weights])
    return of_nn.safe_embedding_lookup_sparse(
        embedding_weights,
        sparse_ids,
        sparse_weights,
        combiner=_combiner(combiner),
        default_id=default_id,
        name=name,
        partition_strategy=partition_strategy,
        max_norm=max_norm,
    )


def embedding_lookup_sparse_with_distributed_aggregation(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: Any = None,
) -> Any:
    """`tf.nn.embedding_lookup_sparse`: the same result; rows are combined where they are looked up."""
    return of_nn.embedding_lookup_sparse(
        params, sp_ids, sp_weights, partition_strategy, name, _combiner(combiner), max_norm
    )


def embedding_lookup_unique(params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None) -> Any:
    """`tf.nn.embedding_lookup` that looks up each id once: ids (…) → (…, dimension)."""
    with name_scope(name, "EmbeddingLookupUnique", [params, ids]):
        ids = convert_to_tensor(ids)
        shape = array.shape(ids)
        distinct, places = slicing.unique(array.reshape(ids, reduce_prod(shape, keepdims=True)))
        rows = of_nn.embedding_lookup(params, distinct, partition_strategy)
        found = array.reshape(slicing.gather(rows, places), array.concat([shape, array.shape(rows)[1:]], 0))
        found.set_shape(ids.get_shape().concatenate(rows.get_shape()[1:]))
        return found


def scattered_embedding_lookup(
    params: Any, values: Any, dimension: int, name: str | None = None, hash_key: int | None = None
) -> Any:
    """Embeddings without a vocabulary: each element is a weight that the value's hash chooses.

    `params` is a vector of weights, or its shards; values (…), of strings or integers, → (…, dimension).
    Raises ValueError for a dimension below 1 and for shards that are not as even as can be.
    """
    if dimension is None:
        raise ValueError("You must specify dimension.")
    if dimension <= 0:
        raise ValueError(f"Dimension must be >0. Given is {dimension}")
    shards = list(params) if isinstance(params, (list, PartitionedVariable)) else [params]
    with name_scope(name, "scattered_embedding_lookup", [*shards, dimension, values]):
        values = convert_to_tensor(values)
        shape = array.shape(values)
        column = array.reshape(values, [-1, 1])
        numbers = array.tile(array.expand_dims(math.range(0, dimension), 0), array.shape(column))
        sizes = []
        for shard in shards:
            shard.get_shape().assert_has_rank(1)
            shard.get_shape().assert_is_fully_defined()
            sizes.append(shard.get_shape().as_list()[0])
        for place, size in enumerate(sizes):
            expected = (sum(sizes) - place - 1) // len(sizes) + 1
            if size != expected:
                raise ValueError(f"Tensor {place} in params has size {size}, expected {expected}.")
        ids = sparse_tensor_to_dense(sparse_cross_hashed([numbers, column], sum(sizes), hash_key))
        found = of_nn.embedding_lookup(shards, ids, partition_strategy="div")
        return array.reshape(found, array.concat([shape, [dimension]], 0))


def scattered_embedding_lookup_sparse(
    params: Any,
    sparse_values: Any,
    dimension: int,
    combiner: str | None = None,
    default_value: Any = None,
    name: str | None = None,
    hash_key: int | None = None,
) -> Any:
    """The combined `scattered_embedding_lookup` of each row; an empty row has the one value `default_value`.

    Raises TypeError for dense values, ValueError for an unknown combiner.
    """
    combiner = _combiner(combiner)
    if not isinstance(sparse_values, SparseTensor):
        raise TypeError("sparse_values must be SparseTensor")
    if combiner not in _COMBINERS:
        raise ValueError("Combiner must be one of 'mean', 'sqrtn' or 'sum'.")
    with name_scope(name, "scattered_embedding_lookup_sparse", [sparse_values.values]) as scope:
        if default_value is None:
            default_value = _FILL[sparse_values.dtype == dtypes.string]
        filled, _ = sparse_fill_empty_rows(sparse_values, default_value)
        segments = math.cast(filled.indices[:, 0], dtypes.int32)
        distinct, places = slicing.unique(filled.values)
        rows = scattered_embedding_lookup(params, distinct, dimension, hash_key=hash_key)
        return _COMBINERS[combiner](rows, places, segments, name=scope)


def bow_encoder(
    ids: Any,
    vocab_size: int,
    embed_dim: int,
    sparse_lookup: bool = True,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Any:
    """The mean embedding of each row of ids: (batch, length) → (batch, embed_dim).

    Raises ValueError without sizes, TypeError for sparse ids if `sparse_lookup` is off.
    """
    if not vocab_size or not embed_dim:
        raise ValueError("Must specify vocab size and embedding dimension")
    given = [ids.values] if isinstance(ids, SparseTensor) else [ids]
    with variable_scope(scope, "bow_encoder", given, reuse=reuse):
        embeddings = _embeddings([vocab_size, embed_dim], initializer, regularizer, trainable)
        if sparse_lookup:
            sparse_ids = ids if isinstance(ids, SparseTensor) else from_dense(ids)
            return safe_embedding_lookup_sparse([embeddings], sparse_ids, combiner="mean", default_id=0)
        if isinstance(ids, SparseTensor):
            raise TypeError("ids are expected to be dense Tensor, got: %s", ids)
        return reduce_mean(of_nn.embedding_lookup(embeddings, ids), axis=1)


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Any:
    """The embedding of each id: (batch, length) → (batch, length, embed_dim); `unique` looks each id up once.

    Raises ValueError without sizes, which only the scope's variable that is reused may give.
    """
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError(
            "Must specify vocab size and embedding dimension when not reusing. Got "
            f"vocab_size={vocab_size} and embed_dim={embed_dim}"
        )
    with variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        shape = None if vocab_size is None or embed_dim is None else [vocab_size, embed_dim]
        embeddings = _embeddings(shape, initializer, regularizer, trainable)
        return embedding_lookup_unique(embeddings, ids) if unique else of_nn.embedding_lookup(embeddings, ids)


def _embeddings(shape: Any, initializer: Any, regularizer: Any, trainable: bool) -> Any:
    return model_variable(
        "embeddings", shape=shape, initializer=initializer, regularizer=regularizer, trainable=trainable
    )
