"""Seeds: `tf.set_random_seed` and the pair of seeds that a random operation gets.

With only a graph-level seed, operations get different but repeatable sequences; with only an operation's seed, the
graph-level default is used; with neither, sequences differ from run to run. As in TensorFlow 1.x.
"""

from __future__ import annotations

from tenfold.graph.default_stack import get_default_graph

DEFAULT_GRAPH_SEED = 87654321
_MAX_INT32 = 2**31 - 1


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The seeds (graph, operation) for an operation whose caller gave `op_seed`; (None, None) for a random start."""
    graph_seed = get_default_graph().seed
    if graph_seed is None and op_seed is None:
        return None, None
    if graph_seed is None:
        graph_seed = DEFAULT_GRAPH_SEED
    if op_seed is None:
        # The number of operations so far: the same in every run of the same program.
        op_seed = get_default_graph()._last_id
        get_default_graph()._seed_used = True
    seeds = graph_seed % _MAX_INT32, op_seed % _MAX_INT32
    # The kernel takes two zeros as a request for a random seed.
    return (0, _MAX_INT32) if seeds == (0, 0) else seeds


def set_random_seed(seed: int | None) -> None:
    """Sets the graph-level seed of the default graph."""
    get_default_graph().seed = seed
