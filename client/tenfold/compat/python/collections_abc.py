"""`tensorflow.python.util.compat.collections_abc`: Python's."""

from __future__ import annotations

import collections.abc as collections_abc

__all__ = ["collections_abc"]
