"""`tf.raw_ops`: every defined op under its own name, with keyword arguments: `tf.raw_ops.Add(x=…, y=…)`.

The functions are made from the op definitions at their first use; ops/generated_ops.py builds them.
"""

from __future__ import annotations

import typing as _typing  # Any is an op

from tenfold.lazy_module import make_lazy
from tenfold.ops.generated_ops import function_of
from tenfold_core import opdefs

make_lazy(__name__)


def __getattr__(name: str) -> _typing.Any:
    if name.startswith("_") or not opdefs.has(name):
        raise AttributeError(f"module 'tenfold.raw_ops' has no attribute {name!r}")
    function = function_of(name, name, keyword_only=True)
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return [name for name in opdefs.names() if not name.startswith("_")]
