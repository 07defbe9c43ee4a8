"""`tensorflow.python.util.tf_inspect`: Python's `inspect`, with functions that look through decorators.

`getargspec` is what Python 2 had: without keyword-only arguments.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from tenfold.compat.python.decorators import unwrap


class ArgSpec(NamedTuple):
    """The arguments of a function without those that have to be named."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


FullArgSpec = inspect.FullArgSpec


def getfullargspec(obj: Any) -> inspect.FullArgSpec:
    """The arguments of the function that is inside all decorators."""
    return inspect.getfullargspec(unwrap(obj)[1])


def getargspec(obj: Any) -> ArgSpec:
    """`getfullargspec` without annotations and keyword-only arguments."""
    found = getfullargspec(obj)
    return ArgSpec(found.args, found.varargs, found.varkw, found.defaults)


def currentframe() -> Any:
    """The caller's frame."""
    return inspect.stack()[1][0]


def __getattr__(name: str) -> Any:
    try:
        return getattr(inspect, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
