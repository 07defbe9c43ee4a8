"""Tensors that stay on a task under a handle: tf.get_session_handle and what reads and deletes them.

Follows session_ops.cc and session_state.cc.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any

from tenfold_core import errors
from tenfold_kernels.arrays import Array, invalid, scalar_object
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel
from tenfold_kernels.resources.handles import kept

no_kernel(
    "GetSessionHandleV2",
    device="CPU",
    why="no client makes it: tf.get_session_handle sends GetSessionHandle, whose handle is a string",
)

#: So many tensors are kept under handles on one task; a program deletes those that it no longer needs.
MAX_SESSION_TENSORS = 1 << 16


class SessionTensors:
    """Tensors by handle, `name;number;device`, as clients take it apart. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[bytes, Array] = {}
        self._numbers = itertools.count()

    def add(self, node: KernelNode, value: Array) -> bytes:
        with self._lock:
            if len(self._held) >= MAX_SESSION_TENSORS:
                raise errors.resource_exhausted(
                    f"More than {MAX_SESSION_TENSORS} tensors are kept under session handles; delete some."
                )
            handle = f"{node.name};{next(self._numbers)};{node.device}".encode()
            self._held[handle] = value
        return handle

    def get(self, handle: bytes) -> Array:
        with self._lock:
            found = self._held.get(handle)
        if found is None:
            raise invalid(f"The tensor with handle '{handle.decode(errors='replace')}' is not in the session store.")
        return found

    def delete(self, handle: bytes) -> None:
        self.get(handle)
        with self._lock:
            self._held.pop(handle, None)


def _tensors(node: KernelNode) -> SessionTensors:
    return node.resources.lookup_or_create("", "_session_tensors", SessionTensors, SessionTensors)


@kernel("GetSessionHandle")
def build_get_session_handle(node: KernelNode) -> Compute:
    return lambda value: scalar_object(_tensors(node).add(node, kept(value)))


@kernel("GetSessionTensor")
def build_get_session_tensor(node: KernelNode) -> Compute:
    dtype = node.attrs["dtype"]

    def compute(handle: Array) -> Any:
        found = _tensors(node).get(bytes(handle[()]))
        if found.dtype != dtype.as_numpy_dtype:
            raise invalid(f"The tensor of this handle is {found.dtype}, not {dtype.name}")
        return found

    return compute


@kernel("DeleteSessionTensor")
def build_delete_session_tensor(node: KernelNode) -> Compute:
    return lambda handle: _tensors(node).delete(bytes(handle[()]))
