"""The base class of optimizers: gradients of a loss, and one update per variable.

A subclass defines which slots it keeps and which op applies a gradient (gradient_descent.py, momentum.py, …); this
class does the rest: sparse gradients, both kinds of variables, the global step, names as in TensorFlow 1.15.
Follows TensorFlow's training/optimizer.py.
"""

from __future__ import annotations

from collections.abc import Callable, KeysView, Sequence, ValuesView
from typing import TYPE_CHECKING, Any

from tenfold.gradients import walker
from tenfold.graph.collections import GraphKeys
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.indexed_slices import IndexedSlices, convert_to_tensor_or_indexed_slices
from tenfold.graph.op_builder import apply_op
from tenfold.graph.tensor import Tensor
from tenfold.ops import control_flow, variables
from tenfold.ops.embedding_variables import is_embedding_variable
from tenfold.ops.resource_variables import is_resource_variable
from tenfold.ops.variables import Variable
from tenfold.train.slots import SlotKeeper
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.graph import Graph
    from tenfold.graph.operation import Operation
    from tenfold_core.dtypes import DType

GradientsAndVariables = Sequence[tuple[Any, Any]]


class Optimizer(SlotKeeper):
    """Minimizes a loss by updating variables. Use a subclass, e.g. GradientDescentOptimizer.

    `gate_gradients` sets what waits for what: GATE_NONE nothing, GATE_OP the gradients of each operation for each
    other, GATE_GRAPH all updates for all gradients.
    """

    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._use_locking = use_locking
        self._name = name
        super().__init__()

    def get_name(self) -> str:
        """The name given to the constructor."""
        return self._name

    def minimize(
        self,
        loss: Tensor | Callable[[], Tensor],
        global_step: Tensor | Variable | None = None,
        var_list: Sequence[Any] | None = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Operation:
        """An operation that updates the variables of `var_list` (default: all trainable) once to reduce `loss`.

        `global_step`, if given, is incremented afterwards. Raises ValueError if `loss` depends on none of them.
        """
        grads_and_vars = self.compute_gradients(
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        if all(grad is None for grad, _ in grads_and_vars):
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not support gradients, "
                f"between variables {[str(v) for _, v in grads_and_vars]} and loss {loss}."
            )
        return self.apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: Tensor | Callable[[], Tensor],
        var_list: Sequence[Any] | None = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """Pairs (gradient, variable); the gradient is a Tensor, IndexedSlices, or None if the loss does not depend
        on the variable.

        `loss` is a Tensor or a function that makes it.
        """
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH. "
                f" Not {gate_gradients}"
            )
        if callable(loss):
            loss = loss()
        self._assert_valid_dtypes([loss])
        if grad_loss is not None:
            self._assert_valid_dtypes([grad_loss])
        if var_list is None:
            graph = get_default_graph()
            var_list = variables.trainable_variables()
            var_list = var_list + graph.get_collection(GraphKeys.TRAINABLE_RESOURCE_VARIABLES)
        else:
            var_list = _flattened(var_list)
        if not var_list:
            raise ValueError("No variables to optimize.")
        grads = walker.gradients(
            loss,
            [_gradient_target(v) for v in var_list],
            grad_ys=grad_loss,
            gate_gradients=gate_gradients == self.GATE_OP,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gate_gradients == self.GATE_GRAPH:
            grads = control_flow.tuple(grads)
        grads_and_vars = list(zip(grads, var_list, strict=True))
        self._assert_valid_dtypes([v for g, v in grads_and_vars if g is not None])
        return grads_and_vars

    def apply_gradients(
        self,
        grads_and_vars: GradientsAndVariables,
        global_step: Tensor | Variable | None = None,
        name: str | None = None,
    ) -> Operation:
        """An operation that applies each gradient to its variable, then increments `global_step` if given.

        Pairs with gradient None are skipped. Raises ValueError if that leaves none, TypeError for other gradients.
        """
        pairs = [(_checked_gradient(grad), var) for grad, var in grads_and_vars]
        if not pairs:
            raise ValueError("No variables provided.")
        trained = [var for grad, var in pairs if grad is not None]
        if not trained:
            raise ValueError(f"No gradients provided for any variable: {[str(var) for _, var in pairs]}.")
        graph = trained[0].graph
        with graph.control_dependencies(None):
            self._create_slots(trained)
        with graph.name_scope(name or self._name) as scope:
            self._prepare()
            update_ops = []
            for grad, var in pairs:
                if grad is None:
                    continue
                with graph.name_scope("update_" + var.op.name), graph.colocate_with(var.op):
                    update_ops.append(self._update_op(grad, var))
            train_op = self._finished(graph, update_ops, global_step, scope)
        collection = graph.get_collection_ref(GraphKeys.TRAIN_OP)
        if train_op not in collection:
            collection.append(train_op)
        return train_op

    def _finished(self, graph: Graph, update_ops: list[Any], global_step: Any, scope: str) -> Operation:
        if global_step is None:
            done: Operation = self._finish(update_ops, scope)
            return done
        with graph.control_dependencies([self._finish(update_ops, "update")]), graph.colocate_with(global_step):
            if is_resource_variable(global_step):
                one = convert_to_tensor(1, dtype=global_step.dtype)
                step: Operation = apply_op("AssignAddVariableOp", resource=global_step.handle, value=one, name=scope)
                return step
            return _as_op(apply_op("AssignAdd", ref=_reference(global_step), value=1, name=scope))

    def _update_op(self, grad: Any, var: Any) -> Any:
        sparse = isinstance(grad, IndexedSlices)
        constraint = getattr(var, "constraint", None)
        if sparse and constraint is not None:
            raise RuntimeError("Cannot use a constraint function on a sparse variable.")
        if is_embedding_variable(var):
            if not sparse:
                raise TypeError(f"The gradient of the embedding variable {var.name} must be IndexedSlices, not {grad}")
            values = grad.values
            if values.dtype.base_dtype.size < dtypes.float32.size:
                # rates, sums of gradients and updates of half rows are of float32
                values = apply_op("Cast", x=values, DstT=dtypes.float32)
            rows, ids = _deduplicated(values, grad.indices)
            return self._embedding_apply_sparse(rows, var, ids)
        if var.op.type == "VarHandleOp":
            if sparse:
                return self._resource_apply_sparse_duplicate_indices(grad.values, var, grad.indices)
            update = self._resource_apply_dense(grad, var)
        elif isinstance(var, Variable):
            if sparse:
                return self._apply_sparse_duplicate_indices(grad, var)
            update = self._apply_dense(grad, var)
        else:
            raise NotImplementedError(f"Trying to update a Tensor {var}")
        if constraint is None:
            return update
        with var.graph.control_dependencies([update]):
            return var.assign(constraint(var), read_value=False)

    # --- for subclasses to override ---

    def _valid_dtypes(self) -> set[DType]:
        """The types of loss and variables that can be trained."""
        return {dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64}

    def _assert_valid_dtypes(self, tensors: Sequence[Any]) -> None:
        valid = self._valid_dtypes()
        for tensor in tensors:
            dtype = tensor.dtype.base_dtype
            if dtype not in valid:
                expected = sorted(v.name for v in valid)
                raise ValueError(f"Invalid type {dtype!r} for {tensor.name}, expected: {expected}.")

    def _assert_full_precision(self, var_list: Sequence[Any]) -> None:
        """For updates whose rates are 1 or 0 in bfloat16, so that nothing would be trained. Raises ValueError."""
        for var in var_list:
            if var.dtype.base_dtype == dtypes.bfloat16 and not is_embedding_variable(var):
                raise ValueError(
                    f"{self._name} trains no rows of variables of {var.dtype.base_dtype!r}, as {var.name} is: keep it "
                    "as float32, by tf.variable_scope(...).keep_weights(dtype=tf.float32), and compute in the half "
                    "type."
                )

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        """Makes the slots for the variables, before any update."""

    def _prepare(self) -> None:
        """Makes the tensors of the hyperparameters, inside the name scope of the optimizer."""

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        """Applies a dense gradient to a reference variable."""
        raise NotImplementedError

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        """Applies a dense gradient to a resource variable."""
        raise NotImplementedError

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        """Applies a sparse gradient without repeated indices to a reference variable."""
        raise NotImplementedError

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        """Applies rows at `indices`, none repeated, to a resource variable."""
        raise NotImplementedError

    def _embedding_apply_sparse(self, grad: Tensor, var: Any, ids: Tensor) -> Any:
        """Applies rows of `ids`, none repeated, to an embedding variable."""
        raise NotImplementedError(f"{type(self).__name__} has no update of embedding variables, as {var.name} is one")

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        rows, indices = _deduplicated(grad.values, grad.indices)
        return self._apply_sparse(IndexedSlices(rows, indices, grad.dense_shape), var)

    def _resource_apply_sparse_duplicate_indices(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        rows, unique = _deduplicated(grad, indices)
        return self._resource_apply_sparse(rows, handle, unique)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        """What runs after the updates; gives the operation that stands for all of them."""
        return control_flow.group(*update_ops, name=name_scope)

    def _call_if_callable(self, param: Any) -> Any:
        return param() if callable(param) else param


def _flattened(values: Any) -> list[Any]:
    if isinstance(values, dict):
        return [leaf for key in sorted(values) for leaf in _flattened(values[key])]
    if isinstance(values, (list, tuple, set, KeysView, ValuesView)):
        return [leaf for value in values for leaf in _flattened(value)]
    return [values]


def _gradient_target(var: Any) -> Any:
    """What to differentiate with respect to: the reference or the handle, so that every read counts."""
    if isinstance(var, Variable):
        return var if is_resource_variable(var) else _reference(var)
    if isinstance(var, Tensor):
        return var
    raise NotImplementedError(f"Trying to optimize unsupported type {var}")


def _reference(var: Any) -> Any:
    return var._ref() if hasattr(var, "_ref") else var


def _checked_gradient(grad: Any) -> Any:
    if grad is None:
        return None
    try:
        return convert_to_tensor_or_indexed_slices(grad)
    except TypeError:
        raise TypeError(f"Gradient must be convertible to a Tensor or IndexedSlices, or None: {grad}") from None


def _as_op(value: Any) -> Operation:
    op: Operation = value.op if isinstance(value, Tensor) else value
    return op


def _deduplicated(values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """Rows that belong to the same index, summed; and each index once.

    # values [N, ...], indices [N] -> [U, ...], [U]
    """
    if indices.op.type == "EmbeddingSplit" and indices.op.get_attr("distinct"):
        return values, indices
    unique, positions = apply_op("Unique", x=indices)
    count = apply_op("Shape", input=unique)[0]
    return apply_op("UnsortedSegmentSum", data=values, segment_ids=positions, num_segments=count), unique
