"""Makes a part smaller before it is compiled: verbs on a PartGraph, one file each; tests verify it after each.

    fold_constants             what depends on constants only is computed now
    drop_identities            edges lead past nodes that hand on their input
    merge_common_subexpressions   the same op of the same inputs is computed once
    drop_dead_code             pure nodes whose values are not read are not computed

Nodes keep their indices: a node that is gone becomes a NoOp that waits for what the node waited for, so that control
edges through it go on ordering. Called by program.py once per RegisterGraph. In TensorFlow: grappler and
constant_folding.cc, which run at the master; here the part is what matters, whatever its master is.
"""

from .common_subexpressions import merge_common_subexpressions
from .constant_folding import fold_constants
from .dead_code import drop_dead_code
from .identities import drop_identities
from .pipeline import PASSES, Optimizations, optimize

__all__ = [
    "PASSES",
    "Optimizations",
    "drop_dead_code",
    "drop_identities",
    "fold_constants",
    "merge_common_subexpressions",
    "optimize",
]
