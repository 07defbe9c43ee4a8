"""Messages packed in an Any: they are named after our package in memory, and after TensorFlow's in files.

A meta graph's collections hold such: assets of a SavedModel, signatures of what contrib's session_bundle exports.
Used by saved_model.py and by the client's meta graphs (client/tenfold/train/meta_graph.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.protobuf.any_pb2 import Any as Packed

    from tenfold_protos.meta_graph_pb2 import MetaGraphDef

_OURS, _TENSORFLOWS = "type.googleapis.com/tenfold.", "type.googleapis.com/tensorflow."


class Names:
    """A pool of messages in which TensorFlow's names find ours, for the text form of an Any."""

    def __init__(self) -> None:
        self._pool = descriptor_pool.Default()

    def FindMessageTypeByName(self, full_name: str) -> Any:
        package, _, name = full_name.partition(".")
        return self._pool.FindMessageTypeByName(f"tenfold.{name}" if package == "tensorflow" else full_name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)


def name_as_ours(graph: MetaGraphDef) -> None:
    """Of what was read from a file."""
    _rename(graph, _TENSORFLOWS, _OURS)


def name_as_tensorflows(graph: MetaGraphDef) -> None:
    """Of what is about to be written to a file, and of nothing that stays in memory."""
    _rename(graph, _OURS, _TENSORFLOWS)


def named_as_tensorflows(graph: MetaGraphDef) -> MetaGraphDef:
    """The graph as a file is to have it: the same message where nothing is packed in it, else a copy."""
    if not any(each.type_url.startswith(_OURS) for each in _packed(graph)):
        return graph
    copy = type(graph)()
    copy.CopyFrom(graph)
    name_as_tensorflows(copy)
    return copy


def _packed(graph: MetaGraphDef) -> Iterator[Packed]:
    for collection in graph.collection_def.values():
        yield from collection.any_list.value


def _rename(graph: MetaGraphDef, old: str, new: str) -> None:
    for each in _packed(graph):
        if each.type_url.startswith(old):
            each.type_url = new + each.type_url.removeprefix(old)
