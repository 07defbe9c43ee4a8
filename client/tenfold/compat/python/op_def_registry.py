"""`tensorflow.python.framework.op_def_registry`: the definitions of the ops."""

from __future__ import annotations

from typing import Any

from tenfold_core import opdefs


def get_registered_ops() -> dict[str, Any]:
    """Op type → its OpDef message, of every op."""
    return {name: opdefs.get(name).to_proto() for name in opdefs.names()}


def get(name: str) -> Any:
    """The OpDef message of an op type, None if there is none."""
    return opdefs.get(name).to_proto() if opdefs.has(name) else None


def register_op_list(op_list: Any) -> None:
    """Does nothing for ops that there are. Raises ValueError for another: a new op needs a kernel, too."""
    unknown = [each.name for each in op_list.op if not opdefs.has(each.name)]
    if unknown:
        raise ValueError(f"Tenfold has no ops {unknown}: CONTRIBUTING.md says how an op is added")
