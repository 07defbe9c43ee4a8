"""Memory as a long-lived process finds it: np.empty of a module gives arrays that are full of a number.

A kernel that relies on fresh memory being zero gives wrong results then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from types import ModuleType

    import pytest

#: What is in it: a number of every type, that no result holds by chance.
LEFT = 77


class _Numpy:
    """NumPy, but for what takes memory without clearing it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def empty(shape: Any, dtype: Any = float) -> Any:
        return np.full(shape, LEFT, dtype)

    @staticmethod
    def empty_like(other: Any) -> Any:
        return np.full_like(other, LEFT)


def make_dirty(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
    """Has the modules find such memory."""
    for module in modules:
        monkeypatch.setattr(module, "np", _Numpy())
