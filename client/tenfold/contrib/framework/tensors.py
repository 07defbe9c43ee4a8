"""Checks of tensors' shapes and kinds, while the graph is built and where that cannot decide when a step runs.

Exported by contrib/framework/__init__.py. Follows TF 1.15's contrib/framework/python/framework/tensor_util.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph import control_dependencies, convert_to_tensor, get_default_graph, name_scope
from tenfold.graph.graph import Graph
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.graph.tensor import Tensor
from tenfold.ops import array, check_ops, control_flow, math
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.reductions import reduce_all, reduce_sum
from tenfold.ops.variables import Variable
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor, a sparse one or a variable."""
    return isinstance(x, (Tensor, SparseTensor, Variable)) or hasattr(x, "_as_graph_element")


def reduce_sum_n(tensors: Sequence[Any], name: str | None = None) -> Any:
    """The sum of all elements of several tensors. Raises ValueError for none."""
    if not tensors:
        raise ValueError("No tensors provided.")
    with name_scope(name, "reduce_sum_n", tensors) as scope:
        sums = [reduce_sum(each, name=f"{each.op.name}/sum") for each in tensors]
        return sums[0] if len(sums) == 1 else math.add_n(sums, name=scope)


def remove_squeezable_dimensions(predictions: Any, labels: Any, name: str | None = None) -> tuple[Any, Any]:
    """The two, where one has a last dimension of size 1 more than the other without it.

    Note the order: `tf.confusion_matrix`'s function takes and gives the labels first.
    """
    with name_scope(name, "remove_squeezable_dimensions", [predictions, labels]):
        predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
        of_predictions, of_labels = predictions.get_shape(), labels.get_shape()
        if of_predictions.ndims is not None and of_labels.ndims is not None:
            difference = of_predictions.ndims - of_labels.ndims
            if difference == -1:
                labels = array.squeeze(labels, [-1])
            elif difference == 1:
                predictions = array.squeeze(predictions, [-1])
            return predictions, labels
        more = array.rank(predictions) - array.rank(labels)
        if of_predictions.ndims is None or of_predictions.dims[-1].is_compatible_with(1):
            predictions = _squeezed_if(math.equal(1, more), predictions)
        if of_labels.ndims is None or of_labels.dims[-1].is_compatible_with(1):
            labels = _squeezed_if(math.equal(-1, more), labels)
        return predictions, labels


def _squeezed_if(pred: Any, tensor: Any) -> Any:
    return cond(pred, lambda: array.squeeze(tensor, [-1]), lambda: tensor)


def with_same_shape(expected_tensor: Any, tensor: Any) -> Any:
    """`with_shape` with the shape of another tensor."""
    with name_scope(f"{tensor.op.name}/", values=[expected_tensor, tensor]):
        known = expected_tensor.get_shape()
        wanted = known.as_list() if known.is_fully_defined() else array.shape(expected_tensor, name="expected_shape")
        return with_shape(wanted, tensor)


def with_shape(expected_shape: Any, tensor: Any) -> Any:
    """The tensor, known to have the shape: a list, an int32 array, a TensorShape or an int32 tensor.

    Where the static shape does not tell, a step that finds another shape raises InvalidArgumentError. A tensor of one
    element becomes a scalar for an empty shape. Raises ValueError for a shape that contradicts the tensor's, or that
    is no shape.
    """
    if isinstance(tensor, SparseTensor):
        raise ValueError("SparseTensor not supported.")
    dynamic = is_tensor(expected_shape)
    if dynamic and expected_shape.dtype.base_dtype != dtypes.int32:
        raise ValueError(
            f"Invalid dtype {expected_shape.dtype} for shape {expected_shape} expected of tensor {tensor.name}."
        )
    if not dynamic and not isinstance(expected_shape, TensorShape):
        expected_shape = _shape_array(expected_shape, tensor)
    actual = tensor.get_shape()
    within = name_scope(f"{tensor.op.name}/", values=[tensor])
    scalar = not dynamic and len(expected_shape) < 1
    if dynamic or not actual.is_fully_defined():
        with within:
            if scalar:
                return array.reshape(tensor, [])
            with control_dependencies([_shape_assertion(expected_shape, tensor)]):
                result = array.identity(tensor)
            if not dynamic:
                result.set_shape(expected_shape)
            return result
    if not actual.is_compatible_with(expected_shape):
        if scalar and actual.is_compatible_with([1]):
            with within:
                return array.reshape(tensor, [])
        raise ValueError(f"Invalid shape for tensor {tensor.name}, expected {expected_shape}, got {actual}.")
    return tensor


def _shape_array(shape: Any, tensor: Any) -> np.ndarray:
    given = np.asarray(shape) if len(shape) else np.asarray([], np.int32)
    if isinstance(shape, (list, tuple)) and given.dtype == np.int64:
        given = given.astype(np.int32)
    if given.ndim > 1:
        raise ValueError(f"Invalid rank {given.ndim} for shape {given} expected of tensor {tensor.name}.")
    if given.dtype != np.int32:
        raise ValueError(f"Invalid dtype {given.dtype} for shape {given} expected of tensor {tensor.name}.")
    return given


def _shape_assertion(expected: Any, tensor: Any) -> Any:
    """An operation that fails unless the tensor has the shape, in which -1 is any size."""
    with name_scope("assert_shape", values=[tensor]) as scope:
        actual = array.shape(tensor, name="actual")
        if isinstance(expected, TensorShape):
            expected = [-1 if size is None else size for size in expected.as_list()]
        same_rank = math.equal(array.size(expected), array.rank(tensor))
        # The sizes can be compared only where there are as many.
        fits = cond(
            same_rank,
            lambda: reduce_all(math.logical_or(math.equal(expected, -1), math.equal(expected, actual))),
            lambda: array.constant(False),
        )
        said = f"Wrong shape for {tensor.name} [expected] [actual]."
        return control_flow.Assert(fits, [said, expected, actual], name=scope)


def assert_scalar_int(tensor: Any, name: str | None = None) -> Any:
    """The tensor. Raises ValueError unless it is a scalar of an integer type."""
    with name_scope(name, "assert_scalar_int", [tensor]) as scope:
        tensor = convert_to_tensor(tensor)
        if not tensor.dtype.base_dtype.is_integer:
            raise ValueError(f"Expected integer type for {tensor.name}, received type: {tensor.dtype}.")
        return check_ops.assert_scalar(tensor, name=scope)


def get_graph_from_inputs(op_input_list: Iterable[Any], graph: Graph | None = None) -> Graph:
    """The graph of the inputs, or the default graph if none has one.

    Raises TypeError for a `graph` that is not a Graph, ValueError if the inputs are of different graphs.
    """
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError(f"Input graph needs to be a Graph: {graph}")
    found, first = graph, None
    for each in op_input_list:
        of_input = getattr(each, "graph", None)
        if not isinstance(of_input, Graph):
            continue
        if found is None:
            found, first = of_input, each
        elif of_input is not found:
            if first is None:
                raise ValueError(f"{each} is not from the passed-in graph.")
            raise ValueError(f"{each} must be from the same graph as {first}.")
    return found or get_default_graph()


def get_name_scope() -> str:
    """The current name scope of the default graph."""
    return get_default_graph().get_name_scope()


def get_placeholders(graph: Any) -> list[Any]:
    """The placeholders of a graph. Raises TypeError for anything but a graph."""
    if not isinstance(graph, Graph):
        raise TypeError(f"Input graph needs to be a Graph: {graph}")
    return [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]
