"""`tf.flags`, also `tf.app.flags`: command line flags as TensorFlow 1.x programs define them.

These are absl's flags, as in TensorFlow 1.15, with what TensorFlow adds: the command line is read at the first look at
a flag if `tf.app.run` has not read it, and `DEFINE_…` takes the argument names of the first releases too. Unlike in
TensorFlow 1.15, flags that the program does not define are left alone at that first look, as in its first releases.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from absl import flags as _absl
from absl.flags import (
    DuplicateFlagError,
    Error,
    Flag,
    FlagValues,
    IllegalFlagValueError,
    UnparsedFlagAccessError,
    UnrecognizedFlagError,
    ValidationError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "FLAGS",
    "DuplicateFlagError",
    "Error",
    "Flag",
    "FlagValues",
    "IllegalFlagValueError",
    "UnparsedFlagAccessError",
    "UnrecognizedFlagError",
    "ValidationError",
]

# The flags that a program defines through the functions below are the program's, in the text of --help.
_absl.disclaim_key_flags()

#: Argument names of the first releases → absl's.
_OLD_NAMES = {"flag_name": "name", "default_value": "default", "docstring": "help"}


class _Flags(FlagValues):
    """absl's FLAGS, of which it shares all state, read from the command line at the first look at a flag."""

    def __init__(self) -> None:
        object.__setattr__(self, "__dict__", _absl.FLAGS.__dict__)

    def __getattr__(self, name: str) -> Any:
        if name in self and not self.is_parsed():
            self(sys.argv, known_only=True)
        return super().__getattr__(name)


FLAGS = _Flags()


def _with_old_names(define: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(define)
    def defined(*args: Any, **kwargs: Any) -> Any:
        for old, new in _OLD_NAMES.items():
            if old in kwargs:
                kwargs[new] = kwargs.pop(old)
        return define(*args, **kwargs)

    return defined


def __getattr__(name: str) -> Any:
    if name not in _absl.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_absl, name)
    if name.startswith("DEFINE_"):
        value = _with_old_names(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_absl.__all__})
