"""Gives kernels copies of what steers them and others may write to, which is the value of a reference variable.

Which edges those are is known when a program is compiled, so a node without one costs nothing; which inputs steer,
tenfold_kernels/steering.py says. Called by build.py. Decision 0131.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels import steering

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from .part_graph import PartNode


def steered_by_others(node: PartNode, views: Collection[int]) -> list[int]:
    """The inputs of a node that steer it while others may write to them; `views` as views_of_references has them."""
    shared = [
        place
        for place, (source, _) in enumerate(node.inputs)
        if node.deref[place] or (source in views and not node.input_types[place].is_ref_dtype)
    ]
    if not shared:
        return []
    names = steering.argument_names(node.op, len(node.inputs), node.attrs)
    return [place for place in shared if steering.steers(node.op, names[place], node.input_types[place])]


def with_copies(kernel: Callable[..., Any], places: Sequence[int]) -> Callable[..., Any]:
    """`kernel`, which gets copies of the inputs at `places`. What it does with them later is its own, too."""

    def call(*inputs: Any) -> Any:
        given = list(inputs)
        for place in places:
            value = given[place]
            if type(value) is np.ndarray:
                given[place] = value.copy()
        return kernel(*given)

    return call
