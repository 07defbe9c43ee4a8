"""What depends on shapes alone is computed once a shape: the first call with new shapes runs the nodes of a group.

Their values are kept, read-only. Stands where a FusedRun may stand (runs.py), but nothing is compiled. Which nodes are
such is tenfold_compiler/fuse/nodes.py's to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_kernels.arrays import freeze

if TYPE_CHECKING:
    from collections.abc import Callable

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
                    freeze(value)
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
