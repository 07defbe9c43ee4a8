"""`tf.graph_util`: cuts parts out of a GraphDef, and replaces its variables by constants.

sub_graph.py selects nodes, freeze.py freezes variables. Names and arguments are TF 1.15's.
"""

from __future__ import annotations

from tenfold.graph.importer import import_graph_def
from tenfold.graph_util.freeze import convert_variables_to_constants
from tenfold.graph_util.sub_graph import (
    extract_sub_graph,
    must_run_on_cpu,
    remove_training_nodes,
    tensor_shape_from_node_def_name,
)

__all__ = [
    "convert_variables_to_constants",
    "extract_sub_graph",
    "import_graph_def",
    "must_run_on_cpu",
    "remove_training_nodes",
    "tensor_shape_from_node_def_name",
]
