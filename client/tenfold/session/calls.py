"""The cache of `Session.run`: fetches and feed keys resolved, feeds ready to convert, the step prepared.

A program calls `run` with the same fetches and the same feed keys over and over; only the values change. `key_of`
turns the two into a dictionary key, `CallTable` finds the `Call` made for it. Rarer forms (a structure of the
program's own class, a composite feed, a tensor fed and fetched at once) have no key or no Call; fetches.py and feeds.py
resolve them each time. Used by base_session.py.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.operation import Operation
from tenfold.graph.tensor import Tensor
from tenfold.session import composite_values
from tenfold.session.feeds import convert_feed, feed_tensor, read_only
from tenfold.session.fetches import FetchPlan, as_result
from tenfold.session.tensor_handles import takes_handle

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tenfold.graph.graph import Graph
    from tenfold.session.master_interface import PreparedStep

#: Calls that one session keeps; the oldest is dropped first.
_CALLS = 512
#: Longest structure and largest feed_dict worth a key.
_PARTS = 4096

#: Types that are their own key: nothing but identity (or a name's text) decides what they mean in a graph.
_leaves: frozenset[type] = frozenset({Tensor, Operation, str})
_TEXT = frozenset({str})
#: Types whose instances stand for tensors, such as variables; bounded, since a program may make types as it runs.
_stand_ins: set[type] = set()
_MOST_STAND_INS = 256


class Uncacheable(Exception):
    """A structure that must be resolved each time."""


def key_of(fetches: Any, feed_dict: Any) -> Any:
    """A key for `CallTable`, equal for two calls that mean the same. Raises Uncacheable."""
    key = fetches if type(fetches) in _leaves else _structure_key(fetches)
    if not feed_dict:
        if feed_dict is None or type(feed_dict) is dict:
            return key
        raise Uncacheable
    if type(feed_dict) is not dict or len(feed_dict) > _PARTS or not _leaves.issuperset(map(type, feed_dict)):
        raise Uncacheable
    # A structure's key starts with a type, this one with a leaf or a structure's key: they are never equal.
    return (key, *feed_dict)


def _structure_key(fetch: Any) -> Any:
    """The type first, because a tuple equals a named tuple of the same parts."""
    kind = type(fetch)
    if kind in _leaves:
        return fetch
    if kind is list or kind is tuple:
        if len(fetch) > _PARTS:
            raise Uncacheable
        if _leaves.issuperset(map(type, fetch)):
            return (kind, *fetch)
        return (kind, *[part if type(part) in _leaves else _structure_key(part) for part in fetch])
    if kind is dict:
        # Keys of other types may be equal and yet not the same, as 1 and True.
        if len(fetch) > _PARTS or not _TEXT.issuperset(map(type, fetch)):
            raise Uncacheable
        parts = fetch.values()
        return (kind, *fetch, *(parts if _leaves.issuperset(map(type, parts)) else map(_structure_key, parts)))
    if kind not in _stand_ins:
        _note_stand_in(fetch)
    # A variable is fetched as the tensor it stands for: the result is the same.
    element = fetch._as_graph_element()
    if type(element) not in _leaves:
        raise Uncacheable
    return element


def _note_stand_in(fetch: Any) -> None:
    """Records the type of an object that stands for a tensor. Raises Uncacheable for any other object."""
    kind = type(fetch)
    if (
        not hasattr(kind, "_as_graph_element")
        or issubclass(kind, (list, tuple, Mapping))
        or hasattr(kind, "__attrs_attrs__")
        or composite_values.find_expansion(fetch) is not None
    ):
        raise Uncacheable
    if len(_stand_ins) >= _MOST_STAND_INS:
        _stand_ins.clear()
    _stand_ins.add(kind)


#: Kinds of NumPy types that are converted into each other without a question.
_NUMBERS = frozenset("biuf")


class FeedSlot:
    """Converts values fed to one tensor: what convert_feed does, with a fast path for the most common values."""

    __slots__ = ("_dims", "_dtype", "_exact", "_is_float", "_is_number", "_is_object", "_lowest", "_shape", "tensor")

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self._dtype = dtype = np.dtype(tensor.dtype.as_numpy_dtype)
        self._is_object, self._is_float = dtype.hasobject, dtype.kind == "f"
        self._is_number = dtype.kind in _NUMBERS and not tensor.dtype.base_dtype.is_carried
        #: Python integers between these are exact in the type; none for types where that is not known.
        self._exact = _exact_integers(dtype)
        self._lowest = 0 if dtype.kind == "u" else -self._exact
        self._read_shape()

    def _read_shape(self) -> None:
        #: The shape that `_dims` was made of; `set_shape` replaces a tensor's shape by another object.
        self._shape = self.tensor.get_shape()
        self._dims = None if self._shape.ndims is None else tuple(self._shape.as_list())

    def convert(self, value: Any) -> np.ndarray:
        """`value` as a read-only array for the tensor; shares memory with an array of the right type.

        Raises what convert_feed raises.
        """
        kind = type(value)
        array: np.ndarray
        if self._is_object:
            return self._converted(value)
        if kind is np.ndarray:
            flags = value.flags
            if value.dtype != self._dtype:
                if not self._is_number or value.dtype.kind not in _NUMBERS:
                    return self._converted(value)
                array = value.astype(self._dtype, order="C")
            elif flags.c_contiguous and flags.aligned:
                array = value.view()
            else:
                array = value.copy()
        elif (
            (kind is float and self._is_float)
            or (kind is int and self._lowest <= value <= self._exact)
            or (isinstance(value, np.generic) and value.dtype == self._dtype)
        ):
            array = np.array(value, self._dtype)
        else:
            return self._converted(value)
        if self.tensor._shape is not self._shape:
            self._read_shape()
        dims = self._dims
        if dims is not None and array.shape != dims and not _fits(dims, array.shape):
            return self._converted(value)
        array.setflags(write=False)
        return array

    def _converted(self, value: Any) -> np.ndarray:
        array: np.ndarray = read_only(convert_feed(self.tensor, value))
        return array


class Call:
    """One combination of fetches and feed keys, in one graph."""

    __slots__ = ("_restrictions", "_slots", "feed_names", "plan", "step")

    def __init__(self, graph: Graph, fetches: Any, feed_keys: Sequence[Any]) -> None:
        """Raises as FetchPlan and resolve_feeds, and Uncacheable."""
        tensors: list[Any] = [feed_tensor(graph, key) for key in feed_keys]
        self.plan = FetchPlan(graph, fetches)
        self.feed_names = tuple(tensor.name for tensor in tensors)
        fed = set(self.feed_names)
        if (
            len(fed) < len(tensors)
            or not fed.isdisjoint(self.plan.names)
            or not all(graph.is_feedable(tensor) for tensor in tensors)
            or not (self.plan.names or self.plan.target_names)
            or not all(tensor.dtype.is_numpy_compatible for tensor in tensors)
            or self.plan.makes_handles
            or any(map(takes_handle, tensors))
        ):
            raise Uncacheable
        self._slots = [FeedSlot(tensor) for tensor in tensors]
        #: What `graph.restrictions` was: what may be fed and fetched has not changed since.
        self._restrictions = graph.restrictions
        #: From the master once the step has run by its `run_step`; None before that, and after the master dropped it.
        self.step: PreparedStep | None = None

    def is_current(self, graph: Graph) -> bool:
        """False once the graph forbade feeding or fetching something since this call was made."""
        return self._restrictions == graph.restrictions

    def convert(self, values: Iterable[Any]) -> list[np.ndarray]:
        """The values of the feed keys, in their order, as read-only arrays. Raises what convert_feed raises."""
        if not self._slots:
            return []
        feeds = list(map(FeedSlot.convert, self._slots, values))
        watch = self.plan.watch
        if watch is not None and watch.feeds_wanted:
            watch.take_feeds(zip((slot.tensor for slot in self._slots), feeds, strict=True))
        return feeds

    def build(self, values: Sequence[Any]) -> Any:
        """The result of `run`, of the values that the prepared step gave."""
        return self.plan.build(list(map(as_result, values)))


class CallTable:
    """A session's calls by key. Reading takes no lock."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._lock = threading.Lock()
        self._by_key: dict[Any, Call] = {}
        _tables.add(self)

    def find(self, fetches: Any, feed_dict: Any) -> Call | None:
        """The call, if it was made before."""
        try:
            if feed_dict is None and type(fetches) in _leaves:
                found = self._by_key.get(fetches)
            else:
                found = self._by_key.get(key_of(fetches, feed_dict))
        except Uncacheable:
            return None
        return found if found is not None and found.is_current(self._graph) else None

    def make(self, fetches: Any, feed_dict: Any) -> Call | None:
        """A call, which `find` gives from now on; None if it cannot be remembered, wrong fetches and feeds included."""
        try:
            key = key_of(fetches, feed_dict)
            made = Call(self._graph, fetches, tuple(feed_dict or ()))
        except (Uncacheable, TypeError, ValueError, KeyError):
            return None
        with self._lock:
            found = self._by_key.get(key)
            if found is not None and found.is_current(self._graph):
                return found
            if len(self._by_key) >= _CALLS and found is None:
                del self._by_key[next(iter(self._by_key))]
            self._by_key[key] = made
            return made

    def make_for(self, fetches: Any, feed_keys: Sequence[Any]) -> Call | None:
        """`make` for feeds whose values are not known yet."""
        if not _leaves.issuperset(map(type, feed_keys)):
            return None
        feed_dict = dict.fromkeys(feed_keys)
        return self.make(fetches, feed_dict) if len(feed_dict) == len(feed_keys) else None

    def drop_prepared(self) -> None:
        """Drops the steps prepared for the calls, which go on being known."""
        with self._lock:
            for call in self._by_key.values():
                call.step = None

    def forget(self) -> None:
        """Forgets all calls; the steps prepared for them can be freed."""
        with self._lock:
            calls, self._by_key = self._by_key, {}
        for call in calls.values():
            call.step = None


#: All tables, for `_on_registered`.
_tables: weakref.WeakSet[CallTable] = weakref.WeakSet()


def drop_prepared() -> None:
    """Makes every session ask its master for each call's step again."""
    for table in list(_tables):
        table.drop_prepared()


def _on_registered(kind: type) -> None:
    """A program registered a conversion for a type: from now on fetches and feeds of it are resolved each time."""
    global _leaves
    _leaves = frozenset(leaf for leaf in _leaves if not issubclass(leaf, kind))
    _stand_ins.clear()
    for table in list(_tables):
        table.forget()


composite_values.listeners.append(_on_registered)


def _exact_integers(dtype: np.dtype[Any]) -> int:
    if dtype.kind == "f":
        return 1 << (np.finfo(dtype).nmant + 1)
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).max)
    return -1


def _fits(dims: tuple[int | None, ...], shape: tuple[int, ...]) -> bool:
    return len(dims) == len(shape) and all(a is None or a == b for a, b in zip(dims, shape, strict=True))
