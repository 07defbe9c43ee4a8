"""`tf.cond` and the context of a branch; `tf.case`, made of it, is in control_flow_case.py.

A branch is the operations made while its function runs. Their inputs from outside come through a Switch, so that they
are dead unless the branch is taken; a Merge gives the result of the branch that was taken. Follows TensorFlow 1.15's
control_flow_ops.py (version 1 control flow), whose node names these are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import nest
from tenfold.graph.collections import GraphKeys
from tenfold.graph.constant_value import known_value
from tenfold.graph.control_flow_context import ControlFlowContext, is_containing, is_exit
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import add_to_collection, control_dependencies, name_scope
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.op_builder import tensor_op
from tenfold.graph.operation import Operation
from tenfold.graph.scope_names import prepend_scope, strip_scope
from tenfold.graph.tensor import Tensor
from tenfold.ops import array
from tenfold.ops.control_flow_primitives import merge, switch, switch_ref_or_tensor, with_dependencies
from tenfold.ops.tensor_array import flow_of, with_flows
from tenfold_core import dtypes
from tenfold_protos import control_flow_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["CondContext", "cond", "smart_cond"]


class CondContext(ControlFlowContext, field="cond_ctxt"):
    """One branch: for `pred` true (`branch` 1) or false (0). `pivot` is alive if the branch is taken."""

    is_cond = True

    def __init__(
        self,
        pred: Tensor | None = None,
        pivot: Tensor | None = None,
        branch: int | None = None,
        name: str = "cond_text",
        context_def: control_flow_pb2.CondContextDef | None = None,
        import_scope: str | None = None,
    ) -> None:
        if context_def is not None:
            super().__init__(context_def.values_def, import_scope)
            self._name = prepend_scope(context_def.context_name, import_scope)
            self._pred: Tensor = self._element(context_def.pred_name, import_scope)
            self._pivot: Tensor = self._element(context_def.pivot_name, import_scope)
            self._branch = context_def.branch
            return
        super().__init__()
        assert pred is not None
        assert pivot is not None
        assert branch is not None
        self._name = self._graph.unique_name(name)
        self._pred, self._pivot, self._branch = pred, pivot, branch
        self._values.update((pred.name, pivot.name))
        self._external_values[pred.name] = pred
        pivot.op._control_flow_context = self

    def _element(self, name: str, import_scope: str | None) -> Any:
        return self._graph.as_graph_element(prepend_scope(name, import_scope))

    @property
    def pred(self) -> Tensor:
        """The condition."""
        return self._pred

    @property
    def pivot(self) -> Tensor:
        """Alive if and only if this branch is taken."""
        return self._pivot

    @property
    def branch(self) -> int:
        """Which output of a Switch this branch takes."""
        return self._branch

    @property
    def control_pivot(self) -> Tensor | None:
        """The pivot."""
        return self._pivot

    @property
    def grad_state(self) -> Any:
        """The gradient state of the loop around."""
        loop = self.while_context()
        return None if loop is None else loop.grad_state

    @property
    def back_prop(self) -> bool:
        """Always false, as in TensorFlow."""
        return False

    def add_value(self, value: Tensor) -> Tensor:
        """`value` behind a Switch if it comes from outside the branch."""
        if value.name in self._values:
            return self._external_values.get(value.name, value)
        self._values.add(value.name)
        around = self._from_around(value)
        with control_dependencies(None):
            result: Tensor = switch_ref_or_tensor(around, self._pred)[self._branch]
            if self._outer_context is not None:
                self._outer_context.add_inner_op(result.op)
        result.graph.prevent_fetching(result.op)
        result.op._control_flow_context = self
        self._own([result])
        self._external_values[value.name] = result
        return result

    def _from_around(self, value: Tensor) -> Tensor:
        """The replacement of `value` in the context around."""
        if self._outer_context is None:
            return value
        result = self._outer_context.add_value(value)
        self._values.add(result.name)
        self._external_values[result.name] = result
        return result

    def _own(self, tensors: Sequence[Tensor]) -> None:
        """Records `tensors` as made inside, in this context and those around."""
        context: ControlFlowContext | None = self
        while context is not None:
            context._values.update(tensor.name for tensor in tensors)
            context = context.outer_context

    def add_op(self, op: Operation) -> None:
        """Brings in the inputs of `op`; without any, it waits for the pivot."""
        if not op.inputs:
            self._remove_external_control_edges(op)
            if not any(is_containing(before._control_flow_context, self) for before in op._control_inputs):
                op._add_control_input(self._pivot.op)
        else:
            for index, value in enumerate(op.inputs):
                if op.type == "Merge" and value.op.type == "NextIteration":
                    # An edge that closes a loop, of a graph that is being imported.
                    continue
                brought = self.add_value(value)
                if brought is not value:
                    op._update_input(index, brought)
            self._remove_external_control_edges(op)
        self._own(op.outputs)
        if self._outer_context is not None or not is_exit(op):
            op.graph.prevent_fetching(op)
        if self._outer_context is not None:
            self._outer_context.add_inner_op(op)

    # --- building ---

    def build(self, function: Callable[[], Any]) -> tuple[Any, Any]:
        """Calls `function` in this branch; returns its result, and the result as tensors of the branch."""
        result = function()
        if result is None:
            return None, None
        tensors = nest.map_structure(self._result, result, expand_composites=True)
        return result, tensors if isinstance(tensors, (list, tuple)) else [tensors]

    def _result(self, value: Any) -> Tensor:
        if isinstance(value, Operation):
            tensor: Tensor = with_dependencies([value], self._pivot)
            return tensor
        tensor = convert_to_tensor(flow_of(value))
        if tensor.name in self._values:
            return self._external_values.get(tensor.name, tensor)
        # The function returned a value from outside unchanged.
        self._values.add(tensor.name)
        passed: Tensor = switch_ref_or_tensor(self._from_around(tensor), self._pred)[self._branch]
        self._external_values[tensor.name] = passed
        return passed

    # --- meta graphs ---

    def _to_def(self, export_scope: str | None) -> control_flow_pb2.CondContextDef:
        return control_flow_pb2.CondContextDef(
            context_name=strip_scope(self._name, export_scope),
            pred_name=strip_scope(self._pred.name, export_scope),
            pivot_name=strip_scope(self._pivot.name, export_scope),
            branch=self._branch,
            values_def=self._values_def(export_scope),
        )


# --- tf.cond ---


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """The result of `true_fn()` if the scalar `pred` is true when the graph runs, otherwise that of `false_fn()`.

    Both build operations and return the same structure of tensors, operations, TensorArrays or IndexedSlices; a list of
    one is unpacked unless `strict`. The operations that they create run only if the branch is taken; outside
    operations that these use always run. Raises TypeError and ValueError for arguments or results that do not fit.
    """
    true_fn = _branch_argument("true_fn", true_fn, "fn1", fn1)
    false_fn = _branch_argument("false_fn", false_fn, "fn2", fn2)
    with name_scope(name, "cond", [pred]):
        if isinstance(pred, bool):
            raise TypeError("pred must not be a Python bool")
        dead_or_false, dead_or_true = switch(pred, pred)
        pivot_true = array.identity(dead_or_true, name="switch_t")
        pivot_false = array.identity(dead_or_false, name="switch_f")
        pred = array.identity(pred, name="pred_id")
        for tensor in (dead_or_false, dead_or_true, pivot_true, pivot_false, pred):
            tensor.graph.prevent_fetching(tensor.op)
        context_true, given_true, results_true = _built(CondContext(pred, pivot_true, 1), "true_fn", true_fn)
        context_false, given_false, results_false = _built(CondContext(pred, pivot_false, 0), "false_fn", false_fn)
        if not strict:
            given_true, given_false = _unpacked(given_true), _unpacked(given_false)
        _check_results(given_true, given_false, results_true, results_false)
        if not results_true:
            raise ValueError("true_fn and false_fn must return at least one result.")
        merged = _merged(results_false, results_true)
        if context_true.outer_context is None:
            add_to_collection(GraphKeys.COND_CONTEXT, context_true)
            add_to_collection(GraphKeys.COND_CONTEXT, context_false)
        flat = with_flows(nest.flatten(given_true, expand_composites=True), merged)
        packed = nest.pack_sequence_as(given_true, flat, expand_composites=True)
        return packed if strict else _unpacked(packed)


def _branch_argument(name: str, function: Any, old_name: str, old_function: Any) -> Callable[[], Any]:
    if old_function is not None:
        if function is not None:
            raise TypeError(f"cond(): {name} and {old_name} may not be set simultaneously.")
        function = old_function
    elif function is None:
        raise TypeError(f"cond(): {name} argument required")
    if not callable(function):
        raise TypeError(f"{name} must be callable.")
    built: Callable[[], Any] = function
    return built


def _built(context: CondContext, what: str, function: Callable[[], Any]) -> tuple[CondContext, Any, Any]:
    with context.entered():
        given, results = context.build(function)
        if given is None:
            raise ValueError(f"{what} must have a return value.")
        context.exit_result(nest.flatten(results, expand_composites=True))
    return context, given, results


def _unpacked(result: Any) -> Any:
    return result[0] if isinstance(result, (list, tuple)) and len(result) == 1 else result


def _check_results(given_true: Any, given_false: Any, results_true: Any, results_false: Any) -> None:
    nest.assert_same_structure(given_true, given_false, expand_composites=True)
    flat_true = nest.flatten(results_true, expand_composites=True)
    flat_false = nest.flatten(results_false, expand_composites=True)
    given = nest.flatten(given_true, expand_composites=True)
    for index, (true, false) in enumerate(zip(flat_true, flat_false, strict=True)):
        if true.dtype.base_dtype != false.dtype.base_dtype and not _is_index(given_true, given[index]):
            raise ValueError(
                f"Outputs of true_fn and false_fn must have the same type: {true.dtype.name}, {false.dtype.name}"
            )


def _is_index(structure: Any, part: Any) -> bool:
    """Whether `part` holds the positions of IndexedSlices, whose type may differ."""
    slices = (leaf for leaf in nest.flatten(structure) if isinstance(leaf, IndexedSlices))
    return any(part is each.indices for each in slices)


def _merged(results_false: Any, results_true: Any) -> list[Tensor]:
    pairs = zip(
        nest.flatten(results_false, expand_composites=True),
        nest.flatten(results_true, expand_composites=True),
        strict=True,
    )
    merged = []
    for false, true in pairs:
        if false.dtype.base_dtype != true.dtype.base_dtype:
            # Positions of IndexedSlices; int64 holds both.
            false, true = (tensor_op("Cast", x=each, DstT=dtypes.int64) for each in (false, true))
        merged.append(merge([false, true])[0])
    return merged


def smart_cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any], name: str | None = None) -> Any:
    """`cond`, decided while the graph is built if `pred` is a Python value or a tensor of known value."""
    if not callable(true_fn):
        raise TypeError("`true_fn` must be callable.")
    if not callable(false_fn):
        raise TypeError("`false_fn` must be callable.")
    known = smart_constant_value(pred)
    if known is None:
        return cond(pred, true_fn=true_fn, false_fn=false_fn, name=name)
    return true_fn() if known else false_fn()


def smart_constant_value(pred: Any) -> bool | None:
    """The value of `pred` if it is known statically. Raises TypeError for anything but a tensor, a bool, 0 or 1."""
    if isinstance(pred, (bool, int)) and pred in (0, 1):
        return bool(pred)
    if not isinstance(pred, Tensor) and not hasattr(pred, "_as_graph_element"):
        raise TypeError(f"`pred` must be a Tensor, or a Python bool, or 1 or 0. Found instead: {type(pred)}")
    value = known_value(convert_to_tensor(pred))
    return None if value is None else bool(value)
