"""`tf.flags`, also `tf.app.flags`: command line flags as TensorFlow 1.x programs define them.

These are absl's flags, as in TensorFlow 1.15, with what TensorFlow adds: the command line is read when a flag is
first read, if `tf.app.run` has not read it, and `DEFINE_…` takes the argument names of the first releases too. Unlike
in TensorFlow 1.15, that first read ignores flags that the program does not define, as in the first releases.
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

from tenfold.lazy_module import make_lazy

if TYPE_CHECKING:
    from collections.abc import Callable

make_lazy(__name__)

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

# The text of --help lists flags defined through the functions below under the program's module, not under this one.
_absl.disclaim_key_flags()

#: Argument names of the first releases → absl's.
_OLD_NAMES = {"flag_name": "name", "default_value": "default", "docstring": "help"}


class _Flags(FlagValues):
    """absl's FLAGS, whose state it shares; reads the command line when a flag is first read."""

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
