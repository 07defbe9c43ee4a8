"""Lookups of several tables at once, by the names of DeepRec's `tf.nn`. Each is a lookup of its own in the graph.

What they cost is decided when the graph is compiled: lookups are fused there, whoever asked for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph import name_scope
from tenfold.ops.embedding import embedding_lookup, safe_embedding_lookup_sparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.tensor import Tensor


def group_embedding_lookup(
    params: Sequence[Any], ids: Sequence[Any], partition_strategy: str = "mod", name: str | None = None
) -> list[Tensor]:
    """`tf.nn.embedding_lookup` of each of `ids` in the table at the same place of `params`. Raises ValueError."""
    _check("group_embedding_lookup", params, ids=ids)
    with name_scope(name, "group_embedding_lookup"):
        return [embedding_lookup(table, each, partition_strategy) for table, each in zip(params, ids, strict=True)]


def group_embedding_lookup_sparse(
    params: Sequence[Any],
    sp_ids: Sequence[Any],
    combiners: Sequence[str],
    sp_weights: Sequence[Any] | None = None,
    partition_strategy: str = "mod",
    is_sequence: bool = False,
    params_num_per_group: int | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """The rows of the ids in each of `sp_ids`, combined: [batch, dimension] for each table of `params`, in order.

    A row without ids gives zeros. `params_num_per_group` is taken for programs that have it. Raises ValueError for
    lists of different lengths, NotImplementedError for `is_sequence`.
    """
    weights = [None] * len(sp_ids) if sp_weights is None else sp_weights
    _check("group_embedding_lookup_sparse", params, sp_ids=sp_ids, combiners=combiners, sp_weights=weights)
    if is_sequence:
        raise NotImplementedError("group_embedding_lookup_sparse(is_sequence=True): use tf.nn.embedding_lookup")
    with name_scope(name, "group_embedding_lookup"):
        return [
            safe_embedding_lookup_sparse(table, ids, weight, combiner, partition_strategy=partition_strategy)
            for table, ids, weight, combiner in zip(params, sp_ids, weights, combiners, strict=True)
        ]


def _check(caller: str, params: Any, **lists: Any) -> None:
    """Raises ValueError unless every list has an element for each table."""
    for what, given in (("params", params), *lists.items()):
        if not isinstance(given, (list, tuple)) or len(given) != len(params):
            raise ValueError(f"{caller} needs {what} as a list with an element for each table, not {given!r}")
