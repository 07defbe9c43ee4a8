"""Values made of several tensors: how `Session.run` takes them apart and puts them together.

One row a type: `SparseTensor` is fetched as three tensors and becomes a `SparseTensorValue`; `IndexedSlices`
likewise. Programs add rows with `register_session_run_conversion_functions`. Called by fetches.py and feeds.py.
Follows TF 1.15's client/session.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenfold.graph.indexed_slices import IndexedSlices, IndexedSlicesValue
from tenfold.graph.sparse_tensor import SparseTensor, SparseTensorValue

FetchFunction = Callable[[Any], tuple[Sequence[Any], Callable[[list[Any]], Any]]]
FeedFunction = Callable[[Any, Any], Sequence[tuple[Any, Any]]]
PartialFeedFunction = Callable[[Any], Sequence[Any]]


class Expansion(NamedTuple):
    """How one type is fetched, fed, and fed to a partial run."""

    type: type
    fetch: FetchFunction
    feed: FeedFunction | None
    partial_feed: PartialFeedFunction | None


#: Searched in order, newest first.
_registered: list[Expansion] = []
#: Called with each new type.
listeners: list[Callable[[type], None]] = []


def register_session_run_conversion_functions(
    tensor_type: type,
    fetch_function: FetchFunction,
    feed_function: FeedFunction | None = None,
    feed_function_for_partial_run: PartialFeedFunction | None = None,
) -> None:
    """Teaches every session to fetch and feed `tensor_type`.

    `fetch_function(value)` returns the tensors to fetch and a function from their values to the result;
    `feed_function(key, value)` returns (tensor, value) pairs; `feed_function_for_partial_run(key)` returns tensors.
    Raises ValueError if the type, or a subtype of it, is registered.
    """
    for row in _registered:
        if issubclass(row.type, tensor_type):
            raise ValueError(f"{tensor_type} has already been registered so ignore it.")
    _registered.insert(0, Expansion(tensor_type, fetch_function, feed_function, feed_function_for_partial_run))
    for told in listeners:
        told(tensor_type)


def find_expansion(value: object) -> Expansion | None:
    """The row for `value`, or None if it is a single tensor, operation or name."""
    for row in _registered:
        if isinstance(value, row.type):
            return row
    return next((row for row in _BUILT_IN if isinstance(value, row.type)), None)


def _sparse_parts(value: Any) -> list[Any]:
    return [value.indices, value.values, value.dense_shape]


def _slices_parts(value: Any) -> list[Any]:
    parts = [value.values, value.indices]
    return parts if value.dense_shape is None else [*parts, value.dense_shape]


def _slices_value(fetched: list[Any]) -> IndexedSlicesValue:
    return IndexedSlicesValue(fetched[0], fetched[1], fetched[2] if len(fetched) == 3 else None)


_SPARSE = Expansion(
    SparseTensor,
    lambda fetch: (_sparse_parts(fetch), lambda fetched: SparseTensorValue(*fetched)),
    # A shape that is known need not be fed.
    lambda key, value: list(zip(_sparse_parts(key), value, strict=False)),
    _sparse_parts,
)
_SLICES = Expansion(
    IndexedSlices,
    lambda fetch: (_slices_parts(fetch), _slices_value),
    # A value fetched without a dense shape has None as its third part.
    lambda key, value: list(zip(_slices_parts(key), value, strict=False)),
    _slices_parts,
)
#: Searched after the rows of the program.
_BUILT_IN = (_SPARSE, _SLICES)
