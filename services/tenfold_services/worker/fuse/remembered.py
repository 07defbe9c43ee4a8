"""What depends on shapes alone is computed once a shape: the sizes in a mean's gradient, the axes of a broadcast's.

    Shape(x) ─► Prod ─► Cast ─► RealDiv ─► Tile        one look-up by x.shape, as long as the shapes come again

The nodes of such a run are a group like those of elementwise ops, but nothing is compiled: the first call with new
shapes runs the nodes, and their values are kept, read-only. Called by groups.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_core.opdefs.runtime_ops import METADATA_OPS

from ..optimize.nodes import is_pure
from .nodes import is_alias

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..optimize.nodes import Constants
    from ..part import PartGraph, PartNode

    _Call: TypeAlias = Callable[..., Any]

#: Sets of shapes that a group keeps values for, and bytes of one set's values: more is computed at every call.
KEPT_SHAPES, KEPT_BYTES = 32, 65_536


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a group does with its nodes: runs them for new shapes only."""

    #: Inputs and results of a call.
    inputs: int
    outputs: int

    @property
    def source(self) -> None:
        """Nothing is compiled."""
        return None

    def build(self, fallback: _Call, cache: object = None) -> _Call:
        """`fallback` as a function that remembers. Any number of threads may call it: the worst is work done twice."""
        kept: dict[Any, Any] = {}
        one = self.outputs == 1

        def compute(key: Any, arrays: tuple[Any, ...]) -> Any:
            values = fallback(*arrays)
            results = (values,) if one else values
            if len(kept) < KEPT_SHAPES and _can_be_kept(results):
                for value in results:
                    value.flags.writeable = False
                kept[key] = values
            return values

        if self.inputs == 1:

            def call(x: Any) -> Any:
                shape = x.shape
                found = kept.get(shape)
                return compute(shape, (x,)) if found is None else found

            return call

        def call_many(*arrays: Any) -> Any:
            key = tuple([x.shape for x in arrays])
            found = kept.get(key)
            return compute(key, arrays) if found is None else found

        return call_many


def _can_be_kept(values: tuple[Any, ...]) -> bool:
    return (
        all(type(value) is np.ndarray and not value.dtype.hasobject for value in values)
        and sum(value.nbytes for value in values) <= KEPT_BYTES
    )


def nodes_of_shapes(part: PartGraph, constants: Constants) -> frozenset[int]:
    """The nodes whose values depend on constants and on shapes alone."""
    found: set[int] = set()
    for node in part.nodes:
        if node.index in constants or not node.inputs or any(node.deref):
            continue
        known = all(source in constants or source in found for source, _ in node.inputs)
        if is_alias(node, constants):
            if known:
                found.add(node.index)
        elif is_pure(node) and node.output_types and (known or node.op in METADATA_OPS):
            found.add(node.index)
    return frozenset(index for index in found if not is_alias(part.nodes[index], constants))


def looks_at_shapes(node: PartNode) -> bool:
    """Whether the node may take any input, because it looks at its shape alone."""
    return node.op in METADATA_OPS
