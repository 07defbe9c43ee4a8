"""Names of `tensorflow.python.framework.ops` and tensor_util that are no part of Tenfold's graph package."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from tenfold.compat import executing_eagerly
from tenfold.graph import convert_to_tensor, get_collection_ref, get_default_graph, is_dense_tensor_like
from tenfold.graph.default_scopes import graph_of
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.scope_names import prepend_scope as prepend_name_scope
from tenfold.graph.scope_names import strip_scope as strip_name_scope
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops.array import is_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "executing_eagerly_outside_functions",
    "get_collection_ref",
    "is_dense_tensor_like",
    "is_tensor",
    "prepend_name_scope",
    "strip_name_scope",
]

#: What a tensor may be of. SparseTensors and IndexedSlices are the composite ones.
CompositeTensor = (SparseTensor, IndexedSlices)
_counter = itertools.count()

executing_eagerly_outside_functions = executing_eagerly


def uid() -> int:
    """A number that this process has not had."""
    return next(_counter)


def internal_convert_to_tensor(value: Any, dtype: Any = None, name: str | None = None, **kwargs: Any) -> Any:
    """`tf.convert_to_tensor`."""
    return convert_to_tensor(value, dtype=dtype, name=name, preferred_dtype=kwargs.get("preferred_dtype"))


def convert_n_to_tensor_v2(values: Iterable[Any], dtype: Any = None, name: str | None = None) -> list[Any]:
    """Each of `values` as a tensor."""
    return [convert_to_tensor(each, dtype=dtype, name=name and f"{name}_{i}") for i, each in enumerate(values)]


def RegisterShape(op_type: str) -> Callable[[Any], Any]:
    """Leaves the function as it is: the op definitions infer the shapes."""
    return lambda function: function


def _get_graph_from_inputs(op_input_list: Any, graph: Any = None) -> Any:
    """The graph of these tensors and operations. Raises ValueError if they are of several."""
    return graph_of(op_input_list, graph)


def get_name_scope() -> str:
    """The name scope that is open in the default graph."""
    return get_default_graph().get_name_scope()


def get_all_collection_keys() -> list[str]:
    """The names of the default graph's collections."""
    return get_default_graph().get_all_collection_keys()


def get_gradient_function(op: Any) -> Any:
    """The function that computes an operation's gradient, None where it has none. Raises LookupError without a rule."""
    from tenfold.gradients import registry

    return registry.lookup(op.type)


is_tensor_like = is_dense_tensor_like
