"""`arg_scope`: changes default arguments of functions inside a `with` block. Slim's models use it.

    with arg_scope([conv2d, fully_connected], activation_fn=tf.nn.elu):
        net = conv2d(images, 64, [3, 3])             # as if activation_fn were given

It applies to functions marked with `add_arg_scope`; an argument given in the call takes precedence. Exported by
contrib/framework.py; contrib/layers.py marks its layers. Follows TF 1.15's contrib/framework/python/ops/arg_scope.py.
"""

from __future__ import annotations

import functools
import inspect
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    #: A function's key → its arguments.
    Scope = dict[str, dict[str, Any]]

T = TypeVar("T", bound="Callable[..., Any]")

_KEY = "_key_op"


class _Stack(threading.local):
    """The scopes of one thread."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = [{}]


_stack = _Stack()
#: A marked function's key → the names of its arguments that have a default.
_marked: dict[str, tuple[str, ...]] = {}


def current_arg_scope() -> Scope:
    """The current arguments, by function. Do not modify."""
    return _stack.scopes[-1]


def arg_scope_func_key(op: Callable[..., Any]) -> str:
    """The key of the function in a scope."""
    return str(getattr(op, _KEY, op))


def has_arg_scope(func: Callable[..., Any]) -> bool:
    """Whether the function is marked."""
    return arg_scope_func_key(func) in _marked


def arg_scoped_arguments(func: Callable[..., Any]) -> tuple[str, ...]:
    """The arguments that a scope may set. Raises AssertionError for a function that is not marked."""
    assert has_arg_scope(func), f"{func} is not decorated with @add_arg_scope"
    return _marked[arg_scope_func_key(func)]


def add_arg_scope(func: T) -> T:
    """Marks a function: scopes may set its arguments."""

    @functools.wraps(func)
    def scoped(*args: Any, **kwargs: Any) -> Any:
        found = current_arg_scope().get(key)
        return func(*args, **(kwargs if not found else {**found, **kwargs}))

    key = f"{func.__module__}.{func.__qualname__}"
    setattr(scoped, _KEY, key)
    parameters = inspect.signature(func).parameters.values()
    _marked[key] = tuple(each.name for each in parameters if each.default is not inspect.Parameter.empty)
    return scoped  # type: ignore[return-value]


@contextmanager
def arg_scope(
    list_ops_or_scope: Sequence[Callable[..., Any]] | Mapping[str, Mapping[str, Any]], **kwargs: Any
) -> Iterator[Scope]:
    """Sets arguments of marked functions inside the block; yields the scope, which `arg_scope` accepts to re-enter it.

    Inner scopes override outer ones. Raises ValueError for a function that is not marked and for a scope together with
    arguments, TypeError for anything but functions or a scope.
    """
    if isinstance(list_ops_or_scope, dict):
        if kwargs:
            raise ValueError("When attempting to re-use a scope by suppling a dictionary, kwargs must be empty.")
        scope: Scope = {key: dict(found) for key, found in list_ops_or_scope.items()}
    else:
        if not isinstance(list_ops_or_scope, (list, tuple)):
            raise TypeError("list_ops_or_scope must either be a list/tuple or reused scope (i.e. dict)")
        scope = dict(current_arg_scope())
        for op in list_ops_or_scope:
            key = arg_scope_func_key(op)
            if not has_arg_scope(op):
                raise ValueError(f"{key} is not decorated with @add_arg_scope")
            scope[key] = {**scope.get(key, {}), **kwargs}
    _stack.scopes.append(scope)
    try:
        yield scope
    finally:
        _stack.scopes.pop()
