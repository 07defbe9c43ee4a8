"""Decorators of TensorFlow's source code: tf_export, tf_decorator, tf_contextlib, keyword_args and tf_should_use.

In Tenfold a decorated function is the function itself, or one made by functools.wraps.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

F = TypeVar("F", bound="Callable[..., Any]")

contextmanager = contextlib.contextmanager


class tf_export:
    """Marks what is public in TensorFlow; the decorated object is unchanged."""

    def __init__(self, *names: str, **options: Any) -> None:
        self._names = names

    def __call__(self, func: F) -> F:
        return func

    def export_constant(self, module_name: str, name: str) -> None:
        """Does nothing: a constant is public where it stands."""


estimator_export = keras_export = tf_export


def keyword_args_only(func: F) -> Callable[..., Any]:
    """A function that takes its arguments by name only. It raises ValueError for one without a name."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if args:
            raise ValueError(
                f"The function {func.__name__} only accepts keyword arguments. Do not pass positional arguments. "
                f"Received the following positional arguments: {args}"
            )
        return func(**kwargs)

    return wrapper


def make_decorator(
    target: Callable[..., Any],
    decorator_func: F,
    decorator_name: str | None = None,
    decorator_doc: str = "",
    decorator_argspec: Any = None,
) -> F:
    """`decorator_func` with the name and the documentation of `target`, which it wraps."""
    functools.update_wrapper(decorator_func, target)
    return decorator_func


def unwrap(maybe_tf_decorator: Any) -> tuple[Sequence[Any], Any]:
    """The functions that wrap a function, the outermost first, and the innermost, which is wrapped."""
    layers = []
    while hasattr(maybe_tf_decorator, "__wrapped__"):
        layers.append(maybe_tf_decorator)
        maybe_tf_decorator = maybe_tf_decorator.__wrapped__
    return layers, maybe_tf_decorator


def should_use_result(fn: F) -> F:
    """Unchanged: a result that nobody uses is not looked for."""
    return fn


def remove_undocumented(module_name: str, allowed_exception_list: Any = None, doc_string_modules: Any = None) -> None:
    """Does nothing: a module keeps its names."""
