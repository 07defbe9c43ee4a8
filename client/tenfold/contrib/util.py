"""`tf.contrib.util`: tensors as messages, and the ops of a graph. Follows TensorFlow 1.15's contrib/util."""

from __future__ import annotations

from tenfold.graph.constant_value import constant_value
from tenfold.train.meta_graph import ops_used_by_graph_def, stripped_op_list_for_graph
from tenfold_core.tensor_util import make_ndarray, make_tensor_proto

__all__ = [
    "constant_value",
    "make_ndarray",
    "make_tensor_proto",
    "ops_used_by_graph_def",
    "stripped_op_list_for_graph",
]
