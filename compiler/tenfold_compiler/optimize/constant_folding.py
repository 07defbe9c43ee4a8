"""Computes beforehand what depends on constants only.

Bounded: a result of more than MAX_BYTES stays in the step (it would stay in memory instead), and so does an op that
fails, which must fail in the step that asks for it. Follows constant_folding.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_compiler.part.node_facts import Constants, is_pure
from tenfold_kernels.arrays import freeze
from tenfold_kernels.registry import quiet

from .edits import read

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_compiler.part.part_graph import PartGraph, PartNode

#: The most that one folded node may add to what the program keeps.
MAX_BYTES = 65_536


def fold_constants(part: PartGraph, constants: Constants, build: Callable[[PartNode], Callable[..., Any]]) -> int:
    """Folds what can be folded into `constants`; returns how many nodes. `build` makes a node's kernel."""
    folded = 0
    for node in part.nodes:
        if node.index in constants or not node.inputs or not is_pure(node):
            continue
        if not all(source in constants for source, _ in node.inputs):
            continue
        outputs = _compute(node, [constants[source][port] for source, port in node.inputs], build)
        if outputs is None:
            continue
        constants[node.index] = outputs
        # What it waited for it still waits for: a constant of a dead branch is dead.
        node.controls = sorted({*node.sources})
        read(node, ())
        node.memory = None
        folded += 1
    return folded


def _compute(
    node: PartNode, inputs: list[Any], build: Callable[[PartNode], Callable[..., Any]]
) -> tuple[Any, ...] | None:
    if sum(value.nbytes for value in inputs) > 16 * MAX_BYTES:
        return None
    try:
        with quiet():
            result = build(node)(*inputs)
    except Exception:
        # The step that needs the node reports its error, with the node's name.
        return None
    outputs = result if len(node.output_types) != 1 else (result,)
    if not isinstance(outputs, tuple):  # it has no outputs
        return None
    arrays = [np.array(value, copy=True, order="C") for value in outputs]
    if sum(array.nbytes for array in arrays) > MAX_BYTES:
        return None
    return tuple(map(freeze, arrays))
