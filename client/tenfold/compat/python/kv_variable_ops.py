"""Functions of DeepRec's `tensorflow.python.ops.kv_variable_ops`."""

from __future__ import annotations

from functools import reduce
from typing import Any

from tenfold.ops.embedding_variables import is_embedding_variable
from tenfold.ops.math import maximum

__all__ = ["lookup_tier"]


def lookup_tier(ev: Any, ids: Any) -> Any:
    """The tier in which the row of each id is, int32 [ids.shape]; see EmbeddingVariable.lookup_tier."""
    parts = [ev] if is_embedding_variable(ev) else list(ev)
    return reduce(maximum, [part.lookup_tier(ids) for part in parts])
