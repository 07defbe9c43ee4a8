"""Decorators that log, once for each function, that it or an argument of it is going away, or is an experiment.

Exported by contrib/framework/__init__.py. Follows TF 1.15's util/deprecation.py and contrib's experimental.py.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, TypeVar

from tenfold import logging

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

#: What was said already.
_said: set[tuple[Any, ...]] = set()


def _when(date: str | None) -> str:
    return "in a future version" if date is None else f"after {date}"


def _decorated(function: F, before: Callable[..., None]) -> F:
    """The function, with `before(*args, **kwargs)` called first. Raises ValueError for what cannot be called."""
    if not callable(function):
        raise ValueError(f"{function!r} passed to a decorator of functions is not callable")

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        before(*args, **kwargs)
        return function(*args, **kwargs)

    return wrapper  # type: ignore[return-value]


def _say(key: tuple[Any, ...], text: str, *, once: bool) -> None:
    if not once or key not in _said:
        _said.add(key)
        logging.warning("%s", text)


def deprecated(date: str | None, instructions: str, warn_once: bool = True) -> Callable[[F], F]:
    """The function logs that it will be removed, and what to do instead."""

    def decorate(function: F) -> F:
        name = function.__qualname__
        text = f"{name} (from {function.__module__}) is deprecated and will be removed {_when(date)}.\n"
        text += f"Instructions for updating:\n{instructions}"
        return _decorated(function, lambda *_, **__: _say((function, None), text, once=warn_once))

    return decorate


def deprecated_args(
    date: str | None, instructions: str, *deprecated_arg_names_or_tuples: Any, warn_once: bool = True
) -> Callable[[F], F]:
    """The function logs when it is given one of the arguments: names, or (name, value that is not reported)."""
    if not deprecated_arg_names_or_tuples:
        raise ValueError("Specify which argument is deprecated.")
    named = [each if isinstance(each, tuple) else (each,) for each in deprecated_arg_names_or_tuples]

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        missing = [name for name, *_ in named if name not in signature.parameters]
        if missing:
            raise ValueError(
                f"The following deprecated arguments are not present in the function signature: {missing}."
            )

        def check(*args: Any, **kwargs: Any) -> None:
            given = signature.bind_partial(*args, **kwargs).arguments
            for name, *quiet in named:
                if name in given and not (quiet and given[name] == quiet[0]):
                    _say_argument(function, name, "is", date, instructions, warn_once)

        return _decorated(function, check)

    return decorate


def deprecated_arg_values(
    date: str | None, instructions: str, warn_once: bool = True, **deprecated_kwargs: Any
) -> Callable[[F], F]:
    """The function logs when it is given one of these values."""
    if not deprecated_kwargs:
        raise ValueError("Specify which argument values are deprecated.")

    def decorate(function: F) -> F:
        signature = inspect.signature(function)

        def check(*args: Any, **kwargs: Any) -> None:
            given = signature.bind_partial(*args, **kwargs).arguments
            for name, value in deprecated_kwargs.items():
                if name in given and given[name] == value:
                    _say_argument(function, f"{name}={value}", "with", date, instructions, warn_once)

        return _decorated(function, check)

    return decorate


def _say_argument(function: Any, what: str, kind: str, date: str | None, instructions: str, once: bool) -> None:
    called = f"calling {function.__qualname__} (from {function.__module__}) with {what}"
    text = f"{called} is deprecated and will be removed {_when(date)}.\nInstructions for updating:\n{instructions}"
    _say((function, what, kind), text, once=once)


def experimental(func: F) -> F:
    """The function logs with each call that it is an experiment."""
    text = f"{func.__qualname__} (from {func.__module__}) is experimental and may change or be removed at any time, "
    return _decorated(func, lambda *_, **__: _say((func, "experimental"), text + "and without warning.", once=False))
