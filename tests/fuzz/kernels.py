"""Kernels by themselves: what reads bytes in a graph is built for a node and called, as an executor would call it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import attr_value, node_attrs, opdefs
from tenfold_core.node_signature import signature
from tenfold_kernels import registry
from tenfold_kernels.resources.state import ResourceManager
from tenfold_protos.node_def_pb2 import NodeDef

if TYPE_CHECKING:
    from collections.abc import Callable


def kernel(op: str, **attrs: Any) -> Callable[..., Any]:
    """The function that computes `op` on the CPU; attributes are Python values, others have their defaults."""
    definition = opdefs.get(op)
    node_def = NodeDef(name="n", op=op)
    kinds = {attr.name: attr.type for attr in definition.attrs}
    for name, value in attrs.items():
        node_def.attr[name].CopyFrom(attr_value.to_proto(value, kinds[name]))
    resolved = node_attrs.resolve_attrs(definition, node_def)
    types = signature(definition, resolved)
    node = registry.KernelNode(
        "n", op, resolved, types.input_types, types.output_types, "/device:CPU:0", ResourceManager()
    )
    compute = registry.lookup(node, "CPU")(node)

    def run(*inputs: Any) -> Any:
        with registry.quiet():
            return compute(*inputs)

    return run


def text(*values: bytes) -> Any:
    """A string scalar, or a vector of several."""
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(()) if len(values) == 1 else array
