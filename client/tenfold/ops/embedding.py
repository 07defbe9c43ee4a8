"""Embeddings: rows of a table that may be cut into shards over several tasks, looked up by id.

Each shard gathers its own rows on its own device, and the results are stitched together. Exported by ops/nn.py.
Follows TF 1.15's ops/embedding_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import colocate_with, name_scope
from tenfold.graph.indexed_slices import convert_n_to_tensor_or_indexed_slices
from tenfold.graph.op_builder import apply_op
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops import array, slicing
from tenfold.ops import math as m
from tenfold.ops.clip import clip_by_norm
from tenfold.ops.composite_embeddings import DynamicEmbeddingVariable, MultiHashVariable
from tenfold.ops.embedding_variables import is_embedding_variable
from tenfold.ops.lookup_marks import marks_lookups
from tenfold.ops.partitioned_variable import PartitionedVariable
from tenfold.ops.reductions import reduce_prod, reduce_sum
from tenfold.ops.resource_variables import is_resource_variable
from tenfold.ops.sparse import sparse_fill_empty_rows, sparse_reshape, sparse_retain
from tenfold.ops.sparse_math import sparse_segment_mean, sparse_segment_sqrt_n, sparse_segment_sum
from tenfold_core import dtypes
from tenfold_core.tensor_shape import unknown_shape

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def _shards(params: Any) -> list[Any]:
    if params is None:
        raise ValueError("params must be specified")
    shards = list(params) if isinstance(params, (list, tuple, PartitionedVariable)) else [params]
    if not shards:
        raise ValueError("Need at least one param")
    return shards


def _elements(shards: list[Any]) -> list[Any]:
    """Those of the shards that are elements of the graph; none of variables that have tables of their own."""
    return [shard for shard in shards if not isinstance(shard, MultiHashVariable)]


def _clipped(rows: Any, ids: Any, max_norm: Any) -> Any:
    """`rows` with each embedding's norm at most `max_norm`; the dimensions beyond those of `ids` are the embedding."""
    if max_norm is None:
        return rows
    first, last = ids.get_shape().ndims, rows.get_shape().ndims
    if first and last:
        return clip_by_norm(rows, max_norm, axes=list(range(first, last)))
    axes = m.range(first or array.rank(ids), last or array.rank(rows))
    return clip_by_norm(rows, max_norm, axes=axes)


@marks_lookups
def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: Any = None,
    *,
    blocknums: Any = None,
    ev_init_value: Any = None,
) -> Tensor:
    """The rows `ids` of the table `params`: one tensor or variable, a list of shards, or a PartitionedVariable.

    Of P shards, "mod" keeps id i in shard i % P, "div" keeps consecutive ids together, as a partitioner does.
    `blocknums` says for a DynamicEmbeddingVariable how many blocks each id has; others do without. Raises ValueError
    for another strategy, no shard, or no `blocknums` where they are needed. `validate_indices` is not used. In an
    embedding variable the ids that are new begin with the rows `ev_init_value`, [..., embedding_dim].

    # ids [...], params [rows, ...] -> ids.shape + params.shape[1:]
    """
    shards = _shards(params)
    if isinstance(shards[0], (MultiHashVariable, DynamicEmbeddingVariable)):
        with name_scope(name, "embedding_lookup", [ids]):
            if isinstance(shards[0], MultiHashVariable):
                found = shards[0].rows_of(ids, embedding_lookup)
            else:
                found = shards[0].rows_of(ids, blocknums, embedding_lookup)
            return _clipped(found, convert_to_tensor(ids), max_norm)  # type: ignore[no-any-return]
    with name_scope(name, "embedding_lookup", [*shards, ids]) as scope:
        if not any(is_resource_variable(shard) for shard in shards):
            shards = convert_n_to_tensor_or_indexed_slices(shards, name="params")
        ids = convert_to_tensor(ids, name="ids")
        if ev_init_value is not None and not all(is_embedding_variable(shard) for shard in shards):
            raise ValueError("ev_init_value is for embedding variables: other tables have a row for each id")
        rows: Tensor
        if is_embedding_variable(shards[0]):
            rows = _clipped(_from_embeddings(shards, ids, scope, ev_init_value), ids, max_norm)
            return rows
        if len(shards) == 1:
            with colocate_with(shards[0]):
                rows = _clipped(slicing.gather(shards[0], ids, name=scope), ids, max_norm)
            # A copy on this device, so that only the rows are sent, and only once.
            return array.identity(rows)
        rows = _clipped(_from_shards(shards, ids, partition_strategy, scope), ids, max_norm)
        return rows


def _from_embeddings(shards: list[Any], ids: Tensor, scope: str, first: Any) -> Tensor:
    """Each id is asked for once, unless its table counts how often it was, or there are rows to begin with: `first`.
    Ops of our own, few for each lookup: compiler/graph/lookups_together.py makes one exchange of all that a step can
    make at the same time, of those without `first`."""
    ids = m.cast(ids, shards[0].key_dtype)
    distinct = first is None and not any(shard.counts_lookups for shard in shards)
    keys_of, sizes, places = apply_op("EmbeddingSplit", ids=[ids], parts=len(shards), distinct=distinct)
    begins = [None] * len(shards) if first is None else _split_rows(shards, ids, first, sizes, places)
    found = []
    for shard, keys, begin in zip(shards, keys_of, begins, strict=True):
        with colocate_with(shard):
            found.append(shard.rows_of(keys, first=begin))
    (rows,) = apply_op("EmbeddingMerge", scope, ids=[ids], places=places, rows=found)
    merged: Tensor = rows
    return merged


def _split_rows(shards: list[Any], ids: Tensor, rows: Any, sizes: list[Tensor], places: Tensor) -> list[Any]:
    """Of each part, the rows that go with its keys. `rows` has one for each id, none of which is left out, or is one
    for all."""
    rows = convert_to_tensor(rows, dtype=shards[0].dtype.base_dtype)
    if rows.shape.ndims == 1:
        return [rows] * len(shards)
    rows = array.reshape(rows, array.stack([array.size(ids), shards[0].get_shape()[0].value]))
    if len(shards) == 1:
        return [rows]
    in_order = slicing.gather(rows, slicing.invert_permutation(places))
    return slicing.split(in_order, array.concat(sizes, 0))


def _from_shards(shards: list[Any], ids: Tensor, strategy: str, scope: str) -> Tensor:
    flat = array.reshape(ids, [-1])
    positions = m.range(array.size(flat))
    shard_of, row_of = _assigned(shards, flat, strategy)
    shard_of = m.cast(shard_of, dtypes.int32)
    rows_wanted = slicing.dynamic_partition(row_of, shard_of, len(shards))
    positions_of = slicing.dynamic_partition(positions, shard_of, len(shards))
    found = []
    for shard, rows in zip(shards, rows_wanted, strict=True):
        with colocate_with(shard):
            found.append(slicing.gather(shard, rows))
    stitched = apply_op("ParallelDynamicStitch", scope, indices=positions_of, data=found)
    known = shards[0].get_shape()[1:]
    for shard in shards[1:]:
        known = known.merge_with(shard.get_shape()[1:])
    if known.is_fully_defined():
        tail: Any = known.as_list()
    else:
        with colocate_with(shards[0]):
            tail = array.shape(shards[0])[1:]
    result = array.reshape(stitched, array.concat([array.shape(ids), tail], 0))
    result.set_shape(ids.get_shape().concatenate(known))
    return result


def _assigned(shards: list[Any], ids: Tensor, strategy: str) -> tuple[Any, Any]:
    """(shard, row in it) for each id."""
    count = len(shards)
    if strategy == "mod":
        return ids % count, ids // count
    if strategy != "div":
        raise ValueError(f"Unrecognized partition strategy: {strategy}")
    sizes = [shard.get_shape()[0].value for shard in shards]
    if None not in sizes and sum(sizes):
        total: Any = array.constant(sum(sizes), ids.dtype)
    else:
        known = []
        for shard, size in zip(shards, sizes, strict=True):
            if size is None:
                with colocate_with(shard):
                    size = array.shape(shard)[0]
            known.append(size)
        total = reduce_sum(m.cast(array.stack(known), ids.dtype))
    # the first shards have one row more each, until the remainder is used up
    each, extras = total // count, total % count
    shard_of = m.maximum(ids // (each + 1), (ids - extras) // each)
    row_of = slicing.where(m.less(shard_of, extras), ids % (each + 1), (ids - extras) % each)
    return shard_of, row_of


@marks_lookups
def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: Any = None,
) -> Tensor:
    """One embedding per row of the sparse matrix `sp_ids`: the combined embeddings of the ids in it.

    `combiner` is "sum", "mean" (the default) or "sqrtn" (the sum over the root of the squared weights' sum);
    `sp_weights` has the indices of `sp_ids`, or is None for weights of 1. Raises TypeError for dense ids, ValueError
    for another combiner.
    """
    if combiner is None:
        logging.warn('The default value of combiner will change from "mean" to "sqrtn" after 2016/11/01.')
        combiner = "mean"
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError("combiner must be one of 'mean', 'sqrtn' or 'sum'")
    shards = _shards(params)
    if not isinstance(sp_ids, SparseTensor):
        raise TypeError("sp_ids must be SparseTensor")
    if sp_weights is not None:
        if not isinstance(sp_weights, SparseTensor):
            raise TypeError("sp_weights must be either None or SparseTensor")
        for part in ("values", "indices", "dense_shape"):
            getattr(sp_ids, part).get_shape().assert_is_compatible_with(getattr(sp_weights, part).get_shape())
    with name_scope(name, "embedding_lookup_sparse", [*_elements(shards), sp_ids.values]) as scope:
        segments = m.cast(sp_ids.indices[:, 0], dtypes.int32)
        # each id is fetched once, however often it occurs
        unique, places = slicing.unique(sp_ids.values)
        rows = embedding_lookup(shards, unique, partition_strategy=partition_strategy, max_norm=max_norm)
        if rows.dtype in (dtypes.float16, dtypes.bfloat16):
            rows = m.cast(rows, dtypes.float32)
        if sp_weights is not None:
            return _weighted(rows, places, sp_weights.values, segments, combiner, scope)
        combine = {"sum": sparse_segment_sum, "mean": sparse_segment_mean, "sqrtn": sparse_segment_sqrt_n}[combiner]
        return combine(rows, places, segments, name=scope)


def _weighted(rows: Any, places: Any, weights: Any, segments: Any, combiner: str, scope: str) -> Tensor:
    if weights.dtype != rows.dtype:
        weights = m.cast(weights, rows.dtype)
    rows = slicing.gather(rows, places)
    ones = array.fill(array.expand_dims(array.rank(rows) - 1, 0), 1)
    known = weights.get_shape()
    weights = array.reshape(weights, array.concat([array.shape(weights), ones], 0))
    if rows.get_shape().ndims is not None:
        weights.set_shape(known.concatenate([1] * (rows.get_shape().ndims - 1)))
    rows = rows * weights
    if combiner == "sum":
        return m.segment_sum(rows, segments, name=scope)
    total = m.segment_sum(rows, segments)
    # rows without ids, and those whose weights are 0, give zeros
    divide = m.div_no_nan if rows.dtype.is_floating else m.div
    if combiner == "mean":
        return divide(total, m.segment_sum(weights, segments), name=scope)
    return divide(total, m.sqrt(m.segment_sum(m.pow(weights, 2), segments)), name=scope)


@marks_lookups
def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: Any = None,
) -> Tensor:
    """`embedding_lookup_sparse` that drops negative ids and weights <= 0, and handles empty rows. In an embedding
    variable a negative id is one like any other.

    An empty row gives the embedding of `default_id`, or zeros if that is None. Leading dimensions of `sparse_ids`
    are kept; the last one is combined.
    """
    if embedding_weights is None or (isinstance(embedding_weights, (list, tuple)) and not embedding_weights):
        raise ValueError(f"Missing embedding_weights {embedding_weights}.")
    dtype = None if sparse_weights is None else sparse_weights.dtype
    shards = [
        shard if is_resource_variable(shard) and dtype in (None, shard.dtype) else convert_to_tensor(shard, dtype=dtype)
        for shard in _elements(_shards(embedding_weights))
    ] or _shards(embedding_weights)
    with name_scope(name, "embedding_lookup", [*_elements(shards), sparse_ids.values]) as scope:
        shape = sparse_ids.dense_shape
        known_rank = shape.get_shape()[0].value
        rank = array.size(shape) if known_rank is None else known_rank
        leading = [rank - 1]
        matrix = [reduce_prod(slicing.slice(shape, [0], leading)), slicing.gather(shape, rank - 1)]
        ids = sparse_reshape(sparse_ids, matrix)
        weights = None
        any_id = is_embedding_variable(shards[0])
        keep = m.equal(ids.values, ids.values) if any_id else m.greater_equal(ids.values, 0)
        if sparse_weights is not None:
            weights = SparseTensor(ids.indices, sparse_weights.values, ids.dense_shape)
            if combiner != "sum":
                keep = m.logical_and(keep, m.greater(weights.values, 0))
            weights = sparse_retain(weights, keep)
        ids = sparse_retain(ids, keep)
        ids, empty = sparse_fill_empty_rows(ids, default_id or 0)
        if weights is not None:
            weights, _ = sparse_fill_empty_rows(weights, 1.0)
        found = embedding_lookup_sparse(
            shards,
            ids,
            weights,
            combiner=combiner,
            partition_strategy=partition_strategy,
            name=None if default_id is None else scope,
            max_norm=max_norm,
        )
        if default_id is None:
            mask = array.tile(array.reshape(empty, [-1, 1]), array.stack([1, array.shape(found)[1]]))
            found = slicing.where(mask, array.zeros_like(found), found, name=scope)
        heads = slicing.slice(m.cast(shape, dtypes.int32), [0], leading)
        result = array.reshape(found, array.concat([heads, slicing.slice(array.shape(found), [1], [-1])], 0))
        result.set_shape(
            unknown_shape(None if known_rank is None else known_rank - 1).concatenate(found.get_shape()[1:])
        )
        return result
