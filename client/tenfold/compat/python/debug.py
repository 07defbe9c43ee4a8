"""`tensorflow.python.debug`: the debugger's wrappers and hooks, which pass everything through and say so once.

The debugger itself, its command line and its graph rewrites, is not served: a program that wraps its session runs as
without.
"""

from __future__ import annotations

from typing import Any

from tenfold import logging
from tenfold.train.session_run_hook import SessionRunHook

__all__ = [
    "DumpingDebugHook",
    "DumpingDebugWrapperSession",
    "GrpcDebugHook",
    "GrpcDebugWrapperSession",
    "LocalCLIDebugHook",
    "LocalCLIDebugWrapperSession",
    "TensorBoardDebugHook",
    "TensorBoardDebugWrapperSession",
    "add_debug_tensor_watch",
    "has_inf_or_nan",
    "watch_graph",
]

_told: set[str] = set()


def _tell(what: str) -> None:
    if what not in _told:
        _told.add(what)
        logging.warning("%s: TensorFlow's debugger is not served. The program runs as without it.", what)


class LocalCLIDebugWrapperSession:
    """The session that it wraps, under another name."""

    def __init__(self, sess: Any, *args: Any, **kwargs: Any) -> None:
        _tell(type(self).__name__)
        self._session = sess

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def __enter__(self) -> LocalCLIDebugWrapperSession:
        self._session.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._session.__exit__(*error)

    def add_tensor_filter(self, filter_name: str, tensor_filter: Any) -> None:
        """Does nothing: no tensor is looked at."""


class DumpingDebugWrapperSession(LocalCLIDebugWrapperSession):
    """The session that it wraps; nothing is dumped."""


class GrpcDebugWrapperSession(LocalCLIDebugWrapperSession):
    """The session that it wraps; nothing is sent."""


class TensorBoardDebugWrapperSession(LocalCLIDebugWrapperSession):
    """The session that it wraps; nothing is sent."""


class LocalCLIDebugHook(SessionRunHook):
    """A hook that does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _tell(type(self).__name__)

    def add_tensor_filter(self, filter_name: str, tensor_filter: Any) -> None:
        """Does nothing: no tensor is looked at."""


class DumpingDebugHook(LocalCLIDebugHook):
    """A hook that does nothing."""


class GrpcDebugHook(LocalCLIDebugHook):
    """A hook that does nothing."""


class TensorBoardDebugHook(LocalCLIDebugHook):
    """A hook that does nothing."""


def has_inf_or_nan(datum: Any, tensor: Any) -> bool:
    """Whether an array has an infinity or a NaN: the filter that programs give to a wrapper."""
    import numpy as np

    return (
        isinstance(tensor, np.ndarray)
        and np.issubdtype(tensor.dtype, np.inexact)
        and not bool(np.all(np.isfinite(tensor)))
    )


def watch_graph(run_options: Any, graph: Any, *args: Any, **kwargs: Any) -> None:
    """Does nothing: no tensor is looked at."""
    _tell("watch_graph")


def add_debug_tensor_watch(run_options: Any, node_name: str, *args: Any, **kwargs: Any) -> None:
    """Does nothing: no tensor is looked at."""
    _tell("add_debug_tensor_watch")
