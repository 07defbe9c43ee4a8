"""The client's graph: graphs, operations, tensors, scopes, and the conversion of values to tensors.

Other packages import from its modules; this file exports what they need most often.
"""

from tenfold.graph.collections import GraphKeys
from tenfold.graph.constant_value import constant_value, constant_value_as_shape, known_value
from tenfold.graph.conversion import (
    convert_n_to_tensor,
    convert_to_tensor,
    is_dense_tensor_like,
    register_tensor_conversion_function,
)
from tenfold.graph.default_scopes import (
    add_to_collection,
    add_to_collections,
    colocate_with,
    container,
    control_dependencies,
    device,
    get_collection,
    get_collection_ref,
    init_scope,
    name_scope,
    op_scope,
)
from tenfold.graph.default_stack import (
    default_session_stack,
    get_default_graph,
    get_default_session,
    reset_default_graph,
)
from tenfold.graph.graph import Graph
from tenfold.graph.importer import import_graph_def
from tenfold.graph.indexed_slices import (
    IndexedSlices,
    convert_n_to_tensor_or_indexed_slices,
    convert_to_tensor_or_indexed_slices,
)
from tenfold.graph.operation import Operation
from tenfold.graph.operators import Operators, implement_operator
from tenfold.graph.tensor import Tensor

__all__ = [
    "Graph",
    "GraphKeys",
    "IndexedSlices",
    "Operation",
    "Operators",
    "Tensor",
    "add_to_collection",
    "add_to_collections",
    "colocate_with",
    "constant_value",
    "constant_value_as_shape",
    "container",
    "control_dependencies",
    "convert_n_to_tensor",
    "convert_n_to_tensor_or_indexed_slices",
    "convert_to_tensor",
    "convert_to_tensor_or_indexed_slices",
    "default_session_stack",
    "device",
    "get_collection",
    "get_collection_ref",
    "get_default_graph",
    "get_default_session",
    "implement_operator",
    "import_graph_def",
    "init_scope",
    "is_dense_tensor_like",
    "known_value",
    "name_scope",
    "op_scope",
    "register_tensor_conversion_function",
    "reset_default_graph",
]
