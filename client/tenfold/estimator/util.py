"""What the modules of tf.estimator share: the arguments of users' functions, and what an input function returned.

Follows TF 1.15's estimator/util.py and util/function_utils.py.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from tenfold.train.session_run_hook import SessionRunHook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tenfold.session.session import BaseSession
    from tenfold.train.coordinator import Coordinator


def fn_args(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the positional arguments that a caller may still give, in order.

    Those that a `functools.partial` has bound are left out, and so is the object of a method.
    """
    if isinstance(fn, functools.partial):
        return tuple(name for name in fn_args(fn.func)[len(fn.args) :] if name not in fn.keywords)
    if not inspect.isroutine(fn) and not inspect.isclass(fn):
        fn = fn.__call__  # type: ignore[operator]
    names = tuple(inspect.getfullargspec(fn).args)
    bound = getattr(fn, "__self__", None) is not None or inspect.isclass(fn)
    return names[1:] if bound else names


def call_with_known(fn: Callable[..., Any], offered: dict[str, Any], **always: Any) -> Any:
    """Calls `fn` with `always`, and with those of the `offered` keywords that it takes."""
    names = fn_args(fn)
    return fn(**always, **{name: value for name, value in offered.items() if name in names})


def check_names(fn: Callable[..., Any], allowed: Iterable[str], what: str) -> None:
    """Raises ValueError, which calls the function `what`, if it takes an argument that nobody would give."""
    unknown = sorted(set(fn_args(fn)) - set(allowed))
    if unknown:
        raise ValueError(f"{what} ({fn}) has following not expected args: {unknown}")


def parse_input_fn_result(result: Any) -> tuple[Any, Any, list[SessionRunHook]]:
    """(features, labels or None, hooks that the session needs) of what an input function returned.

    A dataset becomes its next element, and a hook that initializes its iterator. Raises ValueError for a tuple that
    has not two elements.
    """
    hooks: list[SessionRunHook] = []
    if is_dataset(result):
        iterator = result.make_initializable_iterator()
        hooks.append(_DatasetInitializerHook(iterator))
        result = iterator.get_next()
    return (*parse_iterator_result(result), hooks)


def is_dataset(value: Any) -> bool:
    """Whether `value` is a tf.data.Dataset; told by what it offers, so that tf.data need not be loaded for it."""
    return callable(getattr(value, "make_initializable_iterator", None))


def parse_iterator_result(result: Any) -> tuple[Any, Any]:
    """(features, labels or None). Raises ValueError for a tuple or list that has not two elements."""
    if not isinstance(result, (list, tuple)):
        return result, None
    if len(result) != 2:
        raise ValueError("input_fn should return (features, labels) as a len 2 tuple.")
    return result[0], result[1]


class _DatasetInitializerHook(SessionRunHook):
    """Initializes an iterator once the session is there."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def begin(self) -> None:
        self._initializer = self._iterator.initializer

    def after_create_session(self, session: BaseSession, coord: Coordinator) -> None:
        session.run(self._initializer)
