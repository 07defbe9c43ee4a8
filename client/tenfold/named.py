"""Names a function that another one makes, such as the rows of ops/reductions.py, as if it were written out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


def named(function: F, name: str, doc: str | None) -> F:
    """`function` itself, with this name and docstring; its signature is that of its definition."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function
