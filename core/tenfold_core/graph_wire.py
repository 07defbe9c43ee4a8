"""Reads large messages that hold a graph: counts its nodes before any is made, and makes them portion by portion.

A message of 90 MiB can hold 45 million empty nodes, and protocol buffers make them in one call that lets no other
thread run. Here the bytes are walked through first, up to the limit, and then parsed a portion at a time, in a thread
(`apart`), so that an event loop goes on; also what is large within one node (message_parts.py).
Used by a task's services (rpc/service.py) and the control service (control_api/steps.py). Source: protobuf's encoding.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from tenfold_core.message_parts import PORTION, Parts, TooLargeError, fields
from tenfold_protos.graph_pb2 import GraphDef

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from google.protobuf.message import Message

M = TypeVar("M", bound="Message")
T = TypeVar("T")

#: Messages of fewer bytes are parsed where they are: that takes some milliseconds.
LARGE = 256 << 10
#: Bytes parsed at a time, and inputs and attributes that nodes have on average at most.
_PORTION, _PIECES = PORTION, 16
#: Bytes of what is beside the graph: a config, a name.
_BESIDE = 16 << 20
#: Fields of GraphDef, FunctionDefLibrary, FunctionDef and NodeDef.
_NODE, _LIBRARY, _FUNCTION, _NODE_DEF, _INPUT, _ATTR = 1, 2, 1, 3, 3, 5

#: Few threads: they compute.
_POOL = ThreadPoolExecutor(2, "parse-graph")


class ReadApartError(Exception):
    """Reading this where it is would hold up the loop: it is for `apart`."""


def apart(work: Callable[..., T], *arguments: object) -> Future[T]:
    """Has `work(*arguments)` done in one of few threads for it, when it is its turn. Never blocks."""
    return _POOL.submit(work, *arguments)


def parse(cls: type[M], data: bytes | bytearray | memoryview, nodes: int) -> M:
    """The message in `data`: a GraphDef of `nodes` at most, those of functions among them, or one with such a field.
    Takes as long as it takes, and lets other threads run. Raises DecodeError, TooLargeError."""
    message, view = cls(), memoryview(data).cast("B")
    reader = _Reader(nodes)
    if isinstance(message, GraphDef):
        reader.graph(message, view, 0, len(view))
        return message
    number = next(field.number for field in cls.DESCRIPTOR.fields if field.message_type is GraphDef.DESCRIPTOR)
    graph: GraphDef = getattr(message, cls.DESCRIPTOR.fields_by_number[number].name)
    beside = bytearray()
    for field, key, begin, end in fields(view, 0, len(view)):
        if field == number:
            reader.graph(graph, view, begin, end)
        elif len(beside) + end - key > _BESIDE:
            raise TooLargeError(f"what is beside the graph has more than {_BESIDE} bytes")
        else:
            beside += view[key:end]
    Parts(nodes * _PIECES).merge(message, memoryview(beside))
    return message


class _Reader:
    """Reads graphs, and counts what they have together."""

    def __init__(self, nodes: int) -> None:
        self._most = nodes
        #: What there may still be.
        self._nodes, self._pieces = nodes, nodes * _PIECES
        self._parts = Parts(self._pieces)

    def graph(self, into: GraphDef, view: memoryview, begin: int, end: int) -> None:
        """Merges the GraphDef that lies there."""
        start = begin
        for field, key, value, after in fields(view, begin, end):
            if field == _NODE:
                self._node(view, value, after)
            elif field == _LIBRARY and after - key > _PORTION:
                self._parts.merge(into, view[start:key])
                self._library(into, view, value, after)
                start = after
                continue
            elif field == _LIBRARY:
                self._count_library(view, value, after)
            if after - start >= _PORTION:
                self._parts.merge(into, view[start:after])
                start = after
        self._parts.merge(into, view[start:end])

    def _library(self, into: GraphDef, view: memoryview, begin: int, end: int) -> None:
        start = begin
        for field, _, value, after in fields(view, begin, end):
            if field == _FUNCTION:
                self._function(view, value, after)
            if after - start >= _PORTION:
                self._parts.merge(into.library, view[start:after])
                start = after
        self._parts.merge(into.library, view[start:end])

    def _count_library(self, view: memoryview, begin: int, end: int) -> None:
        for field, _, value, after in fields(view, begin, end):
            if field == _FUNCTION:
                self._function(view, value, after)

    def _function(self, view: memoryview, begin: int, end: int) -> None:
        for field, _, value, after in fields(view, begin, end):
            if field == _NODE_DEF:
                self._node(view, value, after)

    def _node(self, view: memoryview, begin: int, end: int) -> None:
        self._nodes -= 1
        if self._nodes < 0:
            raise TooLargeError(f"the graph has more than {self._most} nodes")
        for field, _, _, _ in fields(view, begin, end):
            if field in (_INPUT, _ATTR):
                self._pieces -= 1
        if self._pieces < 0:
            raise TooLargeError(f"the graph's nodes have more than {self._most * _PIECES} inputs and attributes")
