"""Which recipe an op has: the tables of the recipes_*.py files, and inputs of one shape for every other op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from support.kernel_net import (
    recipes_array,
    recipes_blocks,
    recipes_cells,
    recipes_examples,
    recipes_image,
    recipes_linalg,
    recipes_math,
    recipes_nn,
    recipes_places,
    recipes_random,
    recipes_sparse,
    recipes_string,
)
from support.kernel_net.draw import Draw
from tenfold_core import opdefs
from tenfold_core.node_signature import signature

Recipe: TypeAlias = Callable[[Draw, dict[str, Any]], list[Any]]

RECIPES: dict[str, Recipe] = {
    **recipes_array.RECIPES,
    **recipes_blocks.RECIPES,
    **recipes_cells.RECIPES,
    **recipes_examples.RECIPES,
    **recipes_image.RECIPES,
    **recipes_linalg.RECIPES,
    **recipes_math.RECIPES,
    **recipes_nn.RECIPES,
    **recipes_places.RECIPES,
    **recipes_random.RECIPES,
    **recipes_sparse.RECIPES,
    **recipes_string.RECIPES,
}


def of(op: str) -> Recipe:
    """The op's recipe."""
    if op in RECIPES:
        return RECIPES[op]

    def same(d: Draw, attrs: dict[str, Any]) -> list[Any]:
        shape = d.shape(0, 3)
        return [shape] * len(signature(opdefs.get(op), attrs).input_types)

    return same
