"""Names of DeepRec's `tensorflow.python.ops.embedding_ops`: lookups that its programs ask for as one operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.ops.embedding import embedding_lookup_sparse, safe_embedding_lookup_sparse

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor

__all__ = ["fused_embedding_lookup_sparse", "fused_safe_embedding_lookup_sparse"]


def fused_embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sparse_weights: Any = None,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: Any = None,
    **of_kernels: Any,
) -> Tensor:
    """`tf.nn.embedding_lookup_sparse`; options of DeepRec's kernels are taken and change nothing."""
    return embedding_lookup_sparse(params, sp_ids, sparse_weights, partition_strategy, name, combiner, max_norm)


def fused_safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: Any = None,
    **of_kernels: Any,
) -> Tensor:
    """`tf.nn.safe_embedding_lookup_sparse`; options of DeepRec's kernels are taken and change nothing."""
    return safe_embedding_lookup_sparse(
        embedding_weights, sparse_ids, sparse_weights, combiner, default_id, name, partition_strategy, max_norm
    )
