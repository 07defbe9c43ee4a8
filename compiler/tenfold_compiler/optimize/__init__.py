"""Makes a part smaller before it is compiled: verbs on a PartGraph, one file each; tests verify it after each.

    fold_constants             what depends on constants only is computed now
    drop_identities            edges lead past nodes that hand on their input
    merge_common_subexpressions   the same op of the same inputs is computed once
    join_broadcast_gradients   what sums a gradient to the shape of a broadcast operand is one node
    drop_dead_code             pure nodes whose values are not read are not computed
    join_sums_of_products      a sum of products of matrices is one product, or added to a total in place
    join_sums_of_slices        a sum of slices' gradients is one array that all are added to
    join_products_of_rows      a sum of products of gathered rows reads them where they lie

Nodes keep their indices: a node that is gone becomes a NoOp that waits for what the node waited for, so that control
edges through it go on ordering. Called by build.py once per RegisterGraph. In TensorFlow: grappler and
constant_folding.cc, which run at the master; here the part is what matters, whatever its master is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .broadcast_gradients import join_broadcast_gradients
from .common_subexpressions import merge_common_subexpressions
from .constant_folding import fold_constants
from .dead_code import drop_dead_code
from .identities import drop_identities
from .products_of_rows import join_products_of_rows
from .sums_of_products import join_sums_of_products
from .sums_of_slices import join_sums_of_slices

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tenfold_compiler.part.node_facts import Constants
    from tenfold_compiler.part.part_graph import PartGraph, PartNode


@dataclass(frozen=True, slots=True)
class Optimizations:
    """How many nodes each pass took out of the steps."""

    folded: int = 0
    identities: int = 0
    merged: int = 0
    dead: int = 0
    joined: int = 0
    slices: int = 0
    broadcasts: int = 0
    rows: int = 0


def optimize(
    part: PartGraph,
    constants: Constants,
    build: Callable[[PartNode], Callable[..., Any]],
    check: Callable[[PartGraph, Constants, str], None] | None = None,
) -> Optimizations:
    """Runs all passes on a part, in place. Where it has branches or loops, no node is taken out that a branch or a turn
    hangs on (`hangs_on_branch`).

    `constants` holds the outputs of Const nodes and grows by what is folded; `build` makes a kernel for folding.
    """

    def checked(name: str, count: int) -> int:
        if check is not None:
            check(part, constants, name)
        return count

    return Optimizations(
        folded=checked("fold_constants", fold_constants(part, constants, build)),
        identities=checked("drop_identities", drop_identities(part, constants)),
        merged=checked("merge_common_subexpressions", merge_common_subexpressions(part, constants)),
        broadcasts=checked("join_broadcast_gradients", join_broadcast_gradients(part, constants)),
        dead=checked("drop_dead_code", drop_dead_code(part, constants)),
        joined=checked("join_sums_of_products", join_sums_of_products(part, constants)),
        slices=checked("join_sums_of_slices", join_sums_of_slices(part, constants)),
        rows=checked("join_products_of_rows", join_products_of_rows(part, constants)),
    )
