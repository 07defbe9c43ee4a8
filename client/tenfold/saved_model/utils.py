"""`tf.saved_model.utils`: how a signature names tensors, sparse ones too, and how they are found again.

Used by signature_def_utils.py. Follows TF 1.15's saved_model/utils_impl.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph import get_default_graph
from tenfold.graph.scope_names import prepend_scope
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold_core.dtypes import as_dtype
from tenfold_core.tensor_shape import TensorShape
from tenfold_protos import meta_graph_pb2

if TYPE_CHECKING:
    from tenfold.graph.graph import Graph
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor
    from tenfold_protos.meta_graph_pb2 import TensorInfo

__all__ = [
    "build_tensor_info",
    "build_tensor_info_from_op",
    "get_element_from_tensor_info",
    "get_tensor_from_tensor_info",
]


def build_tensor_info(tensor: Any) -> TensorInfo:
    """The names, type and static shape of a tensor, variable or SparseTensor."""
    info = meta_graph_pb2.TensorInfo(tensor_shape=tensor.get_shape().as_proto())
    info.dtype = as_dtype(tensor.dtype).as_datatype_enum  # type: ignore[assignment]
    if isinstance(tensor, SparseTensor):
        info.coo_sparse.values_tensor_name = tensor.values.name
        info.coo_sparse.indices_tensor_name = tensor.indices.name
        info.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
    else:
        info.name = tensor.name
    return info


def build_tensor_info_from_op(op: Any) -> TensorInfo:
    """The name of an operation where a signature wants a tensor's: without type and shape."""
    return meta_graph_pb2.TensorInfo(tensor_shape=TensorShape(None).as_proto(), name=op.name)


def get_tensor_from_tensor_info(
    tensor_info: TensorInfo, graph: Graph | None = None, import_scope: str | None = None
) -> Tensor | SparseTensor:
    """The tensor or SparseTensor that a signature names, in `graph` (default: the default one), under `import_scope`.

    Raises KeyError if the graph lacks it, ValueError for a message that names none or one of a kind that is not served.
    """
    graph = get_default_graph() if graph is None else graph

    def found(name: str) -> Any:
        return graph.get_tensor_by_name(prepend_scope(name, import_scope))

    encoding = tensor_info.WhichOneof("encoding")
    if encoding == "name":
        tensor: Tensor = found(tensor_info.name)
        return tensor
    if encoding == "coo_sparse":
        parts = tensor_info.coo_sparse
        return SparseTensor(
            found(parts.indices_tensor_name), found(parts.values_tensor_name), found(parts.dense_shape_tensor_name)
        )
    if encoding == "composite_tensor":
        raise ValueError(
            "TensorInfo.encoding 'composite_tensor' is not served: of composite tensors there are SparseTensors only. "
            f"Its parts are {[component.name for component in tensor_info.composite_tensor.components]}."
        )
    raise ValueError(f"Invalid TensorInfo.encoding: {encoding}")


def get_element_from_tensor_info(
    tensor_info: TensorInfo, graph: Graph | None = None, import_scope: str | None = None
) -> Tensor | Operation:
    """The operation or tensor that the message names. Raises KeyError if the graph lacks it."""
    graph = get_default_graph() if graph is None else graph
    return graph.as_graph_element(prepend_scope(tensor_info.name, import_scope))
