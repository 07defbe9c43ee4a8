"""Symbolic differentiation: `tf.gradients` and the table of gradient rules behind it.

walker.py does the reverse walk and registry.py holds the table; the other files have the rules of one op family each.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from tenfold.gradients.registry import NoGradient, NotDifferentiable, RegisterGradient, get_gradient_function

__all__ = [
    "AggregationMethod",
    "NoGradient",
    "NotDifferentiable",
    "RegisterGradient",
    "UnconnectedGradients",
    "get_gradient_function",
    "gradients",
]


def gradients(*args: Any, **kwargs: Any) -> list[Any]:
    """`tf.gradients`; see walker.gradients."""
    from tenfold.gradients import walker

    return walker.gradients(*args, **kwargs)


def __getattr__(name: str) -> Any:
    if name in ("AggregationMethod", "UnconnectedGradients"):
        from tenfold.gradients import walker

        return getattr(walker, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _CallablePackage(ModuleType):
    # `tenfold.gradients` is both this package and the public function: importing any module of the package binds the
    # name to the package. So the package itself can be called.
    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        return gradients(*args, **kwargs)


sys.modules[__name__].__class__ = _CallablePackage
