"""Functions of `tensorflow.python.ops.state_ops` beside the public ones."""

from __future__ import annotations

from typing import Any

from tenfold.graph import colocate_with, name_scope
from tenfold.ops.state_ops import assign

__all__ = ["init_variable"]


def init_variable(v: Any, init: Any, name: str = "init") -> Any:
    """The operation that gives a variable a tensor, or what an initializer gives for its shape and type."""
    with name_scope(f"{v.op.name}/", values=[v]), name_scope(name) as scope, colocate_with(v.op):
        value = init(v.get_shape().as_list(), v.dtype.base_dtype) if callable(init) else init
        return assign(v, value, name=scope)
