"""`tensorflow.python.util.deprecation`: decorators that warn once for each place that calls what is deprecated.

Follows TF 1.15's util/deprecation.py; `silence` turns the warnings off in a block.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from tenfold import logging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

F = TypeVar("F", bound="Callable[..., Any]")

# Programs set this to False to be spared the warnings.
_PRINT_DEPRECATION_WARNINGS = True
#: (what, file, line) of the warnings that were given.
_told: set[tuple[str, str, int]] = set()


def _warn(what: str, message: str) -> None:
    frame = sys._getframe(2)
    place = (what, frame.f_code.co_filename, frame.f_lineno)
    if _PRINT_DEPRECATION_WARNINGS and place not in _told:
        _told.add(place)
        logging.warning("From %s:%s: %s", place[1], place[2], message)


def _when(date: str | None) -> str:
    return f"after {date}" if date else "in a future version"


def deprecated(date: str | None, instructions: str, warn_once: bool = True) -> Callable[[F], F]:
    """Warns when the function is called, or the class made. Raises ValueError without instructions."""
    if not instructions:
        raise ValueError("Don't deprecate things without conversion instructions!")

    def decorate(target: F) -> F:
        name = getattr(target, "__qualname__", str(target))
        message = (
            f"{name} (from {getattr(target, '__module__', None)}) is deprecated and will be removed {_when(date)}. "
            f"Instructions for updating: {instructions}"
        )
        if inspect.isclass(target):
            made = target.__init__

            @functools.wraps(made)
            def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
                _warn(name, message)
                made(self, *args, **kwargs)

            setattr(target, "__init__", __init__)  # noqa: B010 (mypy knows no class that is made so)
            return target

        @functools.wraps(target)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            _warn(name, message)
            return target(*args, **kwargs)

        return wrapper  # type: ignore[return-value]

    return decorate


def deprecated_alias(deprecated_name: str, name: str, func_or_class: Any, warn_once: bool = True) -> Any:
    """The function or class under an old name, which warns."""
    message = f"The name {deprecated_name} is deprecated. Please use {name} instead."
    if inspect.isclass(func_or_class):

        class _Alias(func_or_class):  # type: ignore[misc]
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                _warn(deprecated_name, message)
                super().__init__(*args, **kwargs)

        _Alias.__name__ = _Alias.__qualname__ = func_or_class.__name__
        return _Alias

    @functools.wraps(func_or_class)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        _warn(deprecated_name, message)
        return func_or_class(*args, **kwargs)

    return wrapper


def deprecated_endpoints(*args: str) -> Callable[[F], F]:
    """Leaves the function as it is."""
    return lambda func: func


def deprecated_args(
    date: str | None, instructions: str, *deprecated_arg_names_or_tuples: Any, **kwargs: Any
) -> Callable[[F], F]:
    """Warns when one of these arguments is given; a pair (name, value) allows that value."""
    if not instructions:
        raise ValueError("Don't deprecate things without conversion instructions!")
    if not deprecated_arg_names_or_tuples:
        raise ValueError("Specify which argument is deprecated.")
    allowed = dict(
        (each[0], each[1:]) if isinstance(each, tuple) else (each, ()) for each in deprecated_arg_names_or_tuples
    )

    def is_refused(name: str, value: Any) -> bool:
        return name in allowed and not any(value is each or value == each for each in allowed[name])

    return _checking(date, instructions, is_refused)


def deprecated_arg_values(
    date: str | None, instructions: str, warn_once: bool = True, **deprecated_kwargs: Any
) -> Callable[[F], F]:
    """Warns when an argument has one of these values."""
    if not instructions:
        raise ValueError("Don't deprecate things without conversion instructions!")
    if not deprecated_kwargs:
        raise ValueError("Specify which argument values are deprecated.")
    return _checking(
        date, instructions, lambda name, value: name in deprecated_kwargs and deprecated_kwargs[name] == value
    )


def _checking(date: str | None, instructions: str, is_refused: Callable[[str, Any], bool]) -> Callable[[F], F]:
    def decorate(func: F) -> F:
        signature = inspect.signature(func)

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with contextlib.suppress(TypeError):  # the call itself says what is wrong
                for name, value in signature.bind(*args, **kwargs).arguments.items():
                    if is_refused(name, value):
                        _warn(
                            f"{func.__qualname__}.{name}",
                            f"calling {func.__qualname__} (from {func.__module__}) with {name} is deprecated and will "
                            f"be removed {_when(date)}. Instructions for updating: {instructions}",
                        )
            return func(*args, **kwargs)

        return wrapper  # type: ignore[return-value]

    return decorate


def deprecated_argument_lookup(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """The value of an argument that has two names. Raises ValueError if both are given."""
    if old_value is None:
        return new_value
    if new_value is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'")
    return old_value


def rewrite_argument_docstring(old_doc: str, old_argument: str, new_argument: str) -> str:
    """The text with an argument's name replaced."""
    return old_doc.replace(f"`{old_argument}`", f"`{new_argument}`").replace(f"{old_argument}:", f"{new_argument}:")


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """No warnings in the block."""
    global _PRINT_DEPRECATION_WARNINGS
    before, _PRINT_DEPRECATION_WARNINGS = _PRINT_DEPRECATION_WARNINGS, False
    try:
        yield
    finally:
        _PRINT_DEPRECATION_WARNINGS = before
