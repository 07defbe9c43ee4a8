"""Makes a part smaller before it is compiled: verbs on a PartGraph. Tests verify it after each.

    constant_folding.py         what depends on constants only is computed now
    drops.py                    edges lead past nodes that hand on their input; what is not read is not computed
    common_subexpressions.py    the same op of the same inputs is computed once
    reductions.py               gradients of broadcasts, and products of gathered rows, in one node
    activations.py              a batch normalisation and the activation behind it are one node
    sums.py                     a sum of products of matrices is one product, one of slices' gradients one array

Nodes keep their indices: a node that is gone becomes a NoOp that waits for what the node waited for, so that control
edges through it go on ordering. Called by build.py once per RegisterGraph. In TensorFlow: grappler, at the master.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .activations import join_activations
from .common_subexpressions import merge_common_subexpressions
from .constant_folding import fold_constants
from .drops import drop_dead_code, drop_identities
from .reductions import join_broadcast_gradients, join_products_of_rows
from .sums import join_sums_of_products, join_sums_of_slices

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_compiler.part.node_facts import Constants
    from tenfold_compiler.part.part_graph import PartGraph, PartNode

#: What runs after constants are folded.
_PASSES = (
    drop_identities,
    merge_common_subexpressions,
    join_broadcast_gradients,
    drop_dead_code,
    join_sums_of_products,
    join_sums_of_slices,
    join_products_of_rows,
    join_activations,
)


def optimize(
    part: PartGraph,
    constants: Constants,
    build: Callable[[PartNode], Callable[..., Any]],
    check: Callable[[PartGraph, Constants, str], None] | None = None,
) -> dict[str, int]:
    """Runs all passes on a part, in place; by the name of each, how many nodes it took out of the steps. Where the part
    has branches or loops, no node is removed on which a branch or a turn depends (`hangs_on_branch`).

    `constants` holds the outputs of Const nodes and grows by what is folded; `build` makes a kernel for folding.
    """
    passes: dict[str, Callable[[PartGraph, Constants], int]] = {run.__name__: run for run in _PASSES}
    counts = {}
    for name, run in ({"fold_constants": functools.partial(fold_constants, build=build)} | passes).items():
        counts[name] = run(part, constants)
        if check is not None:
            check(part, constants, name)
    return counts
