"""Tensors that stay on their task between steps, under a handle: `tf.get_session_handle` and related functions.

A step that fetches a GetSessionHandle gives a `TensorHandle`; its text, `name;number;device`, is what a later step is
fed where the tensor is wanted. fetches.py makes the handles, feeds.py resolves them, base_session.py moves and deletes
tensors. Follows TF 1.15's ops/session_ops.py; a handle that is fed where no handle is expected is read by the client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.tensor import Tensor
from tenfold_core import dtypes
from tenfold_core.device import canonical_name

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Iterator, Mapping

    from tenfold.graph.graph import Graph
    from tenfold.session.base_session import BaseSession
    from tenfold_core.dtypes import DType

#: Ops whose value a session returns as a TensorHandle.
HANDLE_OPS = frozenset({"GetSessionHandle", "GetSessionHandleV2"})

#: Tensors without handles that are collected before one step deletes them.
_DEAD_HANDLES = 10


class TensorHandle:
    """A tensor that `session` keeps on a device. The tensor is deleted some time after the handle is gone."""

    def __init__(self, handle: str | bytes, dtype: DType, session: BaseSession) -> None:
        self._handle = handle.decode() if isinstance(handle, bytes) else str(handle)
        self._dtype = dtype
        self._session = session
        #: False once the tensor is deleted, or the caller has taken the raw handle and must delete the tensor itself.
        self._owned = True

    def __del__(self) -> None:
        if getattr(self, "_owned", False):
            # No step here: a finalizer may run in any thread at any point.
            self._session._dead_handles.append(self._handle)

    def __str__(self) -> str:
        return self._handle

    @property
    def handle(self) -> str:
        """What is fed to the placeholder of `get_session_tensor`."""
        return self._handle

    def eval(self) -> Any:
        """The tensor's value. Runs a step. Raises TypeError after `delete` or `get_raw_handle`."""
        self._check_owned()
        holder, reader = _graph_state(self._session.graph).reader(self._session.graph, self._handle, self._dtype)
        return self._session.run(reader, feed_dict={holder: self._handle})

    def delete(self) -> None:
        """Deletes the tensor. Runs a step; raises TypeError the second time."""
        self._check_owned()
        self._owned = False
        holder, deleter = _graph_state(self._session.graph).deleter(self._session.graph, self._handle, 0)
        self._session.run(deleter, feed_dict={holder: self._handle})

    def get_raw_handle(self) -> str:
        """The handle's text; the tensor is then the caller's to delete, by `delete_session_tensor`."""
        self._owned = False
        return self._handle

    def _value_for(self, tensor: Any) -> Any:
        """What a session feeds `tensor` for this handle: its text where a handle is expected, else the value."""
        if tensor.dtype == dtypes.string and self._dtype != dtypes.string:
            return self._handle
        return self.eval()

    def _check_owned(self) -> None:
        if not self._owned:
            raise TypeError(f"Persistent tensor {self._handle} may have already been deleted.")


def get_session_handle(data: Tensor, name: str | None = None) -> Tensor:
    """A string scalar, on `data`'s device, that stands for `data` in later steps of the same session.

    Fetched, it is a TensorHandle. Raises TypeError if `data` is not a tensor.
    """
    from tenfold.graph.op_builder import apply_op

    if not isinstance(data, Tensor):
        raise TypeError("`data` must be of type Tensor.")
    with data.graph.colocate_with(data.op):
        handle: Tensor = apply_op("GetSessionHandle", name, value=data)
        return handle


def get_session_tensor(handle: Any, dtype: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(placeholder for a handle, the tensor of that handle), on the device of `handle`, which is such a handle's text.

    Fed the handle of a tensor on another device, the session copies that tensor first.
    """
    from tenfold.graph import get_default_graph

    return _read(get_default_graph(), str(handle), dtypes.as_dtype(dtype), name)


def delete_session_tensor(handle: Any, name: str | None = None) -> tuple[Tensor, Any]:
    """(placeholder for a handle, the operation that deletes its tensor), on the device of `handle`."""
    from tenfold.graph import get_default_graph

    return _delete(get_default_graph(), str(handle), name)


def _device_of(handle: str) -> str:
    device: str = canonical_name(handle.split(";")[-1])
    return device


def _read(graph: Graph, handle: str, dtype: DType, name: str | None = None) -> tuple[Tensor, Tensor]:
    from tenfold.graph.op_builder import apply_op
    from tenfold.ops.array import placeholder

    with graph.as_default(), graph.device(_device_of(handle)):
        holder = placeholder(dtypes.string)
        _graph_state(graph).feeders[holder.op.name] = dtype
        return holder, apply_op("GetSessionTensor", name, handle=holder, dtype=dtype)


def _delete(graph: Graph, handle: str, name: str | None = None) -> tuple[Tensor, Any]:
    from tenfold.graph.op_builder import apply_op
    from tenfold.ops.array import placeholder

    with graph.as_default(), graph.device(_device_of(handle)):
        holder = placeholder(dtypes.string)
        return holder, apply_op("DeleteSessionTensor", name, handle=holder)


class _GraphState:
    """The nodes added to a graph for handles, each made once: (placeholder, the node that uses it)."""

    def __init__(self) -> None:
        #: Placeholder's node → type of the tensor whose handle it takes.
        self.feeders: dict[str, DType] = {}
        self._made: dict[tuple[Any, ...], tuple[Tensor, Any]] = {}

    def reader(self, graph: Graph, handle: str, dtype: DType) -> tuple[Tensor, Any]:
        key = ("read", _device_of(handle), dtype)
        if key not in self._made:
            self._made[key] = _read(graph, handle, dtype)
        return self._made[key]

    def deleter(self, graph: Graph, handle: str, number: int) -> tuple[Tensor, Any]:
        """`number` distinguishes the deleters of one step."""
        key = ("delete", _device_of(handle), number)
        if key not in self._made:
            self._made[key] = _delete(graph, handle)
        return self._made[key]

    def mover(self, graph: Graph, feeder: Tensor, handle: str) -> tuple[Tensor, Any] | None:
        """The node that copies the tensor of `handle` to the device of `feeder`; None if it is there already."""
        if canonical_name(feeder.op.device) == _device_of(handle):
            return None
        from tenfold.graph.op_builder import apply_op

        key = ("move", feeder.op.name, _device_of(handle))
        if key not in self._made:
            holder, reader = self.reader(graph, handle, self.feeders[feeder.op.name])
            with graph.as_default(), graph.device(feeder.op.device):
                self._made[key] = holder, apply_op("GetSessionHandle", value=reader)
        return self._made[key]


#: The collection of a graph that holds its _GraphState.
_STATE_KEY = ("__tensor_handles",)


def _graph_state(graph: Graph) -> _GraphState:
    held = graph.get_collection_ref(_STATE_KEY)
    if not held:
        held.append(_GraphState())
    state: _GraphState = held[0]
    return state


def takes_handle(tensor: Any) -> bool:
    """Whether `tensor` is the placeholder of a `get_session_tensor`."""
    return tensor.dtype == dtypes.string and any(
        tensor.op.name in state.feeders for state in tensor.graph.get_collection(_STATE_KEY)
    )


def moves(graph: Graph, feeds: Mapping[str, Any]) -> Iterator[tuple[str, str, Tensor, Any]]:
    """(name of the tensor fed, its handle, placeholder, mover) for the handles fed whose tensors are elsewhere."""
    for name, value in feeds.items():
        tensor = graph.get_tensor_by_name(name)
        if takes_handle(tensor):
            handle = bytes(value[()]).decode()
            found = _graph_state(graph).mover(graph, tensor, handle)
            if found is not None:
                yield name, handle, *found


def deletions(graph: Graph, dead: deque[str]) -> tuple[dict[Tensor, str], list[Any]]:
    """Feeds and fetches of a step that deletes the tensors of `dead` handles; empty while they are few."""
    feeds: dict[Tensor, str] = {}
    fetches: list[Any] = []
    if len(dead) < _DEAD_HANDLES:
        return feeds, fetches
    for number in range(_DEAD_HANDLES):
        try:
            handle = dead.popleft()
        except IndexError:  # another thread took the last one
            break
        holder, deleter = _graph_state(graph).deleter(graph, handle, number)
        feeds[holder] = handle
        fetches.append(deleter)
    return feeds, fetches
