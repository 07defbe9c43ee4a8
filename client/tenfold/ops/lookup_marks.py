"""Which tensors of a graph are results of lookups, for train/lookups_ahead.py, which makes them ahead of their step.

Lookups and the layers over feature columns mark what they return; the highest mark counts, as in DeepRec's collection
of outputs of its asynchronous embeddings. The key is no string, so a saved graph has nothing of it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from tenfold.graph.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.graph import Graph

P = ParamSpec("P")
T = TypeVar("T")

#: The collection of a graph with what its lookups have returned.
_LOOKUPS = ("embedding_lookups",)


def async_embedding_mark_node(embedding_tensor: Tensor) -> None:
    """Says that `embedding_tensor` is the result of a lookup, which `do_async_embedding` may make ahead of its step."""
    embedding_tensor.graph.add_to_collection(_LOOKUPS, embedding_tensor)


def marks_lookups(function: Callable[P, T]) -> Callable[P, T]:
    """`function`, whose results count as results of lookups where they are tensors of a graph."""

    @functools.wraps(function)
    def marked(*args: P.args, **kwargs: P.kwargs) -> T:
        made = function(*args, **kwargs)
        for each in made if isinstance(made, tuple) else (made,):
            if isinstance(each, Tensor):
                async_embedding_mark_node(each)
        return made

    return marked


def marked_lookups(graph: Graph) -> list[Tensor]:
    """The results of lookups in `graph`, in the order in which they were made."""
    return list(dict.fromkeys(graph.get_collection(_LOOKUPS)))
