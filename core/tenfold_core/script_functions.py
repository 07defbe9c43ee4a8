"""The functions of this process that graphs call by token: what `tf.py_func` registers and the PyFunc kernel finds.

A token names the process as well as the function, so that a server never calls another process's function by mistake.
A function lives as long as the graph it was registered for. Follows script_ops.py's FuncRegistry.

A token is no secret: it stands in the graph, and so in graph.pbtxt, summaries and traces. What may call functions is
known by its session: those that this process has opened, at whatever master, are kept here by handle, and a worker asks
when a graph is registered for one (tenfold_services/worker/worker.py). Decision 0080.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_numbers = itertools.count()
#: Different in every process, also in one that was forked: the process number is read at each registration.
_SALT = os.urandom(4).hex()

_lock = threading.Lock()
#: Token → holder, gone once the graph is.
_holders: weakref.WeakValueDictionary[str, _Holder] = weakref.WeakValueDictionary()
#: Graph → the holders that it keeps alive.
_kept: weakref.WeakKeyDictionary[Any, list[_Holder]] = weakref.WeakKeyDictionary()
#: The handles of the sessions that this process has open.
_own_sessions: set[str] = set()


class _Holder:
    """Keeps one function; bound methods and built-ins cannot be referenced weakly themselves."""

    __slots__ = ("__weakref__", "function")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


def register(function: Callable[..., Any], graph: Any) -> str:
    """The token of `function`, which is found as long as `graph` lives. Never blocks for long; any thread."""
    token = f"pyfunc_{os.getpid():x}{_SALT}_{next(_numbers)}"
    holder = _Holder(function)
    with _lock:
        _holders[token] = holder
        _kept.setdefault(graph, []).append(holder)
    return token


def find(token: str) -> Callable[..., Any] | None:
    """The function of a token; None for one of another process, or of a graph that is gone."""
    with _lock:
        holder = _holders.get(token)
    return None if holder is None else holder.function


def note_session(handle: str) -> None:
    """This process has opened the session of that handle: its graphs may call functions here, until `forget_session`.
    Any thread."""
    _own_sessions.add(handle)


def forget_session(handle: str) -> None:
    """The session is closed. Twice is no error. Any thread."""
    _own_sessions.discard(handle)


def is_own_session(handle: str) -> bool:
    """Whether the session is one of this process. Never blocks; any thread."""
    return handle in _own_sessions
