"""The per-thread stacks of default graphs and default sessions.

`with graph.as_default():` and `with session.as_default():` push here; graph construction and `tensor.eval()` use
the top. As in TensorFlow 1.x each thread has its own stacks and its own global default graph.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenfold.graph.graph import Graph

T = TypeVar("T")


class DefaultStack(threading.local, Generic[T]):
    """A stack of defaults, one per thread."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[T] = []
        #: Sessions may be closed in any order (InteractiveSession); graphs may not.
        self.enforce_nesting = True

    def top(self) -> T | None:
        """The innermost default of this thread, or None."""
        return self.stack[-1] if self.stack else None

    @contextmanager
    def pushed(self, default: T) -> Iterator[T]:
        """Makes `default` the innermost default inside the `with` block.

        Raises AssertionError when blocks are left in another order than they were entered.
        """
        self.stack.append(default)
        try:
            yield default
        finally:
            if self.stack:
                if self.enforce_nesting:
                    if self.stack[-1] is not default:
                        raise AssertionError(f"Nesting violated for default stack of {type(default)} objects")
                    self.stack.pop()
                elif default in self.stack:
                    self.remove(default)

    def remove(self, default: T) -> None:
        """Removes the innermost occurrence of `default`, wherever it is."""
        for position in range(len(self.stack) - 1, -1, -1):
            if self.stack[position] is default:
                del self.stack[position]
                return


class _DefaultGraphStack(DefaultStack["Graph"]):
    """The default graphs, above a global one that is made on first use."""

    #: Makes the global default graph. Set by graph.py, because graph.py imports this module.
    new_graph: Callable[[], Graph]

    def __init__(self) -> None:
        super().__init__()
        self.global_default: Graph | None = None

    def get(self) -> Graph:
        """The default graph of this thread."""
        if self.stack:
            return self.stack[-1]
        if self.global_default is None:
            self.global_default = self.new_graph()
        return self.global_default

    def reset(self) -> None:
        """Drops the global default graph."""
        if self.stack:
            raise AssertionError(
                "Do not use tf.reset_default_graph() to clear nested graphs. "
                "If you need a cleared graph, exit the nesting and create a new graph."
            )
        self.global_default = None


default_graph_stack = _DefaultGraphStack()
default_session_stack: DefaultStack[Any] = DefaultStack()


def get_default_graph() -> Graph:
    """The graph that operations are added to now."""
    return default_graph_stack.get()


def building_graph(graph: Graph) -> Graph:
    """Where an operation on a tensor of `graph` is added: to a function that is being built, else to `graph`."""
    current = get_default_graph()
    return current if current.building_function else graph


def reset_default_graph() -> None:
    """Replaces this thread's global default graph by an empty one. Not allowed inside `graph.as_default()`."""
    default_graph_stack.reset()


def get_default_session() -> Any:
    """The innermost session entered with `as_default()` in this thread, or None."""
    return default_session_stack.top()


def session_for(session: Any, graph: Graph, *, verb: str) -> Any:
    """The session to use for `tensor.eval()` or `operation.run()` on an element of `graph`.

    Raises ValueError, with TensorFlow's message, when there is none or when it runs another graph.
    """
    what, call = ("evaluate tensor", "eval()") if verb == "eval" else ("execute operation", "run()")
    noun = "tensor" if verb == "eval" else "operation"
    explicit = f"`{verb}(session=sess)`"
    if session is None:
        session = get_default_session()
        if session is None:
            raise ValueError(
                f"Cannot {what} using `{call}`: No default session is registered. Use `with sess.as_default()` "
                f"or pass an explicit session to {explicit}"
            )
        if session.graph is not graph:
            raise ValueError(
                f"Cannot use the default session to {what}: the {noun}'s graph is different from the session's graph. "
                f"Pass an explicit session to {explicit}."
            )
    elif session.graph is not graph:
        raise ValueError(
            f"Cannot use the given session to {what}: the {noun}'s graph is different from the session's graph."
        )
    return session
